"""What limits one run: for each part of it, what the speedup would be were that part ideal."""

from __future__ import annotations

from collections.abc import Iterator

from specviz import metrics
from specviz.diagnosis.profile import Profile
from specviz.diagnosis.words import Limit, steps, times, tokens
from specviz.records import Run


def limits(own: Profile, run: Run, baseline: Run) -> tuple[Limit, ...]:
    """Those that make a noticeable difference, the largest first."""
    found = [*_of_rounds(own), *_of_gamma(own), *_of_length(own, run, baseline)]
    noticeable = [limit for limit in found if limit.noticeable]
    return tuple(sorted(noticeable, key=lambda limit: -limit.gain))


def _of_rounds(own: Profile) -> Iterator[Limit]:
    """The parts of a round: guesses, draft, verification, and the loop around them."""
    now = own.speedup
    if own.alpha is not None and own.alpha < 1:
        right, better = own.with_all_accepted(), min(1.0, own.alpha + 0.1)
        words = (
            f"Were every guess right, it would be {times(right)}; with alpha at {better:.2f}"
            f" instead of {own.alpha:.2f}, {times(own.with_alpha(better))}."
        )
        yield Limit("Guesses too often wrong", now, right, words)
    free = own.with_draft_times(0.0)
    words = (
        f"A draft twice as fast would make it {times(own.with_draft_times(0.5))}, one that costs"
        f" nothing {times(free)}."
    )
    yield Limit("Draft too slow", now, free, words)
    if own.c is not None:
        one_step = own.with_free_verification()
        words = (
            f"A target call on the whole draft takes {steps(own.verify)} steps. If it took one, as"
            f" the papers assume, it would be {times(one_step)}."
        )
        yield Limit("Verifying is not free on this device", now, one_step, words)
    bare = own.without_overhead()
    words = f"If deciding and bookkeeping took no time in either lane, it would be {times(bare)}."
    yield Limit("The loop itself", now, bare, words)


def _of_gamma(own: Profile) -> Iterator[Limit]:
    best = own.best_gamma()
    if not own.fixed or best == own.gamma:
        return
    after = own.at_gamma(best)
    name = "Gamma too long" if best < own.gamma else "Gamma too short"
    words = f"With gamma {best} instead of {own.gamma} about {times(after)} is to be expected."
    yield Limit(name, own.speedup, after, words)


def _of_length(own: Profile, run: Run, baseline: Run) -> Iterator[Limit]:
    whole = metrics.end_to_end_speedup([run], [baseline])
    if whole is None or whole <= 0:
        return
    words = (
        f"With the prompt counted in, these {tokens(len(run.tokens))} were {times(whole)}: reading"
        f" it takes as long in both lanes. A longer answer comes closer to {times(own.speedup)}."
    )
    yield Limit("Too few tokens", whole, own.speedup, words)
