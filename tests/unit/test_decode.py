"""The four invariants, and the ways loops like this go wrong."""

from __future__ import annotations

import sys

import pytest
import torch
from kit import (
    PROMPT,
    VOCABULARY,
    ByteTokenizer,
    feature,
    llama,
    new_ids,
    noisy,
    own_texts,
    pair,
    plain,
    speculate,
    start,
    stranger,
    target,
    wrap,
)

from specviz import drafters, metrics
from specviz.cache import CachedModel, ContextFull, LanguageModel, NotRollable
from specviz.decode import baseline
from specviz.drafters.prompt_lookup import PromptLookup
from specviz.lossless.tables import TableModel
from specviz.records import Settings, Trace
from specviz.sampling import BadLogits
from specviz.text import Texts
from specviz.trace import dump_trace, load_trace

DRAFTERS = [
    ("draft model", "noisy"),
    ("draft model", "stranger"),
    ("draft model", "self"),
    ("prompt lookup", "none"),
    ("retrieval", "none"),
    ("feature draft", "none"),
    ("combined", "noisy"),
]


def extras():
    """What the drafters that need no draft model need."""
    return {"datastore": own_texts(), "feature": feature()}


def draft_of(kind):
    return {"noisy": noisy, "stranger": stranger, "self": target, "none": lambda: None}[kind]()


def greedy_reference(settings, **extra):
    """The target's own greedy text by transformers' generate."""
    ids = torch.tensor([PROMPT])
    out = target().module.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=settings.max_new_tokens,
        do_sample=False,
        pad_token_id=0,
        **extra,
    )
    return out[0, len(PROMPT) :].tolist()


# --- invariant 1: greedy output is the target's own --------------------------------------


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


# --- invariant 2: self-draft accepts everything ------------------------------------------


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


# --- reading the trace: probabilities are the model's ------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        Settings(max_new_tokens=24, gamma=3, temperature=0.8, top_k=20, top_p=0.9, seed=3),
        Settings(max_new_tokens=24, gamma=3, temperature=1.0, seed=4),
    ],
)
def test_recorded_probabilities_equal_one_uncached_forward(settings):
    run = speculate(settings, noisy())
    _check_against_uncached(run, settings, noisy())


def _check_against_uncached(run, settings, draft):
    text = list(PROMPT)
    for round_ in run.rounds:
        prefix = list(text)
        for token in round_.drafted:
            if token.fate != "discarded":
                assert token.p == pytest.approx(
                    _law(target(), prefix, settings)[token.id], abs=1e-4
                )
                assert token.q == pytest.approx(_law(draft, prefix, settings)[token.id], abs=1e-4)
                assert (token.u < token.p / token.q) == (token.fate == "accepted")
            prefix.append(token.id)
        text += [token.id for token in round_.committed]
    assert text == run.tokens


def _law(model, prefix, settings):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    with torch.no_grad():
        scores = model.module(torch.tensor([prefix])).logits[:, -1]
    scores = TemperatureLogitsWarper(float(settings.temperature))(None, scores)
    if settings.top_k:
        scores = TopKLogitsWarper(settings.top_k)(None, scores)
    if settings.top_p < 1:
        scores = TopPLogitsWarper(settings.top_p)(None, scores)
    return scores.softmax(-1)[0].tolist()


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


# --- ends of text ------------------------------------------------------------------------


@pytest.mark.parametrize("drafter, kind", DRAFTERS)
@pytest.mark.parametrize("gamma", [1, 4, 8])
def test_eos_ends_text_cache_metrics_and_trace_at_the_first_of_several(drafter, kind, gamma):
    text = greedy_reference(Settings(max_new_tokens=40))
    eos_ids = (text[9], text[14], 63)
    first = min(text.index(eos) for eos in eos_ids if eos in text)
    settings = Settings(max_new_tokens=40, gamma=gamma)
    run = speculate(settings, draft_of(kind), drafter, **extras(), eos_ids=eos_ids)
    assert new_ids(run) == text[: first + 1]
    assert run.finish_reason == "eos"
    assert [token.id for token in run.run().tokens] == new_ids(run)
    tally = metrics.Tally.of(run.rounds)
    assert tally.committed == first + 1
    last = run.rounds[-1]
    if last.added is None:
        behind = [t.fate for t in last.drafted[last.accepted :]]
        assert set(behind) <= {"discarded"}


