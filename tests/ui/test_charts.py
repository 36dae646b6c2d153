"""The plots of the stage: their values, what a person can do with them, and what they leave in
the page."""

from __future__ import annotations

import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import StagePage, rounds_of

__all__ = ["address", "open_stage"]
TALL = 1700  # every plot is in view
SVG = "{http://www.w3.org/2000/svg}"
EMPTY = {"e": "status", "message": "Loading", "progress": 0.1}


def plotted(open_stage: Open, query: str = "run=sampling", **options: int) -> StagePage:
    """A stage with a whole run on its plots."""
    stage = open_stage(query, **{"height": TALL, **options}).to_end()
    stage.until("probe.plottedAll()")
    return stage


# --- values ---


def test_legends_and_lines_end_at_the_figures(open_stage: Open) -> None:
    stage = open_stage("run=sampling&mode=live", height=TALL)
    stage.until("window.dripped")
    stage.until("probe.plottedAll()")
    figures = stage.ask("stage.model.done.figures")
    names = ("tar", "alpha", "tokens_per_target_call", "speedup")
    tar, alpha, calls, speedup = (figures[name] for name in names)
    assert stage.ask("legend", "acceptance") == [f"{tar:.2f}", f"{alpha:.2f}"]
    assert stage.ask("legend", "calls") == [f"{calls:.2f}", str(len(rounds_of("sampling")))]
    assert stage.ask("legend", "race")[2] == f"{speedup:.2f}x"
    assert stage.ask("plotted", "acceptance") == pytest.approx([tar, alpha], abs=0.01)
    assert stage.ask("plotted", "calls")[0] == pytest.approx(calls, abs=0.05)
    assert stage.ask("plotted", "race")[2] == pytest.approx(speedup, abs=0.05)
    assert stage.text("[data-plot=race] p").endswith(f"speedup {speedup:.2f}x.")


def test_the_histogram_counts_the_rounds_by_accepted_length(open_stage: Open) -> None:
    stage = plotted(open_stage)
    accepted = [
        sum(token["fate"] == "accepted" for token in round_.get("drafted", []))
        for round_ in rounds_of("sampling")
    ]
    counts = [str(accepted.count(length)) for length in range(max(accepted) + 1)]
    bars = stage.page.locator("[data-plot=calls] .sv-chart-counts text")
    assert bars.all_text_contents() == counts


def test_the_plots_follow_the_playhead(open_stage: Open) -> None:
    stage = plotted(open_stage)
    stage.ask("stage.actions.seek(1)")
    tokens = "stage.model.lanes.speculative.rounds.filter(r => r.end <= 1)"
    stage.until(
        f"probe.legend('race')[0] === String({tokens}.reduce((sum, r) => sum + r.committed, 0))"
    )


def test_the_axes_stand_still_while_the_playhead_moves(open_stage: Open) -> None:
    stage = plotted(open_stage)
    axes = ".sv-chart > g > g:first-child"
    before = stage.page.locator(axes).evaluate_all("all => all.map(one => one.outerHTML)")
    for time in (0.2, 0.9, 1.7):
        stage.ask(f"stage.actions.seek({time})")
        stage.settle()
        assert (
            stage.page.locator(axes).evaluate_all("all => all.map(one => one.outerHTML)") == before
        )


def test_what_is_not_measured_is_an_em_dash(open_stage: Open) -> None:
    stage = open_stage(height=TALL)
    stage.feed([EMPTY])
    stage.until("probe.legend('race').length === 3")
    assert stage.ask("legend", "acceptance") == ["—", "—"]
    assert stage.ask("legend", "race") == ["—", "—", "—"]
    assert stage.count(".sv-chart-plotted path[d*=M]") == 0
    stage = plotted(open_stage, "run=alone")
    assert stage.ask("legend", "race")[1:] == ["—", "—"]
    assert stage.text("[data-plot=race] p").endswith("speedup not measured.")


# --- what they leave in the page ---


