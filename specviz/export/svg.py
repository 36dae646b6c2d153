"""The token stream as one SVG picture: fates by colour and by shape, as on the page."""

from __future__ import annotations

from html import escape

from specviz.export.palette import palette
from specviz.export.stream import FATES, Lane, Piece, cells, heading, lanes, visible
from specviz.records import Trace

CELL = 9.0
LINE = 32.0
SIZE = 15
MARGIN = 24.0
SMALL = 12
MONO = "ui-monospace, 'SF Mono', Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
NAMES = {"speculative": "Speculative", "baseline": "Baseline"}


def svg_picture(trace: Trace, dark: bool = False) -> str:
    """The picture, with no script, no link and no font in it."""
    colours = palette(dark)
    shown = lanes(trace)
    width = 2 * MARGIN + CELL * max(
        (piece.column + piece.width for lane in shown for piece in lane.pieces), default=0
    )
    width = max(width, 640.0)
    title, figures = heading(trace)
    y = MARGIN + 20
    parts = [
        _text(MARGIN, y, title, colours["ink"], 16, weight=600),
        _text(MARGIN, y + 22, figures, colours["muted"], SMALL),
        _legend(y + 48, colours),
    ]
    y += 84
    for lane in shown:
        parts.append(_text(MARGIN, y, NAMES[lane.name], colours["ink"], SMALL, weight=600))
        parts.append(_lane(lane, y + 12, colours))
        y += 12 + lane.lines * LINE + 36
    height = y - 36 + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" role="img">'
        f"<title>{_escaped(title)}</title>"
        f'<rect width="{width:g}" height="{height:g}" fill="{colours["surface"]}"/>'
        f"{''.join(parts)}</svg>\n"
    )


def _lane(lane: Lane, top: float, colours: dict[str, str]) -> str:
    return "".join(_piece(piece, top, colours) for piece in lane.pieces)


def _piece(piece: Piece, top: float, colours: dict[str, str]) -> str:
    """One token: its ground, its mark, its text. The space before a word is not marked."""
    x, y = MARGIN + piece.column * CELL, top + piece.line * LINE
    lead = 1 if piece.text.startswith(" ") and piece.width > 1 else 0
    box = (x + lead * CELL + 0.5, y + 4, (piece.width - lead) * CELL - 1, LINE - 8)
    parts = [_mark(piece.fate, box, colours)] if box[2] > 0 else []
    if piece.begins_round:
        parts.append(_rect((x - 0.75, y + 5, 1.5, LINE - 10), colours["seam"]))
    ink = colours["muted" if piece.fate == "discarded" else "ink"]
    parts.append(
        f'<text x="{x:g}" y="{y + LINE / 2 + 5:g}" fill="{ink}" font-family="{MONO}"'
        f' font-size="{SIZE}" textLength="{piece.width * CELL:g}" lengthAdjust="spacingAndGlyphs"'
        f' xml:space="preserve">{_escaped(piece.text)}</text>'
    )
    if piece.fate == "rejected":
        left, upper, width, height = box
        line = (left, upper + height / 2, width, 2.0)
        parts.append(_rect(line, colours["rejected"]))
    return "".join(parts)


def _mark(fate: str, box: tuple[float, float, float, float], colours: dict[str, str]) -> str:
    """What lies under a token's text."""
    x, y, width, height = box
    if fate == "target":
        return ""
    stroke = colours[fate]
    ground = "" if fate == "discarded" else _rect(box, colours[f"{fate}-tint"])
    if fate == "accepted":
        return ground + _rect((x, y + height - 2.5, width, 2.5), stroke)
    if fate == "bonus":
        lines = [(x, y + height - offset, width, 2.0) for offset in (2.0, 6.0)]
        return ground + "".join(_rect(line, stroke) for line in lines)
    if fate == "resampled":
        return (
            f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{width - 2:g}" height="{height - 2:g}"'
            f' fill="{colours["resampled-tint"]}" stroke="{stroke}" stroke-width="2" rx="2"/>'
        )
    if fate == "discarded":
        return (
            f'<path d="M{x:g} {y + height - 2:g}h{width:g}" stroke="{stroke}" stroke-width="2"'
            f' stroke-dasharray="2 3"/>'
        )
    return ground


def _legend(y: float, colours: dict[str, str]) -> str:
    parts, column = [], 0
    for fate in FATES[:-1]:
        width = cells(fate)
        parts.append(_piece(Piece(0, column, width, fate, fate, False), y - 20, colours))
        column += width + 3
    return "".join(parts)


def _rect(box: tuple[float, float, float, float], fill: str) -> str:
    x, y, width, height = box
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>'


def _text(x: float, y: float, text: str, fill: str, size: int, weight: int = 400) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{fill}" font-family="{SANS}" font-size="{size}"'
        f' font-weight="{weight}">{_escaped(visible(text))}</text>'
    )


def _escaped(text: str) -> str:
    """For XML, which cannot hold control characters at all."""
    return escape(visible(text), quote=True)
