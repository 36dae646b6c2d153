"""A language model and its KV cache behind one small surface: append, length, roll back.

Every call that depends on transformers' cache classes stands in this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

CAPACITY_STEP = 256


class ContextFull(ValueError):
    """More tokens were appended than the model's context holds."""


class NotRollable(ValueError):
    """The model's cache cannot forget tokens, so guesses cannot be taken back."""


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A loaded causal language model. Shared by every run and never written to.

    ``vocabulary`` is the number of ids that mean something: heads are often padded beyond it.
    ``context`` is the largest number of tokens the model can attend to.
    """

    name: str
    module: Any
    vocabulary: int
    context: int
    parameters: int = 0

    @property
    def device(self) -> torch.device:
        """Where the ids must be put."""
        return self.module.get_input_embeddings().weight.device


class GrowingLayer(DynamicLayer):
    """Keys and values in a buffer that grows in steps, so that appending a token copies one
    token and rolling back copies nothing. Same contents as transformers' DynamicLayer."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append states [B, H, n, D]; returns all keys and values, [B, H, length, D]."""
        length = self.get_seq_length()
        end = length + key_states.shape[-2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.room: tuple[Tensor, Tensor] | None = None
        if self.room is None or self.room[0].shape[-2] < end:
            self._grow(key_states, value_states, length, end)
        assert self.room is not None
        keys, values = self.room
        keys[..., length:end, :] = key_states
        values[..., length:end, :] = value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        return self.keys, self.values

    def _grow(self, key_states: Tensor, value_states: Tensor, length: int, end: int) -> None:
        capacity = -(-max(end, 2 * length) // CAPACITY_STEP) * CAPACITY_STEP
        room = tuple(
            new.new_empty((*new.shape[:-2], capacity, new.shape[-1]))
            for new in (key_states, value_states)
        )
        if length:
            room[0][..., :length, :] = self.keys
            room[1][..., :length, :] = self.values
        self.room = (room[0], room[1])


class CachedModel:
    """One run's own view of a shared model: its weights, and a KV cache of this run alone."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self._device = model.device
        self._forward = model.module.forward if _plain(model.module) else model.module
        self._cache = DynamicCache(config=model.module.config)
        self._cache.layers = [
            GrowingLayer() if type(layer) is DynamicLayer else layer for layer in self._cache.layers
        ]
        if any(hasattr(layer, "activate_past_recording") for layer in self._cache.layers):
            self._cache.activate_past_recording()
        self.length = 0

    def append(self, ids: Sequence[int], keep: int = 1) -> Tensor:
        """Run the model over ``ids`` behind what is cached.

        Returns the logits of the last ``keep`` rows, [keep, vocabulary], in the model's dtype:
        row -1 is the law of the token after the last id. Raises ContextFull.
        """
        if self.length + len(ids) > self.model.context:
            raise ContextFull(
                f"{self.length + len(ids)} tokens are more than the {self.model.context} that"
                f" {self.model.name} can attend to"
            )
        input_ids = torch.tensor([ids], device=self._device)
        output = self._forward(
            input_ids=input_ids, cache=self._cache, use_cache=True, logits_to_keep=keep
        )
        self.length += len(ids)
        return output.logits[0, -keep:, : self.model.vocabulary]

    def roll_back(self, length: int) -> None:
        """Forget everything behind the first ``length`` tokens. Raises NotRollable."""
        surplus = self.length - length
        if surplus < 0:
            raise ValueError(f"cannot roll back to {length}: only {self.length} are cached")
        if surplus:
            if not self._cache.is_croppable:
                raise NotRollable(
                    f"{self.model.name} keeps a state that cannot be rolled back (sliding window"
                    " or recurrent layers); choose another model"
                )
            self._cache.crop(-surplus)
            self.length = length
            held = self._cache.get_seq_length()
            if held != length:
                raise NotRollable(
                    f"{self.model.name}: the cache holds {held} tokens after a roll-back to"
                    f" {length}"
                )


def _plain(module: Any) -> bool:
    """Whether ``forward`` may be called without the module's hooks (accelerate places models
    over several devices with hooks; without any, skipping them saves time on every call)."""
    return not (module._forward_hooks or module._forward_pre_hooks or hasattr(module, "_hf_hook"))
