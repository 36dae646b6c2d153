"""What is kept of visitors who are gone, for how long, and who gets it. Without a browser."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sweeps import pairs, plan
from test_following import waited
from test_turns import NEVER, until
from test_worker import worker
from tiny import trace

from specviz.sweep import Sweep
from specviz.ui import returning, visitors
from specviz.ui.kept import MOST, Collections, Full
from specviz.ui.proving import Proofs, Proving
from specviz.ui.returning import Returning
from specviz.ui.saved import SavedFiles
from specviz.ui.session import Races
from specviz.ui.sweeping import Sweeping
from specviz.ui.turns import Turns
from specviz.ui.visitors import BACK_SECONDS, OneEach


class Notes:
    """What a ``OneEach`` was told, with a clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ended: list[str] = []
        self.left: list[str] = []
        self.back: list[str] = []
        self.held: OneEach[str] = OneEach(
            self.ended.append, self.left.append, self.back.append, now=lambda: self.seconds
        )


def test_what_a_visitor_had_is_kept_for_a_while_after_the_connection_is_lost():
    notes = Notes()
    notes.held.put("a", "one")
    notes.held.put("b", "two")
    notes.held.leave("a")
    notes.held.leave("b")
    assert notes.left == ["one", "two"]
    notes.seconds = BACK_SECONDS - 1
    assert notes.held.of("a") == "one"  # back in time
    assert notes.back == ["one"]
    notes.seconds = BACK_SECONDS + 1
    notes.held.put("c", "three")
    notes.held.leave("c")
    assert notes.ended == ["two"]
    assert notes.held.of("b") is None
    assert notes.held.of("a") == "one"


def test_a_visitor_whose_connection_was_lost_is_there_as_long_as_they_say_something():
    notes = Notes()
    notes.held.put("a", "one")
    notes.held.leave("a")
    for _ in range(5):
        notes.seconds += BACK_SECONDS - 1
        assert notes.held.of("a") == "one"
    notes.seconds += BACK_SECONDS + 1
    notes.held.move("a", "b")
    assert notes.held.of("b") is None
    assert notes.ended == ["one"]


def test_what_is_not_fetched_in_time_is_forgotten_though_nobody_else_comes(monkeypatch):
    monkeypatch.setattr(visitors, "BACK_SECONDS", 0.1)
    ended: list[str] = []
    held: OneEach[str] = OneEach(ended.append, visitors.nothing)
    held.put("a", "one")
    held.put("b", "two")
    held.leave("a")
    held.leave("b")
    assert ended == []
    until(lambda: ended == ["one", "two"])


def test_a_new_session_keeps_what_it_has_begun_itself():
    notes = Notes()
    notes.held.put("before", "old")
    notes.held.put("now", "new")
    notes.held.leave("before")
    notes.held.move("before", "now")
    assert notes.held.of("now") == "new"
    assert notes.ended == ["old"]


def test_a_race_follows_its_page_into_a_new_session_and_no_further():
    races = Races()
    one = worker()
    races.put("before", one)
    races.leave("before")
    races.move("before", "now")
    assert races.of("before") is None
    assert races.of("now") is one
    assert races.with_ticket(one.ticket) is one
    races.drop("now")
    assert one.join(10)


def test_deleting_a_trace_while_others_are_kept_loses_none():
    kept = Collections()
    small = trace(tokens=4)
    first = kept.add("a", small)

    def add_and_delete(_: int) -> None:
        kept.delete("a", kept.add("a", small).id)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_and_delete, range(40)))
    assert [one.id for one in kept.own("a")] == [first.id]
    assert kept.own("b") == ()
    for _ in range(MOST - 1):
        kept.add("a", small)
    with pytest.raises(Full):
        kept.add("a", small)
    assert len(kept.own("a")) == MOST


