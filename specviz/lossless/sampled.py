"""The sampled proof: many short continuations of a real pair, speculative against plain.

Both arms draw from their own seeds, so they are independent; where the loop is right they are
two samples of one law. A test can only fail to find a difference: what it could have found is
stated beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from specviz import drafters
from specviz.chat import encode
from specviz.decode import Decoding, baseline, speculative
from specviz.lossless import statistics
from specviz.lossless.statistics import Distance
from specviz.lossless.variants import RIGHT, Variant
from specviz.records import Settings
from specviz.sampling import SeededChance
from specviz.text import Texts

FAILS_BELOW = 0.001
"""A right loop fails this rarely: once in a thousand proofs."""
SHOWN = 8
"""Texts that are named in a result."""
EVERY = 10
"""Continuations between two points of the running p-value."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared: the first ``tokens`` tokens of ``n`` continuations in each arm."""

    prompt: str
    settings: Settings
    n: int = 120
    tokens: int = 2

    def __post_init__(self) -> None:
        if self.settings.greedy:
            raise ValueError("the sampled proof needs a temperature above 0; greedy has its own")
        if self.n < EVERY or self.tokens < 1:
            raise ValueError(f"compare at least 1 token of at least {EVERY} continuations")


@dataclass(frozen=True, slots=True)
class SampledResult:
    """Where the comparison stands after ``n`` continuations in each arm.

    ``p_value`` is None while there is only one category. ``smallest`` is the total variation
    that a test of this size finds with a probability of 0.8, ``degrees`` its degrees of freedom;
    ``texts`` the commonest texts with their counts, speculative and plain.
    """

    drafter: str
    n: int
    p_value: float | None
    degrees: int
    distance: Distance | None
    smallest: float | None
    drafted: int
    rejected: int
    texts: tuple[tuple[str, int, int], ...] = ()

    @property
    def tested(self) -> bool:
        """Whether there was anything to find: guesses, and texts that came up often enough."""
        return self.drafted > 0 and self.p_value is not None

    @property
    def holds(self) -> bool:
        """Whether no difference was found."""
        return self.p_value is None or self.p_value >= FAILS_BELOW


class Arms:
    """Both samples of one pair and plan. The plain one is shared by all drafters."""

    def __init__(self, pair: Any, plan: Plan) -> None:
        self._pair, self._plan = pair, plan
        self._ids = encode(pair, plan.prompt, plan.settings.chat)
        self._texts = Texts(pair.tokenizer)
        self._plain: list[tuple[int, ...]] = []

    def compare(self, drafter: str, variant: Variant = RIGHT) -> Iterator[SampledResult]:
        """A result after every EVERY continuations; the last is the proof. The earlier ones show
        how the p-value moves and prove nothing: who stops at a good one cheats."""
        written: list[tuple[int, ...]] = []
        counts = [0, 0]
        for i in range(self._plan.n):
            if i == len(self._plain):
                self._plain.append(self._first_tokens(self._plain_run(2 * i)))
            run = self._speculative_run(drafter, variant, 2 * i + 1)
            written.append(self._first_tokens(run))
            drafted = [token for round_ in run.rounds for token in round_.drafted]
            counts[0] += len(drafted)
            counts[1] += sum(token.fate == "rejected" for token in drafted)
            last = i + 1 == self._plan.n
            if last or (i + 1) % EVERY == 0:
                yield self._result(drafter, written, counts, last)

    def _result(
        self, drafter: str, written: list[tuple[int, ...]], counts: list[int], last: bool
    ) -> SampledResult:
        n = len(written)
        table = statistics.pooled(written, self._plain[:n])
        degrees = table.shape[1] - 1
        result = SampledResult(
            drafter, n, statistics.g_test(table), degrees, None, None, counts[0], counts[1]
        )
        if not last:
            return result
        return replace(
            result,
            distance=statistics.distance(table),
            smallest=statistics.smallest_seen(n, degrees) if degrees else None,
            texts=self._commonest(written),
        )

    def _commonest(self, written: list[tuple[int, ...]]) -> tuple[tuple[str, int, int], ...]:
        both = [*written, *self._plain]
        names = sorted(set(both), key=lambda ids: (-both.count(ids), ids))[:SHOWN]
        return tuple(
            ("".join(map(self._texts.label, ids)), written.count(ids), self._plain.count(ids))
            for ids in names
        )

    def _first_tokens(self, run: Decoding) -> tuple[int, ...]:
        """Run until the first tokens stand; no further."""
        known, wanted = len(self._ids), self._plan.tokens
        for _ in run:
            if len(run.tokens) - known >= wanted:
                break
        return tuple(run.tokens[known : known + wanted])

    def _settings(self, seed: int) -> Settings:
        """With room behind the compared tokens, so that the drafts before them are whole."""
        room = self._plan.tokens + self._plan.settings.gamma + 1
        return replace(self._plan.settings, max_new_tokens=room, seed=seed)

    def _speculative_run(self, drafter: str, variant: Variant, seed: int) -> Decoding:
        settings, chance = self._settings(seed), SeededChance(seed)
        guesser = drafters.create(
            drafter, self._pair, settings, len(self._ids), variant.drafting(chance)
        )
        return speculative(
            self._pair.target,
            guesser,
            self._ids,
            settings,
            texts=self._texts,
            eos_ids=self._pair.eos_ids,
            chance=chance,
            observe=False,
            verify=variant.verify,
        )

    def _plain_run(self, seed: int) -> Decoding:
        return baseline(
            self._pair.target,
            self._ids,
            self._settings(seed),
            texts=self._texts,
            eos_ids=self._pair.eos_ids,
            observe=False,
        )
