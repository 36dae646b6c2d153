"""How a race looks in a terminal. Events in, text out; nothing here imports torch."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from specviz.records import CUDA_GRAPHS

Event = Mapping[str, Any]

STYLES = {
    "accepted": "\x1b[32;4m",
    "rejected": "\x1b[31;9m",
    "discarded": "\x1b[2;9m",
    "resampled": "\x1b[33m",
    "bonus": "\x1b[34m",
    "target": "",
}
RESET = "\x1b[0m"
CLEAR_LINE = "\r\x1b[K"
BIDI_CONTROLS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
QUIET_SECONDS = 3.0


def printable(text: str) -> str:
    """``text`` with every control character but newline and tab spelled out, so that no model
    and no trace can move the cursor, recolour, retitle or reorder the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii") if _controls(char) else char for char in text
    )


def _controls(char: str) -> bool:
    if char in "\n\t":
        return False
    return unicodedata.category(char) in ("Cc", "Cs") or char in BIDI_CONTROLS


def one_line(text: object) -> str:
    """Any text as one printable line."""
    return printable(" ".join(str(text).split()))


def is_terminal(stream: TextIO) -> bool:
    """Whether people read the stream where it is written."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def uses_colour(stream: TextIO) -> bool:
    """Whether to colour: on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    dumb = os.environ.get("TERM") == "dumb" or bool(os.environ.get("NO_COLOR"))
    return is_terminal(stream) and not dumb


class UsageError(ValueError):
    """Bad input, in one sentence that says what to do."""


class Failure(Exception):
    """Something went wrong that is no fault of the input, in one sentence."""


def complain(error: object, status: int) -> int:
    print(f"specviz: {one_line(error)}", file=sys.stderr)
    return status


def read_file(path: Path, limit: int) -> bytes:
    """At most ``limit`` + 1 bytes of a file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def to_json(value: Any) -> str:
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return json.dumps(value, ensure_ascii=not utf8, allow_nan=False)


class TextPrinter:
    """Writes one lane's text round by round, coloured by fate where ``colour`` is on.

    ``limit`` is the number of characters after which a stop string cut the text.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        lane: str = "speculative",
        colour: bool = False,
        show_rejected: bool = False,
        limit: int | None = None,
    ) -> None:
        self._stream = stream
        self._lane = lane
        self._colour = colour
        self._show_rejected = show_rejected
        self._left = limit
        self._ends_line = True

    def show(self, event: Event) -> None:
        """Write what a round of this lane says; other events say nothing here."""
        if event["e"] == "end" and event["lane"] == self._lane:
            self.end_line()
        if event["e"] != "round" or event["lane"] != self._lane:
            return
        round_ = event["round"]
        tokens = round_["drafted"] + ([round_["added"]] if round_.get("added") else [])
        for token in tokens:
            if token["fate"] not in ("rejected", "discarded"):
                self._write(token["fate"], self._cut(token["text"]))
            elif self._show_rejected:
                self._write(token["fate"], token["text"] or token.get("label", ""))
        self._stream.flush()

    def end_line(self) -> None:
        """Begin a new line unless the text has just done so."""
        if not self._ends_line:
            self._stream.write("\n")
            self._stream.flush()
            self._ends_line = True

    def _cut(self, text: str) -> str:
        if self._left is None:
            return text
        text = text[: self._left]
        self._left -= len(text)
        return text

    def _write(self, fate: str, text: str) -> None:
        if not text:
            return
        shown = printable(text)
        self._ends_line = shown.endswith("\n")
        if self._colour and STYLES[fate]:
            # A style that spans a line break would underline the rest of the line.
            lines = [f"{STYLES[fate]}{line}{RESET}" if line else "" for line in shown.split("\n")]
            shown = "\n".join(lines)
        elif self._show_rejected and fate in ("rejected", "discarded"):
            shown = f"[-{shown}-]"
        self._stream.write(shown)


