"""What the page says of its models before and after it knows which can run."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from tiny import TinyShelf
from visit import PAIRS, Site, serve

from specviz.host import Host
from specviz.ui.live import live_page
from specviz.ui.loading import Loading

HOPEFUL = [(replace(choice, why=""), target, draft) for choice, target, draft in PAIRS]


class AskedShelf(TinyShelf):
    """Remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []

    def load(self, target: str, draft: str, *more: Any, **how: Any) -> Any:
        self.asked.append((target, draft))
        return super().load(target, draft, *more, **how)


class Scales:
    """Weighs the pairs once it is let go: the first cannot run, the others need 1 GB."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def weigh(self, rows: Any) -> list[Any]:
        self.let_go.wait(30)
        first, *others = rows
        needs = [(replace(c, title=f"{c.title}, 1 GB"), *models) for c, *models in others]
        return [(replace(first[0], why="needs 9 GB of memory"), *first[1:]), *needs]


@pytest.fixture
def weighing():
    scales, shelf = Scales(), AskedShelf()
    pairs = [HOPEFUL[2], HOPEFUL[0]]
    page = live_page(shelf, pairs, scales.weigh, None, 4, Host())
    yield Site(serve(page), shelf), scales
    page.close(verbose=False)


def titles(one: Any) -> list[str]:
    return one.page.locator("#pair option").all_inner_texts()[:2]


def test_pairs_are_listed_at_once_and_say_later_what_they_need(visit, weighing):
    site, scales = weighing
    one = visit(at=site)
    expect(one.page.locator("#pair option").first).to_have_text("Huge pair")
    assert titles(one) == ["Huge pair", "Tiny pair"]
    assert one.page.locator("#pair select").input_value() == "huge"
    scales.let_go.set()
    one.ready()
    expect(one.page.locator("#pair option").first).to_have_text("Huge pair (needs 9 GB of memory)")
    assert titles(one)[1] == "Tiny pair, 1 GB"
    assert one.page.locator("#pair option").first.is_disabled()
    assert one.page.locator("#pair select").input_value() == "tiny"
    assert site.shelf.asked[0] == ("tiny target", "tiny draft")


def test_a_sweep_offers_the_targets_that_can_run(visit, weighing):
    site, scales = weighing
    scales.let_go.set()
    one = visit(at=site).ready()
    one.page.get_by_role("tab", name="Sweep").click()
    target = one.page.locator("#sweep-target input")
    expect(target).to_have_value("Tiny pair")
    target.click()
    expect(one.page.get_by_role("option")).to_have_count(1)


def test_models_are_loaded_for_programs_too_when_nobody_looks(monkeypatch):
    monkeypatch.setattr("specviz.ui.loading.FIRST_VISIT_SECONDS", 0.01)
    shelf = AskedShelf()
    loading = Loading(shelf, PAIRS)
    assert loading.state == "waiting"
    loading.begin_soon()
    patience = time.monotonic() + 30
    while loading.state in ("waiting", "loading") and time.monotonic() < patience:
        time.sleep(0.01)
    assert loading.state == "ready"
    assert shelf.asked == [("tiny target", "tiny draft")]
