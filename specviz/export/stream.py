"""The token stream laid out in character cells, for pictures: no font needs to be measured.

A cell is as wide as a letter of a monospaced font; wide characters (CJK, emoji) take two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from specviz.race import done_event
from specviz.records import Run, Token, Trace

COLUMNS = 88
TAB = "\u21e5"
RETURN = "\u21b5"
DOT = "\u00b7"
FATES = ("accepted", "rejected", "discarded", "resampled", "bonus", "target")
THROWN_AWAY = ("rejected", "discarded")


@dataclass(frozen=True, slots=True)
class Piece:
    """A token, or the part of it that stands on one line: where, how wide in cells, and whether a
    round begins with it."""

    line: int
    column: int
    width: int
    text: str
    fate: str
    begins_round: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane's text: its name and its pieces, on ``lines`` lines."""

    name: str
    pieces: tuple[Piece, ...]
    lines: int


def lanes(trace: Trace, columns: int = COLUMNS) -> tuple[Lane, ...]:
    """Each lane of a trace, laid out ``columns`` cells wide."""
    return tuple(_lane(run, columns) for run in trace.runs)


def heading(trace: Trace) -> tuple[str, str]:
    """What ran, and what was measured, a line each. What was not measured is an em dash."""
    figures = done_event(trace)["figures"]
    run = trace.run("speculative")
    drafter = run.drafter if run else "the target alone"
    settings = trace.settings
    how = "greedy" if settings.greedy else f"temperature {settings.temperature:g}"
    speedup = figures["speedup"]
    slower = ", slower than the target alone" if speedup is not None and speedup < 1 else ""
    return (
        f"{trace.pair.name}, {drafter}, gamma {settings.gamma}, {how}",
        f"{_number(speedup)}x measured{slower}; TAR {_number(figures['tar'])}, alpha"
        f" {_number(figures['alpha'])}, {_number(figures['tokens_per_target_call'])} tokens per"
        f" target call; {trace.machine.dtype}, {trace.machine.device}",
    )


def cells(text: str) -> int:
    """The width of a text in cells."""
    return sum(_cells(char) for char in text)


def visible(text: str) -> str:
    """A text of one line with every character that draws nothing, or moves others, drawn."""
    return "".join(_visible(char) for char in text)


def _number(value: float | None) -> str:
    return "\u2014" if value is None else f"{value:.2f}"


def _lane(run: Run, columns: int) -> Lane:
    pieces: list[Piece] = []
    line = column = 0
    for token, begins in _tokens(run):
        for part, ends_line in _parts(_text(token)):
            if column and column + cells(part) > columns:
                line, column, part = line + 1, 0, part.removeprefix(" ")
            for chunk in _chunks(part, columns):
                width = cells(chunk)
                if column + width > columns:
                    line, column = line + 1, 0
                pieces.append(Piece(line, column, width, chunk, token.fate, begins))
                column, begins = column + width, False
            if ends_line:
                line, column = line + 1, 0
    return Lane(run.lane, tuple(pieces), line + 1 if column or not pieces else line)


def _tokens(run: Run) -> Iterator[tuple[Token, bool]]:
    """The lane's tokens with whether each begins a round. Every baseline token does, which says
    nothing, so there none is marked."""
    for round_ in run.rounds:
        tokens = [*round_.drafted] + ([] if round_.added is None else [round_.added])
        for i, token in enumerate(tokens):
            yield token, i == 0 and run.lane == "speculative"


def _text(token: Token) -> str:
    """What is drawn of a token: a part of a character and a special token have only a label."""
    return token.text or token.label or DOT


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text line by line, with a mark where a line ends."""
    for part in text.splitlines(keepends=True):
        body = part.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
        ended = body != part
        yield visible(body) + (RETURN if ended else ""), ended


def _chunks(text: str, columns: int) -> Iterator[str]:
    """A text wider than a line, in lines."""
    chunk = ""
    for char in text:
        if chunk and cells(chunk + char) > columns:
            yield chunk
            chunk = ""
        chunk += char
    if chunk:
        yield chunk


def _visible(char: str) -> str:
    if char == "\t":
        return TAB
    if ord(char) < 32:
        return chr(0x2400 + ord(char))
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return char if char == "\u200d" else DOT
    return char


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
