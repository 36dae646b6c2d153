"""The Theory tab: the papers' curves, moved in the browser, with the last run standing in them."""

from __future__ import annotations

import json

import gradio as gr

from specviz.ui.elements import ASSETS, element
from specviz.ui.serving import PLOTLY, address

THEORY_JS = """
const mount = () => {
  const options = { published: props.published, plotly: props.plotly };
  const theory = window.specviz.mountTheory(element, options);
  watch("value", () => theory.show(props.value || ""));
  theory.show(props.value || "");
  element.dataset.mounted = "";
};
if (window.specviz?.mountTheory) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""


def draw(point: str) -> gr.HTML:
    """Put the tab into the block that is open. Its value is the measured run as JSON (see
    ``diagnosis.Point``), ``point`` that of the run on screen at first, empty for none."""
    return element(
        point,
        (ASSETS / "theory.html").read_text(encoding="utf-8"),
        THEORY_JS,
        "theory",
        published=json.loads((ASSETS / "published.json").read_text(encoding="utf-8")),
        plotly=address(PLOTLY),
    )
