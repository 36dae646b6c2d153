"""Visitors who come back. A page that is loaded anew, by its visitor or by Gradio once a lost
connection is back, is a new session: with a pass, which nobody can guess, it takes over what the
session before it had."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any

import gradio as gr

from specviz.ui.elements import HIDDEN, element
from specviz.ui.visitors import OneEach, nothing

RETURN_HTML = "<span></span>"
RETURN_JS = """
const mount = () => {
  watch("value", () => {
    const { pass, back } = JSON.parse(props.value);
    window.specviz.keepPass(pass, server.here);
    if (back) trigger("back");
  });
  window.specviz.showPass().then((shown) => trigger("arrive", shown));
};
if (window.specviz?.showPass) mount();
else window.addEventListener("specviz-ready", mount, { once: true });
"""
UNTIL_AWAY_SECONDS = 5.0
"""How long a lost connection may take to be noticed here, where the browser cannot tell."""
LOOK_SECONDS = 0.1


class Returning:
    """Gives each page a pass and lets whoever shows one take over what its session had."""

    def __init__(self) -> None:
        self._passes: OneEach[str] = OneEach(nothing, nothing)
        self._held: list[OneEach[Any]] = [self._passes]

    def keep(self, *held: OneEach[Any]) -> None:
        """Let what each visitor has of these outlast their page for a while."""
        self._held += held

    def draw(self) -> None:
        """Put what remembers the pass into the block that is open; it shows nothing."""
        self._element = element(
            "",
            RETURN_HTML,
            RETURN_JS,
            "visitor",
            visible="hidden",
            server_functions=[self._here()],
        )

    @property
    def back(self) -> Any:
        """The event of a page that has taken over from one before it."""
        return self._element.back

    def wire(self, page: gr.Blocks) -> None:
        """Connect the events."""
        self._element.arrive(self.on_arrive, None, self._element, **HIDDEN)
        page.unload(self.on_unload)

    def _here(self) -> Any:
        """The function with which a page says now and then that it is there. (A function of its
        own: Gradio marks what may be called, and a method cannot be marked.)"""

        async def here(shown: str) -> None:
            session = self._passes.whose(lambda one: one == shown)
            for held in self._held if session else ():
                held.of(session)

        return here

    async def on_arrive(self, event: gr.EventData, request: gr.Request) -> str:
        """A page is there. It shows the pass of the page before it, if it has one, and gets its
        own: the same where it takes over, so that it may be loaded anew at any moment."""
        session = request.session_hash or ""
        shown = str(event.shown)
        before = await self._left_with(shown, bool(event.alone))
        if before:
            for held in self._held:
                held.move(before, session)
        else:
            shown = secrets.token_urlsafe(16)
            self._passes.put(session, shown)
        return json.dumps({"pass": shown, "back": bool(before)})

    async def _left_with(self, shown: str, alone: bool) -> str:
        """The session that has this pass, once its page is gone; empty where it has none or stays.
        ``alone`` tells that the browser knows of no other page that has it: its connection may be
        lost without a sign of that here."""
        patience = time.monotonic() + UNTIL_AWAY_SECONDS
        while True:
            session = self._passes.whose(lambda one: one == shown)
            if not session or alone or self._passes.is_away(session):
                return session
            if time.monotonic() > patience:
                return ""
            await asyncio.sleep(LOOK_SECONDS)

    def on_unload(self, request: gr.Request) -> None:
        """The connection to a page is lost."""
        for held in self._held:
            held.leave(request.session_hash or "")
