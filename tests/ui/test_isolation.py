"""Nothing a visitor does is seen by another, and nothing that needs no model waits for one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from tiny import TinyShelf, pair, trace
from visit import MODEL, PAIRS, Site, Visit, serve

from specviz.gallery import exhibits
from specviz.race import Race
from specviz.records import Run, Settings, Trace
from specviz.trace import dump_trace, load_trace
from specviz.ui import build

LONG = 8000
ALICE: dict[str, Any] = {
    "prompt": "Alice keeps xyzzy.",
    "seed": 7,
    "temperature": 0.9,
    "schedule": "adaptive",
    "gamma": 2,
    "max_new_tokens": 40,
}
BOB: dict[str, Any] = {
    "prompt": "Bob hides plugh.",
    "seed": 8,
    "temperature": 0.7,
    "schedule": "constant",
    "gamma": 5,
    "max_new_tokens": 30,
}


@pytest.fixture(scope="module")
def apart(first: Path) -> Iterator[Site]:
    shelf = TinyShelf()
    page = build(shelf, pairs=PAIRS, first=first)
    yield Site(serve(page), shelf)
    page.close(verbose=False)


def alone(wanted: dict[str, Any]) -> Trace:
    """The same run with nobody else about."""
    settings = {name: value for name, value in wanted.items() if name != "prompt"}
    race = Race(pair(), "draft model", wanted["prompt"], Settings(**settings))
    for _ in race.start():
        pass
    while not race.finished:
        race.advance()
    return race.trace()


def decided(run: Run | None) -> list[tuple[Any, ...]]:
    """Everything of a run but its times."""
    assert run is not None
    return [
        (r.gamma, *((t.id, t.fate, t.p, t.q, t.u) for t in (*r.drafted, r.added) if t))
        for r in run.rounds
    ]


def choose(one: Visit, wanted: dict[str, Any]) -> None:
    """Set the controls."""
    one.settings(max_new_tokens=wanted["max_new_tokens"], seed=wanted["seed"])
    one.page.get_by_label("Prompt", exact=True).fill(wanted["prompt"])
    one.page.get_by_label("draft model", exact=True).check()
    one.page.locator("#schedule").get_by_label(wanted["schedule"]).check()
    for name in ("gamma", "temperature"):
        one._fill(one.page.locator(f"#{name} input[type=number]"), str(wanted[name]))


def saved(one: Visit, path: Path) -> Trace:
    with one.page.expect_download() as download:
        one.button("save").click()
    download.value.save_as(path)
    return load_trace(path.read_bytes())


def test_two_visitors_side_by_side_see_and_save_only_their_own(visit, apart: Site, tmp_path: Path):
    both = [(visit(at=apart).ready(), wanted) for wanted in (ALICE, BOB)]
    for one, wanted in both:
        choose(one, wanted)
    for rounds in range(1, 4):  # by turns, each in the middle of the other's run
        for one, _ in both:
            one.button("step").click()
            one.status(f"Paused after {rounds} round")
    for one, _ in both:
        one.button("run").click()
    for one, wanted in both:
        one.phase("finished")
        mine, expected = saved(one, tmp_path / "trace.json"), alone(wanted)
        assert mine.prompt == wanted["prompt"]
        assert mine.settings == expected.settings
        for lane in ("speculative", "baseline"):
            assert decided(mine.run(lane)) == decided(expected.run(lane))
        assert one.model("model.start.prompt") == wanted["prompt"]
        one.page.get_by_role("tab", name="Traces").click()
        one.page.locator("button#keep").click()
        own = one.page.locator(".traces-list").first.locator(".traces-row")
        expect(own).to_have_count(1)
        expect(own).to_contain_text(wanted["prompt"][:10])
    for (one, _), (_, other) in zip(both, reversed(both), strict=True):
        one.page.get_by_role("tab", name="Explore").click()
        assert other["prompt"].split()[-1] not in one.page.content()
        assert one.page.locator("#seed input").input_value() != str(other["seed"])


def test_two_programs_at_once_get_each_the_run_they_would_have_got_alone(apart: Site):
    def ask(wanted: dict[str, Any]) -> dict[str, Any]:
        client = Client(apart.url, verbose=False)
        return client.predict(**wanted, pair="tiny", api_name="/run")

    with ThreadPoolExecutor(2) as pool:
        for wanted, got in zip((ALICE, BOB), pool.map(ask, (ALICE, BOB)), strict=True):
            expected = alone(wanted)
            assert got["prompt"] == wanted["prompt"]
            assert got["text"] == expected.run("speculative").text
            assert got["settings"]["seed"] == wanted["seed"]
            assert got["accepted"] == sum(r.accepted for r in expected.run("speculative").rounds)


@pytest.fixture
def busy(visit, apart: Site) -> Iterator[Visit]:
    """A visitor whose run holds the turn all the while."""
    one = visit(at=apart).ready().settings(max_new_tokens=LONG)
    one.run()
    one.page.wait_for_function(f"{MODEL}.lanes.speculative.rounds.length > 3")
    yield one
    assert one.model("model.lanes.speculative.end") is None
    one.button("stop").click()
    one.phase("stopped")


def test_viewing_replaying_theory_and_the_exact_proof_wait_for_no_run(busy, visit, apart: Site):
    one = visit(at=apart).ready()
    one.open_trace(dump_trace(trace(tokens=8)))
    one.status("A recorded run is on the stage.")
    one.page.get_by_role("button", name="To the end").click()
    one.page.get_by_role("tab", name="Traces").click()
    row = one.page.locator(".traces-row").nth(len(exhibits()) - 1)
    row.locator(".traces-open").click()
    expect(row).to_have_attribute("data-shown", "true")
    one.page.get_by_role("tab", name="Theory").click()
    expect(one.page.locator("#theory svg").first).to_be_visible()
    one.page.get_by_role("tab", name="Lossless").click()
    one.page.locator("button#prove-exact").click()
    expect(one.page.locator("#proof-exact .proof-status")).to_have_attribute("data-kind", "holds")
    client = Client(apart.url, verbose=False)
    assert client.predict(dump_trace(trace(tokens=8)), api_name="/load_trace")["tokens"] == 8


def test_the_line_says_how_long_it_takes_once_a_run_was_measured(busy, visit, apart: Site):
    one = visit(at=apart).ready()
    one.button("run").click()
    expect(one.page.locator(".sv-strip-text")).to_contain_text("1 run is ahead of yours")
    busy.button("stop").click()
    busy.phase("stopped")
    one.phase("finished")
    busy.run()
    one.button("run").click()
    expect(one.page.locator(".sv-strip-text")).to_contain_text("1 run is ahead of yours, about")
    one.button("stop").click()


def test_a_ticket_is_asked_for_by_its_own_page_and_nothing_else_names_it(busy, visit, apart: Site):
    with busy.page.expect_request(lambda request: "ticket" in (request.post_data or "")) as asked:
        pass
    ticket = json.loads(asked.value.post_data)["data"]["ticket"]
    assert len(ticket) >= 20
    one = visit(at=apart).ready()
    answers: list[Any] = []
    one.page.on("response", lambda answer: answers.append(answer))
    one.page.get_by_role("tab", name="Traces").click()
    one.page.locator("button#keep").click()
    expect(one.page.locator(".traces-message")).to_have_text("Nothing has been run here yet.")
    told = [answer.text() for answer in answers if "/gradio_api/run/" in answer.url]
    assert told
    assert ticket not in "".join(told) + one.page.content()
