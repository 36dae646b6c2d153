"""The loop draws what the target would: the same greedy text, for every drafter."""

from __future__ import annotations

import pytest
import torch
from every_drafter import DRAFTERS, draft_of, extras, greedy_reference
from kit import PROMPT, ByteTokenizer, llama, new_ids, noisy, plain, speculate, start, target, wrap

from specviz import metrics
from specviz.decode import baseline
from specviz.records import Settings
from specviz.sampling import BadLogits
from specviz.text import Texts


@pytest.mark.parametrize("gamma", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("drafter, kind", DRAFTERS)
def test_greedy_output_equals_plain_greedy(drafter, kind, gamma):
    settings = Settings(max_new_tokens=60, gamma=gamma)
    run = speculate(settings, draft_of(kind), drafter, **extras())
    assert new_ids(run) == greedy_reference(settings) == new_ids(plain(settings))


@pytest.mark.parametrize("drafter, kind", DRAFTERS)
@pytest.mark.parametrize("wanted", range(0, 7))
def test_never_one_token_more_than_asked(drafter, kind, wanted):
    settings = Settings(max_new_tokens=wanted, gamma=4)
    run = speculate(settings, draft_of(kind), drafter, **extras())
    assert new_ids(run) == greedy_reference(Settings(max_new_tokens=8))[:wanted]
    assert run.finish_reason == "length"


@pytest.mark.parametrize("drafter, kind", DRAFTERS)
def test_ends_at_the_context_limit(drafter, kind):
    small = wrap(target().module, context=len(PROMPT) + 9)
    run = speculate(
        Settings(max_new_tokens=50, gamma=4), draft_of(kind), drafter, **extras(), target=small
    )
    assert len(run.tokens) == len(PROMPT) + 9
    assert run.finish_reason == "context"


def test_a_draft_with_a_shorter_context_stops_drafting_but_not_the_run():
    short = wrap(noisy().module, context=len(PROMPT) + 12)
    settings = Settings(max_new_tokens=40, gamma=4)
    run = speculate(settings, short)
    assert new_ids(run) == greedy_reference(settings)
    assert {token.source for token in run.rounds[-1].committed} == {"target"}


def test_a_prompt_of_one_token_runs():
    run = speculate(Settings(max_new_tokens=12, gamma=3), noisy(), prompt=[5])
    assert run.tokens == plain(Settings(max_new_tokens=12), prompt=[5]).tokens


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="at least one token"):
        start(Settings(), noisy(), prompt=[])


@pytest.mark.parametrize("gamma", [1, 3, 5])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_self_draft_accepts_every_token_of_every_round(gamma, temperature):
    settings = Settings(max_new_tokens=50, gamma=gamma, temperature=temperature)
    run = speculate(settings, target())
    # p and q come from calls of different shapes, so p/q may fall a rounding below 1.
    for round_ in run.rounds:
        assert round_.accepted == len(round_.drafted)
    assert all(round_.added.fate in ("bonus", "target") for round_ in run.rounds)


def test_after_full_acceptance_the_drafts_cache_holds_the_whole_text():
    run = start(Settings(max_new_tokens=40, gamma=4), target())
    for round_ in run:
        drafter = run._drafter
        assert drafter._tokens[: len(run.tokens)] == run.tokens[: len(drafter._tokens)]
        assert round_.accepted == len(round_.drafted)


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    settings = Settings(max_new_tokens=30, gamma=3, temperature=1.0, seed=11)
    first, second = speculate(settings, noisy()), speculate(settings, noisy())
    other = speculate(Settings(**{**vars_of(settings), "seed": 12}), noisy())
    assert first.tokens == second.tokens != other.tokens


def test_two_runs_side_by_side_do_not_disturb_each_other():
    settings = Settings(max_new_tokens=30, gamma=3, temperature=1.0, seed=5)
    alone = speculate(settings, noisy())
    one, two = start(settings, noisy()), start(settings, noisy())
    for _ in range(60):
        next(one, None), next(two, None)
    assert one.tokens == two.tokens == alone.tokens


def vars_of(settings):
    return {name: getattr(settings, name) for name in settings.__slots__}


def test_target_calls_are_one_a_token_in_the_baseline():
    run = plain(Settings(max_new_tokens=20))
    assert metrics.figures(metrics.Tally.of(run.rounds)).tokens_per_target_call == 1


class CountingClock:
    """Moves on by one second at each reading."""

    def __init__(self):
        self.time = 0

    def now(self):
        self.time += 1
        return self.time


def test_recording_stands_on_no_decode_clock():
    run = baseline(
        target(), PROMPT, Settings(max_new_tokens=5), texts=Texts(ByteTokenizer()),
        clock=CountingClock(),
    )  # fmt: skip
    list(run)
    assert run.seconds == 5 * 3
    assert run.observe_s == 5


def test_inference_mode_does_not_leak_out_of_the_loop():
    run = start(Settings(max_new_tokens=8, gamma=2), noisy())
    next(run)
    assert not torch.is_inference_mode_enabled()


def test_nan_logits_end_in_an_error_that_says_so():
    broken = llama(0)
    with torch.no_grad():
        broken.lm_head.weight.fill_(float("nan"))
    for temperature in (0.0, 1.0):
        settings = Settings(max_new_tokens=4, gamma=2, temperature=temperature)
        with pytest.raises(BadLogits, match="not numbers"):
            speculate(settings, noisy(), target=wrap(broken))
