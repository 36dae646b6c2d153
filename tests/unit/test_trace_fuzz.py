"""Any damage to a real trace is either refused cleanly or gives a record that round-trips.

The cases are drawn by hypothesis from a fixed seed, so that every run of the tests tries the same
ones; those that once failed stand below as examples.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specviz.race import replay_events
from specviz.trace import TraceError, dump_trace, load_trace

FILES = sorted((Path(__file__).parent / "fixtures").glob("trace-v1-*.json"))
WHOLE = [file.read_bytes() for file in FILES]
FUZZ = settings(
    max_examples=1200,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**63, -(2**63), 10**30]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["", "accepted", "bonus", "baseline", "\ud800", "\x00", "x" * 300, "<script>"]),
    st.text(max_size=8),
    st.just([]),
    st.just({}),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(0, 3), max_size=2),
)


def places(value, path=()):
    """Every place of a document, as the path to it."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


PLACES = [list(places(document))[1:] for document in map(json.loads, WHOLE)]


def refused_or_round_trips(data) -> None:
    """The one thing that must hold, whatever the bytes are."""
    try:
        trace = load_trace(data)
    except TraceError:
        return
    saved = dump_trace(trace)
    assert load_trace(saved) == trace
    assert dump_trace(load_trace(saved.encode("utf-8"))) == saved
    json.dumps(list(replay_events(trace)), allow_nan=False)


def changed(which, where, how, value):
    """A document with one place replaced, removed, doubled or renamed."""
    document = json.loads(WHOLE[which])
    *path, last = PLACES[which][where % len(PLACES[which])]
    parent = document
    for step in path:
        parent = parent[step]
    if how == "replace":
        parent[last] = value
    elif how == "remove":
        del parent[last]
    elif how == "double" and isinstance(parent, list):
        parent.insert(last, copy.deepcopy(parent[last]))
    elif how == "swap" and isinstance(parent, list):
        parent[last], parent[0] = parent[0], parent[last]
    elif isinstance(parent, dict):
        parent[f"{last}x"] = parent.pop(last)
    return json.dumps(document, ensure_ascii=True)


@FUZZ
@given(
    st.integers(0, len(FILES) - 1),
    st.integers(0, 1_000_000),
    st.sampled_from(["replace", "replace", "replace", "remove", "double", "swap", "rename"]),
    VALUES,
)
@example(0, 0, "replace", 1e400)
@example(0, 0, "replace", "\ud800")
def test_a_document_with_a_damaged_place(which, where, how, value):
    refused_or_round_trips(changed(which, where, how, value))


@FUZZ
@given(
    st.integers(0, len(FILES) - 1),
    st.lists(
        st.tuples(
            st.sampled_from(["flip", "cut", "insert", "repeat"]),
            st.integers(0, 40_000),
            st.binary(min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=4,
    ),
)
@example(0, [("cut", 0, b"x")])
@example(0, [("insert", 1, b'"specviz_trace":1,')])
def test_bytes_that_were_damaged(which, damages):
    data = bytearray(WHOLE[which])
    for how, where, piece in damages:
        at = where % (len(data) + 1)
        if how == "flip":
            data[at : at + len(piece)] = piece
        elif how == "cut":
            del data[at:]
        elif how == "insert":
            data[at:at] = piece
        else:
            data[at:at] = data[at : at + 200]
    refused_or_round_trips(bytes(data))
