"""The texts of tests/ui/injections.json where they leave the page: terminals and spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from small_trace import token, trace
from sweeps import measured

from specviz.cli.terminal import TextPrinter, one_line, printable
from specviz.export.table import csv_table
from specviz.race import replay_events
from specviz.rows import Setup, rows, to_csv

CORPUS = json.loads(
    (Path(__file__).parents[1] / "ui" / "injections.json").read_text(encoding="utf-8")
)
TEXTS = [entry["text"] for entry in CORPUS]
RETURNS = "\n\t"
REORDERS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FORMULA = ("=", "+", "-", "@")


def moves_the_terminal(text: str) -> bool:
    """Whether anything in ``text`` is an order to a terminal, or reorders what stands there."""
    orders = [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c not in RETURNS]
    return bool(orders) or any(c in REORDERS for c in text)


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet would compute it."""
    return cell.lstrip().startswith(FORMULA) and not _number(cell)


def _number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("text", TEXTS, ids=[entry["name"] for entry in CORPUS])
def test_no_text_gives_orders_to_the_terminal(text):
    assert not moves_the_terminal(printable(text))
    assert not moves_the_terminal(one_line(text))
    assert "\n" not in one_line(text)
    out = io.StringIO()
    shown = TextPrinter(out, show_rejected=True)
    for event in replay_events(trace(text)):
        shown.show(event)
    assert printable(text).strip() in out.getvalue()
    assert not moves_the_terminal(out.getvalue())


def test_the_corpus_does_give_orders():
    assert sum(map(moves_the_terminal, TEXTS)) >= 5
    assert sum(map(is_formula, TEXTS)) >= 6


def test_no_text_of_a_trace_becomes_a_formula():
    for text in TEXTS:
        made = trace(text)
        drafted = replace(token(text, "accepted", text), source=text)
        first = replace(made.runs[0].rounds[0], drafted=(drafted,))
        run = replace(made.runs[0], drafter=text, rounds=(first, *made.runs[0].rounds[1:]))
        table = list(csv.reader(io.StringIO(csv_table(replace(made, runs=(run,))))))
        assert len({len(row) for row in table}) == 1
        assert not any(is_formula(cell) for row in table for cell in row)


def test_no_name_in_a_sweep_becomes_a_formula():
    for text in TEXTS:
        one = measured([(2, 2)], [(0, 0)] * 4, text, text, Setup(text, text))
        table = list(csv.reader(io.StringIO(to_csv(rows([one])), newline="")))
        assert not any(is_formula(cell) for row in table for cell in row)
