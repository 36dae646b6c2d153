"""Models small enough to enumerate: the law of the next token is a table over the last two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LlamaConfig

from specviz.cache import LanguageModel
from specviz.datastore import Datastore
from specviz.records import Machine, PairInfo

CONTEXT = 64


class TableModel(nn.Module):
    """Next-token laws from a table over the last two tokens, [V, V, V], float64.

    It reads those tokens back out of the KV cache it is given, so a wrong roll-back changes
    its laws as it would a real model's.
    """

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = table
        vocabulary = table.shape[0]
        self.config = LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=4,
            num_hidden_layers=1,
            num_attention_heads=1,
            bos_token_id=None,
            eos_token_id=None,
        )
        self._embedding = nn.Embedding(vocabulary, 1)

    def get_input_embeddings(self) -> nn.Embedding:
        """Tells where ids belong: on the CPU."""
        return self._embedding

    def forward(
        self, input_ids: Tensor, cache: Any, use_cache: bool, logits_to_keep: int
    ) -> SimpleNamespace:
        """Logits [1, keep, V] behind the ids [1, n], which go into the cache."""
        states = input_ids.float()[:, None, :, None]
        seen = cache.update(states, states, 0)[0][0, 0, :, 0].long()
        last = seen[-logits_to_keep:]
        before = torch.cat([seen.new_zeros(1), seen])[-logits_to_keep - 1 : -1]
        return SimpleNamespace(logits=self.table[before, last].log()[None])


def table_model(seed: int, vocabulary: int = 4, sharpness: float = 1.5) -> LanguageModel:
    """A random TableModel; the larger ``sharpness``, the surer it is."""
    generator = torch.Generator().manual_seed(seed)
    shape = (vocabulary, vocabulary, vocabulary)
    logits = sharpness * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return LanguageModel(f"table {seed}", TableModel(logits.softmax(-1)), vocabulary, CONTEXT)


class Letters:
    """A tokenizer of one letter an id."""

    chat_template = None
    bos_token_id = None

    def decode(self, ids: Sequence[int], **_: object) -> str:
        """The letters of ``ids``."""
        return "".join(chr(ord("a") + i) for i in ids)

    def convert_ids_to_tokens(self, token: int) -> str:
        """The letter of one id."""
        return self.decode([token])


@dataclass(frozen=True)
class TablePair:
    """What the loop and the drafters ask of a pair, with tables for models."""

    target: LanguageModel
    draft: LanguageModel | None
    draft_ids: tuple[int, ...] | None = None
    draft_unknown: int = 0
    datastore: Datastore | None = None
    feature: Any = None
    eos_ids: tuple[int, ...] = ()
    tokenizer: Letters = field(default_factory=Letters)
    info: PairInfo = field(default_factory=lambda: PairInfo("tables", "table", "table"))
    machine: Machine = field(default_factory=lambda: Machine("cpu", "float64", 1))

    def logits(self, prefix: Sequence[int]) -> Tensor:
        """What the target alone says behind ``prefix``, two tokens or more, [1, V]; without any
        cache."""
        row: Tensor = self.target.module.table[prefix[-2], prefix[-1]]
        return row.log()[None]


def small_store(seed: int, vocabulary: int, tokens: int = 200) -> Datastore:
    """A store of random text over a small vocabulary."""
    generator = np.random.default_rng(seed)
    return Datastore(generator.integers(0, vocabulary, tokens))
