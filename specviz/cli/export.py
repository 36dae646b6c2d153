"""``specviz export``: a trace as a page, a picture, a table or coloured text."""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

from specviz.cli.terminal import Failure, TextPrinter, UsageError, read_file
from specviz.records import Trace
from specviz.trace import MAX_TRACE_BYTES, TraceError, load_trace

FORMATS = {
    "html": "one HTML file that replays the run anywhere",
    "svg": "a picture of the token stream",
    "png": "the same picture as pixels",
    "csv": "a table of tokens",
    "ansi": "coloured text for a terminal",
}


def add_arguments(export: argparse.ArgumentParser) -> None:
    """The options of ``export``."""
    export.add_argument("file", metavar="FILE", type=Path, help="a trace")
    for name, what in FORMATS.items():
        export.add_argument(f"--{name}", metavar="OUT", help=f"{what}; - is standard output")
    export.add_argument("--dark", action="store_true", help="pictures on a dark ground")
    export.set_defaults(command=export_command)


def export_command(options: argparse.Namespace) -> int:
    """Write every format that was asked for."""
    wanted = {name: getattr(options, name) for name in FORMATS if getattr(options, name)}
    if not wanted:
        raise UsageError("name at least one of --html, --svg, --png, --csv and --ansi")
    try:
        trace = load_trace(read_file(options.file, MAX_TRACE_BYTES))
    except TraceError as error:
        raise UsageError(f"{options.file}: {error}") from None
    for name, out in wanted.items():
        _write(_made(trace, name, options.dark), out)
    return 0


def _made(trace: Trace, name: str, dark: bool) -> bytes:
    """The file of one format."""
    if name == "png":
        from specviz.export.png import png_picture

        return png_picture(trace, dark)
    return _text(trace, name, dark).encode("utf-8")


def _text(trace: Trace, name: str, dark: bool) -> str:
    from specviz.export.page import html_page
    from specviz.export.svg import svg_picture
    from specviz.export.table import csv_table

    if name == "html":
        return html_page(trace)
    if name == "svg":
        return svg_picture(trace, dark)
    return csv_table(trace) if name == "csv" else _ansi(trace)


def _ansi(trace: Trace) -> str:
    """The first lane's text, guesses that failed struck through."""
    from specviz.race import replay_events

    run = trace.run("speculative") or trace.runs[0]
    out = io.StringIO()
    printer = TextPrinter(out, lane=run.lane, colour=True, show_rejected=True, limit=run.text_end)
    for event in replay_events(trace):
        printer.show(event)
    printer.end_line()
    return out.getvalue()


def _write(data: bytes, out: str) -> None:
    """To a file in one step, or to standard output. Raises Failure."""
    if out == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    path = Path(out)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        os.replace(part, path)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)
