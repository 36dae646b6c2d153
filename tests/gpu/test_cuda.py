"""On a GPU: the lean pass, captured steps, the clock, and a draft on another device."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch
from cudakit import captured, ids, model
from kit import new_ids, noisy, plain, speculate, target

from specviz.cache import CachedModel
from specviz.graphs import REACHES
from specviz.llama import LeanState
from specviz.records import Settings
from specviz.timing import DeviceClock


@pytest.mark.parametrize("parts", [[30], [1] * 12, [5, 1, 4, 1, 9], [100, 40]])
def test_lean_logits_equal_transformers(parts, gpu):
    one = model()
    text, state, found, start = ids(sum(parts)), LeanState(one.lean), [], 0
    with torch.inference_mode():
        for part in parts:
            found.append(state.forward(text[start : start + part], part))
            start += part
        expected = one.module(input_ids=torch.tensor([text], device=gpu)).logits[0]
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-3, atol=1e-3)


def test_lean_is_taken_in_bfloat16():
    assert model(dtype=torch.bfloat16).lean is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_captured_steps_pass_their_check(dtype):
    assert captured(dtype=dtype).graphs is not None


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_captured_runs_equal_eager_ones(temperature):
    settings = Settings(max_new_tokens=100, gamma=4, temperature=temperature, seed=3)
    eager = speculate(settings, model(noise=0.05), target=model())
    graphed = speculate(settings, captured(noise=0.05), target=captured())
    assert new_ids(graphed) == new_ids(eager)


def test_a_captured_run_goes_on_past_a_reach():
    settings = Settings(max_new_tokens=30, gamma=4)
    prompt = ids(REACHES[0] - 40)
    one, other = (replace(m, context=512) for m in (captured(), model()))
    eager = new_ids(plain(settings, prompt=prompt, target=other), prompt)
    assert new_ids(plain(settings, prompt=prompt, target=one), prompt) == eager


def test_two_captured_lanes_take_turns_without_disturbing_each_other():
    first, second = CachedModel(captured()), CachedModel(captured())
    alone = CachedModel(model())
    with torch.inference_mode():
        for cached in (first, second):
            cached.prepare(6, 40, 3)
        first.append(ids(6))
        second.append(ids(20))
        alone.append(ids(6))
        for _ in range(3):
            second.append([9, 8, 7])
            second.roll_back(second.length - 2)
            found, expected = first.append([4, 5], keep=2), alone.append([4, 5], keep=2)
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("gamma", [1, 4, 8])
@pytest.mark.parametrize("make", [model, captured], ids=["eager", "captured"])
def test_speculative_equals_greedy_in_float32(make, gamma):
    settings = Settings(max_new_tokens=60, gamma=gamma)
    expected = new_ids(plain(settings, target=make()))
    assert expected == new_ids(plain(settings, target=target())), "the CPU says the same"
    for drafter in ("draft model", "prompt lookup", "combined"):
        run = speculate(settings, make(noise=0.05), drafter, target=make())
        assert new_ids(run) == expected, drafter


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_on_the_cpu_drafts_for_a_target_on_the_gpu(temperature):
    settings = Settings(max_new_tokens=60, gamma=3, temperature=temperature, seed=4)
    run = speculate(settings, noisy(), target=captured())
    together = speculate(settings, captured(noise=0.05), target=captured())
    assert len(new_ids(run)) == 60
    assert sum(round_.accepted for round_ in run.rounds) > 0
    if temperature == 0:
        assert new_ids(run) == new_ids(together)


def test_the_clock_counts_what_the_gpu_has_not_done_yet(gpu):
    one = torch.randn(4096, 4096, device=gpu)
    (one @ one).sum().item()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    clock = DeviceClock(gpu)
    before = clock.now()
    begin.record()
    for _ in range(50):
        one @ one
    end.record()
    returned = time.perf_counter()
    after = clock.now()
    assert after - before >= 0.95 * begin.elapsed_time(end) / 1000
    assert after > returned


def test_a_rounds_seconds_are_not_those_of_asking_alone():
    run = speculate(Settings(max_new_tokens=40, gamma=3), captured(noise=0.05), target=captured())
    assert all(round_.verify_s > 0 and round_.draft_s >= 0 for round_ in run.rounds)
    assert run.seconds == pytest.approx(sum(round_.seconds for round_ in run.rounds))
