"""The pictures of the README, taken of the real page and its recorded runs.

    python tests/ui/pictures.py [FOLDER]        writes four WebP files, into assets/ by default

Needs the embedded pair's weights and Chromium.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from pathlib import Path
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "ui")]

TRACES = ROOT / "assets" / "traces"
STAGE = "window.specviz.mountStage(document.querySelector('.sv-stage'))"
WIDE = {"width": 1440, "height": 1010}
NARROW = {"width": 1240, "height": 1900}  # the inspector stands under the text, in two columns
HALL = {"width": 1024, "height": 768}
SEEN = "localStorage.setItem('specviz.walk', 'seen')"
TWO_FRAMES = "() => new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))"


class Camera:
    """A visitor's tab and the folder that pictures of it go to."""

    def __init__(self, browser: Any, url: str, folder: Path) -> None:
        self._browser, self._url, self._folder = browser, url, folder
        self.page: Any = None

    def open(self, trace: str, size: dict[str, int], theme: str = "light") -> None:
        """A new tab with a recorded run on the stage, at its end."""
        context = self._browser.new_context(viewport=size, reduced_motion="reduce")
        context.add_init_script(SEEN)
        self.page = context.new_page()
        self.page.goto(f"{self._url}?__theme={theme}")
        self.page.wait_for_selector("[data-mounted] .sv-stage", timeout=120_000)
        self.page.wait_for_selector("button#run:not([disabled])", timeout=300_000)
        if trace != "first":
            self.page.set_input_files("#files input[type=file]", TRACES / f"{trace}.json")
            self.page.get_by_text("A recorded run is on the stage.").wait_for(timeout=60_000)
        self.act("end()")

    def act(self, *calls: str) -> None:
        """Call actions of the stage, one a frame."""
        for call in calls:
            self.page.evaluate(f"{STAGE}.actions.{call}")
            self.page.evaluate(TWO_FRAMES)

    def pin(self, fate: str, nth: int) -> None:
        token = self.page.locator(f"[data-lane=speculative] .sv-tok[data-f={fate}]").nth(nth)
        token.dispatch_event("click")
        token.scroll_into_view_if_needed()

    def shoot(self, name: str, *parts: str) -> None:
        """Save what is in view, or the smallest frame around some parts of it."""
        from PIL import Image

        self.page.evaluate("document.activeElement.blur()")
        self.page.mouse.move(0, 0)
        self.page.wait_for_timeout(1000)  # charts draw when there is time
        data = self.page.screenshot(clip=self._around(parts) if parts else None)
        path = self._folder / f"{name}.webp"
        Image.open(io.BytesIO(data)).convert("RGB").save(path, quality=82, method=6)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        self.page.context.close()

    def _around(self, parts: tuple[str, ...]) -> dict[str, float]:
        boxes = [self.page.locator(part).first.bounding_box() for part in parts]
        left, top = (min(box[key] for box in boxes) - 16 for key in ("x", "y"))
        right = max(box["x"] + box["width"] for box in boxes) + 16
        bottom = max(box["y"] + box["height"] for box in boxes) + 16
        left, top = max(left, 0), max(top, 0)
        return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def take(camera: Camera) -> None:
    """All four."""
    camera.open("first", WIDE)
    camera.pin("rejected", 37)
    camera.shoot("picture-explore")

    camera.open("sampling", NARROW)
    camera.pin("rejected", 7)
    camera.act("whatIf()")
    camera.page.get_by_role("slider", name="Another u").fill("0.25")
    camera.shoot("picture-decision", ".sv-inspector")

    camera.open("sampling", WIDE, "dark")
    camera.act("walk()")
    for _ in range(2):
        camera.page.locator(".sv-walk-next").click()
    camera.shoot("picture-walk", ".sv-stream", ".sv-side", ".sv-timeline")

    camera.open("sampling", HALL)
    camera.act("goToRound(9)", "predict()", "say(true)", "nextQuestion()", "present()")
    camera.shoot("picture-talk")


def main() -> None:
    from playwright.sync_api import sync_playwright
    from visit import FLAGS, serve

    from specviz.ui import build

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "assets"
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    page = build()
    url = serve(page)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        take(Camera(browser, url, folder))
        browser.close()
    page.close(verbose=False)


if __name__ == "__main__":
    main()
