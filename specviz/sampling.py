"""From logits to a law, and from two laws to a decision. Pure tensor functions and one small
class that holds a run's logits processors.

Shapes: V is the vocabulary, n the number of drafted tokens; row i of n + 1 verified rows is the
target's law of the token behind the first i drafted ones. Equations: arXiv 2211.17192,
section 2 (speculative sampling) and appendix A.1 (why the output's law is the target's own).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor
from transformers import LogitsProcessorList
from transformers.generation.logits_process import (
    MinNewTokensLengthLogitsProcessor,
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from specviz.records import Settings

NOT_NUMBERS = (
    "returned logits that are not numbers (NaN or infinity); choose float32 as the number format,"
    " or other models"
)


class BadLogits(ArithmeticError):
    """A model returned logits that are not numbers, so no token can be chosen."""


@contextmanager
def logits_of(model: str) -> Iterator[None]:
    """Say whose logits they are that are not numbers."""
    try:
        yield
    except BadLogits:
        raise BadLogits(f"{model} {NOT_NUMBERS}") from None


class Chance(Protocol):
    """Where a run's random decisions come from."""

    def accepts(self, probability: float) -> tuple[bool, float]:
        """True with ``probability``, and the uniform number that decided."""

    def choose(self, law: Tensor) -> int:
        """An index drawn from ``law`` [V], non-negative, of any positive sum."""


class SeededChance:
    """A run's own generator: the same seed gives the same run, whatever else runs beside it.

    Everything is drawn on the CPU, so that a seed means the same on every device.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return torch.rand((), generator=self._generator, dtype=torch.float64).item()

    def accepts(self, probability: float) -> tuple[bool, float]:
        """See ``Chance.accepts``."""
        u = self.uniform()
        return u < probability, u

    def choose(self, law: Tensor) -> int:
        """Inverse-transform sampling: the first index whose cumulated law exceeds u."""
        cumulated = law.cpu().double().cumsum(0)
        total = cumulated[-1].item()
        if not (math.isfinite(total) and total > 0):
            raise BadLogits(f"a model {NOT_NUMBERS}")
        u = torch.tensor([self.uniform() * total], dtype=torch.float64)
        return min(int(torch.searchsorted(cumulated, u, right=True)), law.shape[0] - 1)


class Filters:
    """The logits processors of one run, in transformers' own order: repetition penalty, no
    repeated n-grams and minimum length, which look at the row's own prefix; then temperature,
    top-k, top-p and min-p, which do not. Draft and target pass through the same ones."""

    def __init__(
        self, settings: Settings, prompt_length: int, eos_ids: Sequence[int], device: torch.device
    ) -> None:
        self.greedy = settings.greedy
        self._prefixed: Any = _prefixed(settings, prompt_length, eos_ids, device)
        self._warpers = [] if self.greedy else _warpers(settings)

    def apply(self, logits: Tensor, tokens: Sequence[int], drafted: Sequence[int]) -> Tensor:
        """Process verified rows [n + 1, V]; row i has the prefix tokens + drafted[:i].

        Returns float32 logits (float64 of float64 ones), -inf where a token is ruled out.
        """
        scores = logits if logits.dtype == torch.float64 else logits.float()
        if self._prefixed:
            whole = torch.tensor([[*tokens, *drafted]], device=logits.device)
            known = len(tokens)
            rows = [
                self._prefixed(whole[:, : known + i], scores[i : i + 1].clone())
                for i in range(scores.shape[0])
            ]
            scores = torch.cat(rows)
        for warper in self._warpers:
            scores = warper(None, scores)
        return scores

    def last(self, logits: Tensor, tokens: Sequence[int]) -> Tensor:
        """Process one row [1, V] behind ``tokens``; returns [V]."""
        return self.apply(logits, tokens, ())[0]

    @property
    def reads_prefix(self) -> bool:
        """Whether the text before a row matters."""
        return bool(self._prefixed)

    @property
    def pass_greedy_through(self) -> bool:
        """Whether the argmax of raw logits is already the decision."""
        return self.greedy and not self._prefixed


def _prefixed(
    settings: Settings, prompt_length: int, eos_ids: Sequence[int], device: torch.device
) -> LogitsProcessorList:
    chain = LogitsProcessorList()
    if settings.repetition_penalty != 1:
        chain.append(RepetitionPenaltyLogitsProcessor(penalty=float(settings.repetition_penalty)))
    if settings.no_repeat_ngram_size:
        chain.append(NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram_size))
    if settings.min_new_tokens and eos_ids:
        chain.append(
            MinNewTokensLengthLogitsProcessor(
                prompt_length, settings.min_new_tokens, list(eos_ids), device=str(device)
            )
        )
    return chain


def _warpers(settings: Settings) -> list[Any]:
    chain: list[Any] = []
    if settings.temperature != 1:
        chain.append(TemperatureLogitsWarper(float(settings.temperature)))
    if settings.top_k:
        chain.append(TopKLogitsWarper(settings.top_k))
    if settings.top_p < 1:
        chain.append(TopPLogitsWarper(float(settings.top_p)))
    if settings.min_p > 0:
        chain.append(MinPLogitsWarper(float(settings.min_p)))
    return chain


@dataclass(frozen=True, slots=True)
class Guess:
    """A drafted token and the law it was drawn from.

    ``law`` is q over the draft's own ids, [Vd], or None where the guess was certain (greedy or
    copied: q is one-hot). ``ids`` maps the draft's ids to the target's, None where they are the
    same. ``logits`` [Vd] are kept for showing only.
    """

    id: int
    source: str
    law: Tensor | None = None
    q: float = 1.0
    ids: Tensor | None = None
    logits: Tensor | None = None
    copied_from: int | None = None
    matched: int | None = None
    passage: tuple[int, ...] = ()


def laws_moved(guesses: Sequence[Guess], device: torch.device) -> list[Guess]:
    """The guesses of one draft with their laws on ``device``, brought there in one piece."""
    if not guesses or any(guess.law is None for guess in guesses):
        return list(guesses)
    laws = torch.stack([guess.law for guess in guesses if guess.law is not None]).to(device)
    ids = guesses[0].ids
    ids = None if ids is None else ids.to(device)
    return [replace(g, law=law, ids=ids) for g, law in zip(guesses, laws, strict=True)]


def sureness(guess: Guess) -> float:
    """The draft's own probability of its guess; at temperature 0, where q is one-hot, that of
    the softmax at temperature 1. 1 for a guess without a law, such as a copied one."""
    if guess.law is not None or guess.logits is None:
        return guess.q
    return 1.0 / (guess.logits.float() - guess.logits.max().float()).exp().sum().item()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one verification decided. ``p`` and ``u`` belong to the tested guesses, in order."""

    accepted: int
    added: int
    p: tuple[float, ...]
    u: tuple[float, ...] = ()
    residual: Tensor | None = None


