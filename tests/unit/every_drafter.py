"""Every drafter with a draft, and the target's own greedy text to compare with."""

from __future__ import annotations

import torch
from kit import PROMPT, feature, noisy, own_texts, stranger, target

DRAFTERS = [
    ("draft model", "noisy"),
    ("draft model", "stranger"),
    ("draft model", "self"),
    ("prompt lookup", "none"),
    ("retrieval", "none"),
    ("feature draft", "none"),
    ("combined", "noisy"),
]


def extras():
    """What the drafters that need no draft model need."""
    return {"datastore": own_texts(), "feature": feature()}


def draft_of(kind):
    return {"noisy": noisy, "stranger": stranger, "self": target, "none": lambda: None}[kind]()


def greedy_reference(settings, **extra):
    """The target's own greedy text by transformers' generate."""
    ids = torch.tensor([PROMPT])
    out = target().module.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=settings.max_new_tokens,
        do_sample=False,
        pad_token_id=0,
        **extra,
    )
    return out[0, len(PROMPT) :].tolist()
