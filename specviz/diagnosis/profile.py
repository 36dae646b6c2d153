"""What the rounds of one setup say about where its time goes, as theory needs it.

All times are in steps: one step is a call of the target alone on one token. The speedup of a run
is then an identity, not a model: tokens a round * baseline steps a token / steps a round. What
would change it is found by changing one of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specviz import metrics, theory
from specviz.metrics import ratio
from specviz.records import Round, Trace

LONGEST_ADVICE = 12
FARTHEST_ADVICE = 2
"""Drafts more than this many times as long as the measured ones are never advised: the rounds say
too little about them."""
WORTH_CHANGING = 1.02
"""What a change of gamma must promise, so that noise alone is no reason for it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One setup, from the rounds of one run or of many.

    ``tokens`` is tokens a round; ``draft``, ``verify`` and ``other`` are steps a round;
    ``alone`` the baseline's steps a token, its own overhead counted in; ``drafted`` is tokens
    drafted a round. ``by_position[i]`` is accepted / tested at place i, None where nothing was
    tested. Of the rounds that the end of the text did not make shorter, ``reach[i]`` is the share
    that accepted place i, and ``lengths`` lists how many tokens each drafted. ``fixed`` tells
    whether gamma was the same all along.
    """

    gamma: int
    rounds: int
    tokens: float
    drafted: float
    draft: float
    verify: float
    other: float
    alone: float
    step_s: float
    alpha: float | None
    accepted: int
    tested: int
    by_position: tuple[float | None, ...]
    reach: tuple[float, ...]
    lengths: tuple[int, ...]
    fixed: bool

    @property
    def speedup(self) -> float:
        """The measured speedup."""
        return self._speedup(self.tokens, self.draft, self.verify, self.other, self.alone)

    @property
    def c(self) -> float | None:
        """Draft step time over target step time, None where nothing was drafted."""
        return ratio(self.draft, self.drafted)

    @property
    def slope(self) -> float:
        """How much each further token adds to the time of a target call, in steps."""
        return theory.verify_slope(self.drafted + 1, self.verify)

    def with_draft_times(self, factor: float) -> float:
        """The speedup if drafting took ``factor`` of its time."""
        return self._speedup(self.tokens, factor * self.draft, self.verify, self.other, self.alone)

    def with_all_accepted(self) -> float:
        """The speedup if every drafted token had been kept."""
        tokens = self.drafted + 1
        return self._speedup(tokens, self.draft, self.verify, self.other, self.alone)

    def with_alpha(self, alpha: float) -> float | None:
        """The speedup at another acceptance rate, tokens a round growing as the papers' formula
        says; None where nothing was tested."""
        if self.alpha is None:
            return None
        grown = ratio(self._expected(alpha), self._expected(self.alpha))
        return None if grown is None else self.speedup * grown

    def with_free_verification(self) -> float:
        """The speedup if verifying took exactly one step."""
        verify = min(1.0, self.verify)
        return self._speedup(self.tokens, self.draft, verify, self.other, self.alone)

    def without_overhead(self) -> float:
        """The speedup if neither lane spent time on anything but its models."""
        return self._speedup(self.tokens, self.draft, self.verify, 0.0, 1.0)

    def at_gamma(self, gamma: int) -> float:
        """The expected speedup at another draft length.

        Acceptance place by place is the measured one, going on beyond the measured places at the
        rate at which it fell within them; v is a straight line. Scaled so that at the measured
        gamma it is the measured speedup.
        """
        return self.speedup * self._modelled(gamma) / self._modelled(self.gamma)

    def best_gamma(self) -> int:
        """The draft length with the highest expected speedup, within the bounds above; the
        measured one unless another promises enough."""
        longest = max(self.gamma, min(LONGEST_ADVICE, FARTHEST_ADVICE * self.gamma))
        best = max(range(1, longest + 1), key=self.at_gamma)
        return best if self.at_gamma(best) >= WORTH_CHANGING * self.speedup else self.gamma

    def _modelled(self, gamma: int) -> float:
        drafted = self._drafted(gamma)
        cost = (self.c or 0.0) * drafted + theory.verify_cost(drafted + 1, self.slope) + self.other
        return (1.0 + sum(self._reach(gamma))) / cost

    def _reach(self, gamma: int) -> list[float]:
        known = list(self.reach[:gamma])
        before = sum(self.reach[:-1])
        fall = sum(self.reach[1:]) / before if before else self.alpha or 0.0
        while len(known) < gamma:
            known.append(known[-1] * fall if known else 0.0)
        return known

    def _drafted(self, gamma: int) -> float:
        """Tokens drafted a round. A round that stopped short of the measured gamma would have
        stopped there at a longer one too."""
        full = self.gamma
        counts = [min(n, gamma) if n < full or gamma < full else gamma for n in self.lengths]
        return sum(counts) / len(counts)

    def _expected(self, alpha: float) -> float:
        return sum(theory.expected_tokens(alpha, n) for n in self.lengths)

    @staticmethod
    def _speedup(tokens: float, draft: float, verify: float, other: float, alone: float) -> float:
        return tokens * alone / (draft + verify + other)


def profile(traces: Sequence[Trace]) -> Profile | None:
    """The profile of races that ran the same setup. None where no baseline was measured, or
    nothing was decoded."""
    own = [run for trace in traces if (run := trace.run("speculative")) is not None]
    plain = [run for trace in traces if (run := trace.run("baseline")) is not None]
    tally = metrics.Tally.of(round_ for run in own for round_ in run.rounds)
    other = metrics.Tally.of(round_ for run in plain for round_ in run.rounds)
    if not tally.rounds or not tally.committed or not other.committed or not other.verify_s:
        return None
    step = other.verify_s / other.rounds
    gamma = max(trace.settings.gamma for trace in traces)
    whole = list(_uncut(traces)) or [round_ for run in own for round_ in run.rounds]
    return Profile(
        gamma=gamma,
        rounds=tally.rounds,
        tokens=tally.committed / tally.rounds,
        drafted=tally.drafted / tally.rounds,
        draft=tally.draft_s / tally.rounds / step,
        verify=tally.verify_s / tally.rounds / step,
        other=(tally.seconds - tally.draft_s - tally.verify_s) / tally.rounds / step,
        alone=other.seconds / other.committed / step,
        step_s=step,
        alpha=ratio(tally.accepted, tally.tested),
        accepted=tally.accepted,
        tested=tally.tested,
        by_position=_by_position(round_ for run in own for round_ in run.rounds),
        reach=_reach(whole, gamma),
        lengths=tuple(len(round_.drafted) for round_ in whole),
        fixed=all(trace.settings.schedule == "constant" for trace in traces),
    )


def _uncut(traces: Iterable[Trace]) -> Iterable[Round]:
    """The rounds that the end of the text did not make shorter."""
    for trace in traces:
        run = trace.run("speculative")
        for round_ in run.rounds if run is not None else ():
            if trace.settings.max_new_tokens - round_.position > trace.settings.gamma:
                yield round_


def _reach(rounds: Sequence[Round], gamma: int) -> tuple[float, ...]:
    accepted = [round_.accepted for round_ in rounds]
    return tuple(sum(n > place for n in accepted) / len(accepted) for place in range(gamma))


def _by_position(rounds: Iterable[Round]) -> tuple[float | None, ...]:
    tested: list[int] = []
    accepted: list[int] = []
    for round_ in rounds:
        more = len(round_.drafted) - len(tested)
        tested += [0] * more
        accepted += [0] * more
        for place in range(round_.tested):
            tested[place] += 1
            accepted[place] += place < round_.accepted
    return tuple(ratio(a, t) for a, t in zip(accepted, tested, strict=True))
