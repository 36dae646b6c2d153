"""Steps of fixed shape, on the CPU: they equal the eager path to the token and roll back with it.

``Recorded`` stands in for CUDA's capture: like it, it repeats the very same work on the very same
tensors and hands out copies of the very same results.
"""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
import torch
from kit import VOCABULARY, feature, llama, new_ids, noisy, plain, speculate, target

from specviz import attention
from specviz.cache import CachedModel, LanguageModel
from specviz.graphs import REACHES, GraphedState, Graphs
from specviz.llama import LeanState, lean
from specviz.pairs import replay
from specviz.records import Settings


class Recorded:
    """Repeats work into the results of its capture, and counts."""

    def __init__(self):
        self.captures = self.replays = 0

    def __call__(self, work):
        self.captures += 1
        results = work()

        def again():
            self.replays += 1
            for result, fresh in zip(results, work(), strict=True):
                result.copy_(fresh)
            return tuple(result.clone() for result in results)

        return again


def graphed(model: LanguageModel, capture: Recorded | None = None) -> LanguageModel:
    return replace(model, graphs=Graphs(model.lean, model.context, capture or Recorded()))


@torch.inference_mode()
def states(context: int = 256, prepared: tuple[int, int, int] = (5, 40, 5)):
    form, capture = lean(llama(3, context=context)), Recorded()
    replayed = GraphedState(Graphs(form, context, capture))
    replayed.prepare(*prepared)
    return LeanState(form), replayed, capture


@torch.inference_mode()
def both(eager, replayed, ids):
    """The same append to both; the logits must agree."""
    expected, found = eager.forward(ids, len(ids)), replayed.forward(ids, len(ids))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert found.argmax(-1).tolist() == expected.argmax(-1).tolist()
    return found


def test_steps_of_every_captured_length_equal_the_eager_ones():
    eager, replayed, capture = states()
    both(eager, replayed, list(range(6)))
    assert capture.replays == 0, "the prompt runs eagerly"
    for count in (1, 5, 2, 1, 4, 3, 5):
        both(eager, replayed, [(7 * i + count) % VOCABULARY for i in range(count)])
    assert capture.replays == 7
    assert capture.captures == 5


def test_what_was_rolled_back_leaves_no_trace():
    eager, replayed, _ = states()
    both(eager, replayed, [1, 2, 3, 4, 5])
    for kept in (3, 1, 0, 2):
        both(eager, replayed, [9, 8, 7, 6])
        for state in (eager, replayed):
            state.crop(state.length - 4 + kept)
    clean = LeanState(eager._model)
    with torch.inference_mode():
        clean.forward([1, 2, 3, 4, 5, 9, 8, 7, 9, 9, 8], 1)
    both(clean, replayed, [11, 12])


def test_a_length_without_a_captured_step_runs_eagerly_on_the_same_cache():
    eager, replayed, capture = states(prepared=(5, 40, 2))
    for ids in ([1, 2, 3, 4, 5], [6], [7, 8, 9], [10], [11, 12]):
        both(eager, replayed, ids)
    assert capture.replays == 3


def test_a_text_that_outgrows_the_fixed_cache_goes_on_eagerly(monkeypatch):
    monkeypatch.setattr("specviz.graphs.REACHES", (16, 32, 48))
    eager, replayed, capture = states(prepared=(5, 80, 3))
    graphs, fixed = replayed._graphs, replayed._fixed
    both(eager, replayed, [1, 2, 3, 4, 5])
    while eager.length < 47:
        both(eager, replayed, [(eager.length + i) % VOCABULARY for i in range(3)])
    assert capture.replays == 14
    for _ in range(5):
        both(eager, replayed, [(eager.length + i) % VOCABULARY for i in range(3)])
    assert capture.replays == 14
    assert graphs.take() is fixed, "the fixed cache is free for the next run"


def test_every_reach_of_a_run_is_captured_before_it_and_only_those(monkeypatch):
    monkeypatch.setattr("specviz.graphs.REACHES", (16, 32, 64, 128))
    _, replayed, _ = states(prepared=(20, 60, 2))
    assert sorted(replayed._fixed.steps) == [(1, 32), (1, 64), (2, 32), (2, 64)]


