"""What is gained on this GPU, measured on the embedded pair. ``-s`` shows the figures."""

from __future__ import annotations

import math

import pytest
import torch

from specviz.llama import LeanState
from specviz.pairs import PairError, Shelf, catalogue
from specviz.race import Race
from specviz.records import Settings
from specviz.timing import DeviceClock
from specviz.weights import WeightsError

STORY = "Write a short story about a lighthouse keeper."


def load(monkeypatch, graphs: str):
    monkeypatch.setenv("SPECVIZ_CUDA_GRAPHS", graphs)
    spec = catalogue()[0]
    try:
        return Shelf().load(spec.target, spec.draft, "auto", name=spec.name)
    except (PairError, WeightsError) as error:
        pytest.skip(f"the embedded pair cannot be had here: {error}")


def figures(pair, drafter: str, tokens: int = 128):
    """A race's closing figures, the second of two: the first warms up."""
    for _ in range(2):
        race = Race(pair, drafter, STORY, Settings(max_new_tokens=tokens, gamma=3))
        list(race.start())
        while not race.finished:
            race.advance()
    return race.finish()["figures"]


@pytest.mark.parametrize("drafter", ["draft model", "feature draft", "combined"])
def test_captured_steps_are_faster_than_eager_ones_in_both_lanes(monkeypatch, drafter):
    found = {state: figures(load(monkeypatch, state), drafter) for state in ("off", "on")}
    for state, one in found.items():
        print(
            f"\n{drafter}, CUDA graphs {state}: {one['tokens_per_s']:.1f} tokens/s, the target"
            f" alone {one['baseline_tokens_per_s']:.1f}, speedup {one['speedup']:.2f}"
        )
        assert math.isfinite(one["speedup"])
    assert found["on"]["tokens_per_s"] > found["off"]["tokens_per_s"]
    assert found["on"]["baseline_tokens_per_s"] > found["off"]["baseline_tokens_per_s"]


def test_a_step_behind_a_new_number_of_tokens_costs_what_it_does_the_next_time(monkeypatch):
    target = load(monkeypatch, "off").target
    clock = DeviceClock(target.device)

    @torch.inference_mode()
    def seconds() -> float:
        state = LeanState(target.lean)
        state.forward([1] * 300, 1)
        begin = clock.now()
        for count in (1, 4) * 20:
            state.forward([1] * count, count)
        return clock.now() - begin

    first, again = seconds(), seconds()
    print(f"\n40 eager steps: {first:.3f} s, the same once more: {again:.3f} s")
    assert first < 2 * again


def test_the_record_says_that_steps_were_replayed(monkeypatch):
    assert load(monkeypatch, "on").machine.versions["CUDA graphs"] == "on"
    assert load(monkeypatch, "off").machine.versions["CUDA graphs"].startswith("off: switched off")
