"""The left column: what to run. Components, and reading them into one plain request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import gradio as gr
from gradio.components import Component

from specviz.drafters import best_gamma
from specviz.host import OWN_MACHINE, Host
from specviz.prompts import Prompt, built_in
from specviz.records import Schedule, Settings, SettingsError
from specviz.ui.elements import HIDDEN, Choice, pair_select

OTHER = "other"
Baseline = Literal["measure", "reuse", "off"]
GAMMA = (1, 16)


@dataclass(frozen=True, slots=True)
class Request:
    """Everything a race is made of, in plain values."""

    target: str
    draft: str
    drafter: str
    prompt: str
    settings: Settings
    dtype: str = "auto"
    baseline: Baseline = "measure"


@dataclass(frozen=True, slots=True)
class Controls:
    """The inputs of a run, in the order they are sent."""

    prompt: Component
    pair: Component
    target: Component
    draft: Component
    drafter: Component
    gamma: Component
    temperature: Component
    top_k: Component
    top_p: Component
    min_p: Component
    schedule: Component
    confidence: Component
    max_new_tokens: Component
    min_new_tokens: Component
    repetition_penalty: Component
    no_repeat_ngram_size: Component
    seed: Component
    stop: Component
    chat: Component
    long_prompt: Component
    dtype: Component
    baseline: Component

    def inputs(self) -> list[Component]:
        """Every control, as the inputs of an event."""
        return [getattr(self, f.name) for f in fields(self)]

    def read(self, values: Sequence[Any], pairs: dict[str, tuple[str, str]], host: Host) -> Request:
        """The request that the controls' values stand for. Raises SettingsError, also for what
        ``host`` does not allow."""
        given = {f.name: value for f, value in zip(fields(self), values, strict=True)}
        target, draft = pairs.get(given["pair"], ("", ""))
        if given["pair"] == OTHER and OTHER in pairs:
            target, draft = (str(given[name] or "").strip() for name in ("target", "draft"))
            host.check_models(target, draft, pairs.values())
        return request(
            host=host,
            target=target,
            draft=draft,
            **{
                name: value
                for name, value in given.items()
                if name not in ("pair", "target", "draft")
            },
        )


def request(
    *,
    host: Host = OWN_MACHINE,
    target: str,
    draft: str,
    drafter: str,
    prompt: str,
    dtype: str = "auto",
    baseline: str = "measure",
    **settings: Any,
) -> Request:
    """A checked request. Raises SettingsError saying what to change, also where the run is larger
    than ``host`` allows."""
    if not (prompt or "").strip():
        raise SettingsError("The prompt is empty. Write something to continue, or pick an example.")
    if not target:
        raise SettingsError("No target is chosen. Pick a pair, or type a Hub id or a local folder.")
    if baseline not in get_args(Baseline):
        raise SettingsError(f"baseline must be one of {', '.join(get_args(Baseline))}")
    numbers = {
        name: _number(name, value) for name, value in settings.items() if name not in _NO_NUMBERS
    }
    low, high = GAMMA
    if not low <= numbers.get("gamma", low) <= high:
        raise SettingsError(f"gamma must be from {low} to {high}, not {numbers['gamma']}")
    asked = Request(
        target=target,
        draft=draft,
        drafter=drafter,
        prompt=prompt,
        settings=Settings(
            **numbers,
            stop=stop_strings(settings.get("stop") or ""),
            schedule=settings.get("schedule", "constant"),
            long_prompt=settings.get("long_prompt", "refuse"),
            chat=bool(settings.get("chat", True)),
        ),
        dtype=dtype,
        baseline=baseline,  # type: ignore[arg-type]
    )
    host.check(asked.prompt, asked.settings.max_new_tokens)
    return asked


_NO_NUMBERS = ("stop", "chat", "schedule", "long_prompt")
_FRACTIONS = ("confidence", "temperature", "top_p", "min_p", "repetition_penalty")


def _number(name: str, value: Any) -> Any:
    if value is None or value == "":
        raise SettingsError(f"{name.replace('_', ' ')} is empty: type a number")
    if name not in _FRACTIONS and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def stop_strings(text: str) -> tuple[str, ...]:
    """One stop string a line; ``\\n`` written out stands for a line break."""
    return tuple(line.replace("\\n", "\n") for line in text.splitlines() if line)


def main_controls(
    choices: Sequence[Choice], drafters: Mapping[str, str], gamma: int
) -> dict[str, Component]:
    """Draw what everybody uses into the column that is open; the components by field name.
    ``drafters`` are names with a sentence on each; ``gamma`` is the pair's, for drafters that
    have no best draft length of their own."""
    examples = [prompt for prompt in built_in() if prompt.example]
    prompt = gr.Textbox(
        value=examples[0].text,
        label="Prompt",
        placeholder="Write something for the model to answer, or pick an example below.",
        lines=3,
        max_lines=10,
        elem_id="prompt",
    )
    _chips(examples, prompt)
    pair = pair_select(choices)
    with gr.Group(visible=False, elem_id="other-models") as other:
        target = gr.Textbox(
            label="Target", placeholder="Hub id or local folder", elem_id="target", max_lines=1
        )
        draft = gr.Textbox(
            label="Draft", placeholder="Hub id or local folder", elem_id="draft", max_lines=1
        )
    pair.input(lambda name: gr.update(visible=name == OTHER), pair, other, **HIDDEN)
    first = next(iter(drafters))
    drafter = gr.Radio(
        list(drafters),
        value=first,
        label="Guesses come from",
        info=drafters[first],
        elem_id="drafter",
    )
    drafter.change(lambda name: gr.update(info=drafters.get(name, "")), drafter, drafter, **HIDDEN)
    with gr.Row(elem_id="sliders"):
        sliders = {
            "gamma": gr.Slider(
                *GAMMA, best_gamma(first, gamma), step=1, label="Gamma", elem_id="gamma"
            ),
            "temperature": gr.Slider(
                0, 2, 0, step=0.05, label="Temperature", elem_id="temperature"
            ),
        }
    drafter.input(lambda name: best_gamma(name, gamma), drafter, sliders["gamma"], **HIDDEN)
    return {
        "prompt": prompt,
        "pair": pair,
        "target": target,
        "draft": draft,
        "drafter": drafter,
        **sliders,
    }


def _chips(examples: Sequence[Prompt], prompt: gr.Textbox) -> None:
    """One button an example. They work in the browser alone."""
    with gr.Row(elem_id="examples"):
        for example in examples:
            chip = gr.Button(example.example, size="sm", elem_classes="chip")
            chip.click(None, None, prompt, js=f"() => {json.dumps(example.text)}")


def more_controls(host: Host) -> dict[str, Component]:
    """Draw the rest, folded away; the components by field name."""
    most = host.max_new_tokens

    def number(name: str, label: str, value: float, whole: bool = True) -> gr.Number:
        return gr.Number(
            value, label=label, precision=0 if whole else None, elem_id=name, min_width=110
        )

    with gr.Accordion("More settings", open=False, elem_id="more-settings"):
        with gr.Row(elem_classes="numbers"):
            numbers = {
                "max_new_tokens": number(
                    "max_new_tokens", f"Max new tokens (at most {most:,})", min(128, most)
                ),
                "min_new_tokens": number("min_new_tokens", "Min new tokens", 0),
                "top_k": number("top_k", "Top-k (0 is off)", 0),
                "top_p": number("top_p", "Top-p (1 is off)", 1.0, whole=False),
                "min_p": number("min_p", "Min-p (0 is off)", 0.0, whole=False),
                "seed": number("seed", "Seed", 0),
                "repetition_penalty": number(
                    "repetition_penalty", "Repetition penalty (1 is off)", 1.0, whole=False
                ),
                "no_repeat_ngram_size": number(
                    "no_repeat_ngram_size", "No-repeat n-gram (0 is off)", 0
                ),
            }
        return numbers | {
            "schedule": gr.Radio(
                list(get_args(Schedule)),
                value="constant",
                label="Draft length",
                info="Constant drafts gamma tokens in every round. Adaptive starts there: two more"
                " after a round that was all right, one fewer after a rejection.",
                elem_id="schedule",
            ),
            "confidence": gr.Slider(
                0,
                1,
                0,
                step=0.05,
                label="Confidence (0 is off)",
                info="A draft ends early once its own probability that all of it is right falls"
                " below this.",
                elem_id="confidence",
            ),
            "stop": gr.Textbox(
                label="Stop strings",
                info="One a line; write \\n for a line break.",
                lines=1,
                max_lines=4,
                elem_id="stop-strings",
            ),
            "chat": gr.Checkbox(
                True,
                label="Wrap the prompt in the chat template",
                info="Off sends the raw text.",
                elem_id="chat",
            ),
            "long_prompt": gr.Radio(
                [("is refused", "refuse"), ("loses its beginning", "cut")],
                value="refuse",
                label="A prompt longer than the context",
                elem_id="long-prompt",
            ),
            "dtype": gr.Radio(
                [("automatic", "auto"), "bfloat16", "float32"],
                value="auto",
                label="Number format",
                info="float32 makes both lanes agree to the last token; bfloat16 is faster where"
                " the processor has it.",
                elem_id="dtype",
            ),
            "baseline": gr.Radio(
                [("measure", "measure"), ("reuse the last", "reuse"), ("off", "off")],
                value="measure",
                label="Baseline",
                info="The target alone, run side by side: without it there is no speedup to show."
                " The last one is reused only if prompt, target and settings are the same.",
                elem_id="baseline",
            ),
        }
