"""Invariant 4, second half: every figure equals a recomputation from the rounds."""

from __future__ import annotations

import math

import pytest
from kit import noisy, plain, speculate

from specviz import metrics, theory
from specviz.records import Candidate, Round, Run, Settings, Token


def drafted(*fates):
    return tuple(
        Token(id=i, text="x", fate=fate, source="draft model", parent=i - 1)
        for i, fate in enumerate(fates)
    )


def made_round(index, position, fates, added, draft_s=0.01, verify_s=0.1, sample_s=0.0):
    token = Token(id=9, text="y", fate=added, source="target") if added else None
    return Round(index, position, drafted(*fates), token, draft_s, verify_s, sample_s)


def test_hits_behind_a_rejection_do_not_count():
    # A mask of [1, 0, 1, 1] is one accepted token of four drafted and two tested.
    round_ = made_round(0, 0, ["accepted", "rejected", "discarded", "discarded"], "resampled")
    figures = metrics.figures(metrics.Tally.of([round_]))
    assert (figures.accepted, figures.tested, figures.drafted, figures.tokens) == (1, 2, 4, 2)
    assert figures.tar == pytest.approx(1 / 4)
    assert figures.alpha == pytest.approx(1 / 2)


def test_the_bonus_token_is_not_an_accepted_one():
    figures = metrics.figures(metrics.Tally.of([made_round(0, 0, ["accepted"] * 3, "bonus")]))
    assert (figures.accepted, figures.tokens, figures.tokens_per_target_call) == (3, 4, 4)


def test_nothing_drafted_gives_no_rate_and_no_division_by_zero():
    figures = metrics.figures(metrics.Tally.of([made_round(0, 0, [], "target")]))
    assert figures.tar is None
    assert figures.alpha is None
    assert figures.tokens_per_target_call == 1


def test_nothing_at_all_gives_no_figure():
    figures = metrics.figures(metrics.Tally(), metrics.Tally())
    assert figures.speedup is figures.tokens_per_s is figures.tokens_per_target_call is None
    assert metrics.costs(metrics.Tally(), metrics.Tally()) == metrics.Costs()


def test_speedup_is_seconds_per_token_over_seconds_per_token_and_may_be_below_one():
    slow = metrics.Tally.of([made_round(0, 0, ["rejected"], "resampled", draft_s=0.3)])
    alone = metrics.Tally.of([made_round(0, 0, [], "target", draft_s=0.0)])
    assert metrics.figures(slow, alone).speedup == pytest.approx(0.1 / 0.4)


def test_no_baseline_no_speedup():
    tally = metrics.Tally.of([made_round(0, 0, ["accepted"], "bonus")])
    assert metrics.figures(tally).speedup is None
    assert metrics.costs(tally, None).predicted_speedup is None


def test_running_figures_equal_a_recomputation_from_the_whole_run():
    run = speculate(Settings(max_new_tokens=60, gamma=3), noisy())
    base = plain(Settings(max_new_tokens=60))
    tally = metrics.Tally()
    for count, round_ in enumerate(run.rounds, start=1):
        tally.add(round_)
        tokens = [token for r in run.rounds[:count] for token in r.drafted]
        accepted = sum(token.fate == "accepted" for token in tokens)
        tested = sum(token.fate in ("accepted", "rejected") for token in tokens)
        figures = metrics.figures(tally, metrics.Tally.of(base.rounds))
        assert figures.tar == pytest.approx(accepted / len(tokens))
        assert figures.alpha == pytest.approx(accepted / tested)
        assert figures.tokens == sum(len(r.committed) for r in run.rounds[:count])
    seconds = sum(r.draft_s + r.verify_s + r.sample_s for r in run.rounds)
    assert figures.tokens_per_s == pytest.approx(60 / seconds)
    assert figures.speedup == pytest.approx(base.seconds / seconds)
    assert run.seconds == pytest.approx(seconds)


def test_predicted_speedup_is_the_papers_formula_when_every_round_drafts_gamma():
    rounds = [
        made_round(0, 0, ["accepted", "rejected"], "resampled", 0.02, 0.11),
        made_round(1, 2, ["accepted", "accepted"], "bonus", 0.02, 0.11),
    ]
    base = [made_round(i, i, [], "target", 0.0, 0.1) for i in range(5)]
    costs = metrics.costs(metrics.Tally.of(rounds), metrics.Tally.of(base))
    assert costs.cost_ratio == pytest.approx(0.1)
    assert costs.verify_ratio == pytest.approx(1.1)
    assert costs.predicted_speedup == pytest.approx(theory.speedup(3 / 4, 2, 0.1, 1.1))
    assert costs.efficiency == pytest.approx((5 / 0.26) / 10 / costs.predicted_speedup)


