"""The sampled proof's arithmetic, against published values, torch, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specviz.lossless import statistics


@pytest.mark.parametrize(
    "x, degrees, tail",
    [(3.841459, 1, 0.05), (5.991465, 2, 0.05), (18.30704, 10, 0.05), (23.20925, 10, 0.01),
     (124.3421, 100, 0.05), (10.82757, 1, 0.001)],
)  # fmt: skip
def test_the_chi_square_tail_is_that_of_the_tables(x, degrees, tail):
    assert statistics.chi2_tail(x, degrees) == pytest.approx(tail, rel=1e-5)


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 30, 200])
def test_the_chi_square_tail_is_torchs_incomplete_gamma(degrees):
    for x in (0.0, 1e-6, 0.3, 1.0, 5.0, float(degrees), 3.0 * degrees, 400.0):
        half = torch.tensor([degrees / 2, x / 2], dtype=torch.float64)
        expected = torch.special.gammaincc(half[0], half[1]).item()
        assert statistics.chi2_tail(x, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_the_limit_is_where_the_tail_is_the_level():
    assert statistics.chi2_limit(10) == pytest.approx(18.30704, rel=1e-5)
    assert statistics.chi2_tail(statistics.chi2_limit(4, 0.001), 4) == pytest.approx(0.001)


def test_g_of_a_worked_table():
    # 2 * sum O ln(O / E) with E = 30, 20 in both rows.
    table = np.array([[40.0, 10.0], [20.0, 30.0]])
    expected = 2 * (40 * np.log(40 / 30) + 10 * np.log(0.5) + 20 * np.log(2 / 3) + 30 * np.log(1.5))
    assert statistics.g_statistic(table) == pytest.approx(expected)
    assert statistics.g_test(table) == pytest.approx(statistics.chi2_tail(expected, 1))
    assert statistics.g_test(np.array([[5.0], [5.0]])) is None


def test_equal_rows_have_no_g_and_a_p_value_of_one():
    assert statistics.g_test(np.array([[20.0, 30.0], [20.0, 30.0]])) == 1.0


def test_rare_texts_are_pooled_and_no_count_is_lost():
    first = ["a"] * 20 + ["b"] * 8 + ["c", "d", "e"]
    second = ["a"] * 18 + ["b"] * 9 + ["f", "g", "h", "c"]
    table = statistics.pooled(first, second)
    assert table.sum(1).tolist() == [31, 31]
    assert table[:, 0].tolist() == [20, 18]
    assert (table.sum(0) / 2 >= statistics.LEAST).all()


def test_two_samples_of_one_text_leave_nothing_to_test():
    table = statistics.pooled(["a"] * 30, ["a"] * 30)
    assert table.shape == (2, 1)
    assert statistics.g_test(table) is None


def samples(law, n, generator):
    return generator.choice(len(law), size=n, p=law).tolist()


def test_p_values_of_one_law_are_uniform():
    generator = np.random.default_rng(1)
    law = [0.3, 0.25, 0.2, 0.1, 0.06, 0.04, 0.03, 0.02]
    tables = [
        statistics.pooled(samples(law, 150, generator), samples(law, 150, generator))
        for _ in range(400)
    ]
    values = np.array([statistics.g_test(table) for table in tables])
    assert (values < 0.05).mean() == pytest.approx(0.05, abs=0.035)
    assert values.mean() == pytest.approx(0.5, abs=0.06)


def test_the_smallest_difference_is_found_as_often_as_is_said():
    generator = np.random.default_rng(2)
    n, classes = 200, 4
    d = statistics.smallest_seen(n, classes - 1)
    # The hardest difference of this size: every category moves in proportion to its share.
    law = np.full(classes, 0.25)
    other = law + d / 2 * np.array([1, 1, -1, -1])
    found = 0
    for _ in range(300):
        table = statistics.pooled(samples(law, n, generator), samples(other, n, generator))
        found += statistics.g_test(table) < statistics.LEVEL
    assert found / 300 == pytest.approx(statistics.POWER, abs=0.07)


def test_power_grows_from_the_level_to_one():
    assert statistics.power(0.0, 5) == pytest.approx(statistics.LEVEL, abs=1e-9)
    assert statistics.power(1.0, 5) < statistics.power(10.0, 5) < statistics.power(40.0, 5) <= 1
    assert statistics.smallest_seen(400, 5) < statistics.smallest_seen(100, 5)


def test_total_variation_and_its_interval():
    table = np.array([[60.0, 40.0], [40.0, 60.0]])
    found = statistics.distance(table)
    assert found.measured == pytest.approx(0.2)
    assert found.low < 0.2 < found.high
    assert found.by_chance < found.by_chance_95 < 0.2


def test_by_chance_alone_two_samples_of_one_law_are_apart():
    generator = np.random.default_rng(3)
    table = statistics.pooled(
        samples([0.5, 0.5], 50, generator), samples([0.5, 0.5], 50, generator)
    )
    assert statistics.distance(table).by_chance > 0.03
