"""How long a draft is: the schedule, and the draft's own confidence."""

from __future__ import annotations

import pytest
import torch
from kit import (
    PROMPT,
    feature,
    new_ids,
    noisy,
    own_texts,
    plain,
    speculate,
    start,
    stranger,
    target,
)

from specviz import schedule
from specviz.records import Settings, SettingsError
from specviz.sampling import Guess, sureness

EVERYTHING = {"feature": feature(), "datastore": own_texts()}


def test_constant_stays():
    lengths = schedule.of(Settings(gamma=5))
    lengths.learn(5, 0)
    lengths.learn(5, 5)
    assert lengths.gamma == 5


def test_adaptive_follows_acceptance_between_one_and_its_limit():
    lengths = schedule.of(Settings(gamma=3, schedule="adaptive"))
    seen = []
    for drafted, accepted in [(3, 3), (5, 5), (7, 6), (6, 0), (0, 0), (2, 2)]:
        lengths.learn(drafted, accepted)
        seen.append(lengths.gamma)
    assert seen == [5, 7, 6, 5, 5, 7]
    for _ in range(40):
        lengths.learn(1, 0)
    assert lengths.gamma == 1
    for _ in range(40):
        lengths.learn(1, 1)
    assert lengths.gamma == schedule.MOST


def test_a_longer_first_draft_than_the_limit_is_kept():
    lengths = schedule.of(Settings(gamma=40, schedule="adaptive"))
    lengths.learn(40, 40)
    assert lengths.gamma == 40


def test_the_schedule_belongs_to_one_run_and_is_recorded():
    settings = Settings(max_new_tokens=40, gamma=2, schedule="adaptive")
    first, second = start(settings, noisy()), start(settings, noisy())
    next(first)
    lengths = [round_.gamma for round_ in second]
    assert lengths[0] == 2
    assert len(set(lengths)) > 2
    for before, after in zip(second.rounds, second.rounds[1:], strict=False):
        whole = before.accepted == len(before.drafted)
        room = settings.max_new_tokens - after.position - 1
        assert after.gamma == min(room, before.gamma + 2 if whole else max(1, before.gamma - 1))


@pytest.mark.parametrize("drafter", ["draft model", "feature draft", "retrieval", "combined"])
@pytest.mark.parametrize("confidence", [0.3, 0.9])
def test_the_text_stays_the_targets_however_early_a_draft_ends(drafter, confidence):
    settings = Settings(max_new_tokens=40, gamma=6, confidence=confidence, schedule="adaptive")
    run = speculate(settings, noisy(), drafter, **EVERYTHING)
    assert new_ids(run) == new_ids(plain(settings))


@pytest.mark.parametrize("drafter", ["draft model", "feature draft"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_ends_behind_the_guess_that_makes_it_unsure(drafter, temperature):
    settings = Settings(max_new_tokens=30, gamma=6, confidence=0.4, temperature=temperature)
    run = start(settings, stranger(), drafter, **EVERYTHING)
    guesses = run._drafter.draft
    seen = []
    run._drafter.draft = lambda tokens, gamma: (
        seen.append((guesses(tokens, gamma), gamma)) or (seen[-1][0])
    )
    list(run)
    early = 0
    for drafted, gamma in seen:
        sure = 1.0
        for guess in drafted[:-1]:
            sure *= sureness(guess)
            assert sure >= 0.4
        early += len(drafted) < gamma
        assert len(drafted) == gamma or sure * sureness(drafted[-1]) < 0.4
    assert early > 3


def test_sureness_is_the_drafts_own_probability():
    logits = torch.tensor([0.0, 2.0, 1.0])
    greedy = Guess(1, "draft model", logits=logits)
    assert sureness(greedy) == pytest.approx(logits.softmax(-1)[1].item())
    drawn = Guess(2, "draft model", law=logits.softmax(-1), q=0.24, logits=logits)
    assert sureness(drawn) == 0.24
    assert sureness(Guess(5, "prompt lookup")) == 1.0


@pytest.mark.parametrize("change", [{"confidence": 1.5}, {"schedule": "clever"}])
def test_impossible_values_are_refused(change):
    with pytest.raises(SettingsError, match=next(iter(change))):
        Settings(**change)


def test_no_confidence_asked_for_costs_no_softmax(monkeypatch):
    monkeypatch.setattr("specviz.drafters.draft_model.sureness", lambda guess: 1 / 0)
    run = speculate(Settings(max_new_tokens=10, gamma=3), target())
    assert len(run.tokens) == len(PROMPT) + 10
