"""What Gradio keeps of a session does not outlive its page for long."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path

import gradio as gr
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from tiny import TinyShelf
from visit import PAIRS, serve

from specviz.ui import build, forgetting
from specviz.ui.forgetting import MOST_SESSIONS, forget_closed
from specviz.ui.visitors import BACK_SECONDS


def after(seconds: float) -> datetime.datetime:
    return datetime.datetime.now() + datetime.timedelta(seconds=seconds)


def test_a_closed_page_is_forgotten_once_its_visitor_can_come_back_no_more():
    with gr.Blocks() as page:
        gr.HTML("a")
    sessions = gr.routes.App.create_app(page).state_holder
    for session in ("open", "closed", "just closed"):
        assert sessions[session] is not None
    for session in ("closed", "just closed"):
        sessions[session].is_closed = True
    sessions.time_last_used["just closed"] = after(60)
    forget_closed(sessions, after(BACK_SECONDS - 5))
    assert set(sessions.session_data) == {"open", "closed", "just closed"}
    forget_closed(sessions, after(BACK_SECONDS + 5))
    assert set(sessions.session_data) == {"open", "just closed"}
    assert set(sessions.time_last_used) == {"open", "just closed"}


def until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.1)


def test_a_page_that_opens_clears_away_those_that_are_gone(browser, monkeypatch, first: Path):
    monkeypatch.setattr(forgetting, "BACK_SECONDS", 1.0)
    page = build(TinyShelf(), pairs=PAIRS, first=first)
    url = serve(page)
    sessions = page.state_holder
    assert sessions.capacity == MOST_SESSIONS
    tab = browser.new_page()
    tab.goto(url)
    until(lambda: len(sessions.session_data) == 1)
    (before,) = sessions.session_data
    tab.close()
    until(lambda: sessions.session_data[before].is_closed)
    time.sleep(2)
    tab = browser.new_page()
    tab.goto(url)
    until(lambda: before not in sessions.session_data)
    until(lambda: len(sessions.session_data) == 1)
    tab.close()
    page.close(verbose=False)