def test_acceptance_by_position_and_histogram():
    rounds = [
        made_round(0, 0, ["accepted", "rejected"], "resampled"),
        made_round(1, 2, ["accepted", "accepted", "accepted"], "bonus"),
        made_round(2, 6, ["rejected"], "resampled"),
    ]
    assert metrics.acceptance_by_position(rounds) == [pytest.approx(2 / 3), 0.5, 1.0]
    assert metrics.accepted_lengths(rounds) == [1, 1, 0, 1]


def test_end_to_end_speedup_counts_both_prefills():
    run = Run("speculative", "x", (made_round(0, 0, ["accepted"], "bonus"),), "length", 0.5, 0.1)
    base = Run("baseline", "", (made_round(0, 0, [], "target", 0.0),), "length", 0.5)
    assert metrics.end_to_end_speedup([run], [base]) == pytest.approx(0.6 / (0.71 / 2))


def choice(token, p_top, fate="target"):
    candidates = tuple(Candidate(i, str(i), p) for i, p in p_top.items())
    return Token(id=token, text=str(token), fate=fate, source="target", p_top=candidates)


def one_round(lane, added, *guesses):
    return Run(lane, "", (Round(0, 0, guesses, added, 0, 1, 0),), "length", 0)


def test_a_divergence_tells_both_logit_gaps_as_the_lanes_saw_them():
    run = Run(
        "speculative", "x", (Round(0, 0, (), choice(1, {1: 0.4, 2: 0.4}), 0, 1, 0),), "eos", 0
    )
    base = Run("baseline", "", (Round(0, 0, (), choice(2, {1: 0.3, 2: 0.5}), 0, 1, 0),), "eos", 0)
    found = metrics.divergence(run, base)
    assert (found.index, found.token.id, found.baseline_token.id) == (0, 1, 2)
    assert found.gap == pytest.approx(0)
    assert found.baseline_gap == pytest.approx(math.log(0.5 / 0.3))
    assert not metrics.same_text(run, base)


def test_a_resampled_token_is_judged_by_the_row_that_rejected_the_guess():
    guess = Token(
        id=3, text="3", fate="rejected", source="d", p_top=choice(3, {2: 0.5, 1: 0.25}).p_top
    )
    added = Token(id=2, text="2", fate="resampled", source="target")
    run = Run("speculative", "x", (Round(0, 0, (guess,), added, 0, 1, 0),), "length", 0)
    base = Run(
        "baseline", "", (Round(0, 0, (), choice(1, {1: 0.3, 2: 0.3}), 0, 1, 0),), "length", 0
    )
    assert metrics.divergence(run, base).gap == pytest.approx(math.log(2))


def test_every_figure_has_a_definition():
    assert tuple(metrics.DEFINITIONS) == metrics.FIGURES
    assert all(text.endswith(".") for text in metrics.DEFINITIONS.values())


# --- theory ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "alpha, gamma, c, printed",
    [(0.75, 7, 0.02, 3.2), (0.80, 7, 0.04, 3.3), (0.82, 7, 0.11, 2.5)],
)
def test_expected_speedups_of_the_papers_table(alpha, gamma, c, printed):
    """The first rows of table 2 of arXiv 2211.17192, as recomputed from its formula."""
    assert theory.speedup(alpha, gamma, c) == pytest.approx(printed, abs=0.06)


def test_expected_tokens_at_the_ends():
    assert theory.expected_tokens(0, 5) == 1
    assert theory.expected_tokens(1, 5) == 6
    assert theory.expected_tokens(0.5, 2) == pytest.approx(1.75)


def test_drafting_that_never_pays_has_gamma_zero():
    assert theory.best_gamma(0.1, 0.5) == 0
    assert theory.best_gamma(0.9, 0.01) > 8


@pytest.mark.parametrize("call", [(-0.1, 1), (1.1, 1), (0.5, -1)])
def test_impossible_arguments_are_refused(call):
    with pytest.raises(ValueError, match=r"alpha|gamma"):
        theory.expected_tokens(*call)
