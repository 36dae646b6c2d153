"""What a visitor has is there again when their page is loaded anew, and is nobody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from test_analysis import STATUS, fill, only, rows, sweep
from tiny import TinyShelf
from visit import PAIRS, Site, Visit, serve
from wire import Wire, far_away

from specviz.gallery import exhibits
from specviz.ui import build

KEPT = ".traces-list:first-of-type .traces-row"
MOUNTED = {"Sweep": "#sweep-results", "Traces": "#traces-list", "Lossless": "#law"}
PASS = "sessionStorage.getItem('specviz.pass')"


@pytest.fixture(scope="module")
def house(first: Path) -> Iterator[Site]:
    shelf = TinyShelf()
    page = build(shelf, pairs=PAIRS, first=first)
    yield Site(serve(page), shelf)
    page.close(verbose=False)


@pytest.fixture
def wired(browser: Any, house: Site) -> Iterator[tuple[Visit, Wire]]:
    with far_away(browser, house) as both:
        yield both


def show(one: Visit, tab: str) -> Visit:
    """Open a tab and wait until its own script has mounted."""
    one.page.get_by_role("tab", name=tab).click()
    elem = MOUNTED[tab]
    expect(one.page.locator(f"{elem} [data-mounted], {elem}[data-mounted]").first).to_be_attached()
    return one


def has_pass(one: Visit) -> str:
    """The page's pass, once it has one."""
    one.page.wait_for_function(PASS)
    return one.page.evaluate(PASS)


def begin_sweep(one: Visit, limit: int, tokens: int) -> None:
    """Start a sweep and wait for its first result."""
    show(one, "Sweep")
    fill(one, gammas="2", limit=limit, tokens=tokens)
    only(one, "draft model")
    one.page.locator("button#sweep-run").click()
    expect(one.page.locator(".sv-sweep-table tbody tr").first).to_be_visible(timeout=60_000)


def loaded_anew(one: Visit, wire: Wire) -> None:
    """The connection breaks while something is asked; once it is back, Gradio loads the page anew
    by itself."""
    one.page.evaluate("window.before = true")
    wire.cut()
    one.page.wait_for_timeout(1500)
    wire.mend()
    one.page.wait_for_function("!window.before", timeout=60_000)
    one.ready()


def keep_a_run(one: Visit) -> None:
    """Run something short on Explore and keep it."""
    one.settings(max_new_tokens=12).finish()
    show(one, "Traces").page.locator("button#keep").click()
    expect(one.page.locator(".traces-row")).to_have_count(len(exhibits()) + 1)


# --- sweeps ----------------------------------------------------------------------------------


def test_a_sweep_goes_on_over_a_broken_connection_and_its_file_is_whole(wired):
    one, wire = wired
    begin_sweep(one, limit=7, tokens=120)
    loaded_anew(one, wire)
    show(one, "Sweep")
    expect(one.page.locator(STATUS)).to_contain_text("Done: 7 of 7 runs.", timeout=90_000)
    assert rows(one)
    expect(one.page.locator("button#sweep-run")).to_be_enabled()
    with one.page.expect_download() as download:
        one.page.locator("button#sweep-json").click()
    bench = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert bench["complete"] is True


def test_a_finished_sweep_is_shown_again_however_often_the_page_is_loaded_anew(wired):
    one, _ = wired
    show(one, "Sweep")
    fill(one, gammas="2", limit=2, tokens=8)
    only(one, "draft model")
    sweep(one, "Done: 2 of 2 runs.")
    before = rows(one)
    one.page.reload()
    one.page.reload()
    show(one.ready(), "Sweep")
    expect(one.page.locator(STATUS)).to_contain_text("Done: 2 of 2 runs.")
    assert rows(one) == before


def test_a_sweep_can_be_stopped_from_the_page_that_was_loaded_anew(wired):
    one, _ = wired
    begin_sweep(one, limit=14, tokens=300)
    one.page.reload()
    show(one.ready(), "Sweep")
    stop = one.page.locator("button#sweep-stop")
    expect(stop).to_be_enabled()
    stop.click()
    expect(one.page.locator(STATUS)).to_contain_text("Stopped after", timeout=60_000)
    expect(one.page.locator("button#sweep-run")).to_be_enabled()


# --- kept runs -------------------------------------------------------------------------------


