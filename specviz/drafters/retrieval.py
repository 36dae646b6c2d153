"""Guess what followed the same words in a store of the target's own text.

The idea of REST (arXiv 2311.08252): the longest end of the text that stands in the store, and
what came after it there. The counts of what came next are the law the guess is drawn from, so
with sampling q is a true law. No second model; microseconds a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from specviz.datastore import Datastore, Match
from specviz.drafters import Drafter
from specviz.records import Settings
from specviz.sampling import Chance, Filters, Guess

NAME = "retrieval"
SUMMARY = "No second model: it looks the last words up in text the target wrote before."
ORDER = 20
GAMMA = 6
LONGEST = 8
SHORTEST = 1
FLOOR = 0.1
"""How sure the store must be of a whole draft, unless the run's settings ask for more."""
SHOWN = 12
"""Tokens of the matched passage that are kept for showing."""


class Retrieval(Drafter):
    """Longest match first, then the likeliest continuation as long as it stays likely enough.

    ``floor`` is the least probability, by the store's own counts, that the whole draft up to a
    token is right; where it would fall below, the draft ends. Whether to go on is decided before
    a token is drawn and so leaves its law alone.
    """

    def __init__(
        self,
        store: Datastore,
        filters: Filters,
        chance: Chance,
        vocabulary: int,
        *,
        shortest: int = SHORTEST,
        floor: float = FLOOR,
    ) -> None:
        self._store = store
        self._filters = filters
        self._chance = chance
        self._vocabulary = vocabulary
        self._shortest = shortest
        self._floor = floor

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """See ``Drafter.draft``. Nothing where the store knows no such text."""
        match = self._store.longest(tokens, LONGEST, self._shortest)
        if match is None:
            return []
        matched, passage = match.length, tuple(self._store.passage(match, SHOWN))
        text, sure = list(tokens), 1.0
        guesses: list[Guess] = []
        while match is not None and len(guesses) < gamma:
            ids, counts = self._successors(match)
            if not len(ids):
                break
            # Half an occurrence of something else: a single sighting is no certainty.
            sure *= counts.max() / (counts.sum() + 0.5)
            if sure < self._floor:
                break
            guess = self._guess(ids, counts, text, matched, passage)
            if guess is None:
                break
            guesses.append(guess)
            passage = ()
            text.append(guess.id)
            match = self._store.narrow(match, guess.id)
        return guesses

    def _successors(self, match: Match) -> tuple[np.ndarray, np.ndarray]:
        ids, counts = self._store.successors(match)
        known = ids < self._vocabulary
        return ids[known], counts[known]

    def _guess(
        self,
        ids: np.ndarray,
        counts: np.ndarray,
        text: list[int],
        matched: int,
        passage: tuple[int, ...],
    ) -> Guess | None:
        """One token of those that followed, [k], with counts [k]; None where the run's filters
        rule all of them out."""
        targets = torch.from_numpy(ids)
        logits = torch.from_numpy(np.log(counts / counts.sum()))
        shown: dict[str, Any] = {"matched": matched, "passage": passage}
        if self._filters.pass_greedy_through:
            best = int(ids[counts.argmax()])
            return Guess(best, NAME, ids=targets, logits=logits, **shown)
        dense = torch.full((self._vocabulary,), float("-inf"), dtype=torch.float64)
        dense[targets] = logits
        scores = self._filters.last(dense[None], text)
        if scores.max() == float("-inf"):
            return None
        if self._filters.greedy:
            return Guess(int(scores.argmax()), NAME, ids=targets, logits=logits, **shown)
        law = scores.softmax(-1)
        token = self._chance.choose(law)
        return Guess(token, NAME, law, law[token].item(), logits=scores, **shown)


def available(pair: Any) -> bool:
    """Whether there is a store of the pair's target."""
    return getattr(pair, "datastore", None) is not None


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> Retrieval:
    """A retrieval drafter of ``pair`` for one run."""
    filters = Filters(settings, prompt_length, pair.eos_ids, torch.device("cpu"))
    floor = max(FLOOR, settings.confidence)
    return Retrieval(pair.datastore, filters, chance, pair.target.vocabulary, floor=floor)
