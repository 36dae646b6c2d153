"""The trace file: a race as one JSON document, and reading it back strictly.

Nothing here imports torch: a trace replays on a machine that has only the standard library.
Reading is bounded before anything is built: by the size of the file, then by how many objects,
lists and values it can hold. What it holds is then read by the records' own types.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from specviz.records import Candidate, PromptToken, Run, Token, Trace
from specviz.trace.faults import MAX_TEXT, Fault, shown
from specviz.trace.reading import read_trace

__all__ = [
    "MAX_TEXT",
    "MAX_TRACE_BYTES",
    "TRACE_VERSION",
    "TraceError",
    "dump_trace",
    "load_trace",
    "to_plain",
]

TRACE_VERSION = 1
MAX_TRACE_BYTES = 12_000_000
MAX_MARKS = {"{": 100_000, ":": 500_000, "[": 500_000, ",": 1_700_000}
"""How often the characters that make objects, keys, lists and values may stand in a file: what
a hostile one can make of its bytes stays small."""


class TraceError(ValueError):
    """A trace that cannot be read or written; the message names the place in the file."""


# --- to plain values -----------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    """A record as JSON values. Fields that hold their default are left out, candidates are
    ``[id, text, probability]`` and prompt tokens ``[id, text]``, so that traces stay small."""
    if isinstance(value, Candidate):
        return [value.id, value.text, value.probability]
    if isinstance(value, PromptToken):
        return [value.id, value.text]
    if is_dataclass(value):
        return {
            f.name: to_plain(getattr(value, f.name))
            for f in fields(value)
            if not _is_default(f, getattr(value, f.name))
        }
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def _is_default(f: Any, value: Any) -> bool:
    return f.default is not MISSING and value == f.default


def dump_trace(trace: Trace) -> str:
    """The trace as one JSON document, which ``load_trace`` reads back as an equal record.

    A run too long for that is written without the baseline's candidates, or without any: they
    are for showing only. Raises ValueError on NaN or Infinity, TraceError where even that is too
    long.
    """
    for lanes in ((), ("baseline",), ("baseline", "speculative")):
        text = _document(replace(trace, runs=tuple(_slim(run, lanes) for run in trace.runs)))
        if len(text.encode()) <= MAX_TRACE_BYTES and _first_excess(text) is None:
            return text
    raise TraceError(
        f"the run is too long for a trace of {MAX_TRACE_BYTES // 1_000_000} MB; decode fewer tokens"
    )


def _document(trace: Trace) -> str:
    document = {"specviz_trace": TRACE_VERSION, **to_plain(trace)}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _slim(run: Run, lanes: tuple[str, ...]) -> Run:
    """The run without its candidates where its lane is one of ``lanes``."""
    if run.lane not in lanes:
        return run

    def bare(token: Token) -> Token:
        return replace(token, p_top=(), q_top=(), residual_top=())

    rounds = (
        replace(r, drafted=tuple(map(bare, r.drafted)), added=r.added and bare(r.added))
        for r in run.rounds
    )
    return replace(run, rounds=tuple(rounds))


# --- from text to plain values -------------------------------------------------------------


def load_trace(data: str | bytes) -> Trace:
    """Read a trace, strictly. Raises TraceError naming the place of the first fault."""
    document = _parsed(data)
    if not isinstance(document, dict) or "specviz_trace" not in document:
        raise TraceError('this is no specviz trace: it has no "specviz_trace" key')
    version = document.pop("specviz_trace")
    if type(version) is not int or version < 1:
        raise TraceError(f"specviz_trace: {shown(version)} is no version number")
    if version > TRACE_VERSION:
        raise TraceError(
            f"specviz_trace: version {shown(version)} is newer than this program reads"
            f" ({TRACE_VERSION}); update specviz to open it"
        )
    try:
        trace = read_trace(document)
    except Fault as fault:
        raise TraceError(f"trace{fault.place}: {fault.what}") from None
    return trace


def _parsed(data: str | bytes) -> Any:
    """The file as plain JSON values, bounded in size, depth and number."""
    if len(data) > MAX_TRACE_BYTES:
        raise TraceError(f"the file is larger than {MAX_TRACE_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        if (mark := _first_excess(text)) is not None:
            raise TraceError(f"the file holds more than {MAX_MARKS[mark]:,} times {mark!r}")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise TraceError(f"the file is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise TraceError(
            f"not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise TraceError("the file is nested too deeply") from None
    except TraceError:
        raise
    except ValueError as error:
        raise TraceError(f"the file holds a number that cannot be read: {error}") from None


def _first_excess(text: str) -> str | None:
    return next((mark for mark, most in MAX_MARKS.items() if text.count(mark) > most), None)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise TraceError(f"the key {shown(key)} stands twice in one object")
            seen.add(key)
    return result


def _no_constant(name: str) -> None:
    raise TraceError(f"{name} is not a number a trace may hold")
