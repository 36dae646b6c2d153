"""The Traces tab, links, and an exported page, in a real browser."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from gradio.utils import get_upload_folder
from playwright.sync_api import expect
from tiny import trace
from visit import MODEL

from specviz.diagnosis import diagnose
from specviz.export.page import html_page
from specviz.gallery import exhibits
from specviz.trace import dump_trace, load_trace


@pytest.fixture
def tab(visit):
    one = visit().ready()
    open_tab(one)
    return one


def open_tab(one):
    one.page.get_by_role("tab", name="Traces").click()
    expect(one.page.locator("#traces-left .sv-tok").first).to_be_attached()


def drop(one, data, name="trace.json"):
    body = data.encode() if isinstance(data, str) else data
    payload = {"name": name, "mimeType": "application/json", "buffer": body}
    one.page.set_input_files("#trace-drop input[type=file]", payload)


def test_the_gallery_opens_without_a_model_and_says_what_to_look_at(tab):
    rows = tab.page.locator(".traces-row")
    assert rows.count() == len(exhibits())
    expect(rows.nth(3)).to_contain_text(exhibits()[3].look)
    rows.nth(3).locator(".traces-open").click()
    expect(rows.nth(3)).to_have_attribute("data-shown", "true")
    expect(tab.page.locator("#traces-left [data-f=rejected]").first).to_be_attached()


def test_a_file_is_opened_compared_and_deleted(tab):
    page = tab.page
    drop(tab, dump_trace(trace(tokens=12)))
    own = page.locator(".traces-list").first.locator(".traces-row")
    expect(own).to_have_count(1)
    expect(own).to_contain_text("A lighthouse stood on a rock.")
    page.locator(".traces-row").nth(2).get_by_role("button", name="Compare").click()
    expect(page.locator("#traces-right .sv-tok").first).to_be_attached()
    expect(page.locator(".traces-card").first).to_contain_text("The two prompts differ.")
    page.get_by_role("button", name="End comparison").click()
    expect(page.locator("#traces-right")).to_have_count(0)
    own.get_by_role("button", name="Delete").click()
    expect(own).to_have_count(0)


def test_each_trace_that_is_shown_is_diagnosed(tab):
    page = tab.page
    first, second = (load_trace(exhibits()[i].path.read_bytes()) for i in (0, 2))
    left = page.locator("#traces-diagnosis-left .sv-diagnosis")
    expect(left).to_contain_text(diagnose(first).headline)
    page.locator(".traces-row").nth(2).get_by_role("button", name="Compare").click()
    right = page.locator("#traces-diagnosis-right .sv-diagnosis")
    expect(right).to_contain_text(diagnose(second).headline)
    expect(left).to_contain_text(diagnose(first).headline)
    expect(page.locator("#traces-diagnosis-left-follow")).to_be_hidden()  # another pair's models


def test_the_advice_for_a_trace_is_measured_on_explore(tab):
    page = tab.page
    opened = load_trace(dump_trace(trace(tokens=40, gamma=15)))
    advice = diagnose(opened).advice
    drop(tab, dump_trace(opened))
    headline = diagnose(opened).headline
    expect(page.locator("#traces-diagnosis-left .sv-diagnosis")).to_contain_text(headline)
    button = page.locator("#traces-diagnosis-left-follow")
    if advice is None or advice.setup is None:
        expect(button).to_be_hidden()
        return
    button.click()
    expect(page.locator("#diagnosis .sv-diagnosis")).to_contain_text(
        f"The advice was gamma {advice.setup.gamma}.", timeout=60_000
    )
    assert tab.model("model.start.prompt") == opened.prompt


def test_a_broken_file_is_refused_naming_the_place(tab):
    drop(tab, '{"specviz_trace": 1, "pair": 5}')
    message = tab.page.locator(".traces-message")
    expect(message).to_contain_text("This trace cannot be opened: trace: the key")


def test_a_stopped_run_is_kept_and_one_visitor_sees_nothing_of_another(visit):
    one = visit().ready().settings(max_new_tokens=8000)
    one.run()
    one.button("stop").click()
    one.phase("stopped")
    open_tab(one)
    one.page.locator("button#keep").click()
    own = one.page.locator(".traces-list").first.locator(".traces-row")
    expect(own).to_have_count(1)
    other = visit().ready()
    open_tab(other)
    expect(other.page.locator(".traces-row")).to_have_count(len(exhibits()))


def test_a_run_that_failed_is_kept_and_replays_as_far_as_it_came(visit):
    one = visit().ready().settings(max_new_tokens=8000)
    one.run()
    one.page.wait_for_function(f"{MODEL}.lanes.speculative?.rounds.length >= 3")
    with failing(one.site.shelf.pair.target.module):
        one.phase("failed")
    with one.page.expect_download() as download:
        one.button("save").click()
    saved = load_trace(Path(download.value.path()).read_bytes())
    assert saved.run("speculative").finish_reason == "error"
    assert len(saved.run("speculative").rounds) >= 3
    open_tab(one)
    one.page.locator("button#keep").click()
    own = one.page.locator(".traces-list").first.locator(".traces-row")
    expect(own).to_have_attribute("data-shown", "true")
    stage = one.page.locator("#traces-left")
    expect(stage.locator(".sv-stage")).to_have_attribute("data-phase", "failed")
    expect(stage.locator(".sv-strip-text")).to_contain_text("This run failed after")
    expect(stage.locator("[data-lane=speculative] .sv-tok").first).to_be_visible()


@contextmanager
def failing(module):
    """Every call of a model is an error."""

    def fail(*_):
        raise RuntimeError("the memory is full")

    hook = module.register_forward_pre_hook(fail)
    try:
        yield
    finally:
        hook.remove()


def test_keeping_says_why_there_is_nothing_to_keep(tab):
    tab.page.locator("button#keep").click()
    expect(tab.page.locator(".traces-message")).to_have_text("Nothing has been run here yet.")


@pytest.mark.parametrize("name", ["Trace", "HTML", "SVG", "PNG", "CSV"])
def test_a_trace_is_taken_along(tab, tmp_path, name):
    with tab.page.expect_download() as download:
        tab.page.locator(".traces-card").get_by_role("button", name=name, exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    data = path.read_bytes()
    assert path.suffix == {"Trace": ".json"}.get(name, f".{name.lower()}")
    if name == "Trace":
        assert load_trace(data) == load_trace(exhibits()[0].path.read_bytes())
    if name == "PNG":
        assert data.startswith(b"\x89PNG")


def test_saved_files_are_deleted_when_the_tab_closes(visit):
    staying, leaving = visit().ready(), visit().ready()
    for one, words in ((staying, "stays here"), (leaving, "goes away")):
        open_tab(one)
        drop(one, dump_trace(trace(f"This one {words}.", tokens=4)))
        expect(one.page.locator(".traces-card h4")).to_contain_text(words)
        for kind in ("Trace", "HTML"):
            with one.page.expect_download():
                one.page.locator(".traces-card").get_by_role(
                    "button", name=kind, exact=True
                ).click()
    assert len(served("goes-away")) == 2
    leaving.page.close()
    for _ in range(200):
        if not served("goes-away"):
            break
        staying.page.wait_for_timeout(50)
    assert served("goes-away") == []
    assert len(served("stays-here")) == 2


def served(words):
    """The files on this machine that a visitor saved of a run whose prompt ends in ``words``."""
    return sorted(Path(get_upload_folder()).rglob(f"specviz-*-{words}.*"))


def test_a_link_brings_prompt_and_settings_back(visit):
    one = visit().ready().settings(seed=41)
    one.page.get_by_label("Prompt", exact=True).fill("Tell me of the sea & <b>fog</b>.")
    one.page.get_by_label("prompt lookup").check()
    one.button("link").click()
    one.page.wait_for_function("location.search.includes('seed=41')")
    query = one.page.evaluate("location.search")
    two = visit("/" + query).ready().settings()
    expect(two.page.get_by_label("Prompt", exact=True)).to_have_value(
        "Tell me of the sea & <b>fog</b>."
    )
    expect(two.page.locator("#seed input")).to_have_value("41")
    expect(two.page.get_by_label("prompt lookup")).to_be_checked()


def test_a_link_that_cannot_be_used_says_so(visit):
    one = visit("/?gamma=999").ready()
    expect(one.page.get_by_text("The link was not followed")).to_be_visible()


@pytest.mark.parametrize("exhibit", [exhibits()[3], exhibits()[5]], ids=lambda e: e.file)
def test_an_exported_page_replays_from_disk_without_a_single_request(browser, tmp_path, exhibit):
    path = Path(tmp_path, "run.html")
    recorded = load_trace(exhibit.path.read_bytes())
    path.write_text(html_page(recorded), encoding="utf-8")
    context = browser.new_context(reduced_motion="reduce", offline=True)
    page = context.new_page()
    asked, faults = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda m: m.type == "error" and faults.append(m.text))
    page.goto(path.as_uri())
    lane = page.locator(".sv-lane[data-lane=speculative]")
    expect(lane.locator(".sv-tok").first).to_be_visible()
    lane.locator("[data-f=accepted]").first.dispatch_event("click")
    expect(page.locator(".sv-inspector .sv-badge")).to_have_text("accepted")
    expect(page.locator(".sv-plot svg").first).to_be_attached()
    assert asked == [path.as_uri()]
    assert faults == []
    context.close()
