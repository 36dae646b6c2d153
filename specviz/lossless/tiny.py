"""A Llama small enough to enumerate, and a feature draft of it.

A feature draft reads its target's hidden states, and a table has none. Both have random weights in
float64 and run through the product's own lean pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from specviz.cache import CachedModel, LanguageModel
from specviz.feature import FeatureModel
from specviz.llama import LeanLlama
from specviz.lossless.tables import CONTEXT, TablePair

WIDTH = 8


class TinyPair(TablePair):
    """A pair whose target is a Llama."""

    def logits(self, prefix: Sequence[int]) -> Tensor:
        """See ``TablePair.logits``. Here the whole text is read in one call, from an empty cache:
        nothing was ever drafted in it or rolled back."""
        return CachedModel(self.target).append(prefix)


def tiny_llama(seed: int, vocabulary: int = 4, layers: int = 2) -> LanguageModel:
    """A random Llama in float64."""
    module = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=WIDTH,
            intermediate_size=2 * WIDTH,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=CONTEXT,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=None,
        )
    ).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            if weight.dim() == 2:  # the norms stay 1
                weight.normal_(0.0, 0.6, generator=generator)
    lean = LeanLlama.of(module.eval())
    return LanguageModel(f"tiny {seed}", module, vocabulary, CONTEXT, lean=lean)


def tiny_feature_draft(target: LanguageModel, ids: tuple[int, ...], seed: int) -> FeatureModel:
    """A random feature draft of a tiny Llama over some of its ``ids``: the layer of another one
    between the target's own embedding and head."""
    own, other = target.lean, tiny_llama(seed, target.vocabulary, layers=1).lean
    if own is None or other is None:
        raise ValueError("a feature draft needs a target with a lean pass")
    generator = torch.Generator().manual_seed(seed)
    fuse = torch.randn(WIDTH, 2 * WIDTH, generator=generator, dtype=torch.float64)
    return FeatureModel(
        name="tiny feature draft",
        stack=replace(own, layers=other.layers, head=own.head[list(ids)]),
        fuse=fuse / WIDTH**0.5,
        embed_norm=torch.ones_like(own.norm),
        feature_norm=torch.ones_like(own.norm),
        ids=ids,
        parameters=0,
    )
