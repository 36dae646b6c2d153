"""Many visitors at once: what they wait for, that nothing mixes, that memory does not grow.

    python tests/benchmarks/load.py                     50 watchers, 8 people, 4 minutes
    python tests/benchmarks/load.py --json report.json  the report as JSON too
    options: [--minutes 4] [--watchers 50] [--people 8] [--tokens 64] [--runs 100] [--pause 10]

Starts the real server in a process of its own, on this machine alone, with the embedded pair (set
SPECVIZ_CACHE, or it is fetched first). Then, one after the other:

1. Each prompt is run once with nobody else about: its text is what the person must get later.
2. ``--runs`` short runs one after another, by ``--people`` sessions in turn. The server's memory
   before and after is the growth; a handful of runs come first, so that caches are filled.
3. For ``--minutes``, ``--people`` sessions queue their runs without a pause while ``--watchers``
   others load the page, open recorded runs and look at each for about ``--pause`` seconds. Counted
   are the answers that need no model, asked for while a run went on.

Fails where anything answered with an error, a text was not the person's own, memory grew by more
than GROWTH_BYTES, or 95 % of the answers did not come within GOAL_SECONDS.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from load_visitors import Person, Ran, Timed, Watcher

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
GOAL_SECONDS = 0.3
GROWTH_BYTES = 64_000_000
SHORT_TOKENS = 16
READY_SECONDS = 900.0
NEED_NO_MODEL = ("page", "asset", "load", "open trace")
SUBJECTS = (
    "a harbour",
    "a violin",
    "an old map",
    "a snowed-in train",
    "two brothers",
    "a comet",
    "a baker",
    "the last bus",
)


@dataclass
class Report:
    """What is found, with the conditions it was found under; seconds and bytes."""

    conditions: dict[str, Any]
    errors: list[str] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)
    actions: dict[str, dict[str, float]] = field(default_factory=dict)
    people: dict[str, Any] = field(default_factory=dict)

    @property
    def failures(self) -> list[str]:
        """What does not hold; empty where all does."""
        found = [f"{len(self.errors)} errors"] if self.errors else []
        if self.memory["after"] - self.memory["before"] > GROWTH_BYTES:
            found.append("memory grew")
        if self.actions["all"]["p95"] > GOAL_SECONDS:
            found.append(f"p95 of {self.actions['all']['p95'] * 1000:.0f} ms")
        return found

    def show(self) -> None:
        """Print it."""
        print("\n".join(f"{name}: {value}" for name, value in self.conditions.items()))
        mega = {name: f"{size / 1e6:.0f} MB" for name, size in self.memory.items()}
        print(f"memory of the server: {mega}")
        print(f"people: {self.people}")
        print(
            f"{'action':12} {'n':>6} {'median':>8} {'p95':>8} {'max':>8}  ms, while a run went on"
        )
        for action, found in self.actions.items():
            figures = " ".join(f"{found[name] * 1000:8.0f}" for name in ("median", "p95", "max"))
            print(f"{action:12} {found['n']:6.0f} {figures}")
        print("\n".join(self.errors[:20]))
        print("FAILED: " + ", ".join(self.failures) if self.failures else "all holds")


@contextmanager
def served() -> Iterator[tuple[str, psutil.Process]]:
    """The real server on a free port of this machine, its models loaded."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "app.py")], cwd=ROOT, env={**os.environ, **given}
    )
    try:
        url = f"http://127.0.0.1:{port}/"
        until_up(url, process)
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


