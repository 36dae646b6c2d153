"""One thing that runs for each visitor, kept under the session's own unguessable id."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class OneEach(Generic[T]):
    """At most one of a kind a visitor. ``end`` ends one and returns at once."""

    def __init__(self, end: Callable[[T], None]) -> None:
        self._end = end
        self._held: dict[str, T] = {}
        self._lock = threading.Lock()

    def of(self, session: str) -> T | None:
        """The visitor's, whether it goes, pauses or is over."""
        with self._lock:
            return self._held.get(session)

    def put(self, session: str, one: T) -> None:
        """Make ``one`` the visitor's; the one before ends."""
        with self._lock:
            before, self._held[session] = self._held.get(session), one
        if before is not None:
            self._end(before)

    def drop(self, session: str) -> None:
        """The visitor has left or wants no more of it: end it and forget it. Returns at once."""
        with self._lock:
            one = self._held.pop(session, None)
        if one is not None:
            self._end(one)

    def all(self) -> list[T]:
        """Everybody's."""
        with self._lock:
            return list(self._held.values())
