"""Where a text ends: end tokens, stop strings, and being stopped."""

from __future__ import annotations

import pytest
import torch
from every_drafter import DRAFTERS, draft_of, extras, greedy_reference
from kit import ByteTokenizer, new_ids, noisy, pair, plain, speculate, start

from specviz import metrics
from specviz.cache import LanguageModel
from specviz.lossless.tables import TableModel
from specviz.records import Settings, Trace
from specviz.trace import dump_trace, load_trace


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


@pytest.mark.parametrize("gamma", [0, 1])
def test_a_run_stopped_inside_a_character_shows_what_there_is_of_it(gamma):
    model = writer_of(list("?!a€".encode()))
    run = start(Settings(max_new_tokens=40, gamma=gamma), model, prompt=list(b"?!"), target=model)
    while bytes(run.tokens) not in (b"?!a\xe2", b"?!a\xe2\x82"):
        next(run)
    before = run.run()
    assert before.text == "a"
    run.stop()
    run.stop()
    assert run.run().text == "a\N{REPLACEMENT CHARACTER}" == ByteTokenizer().decode(run.tokens[2:])
    assert run.run().tokens[-1].label == ""
    assert [token.id for token in run.run().tokens] == [token.id for token in before.tokens]


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
