"""A proof in a thread of its own, in its turn, told as JSON lines."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from specviz.ui.changes import changes
from specviz.ui.faults import explain, free_memory
from specviz.ui.turns import Cancelled, Turns, computing
from specviz.ui.worker import line

GLANCE_SECONDS = 1 / 12
Event = dict[str, Any]
Progress = Callable[[str, float | None], None]


class OverLimit(RuntimeError):
    """A proof has used up what the host allows."""


class Proving:
    """One proof from its first event to its last. ``events`` is called in the thread, with a
    function that takes progress; ``log`` grows by one line an event. Each event is made in a turn
    of its own, so that others come between. Without ``turns`` it waits for nobody: it uses no
    model."""

    def __init__(
        self, events: Callable[[Progress], Iterator[Event]], turns: Turns | None = None
    ) -> None:
        self._events = events
        self._turns = turns
        self._stop = threading.Event()
        self.log = ""
        self.over = False
        self._thread = computing(self._work, "specviz proof")

    def stop(self) -> None:
        """End before the next event. Returns at once."""
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Wait for the end; whether it has come."""
        self._thread.join(timeout)
        return self.over

    def _work(self) -> None:
        try:
            for event in self._made():
                self._emit(event)
                if self._stop.is_set():
                    raise Cancelled
            self._emit({"e": "end", "stopped": False})
        except Cancelled:
            self._emit({"e": "end", "stopped": True})
        except BaseException as error:  # whatever kills the thread: nobody else would tell
            self._emit({"e": "error", "message": explain(error)})
            free_memory()
        finally:
            self.over = True

    def _made(self) -> Iterator[Event]:
        """The events, each made in its turn."""
        events = self._events(self._say)
        if self._turns is None:
            yield from events
            return
        most, begun, spent = self._turns.max_seconds, False, 0.0
        while True:
            if most is not None and spent > most:
                raise OverLimit(
                    f"This host lets a proof compute for {most:g} s, and they are over. What was"
                    " found so far stands below."
                )
            with self._turns.turn(self._stop, self._say_place, "proof", bounded=not begun):
                begun, start = True, time.monotonic()
                event = next(events, None)
                spent += time.monotonic() - start
            if event is None:
                return
            yield event

    def _say_place(self, place: str) -> None:
        self._say(place)

    def _say(self, message: str, fraction: float | None = None) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._emit({"e": "status", "message": message, "progress": fraction})

    def _emit(self, event: Event) -> None:
        self.log += line(event)


def follow(proving: Proving) -> AsyncIterator[str]:
    """The log each time it has grown, until the proof is over."""
    return changes(proving, lambda: proving.log, GLANCE_SECONDS)
