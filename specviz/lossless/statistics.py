"""Whether two samples can come from one law: the G-test, total variation, and what they can see.

n is the size of each of the two samples; a category is a text. Pure Python and numpy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

LEAST = 5.0
"""Expected count below which a category is pooled: the chi-square law of G needs about this."""
LEVEL = 0.05
POWER = 0.8
RESAMPLES = 2000
PRECISION = 1e-15


def pooled(first: Sequence[Hashable], second: Sequence[Hashable]) -> np.ndarray:
    """Counts of both samples by category, [2, C], the commonest first.

    Categories with an expected count under LEAST become one, the last column. They are chosen by
    the counts of both samples together, so the choice favours neither.
    """
    counts = (Counter(first), Counter(second))
    both = counts[0] + counts[1]
    names = sorted(both, key=lambda name: (-both[name], str(name)))
    table = np.array([[count[name] for name in names] for count in counts], dtype=np.float64)
    kept = int((table.sum(0) / 2 >= LEAST).sum())
    rest = table[:, kept:].sum(1, keepdims=True)
    if kept and 0 < rest.sum() / 2 < LEAST:
        kept, rest = kept - 1, rest + table[:, kept - 1 : kept]
    return np.concatenate([table[:, :kept], rest], axis=1) if rest.sum() else table[:, :kept]


def total_variation(table: np.ndarray) -> np.ndarray:
    """Half the summed difference of the two rows' shares; ``table`` is [..., 2, C]."""
    shares = table / table.sum(-1, keepdims=True)
    return np.abs(shares[..., 0, :] - shares[..., 1, :]).sum(-1) / 2


def g_statistic(table: np.ndarray) -> float:
    """2 * sum of observed * ln(observed / expected) over a [2, C] table of counts."""
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    seen = table > 0
    return max(0.0, float(2 * (table[seen] * np.log(table[seen] / expected[seen])).sum()))


def g_test(table: np.ndarray) -> float | None:
    """The probability of a G this large if both rows came from one law; None where there is only
    one category and so nothing to tell apart."""
    degrees = table.shape[1] - 1
    return chi2_tail(g_statistic(table), degrees) if degrees > 0 else None


def chi2_tail(x: float, degrees: int) -> float:
    """P(chi-square with ``degrees`` degrees of freedom > x): the regularised upper incomplete
    gamma function Q(degrees / 2, x / 2), by series or continued fraction (Numerical Recipes,
    section 6.2)."""
    a, half = degrees / 2.0, x / 2.0
    if half <= 0:
        return 1.0
    scale = math.exp(a * math.log(half) - half - math.lgamma(a))
    if half < a + 1:
        return max(0.0, 1.0 - scale * _series(a, half))
    return scale * _fraction(a, half)


def _series(a: float, x: float) -> float:
    term = total = 1.0 / a
    while term > total * PRECISION:
        a += 1.0
        term *= x / a
        total += term
    return total


def _fraction(a: float, x: float) -> float:
    """Lentz's method."""
    tiny = 1e-300
    b = x + 1.0 - a
    c, d = 1.0 / tiny, 1.0 / b
    result, i = d, 0
    while True:
        i += 1
        factor = -i * (i - a)
        b += 2.0
        d = factor * d + b
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = b + factor / c
        c = c if abs(c) > tiny else tiny
        change = c * d
        result *= change
        if abs(change - 1.0) < PRECISION or i > 10_000:
            return result


def chi2_limit(degrees: int, level: float = LEVEL) -> float:
    """The x that a chi-square exceeds with probability ``level``."""
    low, high = 0.0, degrees + 20.0 * math.sqrt(2.0 * degrees) + 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if chi2_tail(middle, degrees) > level else (low, middle)
    return high


def power(shift: float, degrees: int, level: float = LEVEL) -> float:
    """P(non-central chi-square > the limit at ``level``), ``shift`` its non-centrality: a mixture
    of central ones with Poisson weights."""
    limit = chi2_limit(degrees, level)
    weight = math.exp(-shift / 2)
    total = seen = 0.0
    j = 0
    while seen < 1 - 1e-12 and j < 10_000:
        total += weight * chi2_tail(limit, degrees + 2 * j)
        seen += weight
        j += 1
        weight *= shift / 2 / j
    return total


def smallest_seen(n: int, degrees: int, level: float = LEVEL, wanted: float = POWER) -> float:
    """The total variation between the laws that a G-test on two samples of ``n`` finds with
    probability ``wanted`` at least, wherever the difference lies; never more than 1.

    Two laws at distance d give a non-centrality of (n / 2) * sum(delta^2 / pi), which by
    Cauchy-Schwarz is 2 * n * d^2 or more.
    """
    low, high = 0.0, 2.0 * n
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if power(middle, degrees, level) < wanted else (low, middle)
    return min(1.0, math.sqrt(high / (2 * n)))


@dataclass(frozen=True, slots=True)
class Distance:
    """The measured total variation, its bootstrap interval (percentiles 2.5 and 97.5), and what
    two samples of one law would show: the mean and the 95th percentile over shuffles."""

    measured: float
    low: float
    high: float
    by_chance: float
    by_chance_95: float


def distance(table: np.ndarray, seed: int = 0) -> Distance:
    """Total variation of a [2, C] table of counts, both rows of one sum."""
    generator = np.random.default_rng(seed)
    n = int(table[0].sum())
    rows = [generator.multinomial(n, row / row.sum(), RESAMPLES) for row in table]
    resampled = total_variation(np.stack(rows, axis=1))
    both = table.sum(0).astype(np.int64)
    half = generator.multivariate_hypergeometric(both, n, RESAMPLES)
    shuffled = total_variation(np.stack([half, both - half], axis=1))
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Distance(
        float(total_variation(table)),
        float(low),
        float(high),
        float(shuffled.mean()),
        float(np.percentile(shuffled, 95)),
    )
