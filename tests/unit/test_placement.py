"""Where models go: one device, another, several, and what is said before they are loaded.

No GPU is needed: torch's facts about them are put in its place, and accelerate spreads tiny models
over this machine's CPU and disk for real.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import checkpoints
import pytest
import torch
from kit import noisy, pair, speculate, stranger, target

from specviz import drafters, pairs
from specviz.cache import CachedModel
from specviz.drafters import draft_model
from specviz.pairs import PairError, Shelf, choose_dtype, machine, models, placement
from specviz.pairs.placement import Placement, as_placed, draft_device, draft_dtype, place
from specviz.race import Race
from specviz.records import Machine, Settings
from specviz.sampling import Guess, SeededChance, laws_moved
from specviz.weights import silent

CPU = torch.device("cpu")
GPUS = [torch.device("cuda", i) for i in range(2)]
GB = 10**9


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs with 10 and 20 GB free, beside 60 GB of the machine's own memory."""
    free = {0: 10 * GB, 1: 20 * GB}

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(free))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda d: (free[d.index], 24 * GB))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda d: f"GPU {torch.device(d).index}")
    # An Ampere card, and a Turing one, which computes no bfloat16.
    majors = {0: 8, 1: 7}
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda d: SimpleNamespace(major=majors[d.index])
    )
    monkeypatch.setattr(machine, "_container_memory", lambda: 60 * GB)
    monkeypatch.setattr(
        machine.psutil, "virtual_memory", lambda: type("M", (), {"available": 60 * GB})()
    )
    return free


def billions(count: float, device: torch.device = GPUS[0]) -> Placement:
    return place("big", int(count * 1e9), torch.bfloat16, device)


def test_a_model_goes_to_the_first_gpu_while_it_fits(gpus):
    assert billions(4).device_map == {"": GPUS[0]}


def test_a_model_that_the_first_gpu_cannot_hold_goes_to_another_whole(gpus):
    assert billions(8).device_map == {"": GPUS[1]}


def test_a_larger_one_is_spread_over_all_gpus_and_the_cpu_and_says_so(gpus):
    spread = billions(30)
    assert spread.device_map == "auto"
    assert spread.words == "66.0 GB, spread over 2 GPUs and, where they are full, the CPU"


def test_what_fits_nowhere_is_refused_with_both_numbers(gpus):
    with pytest.raises(PairError, match=r"needs 110\.0 GB of memory and 90\.0 GB are free"):
        billions(50)


def test_on_the_cpu_nothing_is_mapped():
    assert place("small", 1000, torch.float32, CPU) == Placement(4400, CPU)


def test_a_draft_stands_beside_its_target_unless_the_host_says_where(gpus, monkeypatch):
    assert draft_device(GPUS[0]) == GPUS[0]
    for wanted, device in (("cpu", CPU), ("cuda:1", GPUS[1]), ("cuda", GPUS[0])):
        monkeypatch.setenv("SPECVIZ_DRAFT_DEVICE", wanted)
        assert draft_device(GPUS[0]) == device


@pytest.mark.parametrize("wanted", ["cuda:7", "toaster", "mps"])
def test_a_device_that_is_not_there_is_refused_by_name(gpus, monkeypatch, wanted):
    monkeypatch.setenv("SPECVIZ_DRAFT_DEVICE", wanted)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(PairError, match=f"SPECVIZ_DRAFT_DEVICE={wanted}: there is no such device"):
        draft_device(GPUS[0])


def test_the_dtype_is_that_of_the_gpu_asked_about_and_not_of_the_current_one(gpus):
    assert choose_dtype(GPUS[0]) == torch.bfloat16
    assert choose_dtype(GPUS[1]) == torch.float32
    assert draft_dtype(GPUS[1], "auto") == torch.float32


def test_a_draft_on_the_cpu_is_not_in_float16(gpus, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {}, raising=False)
    assert draft_dtype(CPU, "float16") == torch.float32
    assert draft_dtype(GPUS[1], "float16") == torch.float16
    assert draft_dtype(CPU, "bfloat16") == torch.bfloat16


def test_the_shelf_keeps_a_draft_elsewhere_apart(gpus, monkeypatch):
    beside = pairs._key("t", "d", torch.bfloat16, GPUS[0], "auto")
    monkeypatch.setenv("SPECVIZ_DRAFT_DEVICE", "cuda:1")
    apart = pairs._key("t", "d", torch.bfloat16, GPUS[0], "auto")
    assert beside[0] == apart[0]
    assert [part[2] for part in apart] == GPUS


