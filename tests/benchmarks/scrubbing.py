"""What scrubbing costs: every frame while a run of 1,500 tokens is dragged through.

    python tests/benchmarks/scrubbing.py [--frames 200] [--run long] [--pinned]

The scrubber of the stage is moved in a real browser, frame by frame: swept forward, swept back,
thrown about; then every decision is stepped through for as many frames, and the run is played at
eight times its speed. A frame is the time from the browser's call for it until it has been
painted: scripts, style, layout and paint on the main thread. The goal is no frame above 50 ms on
a quiet machine.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "ui")]

GOAL_MS = 50

PROBE = """
(() => {
  const channel = new MessageChannel();
  let painted = null;
  channel.port1.onmessage = () => painted(performance.now());
  const frame = (cause) => new Promise((done) => {
    let begin = 0;
    painted = (end) => done(end - begin);
    requestAnimationFrame(() => { begin = performance.now(); channel.port2.postMessage(0); });
    cause();
  });
  const scrub = (share) => {
    const scrubber = document.querySelector('.sv-scrubber');
    scrubber.value = Math.round(share * Number(scrubber.max));
    scrubber.dispatchEvent(new Event('input', { bubbles: true }));
  };
  const measure = async (frames, cause) => {
    const costs = [];
    for (let n = 0; n < frames; n += 1) costs.push(await frame(() => cause(n)));
    return costs;
  };
  window.scrubbing = {
    forward: (frames) => measure(frames, (n) => scrub(n / frames)),
    back: (frames) => measure(frames, (n) => scrub(1 - n / frames)),
    thrown: (frames) => measure(frames, (n) => scrub(((n * 61) % frames) / frames)),
    stepped(frames) {
      stage.actions.goToRound(Math.floor(stage.model.lanes.speculative.rounds.length / 2));
      return measure(frames, () => stage.actions.nextStep());
    },
    played(frames) {
      stage.actions.setRate(8);
      stage.actions.start();
      stage.actions.toggle();
      return measure(frames, () => {});
    },
  };
})()
"""


def measure(page: Any, frames: int) -> dict[str, list[float]]:
    """Milliseconds of each frame, by the way the playhead is moved."""
    page.evaluate(PROBE)
    ways = ("forward", "back", "thrown", "stepped", "played")
    return {way: page.evaluate(f"scrubbing.{way}({frames})") for way in ways}


def report(way: str, costs: list[float]) -> bool:
    """Print one line; whether the goal is met."""
    ordered = sorted(costs)
    middle, high, worst = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1]
    print(f"{way:8} median {middle:5.1f} ms   95 % {high:5.1f} ms   worst {worst:5.1f} ms")
    return worst <= GOAL_MS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--run", default="long", help="a run of tests/ui/fixtures/synthetic.py")
    parser.add_argument("--pinned", action="store_true", help="with a token pinned")
    arguments = parser.parse_args()

    import stage_harness
    from playwright.sync_api import sync_playwright
    from visit import FLAGS

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with stage_harness.serving() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{address}/?run={arguments.run}")
        page.wait_for_function("window.stage && window.probe && stage.model.done")
        page.evaluate("stage.actions.end()")
        page.wait_for_function("probe.whole()")
        if arguments.pinned:
            page.locator(".sv-tok[data-f=rejected]").last.dispatch_event("click")
        results = [report(*item) for item in measure(page, arguments.frames).items()]
        browser.close()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
