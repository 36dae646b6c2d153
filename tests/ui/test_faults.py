"""Faults, each injected into the running page: what it says, what it keeps, that it works on."""

from __future__ import annotations

import errno
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
import torch
from playwright.sync_api import expect
from test_analysis import STATUS, fill, only, rows, sweep, tab
from tiny import CONTEXT, TinyPair, TinyShelf
from visit import MODEL, PAIRS, Site, Visit, serve
from wire import Wire, far_away

from specviz.sweep import Journal
from specviz.trace import load_trace
from specviz.ui import build

LONG = 8000
FULL = OSError(errno.ENOSPC, "No space left on device")
TOAST = ".toast-body"
LIVE = f"document.querySelector('[data-mounted] .sv-stage') && {MODEL}.start?.mode === 'live'"


class FaultyShelf(TinyShelf):
    """The tiny pair, whose next load ends in ``fault`` where one is set."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: BaseException | None = None

    def load(self, *given: Any, **how: Any) -> TinyPair:
        """As ``TinyShelf.load``."""
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        return super().load(*given, **how)


@pytest.fixture(scope="module")
def faulty(first: Path) -> Iterator[Site]:
    shelf = FaultyShelf()
    page = build(shelf, pairs=PAIRS, first=first)
    yield Site(serve(page), shelf)
    page.close(verbose=False)


@contextmanager
def spoiled(model: Any, effect: Callable[[Any], Any], after: int = 8) -> Iterator[None]:
    """From its call number ``after`` on the model's output goes through ``effect``."""
    calls = itertools.count()

    def spoil(module: Any, given: Any, output: Any) -> Any:
        return effect(output) if next(calls) >= after else output

    hook = model.module.register_forward_hook(spoil)
    yield
    hook.remove()


def raising(error: BaseException) -> Callable[[Any], Any]:
    def effect(output: Any) -> Any:
        raise error

    return effect


def not_numbers(output: Any) -> Any:
    output.logits = output.logits * float("nan")
    return output


def fails_with(one: Visit, words: str) -> None:
    """Press Run and wait until the stage says so: of this run, not of one before."""
    with one.page.expect_request(lambda request: "ticket" in (request.post_data or "")):
        one.button("run").click()
    one.status("The run failed. The stage says why.")
    one.phase("failed")
    expect(one.page.locator(".sv-strip-text")).to_contain_text(words)
    expect(one.button("run")).to_be_enabled()


def saved(one: Visit, path: Path) -> Any:
    """The trace that Save gives."""
    with one.page.expect_download() as download:
        one.button("save").click()
    download.value.save_as(path)
    return load_trace(path.read_bytes())


def works(one: Visit) -> None:
    """The page can be used as if nothing had been."""
    one.settings(max_new_tokens=8)
    one.finish()
    assert one.model("model.lanes.speculative.tokens") == 8


# --- while models load -----------------------------------------------------------------------


def test_a_load_that_fails_says_why_and_the_next_one_works(visit, faulty: Site):
    one = visit(at=faulty).ready()
    for fault, words in (
        (torch.OutOfMemoryError("CUDA out of memory"), "The memory ran out."),
        (MemoryError(), "GB are free now"),
        (RuntimeError("half of a file"), "half of a file"),
        (SystemExit(3), "SystemExit"),
        (FULL, "The disk of the machine that runs this page is full."),
    ):
        faulty.shelf.fault = fault
        fails_with(one, words)
        expect(one.button("save")).to_be_disabled()
    works(one)


def test_a_page_whose_first_load_fails_says_so_and_loads_at_the_next_run(visit, first: Path):
    shelf = FaultyShelf()
    shelf.fault = SystemExit(3)
    page = build(shelf, pairs=PAIRS, first=first)
    try:
        one = visit(at=Site(serve(page), shelf)).ready()
        one.status("SystemExit")
        works(one)
    finally:
        page.close(verbose=False)


