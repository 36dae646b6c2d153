"""Each round from where the best guess is to be had: the text itself, the store, or a draft.

Copying is free and nearly always right after a long match; the store of the target's own text is
free and right where a phrase is a habit of the target; a trained draft costs time and always has
something to say. They fail in different places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from specviz.drafters import Drafter, draft_model, feature_draft, prompt_lookup, retrieval
from specviz.records import Settings
from specviz.sampling import Chance, Filters, Guess

NAME = "combined"
SUMMARY = "Copies after a long match, else looks the words up, else asks a trained draft."
ORDER = 0
GAMMA = 8
LONGEST, SURE_MATCH = 6, 3
"""A repeated n-gram of three tokens or more is worth copying whatever else there is."""
STORE_FLOOR = {"feature draft": 0.7, "draft model": 0.3, "": 0.2}
"""How sure the store must be of a whole draft, by what would guess in its place: the better that
is, the surer."""
CONFIDENCE = 0.3
"""How sure a trained draft must be of all it has guessed to go on: a step of one costs about a
twentieth of a target call, and a token more to verify half of that."""


class Combined(Drafter):
    """Asks each drafter in turn; the first that has a guess drafts the round."""

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        self._drafters = drafters
        self.reads_features = any(drafter.reads_features for drafter in drafters)

        self.devices = tuple(device for drafter in drafters for device in drafter.devices)

    def prepare(self, start: int, end: int, gamma: int) -> None:
        """See ``Drafter.prepare``."""
        for drafter in self._drafters:
            drafter.prepare(start, end, gamma)

    def prefill(self, tokens: Sequence[int]) -> None:
        """See ``Drafter.prefill``."""
        for drafter in self._drafters:
            drafter.prefill(tokens)

    def read_features(self, features: Tensor) -> None:
        """See ``Drafter.read_features``."""
        for drafter in self._drafters:
            if drafter.reads_features:
                drafter.read_features(features)

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """See ``Drafter.draft``."""
        for drafter in self._drafters:
            guesses = drafter.draft(tokens, gamma)
            if guesses:
                return guesses
        return []


def available(pair: Any) -> bool:
    """Whether the pair has anything beside its text to combine with it."""
    return any(part is not None for part in (pair.draft, pair.feature, pair.datastore))


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> Combined:
    """Long matches in the text, the store, and the feature draft or else the draft model: when
    greedy in this order, else with the trained draft first."""
    filters = Filters(settings, prompt_length, pair.eos_ids, torch.device("cpu"))
    sure = replace(settings, confidence=max(CONFIDENCE, settings.confidence))
    method = next(
        (module for module in (feature_draft, draft_model) if module.available(pair)), None
    )
    trained = [method.create(pair, sure, prompt_length, chance)] if method else []
    free: list[Drafter] = [prompt_lookup.PromptLookup(LONGEST, SURE_MATCH)]
    if pair.datastore is not None:
        floor = max(STORE_FLOOR[method.NAME if method else ""], settings.confidence)
        vocabulary = pair.target.vocabulary
        free.append(retrieval.Retrieval(pair.datastore, filters, chance, vocabulary, floor=floor))
    free_last = prompt_lookup.PromptLookup(longest=2, shortest=2)
    # A certain guess is accepted with probability p: at a temperature that is seldom enough for a
    # trained draft, which knows its q, to come first.
    order = [*free, *trained] if settings.greedy else [*trained, *free]
    return Combined([*order, free_last])
