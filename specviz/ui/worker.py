"""A race in a thread of its own, which no browser can slow down.

The thread alone touches the race. What happened goes, as JSON lines, into a bounded queue that
is drained whenever the page asks for news. The bound is there for a reader that has stalled:
when ``CAPACITY`` rounds wait unread the thread pauses *between* rounds, where neither decode
clock runs, so memory stays flat and no figure changes. At the usual pace the queue holds a few.
"""

from __future__ import annotations

import json
import logging
import queue
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from specviz.race import Race
from specviz.records import Trace

CAPACITY = 256
IDLE_SECONDS = 900.0
log = logging.getLogger(__name__)

Progress = Callable[[str, float | None], None]


class Cancelled(Exception):
    """The person pressed Stop, or left, before the first round."""


class Pace:
    """Reads off a race's events how far it is, to tell where a step ends. A step is a
    speculative round; when only the baseline is left, it is one of the baseline's."""

    def __init__(self) -> None:
        self.rounds = self.tokens = self.steps = 0
        self.baseline_reused = False
        self._clocks = {"speculative": 0.0, "baseline": float("inf")}
        self._ended = False

    def see(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        if event["e"] == "start":
            self.baseline_reused = event["baseline_reused"]
            if "baseline" in event["lanes"]:
                self._clocks["baseline"] = 0.0
        elif event["e"] == "round":
            self._see_round(event["lane"], event["figures"])
        elif event["e"] == "end" and event["lane"] == "speculative":
            self._ended = True
        elif event["e"] == "end":
            self._clocks["baseline"] = float("inf")

    def _see_round(self, lane: str, figures: dict[str, Any]) -> None:
        self.steps += lane == "speculative" or (self._ended and self.level)
        self.rounds += lane == "speculative"
        self.tokens = figures["tokens"]
        self._clocks[lane] = figures["seconds" if lane == "speculative" else "baseline_seconds"]

    @property
    def level(self) -> bool:
        """Whether the baseline has caught up with where the speculative lane is."""
        return self._clocks["speculative"] <= self._clocks["baseline"]


class Turns:
    """One race computes at a time, first come first served.

    A second race would take the cores away from the first and both would measure nonsense.
    """

    def __init__(self) -> None:
        self._line: deque[object] = deque()
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, cancelled: threading.Event, waiting: Callable[[int], None]) -> Iterator[None]:
        """Wait in line, calling ``waiting`` with the number ahead when it changes; then hold the
        turn. Raises Cancelled when ``cancelled`` is set while waiting."""
        me = object()
        with self._moved:
            self._line.append(me)
        try:
            if cancelled.is_set():
                raise Cancelled
            told = 0
            while ahead := self._ahead(me):
                if cancelled.is_set():
                    raise Cancelled
                if ahead != told:
                    waiting(ahead)
                    told = ahead
                with self._moved:
                    if self._line[0] is not me:
                        self._moved.wait(0.25)
            yield
        finally:
            with self._moved:
                self._line.remove(me)
                self._moved.notify_all()

    def _ahead(self, me: object) -> int:
        with self._moved:
            return self._line.index(me)


