"""Narration and the guided walk: true numbers at three levels, offered once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import StagePage, rounds_of

__all__ = ["address", "open_stage"]

OFFER = ".sv-offer"
NO_STORAGE = """Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('denied', 'SecurityError'); },
})"""


def said(stage: StagePage, level: int) -> str:
    stage.ask(f"stage.actions.level({level})")
    stage.settle()
    return stage.text(".sv-lines")


# --- narration ---


def test_a_rejection_is_told_at_three_levels_with_its_own_numbers(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.pin("rejected", 2)
    token = stage.ask("tokens", "rejected")[2]
    limit = token["p"] / token["q"]
    assert f"its chance to stay is {round(limit * 100)} in 100" in said(stage, 1)
    assert "built on a token that is no longer there" in said(stage, 1)
    assert re.search(rf"min\(1, p/q\) is {limit:.2f}", said(stage, 2))
    assert f"= {limit:.2f}" in said(stage, 3)
    assert "≥" in said(stage, 3)


def test_the_formula_gives_the_mass_of_the_residual(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.pin("rejected")
    token = stage.ask("tokens", "rejected")[0]
    q = {row[0]: row[2] for row in token["q_top"]}
    mass = sum(max(0, p - q.get(i, 0)) for i, _, p in token["p_top"])
    found = re.search(r"Σ max\(0, p − q\) = .* = ([\d.]+)Σ min", said(stage, 3))
    assert float(found.group(1)) == pytest.approx(mass, abs=0.01)


def test_every_decision_of_a_round_is_told(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.model.done")
    stage.ask("stage.actions.start()")
    titles = []
    first = rounds_of("sampling")[0]
    for _ in range(2 * len(first["drafted"]) + 2):
        stage.ask("stage.actions.nextStep()")
        stage.settle()
        titles.append(stage.text(".sv-moment"))
        assert stage.text(".sv-lines") != ""
    assert titles[0] == "Round 1: guess 1 of 4"
    assert titles[4] == "Round 1: one target call for 5 places"
    assert titles[5] == "Round 1: guess 1 of 4 stays"
    assert titles[-1] == "Round 1: one token more, at no cost"


def test_the_time_of_a_round_stands_beside_the_target_alone(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.pin("bonus")
    found = re.search(r"gave (\d+) tokens in ([\d.]+) ms.*takes ([\d.]+) ms", said(stage, 1))
    tokens, took, alone = int(found.group(1)), float(found.group(2)), float(found.group(3))
    lane = stage.ask("[stage.model.lanes.baseline.seconds, stage.model.lanes.baseline.tokens]")
    assert alone == pytest.approx(1000 * lane[0] / lane[1], abs=0.06)
    bonus = next(r for r in rounds_of("sampling") if r["added"]["fate"] == "bonus")
    seconds = bonus["draft_s"] + bonus["verify_s"] + bonus["sample_s"]
    assert took == pytest.approx(1000 * seconds, rel=0.01)
    assert tokens == len(bonus["drafted"]) + 1


def test_while_the_run_moves_the_words_change_slowly(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    stage.until("stage.playhead.playing && stage.playhead.time > 0.1")
    changes = stage.ask(
        """new Promise((done) => {
          let changes = 0;
          const lines = document.querySelector('.sv-lines');
          new MutationObserver(() => (changes += 1)).observe(lines, { childList: true });
          setTimeout(() => done(changes), 1200);
        })"""
    )
    assert changes <= 4


def test_folding_and_level_are_kept_for_the_next_visit(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.press("Formula")
    stage.press("What is happening")
    stage.page.reload()
    stage.until("window.stage && window.probe")
    fold = stage.page.get_by_role("button", name="What is happening")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(stage.page.locator(".sv-lines")).to_be_hidden()
    stage.press("What is happening")
    level = stage.page.get_by_role("button", name="Formula")
    expect(level).to_have_attribute("aria-pressed", "true")


# --- the guided walk ---


def test_the_walk_is_offered_on_the_first_visit_only(open_stage: Open) -> None:
    stage = open_stage("run=sampling")
    expect(stage.page.locator(OFFER)).to_be_visible()
    stage.press("No, thanks")
    expect(stage.page.locator(OFFER)).to_be_hidden()
    stage.page.reload()
    stage.until("window.stage && window.probe && stage.model.done")
    stage.settle()
    expect(stage.page.locator(OFFER)).to_be_hidden()
    stage.press("Guided walk")
    expect(stage.page.locator(".sv-walk")).to_be_visible()


def test_the_walk_is_not_offered_over_a_live_run(open_stage: Open) -> None:
    stage = open_stage("run=sampling&mode=live&each=60")
    stage.until("window.dripped && stage.model.done")
    stage.settle()
    expect(stage.page.locator(OFFER)).to_be_hidden()


def test_the_walk_works_where_nothing_can_be_stored(open_stage: Open) -> None:
    stage = open_stage()
    stage.page.add_init_script(NO_STORAGE)
    stage.page.goto(stage.page.url + "run=sampling")
    stage.until("window.stage && window.probe")
    stage.press("Start the walk")
    expect(stage.page.locator(".sv-walk h3")).to_have_text("A text is being written")
    stage.page.keyboard.press("Escape")
    expect(stage.page.locator(".sv-walk")).to_be_hidden()
    expect(stage.page.locator(OFFER)).to_be_hidden()


@pytest.mark.parametrize("run", ["sampling", "greedy", "lookup", "alone"])
def test_the_walk_leads_through_one_round_in_its_own_numbers(open_stage: Open, run: str) -> None:
    stage = open_stage(f"run={run}").to_end()
    stage.page.locator(".sv-stage").focus()
    stage.page.keyboard.press("w")
    titles, text = [], ""
    while stage.page.locator(".sv-walk").is_visible():
        titles.append(stage.words(".sv-walk h3"))
        text += stage.page.locator(".sv-walk").inner_text()
        stage.page.keyboard.press("Enter")  # Next has the focus
        stage.settle()
    assert 8 <= len(titles) <= 11
    index = int(re.search(r"before round (\d+)", text).group(1)) - 1
    drafted = rounds_of(run)[index]["drafted"]
    rejected = next(token for token in drafted if token["fate"] == "rejected")
    assert f"'{rejected['text']}' is thrown away" in titles
    assert f"{rounds_of(run)[index]['verify_s'] * 1000:.1f} ms" in text
    assert "undefined" not in text
    assert "NaN" not in text


def test_the_walk_points_at_what_it_is_about(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.ask("stage.actions.walk()")
    stage.settle()
    root = stage.page.locator(".sv-stage")
    expect(root).to_have_attribute("data-walk", "stream")
    for _ in range(2):
        stage.press("Next")
    expect(root).to_have_attribute("data-walk", "inspector")
    rows = stage.page.locator(".sv-triangle li")
    drafted = stage.ask("stage.model.lanes.speculative.rounds[3].drafted")
    assert rows.count() == drafted + 1
    stage.press("Leave")
    assert stage.ask("document.querySelector('.sv-stage').dataset.walk") is None


def test_a_run_without_guesses_has_no_walk(open_stage: Open) -> None:
    stage = open_stage()
    events = stage.ask("fetch('/run/sampling').then(r => r.text())").splitlines()
    lines = [line for line in events if '"lane": "speculative"' not in line]
    stage.ask(f"stage.feed({chr(10).join(lines)!r})")
    stage.to_end()
    expect(stage.page.locator(OFFER)).to_be_hidden()
    stage.ask("stage.actions.walk()")
    stage.settle()
    expect(stage.page.locator(".sv-walk")).to_be_hidden()
