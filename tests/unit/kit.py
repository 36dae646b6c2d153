"""Tiny models and a byte tokenizer, so that the engine is tested without any weights."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from specviz import drafters
from specviz.cache import LanguageModel
from specviz.datastore import END, Datastore
from specviz.decode import Decoding, baseline, speculative
from specviz.distill.feature import FeatureStudent, cut_feature_student
from specviz.feature import FeatureModel
from specviz.llama import lean
from specviz.records import Machine, PairInfo, Settings
from specviz.sampling import Chance, SeededChance
from specviz.text import Texts

VOCABULARY = 64
PROMPT = [5, 9, 17, 5, 9, 17, 30, 2, 5, 9]


class ByteTokenizer:
    """One id a byte; ids from 256 on are special tokens."""

    chat_template = None
    bos_token_id = None

    def __len__(self) -> int:
        return 260

    def decode(self, ids: Sequence[int], **_: object) -> str:
        return bytes(i for i in ids if i < 256).decode("utf-8", errors="replace")

    def convert_ids_to_tokens(self, token: int) -> str:
        return f"<0x{token:02X}>" if token < 256 else f"<special {token}>"

    def encode(self, text: str, **_: object) -> list[int]:
        return list(text.encode())

    def __call__(self, text: str, **_: object) -> SimpleNamespace:
        return SimpleNamespace(input_ids=self.encode(text))


TEXTS = Texts(ByteTokenizer())


def llama(
    seed: int, layers: int = 2, hidden: int = 32, vocabulary: int = VOCABULARY, context: int = 256
) -> LlamaForCausalLM:
    """A small random Llama in float32. Logits are spread out so that laws are far from flat."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        initializer_range=0.3,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.eval()


def wrap(module: nn.Module, name: str = "tiny", context: int = 256) -> LanguageModel:
    return LanguageModel(name, module, module.config.vocab_size, context, lean=lean(module))


@cache
def target() -> LanguageModel:
    """T: the target."""
    return wrap(llama(0), "T")


@cache
def stranger() -> LanguageModel:
    """D: a smaller model that agrees with T almost never."""
    return wrap(llama(1, layers=1, hidden=16), "D")


@cache
def noisy(noise: float = 0.05) -> LanguageModel:
    """N: the target with a little weight noise, so that acceptance and rejection mix."""
    module = llama(0)
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn_like(weight) * noise * weight.std())
    return wrap(module, "N")


@cache
def feature_student(noise: float = 0.3) -> FeatureStudent:
    """A random feature draft of T over part of its vocabulary."""
    rows = torch.randint(0, VOCABULARY, (4, 20), generator=torch.Generator().manual_seed(3))
    student = cut_feature_student(target().module, range(VOCABULARY - 6), 40, rows)
    torch.manual_seed(11)
    with torch.no_grad():
        for weight in student.parameters():
            weight.add_(torch.randn_like(weight) * noise * weight.std())
    return student.eval()


@cache
def feature() -> FeatureModel:
    """F: that student, saved and read as the program reads it."""
    with tempfile.TemporaryDirectory() as folder:
        feature_student().save(Path(folder))
        return FeatureModel.load(Path(folder), target().lean)


def pair(draft: LanguageModel | None, **changes: object) -> SimpleNamespace:
    """What drafters and races ask of a pair."""
    values = {
        "info": PairInfo("tiny", "T", draft.name if draft else ""),
        "machine": Machine("cpu", "float32", 1),
        "tokenizer": ByteTokenizer(),
        "target": target(),
        "draft": draft,
        "draft_ids": None,
        "draft_unknown": 0,
        "datastore": None,
        "feature": None,
        "eos_ids": (),
    }
    return SimpleNamespace(**{**values, **changes})


def speculate(
    settings: Settings,
    draft: LanguageModel | None,
    drafter: str = "draft model",
    prompt: Sequence[int] = PROMPT,
    chance: Chance | None = None,
    **changes: object,
) -> Decoding:
    """A finished speculative run of the tiny pair."""
    run = start(settings, draft, drafter, prompt, chance, **changes)
    list(run)
    return run


def start(
    settings: Settings,
    draft: LanguageModel | None,
    drafter: str = "draft model",
    prompt: Sequence[int] = PROMPT,
    chance: Chance | None = None,
    **changes: object,
) -> Decoding:
    """A speculative run of the tiny pair, not yet begun."""
    models = pair(draft, **changes)
    chance = chance or SeededChance(settings.seed)
    return speculative(
        models.target,
        drafters.create(drafter, models, settings, len(prompt), chance),
        prompt,
        settings,
        texts=TEXTS,
        eos_ids=models.eos_ids,
        chance=chance,
        drafter_name=drafter,
    )


def plain(settings: Settings, prompt: Sequence[int] = PROMPT, **changes: object) -> Decoding:
    """A finished baseline run of the tiny target."""
    models = pair(None, **changes)
    run = baseline(models.target, prompt, settings, texts=TEXTS, eos_ids=models.eos_ids)
    list(run)
    return run


def new_ids(run: Decoding, prompt: Sequence[int] = PROMPT) -> list[int]:
    return run.tokens[len(prompt) :]


def store_of(*texts: Sequence[int]) -> Datastore:
    tokens = [token for text in texts for token in [*text, END]]
    return Datastore(np.array(tokens, dtype=np.uint16))


@cache
def own_texts() -> Datastore:
    """A store of what the tiny target itself writes, so that some guesses are right."""
    settings = Settings(max_new_tokens=60)
    texts = [new_ids(plain(settings)), new_ids(plain(settings, prompt=[3, 4, 5]), [3, 4, 5])]
    return store_of(*texts)
