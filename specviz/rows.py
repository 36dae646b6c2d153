"""From measured runs to the rows of a table: one row a setup, or one a setup and prompt kind.

Each figure of a row is pooled: taken once over the rounds of all its runs together, by the
definitions in ``metrics``. Beside it stand mean, median and standard deviation of the same figure
taken run by run, and for the speedup a bootstrap interval. None means: was not measured.
"""

from __future__ import annotations

import csv
import io
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from specviz import metrics
from specviz.records import Run, Trace

FIGURES = (
    "speedup",
    "end_to_end_speedup",
    "tar",
    "alpha",
    "tokens_per_target_call",
    "tokens_per_s",
    "baseline_tokens_per_s",
    "cost_ratio",
    "verify_ratio",
    "predicted_speedup",
    "efficiency",
    "observe_s",
)
COUNTS = ("tokens", "target_calls", "drafted", "tested", "accepted")
RESAMPLES = 1000
COVERAGE = 0.95


@dataclass(frozen=True, slots=True)
class Setup:
    """What a sweep compares: where the guesses come from, and the settings that vary.

    ``draft`` names the draft model, empty where the drafter uses none. The rest is as in
    ``records.Settings``.
    """

    drafter: str
    draft: str = ""
    gamma: int = 4
    temperature: float = 0.0
    confidence: float = 0.0
    schedule: str = "constant"

    @property
    def source(self) -> str:
        """Where the guesses come from, in a few words."""
        return f"{self.drafter}, {self.draft}" if self.draft else self.drafter

    @property
    def rest(self) -> str:
        """The settings beside drafter and gamma, as far as they are not the usual ones."""
        parts = []
        if self.temperature:
            parts.append(f"temperature {self.temperature:g}")
        if self.confidence:
            parts.append(f"confidence {self.confidence:g}")
        if self.schedule != "constant":
            parts.append(f"{self.schedule} gamma")
        return ", ".join(parts)

    @property
    def name(self) -> str:
        """All of it but gamma."""
        return f"{self.source}, {self.rest}" if self.rest else self.source


@dataclass(frozen=True, slots=True)
class Measured:
    """One race of a sweep: a setup on a prompt, with its own baseline beside it."""

    setup: Setup
    prompt_id: str
    kind: str
    repeat: int
    trace: Trace

    @property
    def run(self) -> Run:
        """The speculative lane."""
        return next(run for run in self.trace.runs if run.lane == "speculative")

    @property
    def baseline(self) -> Run:
        """The target alone."""
        return next(run for run in self.trace.runs if run.lane == "baseline")


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
        interval=speedup_interval(group),
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
        "end_to_end_speedup": _end_to_end(group),
        "observe_s": sum(one.run.observe_s + one.baseline.observe_s for one in group),
    }
    return {name: known[name] for name in (*COUNTS, *FIGURES)}


def _end_to_end(group: Sequence[Measured]) -> float | None:
    """Seconds per token with both prefills counted in, baseline over speculative."""
    own, plain = ([getattr(one, lane) for one in group] for lane in ("run", "baseline"))
    rates = (
        metrics.ratio(sum(len(run.tokens) for run in lane), sum(_whole_s(run) for run in lane))
        for lane in (own, plain)
    )
    return metrics.ratio(*rates)


def _whole_s(run: Run) -> float:
    return run.prefill_s + run.draft_prefill_s + sum(round_.seconds for round_ in run.rounds)


def _spread(values: Iterable[float | int | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(
        mean=statistics.fmean(known),
        median=statistics.median(known),
        deviation=statistics.stdev(known) if len(known) > 1 else None,
    )


def speedup_interval(group: Iterable[Measured]) -> tuple[float, float] | None:
    """95 % percentile bootstrap of the pooled speedup: whole prompts are drawn again, with all
    their repeats, since repeats of one prompt say little about another. None below two prompts.
    """
    sums: dict[str, list[float]] = {}
    for one in group:
        own = sums.setdefault(one.prompt_id, [0.0, 0.0, 0.0, 0.0])
        for place, run in ((0, one.run), (2, one.baseline)):
            own[place] += len(run.tokens)
            own[place + 1] += sum(round_.seconds for round_ in run.rounds)
    return bootstrap([(*own,) for own in sums.values()])  # type: ignore[misc]


def bootstrap(
    lanes: Sequence[tuple[float, float, float, float]],
) -> tuple[float, float] | None:
    """The interval from (tokens, seconds, baseline tokens, baseline seconds) of each unit that
    is drawn again. The draw is seeded: the same runs give the same interval."""
    if len(lanes) < 2:
        return None
    chance = random.Random(0)
    drawn = []
    for _ in range(RESAMPLES):
        sample = chance.choices(lanes, k=len(lanes))
        tokens, seconds, plain, plain_s = (sum(column) for column in zip(*sample, strict=True))
        value = metrics.ratio(metrics.ratio(tokens, seconds), metrics.ratio(plain, plain_s))
        if value is not None:
            drawn.append(value)
    if not drawn:
        return None
    drawn.sort()
    tail = (1 - COVERAGE) / 2
    return drawn[round(tail * (len(drawn) - 1))], drawn[round((1 - tail) * (len(drawn) - 1))]


# --- written out ---------------------------------------------------------------------------


def to_plain(row: Row) -> dict[str, Any]:
    """A row as JSON values: the setup's fields, the counts and figures by name, then the rest."""
    low, high = row.interval or (None, None)
    return {
        **asdict(row.setup),
        "kind": row.kind,
        "prompts": row.prompts,
        "runs": row.runs,
        **row.figures,
        "speedup_low": low,
        "speedup_high": high,
        "spread": {name: asdict(spread) for name, spread in row.spread.items()},
        "acceptance_by_position": list(row.positions),
        "accepted_lengths": list(row.lengths),
        "same_text": row.same,
        "compared": row.compared,
    }


def to_csv(table: Iterable[Row]) -> str:
    """Rows as CSV (RFC 4180), one heading line first; empty where nothing was measured."""
    out = io.StringIO()
    writer = csv.writer(out)
    per_run = [f"{name}_{part.name}" for name in FIGURES for part in fields(Spread)]
    setup = [field.name for field in fields(Setup)]
    ends = ["speedup_low", "speedup_high", "same_text", "compared"]
    heading = [*setup, "kind", "prompts", "runs", *COUNTS, *FIGURES, *ends]
    writer.writerow([*heading, *per_run])
    for row in table:
        plain = to_plain(row)
        spread = [
            getattr(row.spread.get(name), part.name, None)
            for name in FIGURES
            for part in fields(Spread)
        ]
        writer.writerow([_cell(plain[name]) for name in heading] + [_cell(v) for v in spread])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is kept a text."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return "'" + value
    return value
