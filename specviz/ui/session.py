"""What the page remembers of each visitor, and nothing else of anyone.

``Memory`` is plain values and lives in a ``gr.State``. Threads cannot live there, so ``Races``
keeps each visitor's one race under the session's own unguessable id; it belongs to the page that
``build`` returned and is no module global.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from specviz.records import Run
from specviz.ui.controls import Request
from specviz.ui.visitors import OneEach
from specviz.ui.worker import RaceWorker


@dataclass(frozen=True, slots=True)
class Memory:
    """The last complete baseline with the key it may be reused under, the request that a paused
    race belongs to, and why the last press could not be obeyed, empty if it was."""

    baseline: Run | None = None
    baseline_key: Hashable = None
    request: Request | None = None
    refused: str = ""


class Races(OneEach[RaceWorker]):
    """At most one race a visitor."""

    def __init__(self) -> None:
        super().__init__(lambda race: race.abandon())

    def with_ticket(self, ticket: str) -> RaceWorker | None:
        """The race a page has a ticket for, whoever's it is."""
        return next((race for race in self.all() if race.ticket == ticket), None)

    def going(self) -> int:
        """How many races compute or wait for their turn."""
        return sum(race.state == "going" for race in self.all())