def test_nothing_is_captured_for_a_prompt_that_no_captured_step_can_follow(monkeypatch):
    monkeypatch.setattr("specviz.graphs.REACHES", (16, 32))
    _, replayed, capture = states(prepared=(33, 60, 2))
    assert capture.captures == 0
    replayed.prepare(32, 60, 2)
    assert list(replayed._fixed.steps) == [(1, 32), (2, 32)]


def test_capturing_is_refused_once_something_is_cached():
    _, replayed, _ = states()
    with torch.inference_mode():
        replayed.forward([1, 2, 3], 1)
    with pytest.raises(ValueError, match="before the first append"):
        replayed.prepare(3, 40, 5)


def test_captured_steps_are_bounded_and_none_is_captured_to_be_dropped(monkeypatch):
    monkeypatch.setattr("specviz.graphs.MOST_STEPS", 3)
    _, replayed, capture = states()
    assert [count for count, _ in replayed._fixed.steps] == [1, 2, 3]
    assert capture.captures == 3


def test_the_steps_of_the_run_at_hand_stay_and_the_oldest_others_make_room(monkeypatch):
    monkeypatch.setattr("specviz.graphs.REACHES", (16, 32, 64))
    monkeypatch.setattr("specviz.graphs.MOST_STEPS", 3)
    _, replayed, _ = states(prepared=(5, 10, 2))
    replayed.prepare(20, 30, 2)
    assert list(replayed._fixed.steps) == [(2, 16), (1, 32), (2, 32)]


def test_results_are_the_callers_own_and_survive_the_next_step():
    eager, replayed, _ = states()
    both(eager, replayed, [1, 2, 3])
    first = both(eager, replayed, [4])
    kept = first.clone()
    both(eager, replayed, [5])
    assert torch.equal(first, kept)


def test_a_cache_is_reused_by_the_next_run_with_what_was_captured_and_nothing_of_its_text():
    eager, replayed, capture = states()
    graphs = replayed._graphs
    with torch.inference_mode():
        replayed.forward([1, 2, 3, 4, 5], 1)
        fixed = replayed._fixed
        fixed.states[0][1][0, 0, 200] = float("nan")
    del replayed
    gc.collect()
    again = GraphedState(graphs)
    assert again._fixed is fixed
    again.prepare(5, 40, 5)
    assert capture.captures == 5, "nothing was captured anew"
    both(eager, again, [3, 1, 4, 1])
    both(eager, again, [5])