@pytest.mark.parametrize("drafter, kind", DRAFTERS)
def test_wherever_the_text_ends_nothing_behind_it_is_tested_and_the_trace_can_be_read(
    drafter, kind
):
    for eos in dict.fromkeys(greedy_reference(Settings(max_new_tokens=30))):
        run = speculate(
            Settings(max_new_tokens=30, gamma=4),
            draft_of(kind),
            drafter,
            **extras(),
            eos_ids=(eos,),
        )
        last = run.rounds[-1]
        assert run._target.length <= len(run.tokens)
        if last.added is None:
            assert {t.fate for t in last.drafted[last.accepted :]} <= {"discarded"}
            assert last.tested == last.accepted
        trace = Trace(pair(None).info, pair(None).machine, run.settings, "", (), (run.run(),))
        assert dump_trace(load_trace(dump_trace(trace))) == dump_trace(trace)


@pytest.mark.parametrize("gamma", [1, 3, 8])
def test_min_new_tokens_holds_the_end_back_exactly_as_long_as_generate_does(gamma):
    eos = greedy_reference(Settings(max_new_tokens=40))[5]
    settings = Settings(max_new_tokens=30, gamma=gamma, min_new_tokens=12)
    expected = greedy_reference(settings, min_new_tokens=12, eos_token_id=eos)
    assert new_ids(speculate(settings, noisy(), eos_ids=(eos,))) == expected


@pytest.mark.parametrize("gamma", [1, 3, 8])
@pytest.mark.parametrize("drafter, kind", DRAFTERS)
@pytest.mark.parametrize("name, value", [("repetition_penalty", 1.3), ("no_repeat_ngram_size", 2)])
def test_processors_see_each_rows_own_prefix(name, value, drafter, kind, gamma):
    settings = Settings(max_new_tokens=40, gamma=gamma, **{name: value})
    expected = greedy_reference(settings, **{name: value})
    assert new_ids(speculate(settings, draft_of(kind), drafter, **extras())) == expected


def letters(run):
    return bytes(new_ids(run)).decode()


@pytest.mark.parametrize("gamma", [1, 4, 8])
def test_a_stop_string_over_two_tokens_and_two_rounds_ends_at_its_first_completion(gamma):
    run = speculate(Settings(max_new_tokens=40, gamma=gamma), noisy())
    text = letters(run)
    stop = text[6:9]
    end = text.index(stop) + len(stop)
    stopped = speculate(Settings(max_new_tokens=40, gamma=gamma, stop=("zz", stop)), noisy())
    assert letters(stopped) == text[:end]
    assert stopped.run().text == text[: end - len(stop)]
    assert stopped.finish_reason == "stop"
    unstopped = plain(Settings(max_new_tokens=40, stop=("zz", stop)))
    assert new_ids(unstopped) == new_ids(stopped)


# --- the loop around it ------------------------------------------------------------------


def test_a_stopped_run_keeps_what_it_has():
    run = start(Settings(max_new_tokens=40, gamma=2), noisy())
    next(run)
    next(run)
    before = list(run.tokens)
    run.stop()
    assert list(run) == []
    assert run.tokens == before
    assert run.run().finish_reason == "stopped"
    assert len(run.run().rounds) == 2


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


# --- vocabularies ------------------------------------------------------------------------


def reduced(ids):
    """The noisy draft over the ids ``ids`` only, id i of it standing for ids[i]."""
    module = llama(0, vocabulary=len(ids))
    full = noisy().module.state_dict()
    own = {
        name: weight[torch.tensor(ids)] if weight.shape[0] == VOCABULARY else weight
        for name, weight in full.items()
    }
    module.load_state_dict(own)
    return wrap(module, "reduced")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_draft_over_a_reduced_vocabulary_is_mapped_to_the_targets_ids(temperature):
    ids = (0, *range(2, VOCABULARY, 2), 5, 9, 17)
    settings = Settings(max_new_tokens=60, gamma=3, temperature=temperature, seed=2)
    run = speculate(settings, reduced(ids), draft_ids=ids, draft_unknown=0)
    drafted = [t for r in run.rounds for t in r.drafted]
    assert all(token.id in ids for token in drafted)
    assert any(token.fate == "accepted" for token in drafted)
    if temperature == 0:
        assert new_ids(run) == greedy_reference(settings)


