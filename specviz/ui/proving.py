"""A proof in a thread of its own, in its turn, told as JSON lines."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from typing import Any

from specviz.lossless import RIGHT
from specviz.ui.alone import Unwanted
from specviz.ui.changes import changes
from specviz.ui.faults import explain, free_memory
from specviz.ui.turns import Cancelled, Turns, computing
from specviz.ui.visitors import OneEach
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
    model. ``unwanted`` is set once it is to end, which it does before the next event. ``variant``
    is the way of verifying that it is about, ``put_away`` tells that it is not to be shown."""

    def __init__(
        self,
        events: Callable[[Progress], Iterator[Event]],
        turns: Turns | None = None,
        variant: str = RIGHT,
    ) -> None:
        self._events = events
        self._turns = turns
        self.variant = variant
        self.unwanted = Unwanted(turns)
        self.log = ""
        self.over = self.put_away = False
        self._thread = computing(self._work, "specviz proof")

    def join(self, timeout: float) -> bool:
        """Wait for the end; whether it has come."""
        self._thread.join(timeout)
        return self.over

    def _work(self) -> None:
        try:
            for event in self._made():
                self._emit(event)
                if self.unwanted.is_set():
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
            with self._turns.turn(self.unwanted, self._say_place, "proof", bounded=not begun):
                begun, start = True, time.monotonic()
                event = next(events, None)
                spent += time.monotonic() - start
            if event is None:
                return
            yield event

    def _say_place(self, place: str) -> None:
        self._say(place)

    def _say(self, message: str, fraction: float | None = None) -> None:
        if self.unwanted.is_set():
            raise Cancelled
        self._emit({"e": "status", "message": message, "progress": fraction})

    def _emit(self, event: Event) -> None:
        self.log += line(event)


def follow(proving: Proving) -> AsyncIterator[str]:
    """The log each time it has grown, until the proof is over."""
    return changes(proving, lambda: "" if proving.put_away else proving.log, GLANCE_SECONDS)


class Proofs(OneEach[Mapping[str, Proving]]):
    """Each visitor's last proof of each kind, by its name. At most one of a visitor's goes on."""

    def __init__(self) -> None:
        super().__init__(
            _each(Unwanted.set), left=_each(Unwanted.leave_alone), back=_each(Unwanted.attend)
        )

    def own(self, session: str) -> Mapping[str, Proving]:
        """The visitor's proofs."""
        return self.of(session) or {}

    def begin(self, session: str, kind: str, proving: Proving) -> None:
        """Take in a new proof, which ends the one that goes on."""
        self.put(session, {**self.own(session), kind: proving})

    def put_away(self, session: str, kinds: Collection[str]) -> None:
        """End and forget the visitor's proofs of these kinds."""
        own = self.own(session)
        for kind in own.keys() & set(kinds):
            own[kind].put_away = True
            own[kind].unwanted.set()
        self.change(session, lambda _: {kind: own[kind] for kind in own if kind not in kinds})


def _each(do: Callable[[Unwanted], object]) -> Callable[[Mapping[str, Proving]], None]:
    """Does it to every one of a visitor's proofs."""

    def to_all(proofs: Mapping[str, Proving]) -> None:
        for proving in proofs.values():
            do(proving.unwanted)

    return to_all
