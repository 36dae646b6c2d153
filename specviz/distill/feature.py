"""Training a feature draft (``specviz.feature``) on its target's hidden states.

A feature draft reads true hidden states only for its first guess of a round; from the second on it
reads its own. So it is trained as it is used (EAGLE-3, arXiv 2503.01840, calls it training-time
test): the pass over a row is repeated, each time on the last pass's output shifted by one, with the
attention a draft of that depth would have.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from specviz.distill.evaluation import Acceptance, GreedyText, simulate
from specviz.distill.student import neuron_importance
from specviz.distill.training import SoftCrossEntropy, Trainer
from specviz.feature import CONFIG, WEIGHTS

DEPTH_WEIGHT = 0.8
"""Loss weight of each pass against the one before: deeper guesses count in fewer rounds."""

FAINT, ADDING = 0.1, ("o_proj.weight", "down_proj.weight")
"""Part of the target's last layer's output that a student starts with: it was made for a stream
of another size."""


class FeatureStudent(nn.Module):
    """The trainable part: fuse, one layer, norms. Embedding and head are the target's, frozen."""

    def __init__(self, target: Any, ids: Sequence[int], intermediate: int) -> None:
        super().__init__()
        config = target.config
        width = config.hidden_size
        self.ids = tuple(ids)
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or width // self.heads
        self.rotary = target.model.rotary_emb
        self.embedding = target.get_input_embeddings().weight.detach()
        self.embed_norm = nn.RMSNorm(width, config.rms_norm_eps)
        self.feature_norm = nn.RMSNorm(width, config.rms_norm_eps)
        self.fuse = nn.Linear(2 * width, width, bias=False)
        self.layer: Any = _layer(config, intermediate, self.head_dim)
        self.norm = nn.RMSNorm(width, config.rms_norm_eps)

    @property
    def device(self) -> torch.device:
        return self.fuse.weight.device

    def unroll(self, states: Tensor, ids: Tensor, depth: int) -> list[Tensor]:
        """The draft's hidden states after 1 to ``depth`` guesses.

        states [B, P, W]: the target's at P tokens; ids [B, P]: the token after each. Element k,
        [B, P, W], stands at i for the token behind ids[:, i], guessed from states[:, : i - k + 1]
        and its own k outputs since; its first k places say nothing.
        """
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        cos, sin = (part[:, None] for part in self.rotary(self.fuse.weight[:1, :1], places))
        embedded = self.embed_norm(self.embedding[ids].float())
        feature, outputs = states.float(), []
        keys: list[Tensor] = []
        values: list[Tensor] = []
        for _ in range(depth):
            both = torch.cat((embedded, self.feature_norm(feature)), -1)
            hidden = F.linear(both, self.fuse.weight).float()
            hidden = hidden + self._attend(hidden, keys, values, cos, sin)
            normed = self.layer["post_attention_layernorm"](hidden)
            mlp = self.layer["mlp"]
            hidden = hidden + mlp["down_proj"](
                F.silu(mlp["gate_proj"](normed)) * mlp["up_proj"](normed)
            )
            outputs.append(self.norm(hidden))
            feature = F.pad(outputs[-1][:, :-1], (0, 0, 1, 0)).float()
        return outputs

    def _attend(
        self, hidden: Tensor, keys: list[Tensor], values: list[Tensor], cos: Tensor, sin: Tensor
    ) -> Tensor:
        """Attention of the pass that follows ``len(keys)`` others; its keys are added."""
        attention, batch, length = self.layer["self_attn"], hidden.shape[0], hidden.shape[1]
        normed = self.layer["input_layernorm"](hidden)

        def split(name: str) -> Tensor:  # [B, heads, P, D]
            return attention[name](normed).view(batch, length, -1, self.head_dim).transpose(1, 2)

        query = _rotate(split("q_proj"), cos, sin)
        keys.append(_rotate(split("k_proj"), cos, sin))
        values.append(split("v_proj"))
        mixed = F.scaled_dot_product_attention(
            query,
            torch.cat(keys, 2),
            torch.cat(values, 2),
            attn_mask=depth_mask(length, len(keys)).to(hidden.device),
            enable_gqa=True,
        )
        return attention["o_proj"](mixed.transpose(1, 2).reshape(batch, length, -1))

    def save(self, folder: Path) -> int:
        """Write feature.json and model.safetensors (bfloat16); returns the weights' bytes."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {
            name: weight.detach().to("cpu", torch.bfloat16).contiguous()
            for name, weight in self.state_dict().items()
        }
        parts = [folder / f"{name}.part" for name in (CONFIG, WEIGHTS)]
        parts[0].write_text(json.dumps({"ids": list(self.ids)}) + "\n", encoding="utf-8")
        save_file(weights, parts[1])
        parts[1].chmod(0o644)
        for name, part in zip((CONFIG, WEIGHTS), parts, strict=True):
            part.replace(folder / name)
        return (folder / WEIGHTS).stat().st_size


def _layer(config: Any, intermediate: int, head_dim: int) -> nn.ModuleDict:
    """One decoder layer under the names Llama checkpoints use."""
    width = config.hidden_size
    queries, shared = config.num_attention_heads * head_dim, config.num_key_value_heads * head_dim

    def linear(inputs: int, outputs: int) -> nn.Linear:
        return nn.Linear(inputs, outputs, bias=False)

    return nn.ModuleDict(
        {
            "input_layernorm": nn.RMSNorm(width, config.rms_norm_eps),
            "self_attn": nn.ModuleDict(
                {
                    "q_proj": linear(width, queries),
                    "k_proj": linear(width, shared),
                    "v_proj": linear(width, shared),
                    "o_proj": linear(queries, width),
                }
            ),
            "post_attention_layernorm": nn.RMSNorm(width, config.rms_norm_eps),
            "mlp": nn.ModuleDict(
                {
                    "gate_proj": linear(width, intermediate),
                    "up_proj": linear(width, intermediate),
                    "down_proj": linear(intermediate, width),
                }
            ),
        }
    )


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions for [B, H, P, D]; cos and sin [1, 1, P, D]."""
    first, second = heads.chunk(2, -1)
    return heads * cos + torch.cat((-second, first), -1) * sin


