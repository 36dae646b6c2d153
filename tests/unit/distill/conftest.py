"""A tiny target and a corpus of its own."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_corpus import TEMPLATE, tiny_target
from transformers import LlamaForCausalLM

from specviz.distill.corpus import write_batch


@pytest.fixture(scope="module")
def target() -> LlamaForCausalLM:
    return tiny_target()


@pytest.fixture(scope="module")
def corpus(target: LlamaForCausalLM) -> np.ndarray:
    return write_batch(target, TEMPLATE, [[11, 12, 13]], rows=12, length=120, seed=3)
