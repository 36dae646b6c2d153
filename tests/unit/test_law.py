"""Invariant 3: the exact law of what the loop writes is the filtered law of the target."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from kit import TEXTS, pair, start

from specviz import drafters
from specviz.cache import CachedModel
from specviz.drafters.feature_draft import FeatureDraft
from specviz.lossless import exact, variants
from specviz.lossless.cases import cases
from specviz.lossless.enumeration import law_of
from specviz.lossless.tables import TablePair, table_model
from specviz.records import Settings
from specviz.sampling import (
    BadLogits,
    Guess,
    SeededChance,
    residual,
    verify_greedy,
    verify_sampled,
)

CASES = {case.name: case for case in cases()}
TARGET, DRAFT = table_model(1), table_model(2)
START = [3, 1]


@cache
def result(name):
    return exact.compare(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_the_law_of_what_the_loop_writes_is_the_targets_own(name):
    found = result(name)
    assert found.gap <= 1e-12
    assert found.missing <= 1e-12
    assert found.holds


def test_every_drafter_there_is_has_a_case_several_rounds_deep():
    proved = {name: result(name) for name in CASES}
    by_drafter = {name: set() for name in drafters.modules()}
    for name, found in proved.items():
        by_drafter[CASES[name].drafter] |= found.sources
    assert by_drafter.pop("combined") == set(by_drafter)
    assert by_drafter == {name: {name} for name in by_drafter}
    assert all(found.rounds >= 3 for found in proved.values())
    assert proved["five tokens, several rounds"].rounds == 5


@pytest.mark.parametrize("name", CASES)
def test_every_case_goes_through_acceptance_rejection_and_both_added_tokens(name):
    assert result(name).fates >= {"accepted", "rejected", "resampled", "bonus"}


def test_some_cases_end_at_an_end_of_text_and_some_draft_behind_a_rejection():
    ended = result("hidden states, until the text ends")
    assert {1, 4} < {len(text) for text, *_ in ended.texts}
    assert "discarded" in ended.fates


def test_a_draft_of_several_sources_uses_more_than_one():
    assert result("guesses from the text or a store").sources == {"prompt lookup", "retrieval"}


@pytest.mark.parametrize("variant", variants.WRONG, ids=lambda variant: variant.name)
def test_every_wrong_variant_breaks_the_law(variant):
    result = exact.compare(CASES["two guesses a round"], variant)
    assert result.gap > 0.01
    assert result.missing < 1e-9, "a variant is wrong, but still writes some text every time"
    assert not result.holds


def test_the_right_variant_is_the_products_own_verification():
    assert variants.RIGHT.verify is verify_sampled
    assert variants.find("right") is variants.RIGHT


def test_an_unknown_variant_names_those_there_are():
    with pytest.raises(ValueError, match="no variant 'x'; choose one of argmax draft"):
        variants.find("x")


def test_another_temperature_gives_another_law_so_these_tests_can_fail():
    case = CASES["two guesses a round"]
    other = replace(case, settings=replace(case.settings, temperature=0.5))
    found, expected = exact.written_law(case).law, exact.target_law(other)
    assert max(abs(found.get(text, 0) - p) for text, p in expected.items()) > 0.01


@pytest.mark.parametrize("name", ["two guesses a round", "guesses from hidden states"])
def test_a_roll_back_that_forgets_nothing_breaks_the_law(name, monkeypatch):
    monkeypatch.setattr(CachedModel, "roll_back", lambda self, length: None)
    assert exact.compare(CASES[name]).gap > 0.01


def test_hidden_states_in_a_wrong_order_spoil_the_guesses_and_never_the_law(monkeypatch):
    read = FeatureDraft.read_features

    def read_backwards(drafter, rows):
        read(drafter, rows.flip(0))

    monkeypatch.setattr(FeatureDraft, "read_features", read_backwards)
    assert exact.compare(CASES["guesses from hidden states"]).holds


@pytest.mark.parametrize(
    "p, q", [((0.6, 0.4), (0.8, 0.2)), ((0.5, 0.3, 0.2), (0.1, 0.2, 0.7)), ((1, 0), (0, 1))]
)
@pytest.mark.parametrize("certain", [False, True])
def test_one_round_gives_p_whether_the_draft_samples_or_is_certain(p, q, certain):
    p, q = torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64)

    def play(chance):
        token = int(q.argmax()) if certain else chance.choose(q)
        law = None if certain else q
        guess = Guess(token, "x", law, 1.0 if certain else q[token].item())
        verdict = verify_sampled(torch.stack([p, p]), [guess], chance)
        return token if verdict.accepted else verdict.added

    law, _ = law_of(play)
    for token, probability in law.items():
        assert probability == pytest.approx(p[token].item(), abs=1e-12)


def test_residual_is_normalised_by_its_sum_and_not_by_softmax():
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6])
    rest = residual(p, Guess(2, "x", q, 0.6))
    torch.testing.assert_close(rest / rest.sum(), torch.tensor([0.75, 0.25, 0.0]))


@pytest.mark.parametrize("p", [[0.25] * 4, [0.7, 0.1, 0.1, 0.1]])
def test_where_nothing_is_left_of_the_residual_p_itself_is_drawn_from(p):
    p = torch.tensor(p)
    assert residual(p, Guess(0, "x", p.clone(), p[0].item())) is p


def test_greedy_never_accepts_what_the_ratio_would_but_the_argmax_would_not():
    # p(a)=.3, p(b)=.5, q(a)=.2: the ratio says accept a with certainty, greedy must emit b.
    verdict = verify_greedy([1, 0], [Guess(0, "x", None, 0.2)])
    assert (verdict.accepted, verdict.added) == (0, 1)


@pytest.mark.parametrize("temperature", [0.0, 1e-9, 1e-6])
def test_below_one_threshold_every_temperature_is_exactly_greedy(temperature):
    settings = Settings(max_new_tokens=12, gamma=3, temperature=temperature)
    run = start(settings, DRAFT, prompt=START, target=TARGET)
    list(run)
    greedy = start(Settings(max_new_tokens=12, gamma=3), DRAFT, prompt=START, target=TARGET)
    list(greedy)
    assert run.tokens == greedy.tokens
    assert all(t.p in (0, 1) and t.u is None for r in run.rounds for t in r.drafted if t.p)


def test_a_row_that_is_no_law_is_an_error_even_where_the_next_row_is_one():
    laws = torch.tensor([[float("nan"), float("nan")], [0.5, 0.5]])
    with pytest.raises(BadLogits):
        verify_sampled(laws, [Guess(0, "x")], SeededChance(0))


def test_a_token_of_probability_zero_is_never_drawn():
    law = torch.tensor([0.0, 0.3, 0.0, 0.7, 0.0])
    chance = SeededChance(0)
    assert {chance.choose(law) for _ in range(500)} == {1, 3}


def test_draws_follow_the_law():
    law = torch.tensor([0.1, 0.2, 0.7])
    chance = SeededChance(1)
    counts = torch.bincount(torch.tensor([chance.choose(law) for _ in range(4000)]))
    assert ((counts / 4000 - law).abs() < 0.03).all()


def test_a_law_of_nan_is_an_error_and_not_a_token():
    with pytest.raises(BadLogits):
        SeededChance(0).choose(torch.tensor([float("nan"), 0.5]))


def test_the_enumeration_itself_sees_every_path():
    law, paths = law_of(
        lambda chance: (chance.choose(torch.tensor([0.5, 0.25, 0.25])), chance.accepts(0.3)[0])
    )
    assert len(law) == paths == 6
    for (token, yes), p in law.items():
        assert p == pytest.approx([0.5, 0.25, 0.25][token] * (0.3 if yes else 0.7))


def test_a_table_pair_gives_drafters_all_that_they_ask_for():
    assert TablePair(TARGET, DRAFT).draft is DRAFT
    assert TEXTS.label(257) == "<special 257>"
    assert pair(None).draft is None
