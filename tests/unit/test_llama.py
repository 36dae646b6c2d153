"""The lean pass: the same logits as transformers' own, or not taken."""

from __future__ import annotations

import pytest
import torch
from kit import VOCABULARY, llama, new_ids, noisy, plain, speculate, target
from transformers import AutoModelForCausalLM, Qwen2Config

from specviz.cache import LanguageModel
from specviz.llama import LeanState, lean
from specviz.records import Settings


@pytest.mark.parametrize("parts", [[30], [1] * 12, [5, 1, 4, 1, 9], [500, 40]])
def test_logits_equal_transformers_however_the_text_is_cut(parts):
    module = llama(3, context=1024)
    ids = [(5 * i) % VOCABULARY for i in range(sum(parts))]
    state, found, start = LeanState(lean(module)), [], 0
    with torch.inference_mode():
        for part in parts:
            found.append(state.forward(ids[start : start + part], part))
            start += part
        expected = module(input_ids=torch.tensor([ids])).logits[0]
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-4, atol=1e-4)


def test_the_modules_own_weights_are_the_fused_ones_and_still_work():
    module = llama(3)
    before = module(input_ids=torch.tensor([[1, 2, 3]])).logits
    form = lean(module)
    after = module(input_ids=torch.tensor([[1, 2, 3]])).logits
    torch.testing.assert_close(before, after)
    fused = form.layers[0].qkv.untyped_storage().data_ptr()
    assert module.model.layers[0].self_attn.q_proj.weight.untyped_storage().data_ptr() == fused


def test_scaled_rotary_positions_are_kept():
    module = llama(3)
    module.config.rope_parameters = {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
    }  # fmt: skip
    scaled = type(module)(module.config).eval()
    assert lean(scaled) is not None


def test_other_architectures_and_biases_are_left_to_transformers():
    config = Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2,
    )  # fmt: skip
    assert lean(AutoModelForCausalLM.from_config(config)) is None
    biased = llama(0)
    biased.config.attention_bias = True
    assert lean(biased) is None


def test_a_form_that_disagrees_is_not_taken(monkeypatch):
    from specviz import llama as module

    monkeypatch.setattr(module, "mlp", lambda layer, hidden, eps: torch.zeros_like(hidden))
    assert lean(llama(0)) is None


def test_the_loop_gives_the_same_run_through_either_forward():
    settings = Settings(max_new_tokens=40, gamma=3)
    general = LanguageModel("T", target().module, VOCABULARY, 256)
    draft = LanguageModel("N", noisy().module, VOCABULARY, 256)
    assert target().lean is not None
    assert new_ids(speculate(settings, draft, target=general)) == new_ids(
        speculate(settings, noisy())
    )
    assert new_ids(plain(settings, target=general)) == new_ids(plain(settings))