def depth_mask(length: int, depth: int) -> Tensor:
    """What place i may look at in pass ``depth`` (from 1), bool [P, depth * P]: entries made from
    true hidden states up to i - depth + 1, then its own of the passes 2 to ``depth``."""
    place = torch.arange(length)
    behind = place[:, None] - place[None, :]
    blocks = [behind >= depth - 1]
    blocks += [behind == depth - own for own in range(2, depth + 1)]
    mask = torch.cat(blocks, 1)
    mask[: depth - 1, 0] = True  # places that say nothing; a row without any key would be NaN
    return mask


@torch.no_grad()
def cut_feature_student(
    target: Any, ids: Sequence[int], intermediate: int, rows: Tensor
) -> FeatureStudent:
    """A student that starts from the hidden state it is given and, faintly, the target's last
    layer, with the MLP neurons that matter most over ``rows`` [B, T]."""
    student = FeatureStudent(target, ids, intermediate)
    last = len(target.model.layers) - 1
    neurons = neuron_importance(target, rows, [last])[last].topk(intermediate).indices.sort().values
    own = student.layer.state_dict()
    for name, weight in target.model.layers[last].state_dict().items():
        if name.startswith("mlp."):
            weight = weight[:, neurons] if "down" in name else weight[neurons]
        own[name].copy_(weight * FAINT if name.endswith(ADDING) else weight)
    width = student.norm.weight.shape[0]
    student.norm.weight.copy_(target.model.norm.weight)
    student.fuse.weight.copy_(torch.cat((torch.zeros(width, width), torch.eye(width)), 1))
    return student


