"""The command line: ``python -m specviz run | replay | bench | check | export | pairs | fetch``.

torch is imported by the commands that compute, once their arguments have been checked.
Exit status: 0, 1 when something failed, 2 for bad input (one line on stderr), 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from specviz.cli import bench, check, export
from specviz.cli.run import run_command
from specviz.cli.terminal import (
    Failure,
    ProgressPrinter,
    UsageError,
    complain,
    one_line,
    read_file,
    summary,
    text_printer,
    to_json,
)
from specviz.records import Settings
from specviz.trace import MAX_TRACE_BYTES, TraceError, load_trace

DTYPES = ("auto", "float32", "bfloat16", "float16")


class Parser(argparse.ArgumentParser):
    """argparse prints its usage before an error; here an error is one line."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = parser().parse_args(arguments)
        return options.command(options)
    except ValueError as error:
        return complain(error, 2)
    except Failure as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read stdout has left; keep Python from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


# --- arguments -----------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(prog="specviz", description="See speculative decoding happen, measured.")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="decode a prompt, raced against the target alone"))
    replay = commands.add_parser("replay", help="show a saved trace at its recorded speed")
    replay.add_argument("file", metavar="FILE", type=Path)
    replay.add_argument("--speed", type=float, default=1.0, help="times faster; 0 = at once")
    replay.add_argument("--show-rejected", action="store_true")
    replay.set_defaults(command=replay_command)
    pairs = commands.add_parser("pairs", help="list the model pairs and what runs here")
    pairs.add_argument("--dtype", choices=DTYPES, default="auto")
    pairs.add_argument("--json", action="store_true")
    pairs.set_defaults(command=pairs_command)
    fetch = commands.add_parser("fetch", help="fetch and prepare the embedded model")
    fetch.set_defaults(command=fetch_command)
    bench.add_arguments(commands.add_parser("bench", help="measure a grid of drafts and settings"))
    check.add_arguments(commands.add_parser("check", help="prove that nothing is lost"))
    export.add_arguments(commands.add_parser("export", help="a trace as HTML, SVG, PNG or CSV"))
    return top


def _add_run(run: argparse.ArgumentParser) -> None:
    default = Settings()
    prompt = run.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT", help="- reads standard input")
    prompt.add_argument("--prompt-file", metavar="FILE", type=Path)
    run.add_argument("--raw", action="store_true", help="no chat template")
    run.add_argument("--pair", metavar="NAME", help="one of: specviz pairs")
    run.add_argument("--target", metavar="ID", help="a Hub id or a folder")
    run.add_argument("--draft", metavar="ID", help="a Hub id or a folder")
    run.add_argument("--drafter", metavar="NAME", help='"draft model", "prompt lookup", ...')
    run.add_argument("--gamma", type=int, metavar="N", help="tokens drafted in a round")
    run.add_argument("--temperature", type=float, default=default.temperature, metavar="T")
    run.add_argument("--top-k", type=int, default=default.top_k, metavar="K")
    run.add_argument("--top-p", type=float, default=default.top_p, metavar="P")
    run.add_argument("--max-new-tokens", type=int, default=default.max_new_tokens, metavar="N")
    run.add_argument("--seed", type=int, default=default.seed, metavar="S")
    run.add_argument("--dtype", choices=DTYPES, default="auto")
    run.add_argument("--no-baseline", action="store_true", help="do not race the target alone")
    run.add_argument("--trace", metavar="FILE", type=Path, help="save the run for replay")
    run.add_argument("--show-rejected", action="store_true", help="show guesses that failed")
    run.add_argument("--json", action="store_true", help="one JSON object on stdout, no text")
    run.set_defaults(command=run_command)


# --- commands but run ----------------------------------------------------------------------


def replay_command(options: argparse.Namespace) -> int:
    """Show a trace at its recorded clock."""
    from specviz.race import replay_events

    if not (math.isfinite(options.speed) and options.speed >= 0):
        raise UsageError("--speed must be 0 or more: 1 as recorded, 2 twice as fast, 0 at once")
    data = read_file(options.file, MAX_TRACE_BYTES)
    try:
        trace = load_trace(data)
    except TraceError as error:
        raise UsageError(f"{options.file}: {error}") from None
    run = trace.run("speculative") or trace.runs[0]
    printer = text_printer(options, run.lane, run.text_end)
    clock, begin, start = 0.0, time.monotonic(), {}
    for event in replay_events(trace):
        if event["e"] == "start":
            start = event
        if event["e"] == "round" and event["lane"] == run.lane:
            clock += sum(event["round"][name] for name in ("draft_s", "verify_s", "sample_s"))
            if options.speed:
                time.sleep(max(0.0, begin + clock / options.speed - time.monotonic()))
        if event["e"] in ("round", "end"):
            printer.show(event)
        if event["e"] == "done":
            printer.end_line()
            print(f"\n{summary(start, event, run.finish_reason)}", end="")
    return 0


def pairs_command(options: argparse.Namespace) -> int:
    """List the pairs with their sizes and, where one cannot run here, the reason."""
    from specviz.pairs import (
        catalogue,
        choose_device,
        choose_dtype,
        gigabytes,
        memory_need,
        why_not,
    )

    warnings.simplefilter("ignore")
    dtype = choose_dtype(choose_device(), options.dtype)
    rows = []
    for spec in catalogue():
        need = memory_need(spec.target_parameters + spec.draft_parameters, dtype)
        rows.append({**asdict(spec), "memory": need, "why_not": why_not(spec, options.dtype)})
    if options.json:
        print(to_json({"dtype": str(dtype).removeprefix("torch."), "pairs": rows}))
        return 0
    width = max(len(spec.name) for spec in catalogue())
    wide = max(len(spec.title) for spec in catalogue())
    for row in rows:
        state = f"no: {row['why_not']}" if row["why_not"] else "can run here"
        size = gigabytes(row["memory"])
        print(f"{row['name']:{width}}  {row['title']:{wide}}  {size:>9}  {state}")
    return 0


def fetch_command(options: argparse.Namespace) -> int:
    """Prepare the embedded model and print its folder."""
    from specviz.weights import WeightsError, embedded_target

    warnings.simplefilter("ignore")
    progress = ProgressPrinter()
    try:
        folder = embedded_target(progress)
    except WeightsError as error:
        raise Failure(error) from None
    finally:
        progress.close()
    print(one_line(folder))
    return 0
