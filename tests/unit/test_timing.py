"""The clock is read only once every device that computes has finished."""

from __future__ import annotations

import time
from functools import partial
from types import SimpleNamespace

import torch
from kit import PROMPT, TEXTS, noisy, pair, target

from specviz import drafters
from specviz.decode import speculative
from specviz.records import Settings
from specviz.sampling import SeededChance
from specviz.timing import DeviceClock

FIRST, SECOND, CPU = torch.device("cuda", 0), torch.device("cuda", 1), torch.device("cpu")


class FakeCuda:
    """Devices with work still queued; waiting for one takes what its work takes."""

    def __init__(self, monkeypatch, **queued):
        self.now, self.queued, self.waited = 100.0, queued, []
        monkeypatch.setattr(torch.cuda, "current_stream", self.stream)
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def stream(self, device):
        return SimpleNamespace(synchronize=partial(self.synchronize, device))

    def synchronize(self, device):
        self.waited.append(device)
        self.now += self.queued.pop(f"cuda{device.index}", 0.0)


def test_queued_work_counts_although_the_call_that_queued_it_returned(monkeypatch):
    FakeCuda(monkeypatch, cuda0=2.5)
    assert DeviceClock(FIRST).now() == 102.5


def test_all_devices_of_a_model_are_waited_for_and_each_once(monkeypatch):
    cuda = FakeCuda(monkeypatch, cuda0=1.0, cuda1=3.0)
    clock = DeviceClock(FIRST, SECOND, CPU, FIRST)
    assert clock.now() == 104.0
    assert cuda.waited == [FIRST, SECOND]


def test_apples_gpu_is_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waited.append("mps"))
    DeviceClock(torch.device("mps")).now()
    assert waited == ["mps"]


def test_the_cpu_alone_waits_for_nothing(monkeypatch):
    cuda = FakeCuda(monkeypatch, cuda0=9.0)
    assert DeviceClock(CPU).now() == 100.0
    assert cuda.waited == []


def test_a_run_waits_for_the_target_and_for_a_draft_elsewhere(monkeypatch):
    cuda = FakeCuda(monkeypatch)
    settings, chance = Settings(max_new_tokens=4, gamma=2), SeededChance(0)
    drafter = drafters.create("draft model", pair(noisy()), settings, len(PROMPT), chance)
    assert drafter.devices == (CPU,)
    drafter.devices = (SECOND,)
    run = speculative(target(), drafter, PROMPT, settings, texts=TEXTS, chance=chance)
    next(run)
    assert set(cuda.waited) == {SECOND}
    assert len(cuda.waited) >= 5
