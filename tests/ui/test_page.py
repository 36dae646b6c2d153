"""The page in a real browser, on a tiny random pair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from gradio_client import Client

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from playwright.sync_api import expect
from tiny import TinyShelf, trace
from visit import MODEL, PAIRS, Site, serve

from specviz.prompts import built_in, kinds
from specviz.records import Trace
from specviz.trace import dump_trace, load_trace
from specviz.ui import build

HOSTILE = (
    "<img src=x onerror='window.hacked=1'>",
    "<script>window.hacked=2</script>",
    "${window.hacked=3}",
    "{{value}} {{{value}}}",
    "`</textarea></script><b>",
    "\\u003cb\\u003e &lt;think&gt;",
    "\u202ertl \U0001f680 \u65e5\u672c\n\tindented",
)


# --- first paint ---------------------------------------------------------------------------


def test_first_paint_shows_a_recorded_run_without_pressing_anything(visit, first: Path):
    page = visit().ready()
    assert page.model("model.start.mode") == "replay"
    recorded = load_trace(first.read_bytes()).run("speculative")
    assert page.model("model.lanes.speculative.tokens") == len(recorded.tokens)
    expect(page.page.locator(".sv-lane[data-lane=speculative] .sv-tok").nth(15)).to_be_visible()


def test_run_waits_for_the_models_and_says_so(visit, first: Path):
    shelf = TinyShelf()
    shelf.gate.clear()
    page = build(shelf, pairs=PAIRS, first=first)
    try:
        one = visit(at=Site(serve(page), shelf))
        expect(one.button("run")).to_be_disabled()
        expect(one.button("run")).to_have_text("Loading models")
        one.status("Reading the weights")
        expect(one.button("run")).to_have_attribute("title", "The models are still loading.")
        expect(one.page.locator(".sv-tok").first).to_be_attached()
        shelf.gate.set()
        expect(one.button("run")).to_be_enabled()
        expect(one.button("run")).to_have_text("Run")
    finally:
        shelf.gate.set()
        page.close(verbose=False)


# --- run, step, stop -----------------------------------------------------------------------


def test_run_goes_to_the_end_of_both_lanes(visit):
    one = visit().ready().settings(max_new_tokens=40)
    one.finish()
    assert one.model("model.start.mode") == "live"
    assert one.model("model.lanes.speculative.tokens") == 40
    assert one.model("model.lanes.baseline.tokens") == 40
    assert one.model("model.done.same_as_baseline") is True
    one.status("Max new tokens reached.")


def test_step_runs_exactly_one_round_a_press(visit):
    one = visit().ready().settings(max_new_tokens=2000)
    for presses in range(1, 5):
        one.button("step").click()
        one.status(f"Paused after {presses} round")
        assert one.rounds() == presses
        lanes = one.model("[model.lanes.speculative.seconds, model.lanes.baseline.seconds]")
        assert lanes[1] >= lanes[0]
    expect(one.button("step")).to_be_focused()


def test_presses_of_step_that_come_too_fast_are_all_counted(visit):
    one = visit().ready().settings(max_new_tokens=2000)
    one.button("step").click()
    one.button("step").click()
    one.button("step").click()
    one.status("Paused after 3 rounds")
    assert one.rounds() == 3


def test_run_goes_on_where_the_steps_ended(visit):
    one = visit().ready().settings(max_new_tokens=60)
    one.button("step").click()
    one.status("Paused after 1 round")
    clock = "model.lanes.speculative.rounds[0].end"
    before = one.model(clock)
    expect(one.button("run")).to_have_text("Continue")
    one.button("run").click()
    one.phase("finished")
    assert one.model(clock) == before
    assert one.model("model.lanes.speculative.tokens") == 60


def test_a_changed_setting_starts_a_new_run_instead(visit):
    one = visit().ready().settings(max_new_tokens=60)
    one.button("step").click()
    one.status("Paused after 1 round")
    one.settings(max_new_tokens=20)
    one.finish()
    assert one.model("model.lanes.speculative.tokens") == 20


def test_stop_keeps_the_partial_run_and_the_next_run_works(visit):
    one = visit().ready().settings(max_new_tokens=8000)
    one.run()
    one.page.wait_for_function(f"{MODEL}.lanes.speculative.rounds.length > 3")
    one.button("stop").click()
    one.phase("stopped")
    one.status("Stopped. What was decoded is kept.")
    assert 0 < one.model("model.lanes.speculative.tokens") < 8000
    expect(one.button("stop")).to_be_disabled()
    one.settings(max_new_tokens=12)
    one.finish()
    assert one.model("model.lanes.speculative.tokens") == 12


def test_a_paused_run_can_be_stopped(visit):
    one = visit().ready().settings(max_new_tokens=60)
    one.button("step").click()
    one.status("Paused after 1 round")
    one.button("stop").click()
    one.phase("stopped")
    assert one.rounds() == 1
    expect(one.button("run")).to_have_text("Run")


def test_a_baseline_is_reused_only_when_nothing_that_matters_changed(visit):
    one = visit().ready().settings(max_new_tokens=20)
    one.finish()
    one.page.get_by_label("reuse the last").check()
    one.page.locator("#gamma input[type=number]").fill("2")
    one.page.locator("#gamma input[type=number]").blur()
    one.finish()
    assert one.model("model.start.settings.gamma") == 2
    assert one.model("model.start.baseline_reused") is True
    one.settings(max_new_tokens=25)
    one.button("run").click()
    one.status("The baseline was measured anew")
    assert one.model("model.start.baseline_reused") is False


# --- controls ------------------------------------------------------------------------------


def test_an_example_fills_the_prompt(visit):
    one = visit().ready()
    one.page.get_by_role("button", name="Translate").click()
    expect(one.page.get_by_label("Prompt", exact=True)).to_have_value(
        "Translate into French: The train leaves at nine, and we will eat when we arrive."
    )


def test_there_are_a_dozen_examples_of_different_kinds():
    examples = [prompt for prompt in built_in() if prompt.example]
    assert len({prompt.example for prompt in examples}) == 12
    assert len(kinds(examples)) == 7


def test_a_pair_that_cannot_run_is_greyed_and_says_why(visit):
    one = visit().ready()
    option = one.page.locator("#pair option[value=huge]")
    expect(option).to_be_disabled()
    expect(option).to_have_text("Huge pair (needs 160 GB of memory; 12 GB are free)")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_new_tokens", "", "max new tokens is empty"),
        ("top_p", "1.5", "top_p must be a number from 0.0 to 1.0"),
        ("seed", "-3", "seed must be a whole number from 0"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(visit, name: str, value: str, message: str):
    one = visit().ready().settings(**{name: value})
    one.button("run").click()
    one.status(message)
    expect(one.button("run")).to_be_enabled()


def test_an_empty_prompt_is_named(visit):
    one = visit().ready()
    one.page.get_by_label("Prompt", exact=True).fill("  ")
    one.button("run").click()
    one.status("The prompt is empty.")


def test_an_error_in_a_run_is_visible_and_the_page_works_on(visit):
    one = visit().ready().settings(max_new_tokens=12)
    one.page.locator("#pair select").select_option("broken")
    one.button("run").click()
    one.phase("failed")
    expect(one.page.locator(".sv-strip-text")).to_contain_text("the disk is on fire")
    expect(one.button("run")).to_be_enabled()
    one.page.locator("#pair select").select_option("tiny")
    one.finish()


def test_other_models_are_asked_for_by_name(visit):
    one = visit().ready()
    one.page.locator("#pair select").select_option("other")
    target = one.page.locator("#target").get_by_label("Target")
    expect(target).to_be_visible()
    one.button("run").click()
    one.status("No target is chosen.")


# --- traces --------------------------------------------------------------------------------


def hostile() -> Trace:
    """A trace whose every token, prompt and name is an attack."""
    made = trace(tokens=8)
    run = made.runs[0]
    texts = iter(HOSTILE * 50)

    def arm(token):
        return replace(token, text=next(texts))

    rounds = tuple(
        replace(r, drafted=tuple(map(arm, r.drafted)), added=arm(r.added)) for r in run.rounds
    )
    pair = replace(made.pair, name=HOSTILE[0], target=HOSTILE[1], draft=HOSTILE[0])
    return replace(
        made, pair=pair, prompt=HOSTILE[0], note=HOSTILE[1], runs=(replace(run, rounds=rounds),)
    )


def test_hostile_text_of_a_trace_shows_literally_and_nothing_executes(visit):
    one = visit().ready()
    attack = hostile()
    one.open_trace(dump_trace(attack))
    one.status("A recorded run is on the stage.")
    one.phase("finished")
    drafted = [token for r in attack.runs[0].rounds for token in (*r.drafted, r.added)]
    one.page.get_by_role("button", name="To the end").click()
    one.page.wait_for_function(
        "text => document.querySelector('.sv-lane[data-lane=speculative] .sv-text').textContent"
        " === text",
        arg="".join(token.text for token in drafted),
    )
    shown = one.page.locator(".sv-lane[data-lane=speculative]")
    assert shown.locator("img, script, b").count() == 0
    assert one.page.evaluate("window.hacked") is None


def test_a_trace_that_is_broken_is_refused_naming_the_place(visit):
    one = visit().ready()
    broken = json.loads(dump_trace(trace(tokens=8)))
    broken["runs"][0]["rounds"][1]["draft_s"] = "soon"
    one.open_trace(json.dumps(broken))
    one.status("trace.runs[0].rounds[1].draft_s: expected float")
    assert one.model("model.start.mode") == "replay"


def test_a_run_is_saved_and_opened_again(visit, tmp_path: Path):
    one = visit().ready().settings(max_new_tokens=20)
    expect(one.button("save")).to_be_disabled()
    one.finish()
    with one.page.expect_download() as download:
        one.button("save").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    saved = load_trace(path.read_bytes())
    assert len(saved.run("speculative").tokens) == 20
    assert saved.run("baseline").finish_reason == "length"
    one.open_trace(path.read_bytes())
    one.status("A recorded run is on the stage.")
    assert one.model("model.start.mode") == "replay"


def test_opening_a_trace_does_not_wait_for_the_model(visit):
    busy = visit().ready().settings(max_new_tokens=8000)
    busy.run()
    other = visit().ready()
    other.open_trace(dump_trace(trace(tokens=8)))
    other.status("A recorded run is on the stage.")
    busy.button("stop").click()
    busy.phase("stopped")


# --- several visitors ----------------------------------------------------------------------


def test_a_second_visitor_waits_in_line_and_is_told_so(visit):
    first = visit().ready().settings(max_new_tokens=8000)
    second = visit().ready().settings(max_new_tokens=8)
    first.run()
    second.button("run").click()
    expect(second.page.locator(".sv-strip-text")).to_contain_text("1 run is ahead of yours")
    first.button("stop").click()
    first.phase("stopped")
    second.phase("finished")
    assert second.model("model.lanes.speculative.tokens") == 8


def test_waiting_can_be_stopped(visit):
    first = visit().ready().settings(max_new_tokens=8000)
    second = visit().ready()
    first.run()
    second.button("run").click()
    expect(second.page.locator(".sv-strip-text")).to_contain_text("1 run is ahead of yours")
    second.button("stop").click()
    second.status("Stopped before the first round.")
    assert first.model("model.lanes.speculative.end") is None
    first.button("stop").click()
    first.phase("stopped")


def test_a_second_visitor_sees_nothing_of_the_first(visit):
    first = visit().ready().settings(max_new_tokens=16)
    first.page.get_by_label("Prompt", exact=True).fill("My secret is xyzzyplugh.")
    first.finish()
    second = visit().ready()
    assert "xyzzyplugh" not in second.page.content()
    assert second.model("model.start.mode") == "replay"
    expect(second.button("save")).to_be_disabled()
    second.button("step").click()
    second.status("Paused after 1 round")
    assert "xyzzyplugh" not in second.model("model.start.prompt")


def test_closing_the_tab_ends_the_run(visit):
    leaving = visit().ready().settings(max_new_tokens=8000)
    leaving.run()
    leaving.page.close()
    staying = visit().ready().settings(max_new_tokens=8)
    staying.finish()


# --- looks ---------------------------------------------------------------------------------


def ground(one) -> int:
    """The brightness of the page's background, 0 to 255."""
    colour = one.page.evaluate(
        "getComputedStyle(document.querySelector('.gradio-container')).backgroundColor"
    )
    return sum(int(part) for part in colour[4:-1].split(",")[:3]) // 3


