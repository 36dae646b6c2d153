"""A served page and a real browser for the tests of this folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

import pytest
from tiny import TinyShelf, trace
from visit import FLAGS, PAIRS, Site, Visit, serve

from specviz.trace import dump_trace
from specviz.ui import build

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "weights: needs the weights of the embedded pair")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded trace for the first paint."""
    path = tmp_path_factory.mktemp("traces") / "first.json"
    path.write_text(dump_trace(trace()), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def site(first: Path) -> Iterator[Site]:
    shelf = TinyShelf()
    page = build(shelf, pairs=PAIRS, first=first)
    yield Site(serve(page), shelf)
    page.close(verbose=False)


@pytest.fixture
def visit(browser: Any, site: Site) -> Iterator[Callable[..., Visit]]:
    """Opens tabs, each a visitor of its own. At the end no tab may have spoken to another host
    or written an error to the console."""
    visits: list[Visit] = []

    def open_tab(path: str = "/", at: Site = site, **options: Any) -> Visit:
        options.setdefault("viewport", {"width": 1440, "height": 900})
        one = Visit(browser.new_context(**options).new_page(), at)
        visits.append(one)
        one.go(path)
        return one

    yield open_tab
    for one in visits:
        one.page.context.close()
    assert [trouble for one in visits for trouble in one.trouble] == []
