"""Keys for everything, the presentation, and right-to-left text."""

from __future__ import annotations

from stage_fixtures import Open, address, open_stage
from stage_page import StagePage, events_of

__all__ = ["address", "open_stage"]

KEYS = "(await import('/assets/js/keys.js')).SECTIONS.flatMap((section) => section.rows)"
# The smallest type of what can be read, and which element has it.
SMALLEST = """() => {
  let smallest = [Infinity, ''];
  for (const element of document.querySelectorAll('.sv-stage *')) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const box = element.getBoundingClientRect();
    if (!own || box.width < 2 || !element.checkVisibility() || element.closest('.sv-hidden'))
      continue;
    const size = parseFloat(getComputedStyle(element).fontSize);
    if (size < smallest[0]) smallest = [size, element.className];
  }
  return smallest;
}"""


def focused(stage: StagePage) -> StagePage:
    stage.until("stage.model.done")
    stage.page.locator(".sv-stage").focus()
    return stage


def press(stage: StagePage, *keys: str) -> None:
    for key in keys:
        stage.page.keyboard.press(key)
    stage.settle()


def test_every_key_on_the_sheet_does_something(open_stage: Open) -> None:
    stage = open_stage()
    rows = stage.ask(f"(async () => {KEYS})()")
    actions = stage.ask("Object.keys(stage.actions)")
    assert len(rows) >= 20
    for row in rows:
        assert row["action"] is None or row["action"] in actions, row
    keys = [key for row in rows for key in row["keys"]]
    assert len(keys) == len(set(keys))


def test_a_round_is_reached_by_its_number(open_stage: Open) -> None:
    stage = focused(open_stage("run=sampling"))
    press(stage, "j")
    assert stage.page.get_by_role("dialog", name="Go to a round").is_visible()
    stage.page.keyboard.type("12")
    press(stage, "Enter")
    assert stage.ask("probe.position()") == [11, 0]
    assert stage.text(".sv-jump-button").startswith("Round 11 / ")
    stage.page.locator(".sv-jump-button").click()
    stage.page.keyboard.press("Escape")
    assert not stage.page.get_by_role("dialog", name="Go to a round").is_visible()


def test_speed_goes_up_and_down_and_back_to_real_time(open_stage: Open) -> None:
    stage = focused(open_stage("run=sampling", reduced_motion="reduce"))
    press(stage, "+", "+", "+", "+", "+")
    assert stage.ask("stage.playhead.rate") == 8
    assert stage.page.locator(".sv-speed").input_value() == "8"
    press(stage, *["-"] * 7)
    assert stage.ask("stage.playhead.rate") == 0.25
    press(stage, "r")
    assert stage.ask("[stage.playhead.rate, stage.playhead.playing]") == [1, True]


def test_the_switches_have_keys(open_stage: Open) -> None:
    stage = focused(open_stage("run=sampling", reduced_motion="reduce"))
    press(stage, "t")
    assert stage.ask("document.querySelector('.sv-stage').dataset.thrown") == "hide"
    before = stage.text(".sv-zoom")
    press(stage, "z")
    assert stage.text(".sv-zoom") != before
    press(stage, "n")
    assert stage.ask("document.querySelector('.sv-stage').dataset.narration") == "folded"
    press(stage, "2")
    assert stage.ask("document.querySelector('.sv-stage').dataset.narration") == "open"
    level = stage.page.get_by_role("button", name="Practitioner")
    assert level.get_attribute("aria-pressed") == "true"


def test_outside_the_stage_only_the_keys_for_the_whole_page_are_heard(open_stage: Open) -> None:
    stage = open_stage("run=sampling", reduced_motion="reduce")
    stage.until("stage.model.done")
    stage.ask("document.activeElement.blur()")
    press(stage, "Home", "g", "w")
    assert stage.ask("stage.playhead.time === stage.model.seconds")
    assert not stage.page.locator(".sv-walk, .sv-predict").locator("visible=true").count()
    press(stage, "p")
    assert stage.ask("document.querySelector('.sv-stage').classList.contains('sv-present')")


def test_what_is_typed_is_not_taken_for_a_key(open_stage: Open) -> None:
    stage = open_stage("run=sampling", reduced_motion="reduce")
    stage.until("stage.model.done")
    stage.ask("document.body.prepend(document.createElement('textarea'))")
    stage.page.locator("textarea").fill("")
    stage.page.locator("textarea").focus()
    press(stage, "p", "?", "g")
    assert stage.page.locator("textarea").input_value() == "p?g"
    assert not stage.ask("document.querySelector('.sv-stage').classList.contains('sv-present')")


def test_the_talk_is_given_from_the_keyboard_in_large_type(open_stage: Open) -> None:
    stage = focused(open_stage("run=sampling", width=1024, height=768, reduced_motion="reduce"))
    press(stage, "p", "j")
    stage.page.keyboard.type("5")
    press(stage, "Enter", *["."] * 6, "n")
    for shown in ("g", "k", "w"):
        size, name = stage.ask(SMALLEST)
        assert size >= 16, name
        press(stage, shown)
    assert stage.ask(SMALLEST)[0] >= 16
    assert stage.ask("document.querySelector('.sv-stage').scrollWidth") <= 1024
    press(stage, "Escape")
    assert not stage.page.locator(".sv-walk").is_visible()
    press(stage, "Escape")
    assert not stage.ask("document.querySelector('.sv-stage').classList.contains('sv-present')")


def test_escape_ends_the_guessing_before_it_leaves_the_presentation(open_stage: Open) -> None:
    stage = focused(open_stage("run=sampling", reduced_motion="reduce"))
    press(stage, "p", "g")
    assert stage.page.locator(".sv-predict").is_visible()
    press(stage, "Escape")
    assert not stage.page.locator(".sv-predict").is_visible()
    assert stage.ask("document.querySelector('.sv-stage').classList.contains('sv-present')")
    press(stage, "Escape")
    assert not stage.ask("document.querySelector('.sv-stage').classList.contains('sv-present')")


def test_narration_asked_for_in_a_talk_comes_into_view(open_stage: Open) -> None:
    stage = focused(open_stage("run=sampling", width=1024, height=768, reduced_motion="reduce"))
    press(stage, "p")
    stage.pin("rejected", 5)
    press(stage, "i", "n")
    box = stage.page.locator(".sv-narration").bounding_box()
    assert 0 <= box["y"] < 768


def test_right_to_left_tokens_do_not_reorder_a_sentence(open_stage: Open) -> None:
    stage = open_stage()
    events = events_of("sampling")[:5]
    arabic = "مرحبا"
    drafted = next(e for e in events if e["e"] == "round" and e["lane"] == "speculative")
    drafted["round"]["drafted"][0]["text"] = arabic
    stage.feed(events)
    stage.ask("stage.actions.end()")
    stage.settle()
    said = stage.pin("accepted", 0)
    assert f"\u2068'{arabic}'\u2069" in said
    assert stage.count(".sv-candidate-text[dir=auto]") > 3