def test_a_permuted_vocabulary_drafts_exactly_as_the_plain_one():
    order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0)).tolist()
    settings = Settings(max_new_tokens=40, gamma=4)
    permuted = speculate(settings, reduced(order), draft_ids=tuple(order), draft_unknown=0)
    direct = speculate(settings, noisy())
    assert fates(permuted) == fates(direct)


def fates(run):
    return [[(token.id, token.fate) for token in round_.drafted] for round_ in run.rounds]


def test_padding_ids_of_a_larger_head_are_never_emitted():
    cut = LanguageModel("cut", target().module, VOCABULARY - 10, 256)
    run = speculate(
        Settings(max_new_tokens=80, gamma=3, temperature=2.0), noisy(), target=cut
    )  # fmt: skip
    assert max(new_ids(run)) < VOCABULARY - 10


# --- prompt lookup -----------------------------------------------------------------------


def test_prompt_lookup_takes_the_longest_match_and_says_where_from():
    tokens = [1, 2, 3, 9, 9, 2, 3, 7, 8, 1, 2, 3]
    guesses = PromptLookup().draft(tokens, 3)
    assert [guess.id for guess in guesses] == [9, 9, 2]
    assert [guess.copied_from for guess in guesses] == [3, 4, 5]
    assert {guess.matched for guess in guesses} == {3}


def test_prompt_lookup_goes_on_with_a_repetition_past_the_end_of_the_text():
    guesses = PromptLookup().draft([1, 2, 1, 2, 1, 2], 5)
    assert [guess.id for guess in guesses] == [1, 2, 1, 2, 1]
    assert max(guess.copied_from for guess in guesses) < 6


def test_prompt_lookup_prefers_the_most_recent_of_equal_matches():
    tokens = [1, 2, 50, 1, 2, 60, 1, 2]
    assert PromptLookup().draft(tokens, 1)[0].id == 60


def test_prompt_lookup_is_silent_where_nothing_repeats_and_the_round_counts_as_undrafted():
    assert PromptLookup().draft([1, 2, 3, 4, 5], 4) == []
    run = speculate(Settings(max_new_tokens=3, gamma=4), None, "prompt lookup", prompt=[1, 2, 3])
    assert metrics.figures(metrics.Tally.of(run.rounds[:1])).tar is None
    assert run.rounds[0].added.fate == "target"


# --- the cache ---------------------------------------------------------------------------


@pytest.mark.parametrize("context", [40, 700])
def test_rolled_back_cache_gives_the_logits_of_a_fresh_one(context):
    cached = CachedModel(target() if context < 256 else wrap(target().module, context=1024))
    ids = [(7 * i) % VOCABULARY for i in range(context)]
    with torch.no_grad():
        cached.append(ids)
        cached.append([1, 2, 3], keep=3)
        cached.roll_back(context + 1)
        again = cached.append([4, 5], keep=2)
        fresh = target().module(torch.tensor([[*ids, 1, 4, 5]])).logits[0, -2:]
    assert cached.length == context + 3
    torch.testing.assert_close(again, fresh, rtol=1e-4, atol=1e-4)


def test_more_tokens_than_the_context_are_refused_with_both_numbers():
    cached = CachedModel(wrap(target().module, "T", context=8))
    with pytest.raises(ContextFull, match="9 tokens are more than the 8"):
        cached.append(list(range(9)))


def test_a_sliding_window_rolls_back_exactly():
    from transformers import AutoModelForCausalLM, MistralConfig

    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, sliding_window=8, initializer_range=0.3,
    )  # fmt: skip
    module = AutoModelForCausalLM.from_config(config).eval()
    mistral = wrap(module, "sliding")
    settings = Settings(max_new_tokens=40, gamma=4)
    run = speculate(settings, stranger(), target=mistral)
    assert new_ids(run) == new_ids(plain(settings, target=mistral))


def test_a_recurrent_model_is_refused_with_the_reason():
    from transformers import AutoModelForCausalLM, MambaConfig

    torch.manual_seed(0)
    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, state_size=8)
    mamba = wrap(AutoModelForCausalLM.from_config(config).eval(), "recurrent")
    with pytest.raises(NotRollable, match="recurrent"):
        speculate(Settings(max_new_tokens=20, gamma=4), stranger(), target=mamba)


