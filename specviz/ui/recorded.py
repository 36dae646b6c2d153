"""The page of a host that runs nothing: recorded runs, replayed and explained.

Neither torch nor a model is needed, and none of this imports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.gallery import exhibits
from specviz.lossless import VERIFYING
from specviz.race import replay_events
from specviz.records import Trace
from specviz.trace import TraceError, load_trace
from specviz.ui import about, api, theory
from specviz.ui.diagnosis import DiagnosisPanel
from specviz.ui.elements import HIDDEN, replay_stage, status, status_line
from specviz.ui.explore import lines
from specviz.ui.kept import title
from specviz.ui.law import law, lead, proof_head, way_of_verifying
from specviz.ui.returning import Returning
from specviz.ui.session import Races
from specviz.ui.theme import blocks, masthead
from specviz.ui.traces import Traces
from specviz.ui.uploads import sent_trace

RECORDED_ONLY = (
    "This host shows recorded runs only: no model is loaded and nothing is run. Every figure was"
    " measured when the run was recorded, on the machine that stands beside it. To run models"
    " yourself, start specviz on your own machine."
)
NO_SWEEP = (
    "A sweep runs a grid of drafters, draft lengths, temperatures and prompts, and shows what pays."
    " **Not run here:** this host shows recorded runs only. On your own machine this tab measures,"
    " and so does `python -m specviz bench`."
)
NO_PROOF = (
    "**Not run here:** this host shows recorded runs only. On your own machine a button stands"
    " here, and `python -m specviz check` goes through all three proofs."
)
SHOW_STAGE_JS = "() => { document.querySelector('#stage').scrollIntoView({block: 'nearest'}); }"


def recorded_page(first: Path | None) -> gr.Blocks:
    """See ``specviz.ui.build``. ``first`` is the trace on the stage at first paint."""
    races = Races()
    explore = RecordedRuns(first, races)
    traces = Traces(races, None, {})
    returning = Returning()
    with blocks() as page:
        masthead()
        returning.draw()
        with gr.Tabs(elem_id="tabs"):
            with gr.Tab("Explore", id="explore"):
                explore.draw()
            with gr.Tab("Sweep", id="sweep"):
                gr.Markdown(NO_SWEEP, elem_classes="prose-page")
            with gr.Tab("Theory", id="theory"):
                point = theory.draw(explore.diagnosis.point)
            with gr.Tab("Lossless", id="lossless-tab"):
                _draw_law()
            with gr.Tab("Traces", id="traces-tab"):
                traces.draw()
            with gr.Tab("About", id="about"):
                about.draw(recorded=True)
        explore.wire(point)
        returning.wire(page)
        traces.wire(returning)
        api.expose_reading()
    return page


class RecordedRuns:
    """Explore without models: a list of recorded runs, the stage, and the diagnosis."""

    def __init__(self, first: Path | None, races: Races) -> None:
        self._runs: Mapping[str, Path] = {one.title: one.path for one in exhibits()}
        if first is not None and first.exists():
            trace = load_trace(first.read_bytes())
            self._runs = {title(trace): first, **self._runs}
        self._first = next(iter(self._runs))
        self.diagnosis = DiagnosisPanel(races, ())
        self.diagnosis.begin_with(self._trace(self._first))

    def _trace(self, name: str) -> Trace:
        return load_trace(self._runs[name].read_bytes())

    def draw(self) -> None:
        """Put the tab into the block that is open."""
        with gr.Row(elem_id="explore"):
            with gr.Column(scale=0, min_width=300, elem_id="controls"):
                self.choice = gr.Radio(
                    list(self._runs), value=self._first, label="Recorded runs", elem_id="recorded"
                )
                self.open = gr.UploadButton(
                    "Open trace", size="sm", file_types=[".json"], elem_id="open"
                )
                self.status = status_line(status(RECORDED_ONLY))
            with gr.Column(scale=1, min_width=320, elem_id="stage-column"):
                shown = lines(replay_events(self._trace(self._first)))
                self.stage = replay_stage(shown, "stage")
                self.diagnosis.draw()

    def wire(self, point: gr.HTML) -> None:
        """Connect the events. ``point`` is what shows the measured point among the curves."""
        self.diagnosis.stand_in(point)
        shown = [self.stage, self.status, self.choice, *self.diagnosis.parts()]
        self.choice.input(self.on_choose, self.choice, shown, **HIDDEN)
        self.open.upload(self.on_open, self.open, shown, **HIDDEN).success(
            None, None, None, js=SHOW_STAGE_JS
        )

    def on_choose(self, name: str) -> dict[Any, Any]:
        """Show a recorded run."""
        return {**self._showing(self._trace(name)), self.status: status(RECORDED_ONLY)}

    def on_open(self, path: str | None) -> dict[Any, Any]:
        """Show a trace from a file."""
        try:
            trace = sent_trace(path)
        except TraceError as error:
            return {self.status: status(f"This trace cannot be opened: {error}", "error")}
        told = status("A run from a file is on the stage.")
        return {**self._showing(trace), self.status: told, self.choice: None}

    def _showing(self, trace: Trace) -> dict[Any, Any]:
        return {self.stage: lines(replay_events(trace)), **self.diagnosis.showing(trace)}


def _draw_law() -> None:
    """The Lossless tab: what can be shown by arithmetic in the browser; the rest says why not."""
    with gr.Column(elem_id="lossless"):
        lead()
        with gr.Column(elem_classes="proof-section"):
            proof_head("exact")
            variant = way_of_verifying()
            shown = law()
            gr.Markdown(NO_PROOF, elem_classes="proof-head")
        for name in ("sampled", "greedy"):
            with gr.Column(elem_classes="proof-section"):
                proof_head(name)
                gr.Markdown(NO_PROOF, elem_classes="proof-head")
        variant.change(
            lambda name: (gr.update(info=VERIFYING[name]), name),
            variant,
            [variant, shown],
            **HIDDEN,
        )
