"""Model pairs: which there are, whether they can run here, and loading each model once."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias, TypeVar

import torch

from specviz.cache import ContextFull, NotRollable
from specviz.catalogue import EMBEDDED, PairSpec, catalogue, find
from specviz.faults import out_of_memory
from specviz.pairs.machine import (
    PairError,
    choose_device,
    choose_dtype,
    describe,
    free_memory_everywhere,
    gigabytes,
    memory_need,
)
from specviz.pairs.memory import ran_out
from specviz.pairs.models import Loaded, load_model, locate, moved
from specviz.pairs.pair import Pair, pair_of
from specviz.pairs.placement import draft_device, draft_dtype
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
    "needs",
    "why_not",
]

CATALOGUE = catalogue()
"""Every pair on offer when the program started, the default one first."""

T = TypeVar("T")
ModelKey: TypeAlias = tuple[str, torch.dtype, torch.device]
PairKey: TypeAlias = tuple[ModelKey, ...]


def needs(spec: PairSpec, dtype: str = "auto") -> str:
    """How much memory a pair takes while it runs here, for people. Raises PairError for a dtype
    the device does not have."""
    number = choose_dtype(choose_device(), dtype)
    return gigabytes(memory_need(spec.target_parameters + spec.draft_parameters, number))


def why_not(spec: PairSpec, dtype: str = "auto") -> str | None:
    """Why a pair cannot run on this machine, or None where nothing speaks against it.

    Weighs memory and, without a network, what the Hub cache holds. Whether the Hub can be
    reached and grants access shows only on trying. Raises PairError for a dtype the device does not
    have.
    """
    device = choose_device()
    number = choose_dtype(device, dtype)
    need = memory_need(spec.target_parameters + spec.draft_parameters, number)
    free = free_memory_everywhere(device)
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
    leaves nothing behind, so the next try is a fresh one. ``device`` and ``dtype`` stand in for
    what would be chosen here.
    """

    def __init__(
        self, limit: int = 2, device: torch.device | None = None, dtype: str = "auto"
    ) -> None:
        self._limit = limit
        self._device, self._dtype = device, dtype
        self._inherited: dict[ModelKey, Loaded] = {}
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
        wanted = self._dtype if dtype == "auto" else dtype
        device = self._device or choose_device()
        key = _key(target, draft, choose_dtype(device, wanted), device, wanted)
        with self._lock:
            if key in self._pairs:
                self._pairs.move_to_end(key)

        def make() -> Pair:
            self._make_room(key)
            loaded = [
                self._once(self._models, part, partial(self._get, part, progress)) for part in key
            ]
            pair = pair_of(loaded, name, describe(device, key[0][1]))
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

    def moved(self, device: torch.device) -> Shelf:
        """A new shelf that has these models on ``device`` as soon as they are asked for. It is for
        a process that was forked from this one: this shelf is not to be used there any more."""
        shelf = Shelf(self._limit, device, self._dtype)
        for key, model in self._models.items():
            if model.done() and not model.exception():
                shelf._inherited[key] = model.result()
        return shelf

    def _get(self, part: ModelKey, progress: Progress) -> Loaded:
        """A model, inherited or read."""
        source, dtype, device = part
        for key in self._inherited:
            if key[:2] == (source, dtype):
                progress(f"Moving {source} to the GPU", None)
                return moved(self._inherited.pop(key), device)
        return _read(*part, progress)

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


def _key(target: str, draft: str, dtype: torch.dtype, device: torch.device, wanted: str) -> PairKey:
    """What stands for a pair on the shelf: each model, its dtype and the device it is meant for.
    ``wanted`` is the dtype that was asked for."""
    parts: PairKey = ((target.strip(), dtype, device),)
    if draft.strip():
        place = draft_device(device)
        number = dtype if place == device else draft_dtype(place, wanted)
        parts += ((draft.strip(), number, place),)
    return parts


def _read(source: str, dtype: torch.dtype, device: torch.device, progress: Progress) -> Loaded:
    return load_model(source, locate(source, progress), dtype, device, progress)


def _warm_up(pair: Pair) -> None:
    try:
        pair.warm_up()
    except (NotRollable, ContextFull) as error:
        raise PairError(str(error)) from error
    except Exception as error:
        if out_of_memory(error):
            size = pair.info.target_parameters + pair.info.draft_parameters
            raise PairError(ran_out(error, pair.info.name, size)) from None
        raise PairError(f"{pair.info.name} cannot be run here: {one_line(error)}") from error
