"""What there is at most one of for each visitor, kept under the session's own unguessable id."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
BACK_SECONDS = 300.0
"""How long what a visitor had is kept once the connection to their page is lost."""


def nothing(_: object) -> None:
    """Nothing has to be done."""


class OneEach(Generic[T]):
    """At most one of a kind a visitor. ``end`` ends one and returns at once; ``left`` tells one
    that the connection to its visitor's page is lost (None: it ends then), ``back`` that the
    visitor is there again. ``now`` is a clock in seconds."""

    def __init__(
        self,
        end: Callable[[T], object],
        left: Callable[[T], object] | None = None,
        back: Callable[[T], object] = nothing,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._end, self._left, self._back, self._now = end, left or end, back, now
        self._held: dict[str, T] = {}
        self._away: dict[str, float] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def of(self, session: str) -> T | None:
        """The visitor's, whether it goes, pauses or is over. Who asks for it is there, by
        whatever connection."""
        with self._lock:
            away = self._heard(session)
            one = self._held.get(session)
        if away and one is not None:
            self._back(one)
        return one

    def put(self, session: str, one: T) -> None:
        """Make ``one`` the visitor's; the one before ends."""
        with self._lock:
            self._heard(session)
            before, self._held[session] = self._held.get(session), one
        if before is not None:
            self._end(before)

    def change(self, session: str, changed: Callable[[T | None], T]) -> T:
        """Make what ``changed`` makes of the visitor's one theirs, ending nothing. No two change
        at a time; what ``changed`` raises leaves everything as it was."""
        with self._lock:
            self._heard(session)
            one = self._held[session] = changed(self._held.get(session))
        return one

    def whose(self, wanted: Callable[[T], bool]) -> str:
        """The session of the first that is ``wanted``; empty where there is none."""
        self._forget()
        with self._lock:
            return next((session for session, one in self._held.items() if wanted(one)), "")

    def is_away(self, session: str) -> bool:
        """Whether the connection to the visitor's page is lost."""
        with self._lock:
            return session in self._away

    def move(self, before: str, now: str) -> None:
        """What was one session's is another's of the same visitor. Where that one has begun
        something of its own, it keeps that, and the earlier one ends."""
        if before == now:
            return
        self._forget()
        with self._lock:
            self._away.pop(before, None)
            one = self._held.pop(before, None)
            if one is None:
                return
            newer = self._held.setdefault(now, one)
        if newer is one:
            self._back(one)
        else:
            self._end(one)

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
        """The visitor wants no more of it: end it and forget it. Returns at once."""
        with self._lock:
            self._away.pop(session, None)
            one = self._held.pop(session, None)
        if one is not None:
            self._end(one)

    def _heard(self, session: str) -> bool:
        """Whether the connection to a visitor was lost who is there all the same, and will be
        from now on. (Gradio does not connect a page anew: it loads it anew or leaves it.)"""
        away = session in self._away
        if away:
            self._away[session] = self._now()
        return away

    def _forget(self) -> None:
        """End what visitors had who have been away for too long, and look again when the next of
        them will have been."""
        with self._lock:
            long_ago = self._now() - BACK_SECONDS
            gone = [session for session, since in self._away.items() if since <= long_ago]
            for session in gone:
                del self._away[session]
            ended = [self._held.pop(session) for session in gone]
            if self._away and self._timer is None:
                self._timer = threading.Timer(min(self._away.values()) - long_ago, self._look)
                self._timer.daemon = True
                self._timer.start()
        for one in ended:
            self._end(one)

    def _look(self) -> None:
        with self._lock:
            self._timer = None
        self._forget()
