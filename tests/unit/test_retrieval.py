"""The store finds what plain searching finds, and its guesses are exact like every other."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from kit import VOCABULARY, new_ids, noisy, own_texts, plain, speculate, store_of

from specviz.drafters.retrieval import Retrieval
from specviz.lossless import exact
from specviz.lossless.tables import TablePair, table_model
from specviz.records import Settings
from specviz.sampling import Filters, SeededChance

CPU = torch.device("cpu")


def random_store(seed, vocabulary=4, texts=30, length=12):
    source = random.Random(seed)
    rows = [[source.randrange(vocabulary) for _ in range(length)] for _ in range(texts)]
    return store_of(*rows), rows


def occurrences(rows, pattern):
    """Every place of ``pattern``, and what follows it there, by looking everywhere."""
    width = len(pattern)
    places = [
        (row, start)
        for row in rows
        for start in range(len(row) - width + 1)
        if row[start : start + width] == pattern
    ]
    return places, [row[start + width] for row, start in places if start + width < len(row)]


@pytest.mark.parametrize("seed", range(5))
def test_matches_and_counts_equal_those_of_a_plain_search(seed):
    store, rows = random_store(seed)
    source = random.Random(seed + 100)
    for _ in range(40):
        tokens = [source.randrange(4) for _ in range(10)]
        match = store.longest(tokens, 8, 1)
        for longer in range(match.length + 1, 9):
            assert not occurrences(rows, tokens[-longer:])[0]
        places, following = occurrences(rows, tokens[-match.length :])
        assert match.high - match.low == len(places)
        ids, counts = store.successors(match)
        assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == {
            token: following.count(token) for token in set(following)
        }


def test_narrowing_by_a_token_is_finding_the_longer_text():
    store, _ = random_store(3)
    match = store.longest([1, 2], 2, 2)
    assert store.narrow(match, 3) == store.longest([1, 2, 3], 3, 3)
    assert store.narrow(match, 60) is None


def test_no_match_runs_over_the_end_of_a_text():
    store = store_of([1, 2], [3, 4])
    assert store.longest([2, 3], 2, 2) is None
    ids, _ = store.successors(store.longest([2], 1, 1))
    assert ids.tolist() == []


def test_the_shown_passage_is_the_match_and_what_follows_within_its_text():
    store = store_of([9, 1, 2, 3, 4], [7, 7])
    assert store.passage(store.longest([1, 2], 2, 1), 10) == [1, 2, 3, 4]


def drafter(store, settings, **options):
    filters = Filters(settings, 1, (), CPU)
    return Retrieval(store, filters, SeededChance(0), VOCABULARY, **options)


def test_greedy_guesses_are_the_most_frequent_successors_of_the_longest_match():
    store = store_of([5, 1, 2, 8], [6, 1, 2, 9], [6, 1, 2, 9], [1, 2, 8], [1, 2, 8])
    guesses = drafter(store, Settings()).draft([0, 6, 1, 2], 4)
    assert [guess.id for guess in guesses] == [9]
    assert guesses[0].matched == 3


def test_a_draft_ends_where_it_becomes_unlikely():
    store = store_of([1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 6], [1, 2, 3, 7])
    assert len(drafter(store, Settings(), floor=0.5).draft([1], 4)) == 2
    assert len(drafter(store, Settings(), floor=0.0).draft([1], 4)) == 3


def test_ids_the_target_does_not_have_are_never_guessed():
    store = store_of([1, VOCABULARY + 5], [1, 7])
    guesses = drafter(store, Settings(temperature=1.0), floor=0.0).draft([1], 1)
    assert [guess.id for guess in guesses] == [7]


def test_where_the_filters_rule_everything_out_nothing_is_drafted():
    store = store_of([1, 2, 1, 2])
    settings = Settings(no_repeat_ngram_size=2, temperature=1.0)
    assert drafter(store, settings).draft([1, 2, 1], 3) == []


NAMES = ["retrieval", "combined"]


@pytest.mark.parametrize("gamma", [1, 4, 8])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extra", [{}, {"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 3}])
def test_greedy_output_is_the_targets_own(name, gamma, extra):
    settings = Settings(max_new_tokens=50, gamma=gamma, **extra)
    run = speculate(settings, noisy(), name, datastore=own_texts())
    assert new_ids(run) == new_ids(plain(settings))
    drafted = [token for round_ in run.rounds for token in round_.drafted]
    assert {token.source for token in drafted} >= {"retrieval"}


def test_own_text_is_recognised_and_accepted():
    run = speculate(Settings(max_new_tokens=40, gamma=4), None, "retrieval", datastore=own_texts())
    assert len(run.rounds) < 20
    assert run.rounds[1].drafted[0].passage


PAIR = TablePair(table_model(1), table_model(2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("filters", [{}, {"temperature": 0.7, "top_k": 3}, {"top_p": 0.8}])
def test_the_law_of_sampled_output_is_the_targets(name, filters):
    store, _ = random_store(1)
    settings = Settings(**{"max_new_tokens": 3, "gamma": 2, "temperature": 1.0, **filters})
    result = exact.compare(exact.Case("", replace(PAIR, datastore=store), settings, name))
    assert result.holds, result.gap


@pytest.mark.parametrize("beginning, source", [
    ((3, 1, 2, 3, 1, 2), "prompt lookup"), ((3, 1, 2), "retrieval"), ((0, 3), "draft model"),
])  # fmt: skip
def test_the_law_holds_whichever_source_combined_takes(beginning, source):
    store = store_of([0, 1, 2, 1, 0], [2, 2, 0])
    settings = Settings(max_new_tokens=3, gamma=2, temperature=1.0)
    draft = PAIR.draft if source == "draft model" else None
    pair = replace(PAIR, datastore=store, draft=draft)
    result = exact.compare(exact.Case("", pair, settings, "combined", beginning))
    assert result.holds, result.gap
    assert source in result.sources


def test_combined_takes_a_long_match_before_the_store_and_the_store_before_the_model():
    store = store_of([40, 41, 42], [40, 41, 42])
    settings = Settings(max_new_tokens=1, gamma=3)
    cases = {
        "prompt lookup": [1, 2, 3, 4, 50, 1, 2, 3],
        "retrieval": [9, 8, 40, 41],
        "draft model": [9, 8, 7, 6],
    }
    for source, prompt in cases.items():
        settings = Settings(max_new_tokens=4, gamma=3)
        run = speculate(settings, noisy(), "combined", prompt, datastore=store)
        assert run.rounds[0].drafted[0].source == source
