"""The token stream as a PNG, drawn with Pillow, which comes with gradio.

Pillow draws with the fonts it finds. A character that none of them has is drawn as a box; the SVG
and the page's own PNG, which a browser draws, have no such limit.
"""

from __future__ import annotations

import io
from functools import cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from specviz.export.palette import palette
from specviz.export.stream import FATES, Lane, Piece, cells, heading, lanes, visible
from specviz.records import Trace

SCALE = 2
CELL, LINE, MARGIN, SIZE = 9 * SCALE, 32 * SCALE, 24 * SCALE, 15 * SCALE
FONTS = (
    "DejaVuSansMono.ttf",
    "LiberationMono-Regular.ttf",
    "Menlo.ttc",
    "consola.ttf",
    "NotoSansCJK-Regular.ttc",
    "msgothic.ttc",
)
NAMES = {"speculative": "Speculative", "baseline": "Baseline"}
MAX_SIDE = 30_000
"""Pixels of the longest side: viewers give up beyond."""


class PictureError(ValueError):
    """A picture that cannot be drawn; the message says what to do instead."""


def png_picture(trace: Trace, dark: bool = False) -> bytes:
    """The picture, two pixels for one of the SVG. Raises PictureError where it would be too
    long."""
    colours = palette(dark)
    shown = lanes(trace)
    height = 2 * MARGIN + 72 * SCALE + sum(lane.lines * LINE + 48 * SCALE for lane in shown)
    if height > MAX_SIDE:
        raise PictureError("the run is too long for a PNG; export it as SVG or HTML")
    widest = max((p.column + p.width for lane in shown for p in lane.pieces), default=0)
    title, figures = heading(trace)
    small = 12 * SCALE
    width = max(2 * MARGIN + CELL * widest, 2 * MARGIN + _width(figures, small))
    image = Image.new("RGB", (int(width), int(height)), colours["surface"])
    draw = ImageDraw.Draw(image)
    _line(draw, (MARGIN, MARGIN), title, colours["ink"], 16 * SCALE)
    _line(draw, (MARGIN, MARGIN + 24 * SCALE), figures, colours["muted"], small)
    _legend(draw, MARGIN + 44 * SCALE, colours)
    y = MARGIN + 92 * SCALE
    for lane in shown:
        _line(draw, (MARGIN, y), NAMES[lane.name], colours["ink"], small)
        _lane(draw, lane, y + 18 * SCALE, colours)
        y += lane.lines * LINE + 48 * SCALE
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _lane(draw: Any, lane: Lane, top: float, colours: dict[str, str]) -> None:
    for piece in lane.pieces:
        _piece(draw, piece, top, colours)


def _piece(draw: Any, piece: Piece, top: float, colours: dict[str, str]) -> None:
    x, y = MARGIN + piece.column * CELL, top + piece.line * LINE
    lead = CELL if piece.text.startswith(" ") and piece.width > 1 else 0
    box = (x + lead + 1, y + 4 * SCALE, x + piece.width * CELL - 2, y + LINE - 4 * SCALE)
    if box[2] > box[0]:
        _mark(draw, piece.fate, box, colours)
    if piece.begins_round:
        draw.rectangle((x - 1, y + 5 * SCALE, x + 1, y + LINE - 5 * SCALE), colours["seam"])
    ink = colours["muted" if piece.fate == "discarded" else "ink"]
    column = x
    for char in piece.text:
        draw.text((column, y + LINE / 2), char, ink, _font_for(char, SIZE), anchor="lm")
        column += cells(char) * CELL
    if piece.fate == "rejected" and box[2] > box[0]:
        middle = (box[1] + box[3]) / 2
        draw.rectangle((box[0], middle - 1, box[2], middle + 2), colours["rejected"])


def _mark(draw: Any, fate: str, box: tuple[float, ...], colours: dict[str, str]) -> None:
    """What lies under a token's text."""
    left, _, right, bottom = box
    if fate == "target":
        return
    stroke = colours[fate]
    if fate == "discarded":
        for x in range(int(left), int(right), 5 * SCALE):
            draw.rectangle((x, bottom - 2 * SCALE, x + 2 * SCALE, bottom), stroke)
        return
    draw.rectangle(box, colours[f"{fate}-tint"])
    if fate == "resampled":
        draw.rectangle(box, outline=stroke, width=2 * SCALE)
    if fate in ("accepted", "bonus"):
        draw.rectangle((left, bottom - 2 * SCALE, right, bottom), stroke)
    if fate == "bonus":
        draw.rectangle((left, bottom - 6 * SCALE, right, bottom - 4 * SCALE), stroke)


def _legend(draw: Any, top: float, colours: dict[str, str]) -> None:
    column = 0
    for fate in FATES[:-1]:
        width = cells(fate)
        _piece(draw, Piece(0, column, width, fate, fate, False), top, colours)
        column += width + 3


def _line(draw: Any, place: tuple[float, float], text: str, fill: str, size: int) -> None:
    draw.text(place, visible(text), fill, _fonts(size)[0])


def _width(text: str, size: int) -> float:
    return _fonts(size)[0].getlength(text)


@cache
def _fonts(size: int) -> tuple[Any, ...]:
    """The fonts there are, the preferred one first; Pillow's own where there is none."""
    found = []
    for name in FONTS:
        try:
            found.append(ImageFont.truetype(name, size))
        except OSError:
            continue
    return tuple(found) or (ImageFont.load_default(size),)


@cache
def _font_for(char: str, size: int) -> Any:
    """The first font that has the character, told by its glyph not being the box for none."""
    for font in _fonts(size):
        if bytes(font.getmask(char)) != bytes(font.getmask("\uffff")):
            return font
    return _fonts(size)[0]