# --- while rounds run ------------------------------------------------------------------------


def test_a_round_that_fails_says_why_and_what_was_decoded_is_kept(
    visit, faulty: Site, tmp_path: Path
):
    one = visit(at=faulty).ready().settings(max_new_tokens=LONG)
    target, draft = faulty.shelf.pair.target, faulty.shelf.pair.draft
    for model, effect, words in (
        (target, raising(torch.OutOfMemoryError("CUDA out of memory")), "fewer new tokens"),
        (target, raising(MemoryError()), "The memory ran out."),
        (draft, raising(SystemExit(3)), "SystemExit"),
        (target, not_numbers, "tiny target, the target, returned logits that are not numbers"),
        (draft, not_numbers, "the draft model returned logits that are not numbers"),
    ):
        with spoiled(model, effect, after=24):
            fails_with(one, words)
        trace = saved(one, tmp_path / "partial.json")
        run = trace.run("speculative")
        assert run.rounds
        assert run.finish_reason == "error"
        assert words in trace.note
        expect(one.button("stop")).to_be_disabled()
    works(one)


# --- a full disk -----------------------------------------------------------------------------


def test_a_full_disk_loses_no_run(visit, faulty: Site, tmp_path: Path, monkeypatch):
    one = visit(at=faulty).ready().settings(max_new_tokens=12)
    one.finish()
    write = Path.write_text

    def full(path: Path, text: str, *given: Any, **how: Any) -> int:
        if "specviz-" not in path.name:
            return write(path, text, *given, **how)
        write(path, text[:100])
        raise FULL

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        one.button("save").click()
        expect(one.page.locator(TOAST).first).to_contain_text("is full")
    assert len(saved(one, tmp_path / "trace.json").run("speculative").tokens) == 12
    works(one)


def test_a_disk_that_fills_up_in_a_sweep_keeps_its_runs_and_the_sweep_goes_on(visit, monkeypatch):
    one = tab(visit, "Sweep")
    fill(one, gammas="2", limit=4, tokens=8)
    only(one, "draft model")
    add, calls = Journal.add, itertools.count()

    def full(journal: Journal, measured: Any) -> None:
        if next(calls) == 2:
            raise FULL
        add(journal, measured)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", full)
        sweep(one, "is full")
        expect(one.page.locator(STATUS)).to_contain_text("3 of 4 runs were made")
        assert rows(one)
        expect(one.page.locator("button#sweep-run")).to_be_enabled()
    sweep(one, "Done: 4 of 4 runs.")
    with one.page.expect_download() as download:
        one.page.locator("button#sweep-json").click()
    bench = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert bench["complete"] is True


# --- clients that vanish, and come back ----------------------------------------------------------


def test_a_program_that_vanishes_in_the_middle_frees_the_line(faulty: Site, visit):
    url = f"{faulty.url}gradio_api/call"
    ask = {"prompt": "Once", "pair": "tiny", "max_new_tokens": LONG}
    with httpx.Client(timeout=30) as client:
        event = client.post(f"{url}/v2/run", json=ask).json()["event_id"]
        with client.stream("GET", f"{url}/run/{event}") as stream:
            for text in stream.iter_lines():
                if text.startswith("data:") and json.loads(text[5:])[0]["tokens"]:
                    break
    works(visit(at=faulty).ready())


@pytest.fixture
def wired(browser: Any, faulty: Site) -> Iterator[tuple[Visit, Wire]]:
    with far_away(browser, faulty) as both:
        yield both


def running(one: Visit, tokens: int) -> None:
    one.settings(max_new_tokens=tokens).run()
    one.page.wait_for_function(f"{MODEL}.lanes.speculative.rounds.length > 3")


