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
from specviz.drafters.guesser import Guesser, IdMap
from specviz.records import Settings
from specviz.sampling import Chance, Guess, laws_moved, sureness

NAME = "draft model"
SUMMARY = "A smaller model of the same kind guesses the next tokens, one at a time."
ORDER = 1


class DraftModel(Drafter):
    """Drafts with a KV cache that is rolled back to the text before each round.

    ``verifier`` is where guesses are verified: the laws of a round's guesses go there together,
    once, where the draft stands on another device. The guesses themselves are plain ids.
    """

    def __init__(
        self,
        model: LanguageModel,
        guesser: Guesser,
        confidence: float = 0.0,
        verifier: torch.device | None = None,
    ) -> None:
        self._cached = CachedModel(model)
        self.devices = model.devices
        self._elsewhere = None if verifier in (None, model.device) else verifier
        self._guesser = guesser
        self._confidence = confidence
        self._tokens: list[int] = []
        self._own: list[int] = []
        self._settled = 0

    def prepare(self, start: int, end: int, gamma: int) -> None:
        """See ``Drafter.prepare``. After full acceptance two tokens are read at once."""
        self._cached.prepare(start, end, 2)

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
            guess = self._guesser.guess(logits, self._tokens)
            guesses.append(guess)
            self._tokens.append(guess.id)
            self._own.append(self._guesser.own(guess.id))
            if self._confidence:
                sure *= sureness(guess)
        return guesses if self._elsewhere is None else laws_moved(guesses, self._elsewhere)

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
        self._own[known:] = [self._guesser.own(token) for token in fresh]
        self._cached.roll_back(min(self._cached.length, known, len(tokens) - 1))
        self._settled = len(tokens)


def available(pair: Any) -> bool:
    """Whether the pair has a draft model."""
    return pair.draft is not None


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> DraftModel:
    """A draft-model drafter of ``pair`` for one run."""
    id_map, model = None, pair.draft
    if pair.draft_ids is None:
        model = replace(model, vocabulary=min(model.vocabulary, pair.target.vocabulary))
    else:
        id_map = IdMap(pair.draft_ids, pair.draft_unknown, pair.target.vocabulary)
    guesser = Guesser(NAME, settings, prompt_length, pair.eos_ids, model.device, chance, id_map)
    return DraftModel(model, guesser, settings.confidence, pair.target.device)
