"""The formulas beyond the paper's own: v(n), the break-even, curves of equal speedup."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specviz import theory

PUBLISHED = Path(__file__).parents[2] / "assets" / "published.json"


def test_without_a_slope_it_is_the_paper():
    for alpha, gamma, c in [(0.5, 3, 0.1), (0.9, 7, 0.02), (1.0, 2, 0.3)]:
        assert theory.speedup_on_line(alpha, gamma, c, 0.0) == theory.speedup(alpha, gamma, c)


def test_a_verifying_call_that_costs_more_shortens_the_best_draft():
    assert theory.best_gamma(0.8, 0.05, 0.1) < theory.best_gamma(0.8, 0.05)
    assert theory.best_gamma(0.2, 0.05, 0.5) == 0


def test_the_line_goes_through_what_was_measured():
    slope = theory.verify_slope(5, 1.2)
    assert theory.verify_cost(1, slope) == 1
    assert theory.verify_cost(5, slope) == pytest.approx(1.2)
    assert theory.verify_slope(5, 0.9) == 0
    assert theory.verify_slope(1, 1.3) == 0


@pytest.mark.parametrize(("gamma", "c", "v"), [(1, 0.3, 1.0), (4, 0.1, 1.1), (8, 0.05, 1.3)])
def test_at_the_break_even_the_speedup_is_one(gamma, c, v):
    alpha = theory.break_even_alpha(gamma, c, v)
    assert theory.speedup(alpha, gamma, c, v) == pytest.approx(1, abs=1e-5)


def test_a_draft_as_slow_as_the_target_never_breaks_even():
    assert theory.break_even_alpha(4, 1.1) is None
    assert theory.break_even_alpha(4, 0.0) == 0


@pytest.mark.parametrize("c", [0.0, 0.1, 0.3])
def test_every_point_of_a_curve_has_its_speedup(c):
    alpha = theory.alpha_of_best_speedup(1.5, c, 0.02)
    assert theory.best_speedup(alpha, c, 0.02) == pytest.approx(1.5, abs=1e-4)


def test_a_level_that_nothing_reaches_has_no_curve():
    assert theory.alpha_of_best_speedup(5.0, 0.9) is None


def test_published_results_name_their_source_and_lie_where_the_paper_has_them():
    rows = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    assert len(rows) == 15
    assert all(row["url"].startswith("https://arxiv.org/abs/2") for row in rows)
    assert all(row["url"].rpartition("/")[2] in row["source"] for row in rows)
    first = [theory.speedup(row["alpha"], row["gamma"], row["c"]) for row in rows[:3]]
    assert first == [pytest.approx(v, abs=0.06) for v in (3.2, 3.3, 2.5)]