def finished(one: Visit, tokens: int) -> None:
    """The run is on the stage, whole, and the buttons know."""
    one.page.wait_for_function(f"{LIVE} && {MODEL}.done", timeout=60_000)
    assert one.model("model.lanes.speculative.tokens") == tokens
    assert one.model("model.error") is None
    one.status("Max new tokens reached.")
    expect(one.button("run")).to_have_text("Run")
    expect(one.button("run")).to_be_enabled()
    expect(one.button("save")).to_be_enabled()


def test_a_browser_that_was_offline_shows_the_finished_run(wired):
    one, _ = wired
    running(one, 300)
    one.page.context.set_offline(True)
    expect(one.page.locator(".sv-strip-text")).to_contain_text("is lost. What has arrived is kept")
    one.page.context.set_offline(False)
    finished(one, 300)
    works(one)


def test_a_page_whose_connection_broke_is_loaded_anew_and_shows_the_finished_run(wired):
    one, wire = wired
    running(one, 300)
    one.page.evaluate("window.before = true")
    wire.cut()
    expect(one.page.locator(".sv-strip-text")).to_contain_text("is lost. What has arrived is kept")
    wire.mend()
    one.page.wait_for_function("!window.before", timeout=60_000)  # Gradio does that by itself
    finished(one, 300)
    works(one)


def test_a_page_loaded_anew_in_the_middle_of_a_run_follows_it_and_can_stop_it(wired):
    one, _ = wired  # Gradio complains that its own connections end
    running(one, LONG)
    one.page.reload()
    one.page.wait_for_function(f"{LIVE} && {MODEL}.lanes.speculative.rounds.length > 3")
    expect(one.button("stop")).to_be_enabled()
    one.button("stop").click()
    one.phase("stopped")
    one.status("Stopped. What was decoded is kept.")
    works(one)


def test_another_tab_does_not_take_the_run_along(visit, faulty: Site):
    one = visit(at=faulty).ready()
    one.settings(max_new_tokens=12).finish()
    one.page.goto(faulty.url)
    assert one.ready().model("model.start.mode") == "replay"


# --- prompts ----------------------------------------------------------------------------------


def type_in(one: Visit, text: str) -> None:
    """Put a text into the prompt as it stands, whatever it holds."""
    one.page.locator("#prompt textarea").evaluate(
        """(box, text) => {
          box.value = JSON.parse(text);
          box.dispatchEvent(new Event("input", { bubbles: true }));
        }""",
        json.dumps(text),
    )


def test_prompts_that_cannot_be_run_say_why(visit, faulty: Site):
    one = visit(at=faulty).ready()
    for prompt, words in (
        ("", "The prompt is empty."),
        (" \n\t", "The prompt is empty."),
        ("word " * 200_000, "The prompt is 1,000,000 characters long; this host takes 200,000"),
    ):
        type_in(one, prompt)
        one.button("run").click()
        one.status(words)
    for prompt, words in (
        ("half \ud800 a pair", "half a surrogate pair"),
        ("word " * 4000, "the prompt is 20,000 tokens long, and tiny target has room for 8,191"),
    ):
        type_in(one, prompt)
        fails_with(one, words)
    type_in(one, "a")
    works(one)


def test_a_long_prompt_is_cut_where_that_was_chosen_and_the_page_says_by_how_much(
    visit, faulty: Site
):
    one = visit(at=faulty).ready().settings(max_new_tokens=8)
    type_in(one, "word " * 1700)
    one.page.get_by_label("loses its beginning").check()
    one.button("run").click()
    one.status("tokens of its beginning were left out.")
    left_out = 5 * 1700 - one.model("model.start.prompt_tokens.length")
    assert left_out == 5 * 1700 - (CONTEXT - 8)
    one.status(f"{left_out:,} tokens of its beginning were left out.")


def test_control_characters_are_run_and_shown_as_text(visit, faulty: Site):
    one = visit(at=faulty).ready()
    type_in(one, "a\u0000b\u001b[31mred\u0007\u202e\ufeff\u0085<b>")
    works(one)
    assert one.model("model.start.prompt").startswith("a\u0000b\u001b[31mred")
