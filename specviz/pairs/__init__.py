"""Model pairs: which there are, whether they can run here, and loading each model once."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import torch

from specviz.cache import CachedModel, ContextFull, LanguageModel, NotRollable
from specviz.catalogue import EMBEDDED, PairSpec, catalogue, find
from specviz.datastore import Datastore
from specviz.feature import FeatureModel, FeatureState
from specviz.pairs.machine import (
    PairError,
    choose_device,
    choose_dtype,
    describe,
    free_memory_everywhere,
    gigabytes,
    memory_need,
)
from specviz.pairs.models import (
    Loaded,
    check_pair,
    load_model,
    locate,
    read_feature_draft,
    real_vocabulary,
    special_ids,
)
from specviz.records import Machine, PairInfo
from specviz.weights import Progress, silent
from specviz.weights.hub import one_line

__all__ = [
    "CATALOGUE",
    "Pair",
    "PairError",
    "PairSpec",
    "Shelf",
    "catalogue",
    "choose_device",
    "choose_dtype",
    "find",
    "gigabytes",
    "memory_need",
    "why_not",
]

CATALOGUE = catalogue()
"""Every pair on offer when the program started, the default one first."""

T = TypeVar("T")
ModelKey: TypeAlias = tuple[str, torch.dtype, torch.device]
PairKey: TypeAlias = tuple[ModelKey, ...]
WARM_UP_GAMMA = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """A target and what drafts for it, loaded, checked and warmed up.

    ``draft_ids`` holds the target's id for each id of a draft over a reduced vocabulary, None
    where both share one; ``draft_unknown`` is the draft's id for all others. ``context`` is the
    target's: where the draft's own ends earlier, it only stops drafting.
    """

    info: PairInfo
    machine: Machine
    tokenizer: Any
    target: LanguageModel
    draft: LanguageModel | None
    draft_ids: tuple[int, ...] | None
    draft_unknown: int
    eos_ids: tuple[int, ...]
    special_ids: frozenset[int]
    context: int
    datastore: Datastore | None = None
    feature: FeatureModel | None = None

    @torch.inference_mode()
    def warm_up(self, gamma: int = WARM_UP_GAMMA) -> None:
        """Run both models on 1 to gamma + 1 tokens, so that no clock meets a first time.

        Raises NotRollable for a model whose cache cannot forget.
        """
        for model in (self.target, self.draft):
            if model is None:
                continue
            cached = CachedModel(model)
            for length in (1, 1, gamma // 2 + 1, gamma + 1):
                length = min(length, model.context)
                cached.append([0] * length, keep=length)
                cached.roll_back(length - 1)
                cached.roll_back(0)
        if self.feature is not None:
            state = FeatureState(self.feature)
            for length in (1, 1, gamma + 1):
                states = self.feature.embed_norm.new_zeros(length, len(self.feature.embed_norm))
                state.step(states, [0] * length)


def why_not(spec: PairSpec, dtype: str = "auto", reserve: int = 0) -> str | None:
    """Why a pair cannot run on this machine, or None where nothing speaks against it.

    Weighs memory and, without a network, what the Hub cache holds. Whether the Hub can be
    reached and grants access shows only on trying. ``reserve`` is memory, in bytes, that loading
    the pair would free first. Raises PairError for a dtype the device does not have.
    """
    device = choose_device()
    number = choose_dtype(device, dtype)
    need = memory_need(spec.target_parameters + spec.draft_parameters, number)
    free = free_memory_everywhere(device) + reserve
    if need > free:
        return f"needs {gigabytes(need)} of memory; {gigabytes(free)} are free"
    for source in (spec.target, spec.draft):
        if source and not _at_hand(source):
            return f"{source} is not on this machine, and the Hub is switched off (HF_HUB_OFFLINE)"
    return None


def _at_hand(source: str) -> bool:
    """False for a Hub model that is not cached while the Hub client is in offline mode."""
    from huggingface_hub import constants, try_to_load_from_cache

    if not constants.HF_HUB_OFFLINE or source == EMBEDDED or source.count("/") != 1:
        return True
    return isinstance(try_to_load_from_cache(source, "config.json"), str)


class Shelf:
    """The pairs in memory. Each model is read once, however many ask for it at a time.

    Keeps ``limit`` pairs and drops the one that was not asked for the longest. A failed load
    leaves nothing behind, so the next try is a fresh one.
    """

    def __init__(self, limit: int = 2) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._pairs: OrderedDict[PairKey, Future[Pair]] = OrderedDict()
        self._models: dict[ModelKey, Future[Loaded]] = {}

    def load(
        self,
        target: str,
        draft: str = "",
        dtype: str = "auto",
        progress: Progress = silent,
        name: str = "",
    ) -> Pair:
        """The pair of two sources (see PairSpec), from memory where it is there already.

        ``name`` is what the pair is called in records. Raises PairError.
        """
        device = choose_device()
        number = choose_dtype(device, dtype)
        key = _key(target, draft, number, device)
        with self._lock:
            if key in self._pairs:
                self._pairs.move_to_end(key)

        def make() -> Pair:
            self._make_room(key)
            loaded = [
                self._once(self._models, part, partial(_read, *part, progress)) for part in key
            ]
            pair = _pair_of(loaded, name, describe(device, number))
            progress("Warming up", None)
            _warm_up(pair)
            return pair

        try:
            pair = self._once(self._pairs, key, make)
        except BaseException:
            self._drop_unused()
            raise
        progress("Ready", 1.0)
        return pair

    def why_not(self, spec: PairSpec, dtype: str = "auto") -> str | None:
        """``why_not``, knowing what is in memory already and what would be dropped."""
        device = choose_device()
        key = _key(spec.target, spec.draft, choose_dtype(device, dtype), device)
        with self._lock:
            pair = self._pairs.get(key)
            if pair is not None and pair.done():
                return None
            held = [m.result() for m in self._models.values() if m.done() and not m.exception()]
        size = sum(model.parameters * next(model.module.parameters()).itemsize for model in held)
        return why_not(spec, dtype, reserve=size)

    def _once(self, shelf: Any, key: Hashable, make: Callable[[], T]) -> T:
        """``make()``, by the first who asks for ``key``; the others wait for its result."""
        with self._lock:
            future: Future[T] | None = shelf.get(key)
            mine = future is None
            if future is None:
                future = shelf[key] = Future()
        if not mine:
            return future.result()
        try:
            result = make()
        except BaseException as error:
            with self._lock:
                del shelf[key]
            future.set_exception(error)
            raise
        future.set_result(result)
        return result

    def _make_room(self, key: PairKey) -> None:
        with self._lock:
            finished = [k for k, pair in self._pairs.items() if k != key and pair.done()]
            for old in finished[: max(0, len(self._pairs) - self._limit)]:
                del self._pairs[old]
        self._drop_unused()

    def _drop_unused(self) -> None:
        """Let go of models that belong to no pair on the shelf."""
        with self._lock:
            used = {part for key in self._pairs for part in key}
            unused = [part for part, model in self._models.items() if part not in used]
            for part in unused:
                if self._models[part].done():
                    del self._models[part]
        if unused:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def _key(target: str, draft: str, dtype: torch.dtype, device: torch.device) -> PairKey:
    sources = [target.strip()] + ([draft.strip()] if draft.strip() else [])
    return tuple((source, dtype, device) for source in sources)


def _read(source: str, dtype: torch.dtype, device: torch.device, progress: Progress) -> Loaded:
    return load_model(source, locate(source, progress), dtype, device, progress)


def _pair_of(loaded: list[Loaded], name: str, machine: Machine) -> Pair:
    """Check one or two models against each other. Raises PairError."""
    target = loaded[0]
    draft = loaded[1] if len(loaded) > 1 else None
    if target.tokenizer is None:
        raise PairError(
            f"{target.name} is a draft over a part of a vocabulary; choose another target"
        )
    vocabulary = real_vocabulary(target)
    if draft is not None:
        check_pair(target, draft, vocabulary)
    model = draft if draft and draft.module is not None else None
    features = draft.features if draft and draft.features else target.features
    reduced = model is not None and model.ids is not None
    return Pair(
        info=PairInfo(
            name=name or (f"{target.name} + {draft.name}" if draft else target.name),
            target=target.name,
            draft=draft.name if draft else "",
            target_parameters=target.parameters,
            draft_parameters=draft.parameters if draft else 0,
        ),
        machine=machine,
        tokenizer=target.tokenizer,
        target=_language_model(target, vocabulary),
        draft=_language_model(model, model.head if reduced else vocabulary) if model else None,
        draft_ids=model.ids if model else None,
        draft_unknown=model.unknown if model else 0,
        eos_ids=tuple(token for token in target.eos_ids if token < vocabulary),
        special_ids=special_ids(target.tokenizer),
        context=target.context,
        datastore=target.datastore,
        feature=read_feature_draft(features, target) if features else None,
    )


def _language_model(loaded: Loaded, vocabulary: int) -> LanguageModel:
    return LanguageModel(
        name=loaded.name,
        module=loaded.module,
        vocabulary=vocabulary,
        context=loaded.context,
        parameters=loaded.parameters,
        lean=loaded.lean,
    )


def _warm_up(pair: Pair) -> None:
    try:
        pair.warm_up()
    except (NotRollable, ContextFull) as error:
        raise PairError(str(error)) from error
    except torch.OutOfMemoryError as error:
        raise PairError(
            f"{pair.info.name} does not fit into memory; choose a smaller one"
        ) from error
    except Exception as error:
        raise PairError(f"{pair.info.name} cannot be run here: {one_line(error)}") from error
