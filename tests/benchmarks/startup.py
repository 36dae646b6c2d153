"""How long until somebody sees the page, and until they can run something.

    python tests/benchmarks/startup.py [--times 3] [--cache FOLDER]

Starts ``python app.py`` as a person does, with the models' weights in the cache already, and opens
it in a real Chromium that is waiting. Counted from the start of the process, in seconds:

    answers      the server takes a connection
    first paint  the browser has drawn something
    replay       the recorded run is on the stage and its tokens are to be seen
    ready        Run can be pressed: the models are loaded and warmed up

The goals are replay within 5 s, and ready within 10 s more. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "ui")]
MOMENTS = ("answers", "first paint", "replay", "ready")
GOALS = {"replay": 5.0, "ready": 15.0}
PATIENCE = 180.0
PAINTED = "() => performance.getEntriesByType('paint').find((p) => p.name === 'first-paint')"
SHOWN = """() => {
  const text = document.querySelector('.sv-lane[data-lane=speculative] .sv-text');
  return Boolean(text && text.innerText.trim());
}"""
RUNNABLE = """() => {
  const run = document.querySelector('button#run');
  return Boolean(run && !run.disabled && run.innerText.trim() === 'Run');
}"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(port: int, cache: str) -> subprocess.Popen[bytes]:
    """The app, as its own process group."""
    environ = {
        **os.environ,
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "SPECVIZ_CACHE": cache,
    }
    return subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait_for_server(port: int, app: subprocess.Popen[bytes]) -> None:
    """Until the port takes a connection. Raises RuntimeError where the app ends instead."""
    while app.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError(f"the app ended with {app.returncode} before it served anything")


def measure(browser: Any, cache: str) -> dict[str, float]:
    """Seconds from one start of the app to each moment."""
    port = free_port()
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE * 1000)
    begin = time.monotonic()
    app = start(port, cache)
    try:
        found = {}
        wait_for_server(port, app)
        found["answers"] = time.monotonic() - begin
        page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
        for moment, condition in (("first paint", PAINTED), ("replay", SHOWN), ("ready", RUNNABLE)):
            page.wait_for_function(condition, polling=20)
            found[moment] = time.monotonic() - begin
        return found
    finally:
        page.context.close()
        os.killpg(app.pid, signal.SIGTERM)
        app.wait(30)


def main() -> None:
    """Measure a few starts and print each moment's times beside its goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--cache", default="", help="default: the user's own cache folder")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright
    from visit import FLAGS

    from specviz.weights import cache_folder, embedded_target

    cache = options.cache or str(cache_folder())
    os.environ["SPECVIZ_CACHE"] = cache
    embedded_target(lambda *_: None)
    load = os.getloadavg()[0]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        runs = [measure(browser, cache) for _ in range(options.times)]
        browser.close()
    print(f"{os.cpu_count()} cores, load {load:.2f} before; Python {sys.version.split()[0]}")
    for moment in MOMENTS:
        times = [run[moment] for run in runs]
        goal = f"   goal {GOALS[moment]:g}" if moment in GOALS else ""
        each = "  ".join(f"{one:6.2f}" for one in times)
        print(f"{moment:12}  median {statistics.median(times):6.2f}   each {each}{goal}")


if __name__ == "__main__":
    main()
