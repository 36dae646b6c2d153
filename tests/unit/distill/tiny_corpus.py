"""A tiny target, and the rows that it writes."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specviz.distill.corpus import Template
from specviz.distill.student import IdMap

VOCABULARY, END = 40, 2


TEMPLATE = Template(opening=(1, 7, 2, 1, 8), to_answer=(5, 1, 9), to_user=(5, 1, 8), end=END)


def tiny_target(seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.6,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
    )
    return LlamaForCausalLM(config).eval()


def split_turns(row: list[int]) -> list[tuple[str, list[int]]]:
    """Follow one row by the template alone; fails where the row leaves it."""
    opening = list(TEMPLATE.opening)
    assert row[: len(opening)] == opening
    turns, who, rest = [], "user", row[len(opening) :]
    while END in rest:
        stop = rest.index(END)
        turns.append((who, rest[:stop]))
        rest = rest[stop + 1 :]
        between = list(TEMPLATE.to_answer if who == "user" else TEMPLATE.to_user)
        assert rest[: len(between)] == between[: len(rest)]
        rest = rest[len(between) :]
        who = "assistant" if who == "user" else "user"
    return [*turns, (who, rest)]


def whole_map() -> IdMap:
    return IdMap(tuple(range(VOCABULARY)), unknown=0)
