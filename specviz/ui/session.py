"""What the page remembers of each visitor, and nothing else of anyone.

``Memory`` is plain values and lives in a ``gr.State``. Threads cannot live there, so ``Races``
keeps each visitor's one race under the session's own unguessable id; it belongs to the page that
``build`` returned and is no module global.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass

from specviz.records import Run
from specviz.ui.controls import Request
from specviz.ui.worker import RaceWorker


@dataclass(frozen=True, slots=True)
class Memory:
    """The last complete baseline with the key it may be reused under, the request that a paused
    race belongs to, and why the last press could not be obeyed, empty if it was."""

    baseline: Run | None = None
    baseline_key: Hashable = None
    request: Request | None = None
    refused: str = ""


class Races:
    """At most one race a visitor."""

    def __init__(self) -> None:
        self._races: dict[str, RaceWorker] = {}
        self._lock = threading.Lock()

    def of(self, session: str) -> RaceWorker | None:
        """The visitor's race, whether it goes, pauses or is over."""
        with self._lock:
            return self._races.get(session)

    def with_ticket(self, ticket: str) -> RaceWorker | None:
        """The race a page has a ticket for, whoever's it is."""
        with self._lock:
            return next((race for race in self._races.values() if race.ticket == ticket), None)

    def put(self, session: str, race: RaceWorker) -> None:
        """Make ``race`` the visitor's; the one before ends."""
        with self._lock:
            before, self._races[session] = self._races.get(session), race
        if before is not None:
            before.abandon()

    def drop(self, session: str) -> None:
        """The visitor has left: end the race and forget it. Returns at once."""
        with self._lock:
            race = self._races.pop(session, None)
        if race is not None:
            race.abandon()

    def going(self) -> int:
        """How many races compute or wait for their turn."""
        with self._lock:
            return sum(race.state == "going" for race in self._races.values())
