"""The diagnosis under a stage: why it is not faster, and one button that tries the advice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import gradio as gr

from specviz.diagnosis import Advice, Diagnosis, diagnose, setup_of
from specviz.records import Settings, Trace
from specviz.rows import Setup
from specviz.ui.controls import Controls
from specviz.ui.elements import HIDDEN, element
from specviz.ui.session import Races

DIAGNOSIS_HTML = '<section class="sv-diagnosis" aria-label="Diagnosis" hidden></section>'
DIAGNOSIS_JS = """
const mount = () => {
  const diagnosis = window.specviz.mountDiagnosis(element);
  watch("value", () => diagnosis.show(props.value || ""));
  diagnosis.show(props.value || "");
  element.dataset.mounted = "";
};
if (window.specviz?.mountDiagnosis) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
RUN_ON_EXPLORE_JS = """() => {
  const tabs = [...document.querySelectorAll("#tabs [role=tab]")];
  tabs.find((tab) => tab.textContent.trim() === "Explore")?.click();
  document.querySelector("button#run").click();
}"""


@dataclass(frozen=True, slots=True)
class Told:
    """What the diagnosis on screen is about, and the advice that was followed to get there.

    ``seen`` holds the speedup of every setup that was measured here on this very prompt.
    """

    pair: str = ""
    prompt: str = ""
    settings: Settings | None = None
    advice: Advice | None = None
    own: bool = False
    followed: Advice | None = None
    seen: tuple[tuple[Setup, float], ...] = ()


class DiagnosisPanel:
    """The diagnosis of what is on one stage. ``pairs`` are the names of pairs that Explore can
    choose."""

    def __init__(self, races: Races, pairs: Sequence[str]) -> None:
        self._races, self._pairs = races, frozenset(pairs)
        self._first, self._value, self.point = Told(), "", ""
        self._among_curves: list[gr.HTML] = []

    def begin_with(self, trace: Trace) -> None:
        """The trace that is on the stage at first paint. ``point`` is then its measured point."""
        self._first, self._value, self.point = self._tell(trace, Told(), own=False)

    def draw(self, elem_id: str = "diagnosis") -> None:
        """Put the panel into the block that is open."""
        self.told = gr.State(self._first)
        self.shown = element(self._value, DIAGNOSIS_HTML, DIAGNOSIS_JS, elem_id)
        self.follow = gr.Button(
            **self._button(self._first),
            size="sm",
            elem_id=f"{elem_id}-follow",
            elem_classes="follow-advice",
        )

    def parts(self) -> list[Any]:
        """The components that ``showing`` updates."""
        return [self.told, self.shown, self.follow, *self._among_curves]

    def stand_in(self, theory: gr.HTML) -> None:
        """Let ``theory`` show the measured point of what is diagnosed."""
        self._among_curves = [theory]

    def showing(self, trace: Trace) -> dict[Any, Any]:
        """The updates that diagnose a recorded run."""
        return self._updates(*self._tell(trace, Told(), own=False))

    def wire(self, rests: Sequence[Any], controls: Controls, theory: gr.HTML) -> None:
        """Diagnose after each of the events ``rests``. ``theory`` shows the measured point."""
        self.stand_in(theory)
        for rest in rests:
            rest.then(self.on_rest, self.told, self.parts(), **HIDDEN)
        self.wire_follow(controls, self)

    def wire_follow(self, controls: Controls, explore: DiagnosisPanel) -> None:
        """Let the button measure the advice on Explore, whose inputs ``controls`` are and whose
        own panel, ``explore``, then says what came of it."""
        self.follow.click(
            lambda told: self.on_follow(told, controls, explore.told),
            self.told,
            [explore.told, *controls.inputs()],
            **HIDDEN,
        ).success(None, None, None, js=RUN_ON_EXPLORE_JS)

    def on_rest(self, told: Told, request: gr.Request) -> dict[Any, Any]:
        """The diagnosis of the visitor's own run, once it rests."""
        race = self._races.of(request.session_hash or "")
        trace = race.trace() if race else None
        if trace is None or trace.run("speculative") is None:
            return {self.shown: gr.skip()}
        return self._updates(*self._tell(trace, told, own=True))

    def on_follow(self, told: Told, controls: Controls, memory: gr.State) -> dict[Any, Any]:
        """Set Explore's controls to the run that was diagnosed, with the advice taken, and keep
        in ``memory`` that it was. The page then presses Run."""
        if told.settings is None or told.advice is None or told.advice.setup is None:
            raise gr.Error("There is no advice to follow.", print_exception=False)
        settings, setup = told.settings, told.advice.setup
        wanted = {field.name: getattr(settings, field.name) for field in fields(settings)}
        wanted |= {"gamma": setup.gamma, "drafter": setup.drafter, "prompt": told.prompt}
        wanted["stop"] = "\n".join(text.replace("\n", "\\n") for text in settings.stop)
        wanted["baseline"] = "measure"
        if told.pair in self._pairs:
            wanted["pair"] = told.pair
        updates = {
            getattr(controls, field.name): wanted[field.name]
            for field in fields(controls)
            if field.name in wanted
        }
        return {memory: replace(told, followed=told.advice), **updates}

    def _updates(self, told: Told, value: str, point: str) -> dict[Any, Any]:
        updates = (told, value, gr.update(**self._button(told)), point)
        return dict(zip(self.parts(), updates, strict=False))  # not all stand among curves

    def _tell(self, trace: Trace, before: Told, own: bool) -> tuple[Told, str, str]:
        """What is to be remembered, the panel's value, and the value of the theory's point."""
        found = diagnose(trace)
        seen = _seen(before, trace, found) if own else ()
        told = Told(trace.pair.name, trace.prompt, trace.settings, found.advice, own, None, seen)
        value = {
            "diagnosis": asdict(found),
            "followed": _outcome(before, trace, found),
            "compared": _compared(seen),
        }
        return told, _json(value), _json(asdict(found.point)) if found.point else ""

    def _button(self, told: Told) -> dict[str, Any]:
        """The button: there is something to try, and the models it needs can be chosen here."""
        advice = told.advice
        possible = told.own or told.pair in self._pairs
        if advice is None or advice.setup is None or advice.measured is not None or not possible:
            return {"value": "Measure the advice", "visible": False}
        return {"value": f"Measure the advice: gamma {advice.setup.gamma}", "visible": True}


