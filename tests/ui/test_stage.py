"""The stage in a real browser: what it is fed, and that its text stays exact."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import ASSETS, events_of, rounds_of, text_of

__all__ = ["address", "open_stage"]
CLIPBOARD = ["clipboard-read", "clipboard-write"]


# --- feeding ---


def test_mounting_twice_gives_the_same_stage(open_stage: Open) -> None:
    stage = open_stage()
    assert stage.ask("specviz.mountStage(document.getElementById('host')) === window.stage")


def test_only_the_new_suffix_is_parsed(open_stage: Open) -> None:
    stage = open_stage()
    first, second, lines = stage.ask(
        """async () => {
          const text = await (await fetch('/run/sampling?mode=live')).text();
          const half = text.indexOf('\\n', text.length / 2) + 1;
          const parse = JSON.parse;
          let calls = 0;
          JSON.parse = (line) => { calls += 1; return parse(line); };
          stage.feed(text.slice(0, half));
          const first = calls;
          stage.feed(text);
          JSON.parse = parse;
          return [first, calls - first, text.split('\\n').length - 1];
        }"""
    )
    assert first > 0
    assert second == lines - first


def test_a_line_cut_in_two_is_read_when_it_is_whole(open_stage: Open) -> None:
    stage = open_stage()
    error, rounds = stage.ask(
        """async () => {
          const text = (await (await fetch('/run/sampling?mode=live')).text()).trimEnd();
          for (let n = 1000; n < text.length; n += 1777) stage.feed(text.slice(0, n));
          stage.feed(text);
          return [stage.model.error, stage.model.ordered.length];
        }"""
    )
    assert error is None
    assert rounds == len(rounds_of("sampling")) + len(rounds_of("sampling", "baseline"))


def test_a_line_that_cannot_be_read_is_said_and_harms_nothing_else(open_stage: Open) -> None:
    stage = open_stage()
    stage.ask("stage.feed('{broken\\n')")
    stage.settle()
    expect(stage.page.get_by_text("A line of this run could not be read.")).to_be_visible()
    stage.feed(events_of("sampling"))
    stage.to_end()
    assert stage.page.locator(".sv-strip").is_hidden()


def test_a_text_that_does_not_continue_starts_a_new_run(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stage.feed(events_of("greedy"))
    stage.to_end()
    stage.page.locator(".sv-thrown").click()
    assert stage.ask("select", "speculative") == text_of("greedy")


def test_settings_at_their_default_are_filled_in(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    assert "gamma" not in events_of("sampling")[0]["settings"]
    stage.ask("stage.actions.start()")
    stage.settle()
    assert "gamma 4" in stage.text(".sv-meta")


FOLLOW = """async () => {
  const text = await (await fetch('/run/sampling?mode=live')).text();
  const lines = text.split('\\n').slice(0, -1).map((line) => line + '\\n');
  let asked = 0;
  const read = async ({ ticket, since }) => {
    asked += 1;
    if (asked === 2) throw new Error('the network hiccups');
    const next = Math.min(since + 40, lines.length);
    const resting = next === lines.length;
    return { lines: lines.slice(since, next).join(''), next, resting };
  };
  const show = specviz.createFollower(stage, read);
  show('{"e":"follow","ticket":"t"}\\n');
}"""


def test_a_run_is_followed_bit_by_bit_and_a_failed_question_is_asked_again(
    open_stage: Open,
) -> None:
    stage = open_stage("run=greedy").to_end()
    stage.ask(f"({FOLLOW})()")
    stage.until("stage.model.start.mode === 'live' && stage.model.done !== null")
    assert stage.ask("stage.model.ordered.length") == len(rounds_of("sampling")) + len(
        rounds_of("sampling", "baseline")
    )
    assert stage.ask("stage.model.error") is None
    stage.to_end()
    stage.page.locator(".sv-thrown").click()
    assert stage.ask("select", "speculative") == text_of("sampling")


# --- the text ---


@pytest.mark.parametrize("run", ["sampling", "greedy", "lookup", "hostile", "long"])
def test_selecting_and_copying_give_exactly_the_text(open_stage: Open, run: str) -> None:
    stage = open_stage(f"run={run}", permissions=CLIPBOARD).to_end()
    assert stage.ask("copy", "speculative") == text_of(run)
    stage.page.locator(".sv-thrown").click()
    assert stage.ask("select", "speculative") == text_of(run)
    assert stage.ask("copy", "speculative") == text_of(run)
    assert stage.ask("copy", "baseline") == text_of(run)
    stage.page.locator("[data-lane=speculative] .sv-copy").click()
    expect(stage.page.locator("[data-lane=speculative] .sv-copy")).to_have_text("Copied")
    assert stage.ask("navigator.clipboard.readText()") == text_of(run)


def test_hostile_token_text_stays_text(open_stage: Open) -> None:
    stage = open_stage("run=hostile").to_end()
    shown = stage.text("[data-lane=speculative] .sv-text")
    hostile = ["<img src=x onerror=window.hacked=1>", "${window.hacked=2}", "{{value}}", "`tick`"]
    for piece in [*hostile, "&lt;b&gt;", "</div>", "👨‍👩‍👧", "🇨🇭", "日本語", "مرحبا بالعالم"]:
        assert piece in shown
    assert stage.ask("window.hacked") is None
    assert stage.count(".sv-text img, .sv-text script") == 0


def test_the_lane_is_one_block_that_takes_the_direction_of_its_text(open_stage: Open) -> None:
    stage = open_stage()
    start, *rest = events_of("hostile")
    first = next(e for e in rest if e["e"] == "round" and e["lane"] == "speculative")
    first["round"]["drafted"], first["round"]["added"]["text"] = [], "مرحبا بالعالم"
    stage.feed([start, first])
    stage.ask("stage.actions.end()")
    stage.until("document.querySelector('[data-lane=speculative] .sv-tok')")
    assert stage.ask("style", "[data-lane=speculative] .sv-text", "direction") == "rtl"
    assert stage.count("[data-lane=speculative] .sv-text[dir=auto]") == 1


def test_whitespace_and_empty_tokens_can_be_seen(open_stage: Open) -> None:
    stage = open_stage("run=hostile").to_end()
    assert "↵" in stage.ask("generated", "[data-lane=speculative] .sv-nl", "::before")
    assert "●" in stage.ask("generated", "[data-lane=speculative] .sv-unseen", "::after")
    assert stage.ask("unseen", "speculative") == 0


def test_every_fate_has_a_shape_of_its_own(open_stage: Open) -> None:
    assert len(set(open_stage().ask("probe.shapes()"))) == 7


def test_what_lies_behind_a_stop_string_is_not_part_of_the_text(open_stage: Open) -> None:
    stage = open_stage()
    events = events_of("sampling")
    kept = 30
    for event in events:
        if event["e"] == "end":
            event.update(finish_reason="stop", text_end=kept)
    stage.feed(events)
    stage.to_end()
    assert stage.ask("select", "speculative") == text_of("sampling")[:kept]
    stage.page.locator(".sv-thrown").click()
    assert stage.ask("select", "speculative") == text_of("sampling")[:kept]


def test_hiding_what_was_thrown_away_hides_only_that(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    fates = {"accepted", "rejected", "discarded", "resampled", "bonus", "target"}
    assert set(stage.ask("drawn", "speculative")) == fates
    stage.page.get_by_role("switch", name="Show thrown away").click()
    assert set(stage.ask("drawn", "speculative")) == fates - {"rejected", "discarded"}


def test_the_legend_filters_by_fate(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    button = stage.page.get_by_role("button", name="resampled")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    stage.until("probe.style('.sv-text [data-f=accepted]', 'opacity') < 0.5")
    stage.until("probe.style('.sv-text [data-f=resampled]', 'opacity') === '1'")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")


def test_the_template_is_safe_for_gradio() -> None:
    markup = (ASSETS / "stage.html").read_text()
    assert not [bad for bad in ("${", "{{", "`", "\\") if bad in markup]
