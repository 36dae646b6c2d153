"""The line for the processor: order, place, expected wait, bounds."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sweeps import pairs, plan
from test_worker import rest, rounds, worker

from specviz.sweep import Sweep
from specviz.ui.proving import Proving
from specviz.ui.sweeping import Sweeping
from specviz.ui.turns import BEHIND_THE_PAGE, Cancelled, LineFull, Place, Turns, computing

NEVER = threading.Event()


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def take(turns: Turns, clock: Hands, seconds: float, kind: Any = "run") -> None:
    """A turn that lasts so long."""
    with turns.turn(NEVER, print, kind):
        clock.seconds += seconds


class Waiter:
    """Somebody who waits in a thread, and what they have been told."""

    def __init__(self, turns: Turns, kind: Any = "run", **options: Any) -> None:
        self.told: list[str] = []
        self.left = threading.Event()
        self.had = threading.Event()
        self.news = threading.Condition()
        self._turns, self._kind, self._options = turns, kind, options
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        try:
            with self._turns.turn(self.left, self._hear, self._kind, **self._options):
                self.had.set()
        except Cancelled:
            self._hear("cancelled")

    def _hear(self, words: str) -> None:
        with self.news:
            self.told.append(words)
            self.news.notify_all()

    def hears(self, wanted: str) -> bool:
        """Wait until what was told last begins so."""

        def heard() -> bool:
            return bool(self.told) and self.told[-1].startswith(wanted)

        with self.news:
            return self.news.wait_for(heard, 10)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place(1), "1 run is ahead of yours. It starts by itself."),
        (Place(2, 41.0), "2 runs are ahead of yours, about 40 s. It starts by itself."),
        (Place(2, 0.4), "2 runs are ahead of yours, about 5 s. It starts by itself."),
        (Place(3, 125.0), "3 runs are ahead of yours, about 2 min. It starts by itself."),
    ],
)
def test_a_place_is_told_in_words(place: Place, words: str):
    assert place.words == words


def test_nothing_is_expected_while_nothing_was_measured():
    turns = Turns()
    with turns.turn(NEVER, print):
        waiter = Waiter(turns)
        assert waiter.hears("1 run is ahead of yours. ")
        waiter.left.set()
        assert waiter.hears("cancelled")


def test_the_wait_is_what_earlier_turns_took_less_what_the_current_one_has_been_going():
    clock = Hands()
    turns = Turns(now=clock)
    take(turns, clock, 20.0)
    take(turns, clock, 40.0)
    with turns.turn(NEVER, print):
        first = Waiter(turns)
        assert first.hears("1 run is ahead of yours, about 30 s.")
        second = Waiter(turns)
        assert second.hears("2 runs are ahead of yours, about 60 s.")
        clock.seconds += 10
        assert first.hears("1 run is ahead of yours, about 20 s.")
        assert second.hears("2 runs are ahead of yours, about 50 s.")
        clock.seconds += 15  # longer than the 20 s one took: like the one of 40 s, then
        assert first.hears("1 run is ahead of yours, about 15 s.")
        clock.seconds += 20  # longer than any: nobody knows
        assert first.hears("1 run is ahead of yours. ")
    assert first.had.wait(10)
    assert second.had.wait(10)


def test_turns_of_one_kind_say_nothing_of_another():
    clock = Hands()
    turns = Turns(now=clock)
    take(turns, clock, 2.0, "step")
    take(turns, clock, 60.0, "run")
    with turns.turn(NEVER, print, "sweep"):
        waiter = Waiter(turns)
        assert waiter.hears("1 run is ahead of yours. ")
        waiter.left.set()
    with turns.turn(NEVER, print, "run"):
        assert Waiter(turns).hears("1 run is ahead of yours, about 60 s.")


def test_a_turn_that_failed_is_no_measure_of_others():
    clock = Hands()
    turns = Turns(now=clock)
    with pytest.raises(ZeroDivisionError), turns.turn(NEVER, print):
        raise ZeroDivisionError
    with turns.turn(NEVER, print):
        assert Waiter(turns).hears("1 run is ahead of yours. ")


def test_the_line_is_bounded_and_says_so():
    turns = Turns(max_waiting=1)
    with turns.turn(NEVER, print):
        waiter = Waiter(turns)
        assert waiter.hears("1 run is ahead")
        with pytest.raises(LineFull, match=r"1 run waits already.*Try again"), ExitStack() as stack:
            stack.enter_context(turns.turn(NEVER, print))
        begun = Waiter(turns, bounded=False)  # what goes on is never refused
        assert begun.hears("2 runs are ahead")
    assert begun.had.wait(10)


def test_turns_are_had_one_at_a_time_in_the_order_of_coming():
    turns = Turns()
    order: list[int] = []
    inside: list[int] = []

    def have(number: int) -> None:
        with turns.turn(NEVER, lambda _: None):
            inside.append(number)
            assert len(inside) == 1
            order.append(number)
            inside.remove(number)

    with turns.turn(NEVER, print):
        threads = []
        for number in range(12):
            threads.append(threading.Thread(target=have, args=(number,)))
            threads[-1].start()
            until(lambda: len(turns._line) == len(threads) + 1)
    for thread in threads:
        thread.join(10)
    assert order == list(range(12))


def until(holds: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(2000):
        if holds():
            return
        waiting.wait(0.01)
    raise AssertionError("it never came to that")


# --- races in the line -----------------------------------------------------------------------


def test_races_wait_for_each_other_and_are_told():
    turns = Turns()
    first = worker(turns, tokens=4000)
    first.proceed()
    until(lambda: first.pace.rounds > 0)
    second = worker(turns, tokens=8)
    second.proceed()
    until(lambda: "1 run is ahead of yours" in second.status)
    assert second.pace.rounds == 0
    first.stop()
    assert rounds(rest(second), "baseline") == 8
    assert second.status == ""


def test_stop_frees_the_line_within_one_round():
    turns = Turns()
    first = worker(turns, tokens=4000)
    first.proceed()
    until(lambda: first.pace.rounds > 2)
    first.stop()
    after = len(first.race.trace().run("speculative").rounds)
    with turns.turn(NEVER, lambda _: None):
        ended = first.race.trace()
        assert len(ended.run("speculative").rounds) <= after + 1
        assert ended.run("speculative").finish_reason == "stopped"


def test_a_paused_race_holds_no_turn():
    turns = Turns()
    paused = worker(turns, tokens=4000)
    paused.proceed(1)
    rest(paused)
    assert paused.state == "paused"
    other = worker(turns, tokens=8)
    other.proceed()
    assert rounds(rest(other), "baseline") == 8
    paused.stop()


def test_a_race_ends_within_one_round_of_the_hosts_limit_kept_and_marked():
    limited = worker(Turns(max_seconds=0.2), tokens=4000)
    limited.proceed()
    rest(limited)
    trace = limited.trace()
    spent = [run.prefill_s + run.draft_prefill_s for run in trace.runs]
    seconds = sum(round_.seconds for run in trace.runs for round_ in run.rounds) + sum(spent)
    longest = max(round_.seconds for run in trace.runs for round_ in run.rounds)
    assert 0.2 < seconds <= 0.2 + longest
    assert "This host lets a run compute for 0.2 s" in limited.cut_short
    assert trace.note == limited.cut_short
    assert {run.finish_reason for run in trace.runs} == {"stopped"}


def test_pauses_do_not_count_towards_the_limit():
    turns = Turns(max_seconds=30.0)
    one = worker(turns, tokens=12)
    one.proceed(1)
    rest(one)
    one.proceed()
    rest(one)
    assert one.cut_short == ""


def test_a_race_whose_page_is_lost_goes_on_while_nobody_waits():
    turns = Turns()
    lost = worker(turns, tokens=60)
    lost.leave_alone()
    lost.proceed()
    rest(lost)
    assert lost.trace().run("speculative").finish_reason == "length"


def test_a_race_whose_page_is_lost_makes_room_for_who_waits_and_is_kept():
    turns = Turns()
    lost = worker(turns, tokens=4000)
    lost.proceed()
    until(lambda: lost.pace.rounds > 0)
    lost.leave_alone()
    other = worker(turns, tokens=8)
    other.proceed()
    assert rounds(rest(other), "baseline") == 8
    rest(lost)
    assert "others waited" in lost.cut_short
    assert lost.trace().run("speculative").rounds


def test_a_race_whose_page_is_back_is_not_ended_for_others():
    turns = Turns()
    one = worker(turns, tokens=200)
    one.proceed()
    one.leave_alone()
    one.attend()
    other = worker(turns, tokens=8)
    other.proceed()
    rest(other)
    rest(one)
    assert one.cut_short == ""
    assert one.trace().run("speculative").finish_reason == "length"


def test_a_full_line_refuses_a_new_race_but_not_one_that_goes_on():
    turns = Turns(max_waiting=0)
    begun = worker(turns, tokens=40)
    begun.proceed(1)
    rest(begun)
    with turns.turn(NEVER, print):
        refused = worker(turns, tokens=8)
        refused.proceed()
        assert "Try again in a minute" in rest(refused)[-1]["message"]
        begun.proceed()
        until(lambda: "ahead of yours" in begun.status)
    assert rounds(rest(begun), "baseline") == 40


# --- sweeps and proofs in the line ---------------------------------------------------------------


def test_a_sweep_lets_others_in_between_two_of_its_runs(tmp_path: Path):
    turns = Turns()
    sweeping = Sweeping(lambda _: Sweep(pairs(), plan()), turns, tmp_path / "sweep.json")
    seen: list[int] = []
    while not sweeping.over:
        with turns.turn(NEVER, lambda _: None):
            seen.append(len(sweeping.sweep.outcomes) if sweeping.sweep else 0)
    assert len(set(seen)) > 3
    assert sweeping.sweep.finished
    assert not sweeping.sweep.failed


def test_a_run_of_a_sweep_that_takes_too_long_here_counts_as_failed(tmp_path: Path):
    turns = Turns(max_seconds=0.0)
    sweeping = Sweeping(lambda _: Sweep(pairs(), plan()), turns, tmp_path / "sweep.json")
    assert sweeping.join(60)
    assert len(sweeping.sweep.failed) == sweeping.sweep.total
    assert "this host allows a run" in json.loads(sweeping.view)["status"]["text"]


def test_a_proof_lets_others_in_between_two_of_its_results():
    turns = Turns()

    def events(say: Any) -> Iterator[dict[str, Any]]:
        waiter = Waiter(turns)
        until(lambda: len(turns._line) == 2)
        yield {"e": "first"}
        assert waiter.had.is_set()
        yield {"e": "second"}

    proving = Proving(events, turns)
    assert proving.join(30)
    assert [json.loads(text)["e"] for text in proving.log.splitlines()][-2:] == ["second", "end"]


def test_a_proof_ends_at_the_hosts_limit_with_what_was_found():
    proving = Proving(lambda say: ({"e": "result"} for _ in iter(int, 1)), Turns(max_seconds=0.0))
    assert proving.join(30)
    told = [json.loads(text) for text in proving.log.splitlines()]
    assert told[0]["e"] == "result"
    assert "This host lets a proof compute" in told[-1]["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own here")
def test_what_computes_stands_behind_the_pages_own_threads():
    seen: list[int] = []

    def work() -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, 0))

    computing(work, "specviz test").join(30)
    assert seen == [min(19, os.getpriority(os.PRIO_PROCESS, 0) + BEHIND_THE_PAGE)]
