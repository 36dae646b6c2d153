"""What a run records of its laws is what the models say without any cache."""

from __future__ import annotations

import pytest
import torch
from kit import PROMPT, noisy, speculate, target

from specviz.records import Settings


@pytest.mark.parametrize(
    "settings",
    [
        Settings(max_new_tokens=24, gamma=3, temperature=0.8, top_k=20, top_p=0.9, seed=3),
        Settings(max_new_tokens=24, gamma=3, temperature=1.0, seed=4),
    ],
)
def test_recorded_probabilities_equal_one_uncached_forward(settings):
    run = speculate(settings, noisy())
    _check_against_uncached(run, settings, noisy())


def _check_against_uncached(run, settings, draft):
    text = list(PROMPT)
    for round_ in run.rounds:
        prefix = list(text)
        for token in round_.drafted:
            if token.fate != "discarded":
                assert token.p == pytest.approx(
                    _law(target(), prefix, settings)[token.id], abs=1e-4
                )
                assert token.q == pytest.approx(_law(draft, prefix, settings)[token.id], abs=1e-4)
                assert (token.u < token.p / token.q) == (token.fate == "accepted")
            prefix.append(token.id)
        text += [token.id for token in round_.committed]
    assert text == run.tokens


def _law(model, prefix, settings):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    with torch.no_grad():
        scores = model.module(torch.tensor([prefix])).logits[:, -1]
    scores = TemperatureLogitsWarper(float(settings.temperature))(None, scores)
    if settings.top_k:
        scores = TopKLogitsWarper(settings.top_k)(None, scores)
    if settings.top_p < 1:
        scores = TopPLogitsWarper(settings.top_p)(None, scores)
    return scores.softmax(-1)[0].tolist()


def listed(candidates):
    return {candidate.id: candidate.probability for candidate in candidates}


@torch.no_grad()
def test_recorded_laws_are_those_of_forward_passes_without_any_cache():
    run = speculate(Settings(max_new_tokens=30, gamma=4, temperature=1.0), noisy())
    text, rejections = list(PROMPT), 0

    def law(model, prefix):
        return model.module(torch.tensor([prefix])).logits[0, -1].softmax(-1)

    def assert_top(candidates, expected):
        found = listed(candidates)
        assert len(found) >= 10
        for token, probability in found.items():
            assert probability == pytest.approx(expected[token].item(), rel=1e-3, abs=1e-6)
        assert max(found.values()) == pytest.approx(expected.max().item(), rel=1e-3)

    for round_ in run.rounds:
        prefix = list(text)
        for token in round_.drafted:
            if token.fate == "discarded":
                break
            p, q = law(target(), prefix), law(noisy(), prefix)
            assert_top(token.p_top, p)
            assert_top(token.q_top, q)
            if token.residual_top:
                rejections += 1
                rest = (p - q).clamp(min=0)
                for id_, probability in listed(token.residual_top).items():
                    expected = (rest[id_] / rest.sum()).item()
                    assert probability == pytest.approx(expected, rel=2e-2, abs=1e-5)
            prefix.append(token.id)
        if round_.added.fate == "bonus":
            assert_top(round_.added.p_top, law(target(), prefix))
        text += [token.id for token in round_.committed]
    assert rejections
