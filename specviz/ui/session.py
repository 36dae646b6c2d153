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
        super().__init__(RaceWorker.stop, RaceWorker.leave_alone, RaceWorker.attend)

    def with_ticket(self, ticket: str) -> RaceWorker | None:
        """The race a page has a ticket for, whoever's it is."""
        session = self.whose(lambda race: race.ticket == ticket)
        return self.of(session) if session else None
