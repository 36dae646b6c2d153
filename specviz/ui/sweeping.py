"""A sweep in a thread of its own, one run a turn, and what a page sees of it.

Tables and figures are made in the same thread between two runs, when no clock runs.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specviz.diagnosis import Diagnosis, recommend
from specviz.figures import sweep_figures
from specviz.rows import Measured, Row, Table, to_csv, to_plain
from specviz.sweep import Generated, Journal, Sweep, compare, read_bench
from specviz.ui.alone import Unwanted
from specviz.ui.changes import changes
from specviz.ui.faults import explain, free_memory
from specviz.ui.turns import Cancelled, Kind, Turns, computing
from specviz.ui.worker import Progress

GLANCE_SECONDS = 0.2
REDRAW_SECONDS = 2.0


class OverLimit(RuntimeError):
    """One run of a sweep has used up what the host allows."""


Make = Callable[[Progress], Sweep]


class Sweeping:
    """One sweep from loading its models to its last run.

    ``make`` loads what is needed and returns the sweep; it runs in the thread. ``view`` is what
    the page shows, as JSON; it is replaced as a whole. ``path`` is the file that grows run by
    run. ``results`` and ``diagnosis`` tell what has come out so far; the results of ``earlier``,
    the visitor's sweep before this one, are shown until this one begins. ``unwanted`` is set once
    it is to end. ``followed`` tells whether a page has begun to show it: one that refused to begin
    a new sweep is not to show the old one again.
    """

    def __init__(
        self,
        make: Make,
        turns: Turns,
        path: Path,
        earlier: Sweeping | Opened | None = None,
    ) -> None:
        self._make, self._turns = make, turns
        self._earlier = earlier
        self._drawn = 0.0
        self.unwanted = Unwanted(turns)
        self.results: dict[str, Any] = earlier.results if earlier else {}
        self._table, self._by_kind = Table(), Table(by_kind=True)
        self.path = path
        self.sweep: Sweep | None = None
        self.diagnosis: Diagnosis | None = None
        self.over = self.followed = False
        self.view = view("Loading models", "busy", self.results)
        self._thread = computing(self._work, "specviz sweep")

    @property
    def last(self) -> Sweeping | Opened:
        """This one, or the one before where this one ended before it began."""
        return self._earlier if self._earlier and self.over and self.sweep is None else self

    def join(self, timeout: float) -> bool:
        """Wait for the end; whether it has come."""
        self._thread.join(timeout)
        return self.over

    @property
    def measured(self) -> list[Measured]:
        """The races so far."""
        return self.sweep.measured if self.sweep else []

    def csv(self) -> str:
        """The table and the table by kind as CSV."""
        return to_csv([*self._table.rows(), *self._by_kind.rows()])

    # --- the thread ------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            sweep = self._begin()
            self._warm_up(sweep)
            self._measure(sweep)
            self._show(sweep, self._ending(sweep), "info", redraw=True)
        except Cancelled:
            if self.sweep is None:
                self.view = view("Stopped before the first run.", shown=self.results)
            else:
                self._show(self.sweep, self._ending(self.sweep), "info", redraw=True)
        except BaseException as error:  # whatever kills the thread: nobody else would tell
            self._fail(error)
        finally:
            self.over = True

    def _begin(self) -> Sweep:
        with self._turns.turn(self.unwanted, self._say_waiting, "sweep"):
            sweep = self._make(self._say_progress)
        if self.unwanted.is_set():
            raise Cancelled
        self._earlier = None
        for one in sweep.measured:
            self._add(one)
        self.sweep = sweep
        return sweep

    def _warm_up(self, sweep: Sweep) -> None:
        """Let every setup meet its first time, each in a turn of its own."""
        self._show(sweep, "Warming up every setup", "busy", redraw=True)
        met = sweep.warm_ups(self.unwanted.is_set)
        more = True
        while more:
            with self._turn("step"):
                more = next(met, None) is not None

    def _measure(self, sweep: Sweep) -> None:
        journal = Journal.begin(self.path, sweep.plan, sweep.machine)
        try:
            for known in sweep.measured:
                journal.add(known)
            while not sweep.finished:
                with self._turn():
                    one = sweep.advance(self._stop_or_limit())
                if one is None:
                    raise Cancelled
                if isinstance(one, Measured):
                    self._add(one)
                    journal.add(one)
                self._show(sweep, standing(sweep), "busy")
        finally:
            complete = sweep.finished and not sweep.failed
            journal.finish(sweep.measured, sweep.generated, complete)

    def _turn(self, kind: Kind = "sweep") -> AbstractContextManager[None]:
        """A turn for the next run of a sweep that has begun: between two, others have theirs."""
        return self._turns.turn(self.unwanted, self._say_waiting, kind, bounded=False)

    def _stop_or_limit(self) -> Callable[[], bool]:
        """Whether to stop, for the run that begins now. Raises OverLimit where it has used up what
        the host allows, which the sweep counts as a failed run."""
        most, begin = self._turns.max_seconds, time.monotonic()

        def stop() -> bool:
            if most is not None and time.monotonic() - begin > most:
                raise OverLimit(f"it took longer than the {most:g} s that this host allows a run")
            return self.unwanted.is_set()

        return stop

    def _fail(self, error: BaseException) -> None:
        """Tell what went wrong, with the results of every whole run."""
        text = explain(error)
        free_memory()
        if self.sweep is None:
            self.view = view(text, "error", self.results)
        else:
            made = f"{len(self.sweep.outcomes)} of {self.sweep.total} runs were made."
            self._show(self.sweep, f"{text} {made}", "error", redraw=True)

    def _add(self, one: Measured) -> None:
        self._table.add(one)
        self._by_kind.add(one)

    def _show(self, sweep: Sweep, text: str, kind: str, redraw: bool = False) -> None:
        if redraw or time.monotonic() - self._drawn > REDRAW_SECONDS:
            table, by_kind = self._table.rows(), self._by_kind.rows()
            self.diagnosis = recommend(sweep.measured, table)
            self.results = results(table, by_kind, self.diagnosis, sweep.measured, sweep.generated)
            self._drawn = time.monotonic()
        self.view = view(text, kind, self.results, len(sweep.outcomes), sweep.total)

    def _ending(self, sweep: Sweep) -> str:
        made = f"{len(sweep.outcomes)} of {sweep.total} runs"
        if not sweep.finished:
            return f"Stopped after {made}. Run goes on with the same settings."
        if sweep.failed:
            return f"{len(sweep.failed)} of {sweep.total} runs failed: {sweep.failed[0].why}"
        return f"Done: {made}."

    def _say_waiting(self, place: str) -> None:
        if self.sweep is None:
            self.view = view(place, "busy", self.results)
        else:
            self._show(self.sweep, f"{standing(self.sweep)}. {place}", "busy")

    def _say_progress(self, message: str, fraction: float | None = None) -> None:
        if self.unwanted.is_set():
            raise Cancelled
        share = "" if fraction is None else f" {fraction:.0%}"
        self.view = view(f"{message}{share}", "busy", self.results)


class Opened:
    """A sweep from a file, with what the page asks of one that is over. ``path`` is where the file
    is kept from now on. Raises JournalError and OSError."""

    over = followed = True

    def __init__(self, file: Path, path: Path) -> None:
        bench = read_bench(file)
        self.unwanted = Unwanted()
        self.path, self.measured = Path(shutil.copyfile(file, path)), list(bench.measured)
        self._table = Table(self.measured).rows()
        self._by_kind = Table(self.measured, by_kind=True).rows()
        self.diagnosis = recommend(self.measured, self._table)
        self.results = results(
            self._table, self._by_kind, self.diagnosis, self.measured, bench.generated
        )
        state = "complete" if bench.complete else "unfinished: Run goes on with the same settings"
        self.view = view(
            f"{len(self.measured)} runs from a file, {state}. Measured on"
            f" {bench.machine.get('device')} ({bench.machine.get('dtype')}).",
            shown=self.results,
        )

    @property
    def last(self) -> Opened:
        """This one."""
        return self

    def csv(self) -> str:
        """The table and the table by kind as CSV."""
        return to_csv([*self._table, *self._by_kind])


def follow(sweeping: Sweeping | Opened) -> AsyncIterator[str]:
    """The view each time it has changed, until the sweep is over."""
    sweeping.followed = True
    return changes(sweeping, lambda: sweeping.view, GLANCE_SECONDS)


def standing(sweep: Sweep) -> str:
    """How far a sweep is, in words."""
    left = sweep.seconds_left
    if left is None:
        rest = ""
    else:
        rest = f", about {left:.0f} s left" if left < 90 else f", about {left / 60:.0f} min left"
    return f"{len(sweep.outcomes)} of {sweep.total} runs{rest}"


def results(
    table: Sequence[Row],
    by_kind: Sequence[Row],
    diagnosis: Diagnosis,
    measured: Sequence[Measured],
    generated: Sequence[Generated],
) -> dict[str, Any]:
    """What the page shows of rows: the table, the figures, what to take from them."""
    against = compare(measured, generated) if generated else []
    return {
        "rows": [{**to_plain(row), "name": row.setup.name} for row in table],
        "figures": [json.loads(figure.to_json()) for figure in sweep_figures(table, by_kind)],
        "diagnosis": asdict(diagnosis),
        "against": [asdict(line) for line in against],
    }


def view(
    text: str,
    kind: str = "info",
    shown: dict[str, Any] | None = None,
    made: int = 0,
    total: int = 0,
) -> str:
    """The value of the results: a status line (info, busy or error) above ``results``. ``<`` is
    escaped, so that no name can open a tag anywhere."""
    status = {"text": text, "kind": kind, "made": made, "total": total}
    value = json.dumps({"status": status, **(shown or {})}, allow_nan=False)
    return value.replace("<", "\\u003c")
