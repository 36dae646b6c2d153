"""How long drafts may get: the settings on Explore, in its links and in the endpoint."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from gradio_client import Client
from playwright.sync_api import expect
from visit import Site, Visit


def adaptive(visit) -> Visit:
    """A tab in which drafts follow acceptance and end where the draft is not sure."""
    one = visit().ready().settings(max_new_tokens=40)
    one.page.locator("#schedule").get_by_label("adaptive").check()
    one._fill(one.page.locator("#confidence input[type=number]"), "0.3")
    return one


def test_the_settings_reach_the_run_and_its_draft_length_is_drawn(visit) -> None:
    one = adaptive(visit)
    one.finish()
    settings = one.model("model.start.settings")
    assert (settings["schedule"], settings["confidence"]) == ("adaptive", 0.3)
    assert len(set(one.model("model.lanes.speculative.rounds.map((round) => round.gamma)"))) > 1
    expect(one.page.locator("#stage [data-plot=drafts]")).to_be_visible()
    gamma = one.page.locator("#stage [data-plot=drafts] .sv-chart-value").nth(2)
    gamma.scroll_into_view_if_needed()
    last = one.model("model.lanes.speculative.rounds.at(-1).gamma")
    expect(gamma).to_have_text(str(last))


def test_a_link_carries_them(visit) -> None:
    one = adaptive(visit)
    one.button("link").click()
    one.page.wait_for_function("location.search.includes('schedule=adaptive')")
    two = visit("/" + one.page.evaluate("location.search")).ready().settings()
    expect(two.page.locator("#schedule").get_by_label("adaptive")).to_be_checked()
    expect(two.page.locator("#confidence input[type=number]")).to_have_value("0.3")


def test_the_endpoint_takes_them_and_refuses_others(site: Site) -> None:
    client = Client(site.url, verbose=False)
    asked = {"pair": "tiny", "max_new_tokens": 12, "baseline": False, "api_name": "/run"}
    settings = client.predict("Once", schedule="adaptive", confidence=0.2, **asked)["settings"]
    assert (settings["schedule"], settings["confidence"]) == ("adaptive", 0.2)
    with pytest.raises(Exception, match="schedule must be one of constant, adaptive"):
        client.predict("Once", schedule="wild", **asked)
