"""Tiny models on a GPU, with and without captured steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from kit import VOCABULARY, llama, wrap

from specviz.cache import LanguageModel
from specviz.pairs.replay import graphs_for

GPU = torch.device("cuda", 0)


@cache
def model(seed: int = 0, noise: float = 0.0, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """A tiny random Llama on the GPU, run eagerly; with ``noise`` nearly the one without."""
    module = llama(seed)
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in module.parameters() if noise else ():
            weight.add_(torch.randn_like(weight) * noise * weight.std())
    return wrap(module.to(GPU, dtype), "on the GPU")


@cache
def captured(seed: int = 0, noise: float = 0.0, dtype: torch.dtype = torch.float32):
    """The same with its steps captured, as loading a model does it."""
    eager = model(seed, noise, dtype)
    graphs, note = graphs_for(eager.lean, eager.context)
    assert note == "on", note
    return replace(eager, graphs=graphs)


def ids(count: int) -> list[int]:
    return [(5 * i + 3) % VOCABULARY for i in range(count)]
