"""Tiny checkpoints on disk, as people would download them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specviz.pairs import Pair, Shelf

TEXT = ["the lighthouse keeper and the sea", "she said that the light was out", "1 2 3 4 5"] * 4
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer(
    *, bos: bool = False, template: str | None = TEMPLATE, extra: tuple[str, ...] = ()
) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of about 300 ids; 0, 1, 2 are special as in SmolLM2."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    inner.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if bos:
        inner.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
        )
    result = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        unk_token="<|endoftext|>",
    )
    result.add_tokens(list(extra))
    if template:
        result.chat_template = template
    return result


def save(
    folder: Path,
    *,
    seed: int = 0,
    words: PreTrainedTokenizerFast | None = None,
    padding: int = 0,
    layers: int = 2,
    context: int = 256,
    **config: Any,
) -> Path:
    """A tiny random Llama with its tokenizer; its head has ``padding`` rows too many."""
    words = words or tokenizer()
    save_llama(folder, seed, len(words) + padding, layers, context, **config)
    words.save_pretrained(folder)
    return folder


def save_llama(
    folder: Path, seed: int, vocabulary: int, layers: int = 2, context: int = 256, **config: Any
) -> LlamaForCausalLM:
    """A tiny random Llama without a tokenizer."""
    torch.manual_seed(seed)
    given = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": context,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": None,
        "initializer_range": 0.3,
    }
    module = LlamaForCausalLM(LlamaConfig(**{**given, **config}))
    module.save_pretrained(folder)
    return module


def save_reduced_draft(folder: Path, ids: list[int], unknown: int = 0, seed: int = 1) -> Path:
    """A draft over a part of a vocabulary, in the format of assets/drafts."""
    eos = ids.index(2) if 2 in ids else None
    save_llama(folder, seed, len(ids), layers=1, bos_token_id=None, eos_token_id=eos)
    (folder / "ids.json").write_text(json.dumps({"ids": ids, "unknown": unknown}))
    return folder


def load(target: Path | str, draft: Path | str = "", **given: Any) -> Pair:
    """A pair of folders, in float32 unless ``dtype`` says otherwise."""
    return Shelf().load(str(target), str(draft), given.pop("dtype", "float32"), **given)
