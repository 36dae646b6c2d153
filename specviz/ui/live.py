"""The page with everything on it: runs, sweeps and proofs on real models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import gradio as gr

from specviz import drafters
from specviz.host import Host, HostError
from specviz.pairs import PairSpec, catalogue, needs, why_not
from specviz.race import replay_events
from specviz.trace import load_trace
from specviz.ui import about, api, links, theory
from specviz.ui.controls import OTHER
from specviz.ui.elements import Choice
from specviz.ui.explore import Explore, lines
from specviz.ui.gpu import shelf_for
from specviz.ui.idle import calm_queue
from specviz.ui.loading import AllowedShelf, Shelf
from specviz.ui.lossless import Lossless
from specviz.ui.session import Races
from specviz.ui.sweep import SweepTab
from specviz.ui.theme import blocks, masthead
from specviz.ui.traces import Traces
from specviz.ui.turns import Turns

Row = tuple[Choice, str, str]
OTHERS: Row = (Choice(OTHER, "Other models: any Hub id or folder"), "", "")


def live_page(
    shelf: Shelf, pairs: Sequence[Row], first: Path | None, gamma: int, host: Host
) -> gr.Blocks:
    """See ``specviz.ui.build``."""
    pairs = on_offer(pairs, host)
    shelf = AllowedShelf(shelf, host, {(target, draft) for _, target, draft in pairs})
    offered = [*pairs, OTHERS] if host.other_models else pairs
    races, turns = Races(), Turns(host.max_waiting, host.max_seconds)
    tab = Explore(shelf, offered, races, turns, host)
    sweep = SweepTab(shelf, pairs, turns, host)
    shown = ""
    if first is not None and first.exists():
        trace = load_trace(first.read_bytes())
        shown = lines(replay_events(trace))
        tab.diagnosis.begin_with(trace)
    with blocks() as page:
        masthead()
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
        tab.wire(page)
        lossless.wire(page)
        traces.wire(page)
        traces.measure_on(tab.diagnosis)
        links.wire(page, tab.controls, tab.link, tab.pairs, list(_drafters()), host)
        tab.diagnosis.wire(tab.rests, tab.open, tab.controls, point)
        sweep.wire(page)
        api.expose(shelf, pairs, turns, host)
    calm_queue(page)
    tab.loading.begin()
    return page


def on_offer(pairs: Sequence[Row], host: Host) -> list[Row]:
    """The pairs that the host allows, in its order, the one it chose first. Raises HostError where
    none of them can run on this machine."""
    named = {row[0].name: row for row in pairs}
    names = [*filter(None, [host.pair]), *(host.pairs or named)]
    allowed = [named[name] for name in dict.fromkeys(names) if name in named]
    if all(choice.why for choice, _, _ in allowed):
        reasons = "; ".join(f"{choice.title}: {choice.why}" for choice, _, _ in allowed)
        raise HostError(f"No pair that may be chosen here can run on this machine. {reasons}.")
    return allowed


def own_models(host: Host) -> tuple[Shelf, list[Row], int]:
    """specviz's own shelf and catalogue, and the usual gamma of the pair chosen at first."""
    specs = catalogue()
    rows = [(_choice(spec), spec.target, spec.draft) for spec in specs]
    first = next(choice.name for choice, _, _ in on_offer(rows, host) if not choice.why)
    gamma = next(spec.gamma for spec in specs if spec.name == first)
    return shelf_for(os.environ, host.gpu_seconds), rows, gamma


def _choice(spec: PairSpec) -> Choice:
    """A pair as it is listed: with the memory it needs, or why it cannot run here."""
    why = why_not(spec) or ""
    return Choice(spec.name, spec.title if why else f"{spec.title}, {needs(spec)}", why)


def _drafters() -> dict[str, str]:
    """Every drafter there is, with its sentence. Once a pair is loaded, those it can run."""
    return {name: module.SUMMARY for name, module in drafters.modules().items()}
