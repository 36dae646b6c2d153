"""One thing that runs for each visitor, kept under the session's own unguessable id."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
BACK_SECONDS = 300.0
"""How long what a visitor had is kept once the connection to their page is lost."""


class OneEach(Generic[T]):
    """At most one of a kind a visitor. ``end`` ends one and returns at once; ``left`` tells one
    that the connection to its visitor's page is lost."""

    def __init__(
        self,
        end: Callable[[T], None],
        left: Callable[[T], None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._end, self._left, self._now = end, left or end, now
        self._held: dict[str, T] = {}
        self._away: dict[str, float] = {}
        self._lock = threading.Lock()

    def of(self, session: str) -> T | None:
        """The visitor's, whether it goes, pauses or is over."""
        with self._lock:
            self._away.pop(session, None)
            return self._held.get(session)

    def put(self, session: str, one: T) -> None:
        """Make ``one`` the visitor's; the one before ends."""
        with self._lock:
            self._away.pop(session, None)
            before, self._held[session] = self._held.get(session), one
        if before is not None:
            self._end(before)
        self._forget()

    def move(self, before: str, now: str) -> None:
        """What was one session's is another's of the same visitor; what that one had ends."""
        with self._lock:
            self._away.pop(before, None)
            one = self._held.pop(before, None)
        if one is not None:
            self.put(now, one)

    def leave(self, session: str) -> None:
        """The connection is lost, by closing the page or by a fault: what the visitor has is kept
        for a while, in case they come back. Returns at once."""
        with self._lock:
            one = self._held.get(session)
            if one is not None:
                self._away[session] = self._now()
        if one is not None:
            self._left(one)
        self._forget()

    def drop(self, session: str) -> None:
        """The visitor has left or wants no more of it: end it and forget it. Returns at once."""
        with self._lock:
            self._away.pop(session, None)
            one = self._held.pop(session, None)
        if one is not None:
            self._end(one)

    def _forget(self) -> None:
        """Drop what visitors had who have been away for too long."""
        with self._lock:
            long_ago = self._now() - BACK_SECONDS
            gone = [session for session, since in self._away.items() if since < long_ago]
        for session in gone:
            self.drop(session)
