"""What a diagnosis says is what the rounds say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sweeps import measured, trace_of

from specviz import theory
from specviz.diagnosis import diagnose, recommend
from specviz.diagnosis.profile import profile
from specviz.intervals import one_speedup_interval, share_interval
from specviz.records import Round, Token
from specviz.rows import Setup

# Ten rounds of two drafted tokens at 0.1 s a token and 1.2 s a call; a step takes 1 s.
ROUNDS = [(2, 2, 0.2, 1.2), (0, 2, 0.2, 1.2)] * 5
PLAIN = [(0, 0, 0.0, 1.0)] * 20


def named(found, name):
    return next(limit for limit in found.limits if limit.name == name)


def test_the_profile_is_an_identity_of_the_measured_speedup():
    own = profile([trace_of(ROUNDS, PLAIN)])
    assert own.speedup == pytest.approx((20 / 14) / 1)
    assert (own.tokens, own.drafted) == (2, 2)
    assert own.c == pytest.approx(0.1)
    assert own.verify == pytest.approx(1.2)
    assert own.slope == pytest.approx(0.1)
    assert own.alpha == pytest.approx(10 / 15)
    assert own.by_position == (pytest.approx(0.5), pytest.approx(1.0))
    assert own.reach == (0.5, 0.5)


def test_each_limit_changes_its_own_part_and_nothing_else():
    found = diagnose(trace_of(ROUNDS, PLAIN))
    assert named(found, "Draft too slow").after == pytest.approx(2 / 1.2)
    assert named(found, "Guesses too often wrong").after == pytest.approx(3 / 1.4)
    assert named(found, "Verifying is not free on this device").after == pytest.approx(2 / 1.2)
    assert all(limit.before == pytest.approx(20 / 14) for limit in found.limits[:3])
    gains = [limit.gain for limit in found.limits]
    assert gains == sorted(gains, reverse=True)


def test_overhead_of_the_loop_is_a_limit_of_its_own():
    own = [(accepted, drafted, d, v, 0.7) for accepted, drafted, d, v in ROUNDS]
    found = diagnose(trace_of(own, PLAIN))
    assert named(found, "The loop itself").after == pytest.approx(20 / 14)
    assert any("33.3 % of the time" in fact for fact in found.facts)


def test_a_prompt_that_takes_long_to_read_is_named():
    trace = trace_of(ROUNDS, PLAIN)
    slow = replace(trace, runs=tuple(replace(run, prefill_s=20.0) for run in trace.runs))
    limit = named(diagnose(slow), "Too few tokens")
    assert limit.before == pytest.approx((40 / 20) / (34 / 20))
    assert limit.after == pytest.approx(20 / 14)


def test_break_even_is_the_one_of_theory():
    found = diagnose(trace_of(ROUNDS, PLAIN))
    least = theory.break_even_alpha(2, 0.1, 1.2)
    assert any(f"alpha = {least:.2f} on; it was 0.67" in fact for fact in found.facts)


def test_a_draft_that_is_always_wrong_is_advised_against():
    found = diagnose(trace_of([(0, 2, 0.6, 1.4)] * 20, PLAIN))
    assert found.headline.startswith("Drafting did not pay here")
    assert found.advice.setup is None
    assert "take the target alone" in found.advice.words


def test_a_draft_that_is_always_right_should_be_longer():
    found = diagnose(trace_of([(2, 2, 0.02, 1.02)] * 20, PLAIN))
    assert found.advice.setup.gamma == 4
    assert named(found, "Gamma too short").after == pytest.approx(found.advice.predicted)
    assert found.advice.measured is None


def test_a_third_place_that_is_never_right_should_not_be_drafted():
    own = [(2, 6, 0.9, 1.3), (1, 6, 0.9, 1.3)] * 10
    found = diagnose(trace_of(own, PLAIN, gamma=6))
    assert found.advice.setup.gamma in (1, 2)
    assert named(found, "Gamma too long")


def test_the_expectation_is_the_measured_speedup_where_nothing_changes():
    own = profile([trace_of(ROUNDS, PLAIN)])
    assert own.at_gamma(own.gamma) == pytest.approx(own.speedup)


def test_rounds_that_the_end_of_the_text_shortened_say_nothing_about_places():
    # The last round may draft one token alone, since only two are left to write.
    own = profile([trace_of([(2, 2), (2, 2), (1, 1)], PLAIN, max_new_tokens=8)])
    assert own.reach == (1.0, 1.0)
    assert own.lengths == (2, 2)


def test_a_schedule_is_not_told_which_gamma_to_take():
    found = diagnose(trace_of(ROUNDS, PLAIN, schedule="adaptive"))
    assert "The schedule finds gamma by itself" in found.advice.words
    assert not any("Gamma" in limit.name for limit in found.limits)


def test_without_a_baseline_nothing_is_said_about_time():
    trace = trace_of(ROUNDS, PLAIN)
    alone = replace(trace, runs=trace.runs[:1])
    assert "No baseline" in diagnose(alone).headline
    assert "no speculative run" in diagnose(replace(trace, runs=trace.runs[1:])).headline


def test_a_run_that_drafted_nothing_has_a_diagnosis_and_no_advice():
    found = diagnose(trace_of([(0, 0)] * 20, PLAIN))
    assert any("no guess was found" in fact for fact in found.facts)
    assert found.advice is None
    assert found.point is None


def test_a_run_that_ended_inside_its_accepted_tokens_is_diagnosed():
    tokens = (Token(1, "x", "accepted", "d"), Token(2, "x", "discarded", "d", parent=0))
    trace = trace_of(ROUNDS, PLAIN)
    cut = replace(trace.runs[0], rounds=(Round(0, 0, tokens, None, 0.1, 1.0, 0.0),))
    found = diagnose(replace(trace, runs=(cut, trace.runs[1])))
    assert found.point.speedup == pytest.approx(1 / 1.1)


def test_the_point_stands_where_it_was_measured_with_its_interval():
    point = diagnose(trace_of(ROUNDS, PLAIN)).point
    assert (point.alpha, point.gamma) == (pytest.approx(2 / 3), 2)
    assert point.speedup == pytest.approx(20 / 14)
    assert point.speedup_interval[0] < point.speedup < point.speedup_interval[1]
    assert point.alpha_interval[0] < point.alpha < point.alpha_interval[1]


def test_intervals_at_their_ends():
    assert share_interval(0, 0) is None
    assert share_interval(5, 5)[1] == 1
    trace = trace_of(ROUNDS[:1], PLAIN)
    assert one_speedup_interval(*trace.runs) is None


# --- sweeps --------------------------------------------------------------------------------


def at_gamma(gamma, accepted, draft_s, name="draft model", prompts=("1", "2")):
    setup = Setup(name, "N" if name == "draft model" else "", gamma)
    rounds = [(min(accepted, gamma), gamma, draft_s * gamma, 1.0)] * 20
    return [measured(rounds, PLAIN, prompt, setup=setup) for prompt in prompts]


def test_of_a_sweep_the_fastest_setup_is_recommended():
    runs = [*at_gamma(2, 1, 0.1), *at_gamma(1, 1, 0.1), *at_gamma(2, 0, 0.0, "prompt lookup")]
    found = recommend(runs)
    assert found.headline.startswith("Fastest measured: draft model, N with gamma 1, 1.82x")
    assert (found.advice.setup.gamma, found.advice.measured) == (1, pytest.approx(2 / 1.1))
    assert found.facts[0].startswith("draft model, N: 1.82x at its best gamma, 1;")
    assert found.facts[1].startswith("prompt lookup: 1.00x")


def test_a_gamma_outside_the_grid_is_proposed_and_not_called_measured():
    found = recommend([*at_gamma(1, 9, 0.05), *at_gamma(2, 9, 0.05)])
    assert found.advice.setup.gamma == 4
    assert found.advice.measured is None
    assert "was not in the sweep" in found.advice.words


def test_where_nothing_beats_the_target_alone_it_says_so():
    found = recommend(at_gamma(2, 0, 0.3))
    assert found.headline.startswith("Nothing that was measured beats the target alone.")
    assert found.advice.words == "Take the target alone."


def test_a_sweep_without_runs_has_nothing_to_say():
    assert recommend([]).headline == "Nothing has been measured yet."
