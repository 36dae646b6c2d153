"""A page that waits should cost nothing: every wake-up of the server takes Python's lock from the
thread that decodes."""

from __future__ import annotations

import gradio as gr

LOOK_SECONDS = 0.02
PROGRESS_SECONDS = 0.2


def calm_queue(page: gr.Blocks) -> None:
    """Let Gradio's queue look for new work fifty times a second. By itself it looks a thousand
    times, and a hundred times for progress to report: together about 5 % of a core."""
    page.queue()
    page._queue.sleep_when_free = LOOK_SECONDS
    page._queue.progress_update_sleep_when_free = PROGRESS_SECONDS
