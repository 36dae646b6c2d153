"""The Traces tab: recorded runs to open, replay, compare and take along. Needs no model."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gradio as gr

from specviz.export.page import html_page
from specviz.export.svg import svg_picture
from specviz.export.table import csv_table
from specviz.gallery import Exhibit, exhibits
from specviz.metrics import DEFINITIONS
from specviz.race import done_event, replay_events
from specviz.records import Trace
from specviz.trace import TraceError, dump_trace, load_trace
from specviz.ui.controls import OTHER, Controls
from specviz.ui.elements import ASSETS, element
from specviz.ui.explore import lines, read_trace
from specviz.ui.kept import Collections, Full, title
from specviz.ui.links import LinkError, link_of_trace
from specviz.ui.session import Races

LIST_HTML = '<div class="traces"></div>'
LIST_JS = """
const mount = () => {
  const act = (event, action) => {
    props.value = JSON.stringify({ ...JSON.parse(props.value), action });
    trigger(event);
  };
  const events = { show: "show", take: "take", draw: "draw" };
  const list = window.specviz.mountTraces(element, events, act);
  watch("value", () => list.show(JSON.parse(props.value)));
  list.show(JSON.parse(props.value));
  element.dataset.mounted = "";
};
if (window.specviz?.mountTraces) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
STAGE_JS = """
const mount = () => {
  const stage = window.specviz.mountStage(element, { definitions: props.definitions });
  watch("value", () => stage.feed(props.value || ""));
  stage.feed(props.value || "");
  element.dataset.mounted = "";
};
if (window.specviz) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
PICTURE_JS = """
watch("value", () => window.specviz.savePicture(JSON.parse(props.value)));
"""
CLICK_FILE_JS = "() => { document.querySelector('#traces-file').click(); }"
FIGURES = (
    "speedup",
    "end_to_end_speedup",
    "tar",
    "alpha",
    "tokens_per_target_call",
    "cost_ratio",
    "verify_ratio",
    "predicted_speedup",
)
MAKERS: dict[str, Callable[[Trace], str]] = {
    "json": dump_trace,
    "html": html_page,
    "svg": svg_picture,
    "csv": csv_table,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A trace on one of the two stages, by the id it is listed under."""

    id: str
    title: str
    trace: Trace


