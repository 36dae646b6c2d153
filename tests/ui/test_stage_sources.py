"""Where guesses come from that no model made: the text itself, or a store."""

from __future__ import annotations

from typing import Any

from stage_fixtures import Open, address, open_stage
from stage_page import KEPT, events_of

__all__ = ["address", "open_stage"]

MATCHED = 2


def retrieved(*, elsewhere: bool = False) -> list[dict[str, Any]]:
    """A run whose guesses come from a store; the passage stands on the first guess of a round."""
    events = events_of("sampling")
    text = [token[1] for token in events[0]["prompt_tokens"]]
    for event in events:
        if event["e"] != "round" or event["lane"] != "speculative":
            continue
        tokens = [*event["round"].get("drafted", []), event["round"]["added"]]
        for token in tokens[:-1]:
            token.update(source="retrieval", matched=MATCHED)
        if len(tokens) > 1:
            guessed = "".join(token["text"] for token in tokens[:-1])
            head = " another place" if elsewhere else "".join(text[-MATCHED:]) + guessed
            tokens[0]["passage"] = head + " and so on"
        text += [token["text"] for token in tokens if token["fate"] in KEPT]
    return events


def test_a_guess_from_a_store_shows_its_passage_with_the_match_and_the_guess(
    open_stage: Open,
) -> None:
    stage = open_stage()
    stage.feed(retrieved())
    stage.to_end()
    stage.page.locator("[data-lane=speculative] .sv-tok[data-k='speculative:1:1']").dispatch_event(
        "click"
    )
    stage.settle()
    first, second = retrieved_round(1)
    assert "Found in the store" in stage.text(".sv-copied")
    assert stage.text(".sv-source").endswith(" and so on")
    assert stage.text(".sv-source .sv-source-hit") == second["text"]
    assert first["text"] in stage.text(".sv-source")
    assert stage.count(".sv-text .sv-source-match") == MATCHED


def test_a_passage_that_goes_on_otherwise_is_shown_without_marks(open_stage: Open) -> None:
    stage = open_stage()
    stage.feed(retrieved(elsewhere=True))
    stage.to_end()
    stage.pin("accepted", 5)
    assert stage.count(".sv-source .sv-source-hit, .sv-source .sv-source-match") == 0
    assert "followed in others" in stage.text(".sv-copied")


def test_the_law_of_a_store_is_named_as_such(open_stage: Open) -> None:
    stage = open_stage()
    stage.feed(retrieved())
    stage.to_end()
    assert stage.pin("rejected").startswith("The store gave ")


def test_a_copy_that_repeats_with_a_period_keeps_its_match_in_place(open_stage: Open) -> None:
    stage = open_stage()
    first = {"source": "prompt lookup", "copied_from": 8, "matched": 3}
    tokens = [first, {**first, "copied_from": 9}, {**first, "copied_from": 8}]
    found = stage.page.evaluate(
        """async ([token, round]) =>
          (await import('/assets/js/sources.js')).sourceOf({ token, round })""",
        [tokens[2], {"tokens": tokens}],
    )
    assert found == {"from": 8, "start": 5, "end": 8}


def retrieved_round(index: int) -> list[dict[str, Any]]:
    """The first two guesses of a round."""
    rounds = [e for e in retrieved() if e["e"] == "round" and e["lane"] == "speculative"]
    return rounds[index]["round"]["drafted"][:2]