def test_pairs_without_a_draft_offer_prompt_lookup_only():
    assert drafters.names(pair(None)) == ["prompt lookup"]
    assert drafters.names(pair(noisy())) == ["combined", "draft model", "prompt lookup"]
    assert drafters.names(pair(noisy(), **extras())) == [
        "combined",
        "draft model",
        "feature draft",
        "prompt lookup",
        "retrieval",
    ]
    with pytest.raises(ValueError, match="choose one of prompt lookup"):
        start(Settings(), None, "draft model")


def test_a_drafter_is_one_file_in_the_folder(tmp_path, monkeypatch):
    (tmp_path / "echo.py").write_text(
        """
from specviz.drafters import Drafter
from specviz.sampling import Guess

NAME, SUMMARY, ORDER, GAMMA = "echo", "Says the last word again.", 99, 2


class Echo(Drafter):
    def draft(self, tokens, gamma):
        return [Guess(tokens[-1], NAME)] * gamma


def available(pair):
    return True


def create(pair, settings, prompt_length, chance):
    return Echo()
"""
    )
    monkeypatch.setattr(drafters, "__path__", [*drafters.__path__, str(tmp_path)])
    drafters.modules.cache_clear()
    try:
        assert drafters.names(pair(None))[-1] == "echo"
        assert drafters.best_gamma("echo", 7) == 2
        settings = Settings(max_new_tokens=12, gamma=2)
        run = speculate(settings, None, "echo")
        assert run.rounds[0].drafted[0].source == "echo"
        assert new_ids(run) == new_ids(plain(settings))
    finally:
        drafters.modules.cache_clear()
        sys.modules.pop("specviz.drafters.echo", None)


def test_every_built_in_drafter_says_what_it_is_and_how_long_it_drafts():
    for name, module in drafters.modules().items():
        assert module.SUMMARY.endswith(".")
        assert 1 <= drafters.best_gamma(name, 5) <= 16


def listed(candidates):
    return {candidate.id: candidate.probability for candidate in candidates}


@torch.no_grad()
def test_recorded_laws_are_those_of_forward_passes_without_any_cache():
    run = speculate(Settings(max_new_tokens=30, gamma=4, temperature=1.0), noisy())
    text, rejections = list(PROMPT), 0

    def law(model, prefix):
        return model.module(torch.tensor([prefix])).logits[0, -1].softmax(-1)

    def assert_top(candidates, expected):
        found = listed(candidates)
        assert len(found) >= 10
        for token, probability in found.items():
            assert probability == pytest.approx(expected[token].item(), rel=1e-3, abs=1e-6)
        assert max(found.values()) == pytest.approx(expected.max().item(), rel=1e-3)

    for round_ in run.rounds:
        prefix = list(text)
        for token in round_.drafted:
            if token.fate == "discarded":
                break
            p, q = law(target(), prefix), law(noisy(), prefix)
            assert_top(token.p_top, p)
            assert_top(token.q_top, q)
            if token.residual_top:
                rejections += 1
                rest = (p - q).clamp(min=0)
                for id_, probability in listed(token.residual_top).items():
                    expected = (rest[id_] / rest.sum()).item()
                    assert probability == pytest.approx(expected, rel=2e-2, abs=1e-5)
            prefix.append(token.id)
        if round_.added.fate == "bonus":
            assert_top(round_.added.p_top, law(target(), prefix))
        text += [token.id for token in round_.committed]
    assert rejections


def writer_of(ids, vocabulary=256):
    """A model that goes on from the first of ``ids`` to the last and stays there."""
    table = torch.full((vocabulary, vocabulary, vocabulary), 1e-9, dtype=torch.float32)
    table[:, :, ids[-1]] = 1e-6
    for before, last, following in zip(ids, ids[1:], ids[2:], strict=False):
        table[before, last, following] = 1.0
    return LanguageModel("writer", TableModel(table), vocabulary, 256)


@pytest.mark.parametrize("gamma", [1, 4, 8])
def test_a_stop_string_whose_characters_span_tokens_ends_where_it_is_complete(gamma):
    """One id a byte: the stop string's first letter is three tokens."""
    written = "?!aé€zé".encode()
    model = writer_of(list(written))
    settings = Settings(max_new_tokens=40, gamma=gamma, stop=("€z",))
    run = speculate(settings, model, prompt=list(b"?!"), target=model)
    assert run.run().text == "aé"
    assert run.finish_reason == "stop"
    assert bytes(run.tokens) == "?!aé€z".encode()