def load_feature_student(target: Any, folder: Path) -> FeatureStudent:
    """The saved feature draft of ``target`` in ``folder``, in float32, to train or judge it."""
    weights = load_file(folder / WEIGHTS)
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    intermediate = weights["layer.mlp.gate_proj.weight"].shape[0]
    student = FeatureStudent(target, config["ids"], intermediate)
    student.load_state_dict(weights)
    return student


class FeatureTrainer(Trainer):
    """Trains a FeatureStudent; ``settings.depth`` passes over each row."""

    def loss(self, rows: np.ndarray) -> Tensor:
        """The passes' cross-entropies against the target's distribution, weighted by depth."""
        weights = self.data.weights[rows].to(self.device)[:, 1:]
        used = weights > 0
        states = torch.from_numpy(self.data.states[rows]).view(torch.bfloat16).to(self.device)
        ids = self.data.ids[rows].to(self.device)
        wanted = self.target_distribution(rows, F.pad(used, (1, 0)))
        total, sum_of_weights = torch.zeros(()), 0.0
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            outputs = self.student.unroll(states[:, :-1], ids[:, 1:], self.settings.depth)
        for passes, output in enumerate(outputs):
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                logits = F.linear(output[used], self.head)
            share = weights[used] / weights[used].sum() * DEPTH_WEIGHT**passes
            total = total + SoftCrossEntropy.apply(logits, wanted, share)
            sum_of_weights += DEPTH_WEIGHT**passes
        return total / sum_of_weights

    @torch.no_grad()
    def held_out_overlap(self, rows: int = 16) -> float:
        """Mean over answer positions of held-out rows of sum(min(p, q)) for the first guess."""
        last = np.arange(len(self.data.ids))[-self.settings.held_out :][:rows]
        used = self.data.weights[last].to(self.device)[:, 1:] >= 1
        states = torch.from_numpy(self.data.states[last]).view(torch.bfloat16).to(self.device)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            (output,) = self.student.unroll(
                states[:, :-1], self.data.ids[last].to(self.device)[:, 1:], 1
            )
            q = F.linear(output[used], self.head).float().softmax(-1)
        p = F.linear(states[:, 1:][used], self.head).float().softmax(-1)
        return torch.minimum(p, q).sum(-1).mean().item()


@torch.inference_mode()
def text_states(target: Any, text: GreedyText) -> Tensor:
    """The target's normalised hidden states over prompt and text, [T, W]."""
    ids = torch.tensor([text.prompt_ids + text.ids], device=target.device)
    states: Tensor = target.model(input_ids=ids, use_cache=False).last_hidden_state[0]
    return states


@torch.inference_mode()
def right_by_depth(
    student: FeatureStudent, head: Tensor, states: Tensor, text: GreedyText, depth: int
) -> list[list[bool]]:
    """[depth][len(text.ids)]: is the guess of that depth, made behind the target's own text, the
    target's token? states [T, W] as from ``text_states``."""
    ids = torch.tensor([text.prompt_ids + text.ids])
    with torch.autocast(states.device.type, dtype=torch.bfloat16):
        outputs = student.unroll(states[None, :-2], ids[:, 1:-1].to(states.device), depth)
        first = len(text.prompt_ids) - 2
        guesses = [F.linear(o[0, first:], head.to(o.dtype)).argmax(-1) for o in outputs]
    known = torch.tensor(student.ids)
    return [(known[g.cpu()] == torch.tensor(text.ids)).tolist() for g in guesses]


def evaluate_feature(
    student: FeatureStudent,
    head: Tensor,
    states: Sequence[Tensor],
    texts: Sequence[GreedyText],
    gamma: int,
) -> tuple[Acceptance, list[Acceptance]]:
    """Greedy rounds over all texts: the sum, and text by text."""
    each = []
    for known, text in zip(states, texts, strict=True):
        each.append(simulate(right_by_depth(student, head, known, text, gamma), gamma, text.budget))
    total = each[0]
    for acceptance in each[1:]:
        total = total + acceptance
    return total, each
