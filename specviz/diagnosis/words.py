"""What a diagnosis consists of, and how its numbers are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specviz.rows import Setup

DASH = "\u2014"
NOTICEABLE = 1.01


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that keeps a run from being faster: the speedup with it, ``before``, and what it
    would be without, ``after``."""

    name: str
    before: float
    after: float
    words: str

    @property
    def gain(self) -> float:
        """How many times faster without it."""
        return self.after / self.before

    @property
    def noticeable(self) -> bool:
        """Whether it is worth a sentence."""
        return self.gain >= NOTICEABLE


@dataclass(frozen=True, slots=True)
class Advice:
    """What to run instead; without a ``setup`` the target alone.

    ``predicted`` is the speedup expected of it; ``measured`` the one that was measured, with its
    95 % interval, None where it was not.
    """

    setup: Setup | None
    predicted: float | None
    measured: float | None
    interval: tuple[float, float] | None
    words: str


@dataclass(frozen=True, slots=True)
class Point:
    """A measured run as a point among the curves of theory. Intervals are 95 %.

    ``gamma`` is the setting, ``drafted`` the tokens really drafted a round; ``v`` the cost of the
    verifying call and ``slope`` that of each further token in it.
    """

    alpha: float
    alpha_interval: tuple[float, float] | None
    gamma: int
    drafted: float
    c: float
    v: float
    slope: float
    tokens_per_round: float
    speedup: float
    speedup_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``headline`` in one sentence, ``facts`` as measured, ``limits`` the weightiest first.
    ``speedup`` is the measured one."""

    headline: str
    speedup: float | None = None
    facts: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    advice: Advice | None = None
    point: Point | None = None


def times(value: float | None) -> str:
    """A speedup."""
    return DASH if value is None else f"{value:.2f}x"


def between(interval: tuple[float, float] | None) -> str:
    """An interval, as a remark behind its figure; nothing where there is none."""
    if interval is None:
        return ""
    return f" (95 % interval {interval[0]:.2f} to {interval[1]:.2f})"


def steps(value: float | None) -> str:
    """A time in target steps."""
    return DASH if value is None else f"{value:.2f}"


def share(value: float | None) -> str:
    """A part of a whole."""
    return DASH if value is None else f"{100 * value:.0f} %"


def listed(values: Sequence[float | None]) -> str:
    """Shares by place: the first, the second, ..."""
    return ", ".join(share(value) for value in values)


def tokens(count: float) -> str:
    """A number of tokens; a mean keeps one decimal."""
    text = f"{count:.1f}".removesuffix(".0")
    return f"{text} token" + "s" * (text != "1")
