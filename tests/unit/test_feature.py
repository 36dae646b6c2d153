"""A feature draft is exact, falls back rightly, and is trained as it is used."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import torch
from kit import (
    PROMPT,
    VOCABULARY,
    feature,
    feature_student,
    llama,
    new_ids,
    noisy,
    plain,
    speculate,
    start,
    target,
    wrap,
)

from specviz.cache import CachedModel
from specviz.distill.evaluation import GreedyText, simulate
from specviz.distill.feature import (
    FeatureTrainer,
    cut_feature_student,
    depth_mask,
    load_feature_student,
    right_by_depth,
    text_states,
)
from specviz.distill.student import IdMap
from specviz.distill.training import Data, TrainSettings, target_states
from specviz.feature import FeatureModel, FeatureState
from specviz.lossless.enumeration import law_of
from specviz.records import Settings

NAME = "feature draft"


def states_of(tokens):
    """The target's normalised hidden states, by transformers."""
    return target().module.model(torch.tensor([tokens])).last_hidden_state[0]


@torch.no_grad()
def naive_guesses(tokens, gamma):
    """What the draft guesses behind ``tokens``, each time with the whole text read afresh."""
    features, text, guesses = states_of(tokens[:-1]), list(tokens), []
    for _ in range(gamma):
        logits, feature_ = FeatureState(feature()).step(features, text[1:])
        guesses.append(feature().ids[int(logits.argmax())])
        text.append(guesses[-1])
        features = torch.cat((features, feature_))
    return guesses


def test_every_draft_is_what_reading_all_of_the_text_afresh_gives():
    run = start(Settings(max_new_tokens=40, gamma=4), None, NAME, feature=feature())
    text, rejected = list(PROMPT), 0
    for round_ in run:
        drafted = [token.id for token in round_.drafted]
        assert drafted == naive_guesses(text, len(drafted))
        text += [token.id for token in round_.committed]
        rejected += round_.accepted < len(drafted)
    assert rejected > 3
    assert text == run.tokens


@pytest.mark.parametrize("gamma", [1, 4])
def test_sampling_draws_each_guess_from_the_law_it_records(gamma):
    run = speculate(
        Settings(max_new_tokens=30, gamma=gamma, temperature=1.0), None, NAME, feature=feature()
    )
    drafted = [token for round_ in run.rounds for token in round_.drafted]
    tested = [token for token in drafted if token.fate != "discarded"]
    assert tested
    for token in tested:
        listed = {candidate.id: candidate.probability for candidate in token.q_top}
        assert listed[token.id] == pytest.approx(token.q, rel=1e-4)
    assert not any(token.id >= VOCABULARY - 6 for token in drafted)


def test_features_are_those_of_the_verified_tokens_and_of_no_guess(monkeypatch):
    seen = []
    run = start(Settings(max_new_tokens=25, gamma=3), None, NAME, feature=feature())
    read = run._drafter.read_features
    monkeypatch.setattr(run._drafter, "read_features", lambda rows: (seen.append(rows), read(rows)))
    list(run)
    found = torch.cat(seen)
    torch.testing.assert_close(found, states_of(run.tokens)[: len(found)], rtol=1e-4, atol=1e-4)
    assert len(found) >= len(run.tokens) - 1


def test_transformers_own_forward_gives_the_same_features():
    lean, own = (
        CachedModel(model, keep_features=True)
        for model in (target(), target().__class__("T", target().module, VOCABULARY, 256))
    )
    for ids in (PROMPT[:6], PROMPT[6:]):
        lean.append(ids), own.append(ids)
        torch.testing.assert_close(lean.features, own.features, rtol=1e-4, atol=1e-4)


def test_asking_for_features_that_were_not_kept_is_an_error():
    cached = CachedModel(target())
    cached.append(PROMPT)
    with pytest.raises(ValueError, match="keep_features"):
        _ = cached.features


@pytest.mark.parametrize("prompt", [[7], [7, 8], [7, 8, 9]])
def test_the_shortest_prompts_run(prompt):
    settings = Settings(max_new_tokens=12, gamma=3)
    run = speculate(settings, None, NAME, prompt, feature=feature())
    assert new_ids(run, prompt) == new_ids(plain(settings, prompt), prompt)


def test_combined_catches_up_with_the_rounds_that_others_drafted():
    settings = Settings(max_new_tokens=60, gamma=3)
    run = speculate(settings, noisy(), "combined", feature=feature(), datastore=EMPTY)
    assert new_ids(run) == new_ids(plain(settings))
    sources = [round_.drafted[0].source for round_ in run.rounds if round_.drafted]
    assert {"feature draft", "prompt lookup"} <= set(sources)


@torch.no_grad()
def test_the_law_of_what_is_written_is_the_targets_own():
    """Every path through two rounds, weighed; the target is a real Llama over four tokens."""
    small = wrap(llama(4, vocabulary=4), "four")
    student = cut_feature_student(small.module, range(3), 40, torch.zeros(1, 8, dtype=torch.long))
    with tempfile.TemporaryDirectory() as folder:
        student.save(Path(folder))
        draft = FeatureModel.load(Path(folder), small.lean)
    settings = Settings(max_new_tokens=3, gamma=2, temperature=0.8)
    beginning, drafted = [3, 1, 0], []

    def play(chance):
        run = start(settings, None, NAME, beginning, chance, target=small, feature=draft)
        list(run)
        drafted.append(sum(len(round_.drafted) for round_ in run.rounds))
        return tuple(run.tokens[3:])

    law, _ = law_of(play)
    assert min(drafted) >= 1
    assert sum(law.values()) == pytest.approx(1, abs=1e-6)
    for text, probability in law.items():
        expected = 1.0
        for place, token in enumerate(text):
            logits = small.module(torch.tensor([beginning + list(text[:place])])).logits[0, -1]
            expected *= (logits / 0.8).softmax(-1)[token].item()
        assert probability == pytest.approx(expected, abs=1e-5)


