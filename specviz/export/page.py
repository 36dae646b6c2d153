"""A trace as one HTML file that replays it: scripts, styles and data inside, nothing outside."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

from specviz.export.bundle import bundle_script, bundle_style
from specviz.metrics import DEFINITIONS
from specviz.race import replay_events
from specviz.records import Trace

ASSETS = Path(__file__).parents[2] / "assets"
SHEETS = ("palette.css", "specviz.css", "standalone.css")


def html_page(trace: Trace) -> str:
    """The page. Its content security policy allows its own script and styles, by their hashes,
    and nothing else: no request leaves it, and text of the trace cannot become script."""
    script = bundle_script(ASSETS / "js" / "standalone.js")
    style = bundle_style(*(ASSETS / "css" / name for name in SHEETS))
    template = Template((ASSETS / "standalone.html").read_text(encoding="utf-8"))
    return template.substitute(
        script_hash=_hash(script),
        style_hash=_hash(style),
        style=style,
        stage=(ASSETS / "stage.html").read_text(encoding="utf-8"),
        definitions=inert(DEFINITIONS),
        run=inert(compact(replay_events(trace))),
        script=script,
    )


def compact(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The events with the running figures of each round as a bare list, in the order of
    ``figures``, to six digits: their names would weigh more than they."""
    names: list[str] = []
    shortened = []
    for event in events:
        if event["e"] == "round":
            names = names or list(event["figures"])
            event = {**event, "figures": [_six_digits(event["figures"][name]) for name in names]}
        shortened.append(event)
    return {"figures": names, "events": shortened}


def inert(value: Any) -> str:
    """JSON that can stand inside a script element: no ``<``, and no line separators that
    JavaScript would end a line at."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _six_digits(value: float | int | None) -> float | int | None:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _hash(text: str) -> str:
    """As a content security policy names inline text."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