def test_the_stage_asks_for_no_plotly(open_stage: Open) -> None:
    stage = plotted(open_stage)
    scripts = stage.ask("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert not [name for name in scripts if "plotly.min" in name]
    assert stage.ask("window.Plotly ?? window.specvizPlotly ?? null") is None


def test_a_thousand_tokens_more_add_no_elements_and_few_points(open_stage: Open) -> None:
    stage = open_stage("run=long", height=TALL)
    stage.until("stage.model.done !== null")
    stage.ask("stage.actions.seek(6)")
    stage.until("Number(probe.legend('race')[0]) > 100")
    nodes = stage.ask("probe.chartNodes()")
    stage.to_end().until("probe.legend('race')[0] === '1500'")
    assert stage.ask("probe.chartNodes()") == nodes
    width = stage.ask("document.querySelector('.sv-chart').clientWidth")
    assert max(stage.ask("probe.points()")) <= 4 * width
    assert max(stage.ask("probe.points()")) > 100


def test_a_page_where_nothing_moves_asks_for_no_frames(open_stage: Open) -> None:
    stage = plotted(open_stage)
    asked = stage.ask(
        """async () => {
          let asked = 0;
          const own = requestAnimationFrame;
          window.requestAnimationFrame = (call) => { asked += 1; return own(call); };
          await new Promise((done) => setTimeout(done, 1500));
          window.requestAnimationFrame = own;
          return asked;
        }"""
    )
    assert asked <= 1  # the one that notices that lines have stopped coming


# --- looking closer ---


def test_a_token_its_round_and_its_points_light_up_together(open_stage: Open) -> None:
    stage = plotted(open_stage)
    stage.pin("rejected", 3)
    assert stage.ask("probe.marks()") == [2, 2, 2, 1]
    assert stage.count(".sv-text .sv-lit") == 1
    assert stage.ask("probe.markIsOnLine()")
    stage.press("Unpin")
    assert not any(stage.ask("probe.marks()"))


def test_pointing_at_a_line_tells_its_values_and_lights_up_the_round(open_stage: Open) -> None:
    stage = plotted(open_stage)
    box = stage.page.locator("[data-plot=acceptance] .sv-plot-box")
    size = box.bounding_box()
    box.hover(position={"x": size["width"] * 0.6, "y": size["height"] * 0.5})
    readout = stage.page.locator("[data-plot=acceptance] .sv-readout")
    expect(readout).to_contain_text("tokens: TAR 0.")
    tokens = int(readout.text_content().split()[0])
    rounds = stage.ask("stage.model.lanes.speculative.rounds.map(r => r.position + r.committed)")
    lit = stage.page.locator(".sv-text .sv-lit").get_attribute("data-k")
    assert lit.startswith(f"speculative:{rounds.index(tokens)}:")
    stage.page.mouse.move(2, 2)
    expect(readout).to_be_hidden()
    expect(stage.page.locator(".sv-text .sv-lit")).to_have_count(0)


def test_arrow_keys_read_a_plot_and_leave_the_playhead_alone(open_stage: Open) -> None:
    stage = plotted(open_stage)
    box = stage.page.locator("[data-plot=race] .sv-plot-box")
    box.focus()
    time = stage.ask("stage.playhead.time")
    press, readout = stage.page.keyboard.press, stage.page.locator("[data-plot=race] .sv-readout")
    press("Home")
    expect(readout).to_contain_text("speculative: ")
    first = readout.text_content()
    press("ArrowRight")
    assert readout.text_content() != first
    press("End")
    expect(readout).to_contain_text("baseline: 95 tokens after ")
    press("ArrowDown")
    expect(readout).to_contain_text("95 tokens: speedup ")
    expect(stage.page.locator(".sv-text .sv-lit")).to_have_count(1)
    assert stage.ask("stage.playhead.time") == time
    box.blur()
    expect(readout).to_be_hidden()


# --- how they look ---


def test_a_theme_change_recolours_the_plots_at_once(open_stage: Open) -> None:
    stage = plotted(open_stage)
    parts = (".sv-chart text", ".sv-chart .sv-chart-legend-row text", ".sv-chart-series")
    light = [[stage.ask("style", part, name) for name in ("fill", "stroke")] for part in parts]
    stage.ask("document.body.classList.add('dark')")
    stage.settle()
    for part, before in zip(parts, light, strict=True):
        assert [stage.ask("style", part, name) for name in ("fill", "stroke")] != before


def test_lines_of_one_panel_differ_in_dash_and_marker(open_stage: Open) -> None:
    stage = plotted(open_stage)
    for plot in ("acceptance", "race"):
        panel = f"[data-plot={plot}] .sv-chart > g:first-of-type"
        lines = stage.page.locator(f"{panel} .sv-chart-plotted path")
        dashes = lines.evaluate_all("all => all.map(one => getComputedStyle(one).strokeDasharray)")
        ends = stage.page.locator(f"{panel} > .sv-chart-end")
        marks = ends.evaluate_all("all => all.map(one => one.getAttribute('d'))")
        assert len(set(dashes)) == len(set(marks)) == 2


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_writing_leaves_its_chart(open_stage: Open, width: int) -> None:
    stage = plotted(open_stage, "run=long", width=width, height=2800)
    outside = stage.page.locator(".sv-chart text").evaluate_all(
        """all => all.filter((text) => {
          const box = text.getBoundingClientRect();
          const frame = text.closest(".sv-chart").getBoundingClientRect();
          return box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1);
        }).map((text) => text.textContent)"""
    )
    assert outside == []


# --- saving ---


def saved(stage: StagePage, plot: str, kind: str, folder: Path) -> Path:
    with stage.page.expect_download() as waiting:
        stage.page.locator(f"[data-plot={plot}] .sv-save", has_text=kind).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_a_saved_svg_stands_alone(open_stage: Open, tmp_path: Path) -> None:
    path = saved(plotted(open_stage), "acceptance", "SVG", tmp_path)
    assert path.name == "specviz-acceptance.svg"
    text = path.read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    written = "".join(root.itertext())
    for words in ("Acceptance", "TAR 0.46", "alpha 0.69", "tokens", "share accepted"):
        assert words in written
    assert "var(" not in text
    assert not [one for one in root.iter() if "href" in "".join(one.attrib)]
    lines = [one for one in root.iter(f"{SVG}path") if one.get("stroke-width") == "2.5px"]
    assert {one.get("stroke") for one in lines} == {"rgb(0, 143, 104)", "rgb(22, 25, 29)"}


def test_the_time_axis_is_saved_as_it_is_drawn(open_stage: Open, tmp_path: Path) -> None:
    stage = plotted(open_stage)
    with stage.page.expect_download() as waiting:
        stage.page.get_by_role("button", name="Save the plot Where the time goes as SVG").click()
    path = tmp_path / "time.svg"
    waiting.value.save_as(path)
    root = ElementTree.parse(path).getroot()
    drawn = len(rounds_of("sampling")) + len(rounds_of("sampling", "baseline"))
    target = [one for one in root.iter(f"{SVG}rect") if one.get("fill") in ("#4b525b", "#80868e")]
    assert len(target) == drawn
    assert {"speculative", "baseline", "1 s"} <= set("|".join(root.itertext()).split("|"))


def test_a_saved_png_is_sharp(open_stage: Open, tmp_path: Path) -> None:
    stage = plotted(open_stage)
    path = saved(stage, "race", "PNG", tmp_path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    shown = stage.page.locator("[data-plot=race] .sv-chart").bounding_box()
    assert width >= 2 * shown["width"]
    assert height >= 2 * shown["height"]
