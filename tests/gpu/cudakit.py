"""Tiny models on a GPU, with and without captured steps."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from kit import VOCABULARY, llama, wrap

from specviz.attention import leave_out_cudnn
from specviz.cache import LanguageModel
from specviz.pairs.replay import graphs_for

GPU = torch.device("cuda", 0)


@cache
def model(
    seed: int = 0,
    noise: float = 0.0,
    dtype: torch.dtype = torch.float32,
    device: torch.device = GPU,
    context: int = 256,
) -> LanguageModel:
    """A tiny random Llama on a GPU, run eagerly; with ``noise`` nearly the one without."""
    leave_out_cudnn()
    module = llama(seed, context=context)
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in module.parameters() if noise else ():
            weight.add_(torch.randn_like(weight) * noise * weight.std())
    return wrap(module.to(device, dtype), "on the GPU", context)


@cache
def captured(*arguments, **options) -> LanguageModel:
    """``model`` with its steps captured, as loading a model does it."""
    eager = model(*arguments, **options)
    graphs, note = graphs_for(eager.lean, eager.context)
    assert note == "on", note
    return replace(eager, graphs=graphs)


def ids(count: int) -> list[int]:
    return [(5 * i + 3) % VOCABULARY for i in range(count)]
