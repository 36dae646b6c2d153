"""What the stage says: headline, cards, states, the inspector, the plots."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import events_of

__all__ = ["address", "open_stage"]


# --- figures and states ---


def test_faster_and_slower_are_said_in_the_same_size(open_stage: Open) -> None:
    sizes = set()
    for run, words in (("sampling", "faster"), ("slow", "slower")):
        stage = open_stage(f"run={run}").to_end()
        assert stage.text(".sv-headline-words") == f"{words} than the target alone"
        assert re.fullmatch(r"\d+\.\d\dx", stage.text(".sv-headline-value"))
        sizes.add(stage.ask("style", ".sv-headline-value", "fontSize"))
    assert sizes == {"44px"}
    stage.press("Why?")
    tip = stage.page.get_by_role("tooltip").filter(has_text="of a target call")
    expect(tip).to_be_visible()


def test_what_was_not_measured_is_an_em_dash(open_stage: Open) -> None:
    stage = open_stage("run=alone").to_end()
    assert stage.text(".sv-headline-value") == "—"
    assert "baseline switched off" in stage.text(".sv-headline-words")
    assert stage.page.locator(".sv-card-value").last.text_content() == "—"
    assert stage.page.locator("[data-lane=baseline]").is_hidden()


def test_each_card_tells_its_definition(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    cards = stage.page.locator(".sv-card")
    for i in range(cards.count()):
        cards.nth(i).focus()
        stage.page.keyboard.press("Shift+Tab")
        stage.page.keyboard.press("Tab")
        tip = stage.page.locator(".sv-tip:not([hidden])")
        expect(tip).to_have_attribute("id", cards.nth(i).get_attribute("aria-describedby"))
        assert len(tip.text_content()) > 20
        stage.page.keyboard.press("Escape")
        expect(tip).to_have_count(0)


LOADING = {"e": "status", "message": "Loading the target", "progress": 0.4}
FAILED = {"e": "error", "message": "The target needs 12 GB; 4 GB are free."}


@pytest.mark.parametrize(
    ("events", "phase", "words"),
    [([], "empty", "Press Run"), ([LOADING], "loading", "Loading the target"),
     ([FAILED], "failed", "needs 12 GB")],
)  # fmt: skip
def test_states_without_a_run(
    open_stage: Open, events: list[dict[str, Any]], phase: str, words: str
) -> None:
    stage = open_stage()
    stage.feed(events)
    expect(stage.page.locator(".sv-stage")).to_have_attribute("data-phase", phase)
    expect(stage.page.get_by_text(words)).to_be_visible()


def test_a_failure_during_a_run_keeps_what_there_is(open_stage: Open) -> None:
    stage = open_stage()
    events = events_of("sampling")[:40]
    events[0]["mode"] = "live"
    stage.feed([*events, {"e": "error", "message": "The machine ran out of memory."}])
    expect(stage.page.get_by_text("The machine ran out of memory.")).to_be_visible()
    assert stage.count("[data-lane=speculative] .sv-tok") > 20


def test_a_stopped_run_is_kept_and_says_so(open_stage: Open) -> None:
    stage = open_stage()
    events = events_of("sampling")[:60]
    events[0]["mode"] = "live"
    tokens = [e["figures"]["tokens"] for e in events if e["e"] == "round"][-1]
    stop = {"e": "end", "finish_reason": "stopped", "text_end": None}
    stage.feed([*events, stop | {"lane": "speculative"}, stop | {"lane": "baseline"}])
    said = f"Stopped after {tokens} tokens; everything so far is kept."
    expect(stage.page.get_by_text(said)).to_be_visible()


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({}, None),
        ({"CUDA graphs": "on"}, "CUDA graphs: on"),
        ({"CUDA graphs": "off: <b>so</b>"}, "CUDA graphs: off: <b>so</b>"),
    ],
)
def test_whether_steps_were_replayed_is_said_where_the_record_tells(
    open_stage: Open, versions: dict[str, str], said: str | None
) -> None:
    stage = open_stage()
    events = events_of("greedy")[:20]
    events[0]["machine"] = {"device": "a GPU", "dtype": "bfloat16", "versions": versions}
    stage.feed(events)
    facts = stage.text(".sv-meta").split("  ·  ")
    assert facts[facts.index("a GPU, bfloat16") + 1 :] == ([said] if said else [])


PARTED = {"index": 40, "text": " a", "baseline_text": " b", "gap": 0.02, "baseline_gap": -0.01}


@pytest.mark.parametrize(
    ("same", "divergence", "temperature", "words"),
    [
        (True, None, 0, "identical text"),
        (None, None, 0.8, "sampling: two independent draws"),
        (False, PARTED, 0, "near tie at token 41: logits differ by 0.02"),
    ],
)
def test_the_comparison_with_the_baseline(
    open_stage: Open, same: bool | None, divergence: Any, temperature: float, words: str
) -> None:
    stage = open_stage()
    events = events_of("greedy")
    events[0]["settings"]["temperature"] = temperature
    events[-1].update(same_as_baseline=same, divergence=divergence)
    stage.feed(events)
    assert stage.to_end().text(".sv-same") == words


# --- the inspector ---


def test_a_rejection_is_explained_with_its_numbers(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    said = stage.pin("rejected")
    pattern = (
        r"The draft gave '.*' ([\d.]+), the target ([\d.]+): accepted with probability ([\d.]+);"
        r" u was ([\d.]+), so it is rejected\."
    )
    q, p, limit, u = (float(n) for n in re.fullmatch(pattern, said).groups())
    assert limit == pytest.approx(min(1, p / q), abs=0.02)
    assert u >= limit
    label = stage.page.locator(".sv-line").get_attribute("aria-label")
    assert label.startswith("Number line from 0 to 1: kept below")
    assert stage.count(".sv-candidates:not(.sv-residual) .sv-own") == 1


def test_a_rejection_shows_the_residual_and_what_was_drawn(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    for fate in ("rejected", "resampled"):
        said = stage.pin(fate)
        assert stage.count(".sv-residual .sv-own") == 1
        assert "drawn" in stage.text(".sv-residual .sv-own")
        assert stage.count(".sv-bar-beyond") > 0
    assert "from the residual" in said
    stage.pin("accepted", 2)
    assert stage.count(".sv-residual, .sv-bar-beyond") == 0


def test_greedy_is_explained_in_argmax_terms(open_stage: Open) -> None:
    stage = open_stage("run=greedy").to_end()
    first = r"The target's first choice is '.*' \(0\.\d+\); the draft guessed "
    assert re.fullmatch(first + r"the same: accepted\.", stage.pin("accepted", 1))
    assert re.fullmatch(first + r"'.*'.*: rejected\.", stage.pin("rejected"))
    assert stage.count(".sv-line") == 0
    said = stage.pin("resampled")
    shown = stage.text(".sv-number dd")
    assert shown != "1"
    assert f"({shown})" in said


def test_a_guess_copied_from_the_prompt_shows_where(open_stage: Open) -> None:
    stage = open_stage("run=lookup").to_end()
    stage.pin("accepted", 2)
    token = stage.ask("tokens", "accepted")[2]
    prompt = stage.ask("stage.model.start.prompt_tokens.map(t => t[1])")
    assert stage.text(".sv-source .sv-source-hit") == prompt[token["copied_from"]]
    assert stage.count(".sv-source .sv-source-match") == token["matched"]


def test_a_guess_copied_from_the_text_lights_up_its_source(open_stage: Open) -> None:
    stage = open_stage("run=lookup").to_end()
    key = stage.ask("probe.copiedFromText()")
    stage.page.locator(f".sv-tok[data-k='{key}']").dispatch_event("click")
    stage.settle()
    assert stage.count(".sv-text .sv-source-hit") == 1
    assert stage.count(".sv-text .sv-source-match") == 3
    assert stage.text(".sv-text .sv-source-hit") == stage.text(".sv-source .sv-source-hit")


def test_the_short_form_of_a_long_token_keeps_its_numbers_inside(open_stage: Open) -> None:
    events = events_of("sampling")
    drafted = next(e for e in events if e["e"] == "round" and e["lane"] == "speculative")
    drafted["round"]["drafted"][0]["text"] = " extraordinarily" * 4
    for width in (1440, 390):
        stage = open_stage(width=width, reduced_motion="reduce")
        stage.feed(events)
        stage.ask("stage.actions.end()")
        stage.settle()
        stage.page.locator(".sv-tok[data-k='speculative:0:0']").dispatch_event("pointerover")
        stage.settle()
        tip = stage.page.locator(".sv-tip-token")
        numbers = tip.locator("span")
        assert " u 0." in numbers.text_content()
        frame, inner = tip.bounding_box(), numbers.bounding_box()
        assert frame["x"] >= 0
        assert inner["x"] + inner["width"] <= frame["x"] + frame["width"]
        assert frame["x"] + frame["width"] <= width


def test_half_a_character_is_shown_by_its_label(open_stage: Open) -> None:
    events = events_of("lookup")
    events[0]["prompt_tokens"][3][1] = "⟨F0 9F⟩"
    half = next(e for e in events if e["e"] == "round" and e["round"].get("drafted"))
    half["round"]["drafted"][0].update(text="", label="⟨F0 9F⟩", copied_from=3, matched=2)
    stage = open_stage(reduced_motion="reduce")
    stage.feed(events)
    stage.ask("stage.actions.end()")
    stage.settle()
    key = f"speculative:{half['round']['index']}:0"
    token = stage.page.locator(f".sv-tok[data-k='{key}']")
    token.dispatch_event("pointerover")
    stage.settle()
    assert stage.text(".sv-tip-token b") == "⟨F0 9F⟩"
    token.dispatch_event("click")
    stage.settle()
    assert stage.text(".sv-panel-token") == "'⟨F0 9F⟩'"
    assert stage.text(".sv-source-hit") == "⟨F0 9F⟩"
