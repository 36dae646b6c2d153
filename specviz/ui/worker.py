"""A race in a thread of its own, which no browser can slow down.

The thread alone touches the race. What happened is kept as JSON lines until the page asks for
them, so that no reader, slow or gone, ever holds up the race or those who wait behind it.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from specviz.race import Race
from specviz.records import Trace
from specviz.ui.faults import explain, free_memory
from specviz.ui.turns import Cancelled, Turns, computing

IDLE_SECONDS = 900.0
ALONE_SECONDS = 60.0
LEFT_ALONE = (
    "The run ended because the connection to this page was lost and the page did not come back"
    " soon enough, or others waited. What was decoded is kept."
)
log = logging.getLogger(__name__)

Progress = Callable[[str, float | None], None]


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


class RaceWorker:
    """One race from loading its models to its last line; paused whenever it is not told to go.

    ``make`` loads what is needed, reporting progress, and returns the race; it runs in the
    worker's thread. ``state`` is "paused" (waiting to be told), "going" or "over"; ``told`` is
    what has happened so far. ``request`` is what was asked for, kept for the page. ``ticket`` is
    the name under which a page asks for news of it; nobody can guess it. ``status`` says what is
    being waited for, ``error`` why the race failed and ``cut_short`` why it ended before its
    time.
    """

    def __init__(self, make: Callable[[Progress], Race], turns: Turns, request: Any = None) -> None:
        self._make = make
        self._turns = turns
        self.request = request
        self._stop = threading.Event()
        self._left_at: float | None = None
        self._order = threading.Condition()
        self._goal: int | None = 0
        self.race: Race | None = None
        self.pace = Pace()
        self.state: Literal["paused", "going", "over"] = "paused"
        self.ticket = secrets.token_urlsafe(16)
        self.told: list[str] = []
        self.read = 0  # how much of that the page has
        self.status = self.error = self.cut_short = ""
        self._thread = computing(self._work, "specviz race")

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

    def leave_alone(self) -> None:
        """Nobody seems to be there any more: go on for a while, and only while nobody waits."""
        self._left_at = time.monotonic()

    def attend(self) -> None:
        """Somebody is there again."""
        self._left_at = None

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
            self._tell({"e": "status", "message": "Stopped", "progress": 1})
        except BaseException as error:  # whatever kills the thread: nobody else would tell
            self._fail(error)
        finally:
            self._let_go()
            self.state = "over"

    def _go(self) -> bool:
        """One stretch from order to pause, in its turn; whether the race can go on."""
        kind: Literal["run", "step"] = "run" if self._goal is None else "step"
        try:
            with self._turns.turn(self._stop, self._say_waiting, kind, bounded=self.race is None):
                if self.status:
                    self._say("", None)
                self._compute(self.race or self._begin())
        except Cancelled:
            if self.race is None:
                raise
        assert self.race is not None
        if self._stop.is_set() and not self.race.finished:
            self._tell(*self.race.stop("stopped", self.cut_short))
        if self.race.finished:
            self._tell(self.race.finish())
        return not self.race.finished

    def _compute(self, race: Race) -> None:
        while not (race.finished or self._stop.is_set() or self._reached()):
            self._tell(*race.advance())
            self._see_limits(race)

    def _see_limits(self, race: Race) -> None:
        """End a race that has used up what the host allows, or that nobody attends to."""
        most = self._turns.max_seconds
        if race.finished:
            return
        if most is not None and race.seconds > most:
            self._cut_short(
                f"This host lets a run compute for {most:g} s, and they are over. What was decoded"
                " is kept."
            )
        elif (left := self._left_at) is not None and (
            self._turns.contested or time.monotonic() - left > ALONE_SECONDS
        ):
            self._cut_short(LEFT_ALONE)

    def _cut_short(self, why: str) -> None:
        self.cut_short = why
        self._stop.set()

    def _reached(self) -> bool:
        """Whether all steps asked for are done, and the baseline has followed."""
        return self._goal is not None and self.pace.steps >= self._goal and self.pace.level

    def _begin(self) -> Race:
        race = self._make(self._say_progress)
        if self._stop.is_set():
            raise Cancelled
        self.race = race
        for event in race.start():
            self._tell(event)
        self.status = ""
        return race

    def _fail(self, error: BaseException) -> None:
        """Tell what went wrong, and keep what was decoded before it."""
        self.error = explain(error, self.race.info if self.race else None)
        self._tell({"e": "error", "message": self.error})
        if self.race is not None:
            self._tell(*self.race.stop("error", self.error))

    def _let_go(self) -> None:
        """Keep of the race what was recorded, and nothing else."""
        try:
            if self.race is not None:
                self.race.release()
            if self.error:
                free_memory()
        except Exception:
            log.exception("what a race held could not be given back")

    def _wait_for_order(self) -> None:
        with self._order:
            if not self._order.wait_for(lambda: self.state == "going", IDLE_SECONDS):
                self._stop.set()
                self.state = "going"

    def _say_waiting(self, place: str) -> None:
        self._say(place, None)

    def _say_progress(self, message: str, fraction: float | None) -> None:
        after = ". The run stops when this is done" if self._stop.is_set() else ""
        self._say(f"{message}{after}", fraction)

    def _say(self, message: str, fraction: float | None) -> None:
        self.status = message
        self._tell({"e": "status", "message": message, "progress": fraction})

    def _tell(self, *events: dict[str, Any]) -> None:
        for event in events:
            self.pace.see(event)
        if events:
            self._keep("".join(line(event) for event in events))

    def _keep(self, lines: str) -> None:
        self.told.append(lines)


def line(event: dict[str, Any]) -> str:
    """An event as one JSON line. ``<`` is escaped: the text can never open a tag anywhere."""
    text = json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c") + "\n"
