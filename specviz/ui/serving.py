"""What the page loads, served from memory.

Gradio reads and compresses a file anew for each request, on the one thread that answers everybody,
and lets no browser keep it. Here our modules are one script and our sheets one sheet, every file is
compressed once, and its address names its content, so a browser that has it never asks again.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import gradio
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response

from specviz.export.bundle import bundle_script, bundle_style
from specviz.ui.elements import ASSETS

SHEETS = ("palette.css", "specviz.css", "page.css", "analysis.css", "tabs.css")
FOLDER = "specviz-files"
SCRIPT, STYLE, PLOTLY = "specviz.js", "specviz.css", "plotly.min.js"
PATH = re.compile(
    rf"(?:/[^/=]+)*?/(?:{FOLDER}/(?P<own>\w+/[\w.]+)|assets/(?P<gradio>[\w.-]+[.](?:js|css)))"
)
"""Of what is served here, behind whatever prefix the page stands. Gradio's names hold a digest."""
FOR_GOOD = "public, max-age=31536000, immutable"
Call = Callable[..., Any]


@dataclass(frozen=True)
class Stored:
    """One file in memory."""

    media_type: str
    plain: bytes

    @cached_property
    def digest(self) -> str:
        """Names the content."""
        return hashlib.sha256(self.plain).hexdigest()[:16]

    @cached_property
    def compressed(self) -> bytes:
        """As gzip. The first who asks waits for it."""
        return gzip.compress(self.plain, mtime=0)


def address(name: str) -> str:
    """Where the page finds one of our files, relative to it so that any root path works."""
    return f"{FOLDER}/{_own()[name].digest}/{name}"


def plotly_file() -> Path:
    """plotly's own script, from the installed package. Importing plotly is not needed."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("plotly is not installed: pip install -r requirements.txt")
    return Path(found.submodule_search_locations[0], "package_data", PLOTLY)


def serving() -> Middleware:
    """The layer as FastAPI takes it."""
    return Middleware(Serving)


class Serving:
    """An ASGI layer around the app that answers for what the page loads, and compresses the page.
    All it can serve are our own three files and those of Gradio's pages."""

    def __init__(self, app: Call) -> None:
        self._app = app
        self._page = GZipMiddleware(app, compresslevel=3)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Call, send: Call) -> None:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            return await self._app(scope, receive, send)
        stored = find(scope["path"])
        if stored is not None:
            return await _answer(stored, Headers(scope=scope))(scope, receive, send)
        await (self._page if scope["path"].endswith("/") else self._app)(scope, receive, send)


def find(path: str) -> Stored | None:
    """What stands at a path; None where that is not for us to say."""
    asked = PATH.fullmatch(path)
    if asked is None:
        return None
    if name := asked["gradio"]:
        return _gradio(name) if name in _gradio_names() else None
    digest, name = asked["own"].split("/")
    own = _own().get(name)
    return own if own and own.digest == digest else None


def _answer(stored: Stored, asked: Headers) -> Response:
    headers = {"cache-control": FOR_GOOD, "vary": "Accept-Encoding"}
    if "gzip" not in asked.get("accept-encoding", ""):
        return Response(stored.plain, headers=headers, media_type=stored.media_type)
    headers["content-encoding"] = "gzip"
    return Response(stored.compressed, headers=headers, media_type=stored.media_type)


@cache
def _own() -> dict[str, Stored]:
    script = bundle_script(ASSETS / "js" / "main.js")
    style = bundle_style(*(ASSETS / "css" / name for name in SHEETS))
    return {
        SCRIPT: Stored("text/javascript", script.encode("utf-8")),
        STYLE: Stored("text/css", style.encode("utf-8")),
        PLOTLY: Stored("text/javascript", plotly_file().read_bytes()),
    }


@cache
def _gradio_names() -> frozenset[str]:
    return frozenset(path.name for path in _gradio_folder().iterdir() if path.is_file())


@cache
def _gradio(name: str) -> Stored:
    media_type = "text/css" if name.endswith(".css") else "text/javascript"
    return Stored(media_type, (_gradio_folder() / name).read_bytes())


def _gradio_folder() -> Path:
    """The scripts and styles of Gradio's pages."""
    return Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
