"""How a page follows a race.

The page asks for news, shows them, and asks again when it can afford to: a slow page asks less
often, and each answer holds whatever has happened since. Nothing is pushed. (Gradio's own way,
a growing value sent to a component, makes the browser serialise all of it several times at every
update.)
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from specviz.ui.worker import RaceWorker, line

GLANCE_SECONDS = 1 / 30
PATIENCE_SECONDS = 5.0  # of an answer that has nothing to say yet
LOOK_SECONDS = 1 / 10
LAST_READ_SECONDS = 3.0  # a page gets to take the last lines before the buttons change
GONE = (
    "The server of this page has forgotten this run: it was started anew, or the page was away for"
    " too long. What has arrived is kept. Reload the page to run again."
)


def order(race: RaceWorker) -> str:
    """The value of a stage that is to follow ``race``. Never the same twice: Gradio tells a
    component only about changes."""
    return line({"e": "follow", "ticket": race.ticket, "at": time.monotonic_ns()})


async def answer(race: RaceWorker | None, since: int) -> dict[str, Any]:
    """What is new after the first ``since`` batches of lines, as soon as there is any: ``lines``,
    ``next`` (what to ask from then) and ``resting`` (nothing more comes by itself)."""
    if race is None:
        return {"lines": line({"e": "error", "message": GONE}), "next": since, "resting": True}
    race.attend()
    patience = time.monotonic() + PATIENCE_SECONDS
    while True:
        resting = race.state != "going"
        if len(race.told) > since or resting or time.monotonic() > patience:
            break
        await asyncio.sleep(GLANCE_SECONDS)
    race.read = len(race.told)
    return {"lines": "".join(race.told[since:]), "next": race.read, "resting": resting}


async def until_rest(race: RaceWorker) -> None:
    """Until the race pauses or is over."""
    while race.state == "going":
        await asyncio.sleep(LOOK_SECONDS)


async def until_read(race: RaceWorker) -> None:
    """Until the race rests and its page has asked for the last lines, if it still asks at all."""
    await until_rest(race)
    patience = time.monotonic() + LAST_READ_SECONDS
    while race.read < len(race.told) and time.monotonic() < patience:
        await asyncio.sleep(GLANCE_SECONDS)
