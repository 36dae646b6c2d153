"""How a page follows a race: by asking. Without a browser first, then with one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from test_worker import rest, worker
from visit import MODEL

from specviz.ui import following
from specviz.ui.following import answer, order, until_read
from specviz.ui.session import Races

T = TypeVar("T")
STAGE = MODEL.removesuffix(".model")

# --- the server's side ---


def waited(awaitable: Coroutine[Any, Any, T]) -> T:
    """Its result, from a thread without a loop: the browser's is running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, awaitable).result()


def read_all(one: Any, pause: float = 0.0) -> tuple[list[dict[str, Any]], int]:
    """Every event as a page reads it, and the number of answers that took."""

    async def read() -> tuple[str, int]:
        text, since, answers = "", 0, 0
        while True:
            news = await answer(one, since)
            text, since, answers = text + news["lines"], news["next"], answers + 1
            if news["resting"]:
                return text, answers
            await asyncio.sleep(pause)

    text, answers = waited(read())
    return [json.loads(line) for line in text.splitlines()], answers


def test_a_reader_gets_every_line_once_and_in_order():
    one = worker(tokens=40)
    one.proceed()
    events, _ = read_all(one)
    assert events == rest(one)
    assert events[0]["e"] == "start"
    assert events[-1]["e"] == "done"


def test_a_slow_reader_gets_the_same_in_fewer_answers():
    one = worker(tokens=40)
    one.proceed()
    events, answers = read_all(one, pause=0.3)
    assert events == rest(one)
    assert answers < sum(event["e"] == "round" for event in events)


def test_a_reader_that_comes_late_gets_all_of_it_at_once():
    one = worker(tokens=20)
    one.proceed()
    told = rest(one)
    assert read_all(one) == (told, 1)


def test_an_answer_with_nothing_to_say_comes_after_a_while(monkeypatch):
    monkeypatch.setattr(following, "PATIENCE_SECONDS", 0.05)
    one = worker()
    one.state = "going"  # told to go, but nothing has happened yet
    news = waited(answer(one, 0))
    assert news == {"lines": "", "next": 0, "resting": False}
    one.stop()


def test_a_race_that_is_gone_is_at_rest_and_says_what_to_do():
    news = waited(answer(None, 7))
    assert (news["next"], news["resting"]) == (7, True)
    assert "Reload the page" in json.loads(news["lines"])["message"]


def test_the_buttons_wait_until_the_last_lines_were_read(monkeypatch):
    monkeypatch.setattr(following, "LAST_READ_SECONDS", 30.0)
    one = worker(tokens=12)
    one.proceed()

    async def both() -> float:
        waiting = asyncio.create_task(until_read(one))
        while one.state == "going":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await answer(one, 0)
        begin = time.monotonic()
        await waiting
        return time.monotonic() - begin

    assert waited(both()) < 5


def test_a_page_that_never_asks_holds_nothing_up(monkeypatch):
    monkeypatch.setattr(following, "LAST_READ_SECONDS", 0.1)
    one = worker(tokens=12)
    one.proceed()
    waited(until_read(one))
    assert one.read == 0


def test_a_ticket_finds_its_race_and_no_other():
    races = Races()
    one, other = worker(), worker()
    races.put("a", one)
    races.put("b", other)
    assert races.with_ticket(one.ticket) is one
    assert races.with_ticket(other.ticket) is other
    assert races.with_ticket("") is None
    assert order(one) != order(one)
    races.drop("a")
    assert races.with_ticket(one.ticket) is None
    races.drop("b")


# --- the page's side ---

COUNT_FRAMES = """(() => {
  const own = window.requestAnimationFrame.bind(window);
  window.asked = 0;
  window.requestAnimationFrame = (call) => { window.asked += 1; return own(call); };
})()"""
FRAMES_IN_A_SECOND = """() => new Promise((done) => {
  const before = window.asked;
  setTimeout(() => done(window.asked - before), 1000);
})"""


def test_a_page_at_rest_asks_for_no_frames_and_for_nothing_else(visit):
    one = visit("/").ready()
    one.page.context.add_init_script(COUNT_FRAMES)
    one.page.reload()
    one.ready()
    one.page.wait_for_function(f"!{STAGE}.playhead.playing", timeout=60_000)
    while one.page.evaluate(FRAMES_IN_A_SECOND) > 1:  # Gradio's stray loop is still being told
        assert one.page.evaluate("performance.now()") < 60_000
    asked: list[str] = []
    one.page.on("request", lambda request: asked.append(request.url))
    assert one.page.evaluate(FRAMES_IN_A_SECOND) <= 1
    assert asked == []


def test_a_run_on_explore_loads_no_plotly_and_draws_its_plots(visit):
    asked: list[str] = []
    one = visit("/").ready()
    one.page.on("request", lambda request: asked.append(request.url))
    one.page.reload()
    one.ready().settings(max_new_tokens=40)
    one.finish()
    legend = one.page.locator("#stage [data-plot=race] .sv-chart-value").first
    legend.scroll_into_view_if_needed()
    one.page.wait_for_function("text => text.textContent === '40'", arg=legend.element_handle())
    assert not [url for url in asked if "plotly.min" in url]


def test_updates_of_a_live_run_come_at_most_ten_times_a_second(visit):
    one = visit().ready().settings(max_new_tokens=400)
    one.run()
    one.page.evaluate(
        f"window.frames0 = [performance.now(), {STAGE}.costs.frames]; document.body.click()"
    )
    one.page.wait_for_function(f"{MODEL}.ordered.length > 300")
    seconds, frames = one.page.evaluate(
        "[(performance.now() - frames0[0]) / 1000, " + f"{STAGE}.costs.frames - frames0[1]]"
    )
    assert frames <= 10 * seconds + 3
    assert frames >= 1
    one.button("stop").click()
    one.phase("stopped")
