"""The diagnosis of a sweep: which draft, which gamma."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specviz.diagnosis.profile import Profile, profile
from specviz.diagnosis.words import Advice, Diagnosis, Limit, between, share, steps, times
from specviz.rows import Measured, Row, Setup, rows

SHOWN = 6
"""How many are told about, the fastest first; the table has them all."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A gamma for a source. ``row`` where it was measured, else ``predicted`` alone."""

    setup: Setup
    predicted: float | None
    row: Row | None

    @property
    def worth(self) -> float:
        measured = self.row.speedup if self.row else None
        return measured if measured is not None else self.predicted or 0.0


def recommend(measured: Iterable[Measured], table: Iterable[Row] | None = None) -> Diagnosis:
    """Of all that was measured, what to take: the best measured setup, unless a gamma that was
    not in the grid is expected to beat it. ``table`` is its rows, where they are made already."""
    groups: dict[Setup, list[Measured]] = {}
    for one in measured:
        groups.setdefault(one.setup, []).append(one)
    found = {
        setup: own
        for setup, group in groups.items()
        if (own := profile([one.trace for one in group])) is not None
    }
    if not found:
        return Diagnosis("Nothing has been measured yet.")
    if table is None:
        table = rows(one for group in groups.values() for one in group)
    by_setup = {row.setup: row for row in table}
    best = max(_choices(found, by_setup), key=lambda choice: choice.worth)
    fastest = max(by_setup.values(), key=lambda row: row.speedup or 0.0)
    return Diagnosis(
        headline=_headline(fastest),
        speedup=fastest.speedup,
        facts=tuple(
            _fact(by_setup[setup], own) for setup, own in _by_source(found, by_setup)[:SHOWN]
        ),
        limits=tuple(one for one in _limits(fastest, found[fastest.setup]) if one.noticeable),
        advice=_advice(best, fastest),
    )


def _choices(found: dict[Setup, Profile], table: dict[Setup, Row]) -> list[_Choice]:
    """Every measured setup, and for every source the gamma that its own numbers recommend,
    foretold from the measured one nearest to it."""
    choices = [_Choice(setup, None, table[setup]) for setup in found]
    for setup in found:
        best = found[setup].best_gamma()
        wanted = _with_gamma(setup, best)
        if wanted in found:
            continue
        nearest = min(_alike(setup, found), key=lambda other: abs(other.gamma - best))
        if nearest == setup:
            choices.append(_Choice(wanted, found[setup].at_gamma(best), None))
    return choices


def _alike(setup: Setup, found: dict[Setup, Profile]) -> list[Setup]:
    return [other for other in found if _with_gamma(other, setup.gamma) == setup]


def _with_gamma(setup: Setup, gamma: int) -> Setup:
    return replace(setup, gamma=gamma)


def _headline(fastest: Row) -> str:
    what = f"{fastest.setup.name} with gamma {fastest.setup.gamma}"
    measured = f"{times(fastest.speedup)}{between(fastest.interval)}"
    if fastest.speedup is not None and fastest.speedup < 1:
        return (
            f"Nothing that was measured beats the target alone. The closest is {what}: {measured}."
        )
    return f"Fastest measured: {what}, {measured}."


def _by_source(
    found: dict[Setup, Profile], table: dict[Setup, Row]
) -> Sequence[tuple[Setup, Profile]]:
    """The fastest gamma of everything else, with its profile, the fastest first."""
    best: dict[str, Setup] = {}
    for setup in found:
        held = best.get(setup.name)
        if held is None or (table[setup].speedup or 0) > (table[held].speedup or 0):
            best[setup.name] = setup
    order = sorted(best.values(), key=lambda setup: -(table[setup].speedup or 0))
    return [(setup, found[setup]) for setup in order]


def _fact(row: Row, own: Profile) -> str:
    if own.c is None:
        return f"{row.setup.name}: {times(row.speedup)}; it found no guess for any round."
    return (
        f"{row.setup.name}: {times(row.speedup)} at its best gamma, {row.setup.gamma}; a drafted"
        f" token costs {steps(own.c)} steps (c), verifying {steps(own.verify)} (v), and"
        f" {share(own.alpha)} of the tested guesses are kept (alpha)."
    )


def _limits(fastest: Row, own: Profile) -> Iterable[Limit]:
    now = own.speedup
    after = own.with_draft_times(0.0)
    name = fastest.setup.name
    yield Limit("Draft too slow", now, after, f"If {name} cost nothing: {times(after)}.")
    if own.alpha is not None and own.alpha < 1:
        after = own.with_all_accepted()
        yield Limit(
            "Guesses too often wrong", now, after, f"Were every guess right: {times(after)}."
        )


def _advice(best: _Choice, fastest: Row) -> Advice:
    if best.worth < 1:
        return Advice(None, 1.0, None, None, "Take the target alone.")
    what = f"{best.setup.name} with gamma {best.setup.gamma}"
    if best.row is not None:
        return Advice(
            best.setup, best.predicted, best.row.speedup, best.row.interval, f"Take {what}."
        )
    words = (
        f"Try {what}: {times(best.predicted)} is expected, and the fastest measured is"
        f" {times(fastest.speedup)}. This gamma was not in the sweep."
    )
    return Advice(best.setup, best.predicted, None, None, words)
