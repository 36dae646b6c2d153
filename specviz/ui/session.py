"""What the page remembers of each visitor, and nothing else of anyone.

``Memory`` is plain values and lives in a ``gr.State``. Threads cannot live there, so ``Races``
keeps each visitor's one race under the session's own unguessable id; it belongs to the page that
``build`` returned and is no module global.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from specviz.records import Run
from specviz.ui.visitors import OneEach
from specviz.ui.worker import RaceWorker


@dataclass(frozen=True, slots=True)
class Memory:
    """The last complete baseline with the key it may be reused under, and why the last press could
    not be obeyed, empty if it was."""

    baseline: Run | None = None
    baseline_key: Hashable = None
    refused: str = ""


class Races(OneEach[RaceWorker]):
    """At most one race a visitor."""

    def __init__(self) -> None:
        super().__init__(RaceWorker.stop, RaceWorker.leave_alone)

    def with_ticket(self, ticket: str) -> RaceWorker | None:
        """The race a page has a ticket for, whoever's it is."""
        session = self._session_of(ticket)
        return None if session is None else self.of(session)

    def adopt(self, ticket: str, session: str) -> RaceWorker | None:
        """The race a page has a ticket for, which from now on is this visitor's: a page that is
        loaded anew gets a new session."""
        before = self._session_of(ticket)
        if before is None:
            return None
        if before != session:
            self.move(before, session)
        race = self.of(session)
        if race is not None:
            race.attend()
        return race

    def _session_of(self, ticket: str) -> str | None:
        with self._lock:
            held = self._held.items()
            return next((session for session, race in held if race.ticket == ticket), None)