def text_printer(
    options: argparse.Namespace, lane: str = "speculative", limit: int | None = None
) -> Any:
    return TextPrinter(
        sys.stdout,
        lane=lane,
        colour=uses_colour(sys.stdout),
        show_rejected=options.show_rejected,
        limit=limit,
    )


class ProgressPrinter:
    """Progress on stderr: one line that is rewritten on a terminal, else a line a message.

    Where nobody watches, the first seconds are kept back: what fails at once then leaves the
    error alone on stderr.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = is_terminal(self._stream)
        self._begin = time.monotonic()
        self._last = ""
        self._held: list[str] = []

    def __call__(self, message: str, fraction: float | None = None) -> None:
        """A progress callback as weights and pairs call it."""
        message = one_line(message)
        if self._terminal:
            share = "" if fraction is None else f" {fraction:.0%}"
            self._stream.write(f"{CLEAR_LINE}{message}{share}")
        elif message != self._last:
            self._held.append(message)
            if time.monotonic() - self._begin > QUIET_SECONDS:
                self._stream.write("".join(f"{line}\n" for line in self._held))
                self._held.clear()
        self._last = message
        self._stream.flush()

    def close(self) -> None:
        """Leave nothing of the line behind."""
        if self._terminal and self._last:
            self._stream.write(CLEAR_LINE)
            self._stream.flush()
        self._last = ""


def summary(start: Event, done: Event, finish_reason: str) -> str:
    """What came out, in a few lines. What was not measured is an em dash."""
    figures, pair, machine = done["figures"], start["pair"], start["machine"]
    drafter = start["drafter"] or "the target alone"
    threads = f", threads: {machine['threads']}" if machine["device"].startswith("CPU") else ""
    lines = [
        f"{drafter} on {pair['name']} ({machine['dtype']}, {machine['device']}{threads})",
        *_graphs_line(machine),
        f"{figures['tokens']} tokens in {figures['target_calls']} target calls,"
        f" {_number(figures['tokens_per_target_call'])} tokens per target call;"
        f" ended by: {finish_reason}",
        f"TAR {_percent(figures['tar'])}, alpha {_percent(figures['alpha'])}"
        f" (drafted {figures['drafted']}, tested {figures['tested']},"
        f" accepted {figures['accepted']})",
        _speedup_line(figures),
        f"{_number(figures['tokens_per_s'], 1)} tokens/s, the target alone"
        f" {_number(figures['baseline_tokens_per_s'], 1)};"
        f" c {_number(figures['cost_ratio'])}, v {_number(figures['verify_ratio'])};"
        f" recording took {_number(figures['observe_s'])} s, on neither clock",
    ]
    if done["same_as_baseline"] is not None:
        lines.append(_same_line(done))
    return "".join(f"{one_line(line)}\n" for line in lines)


def _graphs_line(machine: Mapping[str, Any]) -> list[str]:
    """Whether steps were replayed as CUDA graphs; nothing where the record does not say."""
    graphs = machine["versions"].get(CUDA_GRAPHS)
    return [f"{CUDA_GRAPHS}: {graphs}"] if graphs else []


def _speedup_line(figures: Event) -> str:
    speedup = figures["speedup"]
    slower = ": slower than the target alone" if speedup is not None and speedup < 1 else ""
    return (
        f"speedup {_number(speedup)}x measured{slower},"
        f" {_number(figures['predicted_speedup'])}x predicted"
        f" (efficiency {_number(figures['efficiency'])});"
        f" end to end {_number(figures['end_to_end_speedup'])}x"
    )


def _same_line(done: Event) -> str:
    found = done["divergence"]
    if done["same_as_baseline"]:
        return "same text as the target alone: yes"
    if found is None:
        return "same text as the target alone so far; one of the two was ended earlier"
    return (
        f"same text as the target alone: no, from token {found['index'] + 1} on"
        f" ({found['text']!r}, there {found['baseline_text']!r}; logits apart by"
        f" {_number(found['gap'])} here and {_number(found['baseline_gap'])} there)"
    )


def _number(value: float | None, digits: int = 2) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value:.1%}"