class RaceWorker:
    """One race from loading its models to its last line; paused whenever it is not told to go.

    ``make`` loads what is needed, reporting progress, and returns the race; it runs in the
    worker's thread. ``state`` is "paused" (waiting to be told), "going" or "over". ``ticket`` is
    the name under which a page asks for news of it; nobody can guess it.
    """

    def __init__(self, make: Callable[[Progress], Race], turns: Turns) -> None:
        self._make = make
        self._turns = turns
        self._lines: queue.Queue[str] = queue.Queue(CAPACITY)
        self._stop = threading.Event()
        self._unread = threading.Event()
        self._order = threading.Condition()
        self._goal: int | None = 0
        self.race: Race | None = None
        self.pace = Pace()
        self.state: Literal["paused", "going", "over"] = "paused"
        self.ticket = secrets.token_urlsafe(12)
        self.told: list[str] = []
        self.read = 0  # how much of that the page has
        self.error = ""
        self._thread = threading.Thread(target=self._work, name="specviz race", daemon=True)
        self._thread.start()

    # --- called by the page ----------------------------------------------------------------

    def proceed(self, steps: int | None = None) -> None:
        """Go on for ``steps`` more steps, or to the end. Steps asked for while earlier ones
        are under way add up. Nothing happens when the race is over."""
        with self._order:
            if self.state == "over":
                return
            if steps is None or self._goal is None:
                self._goal = None
            else:
                self._goal = max(self._goal, self.pace.steps) + steps
            self.state = "going"
            self._order.notify_all()

    def stop(self) -> None:
        """End within one round. The partial run is kept. Returns at once."""
        self._stop.set()
        with self._order:
            if self.state == "paused":
                self.state = "going"
            self._order.notify_all()

    def abandon(self) -> None:
        """Stop, and let nothing wait for a reader: there is none any more."""
        self._unread.set()
        self.stop()

    def drain(self) -> bool:
        """Move what has happened from the queue to ``told``; whether there was anything."""
        before = len(self.told)
        while True:
            try:
                self.told.append(self._lines.get_nowait())
            except queue.Empty:
                return len(self.told) > before

    def trace(self) -> Trace | None:
        """What has happened as a trace; None while rounds run or when there were none."""
        race = self.race
        return None if race is None or self.state == "going" else race.trace()

    def join(self, timeout: float) -> bool:
        """Wait for the thread's end; whether it has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # --- the thread ------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._wait_for_order()
            while self._go():
                with self._order:
                    if self._reached() and not self._stop.is_set():
                        self.state = "paused"
                self._wait_for_order()
        except Cancelled:
            self._emit({"e": "status", "message": "Stopped", "progress": 1})
        except Exception as error:
            self._fail(error)
        finally:
            self.state = "over"

    def _go(self) -> bool:
        """One stretch from order to pause, in its turn; whether the race can go on."""
        try:
            with self._turns.turn(self._stop, self._say_waiting):
                self._compute(self.race or self._begin())
        except Cancelled:
            if self.race is None:
                raise
        assert self.race is not None
        if self._stop.is_set() and not self.race.finished:
            self._emit(*self.race.stop("stopped"))
        if self.race.finished:
            self._emit(self.race.finish())
        return not self.race.finished

    def _compute(self, race: Race) -> None:
        while not (race.finished or self._stop.is_set() or self._reached()):
            self._emit(*race.advance())

    def _reached(self) -> bool:
        """Whether all steps asked for are done, and the baseline has followed."""
        return self._goal is not None and self.pace.steps >= self._goal and self.pace.level

    def _begin(self) -> Race:
        race = self._make(self._say_progress)
        if self._stop.is_set():
            raise Cancelled
        self.race = race
        for event in race.start():
            self._emit(event)
        return race

    def _fail(self, error: Exception) -> None:
        """Tell what went wrong, and keep what was decoded before it."""
        self.error = explain(error)
        self._emit({"e": "error", "message": self.error})
        if self.race is not None:
            self._emit(*self.race.stop("error"))

    def _wait_for_order(self) -> None:
        with self._order:
            if not self._order.wait_for(lambda: self.state == "going", IDLE_SECONDS):
                self._stop.set()
                self.state = "going"

    def _say_waiting(self, ahead: int) -> None:
        runs = "1 run is" if ahead == 1 else f"{ahead} runs are"
        self._emit({"e": "status", "message": f"{runs} ahead of yours. It starts by itself."})

    def _say_progress(self, message: str, fraction: float | None) -> None:
        after = ". The run stops when this is done" if self._stop.is_set() else ""
        self._emit({"e": "status", "message": f"{message}{after}", "progress": fraction})

    def _emit(self, *events: dict[str, Any]) -> None:
        for event in events:
            self.pace.see(event)
        text = "".join(line(event) for event in events)
        while text and not self._unread.is_set():
            try:
                return self._lines.put(text, timeout=0.25)
            except queue.Full:
                continue


def line(event: dict[str, Any]) -> str:
    """An event as one JSON line. ``<`` is escaped: the text can never open a tag anywhere."""
    text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c") + "\n"


def explain(error: BaseException) -> str:
    """What to tell a person. Errors that specviz raises say what to do and are told as they
    are; of others the terminal gets the details."""
    if _ours(error):
        return str(error)
    log.error("a race failed", exc_info=error)
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return "The memory ran out. Choose a smaller pair, a shorter prompt or fewer new tokens."
    return (
        f"Something failed inside specviz ({type(error).__name__}: {error})."
        " The page still works: change a setting and run again. The terminal has the details."
    )


def _ours(error: BaseException) -> bool:
    """Whether the message was written in specviz: its own classes, and ValueErrors it raised."""
    if type(error).__module__.startswith("specviz."):
        return True
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    name = place.tb_frame.f_globals.get("__name__", "") if place else ""
    return isinstance(error, ValueError) and name.startswith("specviz.")
