"""What if: what the recorded numbers say about another u, another gamma and the mean of a round,
and where they stop saying anything."""

from __future__ import annotations

import json
from typing import Any

import pytest
from stage_fixtures import Open, address, open_stage
from stage_page import StagePage

__all__ = ["address", "open_stage"]

SAMPLED = {"temperature": 0.8, "gamma": 4, "max_new_tokens": 80}
GREEDY = SAMPLED | {"temperature": 0}


def drafted(text: str, fate: str, p: float | None, q: float, u: float | None) -> dict[str, Any]:
    token: dict[str, Any] = {"id": ord(text[-1]), "text": text, "fate": fate, "q": q}
    return {**token, "source": "draft model", "p": p, "u": u, "p_top": [], "q_top": []}


def round_of(*tokens: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """A round as the stage's model holds it, after ten tokens of text."""
    accepted = sum(token["fate"] == "accepted" for token in tokens)
    tested = sum(token["fate"] != "discarded" for token in tokens)
    counts = {"drafted": len(tokens), "tested": tested, "accepted": accepted}
    return {"lane": "speculative", "index": 3, "position": 10, "tokens": [*tokens, added], **counts}


REJECTED = round_of(
    drafted(" a", "accepted", 0.4, 0.8, 0.3),
    {
        **drafted(" b", "rejected", 0.1, 0.5, 0.6),
        "p_top": [[1, " c", 0.7], [98, " b", 0.1], [2, " d", 0.2]],
        "q_top": [[98, " b", 0.5], [1, " c", 0.3], [2, " d", 0.2]],
    },
    drafted(" x", "discarded", None, 0.9, None),
    drafted(" y", "discarded", None, 0.9, None),
    added={"id": 1, "text": " c", "fate": "resampled", "source": "target", "p": 0.7},
)
KEPT = round_of(
    {
        **drafted(" a", "accepted", 0.4, 0.8, 0.3),
        "p_top": [[7, " z", 0.6], [97, " a", 0.4]],
        "q_top": [[97, " a", 0.8], [7, " z", 0.2]],
    },
    drafted(" b", "accepted", 0.5, 0.5, 0.6),
    added={"id": 3, "text": " c", "fate": "bonus", "source": "target", "p": 0.9},
)


def ask(stage: StagePage, name: str, *values: Any) -> Any:
    """The value of a function of whatif.js, its words with plain spaces."""
    text = stage.page.evaluate(
        """async ([name, values]) => {
          const value = (await import('/assets/js/whatif.js'))[name](...values);
          return JSON.stringify(value ?? null).replaceAll('\\u00a0', ' ');
        }""",
        [name, list(values)],
    )
    return json.loads(text)


def other_u(stage: StagePage, round_: dict[str, Any], index: int, u: float) -> dict[str, str]:
    token = round_["tokens"][index]
    return ask(stage, "withOtherU", {"token": token, "round": round_, "index": index}, u)


def test_a_u_on_the_same_side_changes_nothing(open_stage: Open) -> None:
    stage = open_stage()
    assert other_u(stage, REJECTED, 0, 0.49)["until"] == ""
    assert "Still accepted" in other_u(stage, REJECTED, 0, 0.49)["words"]
    assert "Still rejected" in other_u(stage, REJECTED, 1, 0.2)["words"]


def test_a_larger_u_rejects_and_says_what_the_residual_holds(open_stage: Open) -> None:
    said = other_u(open_stage(), KEPT, 0, 0.5)
    assert "keeps 0 guesses instead of 2" in said["words"]
    assert "' b', would be discarded" in said["words"]
    assert "' z' 0.40" in said["words"]
    assert "from token 11 on nothing is known" in said["until"]


def test_a_smaller_u_accepts_and_what_follows_was_not_recorded(open_stage: Open) -> None:
    said = other_u(open_stage(), REJECTED, 1, 0.19)
    assert "' b' would be kept, and ' c' not drawn in its place" in said["words"]
    assert "probability of ' x' was not recorded: from token 13 on" in said["until"]


@pytest.mark.parametrize(
    ("round_", "settings", "gamma", "words", "until"),
    [
        (REJECTED, SAMPLED, 4, "As recorded.", ""),
        (REJECTED, SAMPLED, 2, "2 guesses fewer would be drafted in vain", ""),
        (REJECTED, SAMPLED, 6, "' b' is rejected either way", ""),
        (REJECTED, SAMPLED, 1, "drawn from p, where ' c' has 0.70", "from token 12 on nothing"),
        (REJECTED, GREEDY, 1, "first choice is ' c', so the text stays", "begin at token 13"),
        (KEPT, SAMPLED, 3, "Nothing changes: no more than this could be drafted", ""),
        (KEPT, SAMPLED | {"gamma": 2}, 3, "All 2 guesses stay", "from token 13 on nothing"),
        (KEPT, GREEDY | {"gamma": 2}, 3, "The text stays the same", "from token 13 on is not"),
        (KEPT | {"gamma": 2}, SAMPLED, 3, "All 2 guesses stay", "from token 13 on nothing"),
        (KEPT, SAMPLED | {"max_new_tokens": 13}, 3, "Nothing changes", ""),
        (KEPT, SAMPLED, 0, "the target writes one token", "from token 11 on nothing is known"),
    ],
)
def test_another_gamma_is_followed_as_far_as_it_is_known(
    open_stage: Open, round_: Any, settings: Any, gamma: int, words: str, until: str
) -> None:
    said = ask(open_stage(), "withOtherGamma", round_, settings, gamma)
    assert words in said["words"]
    assert until in said["until"]
    assert bool(until) == bool(said["until"])


def test_the_expected_number_accepted_is_the_sum_of_chances_to_get_so_far(
    open_stage: Open,
) -> None:
    stage = open_stage()
    whole = ask(stage, "expectedAccepted", KEPT)
    assert whole["low"] == whole["high"] == pytest.approx(0.5 + 0.5 * 1)
    part = ask(stage, "expectedAccepted", REJECTED)
    assert part["low"] == pytest.approx(0.5 + 0.5 * 0.2)
    assert part["high"] == pytest.approx(0.5 + 0.5 * 0.2 * (1 + 2))
    untested = {**KEPT, "tokens": [{**KEPT["tokens"][0], "q": None}, *KEPT["tokens"][1:]]}
    assert ask(stage, "expectedAccepted", untested) is None


def test_both_rules_of_acceptance_are_compared(open_stage: Open) -> None:
    rules = ask(open_stage(), "passingRules", KEPT["tokens"][0])
    assert rules["ratio"] == pytest.approx(0.4 + 0.2)
    assert rules["same"] == pytest.approx(0.4 * 0.8 + 0.6 * 0.2)
    assert rules["whole"]


def test_the_sliders_answer_and_keep_their_focus(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.pin("rejected")
    stage.page.locator(".sv-stage").focus()
    stage.page.keyboard.press("i")
    slider = stage.page.get_by_role("slider", name="Another u")
    assert "Still rejected" in stage.text(".sv-otherwise")
    slider.focus()
    stage.page.keyboard.press("Home")
    assert "would be kept" in stage.text(".sv-otherwise")
    assert "not recorded" in stage.text(".sv-until")
    stage.settle()
    assert stage.ask("document.activeElement.getAttribute('aria-label')") == "Another u"
    assert stage.ask("stage.playhead.time === stage.model.seconds")


def test_what_was_not_drawn_cannot_be_varied(open_stage: Open) -> None:
    stage = open_stage("run=greedy").to_end()
    stage.pin("accepted")
    assert "At temperature 0 no u is drawn." in stage.text(".sv-whatif")
    assert stage.ask("probe.style('.sv-slider', 'display')") == "none"
    stage.page.locator("[data-lane=baseline] .sv-tok").first.dispatch_event("click")
    stage.settle()
    assert stage.ask("probe.style('.sv-whatif', 'display')") == "none"