def test_the_record_names_every_device_and_the_graphs(gpus):
    one = Machine("GPU 0 (one of 2)", "bfloat16", 2, {"torch": "2"})
    assert as_placed(one, [GPUS[0]], [GPUS[0]], "on").device == one.device
    assert as_placed(one, [GPUS[0]], [], "on").versions == {"torch": "2", "CUDA graphs": "on"}
    assert as_placed(one, [GPUS[0]], [], "").versions == {"torch": "2"}
    assert as_placed(one, [GPUS[0]], [GPUS[1]], "").device == "GPU 0; draft on GPU 1"
    assert as_placed(one, GPUS, [], "").device == "GPU 1 and GPU 0"


def test_the_record_names_the_gpu_that_a_pair_went_to_for_want_of_room(gpus):
    meant = Machine("GPU 0 (one of 2)", "bfloat16", 2)
    assert as_placed(meant, [GPUS[1]], [GPUS[1]], "").device == "GPU 1 (one of 2)"


def test_the_record_names_the_cpu_that_holds_what_a_gpu_has_no_room_for(gpus, monkeypatch):
    weights = [SimpleNamespace(device=device) for device in (GPUS[0], torch.device("meta"))]
    embeddings = SimpleNamespace(weight=weights[0])
    module = SimpleNamespace(parameters=lambda: weights, get_input_embeddings=lambda: embeddings)
    devices = replace(target(), module=module).devices
    assert set(devices) == {GPUS[0], CPU}
    monkeypatch.setattr(placement, "device_name", lambda d: "GPU 0" if d == GPUS[0] else "CPU: C")
    record = as_placed(Machine("GPU 0", "bfloat16", 2), devices, [], "")
    assert record.device == "GPU 0 and CPU: C"


def test_loading_a_model_leaves_out_cudnns_attention():
    torch.backends.cuda.enable_cudnn_sdp(True)
    models._quickest(target().module, 256)
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_a_model_on_a_gpu_that_has_no_lean_form_says_why_no_steps_are_replayed():
    def noted(*devices):
        weights = [SimpleNamespace(device=device) for device in devices]
        module = SimpleNamespace(parameters=lambda: weights, config=SimpleNamespace(hidden_act=""))
        module.config.model_type = "other"
        return models._quickest(module, 256)["graphs_note"]

    assert noted(CPU) == ""
    assert noted(GPUS[0], CPU) == "off: only Llama models that stand whole on one GPU are replayed"


def test_the_estimate_is_told_before_loading_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "choose_device", lambda: CPU)
    folder = str(checkpoints.save(tmp_path / "target"))
    told = []
    Shelf().load(folder, "", "float32", progress=lambda message, _: told.append(message))
    assert told[0].startswith(f"Loading {folder} (0.0 GB)")


# --- a draft on another device than its target ---------------------------------------------


def test_the_laws_of_a_round_go_to_the_target_in_one_piece(monkeypatch):
    meta, moves = torch.device("meta"), []
    move = torch.Tensor.to

    def count(tensor, *args, **kwargs):
        moves.append(tuple(tensor.shape))
        return move(tensor, *args, **kwargs)

    monkeypatch.setattr(torch.Tensor, "to", count)
    guesses = [Guess(i, "draft model", law=torch.full((4,), 0.25), q=0.25) for i in range(3)]
    moved = laws_moved(guesses, meta)
    assert moves == [(3, 4)]
    assert all(guess.law.device == meta for guess in moved)
    assert [guess.id for guess in moved] == [0, 1, 2]


def test_greedy_guesses_have_nothing_to_move():
    guesses = [Guess(3, "draft model", logits=torch.zeros(4))]
    assert laws_moved(guesses, torch.device("meta")) == guesses
    assert laws_moved([], CPU) == []


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_round_of_a_draft_elsewhere_moves_its_laws_once(temperature, monkeypatch):
    calls = []

    def moved(guesses, device):
        calls.append(len(guesses))
        return laws_moved(guesses, CPU)

    monkeypatch.setattr(draft_model, "laws_moved", moved)
    settings = Settings(max_new_tokens=24, gamma=3, temperature=temperature, seed=2)
    chance = SeededChance(2)
    drafter = drafters.create("draft model", pair(noisy()), settings, 10, chance)
    assert drafter._elsewhere is None
    drafter._elsewhere = torch.device("cuda", 0)
    drafter.prefill(list(range(10)))
    assert len(drafter.draft(list(range(10)), 3)) == 3
    assert calls == [3]


