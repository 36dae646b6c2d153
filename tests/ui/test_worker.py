"""The thread a race runs in, without a browser."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from tiny import pair

from specviz.race import Race
from specviz.records import Settings, SettingsError
from specviz.ui.controls import request, stop_strings
from specviz.ui.faults import explain
from specviz.ui.turns import Turns
from specviz.ui.worker import Pace, RaceWorker, line

PAIR = pair()


def worker(turns: Turns | None = None, tokens: int = 30, **options: Any) -> RaceWorker:
    def make(progress: Any) -> Race:
        return Race(PAIR, "draft model", "Once", Settings(max_new_tokens=tokens), **options)

    return RaceWorker(make, turns or Turns())


def rest(one: RaceWorker) -> list[dict[str, Any]]:
    """Wait until the race rests; every event so far."""
    waiting = threading.Event()
    while one.state == "going":
        waiting.wait(0.01)
    return [json.loads(text) for text in "".join(one.told).splitlines()]


def rounds(events: list[dict[str, Any]], lane: str = "speculative") -> int:
    return sum(event["e"] == "round" and event["lane"] == lane for event in events)


def test_a_step_is_one_speculative_round_and_the_baseline_catches_up():
    one = worker(tokens=2000)
    for steps in range(1, 6):
        one.proceed(1)
        events = rest(one)
        assert rounds(events) == steps
        figures = events[-1]["figures"]
        assert figures["baseline_seconds"] >= figures["seconds"]
    one.stop()


def test_without_a_baseline_a_step_is_one_round():
    one = worker(baseline=False)
    one.proceed(1)
    one.proceed(1)
    assert rounds(rest(one)) == 2
    one.stop()


def test_when_only_the_baseline_is_left_a_step_is_one_of_its_rounds():
    pace = Pace()

    def see(lane: str, own: float, other: float) -> int:
        figures = {"tokens": 1, "seconds": own, "baseline_seconds": other}
        pace.see({"e": "round", "lane": lane, "figures": figures})
        return pace.steps

    pace.see({"e": "start", "lanes": ["speculative", "baseline"], "baseline_reused": False})
    assert see("speculative", 1.0, 0.0) == 1
    pace.see({"e": "end", "lane": "speculative"})
    assert not pace.level
    assert see("baseline", 1.0, 1.5) == 1
    assert pace.level
    assert see("baseline", 1.0, 2.0) == 2


def test_steps_then_run_give_the_same_text_as_a_run():
    whole, stepped = worker(), worker()
    whole.proceed()
    stepped.proceed(2)
    rest(stepped)
    stepped.proceed()
    for one in (whole, stepped):
        rest(one)
    texts = [one.trace().run("speculative").text for one in (whole, stepped)]
    assert texts[0] == texts[1]


def test_a_reader_that_never_asks_holds_up_nothing_and_loses_nothing():
    one = worker(tokens=400)
    one.proceed()
    assert one.join(60)
    assert one.read == 0
    assert rounds(rest(one), "baseline") == 400


def test_a_race_nobody_started_ends_when_stopped():
    one = worker()
    one.stop()
    assert one.join(10)


def test_an_error_keeps_what_was_decoded_and_is_told():
    one = worker(tokens=200)
    one.proceed(3)
    rest(one)
    one.race.advance = lambda: 1 / 0
    one.proceed()
    events = rest(one)
    assert "ZeroDivisionError" in next(e for e in events if e["e"] == "error")["message"]
    assert rounds(events) == 3
    assert one.trace().run("speculative").finish_reason == "error"


def test_messages_of_our_own_errors_are_told_as_they_are():
    with pytest.raises(SettingsError) as caught:
        Settings(gamma=-1)
    assert explain(caught.value) == str(caught.value)
    one = RaceWorker(lambda progress: Race(PAIR, "magic", "Once", Settings()), Turns())
    one.proceed()
    assert rest(one)[-1]["message"].startswith("there is no drafter 'magic'")


def test_a_line_can_never_open_a_tag():
    text = line({"e": "status", "message": "</script><img onerror=x>\n\u2028"})
    assert "<" not in text
    assert text.count("\n") == 1
    assert json.loads(text)["message"].startswith("</script>")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": " \n"}, "The prompt is empty"),
        ({"target": ""}, "No target is chosen"),
        ({"gamma": 0}, "gamma must be from 1 to 16"),
        ({"gamma": 17}, "gamma must be from 1 to 16"),
        ({"gamma": None}, "gamma is empty"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"baseline": "perhaps"}, "baseline must be one of"),
    ],
)
def test_a_request_that_cannot_be_run_says_what_to_change(changed: dict, message: str):
    given = {"target": "t", "draft": "d", "drafter": "draft model", "prompt": "Once", "gamma": 4}
    with pytest.raises(SettingsError, match=message):
        request(**{**given, **changed})


def test_stop_strings_are_one_a_line_and_may_hold_line_breaks():
    assert stop_strings("END\n\\n\\n\n\n x") == ("END", "\n\n", " x")
