"""A random pair that needs no weights, no network and some milliseconds a token."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specviz.cache import LanguageModel
from specviz.race import Race
from specviz.records import Machine, PairInfo, Settings, Trace

CONTEXT = 8192
STEP_SECONDS = 0.004


@dataclass
class TinyPair:
    """What a race needs of a ``specviz.pairs.Pair``."""

    target: LanguageModel
    draft: LanguageModel
    tokenizer: Any
    eos_ids: tuple[int, ...] = ()
    draft_ids: Any = None
    draft_unknown: int = 0
    datastore: Any = None
    feature: Any = None
    context: int = CONTEXT
    info: PairInfo = field(default_factory=lambda: PairInfo("tiny", "tiny target", "tiny draft"))
    machine: Machine = field(default_factory=lambda: Machine("cpu", "float32", 2))


def tokenizer() -> PreTrainedTokenizerFast:
    """One token a printable ASCII character."""
    letters = ["Ġ", "Ċ", *(chr(code) for code in range(33, 127))]
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    inner = Tokenizer(models.BPE(vocabulary, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def model(name: str, noise: float, vocabulary: int) -> LanguageModel:
    """A random Llama; with ``noise`` it is nearly, but not quite, the one without."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=CONTEXT,
        initializer_range=0.4,
    )
    module = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for weight in module.parameters() if noise else ():
            weight += noise * weight.std() * torch.randn_like(weight)
    module.register_forward_pre_hook(lambda *_: time.sleep(STEP_SECONDS))
    return LanguageModel(name, module, vocabulary, CONTEXT)


def pair() -> TinyPair:
    """The pair, fresh. Its target never ends a text by itself."""
    own = tokenizer()
    return TinyPair(model("tiny target", 0.0, len(own)), model("tiny draft", 0.04, len(own)), own)


class TinyShelf:
    """Loads the tiny pair whatever is asked for. ``gate`` holds loading back until it is set;
    a target called "broken" fails half-way."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.pair = pair()

    def load(self, target: str, draft: str, dtype: str = "auto", progress: Any = None) -> TinyPair:
        """As ``specviz.pairs.Shelf.load``."""
        if progress:
            progress("Reading the weights", 0.5)
        self.gate.wait()
        if target == "broken":
            raise RuntimeError("the disk is on fire")
        return self.pair


def trace(
    prompt: str = "A lighthouse stood on a rock.", tokens: int = 60, **settings: Any
) -> Trace:
    """A finished race of the tiny pair."""
    race = Race(pair(), "draft model", prompt, Settings(max_new_tokens=tokens, **settings))
    for _ in race.start():
        pass
    while not race.finished:
        race.advance()
    return race.trace()
