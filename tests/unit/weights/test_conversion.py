"""From the GGUF file to the model."""

from __future__ import annotations

import pytest
import torch

from specviz import weights
from specviz.weights import sources


@pytest.fixture
def tiny_gguf(tmp_path):
    """A tiny Llama as a GGUF file, and the module it was made of."""
    from checkpoints import save_llama
    from gguf import GGUFWriter
    from tokenizers import pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters, "\u0120\u0120"]
    module = save_llama(tmp_path / "llama", 0, len(tokens), tie_word_embeddings=True)
    path = tmp_path / "tiny.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(["\u0120 \u0120"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    for name, weight in module.state_dict().items():
        if name != "lm_head.weight":
            writer.add_tensor(*_as_gguf(name, weight.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, module


def _as_gguf(name, weight):
    """GGUF's name of a Llama weight, with llama.cpp's order of the rotary dimensions."""
    if "q_proj" in name or "k_proj" in name:
        heads = 4 if "q_proj" in name else 2
        weight = weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
    for ours, theirs in (
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("model.layers.", "blk."),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("post_attention_layernorm", "ffn_norm"),
        ("input_layernorm", "attn_norm"),
    ):
        name = name.replace(ours, theirs)
    return name, weight


def test_conversion_gives_the_same_model_and_the_tokenizer_it_was_trained_with(
    tiny_gguf, tmp_path, capfd
):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path, module = tiny_gguf
    folder = tmp_path / "converted"
    folder.mkdir()
    sources.convert_gguf(path, folder, weights.silent)
    assert "it/s" not in capfd.readouterr().err

    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.tensor([[1, 7, 30, 60, 9]])
    for weight in module.parameters():
        weight.data = weight.data.bfloat16().float()
    expected = module(ids).logits
    assert torch.allclose(loaded(ids).logits, expected, atol=1e-5)
    assert loaded.generation_config.eos_token_id == 2

    tokenizer = AutoTokenizer.from_pretrained(folder)
    two_spaces = tokenizer.convert_tokens_to_ids("\u0120\u0120")
    assert tokenizer("  7").input_ids[0] == two_spaces  # digits are split off first
    assert tokenizer("a").input_ids == [tokenizer.convert_tokens_to_ids("a")]  # no BOS
