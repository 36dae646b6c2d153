"""Decode steps of fixed shape, captured once as CUDA graphs and then replayed.

At batch 1 one pass of a small model is some hundreds of kernels of a few microseconds each, and
Python takes longer to ask for them than a GPU to run them. A CUDA graph asks for all of them at
once. It repeats the very same work on the very same memory: what differs from step to step, the
ids and where in the text they stand, lies in a small tensor that is written before each replay,
and the KV cache never moves. So there is one captured step for each number of tokens and each
reach of attention (``REACHES``), made before any clock starts; a step that was not captured, such
as reading the prompt, runs eagerly on the same cache.

Targets and drafts, the speculative lane and its baseline all use them alike. Only ``CudaCapture``
needs CUDA; everything else is plain torch and is tested on the CPU.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.attention import LENGTH_STEP, grouped, grouped_mask
from specviz.llama import LeanLlama, LeanState, mlp, norm, project

REACHES = (256, 512, 1024, 2048, 4096)
"""How many cached tokens a captured step looks at: the first that holds the text. Behind the last
one steps run eagerly."""
MOST_STEPS = 96
"""Captured steps kept for one KV cache. Those of the run at hand stay, the first of them where that
is too many; the oldest others make room."""
IDLE_CACHES = 4
"""Caches kept for the next runs, with what was captured on them: a race needs two."""
WARM_UPS = 2

Work: TypeAlias = Callable[[], tuple[Tensor, ...]]


class Capture(Protocol):
    """Makes of some work what repeats it. The work reads and writes tensors that stay where they
    are; the results of a repetition are the caller's own."""

    def __call__(self, work: Work) -> Work:
        """What repeats ``work``. Runs it, also more than once."""


@cache
def capture_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream of a GPU that work is warmed up and captured on. There is one for all models, as
    the libraries keep memory for every stream they have seen."""
    return torch.cuda.Stream(device)


class CudaCapture:
    """Capture by CUDA graphs. All of a model's graphs share one memory pool, so that what one of
    them computes may stand where another one's results do: each hands out copies."""

    # CUDA takes one capture at a time; and no other thread's replay may come before the copies.
    _one = threading.Lock()

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = capture_stream(device)

    def __call__(self, work: Work) -> Work:
        """See ``Capture``. The work first runs uncaptured, as libraries allocate and choose kernels
        on their first calls, which cannot be captured. Raises RuntimeError where it cannot be."""
        with self._one, torch.cuda.device(self._device):
            before = torch.cuda.current_stream()
            self._stream.wait_stream(before)
            graph = torch.cuda.CUDAGraph()
            # The outer ``stream`` brings the thread's own back where the capture fails.
            with torch.cuda.stream(self._stream):
                for _ in range(WARM_UPS):
                    work()
                # Another thread may be loading a model: only this one's calls belong to the graph.
                with torch.cuda.graph(
                    graph, self._pool, self._stream, capture_error_mode="thread_local"
                ):
                    results = work()
            before.wait_stream(self._stream)

        def replay() -> tuple[Tensor, ...]:
            with self._one:
                graph.replay()
                return tuple(result.clone() for result in results)

        return replay


class FixedCache:
    """A KV cache that stays where it is, and the steps captured on it. One run uses it at a time.

    ``states`` are one (keys, values) a layer, each [1, K, capacity, D].
    """

    @torch.inference_mode()
    def __init__(self, model: LeanLlama, capacity: int) -> None:
        self.model, self.capacity = model, capacity
        shape = (1, model.kv_heads, capacity, model.head_dim)
        empty = model.embedding.new_zeros
        self.states = [(empty(shape), empty(shape)) for _ in model.layers]
        self.cos, self.sin = model.rotation(capacity)
        self.places = torch.arange(capacity, device=model.device)
        self.steps: OrderedDict[tuple[int, int], Step] = OrderedDict()

    @torch.inference_mode()
    def clear(self) -> None:
        """Forget the numbers of the run before: what is masked must still be a number."""
        for keys, values in self.states:
            keys.zero_()
            values.zero_()

    def reach(self, end: int) -> int | None:
        """How many cached tokens a captured step looks at when the text then has ``end``; None
        where that is more than any does."""
        if end > self.capacity:
            return None
        return next((reach for reach in REACHES if end <= reach < self.capacity), self.capacity)

    def run(self, hidden: Tensor, positions: Tensor, reach: int) -> Tensor:
        """Send [n, W] through all layers at ``positions`` [n]; [n, W], not yet normalised. All
        shapes are fixed, and no number leaves the device."""
        model = self.model
        cos, sin = self.cos[positions], self.sin[positions]
        mask = grouped_mask(positions, self.places[:reach], model.groups, hidden)
        for layer, (keys, values) in zip(model.layers, self.states, strict=True):
            queries, new_keys, new_values = project(model, layer, hidden, cos, sin)
            keys.index_copy_(2, positions, new_keys.transpose(0, 1)[None])
            values.index_copy_(2, positions, new_values.transpose(0, 1)[None])
            mixed = grouped(mask, queries, keys, values).reshape(hidden.shape[0], -1)
            hidden = hidden + F.linear(mixed, layer.out)
            hidden = hidden + mlp(layer, hidden, model.eps)
        return hidden


