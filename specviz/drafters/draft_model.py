"""A smaller language model of the same vocabulary, or of a part of it, drafts token by token.

arXiv 2211.17192, section 2.1: the approximation model M_q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from specviz.cache import CachedModel, LanguageModel
from specviz.drafters import Drafter
from specviz.records import Settings
from specviz.sampling import Chance, Filters, Guess, argmax, sureness

NAME = "draft model"
SUMMARY = "A smaller model of the same kind guesses the next tokens, one at a time."
ORDER = 0


class IdMap:
    """Ids of a draft over a reduced vocabulary to the target's and back. Ids the draft does not
    know are shown to it as its ``unknown`` id."""

    def __init__(self, to_target: Sequence[int], unknown: int, vocabulary: int) -> None:
        self.to_target = list(to_target)
        self.tensor = torch.tensor(self.to_target)
        self.to_draft = [unknown] * vocabulary
        for draft_id, target_id in enumerate(self.to_target):
            self.to_draft[target_id] = draft_id


class DraftModel(Drafter):
    """Drafts with a KV cache that is rolled back to the text before each round."""

    def __init__(
        self,
        model: LanguageModel,
        filters: Filters,
        chance: Chance,
        id_map: IdMap | None = None,
        confidence: float = 0.0,
    ) -> None:
        self._cached = CachedModel(model)
        self._filters = filters
        self._chance = chance
        self._map = id_map
        self._tensor = id_map.tensor.to(model.device) if id_map else None
        self._tokens: list[int] = []
        self._own: list[int] = []
        self._settled = 0
        self._confidence = confidence

    def prefill(self, tokens: Sequence[int]) -> None:
        """See ``Drafter.prefill``."""
        room = self._cached.model.context
        if 1 < len(tokens) <= room:
            self._read(tokens)
            self._cached.append(self._own[:-1])

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """See ``Drafter.draft``. Drafts fewer where its own context ends, and no more behind a
        guess that leaves it less than ``confidence`` sure of the whole draft."""
        gamma = min(gamma, self._cached.model.context - len(tokens))
        if gamma <= 0:
            return []
        self._read(tokens)
        guesses: list[Guess] = []
        sure = 1.0
        while len(guesses) < gamma and sure >= self._confidence:
            logits = self._cached.append(self._own[self._cached.length :])
            guess = self._guess(logits)
            guesses.append(guess)
            self._tokens.append(guess.id)
            self._own.append(self._map.to_draft[guess.id] if self._map else guess.id)
            if self._confidence:
                sure *= sureness(guess)
        return guesses

    def _read(self, tokens: Sequence[int]) -> None:
        """Make the draft's text ``tokens``: forget guesses that were thrown away, keep the rest
        cached, and leave at least the last token to be fed. Only what was drafted since the last
        reading can differ."""
        known = min(self._settled, len(tokens))
        end = min(len(tokens), len(self._tokens))
        while known < end and self._tokens[known] == tokens[known]:
            known += 1
        fresh = list(tokens[known:])
        self._tokens[known:] = fresh
        self._own[known:] = [self._map.to_draft[t] for t in fresh] if self._map else fresh
        self._cached.roll_back(min(self._cached.length, known, len(tokens) - 1))
        self._settled = len(tokens)

    def _guess(self, logits: torch.Tensor) -> Guess:
        """One token from a row of logits [1, Vd]."""
        if self._filters.pass_greedy_through:
            own = argmax(logits)[0]
            return Guess(self._to_target(own), NAME, ids=self._tensor, logits=logits[0])
        scores = self._filters.last(logits, self._own)
        if self._filters.greedy:
            own = argmax(scores[None])[0]
            return Guess(self._to_target(own), NAME, ids=self._tensor, logits=scores)
        law = scores.softmax(-1)
        own = self._chance.choose(law)
        return Guess(
            self._to_target(own), NAME, law, law[own].item(), ids=self._tensor, logits=scores
        )

    def _to_target(self, own: int) -> int:
        return self._map.to_target[own] if self._map else own


def available(pair: Any) -> bool:
    """Whether the pair has a draft model."""
    return pair.draft is not None


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> DraftModel:
    """A draft-model drafter of ``pair`` for one run."""
    id_map, eos_ids, model = None, list(pair.eos_ids), pair.draft
    if pair.draft_ids is None:
        model = replace(model, vocabulary=min(model.vocabulary, pair.target.vocabulary))
    else:
        id_map = IdMap(pair.draft_ids, pair.draft_unknown, pair.target.vocabulary)
        known = set(pair.draft_ids)
        eos_ids = [id_map.to_draft[eos] for eos in eos_ids if eos in known]
    filters = Filters(settings, prompt_length, eos_ids, model.device)
    return DraftModel(model, filters, chance, id_map, settings.confidence)
