"""The greedy proof: the same tokens as the target alone, or the exact place where not, and why.

In float32 the texts must be equal. In lower precision a call on several tokens rounds otherwise
than a call on one, so where two tokens are all but equally likely either may come first: a near
tie, told by the distance of their logits. Anything wider is a bug.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from specviz import drafters, metrics
from specviz.chat import encode
from specviz.decode import Decoding
from specviz.drafters import NoDrafter
from specviz.records import LaneName, Run, Settings
from specviz.sampling import Guess, SeededChance, Verdict
from specviz.text import Texts

ROUNDINGS = 4
"""Steps of the dtype, at the size of the logit, within which two logits count as tied: each
layer rounds, and the last step is only the one that is seen."""
Finding = Literal["equal", "near tie", "bug"]


@dataclass(frozen=True, slots=True)
class Parting:
    """The first token at which two greedy texts differ. Logits are of the speculative lane's
    token and of the baseline's, in this order, as each lane's own call computed them."""

    index: int
    text: str
    baseline_text: str
    logits: tuple[float, float]
    baseline_logits: tuple[float, float]
    rounding: float

    @property
    def gap(self) -> float:
        """The wider of the two distances between the logits."""
        return max(abs(a - b) for a, b in (self.logits, self.baseline_logits))


@dataclass(frozen=True, slots=True)
class GreedyResult:
    """One prompt with one drafter. ``texts`` are the two lanes' tokens, for a diff."""

    prompt: str
    drafter: str
    gamma: int
    dtype: str
    tokens: int
    finding: Finding
    parting: Parting | None = None
    texts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong: equal, or a near tie where the precision allows one."""
        return self.finding == "equal" or (self.finding == "near tie" and self.dtype != "float32")


class _Watched(Decoding):
    """A lane that keeps the logits of its last call, [n + 1, V]."""

    logits: Tensor

    def _decide(self, logits: Tensor, guesses: list[Guess]) -> tuple[Tensor, Verdict]:
        self.logits = logits
        return super()._decide(logits, guesses)


class GreedyProof:
    """Texts of one pair under one set of settings, whose temperature must be 0."""

    def __init__(self, pair: Any, settings: Settings) -> None:
        if not settings.greedy:
            raise ValueError("the greedy proof needs temperature 0")
        self._pair, self._settings = pair, settings
        self._texts = Texts(pair.tokenizer)

    def compare(self, prompt: str, drafter_names: Sequence[str]) -> Iterator[GreedyResult]:
        """One result for each drafter; the baseline is decoded once."""
        ids = encode(self._pair, prompt, self._settings.chat)
        plain = self._finished("baseline", ids, "")
        for name in drafter_names:
            yield self._compare_one(prompt, ids, name, plain)

    def _compare_one(self, prompt: str, ids: list[int], name: str, plain: Run) -> GreedyResult:
        run = self._finished("speculative", ids, name)
        found = metrics.divergence(run, plain)
        parting = None if found is None else self._parting(ids, name, found)
        finding: Finding = "equal"
        if parting is not None:
            finding = "near tie" if parting.gap <= parting.rounding else "bug"
        elif not metrics.same_text(run, plain):
            finding = "bug"
        texts = tuple(tuple(t.text or t.label for t in lane.tokens) for lane in (run, plain))
        return GreedyResult(
            prompt=prompt,
            drafter=name,
            gamma=self._settings.gamma,
            dtype=self._pair.machine.dtype,
            tokens=len(run.tokens),
            finding=finding,
            parting=parting,
            texts=(texts[0], texts[1]),
        )

    def _parting(self, ids: list[int], name: str, found: metrics.Divergence) -> Parting:
        """Both lanes once more, up to where they part: the same decisions, and this time with
        the logits at hand."""
        pair_ids = [found.token.id, found.baseline_token.id]
        rows = [
            self._row(self._lane("speculative", ids, name), found.index),
            self._row(self._lane("baseline", ids, ""), found.index),
        ]
        logits = [[row[token].item() for token in pair_ids] for row in rows]
        largest = max(abs(value) for lane in logits for value in lane)
        return Parting(
            index=found.index,
            text=found.token.text or found.token.label,
            baseline_text=found.baseline_token.text or found.baseline_token.label,
            logits=(logits[0][0], logits[0][1]),
            baseline_logits=(logits[1][0], logits[1][1]),
            rounding=rounding(rows[0].dtype, largest),
        )

    @staticmethod
    def _row(run: _Watched, index: int) -> Tensor:
        """The logits [V] from which the token at ``index`` was decided."""
        for round_ in run:
            if round_.position + len(round_.committed) > index:
                return run.logits[index - round_.position]
        raise ValueError(f"the text has no token {index}")

    def _finished(self, lane: LaneName, ids: list[int], name: str) -> Run:
        run = self._lane(lane, ids, name)
        for _ in run:
            pass
        return run.run()

    def _lane(self, lane: LaneName, ids: list[int], name: str) -> _Watched:
        chance = SeededChance(self._settings.seed)
        guesser = (
            drafters.create(name, self._pair, self._settings, len(ids), chance)
            if name
            else NoDrafter()
        )
        return _Watched(
            lane,
            self._pair.target,
            guesser,
            ids,
            self._settings,
            texts=self._texts,
            eos_ids=self._pair.eos_ids,
            chance=chance,
            drafter_name=name,
            observe=False,
        )


def rounding(dtype: torch.dtype, logit: float) -> float:
    """ROUNDINGS steps between neighbouring numbers of ``dtype`` at the size of ``logit``."""
    if not logit:
        return 0.0
    return ROUNDINGS * torch.finfo(dtype).eps * 2.0 ** math.floor(math.log2(abs(logit)))
