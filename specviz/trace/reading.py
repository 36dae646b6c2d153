"""Plain JSON values to records, by the records' own types."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal

from specviz.records import Candidate, PromptToken, SettingsError, Trace
from specviz.trace.checks import CHECKS
from specviz.trace.faults import MAX_INT, MAX_LIST, MAX_NUMBER, MAX_TEXT, Fault, shown


def read_trace(value: Any) -> Trace:
    """The trace that a JSON object stands for. Raises Fault with its place."""
    trace: Trace = _reader(Trace)(value)
    return trace


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """The function that reads a plain value as the type ``kind``, or raises Fault."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _object_reader(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _choice_reader(arguments)
    if origin is types.UnionType:
        inner = _reader(next(a for a in arguments if a is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        return _ROWS.get(arguments[0]) or _list_reader(_reader(arguments[0]))
    if origin is Mapping:
        return _read_names
    return _SCALARS[kind]


def _object_reader(kind: Any) -> Callable[[Any], Any]:
    hints = typing.get_type_hints(kind)
    readers = {f.name: _reader(hints[f.name]) for f in fields(kind)}
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    check = CHECKS.get(kind)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Fault(f"expected an object, found {shown(value)}")
        for name in needed:
            if name not in value:
                raise Fault(f"the key {name!r} is missing")
        values = {}
        for key, item in value.items():
            if key not in readers:
                raise Fault(f"unknown key {shown(key)}")
            try:
                values[key] = readers[key](item)
            except Fault as fault:
                fault.place = f".{key}{fault.place}"
                raise
        try:
            record = kind(**values)
        except SettingsError as error:
            raise Fault(str(error)) from None
        if check is not None:
            check(record)
        return record

    return read


def _list_reader(inner: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def read(value: Any) -> tuple[Any, ...]:
        items = []
        for i, item in enumerate(_list(value)):
            try:
                items.append(inner(item))
            except Fault as fault:
                fault.place = f"[{i}]{fault.place}"
                raise
        return tuple(items)

    return read


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise Fault(f"expected a list, found {shown(value)}")
    if len(value) > MAX_LIST:
        raise Fault(f"{len(value)} items are more than {MAX_LIST}")
    return value


def _choice_reader(choices: tuple[Any, ...]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not str or value not in choices:
            raise Fault(f"{shown(value)} is none of {', '.join(choices)}")
        return value

    return read


def _read_names(value: Any) -> dict[str, str]:
    if type(value) is not dict or len(value) > 100:
        raise Fault("expected an object of at most 100 entries")
    return {_read_text(key): _read_text(item) for key, item in value.items()}


def _read_text(value: Any) -> str:
    if type(value) is not str:
        raise Fault(f"expected str, found {shown(value)}")
    if len(value) > MAX_TEXT:
        raise Fault(f"the text is longer than {MAX_TEXT} characters")
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise Fault("the text holds half a surrogate pair")
    return value


def _read_int(value: Any) -> int:
    if type(value) is not int:
        raise Fault(f"expected int, found {shown(value)}")
    if abs(value) >= MAX_INT:
        raise Fault(f"{shown(value)} is out of range")
    return value


def _read_float(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise Fault(f"expected float, found {shown(value)}")
    if abs(value) > MAX_NUMBER:
        raise Fault(f"{shown(value)} is out of range")
    return float(value)


def _read_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise Fault(f"expected bool, found {shown(value)}")
    return value


def _read_candidate(row: Any) -> Candidate:
    if type(row) is not list or len(row) != 3:
        raise Fault(f"expected a list of 3, found {shown(row)}")
    token, text, probability = row
    if type(token) is not int or not 0 <= token < MAX_INT:
        raise Fault(f"{shown(token)} is no token id", "[0]")
    if type(probability) not in (float, int) or not 0 <= probability <= 1:
        raise Fault(f"{shown(probability)} is not between 0 and 1", "[2]")
    return Candidate(token, _read_text(text), float(probability))


def _read_prompt_token(row: Any) -> PromptToken:
    if type(row) is not list or len(row) != 2:
        raise Fault(f"expected a list of 2, found {shown(row)}")
    token, text = row
    if type(token) is not int or not 0 <= token < MAX_INT:
        raise Fault(f"{shown(token)} is no token id", "[0]")
    return PromptToken(token, _read_text(text))


_SCALARS: dict[Any, Callable[[Any], Any]] = {
    str: _read_text,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
}
_ROWS: dict[Any, Callable[[Any], Any]] = {
    Candidate: _list_reader(_read_candidate),
    PromptToken: _list_reader(_read_prompt_token),
}
