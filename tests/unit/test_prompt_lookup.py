"""Guesses copied from the text."""

from __future__ import annotations

from kit import speculate

from specviz import metrics
from specviz.drafters.prompt_lookup import PromptLookup
from specviz.records import Settings


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
