"""The inputs of a sweep: components, and reading them into plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from specviz import drafters, prompts
from specviz.host import Host
from specviz.prompts import Prompt, Reading
from specviz.records import Settings, SettingsError
from specviz.ui.elements import HIDDEN

BUILT_IN, PASTED, FILE = "built-in", "pasted", "file"
SCHEDULES = ["constant", "adaptive"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the inputs stand for. ``drafters`` are names; ``axes`` are those of ``plan.cross``."""

    target: str
    drafters: tuple[str, ...]
    axes: dict[str, tuple[Any, ...]]
    prompts: tuple[Prompt, ...]
    settings: Settings
    repeats: int
    dtype: str

    @property
    def fewest_runs(self) -> int:
        """How many runs there are at least: with one drafter and one draft. How many of them the
        target can run is known once it is loaded."""
        return prod(map(len, self.axes.values())) * len(self.prompts) * self.repeats


@dataclass(frozen=True, slots=True)
class Inputs:
    """The components, in the order their values are sent."""

    target: Component
    drafters: Component
    gammas: Component
    temperatures: Component
    source: Component
    kinds: Component
    limit: Component
    pasted: Component
    file: Component
    bad_lines: Component
    max_new_tokens: Component
    confidences: Component
    schedules: Component
    repeats: Component
    dtype: Component

    def all(self) -> list[Component]:
        """Every component."""
        return [getattr(self, field.name) for field in fields(self)]

    def read(self, values: Sequence[Any], host: Host) -> Wanted:
        """What was asked for. Raises SettingsError and PromptsError saying what to change, also
        where a run or all of them are more than ``host`` allows."""
        given = dict(zip((field.name for field in fields(self)), values, strict=True))
        if not given["drafters"]:
            raise SettingsError("No drafter is chosen. Tick at least one.")
        wanted = Wanted(
            target=given["target"],
            drafters=tuple(given["drafters"]),
            axes={
                "gammas": _numbers(given["gammas"], "Gammas", int),
                "temperatures": _numbers(given["temperatures"], "Temperatures", float),
                "confidences": _numbers(given["confidences"], "Confidence", float),
                "schedules": tuple(given["schedules"]) or ("constant",),
            },
            prompts=_prompts(given),
            settings=Settings(max_new_tokens=_whole(given["max_new_tokens"], "Max new tokens")),
            repeats=_whole(given["repeats"], "Repeats"),
            dtype=given["dtype"],
        )
        for prompt in wanted.prompts:
            host.check(prompt.text, wanted.settings.max_new_tokens)
        host.check_sweep(wanted.fewest_runs)
        return wanted


def _numbers(text: str, name: str, kind: type) -> tuple[Any, ...]:
    try:
        found = tuple(dict.fromkeys(kind(word) for word in text.split(",") if word.strip()))
    except ValueError:
        found = ()
    if not found:
        what = "whole numbers" if kind is int else "numbers"
        raise SettingsError(f"{name}: type {what} separated by commas, such as 2, 4")
    return found


def _whole(value: Any, name: str) -> int:
    if value is None or value != int(value):
        raise SettingsError(f"{name}: type a whole number")
    return int(value)


def _prompts(given: dict[str, Any]) -> tuple[Prompt, ...]:
    limit = _whole(given["limit"], "Prompts")
    if limit < 0:
        raise SettingsError("Prompts: type how many to take, or 0 for all")
    usable = _reading(given).usable(given["bad_lines"])
    if given["source"] == BUILT_IN:
        usable = tuple(prompt for prompt in usable if prompt.kind in given["kinds"])
    return prompts.take(usable, limit)


def _reading(given: dict[str, Any]) -> Reading:
    if given["source"] == PASTED:
        return prompts.read_lines(given["pasted"] or "")
    if given["source"] == FILE:
        if not given["file"]:
            raise SettingsError("No file is chosen. Drop one, or take the built-in prompts.")
        path = Path(given["file"])
        return prompts.read_file(path.read_bytes(), path.name)
    return Reading(prompts.built_in())


# --- drawing -------------------------------------------------------------------------------


def grid_inputs(targets: Mapping[str, str]) -> dict[str, Component]:
    """What is compared; the components by field name. ``targets`` are titles by source."""
    names = list(drafters.described())
    return {
        "target": gr.Dropdown(
            [(title, target) for target, title in targets.items()],
            value=next(iter(targets)),
            label="Target",
            info="With every draft there is for it here.",
            elem_id="sweep-target",
        ),
        "drafters": gr.CheckboxGroup(
            names,
            value=names,
            label="Guesses come from",
            info="What the target cannot run is left out.",
            elem_id="sweep-drafters",
        ),
        "gammas": _line("2, 4, 6", "Gammas", "sweep-gammas"),
        "temperatures": _line("0", "Temperatures", "sweep-temperatures"),
    }


def prompt_inputs() -> dict[str, Component]:
    """What is asked; the components by field name. Those of the other sources are hidden."""
    built_in = prompts.kinds(prompts.built_in())
    source = gr.Radio(
        [BUILT_IN, PASTED, FILE], value=BUILT_IN, label="Prompts", elem_id="sweep-source"
    )
    kinds = gr.CheckboxGroup(built_in, value=built_in, label="Kinds", elem_id="sweep-kinds")
    pasted = gr.Textbox(
        label="One prompt a line",
        info="Write \\n for a line break.",
        lines=4,
        visible=False,
        elem_id="sweep-pasted",
    )
    file = gr.File(
        label="Plain lines, JSON lines, or Spec-Bench's question.jsonl",
        file_types=[".txt", ".jsonl", ".json"],
        height=120,
        visible=False,
        elem_id="sweep-prompt-file",
    )
    bad_lines = gr.Radio(
        [("refuse the file", "refuse"), ("skip them", "skip")],
        value="refuse",
        label="Lines that cannot be used",
        visible=False,
        elem_id="sweep-bad-lines",
    )
    limit = gr.Number(7, label="How many prompts (0 is all)", precision=0, elem_id="sweep-limit")
    source.change(
        lambda chosen: [
            gr.update(visible=chosen == BUILT_IN),
            gr.update(visible=chosen == PASTED),
            gr.update(visible=chosen == FILE),
            gr.update(visible=chosen != BUILT_IN),
        ],
        source,
        [kinds, pasted, file, bad_lines],
        **HIDDEN,
    )
    return {
        "source": source,
        "kinds": kinds,
        "pasted": pasted,
        "file": file,
        "bad_lines": bad_lines,
        "limit": limit,
    }


def more_inputs(host: Host) -> dict[str, Component]:
    """The rest; the components by field name."""
    most = host.max_new_tokens
    tokens = gr.Number(
        min(48, most),
        label=f"Max new tokens (at most {most:,})",
        precision=0,
        elem_id="sweep-tokens",
    )
    with gr.Accordion("More settings", open=False, elem_id="sweep-more"):
        return {
            "max_new_tokens": tokens,
            "repeats": gr.Number(1, label="Repeats", precision=0, elem_id="sweep-repeats"),
            "confidences": _line("0", "Confidence (0 is off)", "sweep-confidences"),
            "schedules": gr.CheckboxGroup(
                SCHEDULES, value=["constant"], label="Draft length", elem_id="sweep-schedules"
            ),
            "dtype": gr.Radio(
                [("automatic", "auto"), "bfloat16", "float32"],
                value="auto",
                label="Number format",
                elem_id="sweep-dtype",
            ),
        }


def _line(value: str, label: str, elem_id: str) -> gr.Textbox:
    return gr.Textbox(value, label=f"{label}, separated by commas", elem_id=elem_id, max_lines=1)