def test_light_and_dark(visit):
    light = visit("/?__theme=light").ready()
    dark = visit("/?__theme=dark").ready()
    assert ground(light) > 200
    assert ground(dark) < 60


def test_the_chosen_theme_is_kept(visit):
    one = visit("/", color_scheme="light").ready()
    assert ground(one) > 200
    one.page.get_by_role("button", name="Light or dark").click()
    expect(one.page.locator("body")).to_have_class("dark")
    one.page.reload()
    one.ready()
    assert ground(one) < 60


@pytest.mark.parametrize("width", [320, 390, 768, 1024, 1440])
def test_nothing_scrolls_sideways(visit, width: int):
    one = visit(viewport={"width": width, "height": 844}).ready()
    one.page.locator("#more-settings > button").click()
    expect(one.page.locator("#seed input")).to_be_visible()
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width


def test_about_answers_the_newcomers_question(visit):
    one = visit().ready()
    one.page.get_by_role("tab", name="About").click()
    expect(
        one.page.get_by_text("The target has to run anyway: where is the saving?")
    ).to_be_visible()
    one.page.get_by_role("tab", name="Explore").click()
    expect(one.page.locator(".sv-stage")).to_be_visible()
    assert one.model("model.start.mode") == "replay"


def test_every_control_has_a_name(visit):
    one = visit().ready()
    one.page.locator("#more-settings > button").click()
    expect(one.page.locator("#seed input")).to_be_visible()
    nameless = one.page.evaluate(
        """[...document.querySelectorAll('#controls :is(input, textarea, select, button)')]
        .filter(e => e.offsetParent && !e.labels?.length && !e.getAttribute('aria-label')
          && !e.getAttribute('aria-labelledby') && !e.textContent.trim())
        .map(e => e.outerHTML.slice(0, 120))"""
    )
    assert nameless == []


