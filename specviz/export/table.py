"""A trace as a table of tokens, one a line, for spreadsheets and notebooks."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator

from specviz.records import Run, Token, Trace

COLUMNS = (
    "lane",
    "round",
    "place",
    "position",
    "id",
    "text",
    "fate",
    "kept",
    "source",
    "p",
    "q",
    "u",
    "draft_s",
    "verify_s",
    "sample_s",
)
_WORDS = re.compile(r"\w[\w ]*")


def csv_table(trace: Trace) -> str:
    """Every token of every lane. ``text`` is a JSON string: quoted, so that line breaks are seen
    and no spreadsheet takes it for a formula. ``position`` counts the new tokens before it and is
    empty for those thrown away; the seconds are those of the token's round."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in trace.runs:
        writer.writerows(_rows(run))
    return out.getvalue()


def _rows(run: Run) -> Iterator[list[object]]:
    for round_ in run.rounds:
        times = [round_.draft_s, round_.verify_s, round_.sample_s]
        tokens = [*round_.drafted] + ([] if round_.added is None else [round_.added])
        position = round_.position
        for place, token in enumerate(tokens):
            kept = token.fate not in ("rejected", "discarded")
            where = position if kept else None
            yield [run.lane, round_.index, place, where, *_values(token, kept), *times]
            position += kept


def _values(token: Token, kept: bool) -> list[object]:
    text = json.dumps(token.text or token.label, ensure_ascii=False)
    source = token.source if _WORDS.fullmatch(token.source) else json.dumps(token.source)
    return [token.id, text, token.fate, int(kept), source, token.p, token.q, token.u]
