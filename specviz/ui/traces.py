"""The Traces tab: recorded runs to open, replay, compare and take along. Needs no model."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import gradio as gr

from specviz.export.page import html_page
from specviz.export.svg import svg_picture
from specviz.export.table import csv_table
from specviz.race import replay_events
from specviz.records import Trace
from specviz.trace import TraceError, dump_trace
from specviz.ui.controls import Controls
from specviz.ui.diagnosis import DiagnosisPanel
from specviz.ui.elements import element, replay_stage
from specviz.ui.explore import lines
from specviz.ui.kept import Collections, Full, Shown, title
from specviz.ui.returning import Returning
from specviz.ui.saved import SavedFiles
from specviz.ui.session import Races
from specviz.ui.tracelist import TraceList
from specviz.ui.uploads import sent_trace

PICTURE_JS = """
watch("value", () => window.specviz.savePicture(JSON.parse(props.value)));
"""
CLICK_FILE_JS = "() => { document.querySelector('#traces-file').click(); }"
MAKERS: dict[str, Callable[[Trace], str]] = {
    "json": dump_trace,
    "html": html_page,
    "svg": svg_picture,
    "csv": csv_table,
}


class Traces:
    """One page's Traces tab. ``races`` has each visitor's run on Explore, ``controls`` are its
    inputs, whose values a link sets; None where nothing can be run."""

    def __init__(
        self, races: Races, controls: Controls | None, pairs: dict[str, tuple[str, str]]
    ) -> None:
        self._races, self._controls = races, controls
        self._kept = Collections()
        self._files = SavedFiles()
        self._told = TraceList(self._kept, controls, pairs)
        self.diagnoses = (DiagnosisPanel(races, [*pairs]), DiagnosisPanel(races, [*pairs]))

    # --- what it looks like ----------------------------------------------------------------

    def draw(self) -> None:
        """Put the tab into the block that is open."""
        first = self._kept.find("", self._kept.first)
        self.diagnoses[0].begin_with(first.trace)
        with gr.Row(elem_id="traces"):
            with gr.Column(scale=0, min_width=300, elem_id="traces-side"):
                self.keep = gr.Button(
                    "Keep the run on Explore",
                    size="sm",
                    visible=self._controls is not None,
                    elem_id="keep",
                )
                self.drop = gr.File(
                    label="Open a trace",
                    file_types=[".json"],
                    height=104,
                    elem_id="trace-drop",
                )
                self.list = self._told.draw(first)
                self.file = gr.DownloadButton("File", visible="hidden", elem_id="traces-file")
                self.picture = element("{}", "<span></span>", PICTURE_JS, "traces-picture")
            with gr.Column(scale=1, min_width=320, elem_id="traces-stages"):
                with gr.Column(elem_id="traces-first"):
                    self.left = replay_stage(lines(replay_events(first.trace)), "traces-left")
                    self.diagnoses[0].draw("traces-diagnosis-left")
                with gr.Column(visible=False, elem_id="traces-second") as self.second:
                    self.right = replay_stage("", "traces-right")
                    self.diagnoses[1].draw("traces-diagnosis-right")

    # --- what happens ----------------------------------------------------------------------

    def wire(self, returning: Returning) -> None:
        """Connect the events. None of them waits for a model or for the queue."""
        now: dict[str, Any] = {
            "queue": False,
            "show_progress": "hidden",
            "api_visibility": "private",
        }
        told = [part for panel in self.diagnoses for part in panel.parts()]
        outputs = [self.list, self.left, self.right, self.second, *told]
        self.list.show(self.on_show, self.list, outputs, **now)
        self.keep.click(self.on_keep, self.list, outputs, **now)
        self.drop.upload(self.on_file, [self.drop, self.list], [*outputs, self.drop], **now)
        # In the queue, since an error can be shown from there alone.
        queued = now | {"queue": True, "concurrency_limit": None}
        self.list.take(self.on_take, self.list, self.file, **queued).success(
            None, None, None, js=CLICK_FILE_JS
        )
        self.list.draw(self.on_draw, self.list, self.picture, **now)
        returning.back(self.on_back, self.list, outputs, **now)
        returning.keep(self._kept, self._files)

    def measure_on(self, explore: DiagnosisPanel) -> None:
        """Let an advice given here be measured on Explore, whose diagnosis then says what came
        of it."""
        if self._controls is not None:
            for panel in self.diagnoses:
                panel.wire_follow(self._controls, explore)

    def on_show(self, value: str, request: gr.Request) -> dict[Any, Any]:
        """Put a trace on a stage, take one off, or delete one from the session."""
        session, told = request.session_hash or "", json.loads(value)
        do, wanted = told["action"]["do"], told["action"]["id"]
        left, right = told["left"], told["right"]
        if do == "delete":
            self._kept.delete(session, wanted)
            left = self._kept.first if left == wanted else left
            right = None if right == wanted else right
        elif do == "close":
            right = None
        elif do == "right":
            right = wanted
        else:
            left, right = wanted, (None if right == wanted else right)
        return self._show(session, left, right, told)

    def on_keep(self, value: str, request: gr.Request) -> dict[Any, Any]:
        """Keep the visitor's last run, whether it came to its end, was stopped or failed."""
        session = request.session_hash or ""
        race = self._races.of(session)
        trace = race.trace() if race else None
        if trace is None:
            why = (
                "A run is going on. Stop it, or wait for its end."
                if race
                else "Nothing has been run here yet."
            )
            return self._say(value, why, session)
        return self._add(value, trace, session)

    def on_file(self, path: str | None, value: str, request: gr.Request) -> dict[Any, Any]:
        """Open a trace from a file."""
        session = request.session_hash or ""
        try:
            trace = sent_trace(path)
        except TraceError as error:
            said = self._say(value, f"This trace cannot be opened: {error}", session)
            return {**said, self.drop: None}
        return {**self._add(value, trace, session), self.drop: None}

    def on_take(self, value: str, request: gr.Request) -> str:
        """Write one format of a trace to a file of the visitor's own; its path."""
        action = json.loads(value)["action"]
        shown = self._kept.find(request.session_hash or "", action["id"])
        name = f"{_file_stem(shown)}.{action['do']}"
        text = MAKERS[action["do"]](shown.trace)
        return str(self._files.write(request.session_hash or "", name, text))

    def on_draw(self, value: str, request: gr.Request) -> str:
        """The picture of a trace, for the browser to make a PNG of."""
        shown = self._kept.find(request.session_hash or "", json.loads(value)["action"]["id"])
        picture = {"name": _file_stem(shown), "svg": svg_picture(shown.trace)}
        return json.dumps({**picture, "at": time.monotonic_ns()})

    def on_back(self, value: str, request: gr.Request) -> dict[Any, Any]:
        """List what the visitor had kept on a page that was loaded anew."""
        told = json.loads(value)
        return self._show(request.session_hash or "", told["left"], told["right"], told)

    # --- what is listed and shown ----------------------------------------------------------

    def _add(self, value: str, trace: Trace, session: str) -> dict[Any, Any]:
        """Keep a trace and show it: on the second stage while two are compared."""
        told = json.loads(value)
        try:
            kept = self._kept.add(session, trace)
        except (Full, TraceError) as error:
            return self._say(value, f"This trace cannot be kept: {error}.", session)
        left, right = (told["left"], kept.id) if told["right"] else (kept.id, None)
        return self._show(session, left, right, told)

    def _show(
        self, session: str, left: str, right: str | None, before: dict[str, Any]
    ) -> dict[Any, Any]:
        """The updates that put these two on the stages; a stage that stays as it is is left
        alone, so that it plays on."""
        try:
            first = self._kept.find(session, left)
            second = self._kept.find(session, right) if right else None
        except LookupError as error:
            return self._say(json.dumps(before), str(error), session)
        update: dict[Any, Any] = {
            self.list: self._told.value(session, first, second),
            self.second: gr.update(visible=second is not None),
        }
        if left != before["left"]:
            update[self.left] = lines(replay_events(first.trace))
            update |= self.diagnoses[0].showing(first.trace)
        if second is not None and right != before["right"]:
            update[self.right] = lines(replay_events(second.trace))
            update |= self.diagnoses[1].showing(second.trace)
        return update

    def _say(self, value: str, text: str, session: str) -> dict[Any, Any]:
        """The list as it is, with a message over it."""
        told = json.loads(value)
        told.pop("action", None)
        return {self.list: json.dumps({**told, "message": text})}


def _file_stem(shown: Shown) -> str:
    """A name for a file, of plain characters."""
    words = re.sub(r"[^a-z0-9]+", "-", title(shown.trace).lower()).strip("-")[:40].strip("-")
    return f"specviz-{words}" if words else "specviz-trace"
