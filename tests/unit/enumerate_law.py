"""The exact law of a random program: run it once for every path through its decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from types import SimpleNamespace

import torch
from torch import nn
from transformers import LlamaConfig

from specviz.cache import LanguageModel


class Script:
    """A Chance that follows a given path and multiplies up the probability of it."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.weight = 1.0
        self.options: list[list[float]] = []

    def accepts(self, probability: float) -> tuple[bool, float]:
        taken = self._take([probability, 1 - probability])
        return taken == 0, 0.0 if taken == 0 else 1.0

    def choose(self, law: torch.Tensor) -> int:
        exact = law.double()
        return self._take((exact / exact.sum()).tolist())

    def _take(self, probabilities: list[float]) -> int:
        step = len(self.options)
        self.options.append(probabilities)
        if step == len(self.path):
            self.path.append(next(i for i, p in enumerate(probabilities) if p > 0))
        self.weight *= probabilities[self.path[step]]
        return self.path[step]


def law_of(play: Callable[[Script], Hashable]) -> dict[Hashable, float]:
    """The probability of every outcome of ``play(chance)``, by depth-first enumeration."""
    law: dict[Hashable, float] = defaultdict(float)
    path: list[int] | None = []
    while path is not None:
        script = Script(path)
        law[play(script)] += script.weight
        path = _next_path(script)
    return dict(law)


def _next_path(script: Script) -> list[int] | None:
    for step in reversed(range(len(script.options))):
        later = script.options[step][script.path[step] + 1 :]
        ahead = next((i for i, p in enumerate(later) if p > 0), None)
        if ahead is not None:
            return [*script.path[:step], script.path[step] + 1 + ahead]
    return None


class TableModel(nn.Module):
    """A model whose next-token law is a table over the last two tokens, [V, V, V].

    It reads those tokens back out of the KV cache it is given, so a wrong roll-back changes
    its laws as it would a real model's.
    """

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table = table
        vocabulary = table.shape[0]
        self.config = LlamaConfig(
            vocab_size=vocabulary, hidden_size=4, num_hidden_layers=1, num_attention_heads=1
        )
        self._embedding = nn.Embedding(vocabulary, 1)

    def get_input_embeddings(self) -> nn.Embedding:
        return self._embedding

    def forward(self, input_ids, cache, use_cache, logits_to_keep):  # type: ignore[no-untyped-def]
        states = input_ids.float()[:, None, :, None]
        seen = cache.update(states, states, 0)[0][0, 0, :, 0].long()
        last = seen[-logits_to_keep:]
        before = torch.cat([seen.new_zeros(1), seen])[-logits_to_keep - 1 : -1]
        return SimpleNamespace(logits=self.table[before, last].log()[None])


def table_model(seed: int, vocabulary: int = 4, sharpness: float = 1.5) -> LanguageModel:
    """A random TableModel."""
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(vocabulary, vocabulary, vocabulary, generator=generator)
    return LanguageModel(f"table {seed}", TableModel(logits.softmax(-1)), vocabulary, 64)
