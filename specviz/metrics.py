"""From rounds to figures. Every metric is defined once, here; None means: was not measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import log

from specviz import theory
from specviz.records import Candidate, Round, Run, Token

DEFINITIONS = {
    "speedup": "Seconds per token of the target alone, divided by seconds per token of this run."
    " Both were measured here, side by side, decoding only.",
    "end_to_end_speedup": "The same with the time to read the prompt counted in, on both sides.",
    "tar": "Token acceptance rate: of all drafted tokens, the share that was accepted.",
    "alpha": "Of the tokens that were tested, the share that was accepted. Tokens behind a"
    " rejection are never tested, so they count in TAR only.",
    "tokens_per_target_call": "New tokens divided by calls of the target. The target alone"
    " makes exactly 1.",
    "tokens_per_s": "New tokens divided by the seconds on the speculative lane's decode clock.",
    "baseline_tokens_per_s": "New tokens divided by the seconds on the baseline's decode clock.",
    "cost_ratio": "c: the time to draft one token, divided by the time of one target call on"
    " one token.",
    "verify_ratio": "v: the time of a verifying target call, divided by the time of one on one"
    " token.",
    "predicted_speedup": "What theory expects from the measured alpha, c and v.",
    "efficiency": "Measured speedup divided by the predicted one: what the loop itself costs.",
    "observe_s": "Seconds spent recording for this page. They are on neither clock.",
}
COUNTS = ("tokens", "target_calls", "drafted", "tested", "accepted")
SPEEDUPS = ("speedup", "end_to_end_speedup")
ACCEPTANCE = ("tar", "alpha", "tokens_per_target_call")
RATES = ("tokens_per_s", "baseline_tokens_per_s")
COSTS = ("cost_ratio", "verify_ratio", "predicted_speedup", "efficiency")
FIGURES = (*SPEEDUPS, *ACCEPTANCE, *RATES, *COSTS, "observe_s")
"""The names of all figures of a run beside its COUNTS, in the order of tables."""


@dataclass(slots=True)
class Tally:
    """Running counts of one lane. ``add`` each round once; the counts are plain sums."""

    rounds: int = 0
    committed: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    seconds: float = 0.0
    draft_s: float = 0.0
    drafted_by_round: list[int] = field(default_factory=list)
    verify_s: float = 0.0

    def add(self, round_: Round) -> None:
        """Count a round in."""
        drafted = len(round_.drafted)
        self.rounds += 1
        self.committed += len(round_.committed)
        self.drafted += drafted
        self.tested += round_.tested
        self.accepted += round_.accepted
        self.seconds += round_.seconds
        self.draft_s += round_.draft_s
        self.drafted_by_round.append(drafted)
        self.verify_s += round_.verify_s

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> Tally:
        """The tally of a whole run."""
        tally = cls()
        for round_ in rounds:
            tally.add(round_)
        return tally


@dataclass(frozen=True, slots=True)
class Figures:
    """The metrics of one run against its baseline, at one moment."""

    tokens: int = 0
    target_calls: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    tar: float | None = None
    alpha: float | None = None
    tokens_per_target_call: float | None = None
    seconds: float = 0.0
    tokens_per_s: float | None = None
    baseline_tokens: int = 0
    baseline_seconds: float = 0.0
    baseline_tokens_per_s: float | None = None
    speedup: float | None = None

    def to_dict(self) -> dict[str, float | int | None]:
        """The figures by name, as JSON values."""
        return asdict(self)


def figures(run: Tally, baseline: Tally | None = None) -> Figures:
    """The figures that grow while a run goes on; cheap enough to take after every round."""
    rate = ratio(run.committed, run.seconds)
    baseline_rate = ratio(baseline.committed, baseline.seconds) if baseline else None
    return Figures(
        tokens=run.committed,
        target_calls=run.rounds,
        drafted=run.drafted,
        tested=run.tested,
        accepted=run.accepted,
        tar=ratio(run.accepted, run.drafted),
        alpha=ratio(run.accepted, run.tested),
        tokens_per_target_call=ratio(run.committed, run.rounds),
        seconds=run.seconds,
        tokens_per_s=rate,
        baseline_tokens=baseline.committed if baseline else 0,
        baseline_seconds=baseline.seconds if baseline else 0.0,
        baseline_tokens_per_s=baseline_rate,
        speedup=ratio(rate, baseline_rate),
    )


@dataclass(frozen=True, slots=True)
class Costs:
    """What drafting and verifying cost here, and what theory makes of it."""

    cost_ratio: float | None = None
    verify_ratio: float | None = None
    predicted_speedup: float | None = None
    efficiency: float | None = None


def costs(run: Tally, baseline: Tally | None) -> Costs:
    """c, v and the predicted speedup, all relative to the baseline's own one-token calls.

    The prediction is E[tokens per round] / (gamma * c + v) with the measured alpha, summed over
    the rounds with the number each really drafted, so that it holds for drafters whose lengths
    vary and for the shortened last rounds. See ``theory.speedup``.
    """
    if baseline is None or not baseline.seconds or not run.seconds:
        return Costs()
    step = baseline.verify_s / baseline.rounds
    c = ratio(ratio(run.draft_s, run.drafted), step)
    v = ratio(run.verify_s / run.rounds, step)
    alpha = ratio(run.accepted, run.tested) or 0.0
    expected = sum(theory.expected_tokens(alpha, gamma) for gamma in run.drafted_by_round)
    predicted = ratio(expected, (run.draft_s + run.verify_s) / step if step else None)
    return Costs(
        cost_ratio=c,
        verify_ratio=v,
        predicted_speedup=predicted,
        efficiency=ratio(figures(run, baseline).speedup, predicted),
    )


def end_to_end_speedup(runs: Sequence[Run], baselines: Sequence[Run]) -> float | None:
    """Seconds per token with prefill counted in, baseline over speculative; pooled over runs."""
    return ratio(_end_to_end_rate(runs), _end_to_end_rate(baselines))


def _end_to_end_rate(runs: Sequence[Run]) -> float | None:
    """Tokens a second, reading the prompt counted in."""
    reading = sum(run.prefill_s + run.draft_prefill_s for run in runs)
    decoding = sum(round_.seconds for run in runs for round_ in run.rounds)
    return ratio(sum(len(run.tokens) for run in runs), reading + decoding)


def acceptance_by_position(rounds: Iterable[Round]) -> list[float | None]:
    """For each place in the draft: accepted there / drafted there, over all rounds."""
    drafted: list[int] = []
    accepted: list[int] = []
    for round_ in rounds:
        while len(drafted) < len(round_.drafted):
            drafted.append(0)
            accepted.append(0)
        for place, token in enumerate(round_.drafted):
            drafted[place] += 1
            accepted[place] += token.fate == "accepted"
    return [ratio(a, d) for a, d in zip(accepted, drafted, strict=True)]


def accepted_lengths(rounds: Iterable[Round]) -> list[int]:
    """Histogram: how many rounds accepted 0, 1, 2, ... drafted tokens."""
    counts: list[int] = []
    for round_ in rounds:
        counts.extend([0] * (round_.accepted + 1 - len(counts)))
        counts[round_.accepted] += 1
    return counts


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a greedy run first leaves its baseline.

    ``gap`` is the difference of the two tokens' logits as the lane's own call computed them
    (log p1 - log p2), for each lane, None where one of the tokens was not recorded.
    """

    index: int
    token: Token
    baseline_token: Token
    gap: float | None
    baseline_gap: float | None


