"""A draft over other ids than the target's."""

from __future__ import annotations

import pytest
import torch
from every_drafter import greedy_reference
from kit import VOCABULARY, llama, new_ids, noisy, speculate, target, wrap

from specviz.cache import LanguageModel
from specviz.records import Settings


def reduced(ids):
    """The noisy draft over the ids ``ids`` only, id i of it standing for ids[i]."""
    module = llama(0, vocabulary=len(ids))
    full = noisy().module.state_dict()
    own = {
        name: weight[torch.tensor(ids)] if weight.shape[0] == VOCABULARY else weight
        for name, weight in full.items()
    }
    module.load_state_dict(own)
    return wrap(module, "reduced")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_over_a_reduced_vocabulary_is_mapped_to_the_targets_ids(temperature):
    ids = (0, *range(2, VOCABULARY, 2), 5, 9, 17)
    settings = Settings(max_new_tokens=60, gamma=3, temperature=temperature, seed=2)
    run = speculate(settings, reduced(ids), draft_ids=ids, draft_unknown=0)
    drafted = [t for r in run.rounds for t in r.drafted]
    assert all(token.id in ids for token in drafted)
    assert any(token.fate == "accepted" for token in drafted)
    if temperature == 0:
        assert new_ids(run) == greedy_reference(settings)


def test_a_permuted_vocabulary_drafts_exactly_as_the_plain_one():
    order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0)).tolist()
    settings = Settings(max_new_tokens=40, gamma=4)
    permuted = speculate(settings, reduced(order), draft_ids=tuple(order), draft_unknown=0)
    direct = speculate(settings, noisy())
    assert fates(permuted) == fates(direct)


def fates(run):
    return [[(token.id, token.fate) for token in round_.drafted] for round_ in run.rounds]


def test_padding_ids_of_a_larger_head_are_never_emitted():
    cut = LanguageModel("cut", target().module, VOCABULARY - 10, 256)
    run = speculate(
        Settings(max_new_tokens=80, gamma=3, temperature=2.0), noisy(), target=cut
    )  # fmt: skip
    assert max(new_ids(run)) < VOCABULARY - 10
