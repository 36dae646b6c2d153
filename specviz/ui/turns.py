"""The line for the processor: one computes, the others wait and are told for how long."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Literal

Kind = Literal["run", "step", "sweep", "proof"]
"""What a turn is taken for: a race to its end, some rounds of one, one run of a sweep, one result
of a proof. Their durations are not mixed."""

REMEMBERED = 20
LOOK_SECONDS = 0.25
BEHIND_THE_PAGE = 5
"""How much nicer than the page's own threads those that compute are (0 to 19, on Linux)."""


class Cancelled(Exception):
    """The person pressed Stop, or left, before their turn or in it."""


class LineFull(RuntimeError):
    """The host lets no more wait; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where somebody stands in the line: ``ahead`` others come first, which will take ``seconds``
    if they go on as turns of their kinds did. None where no such turn has been measured."""

    ahead: int
    seconds: float | None = None

    @property
    def words(self) -> str:
        """The place as a person is told it."""
        runs = "1 run is" if self.ahead == 1 else f"{self.ahead} runs are"
        wait = "" if self.seconds is None else f", {_about(self.seconds)}"
        return f"{runs} ahead of yours{wait}. It starts by itself."


def _about(seconds: float) -> str:
    if seconds < 120:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    return f"about {round(seconds / 60)} min"


@dataclass(eq=False, slots=True)
class _Turn:
    kind: Kind
    begun: float | None = None


class Turns:
    """One computes at a time, first come first served: races, sweeps, proofs and the runs of
    programs alike. A second would take the cores away from the first and both would measure
    nonsense.

    ``max_waiting`` is how many may stand behind the one that computes, ``max_seconds`` what one
    run may compute (see ``RaceWorker``, ``Sweeping``, ``Proving``); None sets no limit. ``now`` is
    a clock in seconds.
    """

    def __init__(
        self,
        max_waiting: int | None = None,
        max_seconds: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_seconds = max_seconds
        self._max_waiting = max_waiting
        self._now = now
        self._line: deque[_Turn] = deque()
        self._moved = threading.Condition()
        self._taken: dict[Kind, deque[float]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    @property
    def contested(self) -> bool:
        """Whether anybody waits."""
        return len(self._line) > 1

    @contextmanager
    def turn(
        self,
        cancelled: threading.Event,
        waiting: Callable[[str], None],
        kind: Kind = "run",
        *,
        bounded: bool = True,
    ) -> Iterator[None]:
        """Wait in line, telling ``waiting`` in words where one stands whenever that changes; then
        hold the turn. Raises Cancelled when ``cancelled`` is set while waiting, and LineFull where
        too many wait already. ``bounded`` False is for what goes on with something begun: it is
        never refused."""
        mine = self._join(kind, bounded)
        whole = False
        try:
            self._wait(mine, cancelled, waiting)
            mine.begun = self._now()
            yield
            whole = True
        finally:
            self._leave(mine, whole)

    def _join(self, kind: Kind, bounded: bool) -> _Turn:
        mine = _Turn(kind)
        with self._moved:
            most = self._max_waiting
            if bounded and most is not None and len(self._line) > most:
                runs = "1 run waits" if most == 1 else f"{most} runs wait"
                raise LineFull(
                    f"{runs} already, and this host lets no more wait. Try again in a minute."
                )
            self._line.append(mine)
        return mine

    def _leave(self, mine: _Turn, whole: bool) -> None:
        with self._moved:
            self._line.remove(mine)
            if whole and mine.begun is not None:
                self._taken[mine.kind].append(self._now() - mine.begun)
            self._moved.notify_all()

    def _wait(
        self, mine: _Turn, cancelled: threading.Event, waiting: Callable[[str], None]
    ) -> None:
        told = ""
        while True:
            if cancelled.is_set():
                raise Cancelled
            place = self._place(mine)
            if place.ahead == 0:
                return
            if place.words != told:
                told = place.words
                waiting(told)
            with self._moved:
                if self._line[0] is not mine:
                    self._moved.wait(LOOK_SECONDS)

    def _place(self, mine: _Turn) -> Place:
        with self._moved:
            others = list(self._line)[: self._line.index(mine)]
            left = [self._left(turn) for turn in others]
        known = [seconds for seconds in left if seconds is not None]
        return Place(len(others), sum(known) if len(known) == len(others) else None)

    def _left(self, turn: _Turn) -> float | None:
        """Seconds a turn will still take: the mean of those of its kind that took longer than it
        has been going, less that. None where there were none."""
        gone = 0.0 if turn.begun is None else self._now() - turn.begun
        longer = [seconds for seconds in self._taken[turn.kind] if seconds > gone]
        return sum(longer) / len(longer) - gone if longer else None


def computing(work: Callable[[], None], name: str) -> threading.Thread:
    """A started thread that computes for a visitor. It has the visitor's own request at hand (a
    GPU is lent to a visitor), and where the processor is short the page's answers come first:
    both lanes of a race stand behind them alike."""
    thread = threading.Thread(
        target=copy_context().run, args=(_behind_the_page, work), name=name, daemon=True
    )
    thread.start()
    return thread


def _behind_the_page(work: Callable[[], None]) -> None:
    if sys.platform == "linux":  # where a thread has a priority of its own
        own = os.getpriority(os.PRIO_PROCESS, 0)
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, min(19, own + BEHIND_THE_PAGE))
    work()
