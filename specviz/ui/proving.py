"""A proof in a thread of its own, in its turn, told as JSON lines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from specviz.ui.worker import Cancelled, Turns, explain, line

GLANCE_SECONDS = 1 / 12
Event = dict[str, Any]
Progress = Callable[[str, float | None], None]


class Proving:
    """One proof from its first event to its last. ``events`` is called in the thread, with a
    function that takes progress; ``log`` grows by one line an event. Without ``turns`` it waits
    for nobody: it uses no model."""

    def __init__(
        self, events: Callable[[Progress], Iterator[Event]], turns: Turns | None = None
    ) -> None:
        self._events = events
        self._turns = turns
        self._stop = threading.Event()
        self.log = ""
        self.over = False
        self._thread = threading.Thread(target=self._work, name="specviz proof", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End before the next event. Returns at once."""
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Wait for the end; whether it has come."""
        self._thread.join(timeout)
        return self.over

    def _work(self) -> None:
        try:
            if self._turns is None:
                self._run()
            else:
                with self._turns.turn(self._stop, self._say_waiting):
                    self._run()
        except Cancelled:
            self._emit({"e": "end", "stopped": True})
        except Exception as error:
            self._emit({"e": "error", "message": explain(error)})
        finally:
            self.over = True

    def _run(self) -> None:
        for event in self._events(self._say):
            self._emit(event)
            if self._stop.is_set():
                raise Cancelled
        self._emit({"e": "end", "stopped": False})

    def _say_waiting(self, ahead: int) -> None:
        self._say("1 run is ahead" if ahead == 1 else f"{ahead} runs are ahead", None)

    def _say(self, message: str, fraction: float | None = None) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._emit({"e": "status", "message": message, "progress": fraction})

    def _emit(self, event: Event) -> None:
        self.log += line(event)


async def follow(proving: Proving) -> AsyncIterator[str]:
    """The log each time it has grown, until the proof is over. Ends it when the reader leaves."""
    told = ""
    try:
        while True:
            over = proving.over
            if told != (log := proving.log):
                told = log
                yield told
            if over:
                return
            await asyncio.sleep(GLANCE_SECONDS)
    finally:
        proving.stop()
