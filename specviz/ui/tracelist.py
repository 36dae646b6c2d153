"""The list of the Traces tab: what there is to open, what is shown, and its figures."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from specviz.metrics import ACCEPTANCE, COSTS, SPEEDUPS
from specviz.race import done_event
from specviz.records import Trace
from specviz.ui.controls import OTHER, Controls
from specviz.ui.elements import element
from specviz.ui.kept import Collections, Shown
from specviz.ui.links import LinkError, link_of_trace

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
FIGURES = (*SPEEDUPS, *ACCEPTANCE, *COSTS)


class TraceList:
    """The value of the list. ``controls`` are Explore's inputs, whose values a link sets, and
    ``pairs`` what can be chosen there; None where nothing can be run."""

    def __init__(
        self, kept: Collections, controls: Controls | None, pairs: dict[str, tuple[str, str]]
    ) -> None:
        self._kept, self._controls, self._pairs = kept, controls, pairs

    def draw(self, first: Shown) -> gr.HTML:
        """Put the list into the block that is open, with this trace shown."""
        return element(self.value("", first, None), LIST_HTML, LIST_JS, "traces-list")

    def value(self, session: str, first: Shown, second: Shown | None) -> str:
        """All of the list as JSON, with one trace shown or two compared."""
        stages = [shown for shown in (first, second) if shown is not None]
        return json.dumps(
            {
                "gallery": self._kept.gallery(),
                "kept": [{"id": k.id, "title": k.title} for k in self._kept.own(session)],
                "left": first.id,
                "right": second.id if second else None,
                "shown": [self._described(shown) for shown in stages],
                "same_prompt": len({shown.trace.prompt for shown in stages}) == 1,
                "message": "",
            }
        )

    def _described(self, shown: Shown) -> dict[str, Any]:
        figures = done_event(shown.trace)["figures"]
        return {
            "id": shown.id,
            "title": shown.title,
            "note": shown.trace.note,
            "figures": {name: figures[name] for name in FIGURES},
            "link": self._link(shown.trace),
        }

    def _link(self, trace: Trace) -> str:
        """The query that sets Explore up for a trace's run; empty where there can be none."""
        if self._controls is None:
            return ""
        try:
            return link_of_trace(self._controls, trace, self._models_of(trace))
        except LinkError:
            return ""

    def _models_of(self, trace: Trace) -> dict[str, str]:
        """What to choose on Explore for the models of a trace: a pair on offer, two Hub ids, or
        nothing where neither is known."""
        pair = trace.pair
        if pair.name in self._pairs:
            return {"pair": pair.name}
        if OTHER in self._pairs and "/" in pair.target:
            return {"pair": OTHER, "target": pair.target, "draft": pair.draft}
        return {}
