"""A link that reopens the page with the same prompt and settings.

Everything stands in the link's own query; nothing is kept on the server.
"""

from __future__ import annotations

import html
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, get_args
from urllib.parse import urlencode

import gradio as gr

from specviz.host import Host
from specviz.records import LongPrompt, Schedule, SettingsError, Trace
from specviz.ui.controls import Controls
from specviz.ui.elements import HIDDEN, QUIET, element

MOST = 8_000
"""Characters of a link. Servers and mail programs cut longer ones."""

COPY_JS = """
watch("value", () => window.specviz.copyLink(JSON.parse(props.value).query));
"""


class LinkError(ValueError):
    """A link that cannot be made or followed; the message says why."""


def link_of(controls: Controls, values: Sequence[Any]) -> str:
    """The query of the controls' values, those left out that are as at first. Raises
    LinkError."""
    given = {f.name: value for f, value in zip(fields(controls), values, strict=True)}
    return _query(given, _initial(controls))


def link_of_trace(controls: Controls, trace: Trace, models: Mapping[str, str]) -> str:
    """The query that sets the page up for the run of a trace with these models, by the names of
    their controls. Raises LinkError."""
    run = trace.run("speculative")
    settings = asdict(trace.settings)
    settings["stop"] = "\n".join(stop.replace("\n", "\\n") for stop in trace.settings.stop)
    given = {"prompt": trace.prompt, **models, **settings}
    if run is not None:
        given["drafter"] = run.drafter
    return _query(given, _initial(controls))


def read_link(
    controls: Controls, query: Mapping[str, str], choices: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The controls' values that a query asks for, by field name. Raises LinkError for one that
    cannot be used. ``choices`` are the allowed values of fields that have a list."""
    initial = _initial(controls)
    found: dict[str, Any] = {}
    for name, text in query.items():
        if name not in initial:
            continue
        if name in choices and text not in choices[name]:
            raise LinkError(f"the link asks for {name} {text[:60]!r}, which there is not here")
        found[name] = _value(name, text, initial[name])
    return found


def _initial(controls: Controls) -> dict[str, Any]:
    return {f.name: getattr(controls, f.name).value for f in fields(controls)}


def _query(given: Mapping[str, Any], initial: Mapping[str, Any]) -> str:
    told = {
        name: int(value) if isinstance(value, bool) else value
        for name, value in given.items()
        if name in initial and (name == "prompt" or (value or "") != (initial[name] or ""))
    }
    query = urlencode(told)
    if len(query) > MOST:
        raise LinkError("the prompt is too long for a link; save the trace instead")
    return query


def _value(name: str, text: str, initial: Any) -> Any:
    """The text of a query as a value of the control's own type."""
    try:
        if isinstance(initial, bool):
            return bool(int(text))
        if isinstance(initial, (int, float)):
            number = float(text)
            return int(number) if number.is_integer() else number
    except (ValueError, OverflowError):
        raise LinkError(f"the link's {name} is no number: {text[:60]!r}") from None
    return text


def wire(
    page: gr.Blocks,
    controls: Controls,
    button: gr.Button,
    pairs: Mapping[str, tuple[str, str]],
    drafters: Sequence[str],
    host: Host,
) -> None:
    """Let ``button`` copy a link, and a link that is opened fill the controls in: whole, or not
    at all where it asks for something that ``host`` or the controls do not allow."""
    inputs = controls.inputs()
    copied = element("{}", "<span></span>", COPY_JS, "copied-link")
    choices = {
        "pair": [*pairs],
        "drafter": drafters,
        "schedule": get_args(Schedule),
        "long_prompt": get_args(LongPrompt),
        "dtype": ["auto", "bfloat16", "float32"],
    }

    def copy(*values: Any) -> str:
        try:
            query = link_of(controls, values)
        except LinkError as error:
            raise gr.Error(f"No link: {error}.", print_exception=False) from None
        return json.dumps({"query": query, "at": time.monotonic_ns()})

    def follow(request: gr.Request) -> dict[Any, Any]:
        try:
            found = read_link(controls, dict(request.query_params), choices)
            values = {**_initial(controls), **found}
            controls.read([values[f.name] for f in fields(controls)], dict(pairs), host)
        except (LinkError, SettingsError) as error:
            # Gradio takes a message for HTML, and this one names what the link asked for.
            gr.Warning(html.escape(f"The link was not followed: {error}", quote=False))
            return {controls.prompt: gr.skip()}
        return {getattr(controls, name): value for name, value in found.items()} or {
            controls.prompt: gr.skip()
        }

    button.click(copy, inputs, copied, **HIDDEN)
    # In the queue, since a warning can be shown from there alone.
    page.load(follow, None, inputs, concurrency_limit=None, **QUIET)
