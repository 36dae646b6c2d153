"""Whether a model's decode steps are replayed as CUDA graphs here, and the check they pass first.

On a GPU they are, unless ``SPECVIZ_CUDA_GRAPHS=off``; elsewhere there are none. Where the check
fails, or capturing itself, the eager path is taken and the record of the machine says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from specviz.feature import FeatureModel, FeatureState
from specviz.graphs import Capture, CudaCapture, GraphedState, Graphs
from specviz.llama import LeanLlama, LeanState
from specviz.weights.hub import one_line

SWITCH = "SPECVIZ_CUDA_GRAPHS"
ON = "on"
NOT_LEAN = "off: only Llama models that stand whole on one GPU are replayed"
COUNTS = (1, 1, 5, 2, 1, 9, 3, 1)
"""Tokens of each checked step. All but the first token of a step are rolled back after it."""
PROMPT = 24


def graphs_for(
    form: LeanLlama | None, context: int, capture: Capture | None = None
) -> tuple[Graphs | None, str]:
    """The model's graphs, and what the machine's record says: "on", or "off: " and why, empty
    where there is no GPU. ``capture`` stands in for CUDA's in tests."""
    if capture is None:
        if form is None or form.device.type != "cuda":
            return None, ""
        if os.environ.get(SWITCH, ON).lower() in ("off", "0", "false"):
            return None, f"off: switched off by {SWITCH}"
    assert form is not None
    try:
        graphs = Graphs(form, context, capture or CudaCapture(form.device))
        fault = language_fault(form, graphs, context)
    except RuntimeError as error:
        return None, _not_captured(error)
    return (None, _failed(fault)) if fault else (graphs, ON)


def feature_graphs(model: FeatureModel, context: int, capture: Capture) -> FeatureModel:
    """``model`` with its graphs, where they pass their check, and with the note for the record."""
    try:
        graphs = model.replayed(context, capture)
        fault = feature_fault(model, graphs, context)
    except RuntimeError as error:
        return replace(model, graphs_note=_not_captured(error))
    if fault:
        return replace(model, graphs_note=_failed(fault))
    return replace(model, graphs=graphs, graphs_note=ON)


def pair_note(target: str, drafts: Mapping[str, str]) -> str:
    """What the record says of a pair: its target's note, and those of its drafts, by what they
    are called, that differ from it."""
    apart = [f"{name} {note}" for name, note in drafts.items() if note not in ("", target)]
    return "; ".join(filter(None, [target, *apart]))


def _failed(fault: str) -> str:
    return f"off: the self-check failed ({fault})"


def _not_captured(error: RuntimeError) -> str:
    return f"off: they cannot be captured here ({one_line(error)})"


@torch.inference_mode()
def language_fault(form: LeanLlama, graphs: Graphs, context: int) -> str:
    """Where the greedy tokens of replayed steps differ from the eager ones, in words; empty
    where they nowhere do. Rolls back after every step, as verification does."""
    eager, replayed = LeanState(form), GraphedState(graphs)
    vocabulary = form.embedding.shape[0]
    prompt = [(37 * i + 11) % vocabulary for i in range(min(PROMPT, context // 2))]
    replayed.prepare(len(prompt), min(context, len(prompt) + sum(COUNTS)), max(COUNTS))
    for state in (eager, replayed):
        state.forward(prompt, 1)
    token = prompt[0]
    for count in COUNTS:
        if eager.length + count > context:
            break
        ids = [token, *((token + 17 * i) % vocabulary for i in range(1, count))]
        expected, found = eager.forward(ids, count), replayed.forward(ids, count)
        if fault := _difference(expected, found):
            return f"after {eager.length} tokens {fault}"
        for state in (eager, replayed):
            state.crop(state.length - count + 1)
        token = int(expected[0].argmax())
    return ""


@torch.inference_mode()
def feature_fault(model: FeatureModel, graphs: Graphs, context: int) -> str:
    """``language_fault`` for a feature draft, which reads hidden states beside the ids."""
    eager, replayed = FeatureState(model), replace(model, graphs=graphs).state()
    replayed.prepare(0, min(context, sum(COUNTS)), max(COUNTS))
    vocabulary, width = model.stack.embedding.shape
    generator = torch.Generator().manual_seed(0)
    for count in COUNTS:
        if eager.length + count > context:
            break
        features = torch.randn(count, width, generator=generator).to(model.fuse)
        ids = [(31 * i + count) % vocabulary for i in range(count)]
        (expected, _), (found, _) = (state.step(features, ids) for state in (eager, replayed))
        if fault := _difference(expected, found):
            return f"after {eager.length} entries {fault}"
        for state in (eager, replayed):
            state.roll_back(state.length - count + 1)
    return ""


def _difference(expected: Tensor, found: Tensor) -> str:
    """Where two passes' greedy tokens over [n, V] differ. Two tokens that the eager pass itself
    puts within a few roundings of each other are a tie, and either is right."""
    if not bool(found.isfinite().all()):
        return "the replayed logits are not numbers"
    best = expected.max(-1)
    chosen = expected.gather(-1, found.argmax(-1, keepdim=True))[:, 0]
    near = 8 * torch.finfo(expected.dtype).eps * best.values.abs().clamp(min=1)
    wrong = (best.values - chosen > near).nonzero()
    if not len(wrong):
        return ""
    row = int(wrong[0])
    return f"row {row} gives token {int(found[row].argmax())}, not {int(best.indices[row])}"
