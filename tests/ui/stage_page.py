"""The stage as its tests see it: a page of the harness, with what tests do and ask most."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import stage_harness  # first: it puts fixtures/ on the path
import synthetic

KEPT = ("accepted", "resampled", "bonus", "target")
ASSETS = stage_harness.ASSETS


@dataclass
class StagePage:
    """One open page. ``faults`` gathers logged errors and requests to other hosts."""

    page: Any
    faults: list[str] = field(default_factory=list)

    def ask(self, expression: str, *arguments: Any) -> Any:
        """A value of the page; arguments are passed to a function of probe.js."""
        if not arguments:
            return self.page.evaluate(expression)
        return self.page.evaluate(f"a => probe.{expression}(...a)", list(arguments))

    def until(self, expression: str) -> None:
        self.page.wait_for_function(expression)

    def settle(self) -> None:
        """Wait until whatever was asked for has been drawn."""
        self.page.evaluate("probe.settled()")

    def feed(self, events: list[dict[str, Any]]) -> None:
        self.ask("feedLines", events)
        self.settle()

    def to_end(self) -> StagePage:
        """All lines are there, and all that they say is on screen."""
        self.until("stage.model.done !== null")
        self.page.evaluate("stage.actions.end()")
        self.until("probe.whole()")
        self.settle()
        return self

    def press(self, name: str) -> None:
        """Press a button and wait until it has taken effect."""
        self.page.get_by_role("button", name=name, exact=True).click()
        self.settle()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.text_content()

    def words(self, selector: str) -> str:
        """The text as it reads: a space that no line is broken at is a space."""
        return self.text(selector).replace("\u00a0", " ")

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def pin(self, fate: str, nth: int = 0) -> str:
        """Click the nth token of a fate; what the inspector then says."""
        token = self.page.locator(f"[data-lane=speculative] .sv-tok[data-f={fate}]").nth(nth)
        token.dispatch_event("click")
        self.settle()
        return self.text(".sv-verdict")


def events_of(run: str) -> list[dict[str, Any]]:
    """The events of a synthetic run."""
    return [json.loads(line) for line in synthetic.RUNS[run]().splitlines()]


def rounds_of(run: str, lane: str = "speculative") -> list[dict[str, Any]]:
    """The rounds of one lane of a synthetic run."""
    rounds = (e for e in events_of(run) if e["e"] == "round" and e["lane"] == lane)
    return [event["round"] for event in rounds]


def text_of(run: str) -> str:
    """The text a synthetic run generates."""
    tokens = [t for r in rounds_of(run) for t in [*r.get("drafted", []), r["added"]]]
    return "".join(token["text"] for token in tokens if token["fate"] in KEPT)
