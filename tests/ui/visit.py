"""One visitor of the page: a tab, with what the tests do and ask most. Nothing sleeps: every
question waits for a state of the page."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

with suppress(ImportError):  # then every test is skipped, by the browser fixture
    from playwright.sync_api import expect

    expect.set_options(timeout=20_000)
from tiny import TinyShelf

from specviz.ui import launch_options
from specviz.ui.elements import Choice

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FRAMES = """() => new Promise((resolve) => {
  let left = 12;
  const next = () => (left-- ? requestAnimationFrame(next) : resolve());
  next();
})"""
MODEL = "window.specviz.mountStage(document.querySelector('.sv-stage')).model"
PAIRS = [
    (Choice("tiny", "Tiny pair"), "tiny target", "tiny draft"),
    (Choice("broken", "Broken pair"), "broken", "tiny draft"),
    (Choice("huge", "Huge pair", "needs 160 GB of memory; 12 GB are free"), "huge", "large"),
]


@dataclass
class Site:
    """A page being served."""

    url: str
    shelf: TinyShelf | None = None


@dataclass
class Visit:
    """One visitor's tab: the page with what a test does and asks most."""

    page: Any
    site: Site
    trouble: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        """Open the page, noting requests to other hosts and errors."""
        self.page.on("request", lambda request: self._check_host(request.url))
        self.page.on("pageerror", lambda error: self.trouble.append(f"page error: {error}"))
        self.page.on("console", lambda message: self._check_message(message))
        self.page.goto(self.site.url.rstrip("/") + path)

    def _check_host(self, url: str) -> None:
        parts = urlsplit(url)
        local = parts.scheme in ("data", "blob") or parts.netloc == urlsplit(self.site.url).netloc
        if not local:
            self.trouble.append(f"request to another host: {url}")

    def _check_message(self, message: Any) -> None:
        if message.type == "error":
            self.trouble.append(f"console: {message.text} {message.location}")

    def ready(self) -> Visit:
        """Wait until the stage is there and Run can be used."""
        expect(self.page.locator("[data-mounted] .sv-stage")).to_be_visible()
        expect(self.button("run")).to_be_enabled()
        return self

    def button(self, name: str) -> Any:
        return self.page.locator(f"button#{name}")

    def phase(self, name: str) -> None:
        """Wait for a phase of the stage: empty, loading, running, finished, stopped, failed."""
        expect(self.page.locator(".sv-stage")).to_have_attribute("data-phase", name)

    def status(self, text: str) -> None:
        """Wait for a status line that holds ``text``."""
        expect(self.page.locator("#status .status-text")).to_contain_text(text)

    def settings(self, **values: Any) -> Visit:
        """Fill in number fields under More settings."""
        if not self.page.locator("#seed input").is_visible():
            self.page.locator("#more-settings > button").click()
        for name, value in values.items():
            self._fill(self.page.locator(f"#{name} input"), str(value))
        return self

    def _fill(self, box: Any, value: str) -> None:
        """Type a value and see that it stays: a component that is still being set up writes its
        own initial value over what is typed too early."""
        for _ in range(10):
            box.fill(value)
            box.blur()
            self.page.evaluate(FRAMES)
            if box.input_value() == value:
                return
        raise AssertionError(f"{value} does not stay in its field")

    def model(self, expression: str) -> Any:
        """A value of the stage's model, which is called ``model`` in ``expression``."""
        return self.page.evaluate(f"(() => {{ const model = {MODEL}; return {expression}; }})()")

    def run(self) -> None:
        """Press Run and wait for the new run's first line. Not for going on after a step."""
        self.page.evaluate(f"window.before = {MODEL}.start")
        self.button("run").click()
        self.page.wait_for_function(f"{MODEL}.start && {MODEL}.start !== window.before")

    def finish(self) -> None:
        """Press Run and wait until the run has come to its end."""
        self.run()
        self.phase("finished")
        expect(self.button("stop")).to_be_disabled()

    def rounds(self, lane: str = "speculative") -> int:
        return self.model(f"model.lanes.{lane}?.rounds.length ?? 0")

    def text(self, lane: str = "speculative") -> str:
        """The lane's visible text."""
        return self.page.locator(f".sv-lane[data-lane={lane}] .sv-text").inner_text()

    def open_trace(self, data: str | bytes, name: str = "trace.json") -> None:
        body = data.encode() if isinstance(data, str) else data
        payload = {"name": name, "mimeType": "application/json", "buffer": body}
        self.page.set_input_files("#files input[type=file]", payload)


def serve(page: Any) -> str:
    """Launch a page on a free port of this machine; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _, url, _ = page.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        **launch_options(),
    )
    return url
