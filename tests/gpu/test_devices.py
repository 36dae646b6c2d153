"""Models spread over a GPU and the CPU, and on a second GPU where there is one."""

from __future__ import annotations

import checkpoints
import pytest
import torch
from cudakit import captured, model
from kit import new_ids, plain, speculate

from specviz.pairs import Shelf, choose_dtype, models
from specviz.pairs.placement import Placement
from specviz.race import Race
from specviz.records import Settings
from specviz.timing import DeviceClock

SECOND = torch.device("cuda", 1)
needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


def raced(target: str, draft: str):
    """A finished greedy race of a pair in float32, and the pair."""
    pair = Shelf().load(target, draft, "float32")
    race = Race(pair, "draft model", "the sea", Settings(max_new_tokens=16, gamma=3))
    list(race.start())
    while not race.finished:
        race.advance()
    return pair, race


def test_the_dtype_chosen_is_one_that_the_gpu_computes(gpu):
    native = torch.cuda.get_device_capability(gpu) >= (8, 0)
    assert choose_dtype(gpu) == (torch.bfloat16 if native else torch.float32)


def test_a_target_partly_in_the_cpus_memory_writes_what_the_whole_one_does(
    gpu, tmp_path, monkeypatch
):
    target = str(checkpoints.save(tmp_path / "target"))
    draft = str(checkpoints.save(tmp_path / "draft", seed=1, layers=1))
    whole, expected = raced(target, draft)
    assert whole.target.graphs is not None
    place, where = (
        models.place,
        dict.fromkeys(
            ["model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb", "lm_head"],
            gpu,
        ),
    )

    def spread(name, *rest):
        if name == target:
            return Placement(0, gpu, {**where, "model.layers.1": "cpu"})
        return place(name, *rest)

    monkeypatch.setattr(models, "place", spread)
    pair, race = raced(target, draft)
    assert set(pair.target.devices) == {gpu, torch.device("cpu")}
    assert " and CPU" in pair.machine.device
    assert pair.target.lean is None
    assert race.finish()["same_as_baseline"] is True
    found, wanted = (one.trace().run("baseline").tokens for one in (race, expected))
    assert [token.id for token in found] == [token.id for token in wanted]


@needs_two
@pytest.mark.parametrize("make", [model, captured], ids=["eager", "captured"])
def test_a_model_on_the_second_gpu_writes_what_it_does_on_the_first(make):
    settings = Settings(max_new_tokens=60, gamma=4)
    expected = new_ids(plain(settings, target=model()))
    captured()  # the first GPU's capture must not decide where the second's happens
    assert new_ids(plain(settings, target=make(device=SECOND))) == expected
    assert torch.cuda.current_device() == 0


@needs_two
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_on_the_second_gpu_drafts_what_it_does_beside_its_target(temperature):
    settings = Settings(max_new_tokens=60, gamma=3, temperature=temperature, seed=4)
    apart = speculate(settings, captured(noise=0.05, device=SECOND), target=captured())
    together = speculate(settings, captured(noise=0.05), target=captured())
    assert new_ids(apart) == new_ids(together)


@needs_two
def test_the_clock_waits_for_both_gpus(gpu):
    works = [torch.randn(4096, 4096, device=device) for device in (gpu, SECOND)]
    for one in works:
        (one @ one).sum().item()
    clock = DeviceClock(gpu, SECOND)
    for one in works:
        for _ in range(50):
            one @ one
    clock.now()
    assert all(torch.cuda.current_stream(one.device).query() for one in works)
