"""A lean forward pass for Llama models, for a few tokens at a time.

At batch 1 a small model's time is its weights being read, and what a general framework adds
around each of a few hundred small products. This pass fuses the three attention projections and
the two MLP ones, keeps one KV buffer, and does nothing else. It is used for both lanes of a
race and for Llama drafts; every other model runs through transformers' own forward.

A row's result must not depend on how many rows share its pass, or a verified token could fall
the other way than the baseline's at a near tie. The products used here keep that where the
processor multiplies bfloat16 natively; attention does once it is always asked in one shape, see
``_attend``. tests/benchmarks/same_text.py measures how often texts are equal to the token.

It is taken only after its logits have been compared with transformers' own (``lean``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

CAPACITY_STEP = 512
LENGTH_STEP = 16
FIXED_ROPE = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class _Layer:
    """One decoder layer's weights; ``qkv`` [(H + 2K) * D, W] and ``gate_up`` [2 * M, W] fused."""

    norm: Tensor
    qkv: Tensor
    out: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


class LeanLlama:
    """A Llama's weights laid out for the lean pass. Shares its memory with the module's."""

    def __init__(self, module: Any) -> None:
        config = module.config
        self.heads = config.num_attention_heads
        self.kv_heads = config.num_key_value_heads
        self.head_dim = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.eps = config.rms_norm_eps
        self.embedding = module.model.embed_tokens.weight.detach()
        self.norm = module.model.norm.weight.detach()
        self.head = module.lm_head.weight.detach()
        self.layers = [_fuse(layer) for layer in module.model.layers]
        self._rotary = module.model.rotary_emb

    def rotation(self, length: int) -> tuple[Tensor, Tensor]:
        """cos and sin for the first ``length`` positions, each [length, 1, D]. The first half of
        sin is negated, so that rotating is x * cos + swapped_halves(x) * sin."""
        positions = torch.arange(length, device=self.embedding.device)[None]
        cos, sin = self._rotary(self.embedding[:1], positions)
        sin = sin[0, :, None].clone()
        sin[..., : self.head_dim // 2] *= -1
        return cos[0, :, None], sin


class LeanState:
    """One run's KV buffer over a LeanLlama. Rolling back moves a number and copies nothing."""

    def __init__(self, model: LeanLlama) -> None:
        self._model = model
        self._capacity = 0
        self._states: list[tuple[Tensor, Tensor]] = []
        self.length = 0

    def forward(self, ids: Sequence[int], keep: int) -> Tensor:
        """Logits of the last ``keep`` of ``ids``, [keep, V], and their states appended."""
        model, start, end = self._model, self.length, self.length + len(ids)
        if end > self._capacity:
            self._grow(end)
        hidden = model.embedding[torch.tensor(ids, device=model.embedding.device)]
        cos, sin = self._cos[start:end], self._sin[start:end]
        mask = self._mask(start, end)
        for layer, (keys, values) in zip(model.layers, self._states, strict=True):
            hidden = hidden + self._attend(layer, hidden, keys, values, cos, sin, mask)
            hidden = hidden + _mlp(layer, hidden, model.eps)
        self.length = end
        hidden = F.rms_norm(hidden[-keep:], hidden.shape[-1:], model.norm, model.eps)
        return F.linear(hidden, model.head)

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens."""
        self.length = length

    def _attend(
        self,
        layer: _Layer,
        hidden: Tensor,  # [n, W]
        keys: Tensor,  # [1, K, capacity, D]
        values: Tensor,
        cos: Tensor,  # [n, 1, D]
        sin: Tensor,
        mask: Tensor | None,
    ) -> Tensor:
        """One layer's attention. Past the prompt, each new token is a batch entry of its own whose
        rows are the heads that share a key, and keys are read up to a multiple of LENGTH_STEP
        with the surplus masked: the kernel then splits its sums in the same places however many
        tokens share the pass."""
        model, start = self._model, self.length
        count, half = hidden.shape[0], model.head_dim // 2
        end = start + count
        normed = F.rms_norm(hidden, hidden.shape[-1:], layer.norm, model.eps)
        fused = F.linear(normed, layer.qkv).view(count, -1, model.head_dim)  # [n, H + 2K, D]
        turned = fused[:, : model.heads + model.kv_heads]
        swapped = torch.cat((turned[..., half:], turned[..., :half]), -1)
        turned = turned * cos + swapped * sin
        keys[0, :, start:end] = turned[:, model.heads :].transpose(0, 1)
        values[0, :, start:end] = fused[:, model.heads + model.kv_heads :].transpose(0, 1)
        if mask is None:
            mixed = F.scaled_dot_product_attention(
                turned[:, : model.heads].transpose(0, 1)[None],
                keys[:, :, :end],
                values[:, :, :end],
                is_causal=True,
                enable_gqa=True,
            )[0].transpose(0, 1)  # [n, H, D]
        else:
            seen = mask.shape[-1]
            grouped = (count, model.kv_heads, -1, model.head_dim)
            mixed = F.scaled_dot_product_attention(
                turned[:, : model.heads].reshape(grouped),
                keys[:, :, :seen].expand(count, -1, -1, -1),
                values[:, :, :seen].expand(count, -1, -1, -1),
                attn_mask=mask,
            )  # [n, K, H / K, D]
        return F.linear(mixed.reshape(count, -1), layer.out)

    def _mask(self, start: int, end: int) -> Tensor | None:
        """What to add to the scores of each new position, [n, 1, 1, up to LENGTH_STEP more than
        end]: 0 where it may look, -inf where not. None where all of the text is new and the
        kernel's own causal mask says the same."""
        if start == 0:
            return None
        device = self._model.embedding.device
        places = torch.arange(-(-end // LENGTH_STEP) * LENGTH_STEP, device=device)
        unseen = places > torch.arange(start, end, device=device)[:, None, None, None]
        return self._model.embedding.new_zeros(unseen.shape).masked_fill(unseen, float("-inf"))

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


def lean(module: Any) -> LeanLlama | None:
    """The lean form of a Llama module, or None where it does not apply or does not agree.

    It applies to plain Llama weights on one device. It agrees when its logits on a few tokens,
    read in two parts, are those of transformers' forward up to the dtype's rounding.
    """
    if not _applies(module):
        return None
    model = LeanLlama(module)
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
    expected = module(input_ids=torch.tensor([ids], device=model.embedding.device)).logits[0]
    state = LeanState(model)
    found = torch.cat([state.forward(ids[:7], 7), state.forward(ids[7:], 5)])
    spread = expected.float().std().clamp(min=1e-6)
    error = ((found - expected).float().pow(2).mean().sqrt() / spread).item()
    return error < (1e-3 if expected.dtype == torch.float32 else 0.1)


def _fuse(layer: Any) -> _Layer:
    """Lay a layer's projections behind one another. The module's own weights become views of
    the fused ones, so nothing is held twice."""
    attention, mlp = layer.self_attn, layer.mlp
    return _Layer(
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


def _mlp(layer: _Layer, hidden: Tensor, eps: float) -> Tensor:
    normed = F.rms_norm(hidden, hidden.shape[-1:], layer.mlp_norm, eps)
    gate, up = F.linear(normed, layer.gate_up).chunk(2, -1)
    return F.linear(F.silu(gate) * up, layer.down)