def until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the page is served. Raises RuntimeError where that does not come."""
    patience = time.monotonic() + READY_SECONDS
    while time.monotonic() < patience and process.poll() is None:
        try:
            httpx.get(url, timeout=60).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.5)
    raise RuntimeError("the server did not start")


def memory_of(process: psutil.Process) -> int:
    """Resident memory of the server and its children, in bytes."""
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


class Load:
    """One measurement of a server."""

    def __init__(self, url: str, options: argparse.Namespace, report: Report) -> None:
        self._url, self._options, self._report = url, options, report
        self._end = threading.Event()
        self._going: list[tuple[float, float]] = []
        self._timed: list[Timed] = []
        self._ran: list[Ran] = []
        self._lock = threading.Lock()
        subjects = (SUBJECTS * (1 + options.people // len(SUBJECTS)))[: options.people]
        self._prompts = [f"Tell story number {i} about {one}." for i, one in enumerate(subjects)]
        self._people = [Person(url, Timed()) for _ in self._prompts]
        self._expected: list[tuple[str, str]] = []

    def run_alone(self) -> None:
        """Each prompt by itself: the texts to expect."""
        for person, prompt in zip(self._people, self._prompts, strict=True):
            self._expected.append(person.run(prompt, self._options.tokens).texts)

    def run_many(self, count: int) -> None:
        """Short runs one after another, by the people in turn."""
        for i in range(count):
            who = i % len(self._people)
            self._check(who, self._people[who].run(self._prompts[who], SHORT_TOKENS))

    def crowd(self, minutes: float) -> None:
        """Everybody at once."""
        threads = [
            threading.Thread(target=self._guarded, args=(task, number))
            for task, count in (
                (self._queue, len(self._people)),
                (self._watch, self._options.watchers),
            )
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        self._end.wait(60 * minutes)
        self._end.set()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """Let everybody leave and put together what was found."""
        for person in self._people:
            person.leave()
        self._report.actions = figures(self._during_runs())
        self._report.people = {
            "runs": len(self._ran),
            "median wait s": round(statistics.median(r.waited for r in self._ran), 1),
            "longest wait s": round(max(r.waited for r in self._ran), 1),
            "places told": sum(len(r.places) for r in self._ran),
            "with an expected wait": sum("about" in p for r in self._ran for p in r.places),
        }

    def _guarded(self, task: Callable[[int], None], number: int) -> None:
        try:
            task(number)
        except Exception as error:
            self._report.errors.append(f"{task.__name__} {number}: {error!r}"[:300])

    def _queue(self, who: int) -> None:
        """Run the own prompt over and over."""
        while not self._end.is_set():
            begin = time.monotonic()
            ran = self._people[who].run(self._prompts[who], self._options.tokens)
            with self._lock:
                self._going.append((begin + ran.waited, begin + ran.took))
                self._ran.append(ran)
            self._check(who, ran)

    def _check(self, who: int, ran: Ran) -> None:
        """Whether a person got the text of their own prompt, in both lanes."""
        for got, expected in zip(ran.texts, self._expected[who], strict=True):
            if not got or not expected.startswith(got):
                self._report.errors.append(f"person {who} got {got[:80]!r}, not {expected[:80]!r}")

    def _watch(self, number: int) -> None:
        """Load the page, open some recorded runs, leave, come again."""
        chance = random.Random(number)
        shown = gallery()
        self._end.wait(chance.uniform(0, self._options.pause))
        while not self._end.is_set():
            timed = Timed()
            self._timed.append(timed)
            watcher = Watcher(self._url, timed)
            for _ in range(4):
                exhibit = chance.choice(list(shown))
                watcher.open_trace(exhibit, shown[exhibit])
                if self._end.wait(chance.uniform(0.5, 1.5) * self._options.pause):
                    break
            watcher.leave()

    def _during_runs(self) -> dict[str, list[float]]:
        """The seconds of each action that needs no model and was asked for while a run went on."""
        found: dict[str, list[float]] = defaultdict(list)
        for timed in [*self._timed, *(person.timed for person in self._people)]:
            for action, begin, seconds in timed.samples:
                going = any(start <= begin <= end for start, end in self._going)
                if action in NEED_NO_MODEL and going:
                    found[action].append(seconds)
        return found


def gallery() -> dict[str, str]:
    """The prompt of each recorded run that comes with specviz, by its file."""
    from specviz.gallery import exhibits
    from specviz.trace import load_trace

    return {one.file: load_trace(one.path.read_bytes()).prompt for one in exhibits()}


def figures(found: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Number, median, 95th percentile and largest, for each action and for all."""
    everything = [seconds for one in found.values() for seconds in one]
    return {
        action: {
            "n": len(seconds),
            "median": statistics.median(seconds),
            "p95": sorted(seconds)[int(0.95 * (len(seconds) - 1))],
            "max": max(seconds),
        }
        for action, seconds in {**found, "all": everything}.items()
    }


def measure(options: argparse.Namespace) -> Report:
    """All three parts."""
    report = Report(
        {
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "began": time.strftime("%Y-%m-%d %H:%M:%S"),
            **vars(options),
        }
    )
    with served() as (url, process):
        load = Load(url, options, report)
        load.run_alone()
        load.run_many(len(load._people))
        report.memory["before"] = memory_of(process)
        load.run_many(options.runs)
        report.memory["after"] = memory_of(process)
        load.crowd(options.minutes)
        report.memory["after the crowd"] = memory_of(process)
        load.close()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--pause", type=float, default=10.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report = measure(options)
    report.show()
    if options.json:
        document = {**asdict(report), "failures": report.failures}
        options.json.write_text(json.dumps(document, indent=1, default=str), encoding="utf-8")
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
