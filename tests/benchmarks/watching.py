"""What watching costs: one run on the page, shown and not shown by turns.

    python tests/benchmarks/watching.py                     both ways of watching
    python tests/benchmarks/watching.py --reader browser    a browser on this machine
    python tests/benchmarks/watching.py --reader thin       none: only what the server does
    options: [--tokens 256] [--window 2] [--tiny]

Someone follows a run of the embedded pair. Every ``--window`` seconds showing is switched off (the
worker's lines are thrown away, so that nothing is sent or drawn) and on again, which hits both
states alike with whatever else the machine does. Compared are the baseline's calls of the target
on one token: all alike, many a second. The goal is calls at most 5 % slower while watched.

The two ways answer different questions. "browser" is a laptop that runs the model and shows it:
a real Chromium draws the page on the same cores, in software. "thin" is a server whose visitors
sit elsewhere: a small process asks for news ten times a second, the most a page ever does, and
draws nothing, so that only the sending is counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "ui")]

GOAL = 1.05
SETTLE_SECONDS = 0.4  # what was sent last is still being drawn


class Shutter:
    """Open and shut by turns, from its first look on."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._start: float | None = None

    def look(self) -> tuple[bool, bool]:
        """Whether it is open, and whether it has been so for long enough to count."""
        self._start = self._start or time.monotonic()
        turns, within = divmod(time.monotonic() - self._start, self._window)
        return turns % 2 == 0, within > SETTLE_SECONDS


def instrument(shutter: Shutter) -> dict[bool, list[float]]:
    """Let the page's workers stream only while the shutter is open, and note the seconds of each
    baseline call in either state."""
    from specviz.race import Race
    from specviz.ui import explore
    from specviz.ui.worker import RaceWorker

    calls: dict[bool, list[float]] = {True: [], False: []}

    class Observed(Race):
        def advance(self) -> list[dict[str, Any]]:
            before, _ = shutter.look()
            events = super().advance()
            after, counts = shutter.look()
            for event in events if counts and before == after else ():
                if event["e"] == "round" and event["lane"] == "baseline":
                    calls[after].append(event["round"]["verify_s"])
            return events

    class Shuttered(RaceWorker):
        def _keep(self, lines: str) -> None:
            if shutter.look()[0] or (self.race is not None and self.race.finished):
                super()._keep(lines)

    explore.Race, explore.RaceWorker = Observed, Shuttered  # type: ignore[misc]
    return calls


def watch_in_browser(url: str, tokens: int) -> None:
    """Run once on the page, in a browser, to the end."""
    from playwright.sync_api import expect, sync_playwright
    from visit import FLAGS, Site, Visit

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        visit = Visit(browser.new_page(viewport={"width": 1440, "height": 900}), Site(url))
        visit.go("/")
        expect(visit.button("run")).to_be_enabled(timeout=900_000)
        visit.ready().settings(max_new_tokens=tokens, min_new_tokens=tokens)
        visit.run()
        expect(visit.button("run")).to_be_enabled(timeout=3_600_000)
        browser.close()


def watch_thinly(url: str, tokens: int) -> None:
    """Run once, read over HTTP by another process."""
    import thin_reader

    settings = {"max_new_tokens": tokens, "min_new_tokens": tokens}
    reader = multiprocessing.get_context("spawn").Process(
        target=thin_reader.follow, args=(url,), kwargs=settings
    )
    reader.start()
    reader.join()
    if reader.exitcode:
        raise SystemExit("the thin reader failed")


READERS = {"browser": watch_in_browser, "thin": watch_thinly}


def measure(reader: str, tokens: int, window: float, tiny: bool) -> dict[bool, list[float]]:
    """Seconds of each of the baseline's calls, while shown and while not."""
    from tiny import TinyShelf
    from visit import PAIRS, serve

    from specviz.ui import build

    calls = instrument(Shutter(window))
    page = build(TinyShelf(), pairs=PAIRS[:1]) if tiny else build()
    READERS[reader](serve(page), tokens)
    page.close(verbose=False)
    return calls


def ratio(calls: dict[bool, list[float]]) -> float:
    return statistics.mean(calls[True]) / statistics.mean(calls[False])


def interval(calls: dict[bool, list[float]], draws: int = 2000) -> tuple[float, float]:
    """The middle 90 % of the ratio under resampling."""
    chance = random.Random(0)
    ratios = sorted(
        ratio({state: chance.choices(times, k=len(times)) for state, times in calls.items()})
        for _ in range(draws)
    )
    return ratios[draws // 20], ratios[-draws // 20]


def report(reader: str, calls: dict[bool, list[float]]) -> None:
    for state, name in ((False, "not shown"), (True, "shown")):
        times = [1000 * seconds for seconds in calls[state]]
        print(
            f"{reader:8} {name:10} {len(times):5} calls, mean {statistics.mean(times):7.2f} ms,"
            f" median {statistics.median(times):7.2f} ms"
        )
    low, high = interval(calls)
    medians = statistics.median(calls[True]) / statistics.median(calls[False])
    print(
        f"{reader:8} watched / not watched: {ratio(calls):.3f} of means"
        f" ({low:.3f} to {high:.3f}), {medians:.3f} of medians; goal {GOAL}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reader", choices=[*READERS, "both"], default="both")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--window", type=float, default=2.0)
    parser.add_argument("--tiny", action="store_true", help="the tests' random pair")
    options = parser.parse_args()
    readers = list(READERS) if options.reader == "both" else [options.reader]
    missed = False
    for reader in readers:
        calls = measure(reader, options.tokens, options.window, options.tiny)
        report(reader, calls)
        missed = missed or ratio(calls) > GOAL
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
