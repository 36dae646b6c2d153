"""The student: a small Llama cut out of its target, over a part of the target's vocabulary.

A draft that starts from the target's own embeddings, layers and final norm learns in minutes
what one from random weights does not learn in hours, so `cut_student` takes some of the target's
layers, keeps in each MLP the neurons that matter most, and cuts embeddings and head to the ids
an `IdMap` keeps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

COPIED_CONFIG = (
    "head_dim",
    "hidden_act",
    "hidden_size",
    "attention_bias",
    "mlp_bias",
    "num_attention_heads",
    "num_key_value_heads",
    "rms_norm_eps",
    "rope_parameters",
    "max_position_embeddings",
    "initializer_range",
)


@dataclass(frozen=True)
class IdMap:
    """Which target ids a draft knows.

    ids: the target id of draft id 0, 1, ...
    unknown: the draft id that stands for every target id not in `ids`.
    """

    ids: tuple[int, ...]
    unknown: int

    def __post_init__(self) -> None:
        if len(set(self.ids)) != len(self.ids):
            raise ValueError("a target id appears twice in the id map")
        if not 0 <= self.unknown < len(self.ids):
            raise ValueError(f"unknown is {self.unknown}, but there are {len(self.ids)} draft ids")

    def to_draft(self, target_ids: Tensor) -> Tensor:
        """Target ids (int64, any shape) -> draft ids of the same shape."""
        size = max(int(target_ids.max()) if target_ids.numel() else 0, *self.ids) + 1
        table = torch.full((size,), self.unknown, dtype=torch.int64)
        table[torch.tensor(self.ids)] = torch.arange(len(self.ids))
        return table.to(target_ids.device)[target_ids]

    def to_target(self, draft_ids: Tensor) -> Tensor:
        """Draft ids (int64, any shape) -> target ids of the same shape."""
        return torch.tensor(self.ids, device=draft_ids.device)[draft_ids]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"ids": list(self.ids), "unknown": self.unknown}) + "\n")

    @staticmethod
    def load(path: Path) -> IdMap:
        fields = json.loads(path.read_text())
        return IdMap(tuple(fields["ids"]), fields["unknown"])


def choose_ids(tokens: np.ndarray, size: int, special: Sequence[int], unknown: int = 0) -> IdMap:
    """Keep `unknown`, the special ids and the most frequent of `tokens`: `size` ids in all."""
    first = list(dict.fromkeys([unknown, *special]))
    counts = np.bincount(tokens.ravel())
    counts[[i for i in first if i < len(counts)]] = 0
    frequent = np.argsort(-counts, kind="stable")
    seen = [int(i) for i in frequent if counts[i] > 0]
    return IdMap(tuple((first + seen)[:size]), unknown=0)


@torch.inference_mode()
def neuron_importance(target: Any, rows: Tensor, layers: Sequence[int]) -> dict[int, Tensor]:
    """How much each MLP neuron of `layers` adds to the residual stream over `rows` [B, T].

    Returns for each layer a tensor [intermediate size]: the neuron's root mean square activation
    times the length of its column in the down projection.
    """
    squares: dict[int, Tensor] = {}
    handles = []
    for index in set(layers):
        down = target.model.layers[index].mlp.down_proj

        def record(module: Any, inputs: tuple[Tensor, ...], index: int = index) -> None:
            squares[index] = inputs[0].float().pow(2).mean(dim=(0, 1))

        handles.append(down.register_forward_pre_hook(record))
    try:
        target.model(input_ids=rows, use_cache=False)
    finally:
        for handle in handles:
            handle.remove()
    return {
        index: square.sqrt() * target.model.layers[index].mlp.down_proj.weight.float().norm(dim=0)
        for index, square in squares.items()
    }


def student_config(target: Any, id_map: IdMap, layers: int, intermediate: int) -> LlamaConfig:
    """A Llama of the target's width with `layers` layers over the ids of `id_map`."""
    config = target.config
    copied = {name: getattr(config, name) for name in COPIED_CONFIG if hasattr(config, name)}
    known = {target_id: draft_id for draft_id, target_id in enumerate(id_map.ids)}
    return LlamaConfig(
        **copied,
        vocab_size=len(id_map.ids),
        num_hidden_layers=layers,
        intermediate_size=intermediate,
        tie_word_embeddings=config.tie_word_embeddings,
        bos_token_id=known.get(config.bos_token_id),
        eos_token_id=known.get(config.eos_token_id),
        pad_token_id=None,
    )


