"""Fixtures for the tests of the stage, on top of the shared browser of conftest.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stage_harness
from stage_page import StagePage

Open = Callable[..., StagePage]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The harness, being served."""
    with stage_harness.serving() as base:
        yield base


@pytest.fixture
def open_stage(browser: Any, address: str) -> Iterator[Open]:
    """Opens pages of the harness. At the end nothing was logged as an error or a warning, and
    no other host was asked for anything."""
    opened: list[StagePage] = []

    def open_(
        query: str = "", *, width: int = 1440, height: int = 900, **options: Any
    ) -> StagePage:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        stage = StagePage(context.new_page())
        opened.append(stage)
        stage.page.on("console", lambda m: log(stage, m))
        stage.page.on("pageerror", lambda error: stage.faults.append(str(error)))
        stage.page.on("request", lambda request: ask(stage, request.url, address))
        stage.page.goto(f"{address}/?{query}")
        stage.until("window.stage && window.probe")
        return stage

    yield open_
    for stage in opened:
        stage.page.context.close()
    assert [fault for stage in opened for fault in stage.faults] == []


def log(stage: StagePage, message: Any) -> None:
    if message.type in ("error", "warning"):
        stage.faults.append(message.text)


def ask(stage: StagePage, url: str, address: str) -> None:
    if not url.startswith((address, "data:", "blob:")):
        stage.faults.append(f"request to another host: {url}")
