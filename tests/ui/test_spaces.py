"""Hugging Face Spaces: the front matter, and a GPU that is lent for one call at a time.

ZeroGPU is stood in for by a forked process with pickle both ways; see zerogpu.py.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import checkpoints
import gradio as gr
import pytest
import torch
from zerogpu import VISITOR, ZeroGpu

from specviz.pairs import Shelf
from specviz.prompts import Prompt
from specviz.race import Race, baseline_key, begin
from specviz.records import Settings
from specviz.rows import Setup
from specviz.sweep import Plan, Sweep
from specviz.trace import dump_trace, load_trace
from specviz.ui import gpu
from specviz.ui.engine import OwnShelf
from specviz.ui.gpu import (
    CUT_OFF,
    Errand,
    LendingShelf,
    computed,
    on_zero_gpu,
    seconds_for,
    shelf_for,
)
from specviz.ui.lent import greedy_there, race_there, sampled_there
from specviz.ui.turns import Turns
from specviz.ui.worker import RaceWorker

ROOT = Path(__file__).parents[2]
ZERO = {"SPACES_ZERO_GPU": "true"}
SETTINGS = Settings(max_new_tokens=24, gamma=3, chat=False)
PROMPT = "the lighthouse keeper"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("models")
    target = checkpoints.save(folder / "target", eos_token_id=None)
    draft = checkpoints.save(folder / "draft", layers=1, eos_token_id=None)
    return str(target), str(draft)


@pytest.fixture
def spaces(monkeypatch: pytest.MonkeyPatch) -> ZeroGpu:
    lender = ZeroGpu()
    module = ModuleType("spaces")
    module.GPU = lender.GPU  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "spaces", module)
    return lender


@pytest.fixture
def lent(spaces: ZeroGpu, models: tuple[str, str]) -> Any:
    """A pair whose models compute in another process."""
    return shelf_for(ZERO, 120).load(*models, "float32")


@pytest.fixture(scope="module")
def own(models: tuple[str, str]) -> Any:
    """The same pair, computing here."""
    return Shelf().load(*models, "float32")


def worker(pair: Any, settings: Settings = SETTINGS, **options: Any) -> RaceWorker:
    drafter = options.pop("drafter", "draft model")
    return RaceWorker(lambda _: begin(pair, drafter, PROMPT, settings, **options), Turns())


def rest(one: RaceWorker) -> list[dict[str, Any]]:
    """Wait until the race rests; every event so far."""
    pause = threading.Event()
    while one.state == "going":
        pause.wait(0.02)
    return [json.loads(text) for text in "".join(one.told).splitlines()]


def texts(race: Any) -> list[str]:
    return [run.text for run in race.trace().runs]


def here(pair: Any, settings: Settings = SETTINGS, **options: Any) -> Race:
    race = Race(pair, "draft model", PROMPT, settings, **options)
    list(race.start())
    while not race.finished:
        race.advance()
    return race


# --- a run on a lent GPU -------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_run_on_a_lent_gpu_is_the_run_here(
    lent: Any, own: Any, spaces: ZeroGpu, temperature: float
) -> None:
    settings = replace(SETTINGS, temperature=temperature, seed=6)
    one = worker(lent, settings)
    one.proceed()
    events = rest(one)
    assert one.error == ""
    assert texts(one) == texts(here(own, settings))
    assert [e["e"] for e in events[:3]] == ["start", "prefill", "prefill"]
    assert events[-1]["e"] == "done"
    assert events[-1]["figures"]["speedup"] > 0
    assert len(spaces.calls) == 1
    assert spaces.calls[0][2] != os.getpid()
    trace = one.trace()
    assert trace is not None
    assert load_trace(dump_trace(trace)) == trace


def test_models_in_memory_are_inherited_and_not_read_again(
    spaces: ZeroGpu, models: tuple[str, str], tmp_path: Path
) -> None:
    copies = [shutil.copytree(folder, tmp_path / Path(folder).name) for folder in models]
    pair = shelf_for(ZERO, 120).load(*map(str, copies), "float32")
    for folder in copies:
        shutil.rmtree(folder)
    one = worker(pair)
    one.proceed()
    rest(one)
    assert one.error == ""


def test_a_step_shows_one_round_while_the_gpu_goes_on_and_is_given_back(
    lent: Any, own: Any, spaces: ZeroGpu
) -> None:
    one = worker(lent)
    one.proceed(1)
    events = rest(one)
    assert sum(e["e"] == "round" and e["lane"] == "speculative" for e in events) == 1
    assert one.state == "paused"
    one.proceed()
    rest(one)
    assert texts(one) == texts(here(own))
    assert len(spaces.calls) == 1


def test_stop_ends_it_there_too_and_keeps_what_arrived(lent: Any, spaces: ZeroGpu) -> None:
    one = worker(lent, replace(SETTINGS, max_new_tokens=200))
    one.proceed(2)
    rest(one)
    one.stop()
    events = rest(one)
    assert one.join(30)
    assert spaces.ended == ["closed"]
    assert {e["finish_reason"] for e in events if e["e"] == "end"} == {"stopped"}
    trace = one.trace()
    assert trace is not None
    assert len(trace.runs[0].rounds) == 2


def test_an_earlier_baseline_is_shown_again(lent: Any) -> None:
    first = worker(lent)
    first.proceed()
    rest(first)
    trace = first.trace()
    assert trace is not None
    assert first.race is not None
    assert baseline_key(first.race, PROMPT, SETTINGS) == baseline_key(lent, PROMPT, SETTINGS)
    again = worker(lent, baseline=trace.run("baseline"))
    again.proceed()
    events = rest(again)
    assert events[0]["baseline_reused"] is True
    assert texts(again) == texts(first)


def test_nothing_to_write_ends_at_once(lent: Any) -> None:
    one = worker(lent, replace(SETTINGS, max_new_tokens=0))
    one.proceed()
    events = rest(one)
    assert one.error == ""
    assert [e["finish_reason"] for e in events if e["e"] == "end"] == ["length", "length"]


# --- what goes wrong there -----------------------------------------------------------------


def test_an_error_there_is_told_here_as_it_is(lent: Any) -> None:
    one = worker(lent, drafter="magic")
    one.proceed()
    assert rest(one)[-1]["message"].startswith("there is no drafter 'magic'")


def test_a_gpu_that_is_refused_says_why(lent: Any, spaces: ZeroGpu) -> None:
    spaces.refuses = gr.Error("You have used up today's quota")
    one = worker(lent)
    one.proceed()
    assert "used up today's quota" in rest(one)[-1]["message"]


def test_a_gpu_that_is_taken_away_leaves_what_arrived(lent: Any, spaces: ZeroGpu) -> None:
    spaces.dies_after = 5
    one = worker(lent)
    one.proceed()
    events = rest(one)
    assert one.error == CUT_OFF
    assert sum(e["e"] == "round" for e in events) == 4
    trace = one.trace()
    assert trace is not None
    assert trace.runs[0].finish_reason == "error"


def test_a_process_that_ends_early_is_not_taken_for_the_end_of_the_run(
    lent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specviz.ui.lent.race_there", half_a_race)
    one = worker(lent)
    one.proceed()
    rest(one)
    assert one.error == CUT_OFF


def half_a_race(*arguments: Any) -> Iterator[Any]:
    """The first pieces of a race, and no more."""
    pieces = race_there(*arguments)
    for _ in range(3):
        yield next(pieces)


def test_what_cannot_be_pickled_does_not_cross(lent: Any) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        next(computed(lent, race_there, lambda: 0))


def test_the_visitors_request_is_at_hand_when_a_gpu_is_asked_for(
    lent: Any, spaces: ZeroGpu
) -> None:
    VISITOR.set("somebody")
    try:
        one = worker(lent)
    finally:
        VISITOR.set("nobody")
    one.proceed()
    rest(one)
    assert spaces.calls[0][1] == "somebody"


# --- sweeps and proofs ---------------------------------------------------------------------


def test_every_run_of_a_sweep_is_a_call_of_its_own(
    lent: Any, own: Any, spaces: ZeroGpu, models: tuple[str, str]
) -> None:
    plan = Plan(
        models[0],
        (Setup("draft model", models[1], 2), Setup("prompt lookup", "", 3)),
        (Prompt("one", "question answering", PROMPT),),
        Settings(max_new_tokens=8, chat=False),
    )
    found = []
    for pair in (lent, own):
        sweep = Sweep({models[1]: pair}, plan)
        while not sweep.finished:
            sweep.advance()
        assert not sweep.failed
        found.append([one.trace.runs[0].text for one in sweep.measured])
    assert found[0] == found[1]
    assert len(spaces.calls) == 3, "one for the machine's record, one for each run"


def test_proofs_give_the_same_results_there(lent: Any, own: Any, spaces: ZeroGpu) -> None:
    from specviz.lossless.sampled import Plan as Sampling

    sampling = Sampling(PROMPT, replace(SETTINGS, temperature=0.8), 20, 1)
    for task, arguments in (
        (sampled_there, (sampling, "draft model", "right")),
        (greedy_there, (replace(SETTINGS, max_new_tokens=8), PROMPT, ["draft model"])),
    ):
        assert list(computed(lent, task, *arguments)) == list(task(own, *arguments))
    assert len(spaces.calls) == 2


# --- how long a GPU is asked for -----------------------------------------------------------


def test_the_duration_follows_the_settings_and_is_capped() -> None:
    assert seconds_for(0, None, 120) == gpu.START_SECONDS
    assert seconds_for(128, None, 120) < seconds_for(256, None, 120)
    assert seconds_for(256, 500.0, 120) < seconds_for(256, None, 120)
    assert seconds_for(100_000, None, 120) == 120


def test_the_duration_of_a_race_counts_both_lanes_and_learns_the_rate(
    lent: Any, spaces: ZeroGpu
) -> None:
    for options in ({"baseline": False}, {}):
        one = worker(lent, **options)
        one.proceed()
        rest(one)
    alone, both = (call[0] for call in spaces.calls)
    assert alone == seconds_for(24, None, 120)
    rate = lent._gpu._rates[lent._sources[0]]
    assert rate > 0
    assert gpu.START_SECONDS <= both <= seconds_for(48, None, 120)


def test_the_cap_of_the_host_is_kept(spaces: ZeroGpu, models: tuple[str, str]) -> None:
    shelf = shelf_for(ZERO, 17)
    errand = Errand(race_there, (*models, "float32"), (), tokens=5000)
    assert shelf._gpu.seconds(errand) == 17


# --- where it applies ----------------------------------------------------------------------


def test_off_zerogpu_models_are_not_lent(own: Any) -> None:
    for environ in ({}, {"SPACE_ID": "a/b"}, {"SPACES_ZERO_GPU": "false"}):
        assert not on_zero_gpu(environ)
        assert type(shelf_for(environ, 120)) is OwnShelf
    assert type(begin(own, "draft model", PROMPT, SETTINGS)) is Race


def test_on_zerogpu_models_wait_in_the_cpus_memory_in_the_gpus_dtype(
    spaces: ZeroGpu, models: tuple[str, str]
) -> None:
    shelf = shelf_for(ZERO, 120)
    assert type(shelf) is LendingShelf
    pair = shelf.load(*models)
    weight = next(pair.target.module.parameters())
    assert weight.device.type == "cpu"
    assert weight.dtype == torch.bfloat16


# --- the front matter ----------------------------------------------------------------------


def front_matter() -> dict[str, str]:
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---")[1]
    pairs = re.findall(r"^(\w+): (.+)$", head, re.MULTILINE)
    return {key: value.strip('"') for key, value in pairs}


def test_the_front_matter_is_what_spaces_takes() -> None:
    head = front_matter()
    wanted = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", wanted, re.MULTILINE))
    assert head["sdk"] == "gradio"
    assert head["sdk_version"] == pinned["gradio"] == gr.__version__
    assert head["python_version"] in ("3.11", "3.12", "3.13")
    assert (ROOT / head["app_file"]).is_file()
    assert head["license"] == "apache-2.0"
    assert len(head["short_description"]) <= 60
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {head["colorFrom"], head["colorTo"]} <= colours
    assert head["suggested_hardware"] in ("cpu-basic", "cpu-upgrade")
