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

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from specviz.llama import Layer, LeanLlama, LeanState, norm

CONFIG = "feature.json"
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureModel:
    """A feature draft's weights beside its target's. Shared by every run and never written to.

    ``stack`` is the layer with the target's embedding [V, W] and its head cut to ``ids`` [Vd, W];
    ``fuse`` [W, 2W]; the norms [W]. ``parameters`` counts what the checkpoint holds.
    """

    name: str
    stack: LeanLlama
    fuse: Tensor
    embed_norm: Tensor
    feature_norm: Tensor
    ids: tuple[int, ...]
    parameters: int

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
        model = self._model
        stack = model.stack
        embedded = stack.embedding[torch.tensor(ids, device=stack.embedding.device)]
        both = torch.cat(
            (
                norm(embedded, model.embed_norm, stack.eps),
                norm(features, model.feature_norm, stack.eps),
            ),
            -1,
        )
        hidden = self._state.run(F.linear(both, model.fuse))
        feature = norm(hidden[-1:], stack.norm, stack.eps)
        return F.linear(feature, stack.head), feature

    def roll_back(self, length: int) -> None:
        """Forget the entries behind the first ``length``."""
        self._state.crop(length)