class Traces:
    """One page's Traces tab. ``races`` has each visitor's run on Explore, ``controls`` are its
    inputs, whose values a link sets."""

    def __init__(self, races: Races, controls: Controls, pairs: dict[str, tuple[str, str]]) -> None:
        self._races, self._controls, self._pairs = races, controls, pairs
        self._collections = Collections()
        self._folder = TemporaryDirectory(prefix="specviz-traces-")
        self._gallery = {f"gallery:{exhibit.file}": exhibit for exhibit in exhibits()}

    # --- what it looks like ----------------------------------------------------------------

    def draw(self) -> None:
        """Put the tab into the block that is open."""
        first = self._exhibit(next(iter(self._gallery)))
        with gr.Row(elem_id="traces"):
            with gr.Column(scale=0, min_width=300, elem_id="traces-side"):
                self.keep = gr.Button("Keep the run on Explore", size="sm", elem_id="keep")
                self.drop = gr.File(
                    label="Open a trace",
                    file_types=[".json"],
                    height=104,
                    elem_id="trace-drop",
                )
                self.list = element(
                    self._listed("", first, None), LIST_HTML, LIST_JS, "traces-list"
                )
                self.file = gr.DownloadButton("File", visible="hidden", elem_id="traces-file")
                self.picture = element("{}", "<span></span>", PICTURE_JS, "traces-picture")
            with gr.Column(scale=1, min_width=320, elem_id="traces-stages"):
                self.left = self._stage(lines(replay_events(first.trace)), "traces-left")
                with gr.Column(visible=False, elem_id="traces-second") as self.second:
                    self.right = self._stage("", "traces-right")

    @staticmethod
    def _stage(value: str, elem_id: str) -> gr.HTML:
        template = (ASSETS / "stage.html").read_text(encoding="utf-8")
        return element(value, template, STAGE_JS, elem_id, definitions=DEFINITIONS)

    # --- what happens ----------------------------------------------------------------------

    def wire(self, page: gr.Blocks) -> None:
        """Connect the events. None of them waits for a model or for the queue."""
        now: dict[str, Any] = {
            "queue": False,
            "show_progress": "hidden",
            "api_visibility": "private",
        }
        outputs = [self.list, self.left, self.right, self.second]
        self.list.show(self.on_show, self.list, outputs, **now)
        self.keep.click(self.on_keep, self.list, outputs, **now)
        self.drop.upload(self.on_file, [self.drop, self.list], [*outputs, self.drop], **now)
        self.list.take(self.on_take, self.list, self.file, **now).success(
            None, None, None, js=CLICK_FILE_JS
        )
        self.list.draw(self.on_draw, self.list, self.picture, **now)
        page.unload(self.on_unload)

    def on_show(self, value: str, request: gr.Request) -> dict[Any, Any]:
        """Put a trace on a stage, take one off, or delete one from the session."""
        session, told = request.session_hash or "", json.loads(value)
        do, wanted = told["action"]["do"], told["action"]["id"]
        left, right = told["left"], told["right"]
        if do == "delete":
            self._collections.delete(session, wanted)
            left = next(iter(self._gallery)) if left == wanted else left
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
            trace = read_trace(Path(path or ""))
        except TraceError as error:
            said = self._say(value, f"This trace cannot be opened: {error}", session)
            return {**said, self.drop: None}
        return {**self._add(value, trace, session), self.drop: None}

    def on_take(self, value: str, request: gr.Request) -> str:
        """Write one format of a trace to a file of the visitor's own; its path."""
        action = json.loads(value)["action"]
        shown = self._find(request.session_hash or "", action["id"])
        folder = Path(self._folder.name, request.session_hash or "")
        folder.mkdir(exist_ok=True)
        path = folder / f"{_file_stem(shown)}.{action['do']}"
        path.write_text(MAKERS[action["do"]](shown.trace), encoding="utf-8", newline="\n")
        return str(path)

    def on_draw(self, value: str, request: gr.Request) -> str:
        """The picture of a trace, for the browser to make a PNG of."""
        shown = self._find(request.session_hash or "", json.loads(value)["action"]["id"])
        picture = {"name": _file_stem(shown), "svg": svg_picture(shown.trace)}
        return json.dumps({**picture, "at": time.monotonic_ns()})

    def on_unload(self, request: gr.Request) -> None:
        """The tab is gone: forget its traces and delete its files."""
        session = request.session_hash or ""
        self._collections.drop(session)
        for path in Path(self._folder.name, session).glob("*") if session else ():
            path.unlink(missing_ok=True)

    # --- what is listed and shown ----------------------------------------------------------

    def _add(self, value: str, trace: Trace, session: str) -> dict[Any, Any]:
        """Keep a trace and show it: on the second stage while two are compared."""
        told = json.loads(value)
        try:
            kept = self._collections.add(session, trace)
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
            first = self._find(session, left)
            second = self._find(session, right) if right else None
        except LookupError as error:
            return self._say(json.dumps(before), str(error), session)
        update: dict[Any, Any] = {
            self.list: self._listed(session, first, second),
            self.second: gr.update(visible=second is not None),
        }
        if left != before["left"]:
            update[self.left] = lines(replay_events(first.trace))
        if second is not None and right != before["right"]:
            update[self.right] = lines(replay_events(second.trace))
        return update

    def _say(self, value: str, text: str, session: str) -> dict[Any, Any]:
        """The list as it is, with a message over it."""
        told = json.loads(value)
        told.pop("action", None)
        return {self.list: json.dumps({**told, "message": text})}

    def _listed(self, session: str, first: Shown, second: Shown | None) -> str:
        """The value of the list: what there is, what is shown, and its figures."""
        stages = [shown for shown in (first, second) if shown is not None]
        return json.dumps(
            {
                "gallery": self._gallery_rows,
                "kept": [{"id": k.id, "title": k.title} for k in self._collections.of(session)],
                "left": first.id,
                "right": second.id if second else None,
                "shown": [self._described(shown) for shown in stages],
                "same_prompt": len({shown.trace.prompt for shown in stages}) == 1,
                "message": "",
            }
        )

    @cached_property
    def _gallery_rows(self) -> list[dict[str, str]]:
        return [
            {"id": name, "title": exhibit.title, "look": exhibit.look}
            for name, exhibit in self._gallery.items()
        ]

    def _described(self, shown: Shown) -> dict[str, Any]:
        figures = done_event(shown.trace)["figures"]
        try:
            link = link_of_trace(self._controls, shown.trace, self._models_of(shown.trace))
        except LinkError:
            link = ""
        return {
            "id": shown.id,
            "title": shown.title,
            "note": shown.trace.note,
            "figures": {name: figures[name] for name in FIGURES},
            "link": link,
        }

    def _models_of(self, trace: Trace) -> dict[str, str]:
        """What to choose on Explore for the models of a trace: a pair on offer, two Hub ids, or
        nothing where neither is known."""
        pair = trace.pair
        if pair.name in self._pairs:
            return {"pair": pair.name}
        if "/" in pair.target:
            return {"pair": OTHER, "target": pair.target, "draft": pair.draft}
        return {}

    def _find(self, session: str, wanted: str) -> Shown:
        """A trace by the id it is listed under. Raises LookupError."""
        if wanted in self._gallery:
            return self._exhibit(wanted)
        kept = self._collections.find(session, wanted)
        if kept is None:
            raise LookupError("That trace is no longer kept here.")
        return Shown(kept.id, kept.title, kept.trace)

    def _exhibit(self, name: str) -> Shown:
        exhibit: Exhibit = self._gallery[name]
        return Shown(name, exhibit.title, load_trace(exhibit.path.read_bytes()))


def _file_stem(shown: Shown) -> str:
    """A name for a file, of plain characters."""
    words = re.sub(r"[^a-z0-9]+", "-", title(shown.trace).lower()).strip("-")[:40].strip("-")
    return f"specviz-{words}" if words else "specviz-trace"
