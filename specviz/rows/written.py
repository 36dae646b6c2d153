"""Rows as JSON values and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from specviz.metrics import COUNTS, FIGURES
from specviz.rows.setups import Setup
from specviz.rows.table import Row, Spread


def to_plain(row: Row) -> dict[str, Any]:
    """A row as JSON values: the setup's fields, the counts and figures by name, then the rest."""
    low, high = row.interval or (None, None)
    return {
        **asdict(row.setup),
        "kind": row.kind,
        "prompts": row.prompts,
        "runs": row.runs,
        **row.figures,
        "speedup_low": low,
        "speedup_high": high,
        "spread": {name: asdict(spread) for name, spread in row.spread.items()},
        "acceptance_by_position": list(row.positions),
        "accepted_lengths": list(row.lengths),
        "same_text": row.same,
        "compared": row.compared,
    }


def to_csv(table: Iterable[Row]) -> str:
    """Rows as CSV (RFC 4180), one heading line first; empty where nothing was measured."""
    out = io.StringIO()
    writer = csv.writer(out)
    per_run = [f"{name}_{part.name}" for name in FIGURES for part in fields(Spread)]
    setup = [field.name for field in fields(Setup)]
    ends = ["speedup_low", "speedup_high", "same_text", "compared"]
    heading = [*setup, "kind", "prompts", "runs", *COUNTS, *FIGURES, *ends]
    writer.writerow([*heading, *per_run])
    for row in table:
        plain = to_plain(row)
        spread = [
            getattr(row.spread.get(name), part.name, None)
            for name in FIGURES
            for part in fields(Spread)
        ]
        writer.writerow([_cell(plain[name]) for name in heading] + [_cell(v) for v in spread])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, whatever space stands before it, is kept
    a text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@"):
        return "'" + value
    return value
