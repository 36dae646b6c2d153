"""The page's colours, read from the style sheet that defines them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

SHEET = Path(__file__).parents[2] / "assets" / "css" / "palette.css"
_BLOCK = re.compile(r"(:root|\.dark)\s*\{([^}]*)\}")
_COLOUR = re.compile(r"--sv-([\w-]+):\s*(#[0-9a-fA-F]{6});")


@cache
def palette(dark: bool = False) -> dict[str, str]:
    """Colours as #rrggbb by name, such as "ink" or "accepted-tint"."""
    blocks = dict(_BLOCK.findall(SHEET.read_text(encoding="utf-8")))
    colours = dict(_COLOUR.findall(blocks[":root"]))
    return colours | dict(_COLOUR.findall(blocks[".dark"])) if dark else colours
