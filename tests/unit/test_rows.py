"""The table of a sweep equals a recomputation from the rounds."""

from __future__ import annotations

import csv
import io
import statistics

import pytest
from sweeps import measured, pairs, plan

from specviz.metrics import COUNTS, FIGURES
from specviz.rows import Setup, Table, rows, to_csv, to_plain
from specviz.sweep import Sweep

PLAIN = [(0, 0)] * 4


def made():
    """Two prompts: one at 1.5x, one at 0.5x."""
    return [
        measured([(2, 2, 0.5, 1.5)], PLAIN, "1", "code"),
        measured([(0, 2, 0.5, 1.5)], PLAIN, "2", "story"),
    ]


@pytest.fixture(scope="module")
def sweep():
    sweep = Sweep(pairs(), plan(repeats=2))
    while not sweep.finished:
        sweep.advance()
    return sweep


def test_a_row_pools_all_rounds_and_spreads_run_by_run():
    (row,) = rows(made())
    assert (row.prompts, row.runs, row.kind) == (2, 2, "")
    assert row.figures["tokens"] == 4
    assert row.speedup == pytest.approx((4 / 4) / 1)
    assert row.spread["speedup"].mean == pytest.approx(statistics.fmean([1.5, 0.5]))
    assert row.spread["speedup"].deviation == pytest.approx(statistics.stdev([1.5, 0.5]))
    assert row.figures["tar"] == pytest.approx(2 / 4)
    assert row.figures["alpha"] == pytest.approx(2 / 3)
    assert row.figures["end_to_end_speedup"] == pytest.approx((4 / 5) / (8 / 9))


def test_rows_by_kind_hold_their_own_runs_alone():
    code, story = rows(made(), by_kind=True)
    assert (code.kind, code.speedup) == ("code", pytest.approx(1.5))
    assert (story.kind, story.speedup) == ("story", pytest.approx(0.5))


def test_every_number_of_the_table_equals_a_recomputation_from_the_rounds(sweep):
    for row in rows(sweep.measured):
        group = [one for one in sweep.measured if one.setup == row.setup]
        rounds = [r for one in group for r in one.run.rounds]
        drafted = [token for r in rounds for token in r.drafted]
        accepted = sum(token.fate == "accepted" for token in drafted)
        tested = sum(token.fate != "discarded" for token in drafted)
        tokens = sum(len(r.committed) for r in rounds)
        seconds = sum(r.draft_s + r.verify_s + r.sample_s for r in rounds)
        plain = [r for one in group for r in one.baseline.rounds]
        alone = sum(r.seconds for r in plain) / len(plain)
        step = sum(r.verify_s for r in plain) / len(plain)
        draft_s = sum(r.draft_s for r in rounds)
        expected = {
            "tokens": tokens,
            "target_calls": len(rounds),
            "drafted": len(drafted),
            "tested": tested,
            "accepted": accepted,
            "tar": accepted / len(drafted) if drafted else None,
            "alpha": accepted / tested if tested else None,
            "tokens_per_target_call": tokens / len(rounds),
            "tokens_per_s": tokens / seconds,
            "baseline_tokens_per_s": 1 / alone,
            "speedup": alone * tokens / seconds,
            "cost_ratio": draft_s / len(drafted) / step if drafted else None,
            "verify_ratio": sum(r.verify_s for r in rounds) / len(rounds) / step,
        }
        for name, value in expected.items():
            assert row.figures[name] == (value if value is None else pytest.approx(value)), name


def test_a_table_that_grows_equals_one_made_at_once(sweep):
    table = Table()
    for one in sweep.measured:
        table.add(one)
        table.rows()
    assert table.rows() == rows(sweep.measured)


def test_the_interval_holds_the_figure_and_needs_two_prompts():
    one = measured([(2, 2, 0.5, 1.5)], PLAIN)
    again = measured([(0, 2, 0.5, 1.5)], PLAIN, repeat=1)
    assert rows([one, again])[0].interval is None
    low, high = rows(made())[0].interval
    assert low == pytest.approx(0.5)
    assert high == pytest.approx(1.5)
    assert rows(made())[0].interval == (low, high), "the draw is seeded"


def test_what_was_not_measured_stays_empty():
    (row,) = rows([measured([(0, 0)] * 4, PLAIN)])
    assert row.figures["tar"] is row.figures["alpha"] is row.figures["cost_ratio"] is None
    assert "tar" not in row.spread
    cells = next(csv.DictReader(io.StringIO(to_csv([row]))))
    assert cells["tar"] == cells["alpha_mean"] == cells["speedup_low"] == ""


def test_csv_has_every_metric_and_no_formula():
    setup = Setup("=HYPERLINK(1)", "N", gamma=2)
    text = to_csv(rows([measured([(2, 2)], PLAIN, setup=setup)]))
    (cells,) = csv.DictReader(io.StringIO(text))
    assert {*COUNTS, *FIGURES, "speedup_low", "tar_median"} <= set(cells)
    assert cells["drafter"] == "'=HYPERLINK(1)"
    assert float(cells["speedup"]) == pytest.approx(3.0)


def test_a_row_is_plain_json_values():
    plain = to_plain(rows(made())[0])
    assert plain["acceptance_by_position"] == [0.5, 0.5]
    assert plain["accepted_lengths"] == [1, 0, 1]
    assert plain["spread"]["speedup"]["median"] == pytest.approx(1.0)