class EMPTY:
    """A store that knows nothing."""

    @staticmethod
    def longest(*_):
        return None


# --- training ------------------------------------------------------------------------------


def test_a_pass_of_a_depth_looks_at_what_a_draft_of_that_depth_has():
    second = depth_mask(6, 2)[3].view(2, 6).int().tolist()
    assert second == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]]
    third = depth_mask(6, 3)[4].view(3, 6).int().tolist()
    assert third == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0]]


@torch.no_grad()
def test_the_student_says_in_training_what_the_draft_says_in_a_run():
    tokens = new_ids(plain(Settings(max_new_tokens=20)))
    text = GreedyText("", "", tuple(PROMPT), tuple(tokens), 20)
    states = text_states(target().module, text)
    head = feature().stack.head
    right = right_by_depth(feature_student(), head, states, text, 3)
    whole = [*PROMPT, *tokens]
    for place in range(len(tokens)):
        guesses = naive_guesses(whole[: len(PROMPT) + place], 3)
        for depth, guess in enumerate(guesses):
            at = place + depth
            if at < len(tokens) and guesses[:depth] == tokens[place:at]:
                assert right[depth][at] == (guess == tokens[at])


@pytest.mark.parametrize("gamma", [1, 3])
def test_counted_rounds_are_those_of_a_real_run(gamma):
    settings = Settings(max_new_tokens=40, gamma=gamma)
    run = speculate(settings, None, NAME, feature=feature())
    text = GreedyText("", "", tuple(PROMPT), tuple(new_ids(run)), 40)
    states = text_states(target().module, text)
    right = right_by_depth(feature_student(), feature().stack.head, states, text, gamma)
    assert simulate(right, gamma, 40).target_calls == len(run.rounds)


def test_a_checkpoint_of_another_target_is_refused(tmp_path):
    feature_student().save(tmp_path)
    stack = target().lean
    other = type(stack)(
        **{
            name: getattr(stack, name)
            for name in ("heads", "kv_heads", "head_dim", "eps", "embedding", "layers", "rotary")
        },
        norm=torch.ones(8),
        head=stack.head,
    )
    with pytest.raises(ValueError, match="another target"):
        FeatureModel.load(tmp_path, other)


def trainer_on(tmp_path, **settings):
    """A trainer over text the tiny target wrote, a little of it held out."""
    rows = [plain(Settings(max_new_tokens=22), [first, 9]).tokens for first in range(3, 27)]
    ids = torch.tensor(rows)
    states = target_states(target().module, ids, tmp_path / "states.npy")
    student = cut_feature_student(target().module, range(VOCABULARY), 48, ids[:4])
    head = target().module.lm_head.weight.detach()
    data = Data(ids, torch.ones(ids.shape), states)
    chosen = TrainSettings(rows=6, passes=16, held_out=4, learning_rate=1e-2, **settings)
    return FeatureTrainer(student, head, IdMap(tuple(range(VOCABULARY)), 0), data, chosen)


def test_training_makes_deep_guesses_likelier(tmp_path):
    trainer = trainer_on(tmp_path, depth=3)
    rows = trainer.data.ids[:8].tolist()
    texts = [GreedyText("", "", tuple(row[:2]), tuple(row[2:]), 22) for row in rows]
    states = [text_states(target().module, text) for text in texts]

    def right():
        each = [
            right_by_depth(trainer.student, trainer.head, known, text, 3)
            for known, text in zip(states, texts, strict=True)
        ]
        return [sum(sum(by_depth[depth]) for by_depth in each) for depth in range(3)]

    before = trainer.loss(trainer.batch_rows(0)).item(), right()
    while trainer.step < trainer.total_steps:
        trainer.train_step()
    assert trainer.loss(trainer.batch_rows(0)).item() < before[0] - 0.5
    assert all(after > once for after, once in zip(right(), before[1], strict=True))
    assert 0 < trainer.held_out_overlap(4) <= 1


def test_a_saved_student_goes_on_where_it_was(tmp_path):
    feature_student().save(tmp_path)
    again = load_feature_student(target().module, tmp_path)
    assert again.ids == feature_student().ids
    for name, weight in again.state_dict().items():
        torch.testing.assert_close(
            weight, feature_student().state_dict()[name], rtol=1e-2, atol=1e-2
        )


def test_guesses_beyond_the_first_are_trained_on_the_drafts_own_states(tmp_path):
    """Taking the true state away from the last places changes only shallow guesses' inputs."""
    trainer = trainer_on(tmp_path, depth=2)
    states = torch.randn(1, 8, 32)
    ids = torch.randint(0, VOCABULARY, (1, 8))
    changed = states.clone()
    changed[0, 5] += 1.0
    with torch.no_grad():
        first, second = trainer.student.unroll(states, ids, 2)
        first_changed, second_changed = trainer.student.unroll(changed, ids, 2)
    assert not torch.allclose(first[0, 5], first_changed[0, 5])
    assert torch.allclose(second[0, 5], second_changed[0, 5], atol=1e-5)
    assert not torch.allclose(second[0, 6], second_changed[0, 6], atol=1e-5)