@pytest.mark.parametrize("kept", [True, False])
def test_saved_files_outlast_their_page_where_they_are_to(kept: bool):
    files = SavedFiles(kept=kept)
    path = files.write("a", "specviz.txt", "text")
    files.leave("a")
    assert path.exists() == kept
    files.move("a", "b")
    assert files.write("b", "more.txt", "text").parent == path.parent
    files.drop("b")
    assert not path.parent.exists()


# --- passes ----------------------------------------------------------------------------------


class Door:
    """A ``Returning`` with one thing to keep, and pages that arrive at it."""

    def __init__(self) -> None:
        self.returning = Returning()
        self.heard: list[str] = []
        self.held: OneEach[str] = OneEach(visitors.nothing, visitors.nothing, self.heard.append)
        self.returning.keep(self.held)

    def arrive(self, session: str, shown: str = "", alone: bool = False) -> tuple[str, bool]:
        """The page's own pass, and whether it takes over."""
        event: Any = SimpleNamespace(shown=shown, alone=alone)
        told = json.loads(waited(self.returning.on_arrive(event, request(session))))
        return told["pass"], told["back"]

    def leave(self, session: str) -> None:
        self.returning.on_unload(request(session))


def request(session: str) -> Any:
    return SimpleNamespace(session_hash=session)


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setattr(returning, "UNTIL_AWAY_SECONDS", 0.3)
    return Door()


def test_a_pass_fetches_what_its_own_session_had_and_nothing_else_does(door: Door):
    given, _ = door.arrive("first")
    other, _ = door.arrive("other")
    door.held.put("first", "mine")
    door.held.put("other", "theirs")
    door.leave("first")
    door.leave("other")
    for wrong in ("", "first", given[:-1], given + "x", given.swapcase()):
        own, back = door.arrive("nobody", wrong, alone=True)
        assert not back
        assert own not in (wrong, given, other)
    assert door.arrive("second", given) == (given, True)
    assert door.held.of("second") == "mine"
    door.leave("second")  # loaded anew before the page had its pass
    assert door.arrive("third", given) == (given, True)
    assert door.held.of("third") == "mine"
    assert door.held.of("second") is None


def test_nothing_is_taken_from_a_page_that_is_connected(door: Door):
    given, _ = door.arrive("first")
    door.held.put("first", "mine")
    own, back = door.arrive("twin", given)
    assert (own != given, back) == (True, False)
    assert door.held.of("first") == "mine"


def test_a_page_waits_until_the_one_before_it_is_noticed_to_be_gone(door: Door):
    given, _ = door.arrive("first")
    door.held.put("first", "mine")
    leaving = threading.Timer(0.1, door.leave, ["first"])
    leaving.start()
    assert door.arrive("second", given) == (given, True)


def test_a_lost_connection_that_was_not_noticed_here_is_believed_of_a_browser_that_knows(
    door: Door,
):
    given, _ = door.arrive("first")
    door.held.put("first", "mine")
    assert door.arrive("second", given, alone=True) == (given, True)
    door.leave("first")  # noticed late
    assert door.held.of("second") == "mine"


def test_a_pass_that_was_not_shown_in_time_is_worth_nothing(door: Door, monkeypatch):
    given, _ = door.arrive("first")
    door.held.put("first", "mine")
    monkeypatch.setattr(visitors, "BACK_SECONDS", 0.0)
    door.leave("first")
    _, back = door.arrive("second", given, alone=True)
    assert not back
    assert door.held.of("second") is None


def test_a_page_without_a_connection_is_heard_when_it_says_that_it_is_there(door: Door):
    given, _ = door.arrive("first")
    door.held.put("first", "mine")
    door.leave("first")
    here = door.returning._here()
    waited(here(given + "x"))
    assert door.heard == []
    waited(here(given))
    assert door.heard == ["mine"]


# --- what works for those who are gone -------------------------------------------------------


@pytest.fixture
def turns() -> Turns:
    return Turns()


def sweeping(turns: Turns, path: Path, **changes: Any) -> Sweeping:
    return Sweeping(lambda _: Sweep(pairs(), plan(**changes)), turns, path / "sweep.json")


