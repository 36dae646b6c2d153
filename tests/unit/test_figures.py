"""Figures of a sweep show the rows they were made from."""

from __future__ import annotations

import json

import pytest
from sweeps import measured

from specviz import figures, theory
from specviz.rows import Setup, rows

PLAIN = [(0, 0, 0.0, 1.0)] * 8
DRAFT = [Setup("draft model", "N", gamma) for gamma in (2, 4)]
LOOKUP = Setup("prompt <b>lookup</b>", "", 2)


@pytest.fixture(scope="module")
def runs():
    made = []
    for setup, accepted in ((DRAFT[0], 2), (DRAFT[1], 1), (LOOKUP, 0)):
        rounds = [(accepted, setup.gamma, 0.1 * setup.gamma, 1.1)] * 4
        for prompt, kind in (("1", "code"), ("2", "code"), ("3", "a < b")):
            made.append(measured(rounds, PLAIN, prompt, kind, setup))
    return made


def test_the_heatmap_has_every_speedup_and_a_dash_where_nothing_was_measured(runs):
    table = rows(runs)
    heat = figures.speedup_by_gamma(table).data[0]
    assert list(heat.z[0]) == [row.speedup for row in table[:2]]
    assert list(heat.text[1]) == [f"{table[2].speedup:.2f}x", "\u2014"]
    assert heat.z[1][1] is None
    assert heat.zmid == 1


def test_kinds_are_shown_at_the_gamma_that_was_fastest_with_its_interval(runs):
    by_kind = rows(runs, by_kind=True)
    figure = figures.speedup_by_kind(rows(runs), by_kind)
    trace = figure.data[0]
    assert trace.name == "draft model, N, gamma 2"
    own = {row.kind: row for row in by_kind if row.setup == DRAFT[0]}
    assert trace.x == (own["code"].speedup, own["a < b"].speedup)
    assert trace.error_x.array[1] is None, "one prompt alone has no interval"
    assert figure.layout.shapes[0].x0 == 1


def test_acceptance_by_position_is_the_rows_own(runs):
    table = rows(runs)
    trace = figures.acceptance_by_position(table).data[0]
    assert trace.name == "draft model, N, gamma 4"
    assert trace.y == table[1].positions


def test_measured_points_stand_among_curves_of_equal_speedup(runs):
    table = rows(runs)
    figure = figures.latency_against_acceptance(table)
    points = next(trace for trace in figure.data if trace.name == "draft model, N")
    assert points.x == tuple(row.figures["cost_ratio"] for row in table[:2])
    assert points.y == tuple(row.figures["alpha"] for row in table[:2])
    curve = next(trace for trace in figure.data if trace.text and trace.text[-1] == "2x")
    slope = figures._slope(table)
    for c, alpha in list(zip(curve.x, curve.y, strict=True))[::6]:
        assert theory.best_speedup(alpha, c, slope, 16) == pytest.approx(2, abs=1e-3)


def test_names_from_a_file_cannot_become_markup(runs):
    text = "".join(f.to_json() for f in figures.sweep_figures(rows(runs), rows(runs, True)))
    assert "<b>" not in text
    assert "&lt;b&gt;" in json.loads(json.dumps(text))


def test_every_figure_has_a_title_a_caption_and_units(runs):
    for figure in figures.sweep_figures(rows(runs), rows(runs, by_kind=True)):
        assert figure.layout.meta["title"]
        assert figure.layout.meta["caption"].endswith((".", "only."))
        assert figure.layout.xaxis.title.text
        json.loads(figure.to_json())


def test_without_rows_there_is_no_figure():
    assert figures.sweep_figures([], []) == []
