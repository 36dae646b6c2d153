"""Each round from where the best guess is to be had: the text itself, the store, or a draft.

Copying is free and nearly always right after a long match; the store of the target's own text is
free and right where a phrase is a habit of the target; a trained draft costs time and always has
something to say. They fail in different places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from specviz.drafters import Drafter, draft_model, feature_draft, prompt_lookup, retrieval
from specviz.records import Settings
from specviz.sampling import Chance, Filters, Guess

NAME = "combined"
SUMMARY = "Copies after a long match, else looks the words up, else asks a trained draft."
ORDER = 30
GAMMA = 8
SURE_MATCH = 3
"""An n-gram of this length repeated in the text is worth copying whatever else there is."""
FLOOR = 0.3
"""How sure the store must be of a token before the draft model is not asked."""


class Combined(Drafter):
    """Asks each drafter in turn; the first that has a guess drafts the round."""

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        self._drafters = drafters
        self.reads_features = any(drafter.reads_features for drafter in drafters)

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
    """Whether the pair has a store, so that there is something to combine."""
    return getattr(pair, "datastore", None) is not None


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> Combined:
    """Prompt lookup for long matches, then the store, then the feature draft or else the draft
    model, where there is one."""
    filters = Filters(settings, prompt_length, pair.eos_ids, torch.device("cpu"))
    drafters: list[Drafter] = [
        prompt_lookup.PromptLookup(shortest=SURE_MATCH),
        retrieval.Retrieval(
            pair.datastore, filters, chance, pair.target.vocabulary, shortest=2, floor=FLOOR
        ),
    ]
    if pair.feature is not None:
        drafters.append(feature_draft.create(pair, settings, prompt_length, chance))
    elif pair.draft is not None:
        drafters.append(draft_model.create(pair, settings, prompt_length, chance))
    drafters.append(prompt_lookup.PromptLookup(longest=2, shortest=2))
    return Combined(drafters)
