"""The trace file: a race as one JSON document, and reading it back strictly.

Nothing here imports torch: a trace replays on a machine that has only the standard library.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal

from specviz.records import Candidate, PromptToken, Round, SettingsError, Token, Trace

TRACE_VERSION = 1
MAX_TRACE_BYTES = 32_000_000
MAX_TEXT = 1_000_000
MAX_ITEMS = 200_000


class TraceError(ValueError):
    """A trace that cannot be read; the message names the place in the file."""


# --- to plain values -----------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    """A record as JSON values. Fields that hold their default are left out, candidates are
    ``[id, text, probability]`` and prompt tokens ``[id, text]``, so that traces stay small."""
    if isinstance(value, Candidate):
        return [value.id, value.text, _short(value.probability)]
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
    return _short(value) if isinstance(value, float) else value


def _is_default(f: Any, value: Any) -> bool:
    return f.default is not MISSING and value == f.default


def _short(value: float) -> float:
    """Six significant digits: microseconds and probabilities need no more."""
    return float(f"{value:.6g}")


def dump_trace(trace: Trace) -> str:
    """The trace as one JSON document. Raises ValueError on NaN or Infinity."""
    document = {"specviz_trace": TRACE_VERSION, **to_plain(trace)}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


# --- from plain values ---------------------------------------------------------------------


def load_trace(data: str | bytes) -> Trace:
    """Read a trace, strictly. Raises TraceError naming the place of the first fault."""
    if len(data) > MAX_TRACE_BYTES:
        raise TraceError(f"the file is larger than {MAX_TRACE_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
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
    if not isinstance(document, dict) or "specviz_trace" not in document:
        raise TraceError('this is no specviz trace: it has no "specviz_trace" key')
    version = document.pop("specviz_trace")
    if type(version) is not int or version < 1:
        raise TraceError(f"specviz_trace: {version!r} is no version number")
    if version > TRACE_VERSION:
        raise TraceError(
            f"specviz_trace: version {version} is newer than this program reads"
            f" ({TRACE_VERSION}); update specviz to open it"
        )
    trace = _read(Trace, document, "trace")
    _check_trace(trace)
    return trace


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise TraceError(f"the key {key[:80]!r} stands twice in one object")
            seen.add(key)
    return result


def _no_constant(name: str) -> None:
    raise TraceError(f"{name} is not a number a trace may hold")


def _read(kind: Any, value: Any, place: str) -> Any:
    """``value`` as the type ``kind``, or TraceError naming ``place``."""
    if kind is Candidate or kind is PromptToken:
        return _read_row(kind, value, place)
    if isinstance(kind, type) and is_dataclass(kind):
        return _read_object(kind, value, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value not in arguments or not isinstance(value, str):
            raise TraceError(f"{place}: {_shown(value)} is none of {', '.join(arguments)}")
        return value
    if origin is types.UnionType:
        if value is None:
            return None
        return _read(next(a for a in arguments if a is not type(None)), value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise TraceError(f"{place}: expected a list, found {_shown(value)}")
        if len(value) > MAX_ITEMS:
            raise TraceError(f"{place}: {len(value)} items are more than {MAX_ITEMS}")
        return tuple(_read(arguments[0], item, f"{place}[{i}]") for i, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, dict) or len(value) > 100:
            raise TraceError(f"{place}: expected an object of at most 100 entries")
        return {key: _read(str, item, f"{place}.{key[:80]}") for key, item in value.items()}
    return _read_scalar(kind, value, place)


def _read_scalar(kind: Any, value: Any, place: str) -> Any:
    if kind is float and type(value) in (int, float):
        if abs(value) > 1e15:
            raise TraceError(f"{place}: {_shown(value)} is out of range")
        return float(value)
    if type(value) is not kind:
        raise TraceError(f"{place}: expected {kind.__name__}, found {_shown(value)}")
    if kind is int and abs(value) >= 2**63:
        raise TraceError(f"{place}: {_shown(value)} is out of range")
    if kind is str:
        if len(value) > MAX_TEXT:
            raise TraceError(f"{place}: the text is longer than {MAX_TEXT} characters")
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise TraceError(f"{place}: the text holds half a surrogate pair")
    return value


def _read_row(kind: Any, value: Any, place: str) -> Any:
    names = fields(kind)
    if not isinstance(value, list) or len(value) != len(names):
        raise TraceError(f"{place}: expected a list of {len(names)}, found {_shown(value)}")
    hints = _hints(kind)
    return kind(
        *(_read(hints[f.name], v, f"{place}.{f.name}") for f, v in zip(names, value, strict=True))
    )


def _read_object(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise TraceError(f"{place}: expected an object, found {_shown(value)}")
    hints = _hints(kind)
    for key in value:
        if key not in hints:
            raise TraceError(f"{place}: unknown key {key[:80]!r}")
    for f in fields(kind):
        if f.name not in value and f.default is MISSING and f.default_factory is MISSING:
            raise TraceError(f"{place}: the key {f.name!r} is missing")
    values = {key: _read(hints[key], item, f"{place}.{key}") for key, item in value.items()}
    try:
        return kind(**values)
    except SettingsError as error:
        raise TraceError(f"{place}: {error}") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_trace(trace: Trace) -> None:
    """What types alone cannot say: ranges, and that the rounds tell one story."""
    lanes = [run.lane for run in trace.runs]
    if not lanes or len(set(lanes)) != len(lanes):
        raise TraceError("trace.runs: expected one speculative run, one baseline run, or both")
    for r, run in enumerate(trace.runs):
        place = f"trace.runs[{r}]"
        for name in ("prefill_s", "draft_prefill_s", "observe_s"):
            _require(getattr(run, name) >= 0, f"{place}.{name}", "seconds cannot be negative")
        position = 0
        for i, round_ in enumerate(run.rounds):
            _check_round(round_, i, position, f"{place}.rounds[{i}]")
            position += len(round_.committed)
        _require(
            run.text_end is None or 0 <= run.text_end <= sum(len(t.text) for t in run.tokens),
            f"{place}.text_end",
            "lies outside the text",
        )


def _check_round(round_: Round, index: int, position: int, place: str) -> None:
    _require(round_.index == index, f"{place}.index", f"expected {index}")
    _require(round_.position == position, f"{place}.position", f"expected {position}")
    for name in ("draft_s", "verify_s", "sample_s"):
        _require(getattr(round_, name) >= 0, f"{place}.{name}", "seconds cannot be negative")
    fates = [token.fate for token in round_.drafted]
    accepted = round_.accepted
    pattern = ["accepted"] * accepted
    if len(fates) > accepted and round_.added is not None:
        pattern.append("rejected")
    pattern += ["discarded"] * (len(fates) - len(pattern))
    _require(fates == pattern, f"{place}.drafted", "the fates are in an impossible order")
    if round_.added is None:
        _require(accepted > 0, f"{place}.added", "a round that adds nothing must accept something")
    else:
        expected = "target" if not fates else "bonus" if accepted == len(fates) else "resampled"
        found = round_.added.fate
        _require(found == expected, f"{place}.added.fate", f"expected {expected}, found {found}")
    for t, token in enumerate(_tokens(round_)):
        _check_token(token, len(round_.drafted), f"{place}, token {t}")


def _tokens(round_: Round) -> Iterator[Token]:
    yield from round_.drafted
    if round_.added is not None:
        yield round_.added


def _check_token(token: Token, drafted: int, place: str) -> None:
    _require(token.id >= 0, f"{place}.id", "cannot be negative")
    _require(-1 <= token.parent < max(drafted, 1), f"{place}.parent", "points outside the round")
    for name in ("p", "q", "u"):
        value = getattr(token, name)
        _require(value is None or 0 <= value <= 1, f"{place}.{name}", "is not between 0 and 1")
    for name in ("copied_from", "matched"):
        value = getattr(token, name)
        _require(value is None or value >= 0, f"{place}.{name}", "cannot be negative")
    for name in ("p_top", "q_top", "residual_top"):
        for candidate in getattr(token, name):
            within = candidate.id >= 0 and 0 <= candidate.probability <= 1
            _require(within, f"{place}.{name}", "holds an id or probability out of range")


def _require(holds: bool, place: str, what: str) -> None:
    if not holds:
        raise TraceError(f"{place}: {what}")
