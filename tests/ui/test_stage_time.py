"""The stage in time: replay, stepping, live runs, the keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import events_of, rounds_of

__all__ = ["address", "open_stage"]


def test_a_replay_plays_both_lanes_on_their_own_clocks(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.playhead.time > 0.8")
    (ended, shown), (plain_ended, plain_shown) = stage.ask("probe.lanesInTime()")
    assert ended == shown > 0
    assert plain_ended == plain_shown > 0
    stage.until("stage.playhead.time === stage.model.seconds && !stage.playhead.playing")


def test_drafted_tokens_look_drafted_until_their_verdict(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.model.done")
    stage.ask("seekIntoCall", 2)
    stage.settle()
    drafting = [fate for fate in stage.ask("drawn", "speculative") if fate == "drafting"]
    assert len(drafting) == len(rounds_of("sampling")[2]["drafted"])


def test_reduced_motion_shows_the_finished_state_at_once(open_stage: Open) -> None:
    stage = open_stage("run=sampling", reduced_motion="reduce")
    stage.until("stage.model.done && stage.playhead.atEnd()")
    stage.settle()
    assert not stage.ask("stage.playhead.playing")
    assert stage.text(".sv-headline-value") != "—"


def test_rounds_are_stepped_forward_and_back(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.model.done")
    stage.press("To the start")
    stage.press("Next round")
    stage.press("Next round")
    assert stage.ask("probe.position()") == [2, 0]
    stage.press("Previous round")
    assert stage.ask("probe.position()") == [1, 0]
    first = rounds_of("sampling")[0]
    expected = [token["fate"] for token in [*first["drafted"], first["added"]]]
    assert stage.ask("drawn", "speculative") == expected


def test_a_round_is_stepped_through_decision_by_decision(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.model.done")
    stage.press("To the start")
    round_ = rounds_of("sampling")[0]
    drafted = round_["drafted"]
    for i in range(len(drafted)):
        stage.press("Next decision")
        assert stage.ask("drawn", "speculative") == ["drafting"] * (i + 1)
        assert "The target has not looked at it yet." in stage.text(".sv-verdict")
        assert stage.count(".sv-line") == 0
    stage.press("Next decision")
    assert "the target call" in stage.text(".sv-panel-title")
    for i, token in enumerate(token for token in drafted if token["fate"] != "discarded"):
        stage.press("Next decision")
        assert stage.ask("drawn", "speculative")[i] == token["fate"]
        assert stage.text(".sv-badge") == token["fate"]
    stage.press("Next decision")
    fates = [token["fate"] for token in [*drafted, round_["added"]]]
    assert stage.ask("drawn", "speculative") == fates
    stage.press("Previous decision")
    assert stage.ask("drawn", "speculative") == fates[:-1]


def test_the_keyboard_drives_the_stage(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.model.done")
    stage.page.locator(".sv-stage").focus()
    press = stage.page.keyboard.press
    press("Home")
    assert stage.ask("stage.playhead.time") == 0
    press("ArrowRight")
    assert stage.ask("probe.position()") == [1, 0]
    press(".")
    assert stage.ask("probe.position()") == [1, 1]
    press(",")
    press("ArrowLeft")
    assert stage.ask("probe.position()") == [0, 0]
    press("Space")
    assert stage.ask("stage.playhead.playing")
    press("Space")
    assert not stage.ask("stage.playhead.playing")
    press("End")
    assert stage.ask("stage.playhead.time === stage.model.seconds")


def test_a_live_run_is_followed_paused_and_caught_up_with(open_stage: Open) -> None:
    stage = open_stage("run=sampling&mode=live&each=3")
    stage.until("stage.model.ordered.length > 12")
    stage.press("Pause")
    time = stage.ask("stage.playhead.time")
    stage.until("stage.model.ordered.length > 30")
    assert stage.ask("stage.playhead.time") == time
    stage.press("Previous round")
    stage.press("Catch up")
    assert stage.ask("stage.playhead.following && stage.playhead.time === stage.model.seconds")
    stage.until("window.dripped")
    expect(stage.page.locator(".sv-stage")).to_have_attribute("data-phase", "finished")


def test_a_live_run_fed_round_by_round_shows_each_round(open_stage: Open) -> None:
    stage = open_stage()
    events = [e for e in events_of("sampling") if e.get("lane") != "baseline"]
    events[0].update(mode="live")
    rounds = 0
    for i, event in enumerate(events[:9]):
        stage.feed(events[: i + 1])
        rounds += event["e"] == "round"
        assert stage.count("[data-lane=speculative] .sv-round") == rounds


def test_scrubbing_back_shows_the_figures_of_that_moment(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.ask("stage.actions.seek(0.5)")
    stage.settle()
    assert float(stage.text(".sv-card-value")) == pytest.approx(stage.ask("tarAt", 0.5), abs=0.005)


def test_presentation_shows_the_stream_the_headline_and_the_inspector(open_stage: Open) -> None:
    stage = open_stage("run=sampling", width=1024, height=768).to_end()
    stage.page.keyboard.press("p")
    stage.settle()
    for selector in (".sv-headline", ".sv-stream", ".sv-inspector"):
        expect(stage.page.locator(selector)).to_be_visible()
    for selector in (".sv-cards", ".sv-transport", ".sv-timeline", ".sv-plots", ".controls"):
        assert stage.ask("isCovered", selector), selector
    assert stage.ask("style", "[data-lane=speculative] .sv-text", "fontSize") == "28px"
    stage.page.keyboard.press("Home")
    stage.page.keyboard.press(".")
    assert stage.ask("stage.playhead.step") == 1
    stage.page.keyboard.press("Escape")
    expect(stage.page.locator(".sv-transport")).to_be_visible()


def test_the_sheet_of_keys_opens_on_a_question_mark(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.page.keyboard.press("?")
    sheet = stage.page.get_by_role("dialog", name="Keys")
    expect(sheet).to_be_visible()
    stage.page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()


def test_a_run_that_goes_step_by_step_explains_its_last_decision(open_stage: Open) -> None:
    stage = open_stage()
    events = [e for e in events_of("sampling") if e.get("lane") != "baseline"][:3]
    events[0].update(mode="live")
    stage.feed(events)
    stage.until("document.querySelector('.sv-badge')")
    assert stage.text(".sv-badge") == events[-1]["round"]["added"]["fate"]


def test_without_a_run_the_buttons_say_why_they_cannot_be_used(open_stage: Open) -> None:
    stage = open_stage()
    play = stage.page.get_by_role("button", name="Play")
    expect(play).to_have_attribute("aria-disabled", "true")
    expect(play).to_have_attribute("title", "Nothing to play yet")
    stage.feed(events_of("sampling"))
    stage.to_end()
    assert play.get_attribute("aria-disabled") is None
    stage.press("To the end")
    assert stage.ask("stage.playhead.time === stage.model.seconds")
