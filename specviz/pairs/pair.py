"""A target and what drafts for it, checked against each other and warmed up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from specviz.cache import CachedModel, LanguageModel
from specviz.datastore import Datastore
from specviz.feature import FeatureModel
from specviz.pairs.machine import PairError
from specviz.pairs.models import (
    Loaded,
    check_pair,
    read_feature_draft,
    real_vocabulary,
    special_ids,
)
from specviz.pairs.placement import as_placed
from specviz.pairs.replay import pair_note
from specviz.records import Machine, PairInfo

WARM_UP_GAMMA = 8


@dataclass(frozen=True, eq=False)
class Pair:
    """A target and what drafts for it, loaded, checked and warmed up.

    ``draft_ids`` holds the target's id for each id of a draft over a reduced vocabulary, None
    where both share one; ``draft_unknown`` is the draft's id for all others. ``context`` is the
    target's: where the draft's own ends earlier, it only stops drafting.
    """

    info: PairInfo
    machine: Machine
    tokenizer: Any
    target: LanguageModel
    draft: LanguageModel | None
    draft_ids: tuple[int, ...] | None
    draft_unknown: int
    eos_ids: tuple[int, ...]
    special_ids: frozenset[int]
    context: int
    datastore: Datastore | None = None
    feature: FeatureModel | None = None

    @torch.inference_mode()
    def warm_up(self, gamma: int = WARM_UP_GAMMA) -> None:
        """Run both models on 1 to gamma + 1 tokens, so that no clock meets a first time.

        Raises NotRollable for a model whose cache cannot forget.
        """
        for model in (self.target, self.draft):
            if model is None:
                continue
            cached = CachedModel(model)
            cached.prepare(1, gamma + 2, gamma + 1)
            for length in (1, 1, gamma // 2 + 1, gamma + 1):
                length = min(length, model.context)
                cached.append([0] * length, keep=length)
                cached.roll_back(length - 1)
                cached.roll_back(0)
        if self.feature is not None:
            state = self.feature.state()
            state.prepare(0, gamma + 1, gamma + 1)
            for length in (1, 1, gamma + 1):
                states = self.feature.embed_norm.new_zeros(length, len(self.feature.embed_norm))
                state.step(states, [0] * length)


def pair_of(loaded: list[Loaded], name: str, machine: Machine) -> Pair:
    """Check one or two models against each other. Raises PairError."""
    target = loaded[0]
    draft = loaded[1] if len(loaded) > 1 else None
    if target.tokenizer is None:
        raise PairError(
            f"{target.name} is a draft over a part of a vocabulary; choose another target"
        )
    vocabulary = real_vocabulary(target)
    if draft is not None:
        check_pair(target, draft, vocabulary)
    model = draft if draft and draft.module is not None else None
    features = draft.features if draft and draft.features else target.features
    reduced = model is not None and model.ids is not None
    large = _language_model(target, vocabulary)
    small = _language_model(model, model.head if reduced else vocabulary) if model else None
    feature = read_feature_draft(features, target) if features else None
    graphs = {
        "draft": model.graphs_note if model else "",
        "feature draft": feature.graphs_note if feature else "",
    }
    return Pair(
        info=PairInfo(
            name=name or (f"{target.name} + {draft.name}" if draft else target.name),
            target=target.name,
            draft=draft.name if draft else "",
            target_parameters=target.parameters,
            draft_parameters=draft.parameters if draft else 0,
        ),
        machine=as_placed(
            machine,
            large.devices,
            small.devices if small else (),
            pair_note(target.graphs_note, graphs),
        ),
        tokenizer=target.tokenizer,
        target=large,
        draft=small,
        draft_ids=model.ids if model else None,
        draft_unknown=model.unknown if model else 0,
        eos_ids=tuple(token for token in target.eos_ids if token < vocabulary),
        special_ids=special_ids(target.tokenizer),
        context=target.context,
        datastore=target.datastore,
        feature=feature,
    )


def _language_model(loaded: Loaded, vocabulary: int) -> LanguageModel:
    return LanguageModel(
        name=loaded.name,
        module=loaded.module,
        vocabulary=vocabulary,
        context=loaded.context,
        parameters=loaded.parameters,
        lean=loaded.lean,
        graphs=loaded.graphs,
    )
