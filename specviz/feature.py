"""A feature draft: one decoder layer that goes on from the target's own hidden states.

The idea of EAGLE (arXiv 2401.15077). The target's last normalised hidden state at a token, and the
embedding of the token after it, are fused and sent through one layer of the target's width; what
comes out is read by the target's own head, cut to the ids the draft knows, and stands in for the
next hidden state, which nobody has computed yet. Embedding and head are the target's, so that a
checkpoint holds little more than one layer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from specviz.graphs import Capture, FixedCache, GraphedState, Graphs, Step
from specviz.llama import Layer, LeanLlama, LeanState, norm

CONFIG = "feature.json"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureModel:
    """A feature draft's weights beside its target's. Shared by every run and never written to.

    ``stack`` is the layer with the target's embedding [V, W] and its head cut to ``ids`` [Vd, W];
    ``fuse`` [W, 2W]; the norms [W]. ``parameters`` counts what the checkpoint holds. ``graphs`` are
    its steps to be replayed as CUDA graphs, where they passed their check, and ``graphs_note`` says
    to the machine's record whether they did.
    """

    name: str
    stack: LeanLlama
    fuse: Tensor
    embed_norm: Tensor
    feature_norm: Tensor
    ids: tuple[int, ...]
    parameters: int
    graphs: Graphs | None = None
    graphs_note: str = ""

    def state(self) -> FeatureState:
        """An empty cache for one run, the quickest kind there is."""
        return GraphedFeatureState(self, self.graphs) if self.graphs else FeatureState(self)

    def replayed(self, context: int, capture: Capture) -> Graphs:
        """Its steps as CUDA graphs, for texts of up to ``context`` tokens."""

        def make(cache: FixedCache, count: int, reach: int, capture: Capture) -> Step:
            return FeatureStep(self, cache, count, reach, capture)

        return Graphs(self.stack, context, capture, make)

    def mixed(self, features: Tensor, ids: Tensor) -> Tensor:
        """Hidden states [n, W] and the token after each [n], fused into what the layer reads,
        [n, W]."""
        embedded = norm(self.stack.embedding[ids], self.embed_norm, self.stack.eps)
        known = norm(features, self.feature_norm, self.stack.eps)
        return F.linear(torch.cat((embedded, known), -1), self.fuse)

    @classmethod
    def load(cls, folder: Path, target: LeanLlama) -> FeatureModel:
        """The checkpoint in ``folder``, in the target's dtype and on its device. Raises OSError,
        ValueError, KeyError where the files are not whole or belong to another target."""
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        ids = tuple(config["ids"])
        read = load_file(folder / WEIGHTS)
        width = target.norm.shape[0]
        if read["fuse.weight"].shape != (width, 2 * width) or max(ids) >= target.head.shape[0]:
            raise ValueError(f"{folder.name} was made for another target")
        held = {name: weight.to(target.embedding) for name, weight in read.items()}
        kept = torch.tensor(ids, device=target.head.device)
        stack = LeanLlama(
            heads=target.heads,
            kv_heads=target.kv_heads,
            head_dim=target.head_dim,
            eps=target.eps,
            embedding=target.embedding,
            norm=held["norm.weight"],
            head=target.head[kept],
            layers=(_layer(held),),
            rotary=target.rotary,
        )
        return cls(
            name=folder.name,
            stack=stack,
            fuse=held["fuse.weight"],
            embed_norm=held["embed_norm.weight"],
            feature_norm=held["feature_norm.weight"],
            ids=ids,
            parameters=sum(weight.numel() for weight in read.values()),
        )


def _layer(held: dict[str, Tensor]) -> Layer:
    def fused(*names: str) -> Tensor:
        return torch.cat([held[f"layer.{name}.weight"] for name in names])

    return Layer(
        norm=held["layer.input_layernorm.weight"],
        qkv=fused("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        out=held["layer.self_attn.o_proj.weight"],
        mlp_norm=held["layer.post_attention_layernorm.weight"],
        gate_up=fused("mlp.gate_proj", "mlp.up_proj"),
        down=held["layer.mlp.down_proj.weight"],
    )


class FeatureState:
    """One run's KV cache of a feature draft. Entry i belongs to token i + 1 and to the hidden
    state of token i."""

    def __init__(self, model: FeatureModel) -> None:
        self._model = model
        self._state = LeanState(model.stack)

    @property
    def length(self) -> int:
        """How many entries are cached."""
        return self._state.length

    def step(self, features: Tensor, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Append entries: hidden states [n, W] and the token after each, [n].

        Returns the logits of what follows the last token, [1, Vd], and the draft's own guess at
        that token's hidden state, [1, W].
        """
        tokens = torch.tensor(ids, device=self._model.stack.device)
        hidden = self._state.run(self._model.mixed(features, tokens))
        return _read_out(self._model.stack, hidden)

    def prepare(self, start: int, end: int, longest: int) -> None:
        """See ``CachedModel.prepare``."""
        self._state.prepare(start, end, longest)

    def roll_back(self, length: int) -> None:
        """Forget the entries behind the first ``length``."""
        self._state.crop(length)


def _read_out(stack: LeanLlama, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [1, Vd] and hidden state [1, W] behind the last of [n, W]."""
    feature = norm(hidden[-1:], stack.norm, stack.eps)
    return F.linear(feature, stack.head), feature


class FeatureStep(Step):
    """A feature draft's step, captured."""

    def __init__(self, model: FeatureModel, cache: FixedCache, count: int, *rest: Any) -> None:
        self._model = model
        self._features = model.embed_norm.new_zeros(count, model.embed_norm.shape[0])
        super().__init__(cache, count, *rest)

    def work(self) -> tuple[Tensor, ...]:
        """See ``Step.work``."""
        mixed = self._model.mixed(self._features, self.numbers[1:])
        return _read_out(self._model.stack, self.cache.run(mixed, self.positions, self.reach))

    def behind(self, features: Tensor, length: int, ids: Sequence[int]) -> tuple[Tensor, ...]:
        """``__call__`` with the hidden states [n, W] that the ids follow."""
        self._features.copy_(features)
        return self(length, ids)


class GraphedFeatureState(FeatureState):
    """The same whose steps are replayed."""

    def __init__(self, model: FeatureModel, graphs: Graphs) -> None:
        super().__init__(model)
        self._state: GraphedState = GraphedState(graphs)

    def step(self, features: Tensor, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """See ``FeatureState.step``."""
        step = self._state.captured(len(ids))
        if not isinstance(step, FeatureStep):
            return super().step(features, ids)
        logits, feature = step.behind(features, self._state.length, ids)
        self._state.length += len(ids)
        return logits, feature