def _outcome(before: Told, trace: Trace, found: Diagnosis) -> str | None:
    """What came of the advice, where this run is the one it asked for."""
    advice = before.followed
    if advice is None or advice.setup is None or found.point is None or advice.predicted is None:
        return None
    setup, settings = advice.setup, trace.settings
    if trace.prompt != before.prompt or settings.gamma != setup.gamma:
        return None
    measured = found.point.speedup
    return (
        f"The advice was gamma {setup.gamma}. Expected of it: {advice.predicted:.2f}x. Measured:"
        f" {measured:.2f}x, {100 * measured / advice.predicted:.0f} % of that."
    )


def _seen(before: Told, trace: Trace, found: Diagnosis) -> tuple[tuple[Setup, float], ...]:
    """What was measured on this prompt before, and now; a setup that ran again counts anew."""
    run = trace.run("speculative")
    if run is None or found.speedup is None:
        return before.seen
    same = before.settings is not None and (before.prompt, before.settings.max_new_tokens) == (
        trace.prompt,
        trace.settings.max_new_tokens,
    )
    kept = dict(before.seen) if same else {}
    setup = setup_of(trace, run)
    return tuple({**kept, setup: found.speedup}.items())


def _compared(seen: Sequence[tuple[Setup, float]]) -> str | None:
    """The drafts that were tried on this prompt, the fastest first."""
    if len({setup.name for setup, _ in seen}) < 2:
        return None
    order = sorted(seen, key=lambda one: -one[1])
    tried = "; ".join(f"{s.name}, gamma {s.gamma}: {speedup:.2f}x" for s, speedup in order)
    best = order[0][0]
    return f"Measured on this prompt so far: {tried}. Take {best.name} with gamma {best.gamma}."


def _json(value: Any) -> str:
    """JSON in which nothing can open a tag."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