# --- for programs --------------------------------------------------------------------------


def test_the_named_endpoints_work_and_the_page_events_are_hidden(site: Site):
    client = Client(site.url, verbose=False)
    named = client.view_api(return_format="dict")["named_endpoints"]
    assert set(named) == {"/run", "/pairs", "/load_trace"}
    names = {pair["name"]: pair["why_not"] for pair in client.predict(api_name="/pairs")}
    assert names["tiny"] == ""
    assert "160 GB" in names["huge"]
    result = client.predict("Once", pair="tiny", max_new_tokens=16, api_name="/run")
    assert result["tokens"] == 16
    assert result["finish_reason"] == "length"
    assert result["speedup"] > 0
    summary = client.predict(dump_trace(trace(tokens=8)), api_name="/load_trace")
    assert summary["tokens"] == 8
    with pytest.raises(Exception, match="gamma must be from 1 to 16"):
        client.predict("Once", pair="tiny", gamma=99, api_name="/run")
    with pytest.raises(Exception, match="no specviz trace"):
        client.predict("{}", api_name="/load_trace")


# --- the embedded pair, for real -----------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Iterator[Site]:
    page = build()
    yield Site(serve(page))
    page.close(verbose=False)


@pytest.mark.weights
def test_the_embedded_pair_loads_runs_and_is_measured(visit, real: Site):
    one = visit(at=real)
    expect(one.button("run")).to_be_enabled(timeout=600_000)
    one.ready().settings(max_new_tokens=24)
    one.run()
    one.page.wait_for_function(f"{MODEL}.done", timeout=300_000)
    figures = one.model("model.done.figures")
    assert figures["tokens"] == 24
    assert 0 <= figures["tar"] <= 1
    assert figures["tokens_per_target_call"] >= 1
    assert figures["speedup"] > 0
    assert one.model("model.start.machine.device")
