"""Where the time of one draft step goes: reading weights, or everything around it.

    python tests/benchmarks/draft_step.py [--steps 200] [--text 200]

For each draft model of the embedded target and for its feature draft: the median time of a greedy
step behind a text, the part of it that is spent in matrix products, and what remains for
attention, norms and the framework. Products cannot be faster than their weights are read; the rate
at which they were read is printed beside.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from specviz.cache import CachedModel
from specviz.catalogue import embedded_pairs
from specviz.feature import FeatureState
from specviz.llama import LeanLlama
from specviz.pairs import Pair, Shelf
from specviz.sampling import argmax

Step = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--text", type=int, default=200, help="tokens before the step")
    options = parser.parse_args()
    shelf = Shelf()
    print("draft | us a step | products, us | all else, us | MB read | GB/s")
    for spec in embedded_pairs():
        pair = shelf.load(spec.target, spec.draft)
        if pair.draft is not None:
            show(spec.draft, draft_model_step(pair, options.text), pair.draft.lean, options.steps)
    if pair.feature is not None:
        step, fuse = feature_step(pair, options.text), pair.feature.fuse
        show(pair.feature.name, step, pair.feature.stack, options.steps, fuse.nbytes)


def draft_model_step(pair: Pair, length: int) -> Step:
    """One greedy token of the draft model behind ``length`` others."""
    cached = CachedModel(pair.draft)
    cached.append([5] * length, keep=1)

    def step() -> None:
        argmax(cached.append([7]))
        cached.roll_back(length)

    return step


def feature_step(pair: Pair, length: int) -> Step:
    """One greedy token of the feature draft behind ``length`` entries."""
    state = FeatureState(pair.feature)
    feature = pair.feature.embed_norm.new_zeros(1, len(pair.feature.embed_norm))
    state.step(feature.expand(length, -1), [5] * length)

    def step() -> None:
        logits, _ = state.step(feature, [7])
        argmax(logits)
        state.roll_back(length)

    return step


def show(name: str, step: Step, model: LeanLlama, steps: int, more_bytes: int = 0) -> None:
    """Time ``step``, then profile it, and print a row."""
    for _ in range(20):
        step()
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    whole = 1e6 * statistics.median(seconds)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(steps):
            step()
    events = profiled.key_averages()
    products = sum(e.self_cpu_time_total for e in events if e.key == "aten::mm")
    share = products / sum(e.self_cpu_time_total for e in events)
    size = more_bytes + model.head.nbytes + sum(map(layer_bytes, model.layers))
    rate = size / (whole * share) / 1e3
    print(
        f"{name} | {whole:.0f} | {whole * share:.0f} | {whole * (1 - share):.0f}"
        f" | {size / 1e6:.1f} | {rate:.1f}",
        flush=True,
    )


def layer_bytes(layer) -> int:
    """What one layer's products read."""
    return sum(part.nbytes for part in (layer.qkv, layer.out, layer.gate_up, layer.down))


if __name__ == "__main__":
    with torch.inference_mode():
        main()
