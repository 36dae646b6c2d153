"""The settings in which the exact proof enumerates the law of a text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specviz.lossless.tables import TablePair, small_store, table_model
from specviz.lossless.tiny import TinyPair, tiny_feature_draft, tiny_llama
from specviz.records import Settings

WARM = Settings(max_new_tokens=3, gamma=2, temperature=1.0)
REPEATING = (3, 1, 2, 3, 1)
"""A prompt in which something can be looked up."""
STORE = small_store(3, vocabulary=4)


@dataclass(frozen=True)
class Case:
    """A setting in which the law of a text is enumerated. ``prompt`` are token ids."""

    name: str
    pair: TablePair
    settings: Settings
    drafter: str = "draft model"
    prompt: tuple[int, ...] = (3, 1)


def cases() -> list[Case]:
    """What the proof goes through: drafters, filters, ends of the text, draft lengths."""
    return [*_draft_models(), *_looked_up(), *_feature_drafts()]


def _draft_models() -> list[Case]:
    pair = TablePair(table_model(1), table_model(2))
    part = replace(pair, draft=table_model(5, vocabulary=3), draft_ids=(2, 0, 3), draft_unknown=1)
    rows = (
        ("one guess a round", pair, replace(WARM, gamma=1)),
        ("two guesses a round", pair, WARM),
        ("five tokens, several rounds", pair, replace(WARM, max_new_tokens=5, top_k=2)),
        ("the text may end early", replace(pair, eos_ids=(0, 2)), replace(WARM, gamma=1)),
        ("temperature 0.6", pair, replace(WARM, temperature=0.6)),
        ("top-p 0.9", pair, replace(WARM, top_p=0.9)),
        ("min-p 0.3, temperature 1.4", pair, replace(WARM, min_p=0.3, temperature=1.4)),
        ("repetition penalty 1.5, top-k 3", pair, replace(WARM, repetition_penalty=1.5, top_k=3)),
        ("a draft over part of the vocabulary", part, replace(WARM, temperature=0.9, top_p=0.95)),
        ("a draft length that adapts", pair, replace(WARM, gamma=1, schedule="adaptive")),
        ("a draft that ends where it is unsure", pair, replace(WARM, confidence=0.4)),
    )
    combined = Case("a draft before a store", replace(pair, datastore=STORE), WARM, "combined")
    return [*(Case(name, models, settings) for name, models, settings in rows), combined]


def _looked_up() -> list[Case]:
    """Without a second model: in the text, in a store, or wherever there is something."""
    pair = TablePair(table_model(1), None, datastore=STORE)
    long = replace(WARM, max_new_tokens=4, top_k=3)
    return [
        Case("guesses copied from the text", pair, WARM, "prompt lookup", REPEATING),
        Case("guesses from a store", pair, WARM, "retrieval", REPEATING),
        Case("guesses from the text or a store", pair, long, "combined", (1, 2, 3, 1, 2)),
    ]


def _feature_drafts() -> list[Case]:
    """One layer on the hidden states of a tiny Llama, over three of its four tokens."""
    target = tiny_llama(4)
    pair = TinyPair(target, None, feature=tiny_feature_draft(target, (3, 0, 2), 6))
    several = replace(WARM, max_new_tokens=4, top_k=2)
    both = replace(pair, datastore=STORE)
    name = "feature draft"
    return [
        Case("guesses from hidden states", pair, replace(WARM, temperature=0.8), name, REPEATING),
        Case("hidden states, until the text ends", replace(pair, eos_ids=(1,)), several, name),
        Case("hidden states before a store", both, WARM, "combined", REPEATING),
    ]
