"""Texts that try to become something else, and a guard that tells whether one did."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tiny import trace
from visit import Visit

from specviz.records import Candidate, Machine, PairInfo, PromptToken, Run, Token, Trace

CORPUS: list[dict[str, str]] = json.loads(
    (Path(__file__).parent / "injections.json").read_text(encoding="utf-8")
)
TEXTS = [entry["text"] for entry in CORPUS]
GROUPS = ["\n".join(TEXTS[i::17]) for i in range(17)]
"""All texts, a few at a time. Those that leave something open are the last of their groups."""
LONG = "<b class=pwned>" + "long " * 4000 + "<img class=pwned src=x onerror=window.__pwned=0>"
PLAIN = "plain words"
SPEAKING = """
for (const name of ["alert", "confirm", "prompt", "print", "open"])
  window[name] = () => { window.__pwned = name; };
"""
MADE = """() => {
  const leads = (value) => {
    try {
      const url = new URL(value, location.href);
      return url.protocol === "javascript:" || url.host.includes("pwned")
        || (url.protocol === "data:" && url.pathname.startsWith("text/html"));
    } catch { return false; }
  };
  const armed = (a) => /^on/i.test(a.name) || a.name === "srcdoc"
    || (/^(href|xlink:href|src|action|formaction|data)$/i.test(a.name) && leads(a.value))
    || (a.name === "style" && a.value.includes("pwned"));
  return [...document.querySelectorAll("*")]
    .filter((one) => one.classList.contains("pwned") || [...one.attributes].some(armed))
    .map((one) => one.outerHTML.slice(0, 200));
}"""
COUNTS = """() => Object.fromEntries(
  ["script", "img", "iframe", "object", "embed", "form", "base", "meta", "link", "style", "video",
    "math", "details", "noscript", "foreignObject"]
  .map((name) => [name, document.querySelectorAll(name).length]))"""
GLOBALS = "() => Object.getOwnPropertyNames(window)"
PROTOTYPE = "() => Object.keys(Object.prototype).concat(Object.keys(Array.prototype))"


class Guard:
    """Watches one page from before it is opened. ``settled`` is called once all that the page
    adds by itself is there; after that ``check`` allows nothing new."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._dialogs: list[str] = []
        self._requests: list[str] = []
        self._known: set[str] = set()
        self._counts: dict[str, int] = {}
        page.add_init_script(SPEAKING)
        page.on("dialog", self._on_dialog)
        page.on("request", self._on_request)

    def _on_dialog(self, dialog: Any) -> None:
        self._dialogs.append(dialog.message)
        dialog.dismiss()

    def _on_request(self, request: Any) -> None:
        navigation = request.is_navigation_request() and request.frame == self._page.main_frame
        asked = urlsplit(request.url)
        elsewhere = "pwned" in asked.netloc or asked.path.rpartition("/")[2] == "x"
        if not navigation and elsewhere:
            self._requests.append(request.url)

    def settled(self) -> None:
        """From here on the page has all its own globals and elements."""
        self._known = set(self._page.evaluate(GLOBALS))
        self._counts = self._page.evaluate(COUNTS)

    def check(self) -> None:
        """Nothing ran, nothing was asked for, no element was made of a text."""
        page = self._page
        seen = {
            "ran": page.evaluate("window.__pwned"),
            "dialogs": self._dialogs,
            "requests": self._requests,
            "elements": page.evaluate(MADE),
            "prototype": page.evaluate(PROTOTYPE),
        }
        if self._known:
            seen["globals"] = sorted(set(page.evaluate(GLOBALS)) - self._known)
            counts = page.evaluate(COUNTS)
            seen["more"] = {n: counts[n] for n in counts if counts[n] > self._counts[n]}
        found = {what: value for what, value in seen.items() if value}
        assert found == {}, found


def guarded(browser: Any, site: Any, path: str = "/") -> tuple[Visit, Guard]:
    """A tab with a guard on it, opened at ``path``."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    guard = Guard(page)
    one = Visit(page, site)
    one.go(path)
    return one, guard


@cache
def recorded(tokens: int) -> Trace:
    """A run of the tiny pair."""
    return trace(tokens=tokens)


def hostile_trace(text: str, others: list[str] | None = None, tokens: int = 12) -> Trace:
    """A trace in which every text is ``text``; those of its tokens go through ``others``, where
    there are some."""
    made = recorded(tokens)
    turn = iter(others * 100 if others else [text] * 10_000)

    def arm(token: Token) -> Token:
        one = next(turn)
        shown = tuple(Candidate(i, one, 0.5 / (i + 1)) for i in range(3))
        return replace(
            token,
            text=one,
            label=one,
            source=text,
            passage=one,
            copied_from=0,
            matched=1,
            p_top=shown,
            q_top=shown,
            residual_top=shown,
        )

    return replace(
        made,
        pair=PairInfo(text, text, text),
        machine=Machine(text, text, 2, {text: text}),
        settings=replace(made.settings, stop=(text[:200],)),
        prompt=text,
        prompt_tokens=tuple(PromptToken(i, text) for i in range(3)),
        runs=tuple(_armed(run, text, arm) for run in made.runs),
        note=text,
    )


def _armed(run: Run, text: str, arm: Callable[[Token], Token]) -> Run:
    rounds = tuple(
        replace(
            round_,
            drafted=tuple(map(arm, round_.drafted)),
            added=None if round_.added is None else arm(round_.added),
        )
        for round_ in run.rounds
    )
    return replace(run, drafter=text, rounds=rounds, text_end=None)
