"""The papers' formulas. alpha: acceptance rate of a tested token; gamma: tokens drafted in a
round; c: draft step time / target step time; v: time of the verifying call / target step time."""

from __future__ import annotations


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

    With v = 1, verifying as cheap as one step, it is Theorem 3.8 of arXiv 2211.17192.
    Raises ValueError when the costs are not positive.
    """
    if c < 0 or v <= 0:
        raise ValueError(f"costs must be positive: c {c}, v {v}")
    return expected_tokens(alpha, gamma) / (gamma * c + v)


def best_gamma(alpha: float, c: float, limit: int = 32) -> int:
    """The draft length with the highest expected speedup, 0 where drafting never pays."""
    return max(range(limit + 1), key=lambda gamma: speedup(alpha, gamma, c))