def test_a_reduced_drafts_ids_go_along_with_its_laws():
    ids = torch.tensor([5, 6, 7, 8])
    guesses = [Guess(5, "draft model", law=torch.full((4,), 0.25), q=0.25, ids=ids)] * 2
    moved = laws_moved(guesses, torch.device("meta"))
    assert all(guess.ids.device.type == "meta" for guess in moved)


# --- spread by accelerate ------------------------------------------------------------------


@pytest.fixture
def spread(tmp_path, monkeypatch):
    """A tiny target whose first layer stands in memory and whose second on the disk."""
    folder = checkpoints.save(tmp_path / "target")
    where = {
        "model.embed_tokens": "cpu",
        "model.layers.0": "cpu",
        "model.layers.1": "disk",
        "model.norm": "cpu",
        "model.rotary_emb": "cpu",
        "lm_head": "cpu",
    }
    monkeypatch.setattr(models, "place", lambda *_: Placement(0, CPU, where))
    return models.load_model(str(folder), folder, torch.float32, CPU, silent), folder


def test_a_model_spread_over_memory_and_disk_says_what_the_whole_one_says(spread, monkeypatch):
    loaded, folder = spread
    assert loaded.module.model.layers[1].mlp.up_proj.weight.device.type == "meta"
    assert loaded.lean is None, "the lean pass needs all weights on one device"
    monkeypatch.setattr(models, "place", place)
    whole = models.load_model(str(folder), folder, torch.float32, CPU, silent)
    large, plain = (
        replace(target(), module=one.module, vocabulary=one.head, lean=one.lean)
        for one in (loaded, whole)
    )
    assert large.device == CPU
    assert large.devices == (CPU,)
    with torch.inference_mode():
        found = CachedModel(large).append([5, 6, 7, 8], keep=4)
        expected = CachedModel(plain).append([5, 6, 7, 8], keep=4)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_a_whole_race_runs_on_a_spread_model(spread, monkeypatch):
    _, folder = spread
    monkeypatch.setattr(pairs, "choose_device", lambda: CPU)
    draft = checkpoints.save(folder.parent / "draft", seed=0, layers=1)
    loaded = Shelf().load(str(folder), str(draft), "float32")
    settings = Settings(max_new_tokens=12, gamma=3)
    race = Race(loaded, "draft model", "the sea", settings)
    list(race.start())
    while not race.finished:
        race.advance()
    assert race.finish()["same_as_baseline"] is True


def test_embeddings_that_were_moved_off_still_tell_where_ids_go(tmp_path, monkeypatch):
    folder = checkpoints.save(tmp_path / "target", tie_word_embeddings=False)
    where = {"model.embed_tokens": "disk", "model.layers": "cpu", "model.norm": "cpu"}
    where |= {"model.rotary_emb": "cpu", "lm_head": "cpu"}
    monkeypatch.setattr(models, "place", lambda *_: Placement(0, CPU, where))
    loaded = models.load_model(str(folder), folder, torch.float32, CPU, silent)
    model = replace(target(), module=loaded.module, vocabulary=loaded.head, lean=None)
    assert loaded.module.get_input_embeddings().weight.device.type == "meta"
    assert model.device == CPU
    with torch.inference_mode():
        assert CachedModel(model).append([5, 6]).isfinite().all()


def test_a_draft_that_agrees_with_nothing_still_leaves_the_targets_text():
    settings = Settings(max_new_tokens=16, gamma=3, temperature=1.0, seed=1)
    moved = replace(stranger(), context=200)
    assert speculate(settings, moved).tokens == speculate(settings, stranger()).tokens


def test_free_memory_is_of_the_gpu_asked_about(gpus):
    assert placement.free_memory(GPUS[1]) == 20 * GB
    assert machine.free_memory_everywhere(GPUS[0]) == 90 * GB


def test_the_list_says_what_a_pair_needs_here(gpus):
    spec = next(spec for spec in pairs.CATALOGUE if spec.name == "llama-3.1-8b")
    assert pairs.needs(spec) == "20.4 GB"
    assert pairs.needs(spec, "float32") == "40.8 GB"
