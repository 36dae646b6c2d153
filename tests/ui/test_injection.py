"""Text is data everywhere: every path a text can take through the page, with every text of
``injections.json``, in a real browser. Nothing may run, be asked for or become an element."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from attack import CORPUS, GROUPS, LONG, PLAIN, TEXTS, Guard, guarded, hostile_trace
from playwright.sync_api import expect
from tiny import TinyShelf
from visit import MODEL, PAIRS, Site, Visit, serve

from specviz.export.page import html_page
from specviz.export.svg import svg_picture
from specviz.host import Host
from specviz.trace import dump_trace
from specviz.ui import build

ALL = "\n".join(TEXTS)
EVERY_TOKEN = """async (stage) => {
  const root = document.querySelector(stage);
  for (const token of root.querySelectorAll(".sv-tok")) {
    token.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    token.dispatchEvent(new PointerEvent("pointermove", { bubbles: true }));
    token.click();
    await new Promise(requestAnimationFrame);
  }
}"""


@pytest.fixture(scope="module")
def town(first: Any) -> Iterator[Site]:
    """The page where Hub ids may be typed, and no folder be opened."""
    shelf = TinyShelf()
    page = build(shelf, pairs=PAIRS, first=first, host=Host(folders=(), max_new_tokens=64))
    yield Site(serve(page), shelf)
    page.close(verbose=False)


@pytest.fixture(scope="module")
def visited(browser: Any, town: Site) -> Iterator[tuple[Visit, Guard]]:
    """One tab for all tests of this file, every part of which was used once with plain text."""
    one, guard = guarded(browser, town)
    one.ready().settings(max_new_tokens=4)
    run(one, PLAIN)
    type_model(one, PLAIN)
    open_on_explore(one, PLAIN)
    explain(one)
    open_on_traces(one, PLAIN)
    compare(one)
    set_up_sweep(one)
    sweep_kinds(one, [PLAIN])
    expect(one.page.locator(".sv-sweep-figures .js-plotly-plot").last).to_be_visible()
    tab(one, "Theory")
    expect(one.page.locator(".sv-theory-figures .js-plotly-plot").last).to_be_visible()
    tab(one, "Lossless")
    tab(one, "About")
    guard.settled()
    yield one, guard
    one.page.context.close()


@pytest.fixture
def street(visited: tuple[Visit, Guard]) -> Iterator[Visit]:
    """The tab; afterwards nothing has happened in it that a text asked for."""
    one, guard = visited
    yield one
    guard.check()
    assert one.trouble == []


# --- what a visitor does -------------------------------------------------------------------


def tab(one: Visit, name: str) -> None:
    one.page.get_by_role("tab", name=name).click()


def run(one: Visit, prompt: str) -> None:
    tab(one, "Explore")
    one.page.locator("#prompt textarea").fill(prompt)
    one.run()
    one.page.wait_for_function(f"{MODEL}.done")
    expect(one.button("stop")).to_be_disabled()


def open_on_explore(one: Visit, text: str, others: list[str] | None = None) -> None:
    tab(one, "Explore")
    attack = hostile_trace(text, others)
    one.open_trace(dump_trace(attack))
    one.page.wait_for_function(
        f"wanted => {MODEL}.start?.prompt === wanted && {MODEL}.done", arg=attack.prompt
    )
    one.page.locator("#stage").get_by_role("button", name="To the end").click()


def explain(one: Visit, stage: str = "#stage") -> None:
    """Point at and pin every token at each level of words, with what-if open; then the guided
    walk, and guessing."""
    root = one.page.locator(stage)
    for level in range(3):
        root.locator(".sv-level").nth(level).click()
        one.page.evaluate(EVERY_TOKEN, stage)
        if level == 0:
            root.locator(".sv-stage").press("i")
    for start, answers in (("w", ["ArrowRight"] * 6), ("g", ["k", "x", "k", "x"])):
        root.locator(".sv-stage").press(start)
        for key in (*answers, "Escape", "Escape"):
            root.locator(".sv-stage").press(key)


def drop(one: Visit, text: str, name: str = "trace.json", others: list[str] | None = None) -> None:
    body = dump_trace(hostile_trace(text, others)).encode()
    payload = {"name": name, "mimeType": "application/json", "buffer": body}
    one.page.set_input_files("#trace-drop input[type=file]", payload)


def open_on_traces(one: Visit, text: str, others: list[str] | None = None) -> None:
    tab(one, "Traces")
    drop(one, text, others=others)
    own = one.page.locator(".traces-list").first.locator(".traces-row")
    expect(own).to_have_count(1)


def compare(one: Visit) -> None:
    one.page.locator(".traces-row").nth(2).get_by_role("button", name="Compare").click()
    expect(one.page.locator("#traces-right .sv-tok").first).to_be_attached()
    one.page.get_by_role("button", name="End comparison").click()
    expect(one.page.locator("#traces-right")).to_have_count(0)


def delete_own(one: Visit) -> None:
    tab(one, "Traces")
    own = one.page.locator(".traces-list").first.locator(".traces-row")
    own.first.get_by_role("button", name="Delete").click()
    expect(own).to_have_count(0)


def set_up_sweep(one: Visit) -> None:
    """The cheapest sweep there is, on prompts of a file."""
    tab(one, "Sweep")
    boxes = one.page.locator("#sweep-drafters label")
    for i in range(boxes.count()):
        wanted = boxes.nth(i).inner_text().strip() == "prompt lookup"
        boxes.nth(i).locator("input").set_checked(wanted)
    for name, value in {"gammas": "2", "limit": "0", "tokens": "2"}.items():
        one._fill(one.page.locator(f"#sweep-{name} input, #sweep-{name} textarea").first, value)
    one.page.locator("#sweep-source label", has_text="file").click()


def sweep_kinds(one: Visit, kinds: list[str], name: str = "prompts.jsonl") -> None:
    """Measure a file of prompts whose texts and kinds are these."""
    tab(one, "Sweep")
    lines = "".join(json.dumps({"prompt": f"{kind} a", "kind": kind}) + "\n" for kind in kinds)
    remove = one.page.locator("#sweep-prompt-file button[aria-label=Clear]")
    if remove.count():
        remove.first.click()
    with one.page.expect_file_chooser() as asked:
        one.page.locator("#sweep-prompt-file button").first.click()
    asked.value.set_files({"name": name, "mimeType": "text/plain", "buffer": lines.encode()})
    expect(one.page.locator("#sweep-prompt-file button[aria-label=Clear]")).to_be_visible()
    one.page.locator("button#sweep-run").click()
    expect(one.page.locator(".sv-sweep-status")).to_contain_text(
        f"Done: {len(kinds)} of {len(kinds)} runs.", timeout=60_000
    )


def type_model(one: Visit, name: str) -> None:
    """Ask for a model of this name, which is refused."""
    tab(one, "Explore")
    one.page.locator("#prompt textarea").fill(PLAIN)
    one.page.locator("#pair select").select_option("other")
    one.page.locator("#target input, #target textarea").fill(name)
    one.button("run").click()
    one.status(f"{name!r} cannot be used")
    one.page.locator("#pair select").select_option("tiny")


# --- the paths -----------------------------------------------------------------------------


def test_a_prompt(street):
    run(street, ALL[:8_000].replace("\0", ""))
    assert "__pwned" in street.model("model.start.prompt")
    explain(street)
    for text in TEXTS[:6]:
        run(street, text)


@pytest.mark.parametrize("turn", range(3))
def test_the_tokens_of_a_run(street, turn):
    others = TEXTS[turn::3]
    open_on_explore(street, PLAIN, others)
    explain(street)
    shown = street.page.locator("#stage .sv-lane[data-lane=speculative] .sv-text")
    expect(shown).to_contain_text("pwned")
    expect(street.page.locator("#stage .sv-inspector")).not_to_be_empty()


def test_every_name_and_note_of_a_run(street):
    for text in GROUPS:
        open_on_explore(street, text, [PLAIN])
    expect(street.page.locator("#diagnosis .sv-diagnosis")).to_be_visible()
    tab(street, "Theory")


def test_a_very_long_text(street):
    open_on_explore(street, LONG[:5_000], [LONG, *[PLAIN] * 4])
    explain(street)
    run(street, LONG[:3_000])


def test_traces_that_are_listed_compared_and_taken_along(street):
    for text in GROUPS[::4]:
        delete_own(street)
        open_on_traces(street, text, TEXTS)
        compare(street)
    explain(street, "#traces-left")
    for kind in ("Trace", "HTML", "SVG", "PNG", "CSV"):
        with street.page.expect_download() as download:
            street.page.locator(".traces-card").get_by_role("button", name=kind, exact=True).click()
        assert download.value.suggested_filename.isascii()


def test_names_of_files(street):
    tab(street, "Traces")
    names = [text.replace("/", "\u2215").replace("\0", "")[:120] for text in TEXTS[::3]]
    for name in names:
        street.page.set_input_files(
            "#trace-drop input[type=file]",
            {"name": f"{name}.json", "mimeType": "application/json", "buffer": b"{}"},
        )
        expect(street.page.locator(".traces-message")).to_contain_text("cannot be opened")
    for name in names[::4]:
        sweep_kinds(street, [PLAIN], f"{name}.jsonl")


def test_kinds_and_texts_of_prompts(street):
    sweep_kinds(street, [text for text in TEXTS if len(text) <= 80])
    expect(street.page.locator(".sv-sweep-figures")).to_contain_text("window.__pwned")


def test_names_of_models_and_messages_about_them(street):
    names = [" ".join(text.split())[:80] for text in TEXTS]
    for name in [name for name in names if "pwned" in name and name.isprintable()][::4]:
        type_model(street, name)


def test_messages_about_files(street):
    tab(street, "Explore")
    for text in TEXTS[::3]:
        broken = json.loads(dump_trace(hostile_trace(PLAIN, tokens=4)))
        broken["runs"][0]["lane"] = text
        broken[text] = text
        street.open_trace(json.dumps(broken))
        street.status("This trace cannot be opened")


# --- paths that begin elsewhere ------------------------------------------------------------


@pytest.mark.parametrize("turn", range(2))
def test_the_query_of_a_link_that_is_followed(browser, town, turn):
    joined = "\n".join(TEXTS[turn::2])[:2_500]
    one, guard = guarded(browser, town, "/?" + urlencode({"prompt": joined, "x": joined}))
    one.ready()
    expect(one.page.locator("#prompt textarea")).to_have_value(re.compile("__pwned"))
    guard.check()
    one.page.context.close()


@pytest.mark.parametrize(
    "field, name",
    [("pair", "image"), ("drafter", "entities"), ("seed", "svg"), ("dtype", "markdown image")],
)
def test_the_query_of_a_link_that_is_refused_in_a_message(browser, town, field, name):
    text = next(entry["text"] for entry in CORPUS if entry["name"] == name)
    one, guard = guarded(browser, town, "/?" + urlencode({field: text}))
    one.ready()
    message = one.page.get_by_text("The link was not followed")
    expect(message).to_contain_text(text[:40])
    guard.check()
    one.page.context.close()


@pytest.fixture
def disk(browser, tmp_path) -> Iterator[Any]:
    """Opens a file from the disk, with a guard on it."""
    opened = []

    def open_file(name: str, text: str) -> tuple[Any, Guard]:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        page = browser.new_context().new_page()
        opened.append((page, Guard(page)))
        page.goto(path.as_uri())
        return opened[-1]

    yield open_file
    for page, _ in opened:
        page.context.close()


def test_the_guard_sees_what_the_texts_do_as_markup(disk):
    page, guard = disk("bad.html", "<!doctype html>" + TEXTS[0] + TEXTS[1])
    page.wait_for_load_state("networkidle")
    with pytest.raises(AssertionError, match=r"(?s)ran.*requests.*elements"):
        guard.check()


@pytest.mark.parametrize("group", GROUPS[::4])
def test_an_exported_page_opened_from_the_disk(disk, group):
    page, guard = disk("run.html", html_page(hostile_trace(group, TEXTS)))
    expect(page.locator(".sv-tok").first).to_be_attached()
    guard.settled()
    page.get_by_role("button", name="To the end").click()
    page.evaluate(EVERY_TOKEN, "body")
    guard.check()
    assert "<" not in page.title()


def test_a_picture_opened_from_the_disk(disk):
    for group in GROUPS[::4]:
        page, guard = disk("run.svg", svg_picture(hostile_trace(group, TEXTS)))
        assert page.evaluate("document.documentElement.tagName") == "svg"
        names = page.evaluate(
            "[...new Set([...document.querySelectorAll('*')].map(e => e.tagName))]"
        )
        assert set(names) <= {"svg", "title", "rect", "text", "path"}
        guard.check()
