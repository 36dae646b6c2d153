"""From measured runs to rows: one a setup, or one a setup and prompt kind."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from specviz import metrics
from specviz.intervals import speedup_interval
from specviz.metrics import COUNTS, FIGURES
from specviz.rows.setups import Measured, Setup


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure taken run by run. ``deviation`` is the sample standard deviation, None for one."""

    mean: float
    median: float
    deviation: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """All runs of a setup, on the prompts of one kind or of all (``kind`` is then empty).

    ``figures`` holds COUNTS and FIGURES, pooled; ``spread`` the FIGURES run by run; ``interval``
    the 95 % bootstrap interval of the pooled speedup, over prompts, None for fewer than two.
    ``positions`` is the share accepted at each place of the draft, ``lengths`` the histogram of
    accepted lengths. Of ``compared`` greedy runs ``same`` wrote exactly the baseline's text.
    """

    setup: Setup
    kind: str
    prompts: int
    runs: int
    figures: Mapping[str, float | int | None]
    spread: Mapping[str, Spread]
    interval: tuple[float, float] | None
    positions: tuple[float | None, ...]
    lengths: tuple[int, ...]
    same: int
    compared: int

    @property
    def speedup(self) -> float | None:
        """The pooled speedup."""
        return self.figures["speedup"]


class Table:
    """A row for each setup, in the order they first appear; with ``by_kind`` for each setup and
    prompt kind. Grows by one run at a time: only the rows it belongs to are made anew."""

    def __init__(self, measured: Iterable[Measured] = (), by_kind: bool = False) -> None:
        self._by_kind = by_kind
        self._groups: dict[tuple[Setup, str], list[Measured]] = {}
        self._rows: dict[tuple[Setup, str], Row] = {}
        for one in measured:
            self.add(one)

    def add(self, one: Measured) -> None:
        """Take a run in."""
        key = one.setup, one.kind if self._by_kind else ""
        self._groups.setdefault(key, []).append(one)
        self._rows.pop(key, None)

    def rows(self) -> list[Row]:
        """The rows as they are now."""
        for key, group in self._groups.items():
            if key not in self._rows:
                self._rows[key] = _row(*key, group)
        return [self._rows[key] for key in self._groups]


def rows(measured: Iterable[Measured], by_kind: bool = False) -> list[Row]:
    """The rows of a whole sweep, as ``Table`` makes them."""
    return Table(measured, by_kind).rows()


def _row(setup: Setup, kind: str, group: Sequence[Measured]) -> Row:
    run_by_run = [pooled([one]) for one in group]
    rounds = [round_ for one in group for round_ in one.run.rounds]
    greedy = [one for one in group if one.trace.settings.greedy]
    return Row(
        setup=setup,
        kind=kind,
        prompts=len({one.prompt_id for one in group}),
        runs=len(group),
        figures=pooled(group),
        spread={
            name: spread
            for name in FIGURES
            if (spread := _spread([figures[name] for figures in run_by_run])) is not None
        },
        interval=speedup_interval((one.prompt_id, one.run, one.baseline) for one in group),
        positions=tuple(metrics.acceptance_by_position(rounds)),
        lengths=tuple(metrics.accepted_lengths(rounds)),
        same=sum(metrics.same_text(one.run, one.baseline) is True for one in greedy),
        compared=len(greedy),
    )


def pooled(group: Sequence[Measured]) -> dict[str, float | int | None]:
    """COUNTS and FIGURES over the rounds of all runs of ``group`` together."""
    run = metrics.Tally.of(r for one in group for r in one.run.rounds)
    plain = metrics.Tally.of(r for one in group for r in one.baseline.rounds)
    known: dict[str, Any] = {
        **metrics.figures(run, plain).to_dict(),
        **asdict(metrics.costs(run, plain)),
        "end_to_end_speedup": metrics.end_to_end_speedup(
            [one.run for one in group], [one.baseline for one in group]
        ),
        "observe_s": sum(one.run.observe_s + one.baseline.observe_s for one in group),
    }
    return {name: known[name] for name in (*COUNTS, *FIGURES)}


def _spread(values: Iterable[float | int | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(
        mean=statistics.fmean(known),
        median=statistics.median(known),
        deviation=statistics.stdev(known) if len(known) > 1 else None,
    )
