"""The page. ``build()`` returns it; ``launch_options()`` says how to launch it.

Nothing here imports torch: a host that shows recorded runs only does not need it installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from specviz.host import OWN_MACHINE, Host
from specviz.ui.elements import ASSETS, Choice
from specviz.ui.forgetting import forget_the_gone
from specviz.ui.idle import calm_queue
from specviz.ui.loading import Shelf
from specviz.ui.routes import fetch_nothing
from specviz.ui.skipping import skip_wholly
from specviz.ui.theme import launch_options

__all__ = ["build", "launch_options"]

FIRST = ASSETS / "traces" / "first.json"


def build(
    shelf: Shelf | None = None,
    *,
    pairs: Sequence[tuple[Choice, str, str]] | None = None,
    first: Path | None = FIRST,
    gamma: int = 4,
    host: Host = OWN_MACHINE,
) -> gr.Blocks:
    """The whole page, as ``host`` allows it. Loads the first pair that can run, in the background,
    once somebody sees the page, unless recorded runs are all that is shown.

    ``shelf`` gives loaded models and ``pairs`` what may be chosen, as (choice, target, draft);
    both default to specviz's own. ``first`` is the trace on the stage at first paint.
    """
    fetch_nothing()
    skip_wholly()
    if host.gallery:
        from specviz.ui.recorded import recorded_page

        page = recorded_page(first)
    else:
        from specviz.ui.live import live_page, own_models, weighed

        weigh = list if pairs else weighed
        if shelf is None or pairs is None:
            own_shelf, own_pairs, gamma = own_models(host)
            shelf, pairs = shelf or own_shelf, pairs or own_pairs
        page = live_page(shelf, pairs, weigh, first, gamma, host)
    calm_queue(page)
    forget_the_gone(page)
    return page
