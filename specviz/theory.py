"""The papers' formulas. alpha: acceptance rate of a tested token; gamma: tokens drafted in a
round; c: draft step time / target step time; v(n): time of a target call on n tokens / on one.

arXiv 2211.17192 takes v(n) = 1. Here it is a straight line, v(n) = 1 + slope * (n - 1), which
is the paper's case at slope 0."""

from __future__ import annotations

from collections.abc import Callable

LONGEST_DRAFT = 32
STEPS = 24
"""Halvings of a bisection: they leave an error below 1e-7."""


def expected_tokens(alpha: float, gamma: int) -> float:
    """Expected tokens per target call, (1 - alpha^(gamma+1)) / (1 - alpha).

    Equation 1 of arXiv 2211.17192. Raises ValueError outside 0 <= alpha <= 1 or gamma < 0.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    if gamma < 0:
        raise ValueError(f"gamma cannot be negative, and is {gamma}")
    if alpha == 1:
        return gamma + 1.0
    return (1 - alpha ** (gamma + 1)) / (1 - alpha)


def speedup(alpha: float, gamma: int, c: float, v: float = 1.0) -> float:
    """Expected wall-clock speedup, E[tokens per round] / (gamma * c + v).

    ``v`` is the cost of the verifying call itself, v(gamma + 1). With v = 1, verifying as cheap
    as one step, it is Theorem 3.8 of arXiv 2211.17192. Raises ValueError when the costs are not
    positive.
    """
    if c < 0 or v <= 0:
        raise ValueError(f"costs must be positive: c {c}, v {v}")
    return expected_tokens(alpha, gamma) / (gamma * c + v)


def verify_cost(tokens: float, slope: float = 0.0) -> float:
    """v(n) = 1 + slope * (n - 1), the time of a target call on ``tokens`` tokens over one's."""
    return 1.0 + slope * (tokens - 1)


def verify_slope(tokens: float, v: float) -> float:
    """The slope of the line through v(1) = 1 and a measured v(``tokens``).

    0 where only calls on one token were measured, and never negative: a longer call that was
    timed as quicker than a shorter one is noise.
    """
    return max(0.0, (v - 1.0) / (tokens - 1.0)) if tokens > 1 else 0.0


def best_gamma(alpha: float, c: float, slope: float = 0.0, limit: int = LONGEST_DRAFT) -> int:
    """The draft length with the highest expected speedup, 0 where drafting never pays.

    Section 3.5 of arXiv 2211.17192; there with slope 0.
    """
    return max(range(limit + 1), key=lambda gamma: speedup_on_line(alpha, gamma, c, slope))


def speedup_on_line(alpha: float, gamma: int, c: float, slope: float) -> float:
    """``speedup`` with v(gamma + 1) taken from the straight line of ``verify_cost``."""
    return speedup(alpha, gamma, c, verify_cost(gamma + 1, slope))


def best_speedup(alpha: float, c: float, slope: float = 0.0, limit: int = LONGEST_DRAFT) -> float:
    """The expected speedup at the best draft length; 1 where drafting never pays."""
    return speedup_on_line(alpha, best_gamma(alpha, c, slope, limit), c, slope)


def break_even_alpha(gamma: int, c: float, v: float = 1.0) -> float | None:
    """The acceptance rate at which drafting ``gamma`` tokens pays for itself.

    None where not even alpha = 1 does: gamma + 1 tokens cost more than gamma * c + v.
    """
    return _least_alpha(lambda alpha: speedup(alpha, gamma, c, v), 1.0)


def alpha_of_best_speedup(
    level: float, c: float, slope: float = 0.0, limit: int = LONGEST_DRAFT
) -> float | None:
    """The acceptance rate that reaches ``level`` at the best draft length, None where none does.

    The points (c, alpha) of one level are a curve of equal speedup.
    """
    return _least_alpha(lambda alpha: best_speedup(alpha, c, slope, limit), level)


def _least_alpha(gain: Callable[[float], float], level: float) -> float | None:
    """Where ``gain``, which grows with alpha, reaches ``level``; by bisection."""
    if gain(1.0) < level:
        return None
    low, high = 0.0, 1.0
    if gain(low) >= level:
        return low
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if gain(middle) >= level else (middle, high)
    return high