class Step:
    """One decode step of ``count`` tokens with a reach, behind whatever is cached.

    ``numbers`` holds where the text ends and then the ids. A subclass says what is computed from
    them.
    """

    def __init__(self, cache: FixedCache, count: int, reach: int, capture: Capture) -> None:
        self.cache, self.count, self.reach = cache, count, reach
        device = cache.model.device
        self.numbers = torch.zeros(1 + count, dtype=torch.int64, device=device)
        self._ahead = torch.arange(count, device=device)
        self._replay = capture(self.work)

    @property
    def positions(self) -> Tensor:
        """Where in the text the tokens stand, [n]."""
        return self.numbers[0] + self._ahead

    def work(self) -> tuple[Tensor, ...]:
        """What is captured: tensors from ``numbers`` and the cache."""
        raise NotImplementedError

    def __call__(self, length: int, ids: Sequence[int]) -> tuple[Tensor, ...]:
        """Append ``ids`` behind the first ``length`` tokens. The results are the caller's own."""
        self.numbers.copy_(torch.tensor([length, *ids]))
        return self._replay()


class LanguageStep(Step):
    """Logits of every row, [n, V], and the normalised hidden states that the head read, [n, W]."""

    def work(self) -> tuple[Tensor, ...]:
        """See ``Step.work``."""
        model = self.cache.model
        hidden = model.embedding[self.numbers[1:]]
        hidden = self.cache.run(hidden, self.positions, self.reach)
        features = norm(hidden, model.norm, model.eps)
        return F.linear(features, model.head), features


MakeStep: TypeAlias = Callable[[FixedCache, int, int, Capture], Step]


class Graphs:
    """A model's fixed caches, lent to its runs one each. Any thread may ask.

    ``context`` is the longest text of the model, in tokens; ``make_step`` builds what is captured
    (a LanguageStep, or a feature draft's).
    """

    def __init__(
        self,
        model: LeanLlama,
        context: int,
        capture: Capture,
        make_step: MakeStep = LanguageStep,
    ) -> None:
        self.model = model
        self.capture, self.make_step = capture, make_step
        longest = min(context, REACHES[-1])
        self._capacity = -(-longest // LENGTH_STEP) * LENGTH_STEP
        # Given back by finalizers, which may run anywhere: no lock, only atomic operations.
        self._idle: deque[FixedCache] = deque(maxlen=IDLE_CACHES)

    def take(self) -> FixedCache:
        """An empty cache for one run, with what was captured on it before."""
        try:
            cache = self._idle.pop()
        except IndexError:
            return FixedCache(self.model, self._capacity)
        cache.clear()
        return cache

    def give_back(self, cache: FixedCache) -> None:
        """The run that had ``cache`` is over."""
        self._idle.append(cache)


class GraphedState(LeanState):
    """A run's KV cache whose decode steps are replayed. Rolling back moves a number, as there."""

    def __init__(self, graphs: Graphs, keep_features: bool = False) -> None:
        super().__init__(graphs.model, keep_features)
        self._graphs = graphs
        self._fixed: FixedCache | None = graphs.take()
        self._states, self._capacity = self._fixed.states, self._fixed.capacity
        self._cos, self._sin = self._fixed.cos, self._fixed.sin
        # However the run ends, the next one gets its cache.
        self._end = weakref.finalize(self, graphs.give_back, self._fixed)
        self._end.atexit = False

    @torch.inference_mode()
    def prepare(self, start: int, end: int, longest: int) -> None:
        """Capture what a run from ``start`` to ``end`` tokens replays: appends of 1 to ``longest``
        tokens. Takes a moment the first time; call it before any clock starts. Capturing runs the
        steps and overwrites what is cached: raises ValueError where anything is."""
        cache = self._fixed
        if cache is None or start > cache.capacity:
            return
        if self.length:
            raise ValueError("steps are captured before the first append")
        reaches = {cache.reach(min(length, cache.capacity)) for length in (start + 1, end)}
        low, high = min(filter(None, reaches)), max(filter(None, reaches))
        steps = [
            (count, reach)
            for reach in (*REACHES, cache.capacity)
            if low <= reach <= high
            for count in range(1, min(longest, reach) + 1)
        ]
        for count, reach in steps[:MOST_STEPS]:
            if (count, reach) not in cache.steps:
                make = self._graphs.make_step
                cache.steps[count, reach] = make(cache, count, reach, self._graphs.capture)
            cache.steps.move_to_end((count, reach))
        while len(cache.steps) > MOST_STEPS:
            cache.steps.popitem(last=False)

    def captured(self, count: int) -> Step | None:
        """The step that appends ``count`` tokens now, or None where it has to run eagerly."""
        cache = self._fixed
        reach = cache.reach(self.length + count) if cache else None
        return cache.steps.get((count, reach)) if cache and reach else None

    def forward(self, ids: Sequence[int], keep: int) -> Tensor:
        """See ``LeanState.forward``."""
        step = self.captured(len(ids))
        if step is None:
            return super().forward(ids, keep)
        logits, features = step(self.length, ids)
        self.length += len(ids)
        if self._keep_features:
            self.features = features
        return logits[-keep:]

    def _grow(self, needed: int) -> None:
        """The text outgrows the fixed cache: it goes on eagerly in one that grows."""
        super()._grow(needed)
        self._fixed = None
        self._end()
