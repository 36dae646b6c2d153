"""A lean forward pass for Llama models, for a few tokens at a time.

At batch 1 a small model's time is its weights being read, and what a general framework adds
around each of a few hundred small products. This pass fuses the three attention projections and
the two MLP ones, keeps one KV buffer, and does nothing else. It is used for both lanes of a
race and for Llama drafts; every other model runs through transformers' own forward.

On a CPU a row's result must not depend on how many rows share its pass, or a verified token could
fall the other way than the baseline's at a near tie. The products used here keep that where the
processor multiplies bfloat16 natively; attention does once it is always asked in one shape, see
``attention.by_row``. tests/benchmarks/same_text.py measures how often texts are equal to the token.

It is taken only after its logits have been compared with transformers' own (``lean``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.attention import Look, look_back

CAPACITY_STEP = 512
FIXED_ROPE = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class Layer:
    """One decoder layer's weights; ``qkv`` [(H + 2K) * D, W] and ``gate_up`` [2 * M, W] fused."""

    norm: Tensor
    qkv: Tensor
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class LeanLlama:
    """A Llama's weights laid out for the lean pass. Shares its memory with the module's.

    ``embedding`` and ``head`` are [V, W], ``norm`` [W]; ``rotary`` gives cos and sin.
    """

    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    embedding: Tensor
    norm: Tensor
    head: Tensor
    layers: tuple[Layer, ...]
    rotary: Any

    @property
    def groups(self) -> int:
        """How many query heads share a key."""
        return self.heads // self.kv_heads

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.embedding.device

    @classmethod
    def of(cls, module: Any) -> LeanLlama:
        """The weights of a transformers Llama."""
        config = module.config
        return cls(
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=getattr(config, "head_dim", None)
            or config.hidden_size // config.num_attention_heads,
            eps=config.rms_norm_eps,
            embedding=module.model.embed_tokens.weight.detach(),
            norm=module.model.norm.weight.detach(),
            head=module.lm_head.weight.detach(),
            layers=tuple(_fuse(layer) for layer in module.model.layers),
            rotary=module.model.rotary_emb,
        )

    def rotation(self, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin for the first ``length`` positions, each [length, 1, D]. The first half of
        sin is negated, so that rotating is x * cos + swapped_halves(x) * sin."""
        positions = torch.arange(length, device=self.embedding.device)[None]
        cos, sin = self.rotary(self.embedding[:1], positions)
        sin = sin[0, :, None].clone()
        sin[..., : self.head_dim // 2] *= -1
        return cos[0, :, None], sin


class LeanState:
    """One run's KV buffer over a LeanLlama. Rolling back moves a number and copies nothing."""

    def __init__(self, model: LeanLlama, keep_features: bool = False) -> None:
        self._model = model
        self._keep_features = keep_features
        self.features: Tensor | None = None
        self._capacity = 0
        self._states: list[tuple[Tensor, Tensor]] = []
        self.length = 0

    def forward(self, ids: Sequence[int], keep: int) -> Tensor:
        """Logits of the last ``keep`` of ``ids``, [keep, V], and their states appended."""
        model = self._model
        hidden = self.run(model.embedding[torch.tensor(ids, device=model.device)])
        if self._keep_features:
            self.features = norm(hidden, model.norm, model.eps)
            return F.linear(self.features[-keep:], model.head)
        return F.linear(norm(hidden[-keep:], model.norm, model.eps), model.head)

    def run(self, hidden: Tensor) -> Tensor:
        """Send [n, W] through all layers behind what is cached; [n, W], not yet normalised."""
        start, end = self.length, self.length + hidden.shape[0]
        if end > self._capacity:
            self._grow(end)
        cos, sin = self._cos[start:end], self._sin[start:end]
        look = look_back(start, end, self._model.groups, hidden)
        for layer, (keys, values) in zip(self._model.layers, self._states, strict=True):
            hidden = hidden + self._attend(layer, hidden, keys, values, cos, sin, look)
            hidden = hidden + mlp(layer, hidden, self._model.eps)
        self.length = end
        return hidden

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens."""
        self.length = length

    def prepare(self, start: int, end: int, longest: int) -> None:
        """Nothing is captured here; see ``graphs.GraphedState``."""

    def _attend(
        self,
        layer: Layer,
        hidden: Tensor,  # [n, W]
        keys: Tensor,  # [1, K, capacity, D]
        values: Tensor,
        cos: Tensor,  # [n, 1, D]
        sin: Tensor,
        look: Look,
    ) -> Tensor:
        start, count = self.length, hidden.shape[0]
        queries, new_keys, new_values = project(self._model, layer, hidden, cos, sin)
        keys[0, :, start : start + count] = new_keys.transpose(0, 1)
        values[0, :, start : start + count] = new_values.transpose(0, 1)
        return F.linear(look(queries, keys, values).reshape(count, -1), layer.out)

    def _grow(self, needed: int) -> None:
        model = self._model
        capacity = -(-max(needed, 2 * self._capacity) // CAPACITY_STEP) * CAPACITY_STEP
        shape = (1, model.kv_heads, capacity, model.head_dim)
        states = [
            (model.embedding.new_zeros(shape), model.embedding.new_zeros(shape))
            for _ in model.layers
        ]
        if self.length:
            for new, old in zip(states, self._states, strict=True):
                new[0][:, :, : self.length] = old[0][:, :, : self.length]
                new[1][:, :, : self.length] = old[1][:, :, : self.length]
        self._states, self._capacity = states, capacity
        self._cos, self._sin = model.rotation(capacity)


class LeanRows:
    """Many texts of one length side by side, a token each at a step; for writing a corpus."""

    def __init__(self, model: LeanLlama, rows: int, length: int) -> None:
        self._model = model
        shape = (rows, model.kv_heads, length, model.head_dim)
        empty = model.embedding.new_empty
        self._states = [(empty(shape), empty(shape)) for _ in model.layers]
        self._cos, self._sin = model.rotation(length)
        self._length = 0

    def step(self, ids: Tensor) -> Tensor:
        """Append one id to each text, [B]; logits of what follows, [B, V]."""
        model, place = self._model, self._length
        hidden = model.embedding[ids]
        for layer, (keys, values) in zip(model.layers, self._states, strict=True):
            cos, sin = self._cos[place], self._sin[place]
            queries, keys[:, :, place], values[:, :, place] = project(
                model, layer, hidden, cos, sin
            )
            mixed = F.scaled_dot_product_attention(
                queries.reshape(len(ids), model.kv_heads, -1, model.head_dim),
                keys[:, :, : place + 1],
                values[:, :, : place + 1],
            )  # [B, K, H / K, D]
            hidden = hidden + F.linear(mixed.reshape(len(ids), -1), layer.out)
            hidden = hidden + mlp(layer, hidden, model.eps)
        self._length += 1
        return F.linear(norm(hidden, model.norm, model.eps), model.head)


def lean(module: Any) -> LeanLlama | None:
    """The lean form of a Llama module, or None where it does not apply or does not agree.

    It applies to plain Llama weights on one device. It agrees when its logits on a few tokens,
    read in two parts, are those of transformers' forward up to the dtype's rounding.
    """
    if not _applies(module):
        return None
    model = LeanLlama.of(module)
    return model if _agrees(model, module) else None


def _applies(module: Any) -> bool:
    config = module.config
    rope = getattr(config, "rope_parameters", None) or {}
    weights = list(module.parameters())
    return (
        getattr(config, "model_type", "") == "llama"
        and config.hidden_act == "silu"
        and not getattr(config, "attention_bias", False)
        and not getattr(config, "mlp_bias", False)
        and rope.get("rope_type", "default") in FIXED_ROPE
        and len({weight.device for weight in weights}) == 1
        and all(weight.is_floating_point() and weight.element_size() > 1 for weight in weights)
        and not any(hasattr(part, "_hf_hook") for part in module.modules())
    )


@torch.inference_mode()
def _agrees(model: LeanLlama, module: Any) -> bool:
    vocabulary = model.embedding.shape[0]
    ids = [(37 * i + 11) % vocabulary for i in range(12)]
    expected = module(input_ids=torch.tensor([ids], device=model.device)).logits[0]
    state = LeanState(model)
    found = torch.cat([state.forward(ids[:7], 7), state.forward(ids[7:], 5)])
    spread = expected.float().std().clamp(min=1e-6)
    error = ((found - expected).float().pow(2).mean().sqrt() / spread).item()
    return error < (1e-3 if expected.dtype == torch.float32 else 0.1)


def _fuse(layer: Any) -> Layer:
    """Lay a layer's projections behind one another. The module's own weights become views of
    the fused ones, so nothing is held twice."""
    attention, mlp = layer.self_attn, layer.mlp
    return Layer(
        norm=layer.input_layernorm.weight.detach(),
        qkv=_join([attention.q_proj, attention.k_proj, attention.v_proj]),
        out=attention.o_proj.weight.detach(),
        mlp_norm=layer.post_attention_layernorm.weight.detach(),
        gate_up=_join([mlp.gate_proj, mlp.up_proj]),
        down=mlp.down_proj.weight.detach(),
    )


def _join(parts: list[Any]) -> Tensor:
    fused = torch.cat([part.weight.detach() for part in parts])
    row = 0
    for part in parts:
        rows = part.weight.shape[0]
        part.weight.data = fused[row : row + rows]
        row += rows
    return fused


def norm(hidden: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root-mean-square normalisation of [n, W] by ``weight`` [W]."""
    return F.rms_norm(hidden, hidden.shape[-1:], weight, eps)


def project(
    model: LeanLlama, layer: Layer, hidden: Tensor, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A layer's queries [n, H, D], keys and values [n, K, D] of hidden states [n, W], turned to
    their positions by cos and sin, [n, 1, D] or [1, D]."""
    fused = F.linear(norm(hidden, layer.norm, model.eps), layer.qkv)
    fused = fused.view(hidden.shape[0], -1, model.head_dim)  # [n, H + 2K, D]
    turned = _rotate(fused[:, : model.heads + model.kv_heads], cos, sin)
    return turned[:, : model.heads], turned[:, model.heads :], fused[:, turned.shape[1] :]


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions for [..., D]; the first half of ``sin`` is negated, see ``rotation``."""
    half = heads.shape[-1] // 2
    return heads * cos + torch.cat((heads[..., half:], heads[..., :half]), -1) * sin


def mlp(layer: Layer, hidden: Tensor, eps: float) -> Tensor:
    """A layer's gated feed-forward part, [n, W] to [n, W], without the residual."""
    gate, up = F.linear(norm(hidden, layer.mlp_norm, eps), layer.gate_up).chunk(2, -1)
    return F.linear(F.silu(gate) * up, layer.down)