Verify: TypeAlias = Callable[[Tensor, Sequence[Guess], Chance], Verdict]
"""A decision over laws [n + 1, V] and n guesses: ``verify_sampled``, or a wrong one in a proof."""


def verify_greedy(choices: Sequence[int], guesses: Sequence[Guess]) -> Verdict:
    """Accept while the guess is the target's own first choice. ``choices`` holds n + 1 ids."""
    accepted = 0
    for guess, choice in zip(guesses, choices, strict=False):
        if guess.id != choice:
            break
        accepted += 1
    p = (1.0,) * accepted + (0.0,) * (accepted < len(guesses))
    return Verdict(accepted, choices[accepted], p)


def verify_sampled(laws: Tensor, guesses: Sequence[Guess], chance: Chance) -> Verdict:
    """Algorithm 1 of arXiv 2211.17192. ``laws`` [n + 1, V] are the target's filtered laws.

    Accept a guess with probability min(1, p/q); at the first rejection draw from the residual,
    and after full acceptance from the last row.
    """
    p: list[float] = []
    u: list[float] = []
    for i, guess in enumerate(guesses):
        p.append(laws[i, guess.id].item())
        if not math.isfinite(p[i]):
            raise BadLogits(f"a model {NOT_NUMBERS}")
        accepted, drawn = chance.accepts(min(1.0, p[i] / guess.q))
        u.append(drawn)
        if not accepted:
            rest = residual(laws[i], guess)
            return Verdict(i, chance.choose(rest), tuple(p), tuple(u), rest)
    return Verdict(len(guesses), chance.choose(laws[-1]), tuple(p), tuple(u))


def residual(p: Tensor, guess: Guess) -> Tensor:
    """max(p - q, 0), not yet normalised, [V]: the part of the target's law that accepting
    could not give. Where rounding leaves nothing of it, p itself (p equals q there)."""
    rest = p - dense_law(guess, p)
    rest.clamp_(min=0)
    total = rest.sum().item()
    return rest if math.isfinite(total) and total > 0 else p


def dense_law(guess: Guess, like: Tensor) -> Tensor:
    """q over the target's ids, [V]."""
    dense = torch.zeros_like(like)
    if guess.law is None:
        dense[guess.id] = 1.0
    elif guess.ids is None:
        dense[: guess.law.shape[0]] = guess.law
    else:
        dense[guess.ids] = guess.law.to(dense.device)
    return dense


def argmax(logits: Tensor) -> list[int]:
    """The likeliest id of each row of [n, V]. Raises BadLogits on NaN and infinity."""
    best = logits.max(dim=-1)
    if not all(math.isfinite(value) for value in best.values.tolist()):
        raise BadLogits(f"a model {NOT_NUMBERS}")
    return best.indices.tolist()
