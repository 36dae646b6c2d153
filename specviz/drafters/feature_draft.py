"""One layer that goes on from the target's own hidden states drafts token by token.

The idea of EAGLE (arXiv 2401.15077); see ``specviz.feature``. It sees what the target was about
to say, where a separate draft model sees only the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from specviz.drafters import Drafter
from specviz.drafters.guesser import Guesser, IdMap
from specviz.feature import FeatureModel
from specviz.records import Settings
from specviz.sampling import Chance, Guess, sureness

NAME = "feature draft"
SUMMARY = "One extra layer reads the target's own hidden state and guesses on from there."
ORDER = 5
GAMMA = 3


class FeatureDraft(Drafter):
    """Keeps one cache entry for each verified token behind the first. Those it makes from its own
    guesses at hidden states are rolled back before every round."""

    reads_features = True

    def __init__(self, model: FeatureModel, guesser: Guesser, confidence: float = 0.0) -> None:
        self._state = model.state()
        self._guesser = guesser
        self._confidence = confidence
        self._unread: list[Tensor] = []
        self._settled = 0

    def prepare(self, start: int, end: int, gamma: int) -> None:
        """See ``Drafter.prepare``. A round's first step reads all that the last one added."""
        self._state.prepare(start, end, gamma + 1)

    def read_features(self, features: Tensor) -> None:
        """See ``Drafter.read_features``."""
        self._unread.append(features)

    def prefill(self, tokens: Sequence[int]) -> None:
        """See ``Drafter.prefill``. The last entry is left for the first round, whose guess it
        yields."""
        if len(tokens) > 2:
            features = torch.cat(self._unread)
            self._state.step(features[:-1], tokens[1:-1])
            self._settled = len(tokens) - 2
            self._unread = [features[-1:]]

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """See ``Drafter.draft``. Nothing behind a single token: no hidden state is known yet."""
        if not self._unread or gamma <= 0:
            return []
        self._state.roll_back(self._settled)
        text, sure = list(tokens), 1.0
        logits, feature = self._state.step(torch.cat(self._unread), tokens[self._settled + 1 :])
        self._unread, self._settled = [], len(tokens) - 1
        guesses = [self._guesser.guess(logits, text)]
        while len(guesses) < gamma:
            if self._confidence:
                sure *= sureness(guesses[-1])
                if sure < self._confidence:
                    break
            text.append(guesses[-1].id)
            logits, feature = self._state.step(feature, text[-1:])
            guesses.append(self._guesser.guess(logits, text))
        return guesses


def available(pair: Any) -> bool:
    """Whether a feature draft of the pair's target is there."""
    return pair.feature is not None


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> FeatureDraft:
    """A feature drafter of ``pair`` for one run."""
    model = pair.feature
    id_map = IdMap(model.ids, 0, pair.target.vocabulary)
    device = model.fuse.device
    guesser = Guesser(NAME, settings, prompt_length, pair.eos_ids, device, chance, id_map)
    return FeatureDraft(model, guesser, settings.confidence)
