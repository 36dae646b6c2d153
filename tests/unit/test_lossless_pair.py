"""The sampled and the greedy proof on a tiny pair, and that both can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from kit import llama, noisy, pair, wrap

from specviz.lossless import variants
from specviz.lossless.greedy import GreedyProof, rounding
from specviz.lossless.sampled import Arms, Plan
from specviz.records import Machine, Settings

PLAN = Plan("abc", Settings(gamma=2, temperature=0.7, chat=False), n=80, tokens=1)


def bytes_pair(**changes):
    """A tiny pair whose models know every byte, so that prompts can be text."""
    target = wrap(llama(0, vocabulary=256), "T")
    module = llama(0, vocabulary=256)
    torch.manual_seed(7)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn_like(weight) * 0.05 * weight.std())
    return pair(wrap(module, "N"), **{"target": target, **changes})


@pytest.fixture(scope="module")
def models():
    return bytes_pair()


@pytest.fixture(scope="module")
def arms(models):
    return Arms(models, PLAN)


def test_no_difference_is_found_where_there_is_none(arms):
    *running, last = arms.compare("draft model")
    assert [result.n for result in running] == [10, 20, 30, 40, 50, 60, 70]
    assert last.n == 80
    assert last.holds
    assert 0 <= last.p_value <= 1
    assert last.distance.low <= last.distance.measured <= last.distance.high
    assert 0 < last.smallest <= 1
    assert last.drafted > 0
    assert last.rejected > 0
    assert sum(own for _, own, _ in last.texts) <= 80


def test_a_wrong_variant_is_found(arms):
    *_, last = arms.compare("draft model", variants.find("argmax draft"))
    assert not last.holds
    assert last.p_value < 0.001


def test_the_plain_arm_is_drawn_once_and_the_two_arms_are_independent(models):
    arms = Arms(models, replace(PLAN, n=20))
    first = list(arms.compare("draft model"))[-1]
    again = list(arms.compare("draft model"))[-1]
    assert first == again
    assert len(arms._plain) == 20


@pytest.mark.parametrize(
    "changes, message",
    [({"settings": Settings()}, "needs a temperature above 0"), ({"n": 3}, "at least 10"),
     ({"tokens": 0}, "at least 1 token")],
)  # fmt: skip
def test_a_plan_that_proves_nothing_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(PLAN, **changes)


def test_greedy_texts_are_equal_in_float32(models):
    proof = GreedyProof(models, Settings(max_new_tokens=24, gamma=3, chat=False))
    results = list(proof.compare("abc", ["draft model", "prompt lookup"]))
    assert [result.finding for result in results] == ["equal", "equal"]
    assert all(result.holds and result.tokens == 24 for result in results)
    assert results[0].texts[0] == results[0].texts[1]


class Nudged(torch.nn.Module):
    """A target whose calls on several tokens put the second choice first wherever it is close: what
    another order of summing does at near ties. ``close`` and ``by`` are shares of the logit."""

    def __init__(self, module, close, by, dtype):
        super().__init__()
        self.module, self.config = module, module.config
        self.close, self.by, self.dtype = close, by, dtype

    def get_input_embeddings(self):
        return self.module.get_input_embeddings()

    def forward(self, input_ids, **options):
        output = self.module(input_ids=input_ids, **options)
        if input_ids.shape[1] in (2, 3, 4):
            best = output.logits.topk(2, dim=-1)
            size = best.values[..., :1].abs()
            gap = best.values[..., :1] - best.values[..., 1:]
            change = torch.where(gap < self.close * size, gap + self.by * size, 0.0)
            output.logits = output.logits.scatter_add(-1, best.indices[..., 1:], change)
        output.logits = output.logits.to(self.dtype)
        return output


def nudged_pair(close, by, dtype):
    target = replace(bytes_pair().target, lean=None)
    wrong = replace(target, module=Nudged(target.module, close, by, dtype))
    name = str(dtype).removeprefix("torch.")
    return bytes_pair(target=wrong, machine=Machine("cpu", name, 1))


def test_a_wide_gap_is_called_a_bug_with_both_logits():
    models = nudged_pair(9.0, 0.5, torch.float32)
    proof = GreedyProof(models, Settings(max_new_tokens=24, gamma=3, chat=False))
    (result,) = proof.compare("abc", ["draft model"])
    assert result.finding == "bug"
    assert not result.holds
    parting = result.parting
    own, other = parting.logits
    plain_own, plain_other = parting.baseline_logits
    assert own > other
    assert plain_other > plain_own
    assert parting.gap == max(own - other, plain_other - plain_own)
    assert parting.gap > parting.rounding
    assert result.texts[0][: parting.index] == result.texts[1][: parting.index]
    assert parting.text != parting.baseline_text


def test_a_gap_within_rounding_is_a_near_tie_and_holds_in_low_precision_only():
    step = torch.finfo(torch.bfloat16).eps
    models = nudged_pair(step, step, torch.bfloat16)
    proof = GreedyProof(models, Settings(max_new_tokens=200, gamma=3, chat=False))
    prompts = ("abc", "hello", "xyz", "0123")
    results = [next(proof.compare(prompt, ["draft model"])) for prompt in prompts]
    parted = [result for result in results if result.parting]
    assert parted, "no near tie came up in these texts"
    for result in parted:
        assert result.finding == "near tie"
        assert result.holds
        assert 0 <= result.parting.gap <= result.parting.rounding
        assert not replace(result, dtype="float32").holds


def test_rounding_follows_the_dtype_and_the_size_of_the_logit():
    assert rounding(torch.bfloat16, 20.0) == 4 * 0.125
    assert rounding(torch.bfloat16, -9.0) == 4 * 0.0625
    assert rounding(torch.float32, 20.0) < 1e-5
    assert rounding(torch.bfloat16, 0.0) == 0.0


def test_the_greedy_proof_refuses_a_temperature(models):
    with pytest.raises(ValueError, match="needs temperature 0"):
        GreedyProof(models, Settings(temperature=0.5))


def test_noisy_is_not_the_target_or_nothing_would_be_rejected():
    assert noisy().module is not pair(None).target.module
