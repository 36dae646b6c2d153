"""Guessing the verdicts: nothing on the page knows more than the audience; the score is kept."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import StagePage, events_of, rounds_of

__all__ = ["address", "open_stage"]

# Everything a page can show or say: its elements with their attributes and the time axis.
SEEN = """() => {
  const stage = document.querySelector('.sv-stage');
  return [stage.outerHTML, stage.querySelector('canvas')?.toDataURL() ?? ''];
}"""

# No frame has been drawn for as long as thirty would take: the charts come when there is time.
AT_REST = """() => new Promise((resolve) => {
  let frames = -1, quiet = 0;
  const look = () => {
    quiet = stage.costs.frames === frames ? quiet + 1 : 0;
    frames = stage.costs.frames;
    if (quiet > 30) resolve();
    else requestAnimationFrame(look);
  };
  look();
})"""


def fates_of(run: str) -> list[bool]:
    """Whether each tested guess of a run was kept, in order."""
    tested = (t for r in rounds_of(run) for t in r.get("drafted", []) if t["fate"] != "discarded")
    return [token["fate"] == "accepted" for token in tested]


def with_another_verdict(run: str) -> list[dict[str, Any]]:
    """The run with its first verdict turned, and all that hangs on it: what else was recorded of
    the round, and every figure after it."""
    events = copy.deepcopy(events_of(run))
    rounds = [e for e in events if e["e"] == "round" and e["lane"] == "speculative"]
    first = rounds[0]["round"]
    assert first["drafted"][0]["fate"] == "accepted"
    for i, token in enumerate(first["drafted"]):
        token["fate"] = "discarded" if i else "rejected"
        for name in ("p", "u", "p_top", "q_top")[: 4 if i else 0]:
            token.pop(name, None)
    asked = first["drafted"][0]
    asked["residual_top"] = [[1, " other", 1.0]]
    if "u" in asked:
        asked["u"] = 0.999
        asked["p_top"] = [*asked["p_top"], [1, " other", 1e-5]]
    else:
        asked.update(p=0.0, p_top=[[1, " other", 0.9]])
    first["added"].update(text=" other", fate="resampled")
    kept = [e for e in events if e is rounds[0] or e not in rounds]
    for event in kept:
        if event["e"] == "round":
            event["figures"].update(tar=0.0, alpha=0.0, tokens_per_target_call=1.0, speedup=0.5)
        if event["e"] == "round" and event["lane"] == "baseline":
            event["round"]["added"]["text"] = " other"
    return kept


def seen_at_the_first_question(stage: StagePage, events: list[dict[str, Any]]) -> list[Any]:
    """Everything there is to see, also under the pointer, when the first verdict is asked for.
    The guessing begins before the run is there: nothing of it was ever on screen."""
    stage.feed(events[:1])
    stage.ask("stage.actions.predict()")
    stage.feed(events)
    stage.ask("stage.actions.nextQuestion()")
    stage.until("document.querySelector('.sv-answers')")
    stage.until("document.querySelector('.sv-announcer').textContent.includes('Kept')")
    stage.ask(AT_REST)
    seen = [stage.ask(SEEN)]
    for i in range(4):
        token = stage.page.locator(f".sv-tok[data-k='speculative:0:{i}']")
        token.dispatch_event("pointerover")
        stage.settle()
        seen.append(stage.ask(SEEN))
        token.dispatch_event("pointerleave")
    axis = stage.page.locator(".sv-axis")
    box = axis.bounding_box()
    axis.hover(position={"x": box["width"] * 0.9, "y": 16})
    stage.settle()
    seen.append(stage.ask(SEEN))
    seen.append(json.loads(stage.ask("JSON.stringify(stage.model.ordered)")))
    return seen


@pytest.mark.parametrize("run", ["sampling", "greedy"])
def test_a_hidden_verdict_changes_nothing_on_the_page(open_stage: Open, run: str) -> None:
    events = seen_at_the_first_question(open_stage(), events_of(run))
    others = seen_at_the_first_question(open_stage(), with_another_verdict(run))
    assert events == others


def test_the_other_verdict_would_be_seen_if_it_were_not_hidden(open_stage: Open) -> None:
    seen = []
    for events in (events_of("sampling"), with_another_verdict("sampling")):
        stage = open_stage()
        stage.feed(events)
        stage.ask("stage.actions.goToRound(1)")
        stage.settle()
        seen.append(stage.text(".sv-text"))
    assert seen[0] != seen[1]


def test_the_score_counts_right_guesses(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.ask("stage.actions.predict()")
    kept = fates_of("sampling")
    right = 0
    for asked, fate in enumerate(kept[:6], 1):
        guess = asked % 3 != 0
        right += guess == fate
        stage.ask("stage.actions.nextQuestion()")
        stage.settle()
        stage.ask(f"stage.actions.say({json.dumps(guess)})")
        stage.settle()
        assert stage.text(".sv-predict h3") == ("Right." if guess == fate else "Wrong.")
        assert stage.text(".sv-score") == f"{right} of {asked} right."


def test_a_round_is_guessed_with_the_keyboard(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.page.locator(".sv-stage").focus()
    press = stage.page.keyboard.press
    press("g")
    expect(stage.page.locator(".sv-predict h3")).to_have_text("Kept or thrown away?")
    assert stage.ask("drawn", "speculative") == ["drafting"] * 4
    press(".")
    press("ArrowRight")
    press("End")
    stage.settle()
    assert stage.ask("drawn", "speculative") == ["drafting"] * 4
    press("k")
    stage.settle()
    assert stage.ask("drawn", "speculative") == ["accepted", *["drafting"] * 3]
    press("Space")
    expect(stage.page.locator(".sv-predict h3")).to_have_text("Kept or thrown away?")
    press("x")
    expect(stage.page.locator(".sv-score")).to_contain_text("of 2 right")
    press("g")
    expect(stage.page.locator(".sv-predict")).to_be_hidden()
    press("End")
    stage.until("stage.playhead.time === stage.model.seconds && probe.whole()")


def test_after_the_last_verdict_the_whole_run_is_shown(open_stage: Open) -> None:
    stage = open_stage()
    events = [e for e in events_of("sampling") if e.get("lane") != "baseline"]
    events = [*events[:3], {"e": "end", "lane": "speculative", "finish_reason": "length"}]
    events[0]["lanes"] = ["speculative"]
    stage.feed(events)
    stage.ask("stage.actions.predict()")
    tested = [t for t in events[2]["round"]["drafted"] if t["fate"] != "discarded"]
    for _ in tested:
        stage.ask("stage.actions.nextQuestion()")
        stage.ask("stage.actions.say(true)")
    stage.settle()
    assert "no more verdicts" in stage.text(".sv-predict")
    assert stage.text(".sv-score").endswith(f"of {len(tested)} right.")
    stage.ask("stage.actions.end()")
    stage.settle()
    assert stage.ask("drawn", "speculative")[-1] == events[2]["round"]["added"]["fate"]


def test_a_question_stands_while_a_live_run_goes_on(open_stage: Open) -> None:
    stage = open_stage("run=sampling&mode=live&each=2")
    stage.until("stage.model.ordered.length > 4")
    stage.ask("stage.actions.predict()")
    rounds = stage.ask("stage.model.lanes.speculative.rounds.length")
    stage.until("window.dripped")
    stage.settle()
    assert stage.ask("stage.model.lanes.speculative.rounds.length") in (rounds, rounds + 1)
    stage.ask("stage.actions.predict()")
    stage.settle()
    assert stage.ask("stage.model.lanes.speculative.rounds.length") == len(rounds_of("sampling"))


def test_the_live_region_asks_and_then_tells(open_stage: Open) -> None:
    stage = open_stage("run=sampling", reduced_motion="reduce").to_end()
    stage.ask("probe.listen()")
    stage.ask("stage.actions.predict()")
    stage.until("said.some(([, text]) => text.includes('Kept or thrown away'))")
    assert not [text for _, text in stage.ask("said") if "accepted" in text or "reject" in text]
    stage.ask("stage.actions.say(true)")
    stage.until("said.at(-1)[1].endsWith('1 of 1 right.')")
