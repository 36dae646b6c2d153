"""A bare page around the stage, for working on it and for its tests: no Gradio, no engine.

    python tests/ui/stage_harness.py            then open the address it prints
    .../?run=sampling&theme=dark&mode=live      a run of fixtures/synthetic.py

``mode=live`` feeds the lines a few at a time, as the page does while a run goes on.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parent / "fixtures"))

import synthetic

from specviz.metrics import DEFINITIONS

ASSETS = Path(__file__).resolve().parents[2] / "assets"
PROBE = Path(__file__).parent / "fixtures" / "probe.js"
STYLES = ("palette", "specviz")
TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}

PAGE = (Path(__file__).parent / "fixtures" / "page.html").read_text()


@cache
def run_lines(name: str, mode: str) -> str:
    """A synthetic run, built once."""
    return synthetic.RUNS[name](mode)


def page(theme: str) -> str:
    """The harness page."""
    return PAGE % {
        "styles": "\n".join(f'<link rel="stylesheet" href="/assets/css/{s}.css">' for s in STYLES),
        "theme": "dark" if theme == "dark" else "",
        "stage": (ASSETS / "stage.html").read_text(),
        "definitions": json.dumps(DEFINITIONS),
    }


class Handler(BaseHTTPRequestHandler):
    """Serves the page, assets/ and the synthetic runs."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/":
            self.reply(page(query.get("theme", "")).encode(), "text/html")
        elif url.path == "/probe.js":
            self.reply(PROBE.read_bytes(), "text/javascript")
        elif url.path.startswith("/run/"):
            self.reply(run_lines(url.path[5:], query.get("mode", "replay")).encode(), "text/plain")
        else:
            self.asset(url.path)

    def asset(self, path: str) -> None:
        file = (ASSETS.parent / path.lstrip("/")).resolve()
        if not file.is_relative_to(ASSETS) or not file.is_file():
            self.send_error(404)
            return
        self.reply(file.read_bytes(), TYPES.get(file.suffix, "application/octet-stream"))

    def reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind + "; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Quiet: tests read the console."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """The harness on 127.0.0.1, as its address."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    with serving(int(sys.argv[1]) if len(sys.argv) > 1 else 8123) as address:
        print(f"{address}/?run=sampling")
        threading.Event().wait()