@torch.no_grad()
def cut_student(
    target: Any, id_map: IdMap, layers: Sequence[int], intermediate: int, rows: Tensor
) -> LlamaForCausalLM:
    """Cut a float32 student out of the target.

    layers: which of the target's layers, in order.
    intermediate: MLP neurons kept in each, chosen by `neuron_importance` over `rows` [B, T].
    """
    importance = neuron_importance(target, rows, layers)
    kept_ids = torch.tensor(id_map.ids)
    taken: dict[str, Tensor] = {
        "model.embed_tokens.weight": target.get_input_embeddings().weight[kept_ids],
        "lm_head.weight": target.get_output_embeddings().weight[kept_ids],
        "model.norm.weight": target.model.norm.weight,
    }
    for place, index in enumerate(layers):
        neurons = importance[index].topk(intermediate).indices.sort().values
        for name, weight in target.model.layers[index].state_dict().items():
            if name.startswith("mlp."):
                weight = _cut_mlp(name, weight, neurons)
            taken[f"model.layers.{place}.{name}"] = weight
    student = LlamaForCausalLM(student_config(target, id_map, len(layers), intermediate))
    own = student.state_dict()
    # A bias only some of the target's projections have (Qwen2) starts at zero in the others.
    student.load_state_dict(
        {name: taken.get(name, torch.zeros_like(own[name])).float() for name in own}
    )
    return student


@torch.no_grad()
def narrow_student(
    target: Any, id_map: IdMap, layers: int, width: int, intermediate: int
) -> LlamaForCausalLM:
    """A float32 student of another width than the target's, which must be a multiple of its head
    size. Embeddings and head are the target's along their first principal directions, scaled back
    to their length; layers of that width cannot be cut out of the target, so they start random."""
    config = student_config(target, id_map, layers, intermediate)
    head_size = (
        getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )
    if width % head_size:
        raise ValueError(f"the width must be a multiple of the head size, {head_size}")
    config.hidden_size = width
    shared = config.num_key_value_heads or config.num_attention_heads
    config.num_attention_heads = width // head_size
    config.num_key_value_heads = math.gcd(config.num_attention_heads, shared)
    student: Any = LlamaForCausalLM(config)
    kept = torch.tensor(id_map.ids)
    for own, theirs in (
        (student.get_input_embeddings(), target.get_input_embeddings()),
        (student.get_output_embeddings(), target.get_output_embeddings()),
    ):
        rows = theirs.weight[kept].float()
        directions = torch.linalg.svd(rows, full_matrices=False).Vh[:width]
        seen = rows @ directions.T
        own.weight.copy_(seen * (rows.norm() / seen.norm()))
    narrow: LlamaForCausalLM = student
    return narrow


def _cut_mlp(name: str, weight: Tensor, neurons: Tensor) -> Tensor:
    """Keep some neurons of one MLP parameter: columns of `down_proj`, rows of the others."""
    if name == "mlp.down_proj.weight":
        return weight[:, neurons]
    return weight if name == "mlp.down_proj.bias" else weight[neurons]


def save_draft(student: LlamaForCausalLM, id_map: IdMap, folder: Path) -> int:
    """Write config.json, ids.json and model.safetensors (bfloat16); returns the weights' bytes.

    Each file is written under another name and then renamed, weights last, so that a reader never
    meets half a file. Other files in `folder` (the model card) stay.
    """
    tied = student.config.tie_word_embeddings
    weights = {
        name: weight.detach().to("cpu", torch.bfloat16).contiguous()
        for name, weight in student.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    config = student.config.to_diff_dict()
    config |= {"model_type": "llama", "dtype": "bfloat16", "architectures": ["LlamaForCausalLM"]}
    folder.mkdir(parents=True, exist_ok=True)
    names = ("config.json", "ids.json", "model.safetensors")
    parts = [folder / f"{name}.part" for name in names]
    parts[0].write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    id_map.save(parts[1])
    save_file(weights, parts[2], metadata={"format": "pt"})
    parts[2].chmod(0o644)  # safetensors makes files that nobody else can read
    for name, part in zip(names, parts, strict=True):
        part.replace(folder / name)
    return (folder / "model.safetensors").stat().st_size


def load_draft(folder: Path, dtype: torch.dtype) -> tuple[LlamaForCausalLM, IdMap]:
    """Load what `save_draft` wrote."""
    student = LlamaForCausalLM.from_pretrained(folder, dtype=dtype)
    return student.eval(), IdMap.load(folder / "ids.json")