def test_two_lanes_at_once_have_a_cache_each():
    model = graphed(target())
    one, other = CachedModel(model), CachedModel(model)
    for cached in (one, other):
        cached.prepare(4, 20, 1)
    with torch.inference_mode():
        one.append([1, 2, 3, 4])
        other.append([4, 3, 2, 1])
        alone = CachedModel(target())
        alone.append([1, 2, 3, 4])
        torch.testing.assert_close(one.append([7]), alone.append([7]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("schedule", ["constant", "adaptive"])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_whole_run_through_replayed_steps_is_the_eager_run(temperature, schedule):
    settings = Settings(
        max_new_tokens=40, gamma=3, temperature=temperature, seed=5, schedule=schedule
    )
    counted, draft_counted = Recorded(), Recorded()
    run = speculate(settings, graphed(noisy(), draft_counted), target=graphed(target(), counted))
    assert new_ids(run) == new_ids(speculate(settings, noisy()))
    # Every verification was replayed, and in the adaptive run the short prompt too.
    assert counted.replays == len(run.rounds) + (schedule == "adaptive")
    assert draft_counted.replays > len(run.rounds)


def test_the_baseline_is_replayed_as_well():
    counted = Recorded()
    settings = Settings(max_new_tokens=30)
    run = plain(settings, target=graphed(target(), counted))
    assert new_ids(run) == new_ids(plain(settings))
    assert counted.replays == 30


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_feature_draft_is_replayed_beside_its_target(temperature):
    settings = Settings(max_new_tokens=40, gamma=3, temperature=temperature, seed=5)
    capture = Recorded()
    model = replace(feature(), graphs=feature().replayed(256, capture))
    options = {"drafter": "feature draft", "target": graphed(target())}
    run = speculate(settings, None, feature=model, **options)
    assert new_ids(run) == new_ids(
        speculate(settings, None, drafter="feature draft", feature=feature())
    )
    assert capture.replays >= len(run.rounds) - 1


def test_a_run_to_the_end_of_the_context_is_the_eager_one():
    short = replace(target(), context=50)
    settings = Settings(max_new_tokens=100, gamma=4)
    run = speculate(settings, noisy(), target=graphed(short))
    assert new_ids(run) == new_ids(speculate(settings, noisy(), target=short))
    assert len(run.tokens) == 50
    assert run.finish_reason == "context"


# --- the self-check ------------------------------------------------------------------------


def test_the_check_passes_where_replayed_steps_are_right():
    graphs, note = replay.graphs_for(target().lean, 256, Recorded())
    assert graphs is not None
    assert note == "on"
    drafts = replay.feature_graphs(feature(), 256, Recorded())
    assert drafts.graphs is not None
    assert drafts.graphs_note == "on"


@pytest.mark.parametrize("context", [9, 17, 40])
def test_the_check_meets_a_context_shorter_than_its_text(context):
    assert replay.graphs_for(target().lean, context, Recorded())[1] == "on"


def test_without_a_gpu_there_are_no_graphs_and_nothing_to_say():
    assert replay.graphs_for(target().lean, 256) == (None, "")
    assert replay.graphs_for(None, 256) == (None, "")


class Stuck(Recorded):
    """A capture whose repetitions repeat the first result for ever."""

    def __call__(self, work):
        results = work()
        return lambda: results


class Failing(Recorded):
    """A capture that cannot be made."""

    def __call__(self, work):
        raise RuntimeError("operation not permitted when stream is capturing")


class Spoiled(Recorded):
    """A capture whose results are no numbers."""

    def __call__(self, work):
        results = tuple(torch.full_like(result, float("nan")) for result in work())
        return lambda: results


@pytest.mark.parametrize(
    ("capture", "words"),
    [
        (Stuck(), "gives token"),
        (Spoiled(), "not numbers"),
        (Failing(), "cannot be captured here (operation not permitted"),
    ],
)
def test_a_failed_check_leaves_the_eager_path_and_says_why(capture, words):
    graphs, note = replay.graphs_for(target().lean, 256, capture)
    assert graphs is None
    assert note.startswith("off: ")
    assert words in note
    drafts = replay.feature_graphs(feature(), 256, capture)
    assert drafts.graphs is None
    assert drafts.graphs_note.startswith("off: ")


@pytest.mark.parametrize(
    ("target_note", "drafts", "said"),
    [
        ("", {"draft": "", "feature draft": ""}, ""),
        ("on", {"draft": "on", "feature draft": "on"}, "on"),
        ("on", {"draft": ""}, "on"),
        ("on", {"draft": "on", "feature draft": "off: so"}, "on; feature draft off: so"),
        ("off: so", {"draft": "on", "feature draft": ""}, "off: so; draft on"),
    ],
)
def test_the_record_tells_of_a_draft_that_is_not_as_its_target(target_note, drafts, said):
    assert replay.pair_note(target_note, drafts) == said


def test_a_step_that_forgets_to_mask_is_caught(monkeypatch):
    def see_all(positions, places, groups, like):
        return like.new_zeros(len(positions) * groups, len(places))

    monkeypatch.setattr("specviz.graphs.grouped_mask", see_all)
    assert replay.graphs_for(target().lean, 256, Recorded())[0] is None


def test_the_fixed_cache_ends_at_the_longest_reach():
    graphs = Graphs(target().lean, 100_000, Recorded())
    assert graphs.take().capacity == REACHES[-1]


# --- attention -----------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "count"), [(0, 7), (20, 1), (20, 5), (16, 16)])
def test_every_way_to_look_back_gives_the_same_values(start, count):
    generator = torch.Generator().manual_seed(start + count)
    queries, keys, values = (
        torch.randn(shape, generator=generator)
        for shape in ((count, 6, 8), (1, 2, 64, 8), (1, 2, 64, 8))
    )
    end = start + count
    expected = attention.look_back(start, end, 3, queries)(queries, keys, values)
    positions, places = torch.arange(start, end), torch.arange(48)
    mask = attention.grouped_mask(positions, places, 3, queries)
    found = {"grouped": attention.grouped(mask, queries, keys, values)}
    if count == 1:
        found["single"] = attention.single(end, queries, keys, values)
    for name, mixed in found.items():
        torch.testing.assert_close(
            mixed.reshape(count, -1), expected.reshape(count, -1), msg=lambda m, n=name: f"{n}: {m}"
        )
