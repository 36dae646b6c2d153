"""What the server answers at all: less than Gradio by itself would, and told to the browser.

Gradio brings routes this page has no use for. One fetches any address of the web and hands it on
under this host's name; others take recordings or requests of any size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from typing import Any

import gradio as gr
from gradio import processing_utils
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse

Values = MutableMapping[str, Any]
"""A scope or a message of ASGI."""
Call = Callable[..., Any]

UNUSED = re.compile(
    r"(?:(?:/[^/=]+)*/gradio_api)?/"
    r"(?:file=\s*[a-z][a-z0-9+.-]+:|proxy=|stream/|process_recording|custom_component/|deep_link"
    r"|run-history|vibe-|undo-vibe-|dev/|profiling/|monitoring)",
    re.IGNORECASE,
)
"""Gradio's routes that this page never asks for, behind whatever prefix they stand."""
MAX_BODY_BYTES = 40_000_000
"""Of one request. An upload may have ``theme.MAX_UPLOAD``, and has a little around it."""
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; base-uri 'self'; "
    "form-action 'self'"
)
"""The page loads from and sends to its own host alone, whatever a text on it might ask for.
(Gradio's scripts are inline, and it compiles the scripts of our elements from text.)"""
HEADERS = [
    (b"content-security-policy", POLICY.encode("ascii")),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]


class Doorkeeper:
    """An ASGI layer around the app that refuses what ``UNUSED`` and ``MAX_BODY_BYTES`` name and
    adds ``HEADERS`` to every answer. A body whose length was not told ends where it is too long.
    """

    def __init__(self, app: Call) -> None:
        self._app = app

    async def __call__(self, scope: Values, receive: Call, send: Call) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def guarded(message: Values) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        taken = 0

        async def counted() -> Values:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            return message if taken <= MAX_BODY_BYTES else {"type": "http.disconnect"}

        refusal = _refusal(scope)
        await (self._app if refusal is None else refusal)(scope, counted, guarded)


def _refusal(scope: Values) -> PlainTextResponse | None:
    """The answer to a request that is not let in; None for one that is."""
    if UNUSED.match(scope["path"]):
        return PlainTextResponse("Not here.", 404)
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if len(length) > 12 or int(length) > MAX_BODY_BYTES:
        most = f"{MAX_BODY_BYTES // 1_000_000} MB"
        return PlainTextResponse(f"The request is larger than {most}.", 413)
    return None


def fetch_nothing() -> None:
    """Let Gradio fetch nothing from the web. By itself it takes any address that an event names as
    a file into memory, however much that is; a file of this page is uploaded or made here."""
    processing_utils.async_ssrf_protected_download = _refuse


async def _refuse(url: str, cache_dir: str) -> str:
    raise gr.Error("Nothing is fetched from the web here. Upload the file.", print_exception=False)


def doorkeeper() -> Middleware:
    """The layer as FastAPI takes it."""
    return Middleware(Doorkeeper)
