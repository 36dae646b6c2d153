"""On a GPU: the lean pass, captured steps, the clock, and a draft on another device.

What loading puts where is in test_devices.py.
"""

from __future__ import annotations

import gc
import threading
import time

import pytest
import torch
from cudakit import captured, ids, model
from kit import llama, new_ids, noisy, plain, speculate, target, wrap

from specviz.cache import CachedModel
from specviz.graphs import REACHES, CudaCapture
from specviz.llama import LeanState
from specviz.pairs.replay import graphs_for
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
    prompt = ids(REACHES[0] - 20)
    one, other = captured(context=1024), model(context=1024)
    cached, eager = CachedModel(one), CachedModel(other)
    with torch.inference_mode():
        cached.prepare(len(prompt), len(prompt) + 60, 5)
        cached.append(prompt)
        eager.append(prompt)
        for _ in range(10):
            step = cached._state.captured(5)
            assert step is not None
            assert step.reach == REACHES[cached.length + 5 > REACHES[0]]
            found, expected = (state.append(ids(5), keep=5) for state in (cached, eager))
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_a_text_that_outgrows_its_captured_steps_goes_on_eagerly():
    settings, prompt = Settings(max_new_tokens=30, gamma=4), ids(REACHES[-1] - 15)
    one, other = captured(context=8192), model(context=8192)
    eager = new_ids(plain(settings, prompt=prompt, target=other), prompt)
    assert new_ids(plain(settings, prompt=prompt, target=one), prompt) == eager


def test_another_thread_runs_and_reads_its_clock_while_steps_are_captured():
    settings, notes = Settings(max_new_tokens=20, gamma=3), []
    one = captured()
    expected = new_ids(plain(settings, target=one))
    others = [model(seed).lean for seed in (11, 12)]

    def load(form):
        notes.append(graphs_for(form, 256)[1])

    threads = [threading.Thread(target=load, args=(form,)) for form in others]
    for thread in threads:
        thread.start()
    runs = 0
    while runs < 3 or any(thread.is_alive() for thread in threads):
        assert new_ids(plain(settings, target=one)) == expected
        runs += 1
    assert notes == ["on", "on"]


def test_captured_steps_take_their_memory_with_them(gpu):
    def held_after(seed):
        form = wrap(llama(seed).to(gpu)).lean
        graphs, note = graphs_for(form, 256)
        assert graphs is not None, note
        del form, graphs
        gc.collect()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved(gpu)

    held_after(21)
    assert held_after(22) == held_after(23)


def test_a_capture_that_fails_leaves_a_working_thread(gpu):
    ones, own = torch.ones(4, device=gpu), torch.cuda.current_stream()
    capture = CudaCapture(gpu)
    with pytest.raises(RuntimeError):
        capture(lambda: (ones * ones.sum().item(),))
    assert torch.cuda.current_stream() == own
    assert (ones + 1).sum().item() == 8
    assert capture(lambda: (ones * 3,))()[0].tolist() == [3.0] * 4


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