def test_a_sweep_whose_page_is_lost_goes_on_while_nobody_waits(turns: Turns, tmp_path: Path):
    lost = sweeping(turns, tmp_path)
    lost.unwanted.leave_alone()
    assert lost.join(60)
    assert lost.sweep.finished


def test_a_sweep_whose_page_is_lost_makes_room_within_a_round(turns: Turns, tmp_path: Path):
    lost = sweeping(turns, tmp_path, repeats=1000)
    until(lambda: lost.sweep is not None and len(lost.sweep.outcomes) > 0)
    lost.unwanted.leave_alone()
    with turns.turn(NEVER, lambda _: None):
        assert lost.join(10)
    assert "Stopped after" in lost.view
    assert lost.measured


def test_a_lost_sweep_that_waits_or_loads_gives_up_its_place_at_once(turns: Turns, tmp_path: Path):
    with turns.turn(NEVER, lambda _: None):
        waits = sweeping(turns, tmp_path)
        until(lambda: "ahead of yours" in waits.view)
        waits.unwanted.leave_alone()
        assert waits.join(10)
    go_on = threading.Event()

    def make(progress: Any) -> Sweep:
        while not go_on.wait(0.01):
            progress("Reading the weights")
        return Sweep(pairs(), plan())

    loads = Sweeping(make, turns, tmp_path / "sweep.json")
    until(lambda: "Reading" in loads.view)
    loads.unwanted.leave_alone()
    with turns.turn(NEVER, lambda _: None):
        assert loads.join(10)
    assert "Stopped before the first run" in loads.view


def test_a_sweep_that_is_read_again_is_no_longer_alone(turns: Turns, tmp_path: Path):
    one = sweeping(turns, tmp_path, repeats=20)
    first = one.unwanted.attend()
    one.unwanted.leave_alone()
    one.unwanted.attend()
    one.unwanted.leave_alone(first)  # the reader before, noticed late
    with turns.turn(NEVER, lambda _: None):
        pass
    assert not one.unwanted.is_set()
    one.unwanted.set()
    assert one.join(30)


def test_a_sweep_that_is_refused_leaves_the_one_before_it(turns: Turns, tmp_path: Path):
    before = sweeping(turns, tmp_path)
    assert before.join(60)

    def refuse(_: Any) -> Sweep:
        raise ValueError("too large")

    after = Sweeping(refuse, turns, tmp_path / "sweep.json", before)
    assert after.join(10)
    assert after.last is before
    assert "too large" in after.view
    assert json.loads(after.view)["rows"] == json.loads(before.view)["rows"]


def test_a_proof_whose_page_is_lost_makes_room_before_its_next_result(turns: Turns):
    lost = Proving(lambda say: ({"e": "result"} for _ in iter(int, 1)), turns)
    until(lambda: "result" in lost.log)
    lost.unwanted.leave_alone()
    with turns.turn(NEVER, lambda _: None):
        assert lost.join(10)
    assert json.loads(lost.log.splitlines()[-1]) == {"e": "end", "stopped": True}


def test_a_new_proof_ends_the_one_that_goes_on_and_keeps_what_the_others_found(turns: Turns):
    proofs = Proofs()
    done = Proving(lambda say: iter([{"e": "exact"}]))
    proofs.begin("a", "exact", done)
    assert done.join(10)
    endless = Proving(lambda say: ({"e": "sampled"} for _ in iter(int, 1)), turns)
    proofs.begin("a", "sampled", endless)
    assert not endless.join(0.05)
    greedy = Proving(lambda say: iter([{"e": "greedy"}]), turns)
    proofs.begin("a", "greedy", greedy)
    assert endless.join(10)
    assert greedy.join(10)
    assert proofs.own("a") == {"exact": done, "sampled": endless, "greedy": greedy}
    assert json.loads(done.log.splitlines()[-1]) == {"e": "end", "stopped": False}
    proofs.put_away("a", ("exact", "sampled"))
    assert proofs.own("a") == {"greedy": greedy}
