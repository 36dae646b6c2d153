"""The stage for everyone: contrast, keyboard, screen readers, phones; and what it costs."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect
from stage_fixtures import Open, address, open_stage
from stage_page import ASSETS

__all__ = ["address", "open_stage"]
GROUNDS = ("page", "surface", "well")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(params=["light", "dark"])
def colours(request: pytest.FixtureRequest) -> dict[str, str]:
    """The palette of one theme by name."""
    css = (ASSETS / "css" / "palette.css").read_text()
    block = css.split(":root" if request.param == "light" else ".dark")[1].split("}")[0]
    return dict(re.findall(r"--sv-([a-z-]+): (#[0-9a-f]{6});", block))


def test_ink_reads_on_every_ground_and_tint(colours: dict[str, str]) -> None:
    grounds = [*GROUNDS, *(name for name in colours if name.endswith("-tint"))]
    assert len(grounds) == 10
    for ground in grounds:
        assert contrast(colours["ink"], colours[ground]) >= 7, ground


@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *(("muted", ground) for ground in GROUNDS),
        *(("accent", ground) for ground in (*GROUNDS, "accent-tint")),
        ("on-accent", "accent"),
        ("on-tooltip", "tooltip"),
        ("surface", "target"),
        ("surface", "ink"),
    ],
)
def test_text_has_the_contrast_of_aa(colours: dict[str, str], text: str, ground: str) -> None:
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize(
    "fate", ["accepted", "rejected", "discarded", "resampled", "bonus", "drafting"]
)
def test_the_marks_of_fates_stand_out(colours: dict[str, str], fate: str) -> None:
    assert contrast(colours[fate], colours["surface"]) >= 3
    assert contrast(colours[fate], colours[f"{fate}-tint"]) >= 3


def test_the_edges_of_controls_stand_out(colours: dict[str, str]) -> None:
    for ground in GROUNDS:
        assert contrast(colours["edge"], colours[ground]) >= 3, ground


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (390, 844), (320, 640)])
@pytest.mark.parametrize("run", ["sampling", "hostile", "slow"])
def test_nothing_is_wider_than_the_page(
    open_stage: Open, width: int, height: int, run: str
) -> None:
    stage = open_stage(f"run={run}", width=width, height=height).to_end()
    assert stage.ask("document.documentElement.scrollWidth") <= width


def test_on_a_phone_the_transport_stays_at_the_bottom(open_stage: Open) -> None:
    stage = open_stage("run=sampling", width=390, height=844).to_end()
    box = stage.page.locator(".sv-transport").bounding_box()
    assert box["y"] + box["height"] == pytest.approx(844, abs=2)


def test_every_control_has_a_name(open_stage: Open) -> None:
    assert open_stage("run=sampling").to_end().ask("probe.nameless()") == []


def test_tokens_are_reached_pinned_and_unpinned_by_keyboard(open_stage: Open) -> None:
    stage = open_stage("run=sampling").to_end()
    stop = stage.page.locator("[data-lane=speculative] .sv-tok[tabindex='0']")
    expect(stop).to_have_count(1)
    stop.focus()
    for _ in range(2):
        stage.page.keyboard.press("ArrowRight")
    expect(stop).to_have_count(1)
    expect(stop).to_be_focused()
    assert stop.get_attribute("role") == "button"
    assert stop.get_attribute("aria-label").startswith("'")
    key = stop.get_attribute("data-k")
    stage.page.keyboard.press("Enter")
    expect(stage.page.locator(".sv-unpin")).to_be_visible()
    stage.page.keyboard.press("End")
    assert stop.get_attribute("data-k") != key
    stage.page.keyboard.press("Escape")
    expect(stage.page.locator(".sv-unpin")).to_have_count(0)


def test_announcements_come_at_a_humane_rate(open_stage: Open) -> None:
    stage = open_stage()
    stage.ask("probe.listen()")
    stage.ask("fetch('/run/sampling').then(r => r.text()).then(text => stage.feed(text))")
    stage.until("said.length >= 3 && said.at(-1)[1].startsWith('Finished: 95 tokens')")
    said = stage.ask("window.said")
    assert re.fullmatch(r"Round \d+: \d of \d accepted", said[0][1])
    times = [time for time, _ in said]
    assert all(later - earlier >= 1900 for earlier, later in pairwise(times))


@pytest.mark.parametrize("script", sorted(p.name for p in (ASSETS / "js").glob("*.js")))
def test_scripts_make_no_markup_from_data_and_stay_small(script: str) -> None:
    text = (ASSETS / "js" / script).read_text()
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not re.search(markup, text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert len(text.splitlines()) <= 300


def test_1500_tokens_are_fed_and_scrubbed_without_long_frames(open_stage: Open) -> None:
    stage = open_stage("run=long").to_end()
    costs = stage.ask("scrubCosts", 60)
    assert costs[len(costs) // 2] < 50
    assert stage.ask("stage.costs.worstFeed") < 250
