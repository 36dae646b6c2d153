"""Gradio keeps what it knows of a session, about 0.6 MB, long after its page was closed."""

from __future__ import annotations

import datetime

import gradio as gr
from gradio.state_holder import StateHolder

from specviz.ui.elements import HIDDEN
from specviz.ui.visitors import BACK_SECONDS

MOST_SESSIONS = 1_000
"""Kept at a time; beyond that the one that was idle the longest goes."""


def forget_the_gone(page: gr.Blocks) -> None:
    """Whenever a page opens, drop what is kept of those that were closed a while ago."""
    with page:
        page.load(lambda: forget_closed(page.state_holder, datetime.datetime.now()), **HIDDEN)


def forget_closed(sessions: StateHolder, now: datetime.datetime) -> None:
    """Drop the sessions whose pages are closed and of whom nothing was heard for BACK_SECONDS."""
    for session, state in list(sessions.session_data.items()):
        heard = sessions.time_last_used.get(session, now)
        if state.is_closed and (now - heard).total_seconds() > BACK_SECONDS:
            with sessions.lock:
                sessions.session_data.pop(session, None)
                sessions.time_last_used.pop(session, None)
