"""The diagnosis of one run against its baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specviz import theory
from specviz.diagnosis.limits import limits
from specviz.diagnosis.profile import Profile, profile
from specviz.diagnosis.words import (
    Advice,
    Diagnosis,
    Point,
    between,
    listed,
    share,
    steps,
    times,
    tokens,
)
from specviz.intervals import one_speedup_interval, share_interval
from specviz.records import Run, Trace
from specviz.rows import Setup

FEW_ROUNDS = 20
DRAFT_MODEL = "draft model"
"""The source of a token that a draft model guessed."""


def diagnose(trace: Trace) -> Diagnosis:
    """What a trace's speculative run says about itself, in plain words with its numbers."""
    run, baseline = trace.run("speculative"), trace.run("baseline")
    if run is None or not run.rounds:
        return Diagnosis("There is no speculative run to diagnose.")
    if baseline is None:
        return Diagnosis(
            "No baseline was measured beside this run, so nothing can be said about time."
            " Measure one: it is a choice under More settings."
        )
    own = profile([trace])
    if own is None:
        return Diagnosis("The run ended before there was anything to compare.")
    interval = one_speedup_interval(run, baseline)
    return Diagnosis(
        headline=_headline(own, interval),
        speedup=own.speedup,
        facts=tuple(_facts(own)),
        limits=limits(own, run, baseline),
        advice=_advice(own, setup_of(trace, run), interval),
        point=_point(own, interval),
    )


def _headline(own: Profile, interval: tuple[float, float] | None) -> str:
    measured = f"{times(own.speedup)}{between(interval)}"
    if own.speedup < 1:
        return f"Drafting did not pay here: {measured}, slower than the target alone."
    if interval is not None and interval[0] < 1:
        return f"Whether drafting paid here is not certain: {measured}."
    return f"Drafting paid here: {measured}."


def _facts(own: Profile) -> Iterator[str]:
    if own.c is None:
        yield "Nothing was drafted: no guess was found for any round."
    else:
        yield (
            f"Drafting one token took {steps(own.c)} of a target step (c); a target step is"
            f" {1000 * own.step_s:.1f} ms."
        )
        yield (
            f"Verifying {tokens(own.drafted + 1)} in one call took {steps(own.verify)} steps (v):"
            " 1 would be free."
        )
    if own.alpha is not None:
        yield (
            f"Of the tested guesses {share(own.alpha)} were kept (alpha); by place in the draft:"
            f" {listed(own.by_position)}."
        )
        yield _break_even(own)
    busy = own.other / (own.draft + own.verify + own.other)
    yield f"Everything but the two models took {100 * busy:.1f} % of the time."
    if own.rounds < FEW_ROUNDS:
        yield f"These are only {own.rounds} rounds: a longer run would say more."


def _break_even(own: Profile) -> str:
    drafted = max(1, round(own.drafted))
    least = theory.break_even_alpha(drafted, own.c or 0.0, own.verify)
    if least is None:
        return (
            f"At this c even alpha = 1 would not pay: drafting {tokens(drafted)} costs"
            " more than it can bring."
        )
    return f"At this c drafting pays from alpha = {least:.2f} on; it was {own.alpha:.2f}."


# --- what to do ----------------------------------------------------------------------------


def _advice(own: Profile, setup: Setup, interval: tuple[float, float] | None) -> Advice | None:
    if own.c is None:
        return None
    others = " Other drafts have to be measured: the Sweep tab compares them."
    if not own.fixed:
        words = "The schedule finds gamma by itself here; compare it with a constant one."
        return Advice(setup, None, own.speedup, interval, words + others)
    best = own.best_gamma()
    predicted = own.at_gamma(best)
    if predicted <= 1:
        words = (
            "No draft length of this drafter is expected to pay on this prompt: take the target"
            " alone, or another drafter."
        )
        return Advice(None, 1.0, None, None, words + others)
    if best == own.gamma:
        words = f"Keep gamma {best}: no other is expected to be faster with this drafter."
        return Advice(setup, predicted, own.speedup, interval, words + others)
    words = f"Take gamma {best}: {times(predicted)} is expected, {times(own.speedup)} now."
    return Advice(replace(setup, gamma=best), predicted, None, None, words + others)


def setup_of(trace: Trace, run: Run) -> Setup:
    """What a trace's speculative run would be called in a sweep: the draft model is named where
    guesses came from it."""
    settings = trace.settings
    sources = {token.source for round_ in run.rounds for token in round_.drafted}
    return Setup(
        run.drafter,
        trace.pair.draft if DRAFT_MODEL in sources else "",
        settings.gamma,
        settings.temperature,
        settings.confidence,
        settings.schedule,
    )


def _point(own: Profile, interval: tuple[float, float] | None) -> Point | None:
    if own.alpha is None or own.c is None:
        return None
    return Point(
        alpha=own.alpha,
        alpha_interval=share_interval(own.accepted, own.tested),
        gamma=own.gamma,
        drafted=own.drafted,
        c=own.c,
        v=own.verify,
        slope=own.slope,
        tokens_per_round=own.tokens,
        speedup=own.speedup,
        speedup_interval=interval,
    )