def divergence(run: Run, baseline: Run) -> Divergence | None:
    """The first place where two greedy runs differ, or None where one continues the other."""
    pairs = zip(_decided(run), _decided(baseline), strict=False)
    for index, ((token, row), (other, other_row)) in enumerate(pairs):
        if token.id != other.id:
            gap = _gap(row, token.id, other.id)
            return Divergence(index, token, other, gap, _gap(other_row, other.id, token.id))
    return None


def _decided(run: Run) -> Iterator[tuple[Token, tuple[Candidate, ...]]]:
    """Each committed token with the target's candidates at its place. A resampled token shares
    them with the rejected one."""
    for round_ in run.rounds:
        for token in round_.committed:
            rejected = token.fate == "resampled"
            yield token, round_.drafted[round_.accepted].p_top if rejected else token.p_top


UNFINISHED = ("stopped", "error", "running")


def same_text(run: Run, baseline: Run) -> bool | None:
    """Whether both lanes committed the same tokens and ended for the same reason. None where
    they agree so far and one of them was not run to its end."""
    ends = (run.finish_reason, baseline.finish_reason)
    if any(end in UNFINISHED for end in ends) and divergence(run, baseline) is None:
        return None
    own, plain = [t.id for t in run.tokens], [t.id for t in baseline.tokens]
    return own == plain and run.finish_reason == baseline.finish_reason


def _gap(row: tuple[Candidate, ...], first: int, second: int) -> float | None:
    by_id = {candidate.id: candidate.probability for candidate in row}
    if not by_id.get(first) or not by_id.get(second):
        return None
    return log(by_id[first]) - log(by_id[second])


def ratio(part: float | None, whole: float | None) -> float | None:
    """part / whole, or None where either was not measured or the whole is 0."""
    if part is None or not whole:
        return None
    return part / whole
