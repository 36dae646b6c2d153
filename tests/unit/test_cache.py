"""The cache rolls back exactly, or says why it cannot."""

from __future__ import annotations

import pytest
import torch
from kit import VOCABULARY, new_ids, plain, speculate, stranger, target, wrap

from specviz.cache import CachedModel, ContextFull, NotRollable
from specviz.records import Settings


@pytest.mark.parametrize("context", [40, 700])
def test_rolled_back_cache_gives_the_logits_of_a_fresh_one(context):
    cached = CachedModel(target() if context < 256 else wrap(target().module, context=1024))
    ids = [(7 * i) % VOCABULARY for i in range(context)]
    with torch.no_grad():
        cached.append(ids)
        cached.append([1, 2, 3], keep=3)
        cached.roll_back(context + 1)
        again = cached.append([4, 5], keep=2)
        fresh = target().module(torch.tensor([[*ids, 1, 4, 5]])).logits[0, -2:]
    assert cached.length == context + 3
    torch.testing.assert_close(again, fresh, rtol=1e-4, atol=1e-4)


def test_more_tokens_than_the_context_are_refused_with_both_numbers():
    cached = CachedModel(wrap(target().module, "T", context=8))
    with pytest.raises(ContextFull, match="9 tokens are more than the 8"):
        cached.append(list(range(9)))


def test_a_sliding_window_rolls_back_exactly():
    from transformers import AutoModelForCausalLM, MistralConfig

    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, sliding_window=8, initializer_range=0.3,
    )  # fmt: skip
    module = AutoModelForCausalLM.from_config(config).eval()
    mistral = wrap(module, "sliding")
    settings = Settings(max_new_tokens=40, gamma=4)
    run = speculate(settings, stranger(), target=mistral)
    assert new_ids(run) == new_ids(plain(settings, target=mistral))


def test_a_recurrent_model_is_refused_with_the_reason():
    from transformers import AutoModelForCausalLM, MambaConfig

    torch.manual_seed(0)
    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=8)
    mamba = wrap(AutoModelForCausalLM.from_config(config).eval(), "recurrent")
    with pytest.raises(NotRollable, match="recurrent"):
        speculate(Settings(max_new_tokens=20, gamma=4), stranger(), target=mamba)
