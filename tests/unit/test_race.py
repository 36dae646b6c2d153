"""The race: each lane on its own clock, the one behind runs next."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kit import llama, noisy, pair, wrap

from specviz.race import Race, baseline_key, replay_events
from specviz.records import Settings
from specviz.trace import dump_trace, load_trace


def made_race(baseline=True, drafter="draft model", **settings):
    values = {"max_new_tokens": 24, "gamma": 3, "chat": False, **settings}
    models = pair(noisy(), context=256)
    return Race(models, drafter, "\x05\x09\x11\x05\x09", Settings(**values), baseline=baseline)


def run_out(race):
    events = list(race.start())
    while not race.finished:
        events += race.advance()
    return [*events, race.finish()]


def rounds(events, lane):
    return [e for e in events if e["e"] == "round" and e["lane"] == lane]


def test_the_lane_whose_clock_is_behind_runs_next():
    race = made_race()
    list(race.start())
    clocks = {"speculative": 0.0, "baseline": 0.0}
    running = set(clocks)
    while not race.finished:
        expected = min(running, key=lambda lane: (clocks[lane], lane != "speculative"))
        for event in race.advance():
            assert event["lane"] == expected
            if event["e"] == "end":
                running.discard(event["lane"])
            else:
                round_ = event["round"]
                clocks[event["lane"]] += sum(
                    round_[name] for name in ("draft_s", "verify_s", "sample_s")
                )


def test_a_race_tells_its_start_prefills_rounds_ends_and_figures_in_order():
    events = run_out(made_race())
    kinds = [event["e"] for event in events]
    assert kinds[:3] == ["start", "prefill", "prefill"]
    assert kinds[-1] == "done"
    assert kinds.count("end") == 2
    assert sum(len_of(e) for e in rounds(events, "speculative")) == 24
    assert len(rounds(events, "baseline")) == 24
    figures = events[-1]["figures"]
    assert figures["speedup"] > 0
    assert figures["efficiency"] > 0
    assert events[-1]["same_as_baseline"] is True
    json.dumps(events, allow_nan=False)


def len_of(event):
    drafted = event["round"]["drafted"]
    return sum(t["fate"] == "accepted" for t in drafted) + bool(event["round"].get("added"))


def test_without_a_baseline_the_speedup_is_not_known():
    events = run_out(made_race(baseline=False))
    assert events[0]["lanes"] == ["speculative"]
    assert events[-1]["figures"]["speedup"] is None
    assert events[-1]["same_as_baseline"] is None


def test_a_reused_baseline_is_shown_again_as_it_was_measured():
    first = made_race()
    run_out(first)
    measured = first.trace().run("baseline")
    second = made_race(baseline=measured, gamma=5)
    events = run_out(second)
    assert events[0]["baseline_reused"] is True
    assert second.trace().run("baseline") == replace(measured, observe_s=0.0)
    seconds = events[-1]["figures"]["baseline_seconds"]
    assert seconds == pytest.approx(sum(round_.seconds for round_ in measured.rounds))


def test_recording_a_baseline_is_counted_once_and_not_where_it_is_shown_again():
    first = made_race()
    done = run_out(first)[-1]
    run, measured = first.trace().runs
    assert measured.observe_s > 0
    assert done["figures"]["observe_s"] == run.observe_s + measured.observe_s
    second = made_race(baseline=measured)
    done = run_out(second)[-1]
    assert done["figures"]["observe_s"] == second.trace().run("speculative").observe_s > 0


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.9, "seed": 4}])
@pytest.mark.parametrize("stopped_after", [None, 9])
def test_every_figure_of_a_saved_race_is_the_live_one(settings, stopped_after):
    race = made_race(**settings)
    live = list(race.start())
    while not race.finished and len(live) != stopped_after:
        live += race.advance()
    live += race.stop()
    live.append(race.finish())
    replayed = list(replay_events(load_trace(dump_trace(race.trace()))))
    assert {**live[0], "mode": "replay"} == replayed[0]
    for kind in ("prefill", "round", "done"):
        assert [e for e in live if e["e"] == kind] == [e for e in replayed if e["e"] == kind]
    ends = [{e["lane"]: e for e in events if e["e"] == "end"} for events in (live, replayed)]
    assert ends[0] == ends[1]
    assert set(ends[0]) == {"speculative", "baseline"}


def test_a_baseline_is_reused_only_where_nothing_that_matters_to_it_changed():
    models = pair(noisy())
    key = baseline_key(models, "a", Settings())
    drafts = Settings(gamma=9, schedule="adaptive", confidence=0.4)
    assert key == baseline_key(models, "a", drafts)
    assert key != baseline_key(models, "b", Settings())
    assert key != baseline_key(models, "a", Settings(max_new_tokens=9))
    assert key != baseline_key(models, "a", Settings(temperature=0.5))


def test_half_a_character_of_the_prompt_is_shown_by_its_bytes():
    every_byte = wrap(llama(0, vocabulary=256), "T")
    models = pair(None, target=every_byte)
    race = Race(models, "prompt lookup", "\x05😀", Settings(chat=False), observe=False)
    shown = [token.text for token in race.trace().prompt_tokens]
    assert shown == ["\x05", "⟨F0⟩", "⟨9F⟩", "⟨98⟩", "😀"]


def test_a_stopped_race_keeps_both_lanes_and_can_be_saved():
    race = made_race()
    list(race.start())
    for _ in range(4):
        race.advance()
    ends = race.stop()
    assert {event["finish_reason"] for event in ends} == {"stopped"}
    assert race.finished
    assert race.advance() == []
    loaded = load_trace(dump_trace(race.trace()))
    assert sum(len(run.rounds) for run in loaded.runs) == 4
    assert race.finish()["figures"]["tokens"] > 0


def test_a_race_stopped_while_its_lanes_agree_is_not_called_different():
    race = made_race()
    list(race.start())
    for _ in range(5):
        race.advance()
    race.stop()
    assert race.finish()["same_as_baseline"] is None


def test_a_race_saved_while_paused_replays_to_where_it_stood():
    race = made_race()
    list(race.start())
    for _ in range(4):
        race.advance()
    events = list(replay_events(load_trace(dump_trace(race.trace()))))
    assert sum(event["e"] == "round" for event in events) == 4
    assert {e["finish_reason"] for e in events if e["e"] == "end"} == {"stopped"}


def test_a_lane_without_rounds_ends_in_a_replay():
    race = made_race(max_new_tokens=0)
    run_out(race)
    events = list(replay_events(race.trace()))
    assert [event["e"] for event in events].count("end") == 2


def test_sampling_lanes_are_two_draws_and_are_not_compared():
    assert run_out(made_race(temperature=1.0))[-1]["same_as_baseline"] is None
