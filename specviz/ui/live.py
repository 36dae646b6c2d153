"""The page with everything on it: runs, sweeps and proofs on real models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import gradio as gr

from specviz import drafters
from specviz.catalogue import catalogue, find
from specviz.host import Host
from specviz.race import replay_events
from specviz.trace import load_trace
from specviz.ui import about, api, links, theory
from specviz.ui.controls import OTHER
from specviz.ui.elements import Choice
from specviz.ui.explore import Explore, lines
from specviz.ui.gpu import shelf_for
from specviz.ui.loading import AllowedShelf, Loading, Row, Shelf, Weigh
from specviz.ui.lossless import Lossless
from specviz.ui.returning import Returning
from specviz.ui.session import Races
from specviz.ui.sweep import SweepTab
from specviz.ui.theme import blocks, masthead
from specviz.ui.traces import Traces
from specviz.ui.turns import Turns

OTHERS: Row = (Choice(OTHER, "Other models: any Hub id or folder"), "", "")


def live_page(
    shelf: Shelf, pairs: Sequence[Row], weigh: Weigh, first: Path | None, gamma: int, host: Host
) -> gr.Blocks:
    """See ``specviz.ui.build``."""
    pairs = on_offer(pairs, host)
    shelf = AllowedShelf(shelf, host, {(target, draft) for _, target, draft in pairs})
    offered = [*pairs, OTHERS] if host.other_models else pairs
    races, turns = Races(), Turns(host.max_waiting, host.max_seconds)
    loading = Loading(shelf, pairs, weigh)
    tab = Explore(shelf, offered, loading, races, turns, host)
    sweep = SweepTab(shelf, loading, turns, host)
    returning = Returning()
    shown = ""
    if first is not None and first.exists():
        trace = load_trace(first.read_bytes())
        shown = lines(replay_events(trace))
        tab.diagnosis.begin_with(trace)
    with blocks() as page:
        masthead()
        returning.draw()
        with gr.Tabs(elem_id="tabs"):
            with gr.Tab("Explore", id="explore"):
                tab.draw([choice for choice, _, _ in offered], _drafters(), gamma, shown)
            with gr.Tab("Sweep", id="sweep"):
                sweep.draw()
            with gr.Tab("Theory", id="theory"):
                point = theory.draw(tab.diagnosis.point)
            lossless = Lossless(shelf, tab.pairs, turns, tab.controls, host)
            with gr.Tab("Lossless", id="lossless-tab"):
                lossless.draw()
            traces = Traces(races, tab.controls, tab.pairs)
            with gr.Tab("Traces", id="traces-tab"):
                traces.draw()
            with gr.Tab("About", id="about"):
                about.draw()
        returning.wire(page)
        tab.wire(page, returning, point)
        lossless.wire(returning)
        traces.wire(returning)
        traces.measure_on(tab.diagnosis)
        links.wire(page, tab.controls, tab.link, tab.pairs, list(_drafters()), host)
        sweep.wire(page, returning)
        api.expose(shelf, loading, turns, host)
    loading.begin_soon()
    return page


def on_offer(pairs: Sequence[Row], host: Host) -> list[Row]:
    """The pairs that the host allows, in its order, the one it chose first."""
    named = {row[0].name: row for row in pairs}
    names = [*filter(None, [host.pair]), *(host.pairs or named)]
    return [named[name] for name in dict.fromkeys(names) if name in named]


def own_models(host: Host) -> tuple[Shelf, list[Row], int]:
    """specviz's own shelf and catalogue, and the usual gamma of the pair that is first."""
    rows = [(Choice(spec.name, spec.title), spec.target, spec.draft) for spec in catalogue()]
    first = find(on_offer(rows, host)[0][0].name)
    assert first is not None
    return shelf_for(os.environ, host.gpu_seconds), rows, first.gamma


def weighed(rows: Sequence[Row]) -> list[Row]:
    """Pairs of the catalogue as they are listed: with the memory each needs, or why it cannot run
    here. To be asked of the machine, this takes torch."""
    from specviz.pairs import needs, why_not

    found: list[Row] = []
    for choice, target, draft in rows:
        spec = find(choice.name)
        assert spec is not None
        why = why_not(spec) or ""
        title = spec.title if why else f"{spec.title}, {needs(spec)}"
        found.append((replace(choice, title=title, why=why), target, draft))
    return found


def _drafters() -> dict[str, str]:
    """Every drafter there is, with its sentence. Once a pair is loaded, those it can run."""
    return {name: one.summary for name, one in drafters.described().items()}
