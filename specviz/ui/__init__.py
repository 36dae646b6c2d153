"""The page. ``build()`` returns it; ``launch_options()`` says how to launch it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from specviz import drafters
from specviz.race import replay_events
from specviz.trace import load_trace
from specviz.ui import about, api, links, theory
from specviz.ui.controls import OTHER
from specviz.ui.elements import ASSETS, Choice
from specviz.ui.explore import Explore, lines
from specviz.ui.idle import calm_queue
from specviz.ui.loading import Shelf
from specviz.ui.lossless import Lossless
from specviz.ui.session import Races
from specviz.ui.sweep import SweepTab
from specviz.ui.theme import TOGGLE_JS, launch_options, serve_assets
from specviz.ui.traces import Traces
from specviz.ui.worker import Turns

__all__ = ["build", "launch_options"]

FIRST = ASSETS / "traces" / "first.json"
OTHERS = (Choice(OTHER, "Other models: any Hub id or folder"), "", "")


def build(
    shelf: Shelf | None = None,
    *,
    pairs: Sequence[tuple[Choice, str, str]] | None = None,
    first: Path | None = FIRST,
    gamma: int = 4,
) -> gr.Blocks:
    """The whole page. Begins to load the first pair that can run, in the background.

    ``shelf`` gives loaded models and ``pairs`` what may be chosen, as (choice, target, draft);
    both default to specviz's own. ``first`` is the trace on the stage at first paint.
    """
    if shelf is None or pairs is None:
        own_shelf, own_pairs, gamma = _own()
        shelf, pairs = shelf or own_shelf, pairs or own_pairs
    serve_assets()
    races, turns = Races(), Turns()
    tab = Explore(shelf, [*pairs, OTHERS], races, turns)
    sweep = SweepTab(shelf, pairs, turns)
    shown = ""
    if first is not None and first.exists():
        trace = load_trace(first.read_bytes())
        shown = lines(replay_events(trace))
        tab.diagnosis.begin_with(trace)
    choices = [choice for choice, _, _ in (*pairs, OTHERS)]
    with gr.Blocks(
        title="specviz", analytics_enabled=False, delete_cache=(600, 3600), fill_width=True
    ) as page:
        _title()
        with gr.Tabs(elem_id="tabs"):
            with gr.Tab("Explore", id="explore"):
                tab.draw(choices, _drafters(), gamma, shown)
            with gr.Tab("Sweep", id="sweep"):
                sweep.draw()
            with gr.Tab("Theory", id="theory"):
                point = theory.draw(tab.diagnosis.point)
            lossless = Lossless(shelf, tab.pairs, turns, tab.controls)
            with gr.Tab("Lossless", id="lossless-tab"):
                lossless.draw()
            traces = Traces(races, tab.controls, tab.pairs)
            with gr.Tab("Traces", id="traces-tab"):
                traces.draw()
            with gr.Tab("About", id="about"):
                about.draw()
        tab.wire(page)
        lossless.wire(page)
        traces.wire(page)
        links.wire(page, tab.controls, tab.link, tab.pairs, list(_drafters()))
        tab.diagnosis.wire(tab.rests, tab.open, tab.controls, point)
        sweep.wire(page)
        api.expose(shelf, pairs, turns)
    calm_queue(page)
    tab.loading.begin()
    return page


def _title() -> None:
    with gr.Row(elem_id="title"):
        gr.HTML(
            "<h1>specviz</h1><p>A small model guesses ahead, a large one checks all guesses in"
            " one pass. See which are kept.</p>",
            elem_id="masthead",
            apply_default_css=False,
        )
        gr.Button("Light or dark", size="sm", elem_id="theme", scale=0).click(
            None, None, None, js=TOGGLE_JS
        )


def _drafters() -> dict[str, str]:
    """Every drafter there is, with its sentence. Once a pair is loaded, those it can run."""
    return {name: module.SUMMARY for name, module in drafters.modules().items()}


def _own() -> tuple[Any, list[tuple[Choice, str, str]], int]:
    """specviz's own shelf and catalogue, and the first pair's usual gamma."""
    from specviz.pairs import Shelf, catalogue, why_not

    specs = catalogue()
    rows = [
        (Choice(spec.name, spec.title, why_not(spec) or ""), spec.target, spec.draft)
        for spec in specs
    ]
    return Shelf(), rows, specs[0].gamma
