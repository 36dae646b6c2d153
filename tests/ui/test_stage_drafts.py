"""How many tokens each round drafted, drawn over the run; and what is said of the whole run."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import StagePage, events_of, rounds_of

__all__ = ["address", "open_stage"]
PLOT = "[data-plot=drafts]"
TALL = 2000


def first_rounds(count: int) -> list[dict[str, Any]]:
    """The run with the whole of its first rounds, in each of which gamma tokens were drafted."""
    events = events_of("sampling")
    return [e for e in events if e["e"] == "start" or e.get("round", {}).get("index", 99) < count]


def with_settings(events: list[dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    changed = copy.deepcopy(events)
    changed[0]["settings"].update(settings)
    return changed


def settled(stage: StagePage) -> StagePage:
    stage.ask("stage.actions.end()")
    stage.settle()
    return stage


def test_where_every_round_drafts_gamma_tokens_there_is_no_plot_of_it(open_stage: Open) -> None:
    stage = open_stage(height=TALL)
    stage.feed(first_rounds(5))
    expect(settled(stage).page.locator(PLOT)).to_be_hidden()


@pytest.mark.parametrize("settings", [{"schedule": "adaptive"}, {"confidence": 0.4}])
def test_a_run_that_may_draft_fewer_has_the_plot(open_stage: Open, settings: dict) -> None:
    stage = open_stage(height=TALL)
    stage.feed(with_settings(first_rounds(5), **settings))
    expect(settled(stage).page.locator(PLOT)).to_be_visible()


def test_a_round_that_drafted_another_number_brings_the_plot(open_stage: Open) -> None:
    events = first_rounds(3)
    last = [e for e in events if e.get("lane") == "speculative" and e["e"] == "round"][-1]
    last["round"]["gamma"] = 6
    stage = open_stage(height=TALL)
    stage.feed(events)
    expect(settled(stage).page.locator(PLOT)).to_be_visible()


def test_the_plot_ends_at_the_counts_of_the_last_round(open_stage: Open) -> None:
    stage = open_stage("run=lookup", height=TALL).to_end()
    last = rounds_of("lookup")[-1]
    accepted = sum(token["fate"] == "accepted" for token in last["drafted"])
    drafted = len(last["drafted"])
    stage.until(f"probe.legend('drafts')[0] === '{drafted}'")
    assert stage.ask("legend", "drafts") == [str(drafted), str(accepted), "—"]
    spoken = f"{drafted} tokens drafted, {accepted} accepted."
    assert stage.text(f"{PLOT} p.sv-hidden").endswith(spoken)


def test_a_saved_plot_carries_its_definitions(open_stage: Open, tmp_path: Path) -> None:
    stage = open_stage("run=lookup", height=TALL).to_end()
    stage.until("probe.legend('drafts').length === 3")
    for plot, words in (("drafts", "Gamma: how many may be drafted."), ("race", "Speedup:")):
        assert words in stage.text(f"[data-plot={plot}] .sv-plot-note")
        with stage.page.expect_download() as waiting:
            stage.page.locator(f"[data-plot={plot}] .sv-save", has_text="SVG").click()
        waiting.value.save_as(tmp_path / "plot.svg")
        lines = "".join(ElementTree.parse(tmp_path / "plot.svg").getroot().itertext())
        assert words in lines


def test_at_the_end_of_a_run_the_whole_of_it_is_told(open_stage: Open) -> None:
    stage = open_stage("run=sampling", reduced_motion="reduce").to_end()
    figures = stage.ask("stage.model.done.figures")
    assert stage.text(".sv-moment") == "The whole run"
    told = stage.text(".sv-lines")
    assert f"{figures['tokens']} tokens in {figures['target_calls']} passes" in told
    assert f"{figures['accepted']} of {figures['drafted']} guesses stayed" in told
    assert f": {figures['speedup']:.2f}x." in told
    stage.ask("stage.actions.level(3)")
    stage.settle()
    assert stage.text(".sv-lines").endswith(f"= {figures['speedup']:.2f}")
    stage.ask("stage.actions.goToRound(3)")
    stage.settle()
    assert stage.text(".sv-moment").startswith("Round ")


def test_a_slower_run_is_told_so(open_stage: Open) -> None:
    stage = open_stage("run=slow", reduced_motion="reduce").to_end()
    assert "so here guessing does not pay" in stage.text(".sv-lines")
