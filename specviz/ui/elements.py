"""Elements of our own: the stage, the status line and the choice of a pair.

Each is a ``gr.HTML`` with a static template. Text reaches the page through ``watch`` and
``textContent`` only, never through a template.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from specviz.metrics import DEFINITIONS

ASSETS = Path(__file__).parents[2] / "assets"
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
"""Options of an event that is no endpoint and draws no progress over the page."""
HIDDEN: dict[str, Any] = QUIET | {"queue": False}
"""The same for one that answers at once."""

STAGE_JS = """
const mount = () => {
  const { mountStage, createFollower } = window.specviz;
  const stage = mountStage(element, { definitions: props.definitions });
  const show = createFollower(stage, server.news, () => trigger("back"));
  watch("value", () => show(props.value || ""));
  show(props.value || "");
  element.dataset.mounted = "";
  window.specviz.stopStrayFrames(() => !stage.playhead.playing);
};
if (window.specviz) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""

REPLAY_JS = """
const mount = () => {
  const stage = window.specviz.mountStage(element, { definitions: props.definitions });
  watch("value", () => stage.feed(props.value || ""));
  stage.feed(props.value || "");
  element.dataset.mounted = "";
};
if (window.specviz) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""

STATUS_HTML = '<p class="status-text" role="status" aria-live="polite"></p>'
STATUS_JS = """
const shown = element.querySelector(".status-text");
const show = () => {
  const status = JSON.parse(props.value || "{}");
  shown.textContent = status.text || "";
  shown.dataset.kind = status.kind || "info";
  for (const id of status.reasons ? ["run", "step", "stop", "save", "open"] : []) {
    const button = document.querySelector(`button#${id}`);
    if (button) button.title = status.reasons[id] || "";
  }
};
watch("value", show);
show();
"""

PAIR_HTML = """
<label class="pair-label">
  <span class="pair-caption">Models</span>
  <select class="pair-select"></select>
</label>
"""
PAIR_JS = """
const select = element.querySelector("select");
const optionOf = (choice) => {
  const option = document.createElement("option");
  option.value = choice.name;
  option.textContent = choice.why ? `${choice.title} (${choice.why})` : choice.title;
  option.disabled = Boolean(choice.why);
  return option;
};
const show = () => {
  select.value = props.value;
  select.title = select.selectedOptions[0]?.textContent;
};
const fill = () => {
  select.replaceChildren(...props.choices.map(optionOf));
  show();
};
select.addEventListener("change", () => { props.value = select.value; trigger("input"); });
watch("value", show);
watch("choices", fill);
fill();
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """A pair in the list: ``why`` says why it cannot be chosen here, empty if it can."""

    name: str
    title: str
    why: str = ""


def stage(value: str, news: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> gr.HTML:
    """The token stream and all around it. The value is a whole race as JSON lines, or names one
    to follow (``following.order``), for which the page then asks ``news``."""
    template = (ASSETS / "stage.html").read_text(encoding="utf-8")
    return element(
        value, template, STAGE_JS, "stage", definitions=DEFINITIONS, server_functions=[news]
    )


def replay_stage(value: str, elem_id: str) -> gr.HTML:
    """A stage for recorded races alone. The value is a whole race as JSON lines."""
    template = (ASSETS / "stage.html").read_text(encoding="utf-8")
    return element(value, template, REPLAY_JS, elem_id, definitions=DEFINITIONS)


def status_line(value: str) -> gr.HTML:
    """One line under the buttons: what the page does, and why a control cannot be used."""
    return element(value, STATUS_HTML, STATUS_JS, "status")


def pair_select(choices: Sequence[Choice]) -> gr.HTML:
    """A native list of pairs; those that cannot run here are greyed and say why. The value is
    the name of the chosen one."""
    first = next((choice.name for choice in choices if not choice.why), "")
    return element(first, PAIR_HTML, PAIR_JS, "pair", choices=plain(choices))


def plain(choices: Sequence[Choice]) -> list[dict[str, str]]:
    """Pairs as the list takes them, also in an update of ``choices``."""
    return [asdict(choice) for choice in choices]


def element(value: str, template: str, js: str, elem_id: str, **props: Any) -> gr.HTML:
    """A gr.HTML whose value is data for its script and is never shown as HTML. (No subclass:
    Gradio makes a new one for each session from arguments that only gr.HTML itself takes.)"""
    return gr.HTML(
        value,
        html_template=template,
        js_on_load=js,
        apply_default_css=False,
        elem_id=elem_id,
        **props,
    )


def status(text: str, kind: str = "info", reasons: Mapping[str, str] | None = None) -> str:
    """The value of a status line: ``kind`` is info, busy or error. ``reasons`` says, by element
    id, why buttons cannot be used; None leaves what was said."""
    why = None if reasons is None else dict(reasons)
    return json.dumps({"text": text, "kind": kind, "reasons": why})