def test_kept_runs_are_listed_again_and_nobody_else_gets_them(wired, visit, house: Site):
    one, wire = wired
    keep_a_run(one)
    wire.cut()  # while nothing is asked: Gradio does not notice
    wire.mend()
    one.page.locator(".traces-row").last.locator("button").first.click()
    expect(one.page.locator(".traces-row").last).to_have_attribute("data-shown", "true")
    one.page.locator(KEPT).locator("button").first.click()
    expect(one.page.locator(KEPT)).to_have_attribute("data-shown", "true")
    one.page.reload()
    show(one.ready(), "Traces")
    expect(one.page.locator(".traces-row")).to_have_count(len(exhibits()) + 1)
    one.page.locator(KEPT).locator("button").first.click()
    expect(one.page.locator(KEPT)).to_have_attribute("data-shown", "true")
    other = show(visit(at=house).ready(), "Traces")
    expect(other.page.locator(".traces-row")).to_have_count(len(exhibits()))


# --- proofs ----------------------------------------------------------------------------------


def test_a_proof_goes_on_over_a_broken_connection_and_finished_ones_stay(wired, house: Site):
    one, wire = wired
    page = show(one, "Lossless").page
    page.get_by_label("wrong: argmax draft").check()
    page.locator("button#prove-exact").click()
    exact = page.locator("#proof-exact .proof-status")
    expect(exact).to_contain_text("Broken in", timeout=120_000)
    said = exact.inner_text()
    one._fill(page.locator("#samples input[type=number]"), "20")
    house.shelf.gate.clear()
    page.locator("button#prove-sampled").click()
    expect(page.locator("#proof-sampled .proof-status")).to_contain_text("Reading the weights")
    loaded_anew(one, wire)
    show(one, "Lossless")
    expect(exact).to_have_text(said)
    expect(page.get_by_label("wrong: argmax draft")).to_be_checked()
    expect(page.locator("#proof-sampled .proof-status")).to_contain_text("Reading the weights")
    house.shelf.gate.set()
    facts = page.locator("#proof-sampled .proof-facts")
    expect(facts).to_contain_text("20 continuations in each arm", timeout=120_000)


def test_what_was_proved_of_another_way_of_verifying_does_not_come_back(wired):
    one, _ = wired
    page = show(one, "Lossless").page
    page.locator("button#prove-exact").click()
    status = page.locator("#proof-exact .proof-status")
    expect(status).to_have_attribute("data-kind", "holds", timeout=120_000)
    page.get_by_label("wrong: argmax draft").check()
    expect(status).to_be_hidden()
    page.reload()
    keep_a_run(one.ready())  # by then the page has taken over
    show(one, "Lossless")
    expect(status).to_be_hidden()
    expect(page.get_by_label("right", exact=True)).to_be_checked()


# --- whose it is -----------------------------------------------------------------------------


def test_a_page_that_was_opened_and_not_loaded_anew_gets_nothing(wired):
    one, _ = wired
    keep_a_run(one)
    before = has_pass(one)
    one.page.goto(one.site.url)
    show(one.ready(), "Traces")
    assert has_pass(one) != before
    expect(one.page.locator(".traces-row")).to_have_count(len(exhibits()))


def test_a_tab_with_the_memory_of_another_takes_nothing_from_it(wired):
    one, _ = wired
    keep_a_run(one)
    own = has_pass(one)
    twin = Visit(one.page.context.new_page(), one.site)
    twin.go("/")
    has_pass(twin.ready())
    twin.page.evaluate(f"sessionStorage.setItem('specviz.pass', '{own}')")
    twin.page.reload()
    show(twin.ready(), "Traces")
    twin.page.wait_for_function(f"{PASS} !== '{own}'")
    expect(twin.page.locator(".traces-row")).to_have_count(len(exhibits()))
    one.page.locator(KEPT).locator("button").first.click()
    expect(one.page.locator(KEPT)).to_have_attribute("data-shown", "true")
    one.page.reload()
    show(one.ready(), "Traces")
    expect(one.page.locator(".traces-row")).to_have_count(len(exhibits()) + 1)


def test_a_page_holds_its_pass_and_shows_it_nowhere(visit, house: Site):
    one, other = visit(at=house).ready(), visit(at=house).ready()
    passes = [has_pass(one), has_pass(other)]
    assert min(map(len, passes)) >= 20
    assert passes[0] != passes[1]
    assert passes[0] not in one.page.content() + other.page.content()
