"""A language model and its KV cache behind one small surface: append, length, roll back.

Every call that depends on transformers' cache classes stands in this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

from specviz.graphs import GraphedState, Graphs
from specviz.llama import LeanLlama, LeanState


class ContextFull(ValueError):
    """More tokens were appended than the model's context holds."""


class NotRollable(ValueError):
    """The model's cache cannot forget tokens, so guesses cannot be taken back."""


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A loaded causal language model. Shared by every run and never written to.

    ``vocabulary`` is the number of ids that mean something: heads are often padded beyond it.
    ``context`` is the largest number of tokens the model can attend to. ``lean`` is the same
    model laid out for the lean pass, where there is one, and ``graphs`` its decode steps to be
    replayed as CUDA graphs, where they passed their check.
    """

    name: str
    module: Any
    vocabulary: int
    context: int
    parameters: int = 0
    lean: LeanLlama | None = None
    graphs: Graphs | None = None

    @property
    def device(self) -> torch.device:
        """Where the ids must be put, and where logits come out."""
        embeddings = self.module.get_input_embeddings()
        if embeddings.weight.device.type == "meta":  # accelerate brings it from CPU or disk
            return torch.device(embeddings._hf_hook.execution_device)
        device: torch.device = embeddings.weight.device
        return device

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """Every device that holds or computes a part of this model: a clock has to wait for all of
        them. What accelerate brings to a GPU only when it is needed is held by the CPU."""
        found = {weight.device for weight in self.module.parameters()}
        waiting = torch.device("cpu")
        return tuple({self.device, *(waiting if one.type == "meta" else one for one in found)})


class _State(Protocol):
    """A run's KV cache and the forward pass that reads and fills it."""

    length: int
    features: Tensor | None

    def forward(self, ids: Sequence[int], keep: int) -> Tensor:
        """Append ``ids``; logits of the last ``keep``, [keep, V]."""

    def crop(self, length: int) -> None:
        """Forget what stands behind the first ``length`` tokens."""

    def prepare(self, start: int, end: int, longest: int) -> None:
        """See ``CachedModel.prepare``."""


class _TransformersState:
    """transformers' own forward and cache, for every architecture it knows."""

    def __init__(self, model: LanguageModel, keep_features: bool) -> None:
        self._model = model
        self._device = model.device
        self._extra = {"output_hidden_states": True} if keep_features else {}
        self.features: Tensor | None = None
        self._cache = DynamicCache(config=model.module.config)
        if any(hasattr(layer, "activate_past_recording") for layer in self._cache.layers):
            self._cache.activate_past_recording()
        self.length = 0

    def forward(self, ids: Sequence[int], keep: int) -> Tensor:
        output = self._model.module(
            input_ids=torch.tensor([ids], device=self._device),
            cache=self._cache,
            use_cache=True,
            logits_to_keep=keep,
            **self._extra,
        )
        self.length += len(ids)
        if self._extra:
            self.features = output.hidden_states[-1][0]
        return output.logits[0, -keep:]

    def crop(self, length: int) -> None:
        if not self._cache.is_croppable:
            raise NotRollable(
                f"{self._model.name} keeps a state that cannot be rolled back (sliding window"
                " or recurrent layers); choose another model"
            )
        self._cache.crop(length - self.length)
        self.length = length
        held = self._cache.get_seq_length()
        if held != length:
            raise NotRollable(
                f"{self._model.name}: the cache holds {held} tokens after a roll-back to {length}"
            )

    def prepare(self, start: int, end: int, longest: int) -> None:
        """Nothing is captured here."""


class CachedModel:
    """One run's own view of a shared model: its weights, and a KV cache of this run alone.

    ``keep_features`` keeps the last hidden states of each append for ``features``.
    """

    def __init__(self, model: LanguageModel, keep_features: bool = False) -> None:
        self.model = model
        self._state: _State = _state_of(model, keep_features)

    def prepare(self, start: int, end: int, longest: int) -> None:
        """Make ready, before any clock starts, for a text that grows from ``start`` to ``end``
        tokens by appends of up to ``longest``. Captures CUDA graphs where the model uses them."""
        self._state.prepare(start, min(end, self.model.context), longest)

    @property
    def length(self) -> int:
        """How many tokens are cached."""
        return self._state.length

    @property
    def features(self) -> Tensor:
        """The normalised hidden states that the head read at the last append, [n, W]."""
        if self._state.features is None:
            raise ValueError("this cache was made without keep_features, or nothing was appended")
        return self._state.features

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
        return self._state.forward(ids, keep)[:, : self.model.vocabulary]

    def roll_back(self, length: int) -> None:
        """Forget everything behind the first ``length`` tokens. Raises NotRollable."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot roll back to {length}: {self.length} are cached")
        if length < self.length:
            self._state.crop(length)


def _state_of(model: LanguageModel, keep_features: bool) -> _State:
    """The quickest way there is to run ``model``."""
    if model.graphs is not None:
        return GraphedState(model.graphs, keep_features)
    if model.lean is not None:
        return LeanState(model.lean, keep_features)
    return _TransformersState(model, keep_features)
