"""Invariant 3: the exact law of what the loop writes is the filtered law of the target."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from enumerate_law import law_of, table_model
from kit import TEXTS, pair, start

from specviz.records import Settings
from specviz.sampling import (
    BadLogits,
    Filters,
    Guess,
    SeededChance,
    residual,
    verify_greedy,
    verify_sampled,
)

TARGET, DRAFT = table_model(1), table_model(2)
START = [3, 1]

FILTERS = [
    {},
    {"temperature": 0.6},
    {"top_k": 2},
    {"top_p": 0.7},
    {"min_p": 0.3, "temperature": 1.4},
    {"repetition_penalty": 1.5, "top_k": 3},
]


def target_law(settings, wanted, eos_ids=(), beginning=START):
    """The law of the target alone, by multiplying its filtered rows along every text."""
    law = {}

    def extend(text, probability):
        if len(text) == wanted or (text and text[-1] in eos_ids):
            law[tuple(text)] = law.get(tuple(text), 0) + probability
            return
        prefix = [*beginning, *text]
        row = TARGET.module.table[prefix[-2], prefix[-1]].log()[None]
        filters = Filters(settings, len(beginning), eos_ids, torch.device("cpu"))
        for token, p in enumerate(filters.last(row, prefix).double().softmax(-1).tolist()):
            if p > 0:
                extend([*text, token], probability * p)

    extend([], 1.0)
    return law


def written_law(settings, drafter="draft model", **changes):
    models = {"target": TARGET, **changes}
    draft = models.pop("draft", DRAFT)
    beginning, seen = models.pop("beginning", START), models.pop("seen", set())

    def play(chance):
        run = start(settings, draft, drafter, beginning, chance, **models)
        list(run)
        seen.update(token.source for round_ in run.rounds for token in round_.drafted)
        return tuple(run.tokens[len(beginning) :])

    return law_of(play)


def assert_same_law(found, expected):
    assert sum(found.values()) == pytest.approx(1, abs=1e-9)
    for text in set(found) | set(expected):
        assert found.get(text, 0) == pytest.approx(expected.get(text, 0), abs=2e-6), text


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("gamma", [1, 2])
def test_the_law_of_three_tokens_is_the_targets_filtered_law(filters, gamma):
    settings = Settings(**{"max_new_tokens": 3, "gamma": gamma, "temperature": 1.0, **filters})
    assert_same_law(written_law(settings), target_law(settings, 3))


def test_the_law_holds_where_the_text_may_end_early():
    settings = Settings(max_new_tokens=3, gamma=2, temperature=1.0)
    eos_ids = (0, 2)
    assert_same_law(written_law(settings, eos_ids=eos_ids), target_law(settings, 3, eos_ids))


def test_the_law_holds_for_a_draft_that_knows_only_part_of_the_vocabulary():
    settings = Settings(max_new_tokens=3, gamma=2, temperature=0.9, top_p=0.95)
    small = table_model(5, vocabulary=3)
    found = written_law(settings, draft=small, draft_ids=(2, 0, 3), draft_unknown=1)
    assert_same_law(found, target_law(settings, 3))


def test_the_law_holds_for_guesses_that_are_copied_and_so_certain():
    settings = Settings(max_new_tokens=3, gamma=3, temperature=1.0)
    beginning, seen = [3, 1, 2, 3, 1], set()
    copied = written_law(settings, "prompt lookup", beginning=beginning, seen=seen)
    assert_same_law(copied, target_law(settings, 3, beginning=beginning))
    assert seen == {"prompt lookup"}


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

    for token, probability in law_of(play).items():
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
    law = law_of(lambda chance: (chance.choose(torch.tensor([0.5, 0.25, 0.25])),
                                 chance.accepts(0.3)[0]))  # fmt: skip
    assert len(law) == 6
    for (token, yes), p in law.items():
        assert p == pytest.approx([0.5, 0.25, 0.25][token] * (0.3 if yes else 0.7))


def test_another_temperature_gives_another_law_so_these_tests_can_fail():
    settings = Settings(max_new_tokens=2, gamma=1, temperature=1.0)
    wrong = Settings(max_new_tokens=2, gamma=1, temperature=0.5)
    found = written_law(settings)
    expected = target_law(wrong, 2)
    assert any(
        abs(found.get(text, 0) - expected.get(text, 0)) > 0.01
        for text in product(range(4), repeat=2)
    )


def test_texts_and_pairs_of_the_kit_are_what_the_loop_expects():
    assert TEXTS.label(257) == "<special 257>"
    assert pair(None).draft is None
