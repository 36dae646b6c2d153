"""How sure a figure is: 95 % intervals of a speedup and of a share.

A bootstrap draws what was measured again, with repeats, and takes the figure of each draw; its
draws are seeded, so that the same runs give the same interval. None means: too little was measured
to say.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

from specviz.metrics import ratio
from specviz.records import Run

RESAMPLES = 1000
COVERAGE = 0.95
Z = 1.96
"""The normal law's quantile of COVERAGE."""
Interval = tuple[float, float]
Chance = random.Random


def speedup_interval(runs: Iterable[tuple[str, Run, Run]]) -> Interval | None:
    """Of the pooled speedup over many runs, each (prompt id, speculative, baseline): whole prompts
    are drawn again, with all their repeats, since repeats of one prompt say little about another.
    None below two prompts."""
    sums: dict[str, list[float]] = {}
    for prompt_id, run, baseline in runs:
        own = sums.setdefault(prompt_id, [0.0, 0.0, 0.0, 0.0])
        for place, lane in ((0, run), (2, baseline)):
            own[place] += len(lane.tokens)
            own[place + 1] += sum(round_.seconds for round_ in lane.rounds)
    prompts = list(sums.values())
    if len(prompts) < 2:
        return None

    def speedup(chance: Chance) -> float | None:
        drawn = chance.choices(prompts, k=len(prompts))
        tokens, seconds, plain, plain_s = (sum(column) for column in zip(*drawn, strict=True))
        return ratio(ratio(tokens, seconds), ratio(plain, plain_s))

    return _bootstrap(speedup)


def one_speedup_interval(run: Run, baseline: Run) -> Interval | None:
    """Of the speedup of one run: the rounds of each lane are drawn again. None below two rounds a
    lane."""
    if len(run.rounds) < 2 or len(baseline.rounds) < 2:
        return None
    lanes = [
        [(len(round_.committed), round_.seconds) for round_ in lane.rounds]
        for lane in (run, baseline)
    ]

    def speedup(chance: Chance) -> float | None:
        rates = []
        for lane in lanes:
            tokens, seconds = map(sum, zip(*chance.choices(lane, k=len(lane)), strict=True))
            rates.append(ratio(tokens, seconds))
        return ratio(*rates)

    return _bootstrap(speedup)


def _bootstrap(figure: Callable[[Chance], float | None]) -> Interval | None:
    """The percentile interval of a figure over RESAMPLES draws."""
    chance = Chance(0)
    drawn = sorted(value for _ in range(RESAMPLES) if (value := figure(chance)) is not None)
    if not drawn:
        return None
    tail = round((1 - COVERAGE) / 2 * (len(drawn) - 1))
    return drawn[tail], drawn[-1 - tail]


def share_interval(part: int, whole: int) -> Interval | None:
    """The Wilson interval of a share; None of nothing."""
    if not whole:
        return None
    share = part / whole
    middle = (share + Z * Z / (2 * whole)) / (1 + Z * Z / whole)
    spread = math.sqrt(share * (1 - share) / whole + Z * Z / (4 * whole * whole))
    spread *= Z / (1 + Z * Z / whole)
    return max(0.0, middle - spread), min(1.0, middle + spread)
