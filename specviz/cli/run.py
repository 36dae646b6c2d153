"""``specviz run``: load a pair, race it in the terminal, print what came out."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from specviz.cli.terminal import (
    Failure,
    ProgressPrinter,
    UsageError,
    complain,
    read_file,
    summary,
    text_printer,
    to_json,
)
from specviz.metrics import ACCEPTANCE, COSTS, COUNTS, RATES, SPEEDUPS
from specviz.records import Settings, Trace
from specviz.trace import MAX_TEXT, dump_trace

MAX_PROMPT_BYTES = 4 * MAX_TEXT
FIGURES = (*COUNTS, *ACCEPTANCE, *RATES, *SPEEDUPS, *COSTS)


def run_command(options: argparse.Namespace) -> int:
    """Load a pair, race it, print the text or the figures."""
    spec = chosen_spec(options)
    settings = _settings(options)
    prompt = _prompt(options)
    if options.trace is not None and not options.trace.absolute().parent.is_dir():
        raise UsageError(f"the folder of {options.trace} does not exist; make it first")
    if options.trace is not None and options.trace.is_dir():
        raise UsageError(f"{options.trace} is a folder; name a file for the trace")
    warnings.simplefilter("ignore")
    progress = ProgressPrinter()
    race = _race(options, spec, settings, prompt, progress)
    start, status = _decode(options, race, progress)
    return _report(options, race, start, status)


def chosen_spec(options: argparse.Namespace) -> Any:
    """The PairSpec that was asked for."""
    from specviz.catalogue import PairSpec, catalogue, find

    if options.pair is not None and (options.target or options.draft):
        raise UsageError("give either --pair or --target with --draft, not both")
    if options.draft is not None and options.target is None:
        raise UsageError("--draft needs --target beside it")
    if options.target is not None:
        return PairSpec("", options.target, options.draft or "", "")
    spec = find(options.pair) if options.pair is not None else catalogue()[0]
    if spec is None:
        raise UsageError(
            f"there is no pair {options.pair!r}; choose one of"
            f" {', '.join(spec.name for spec in catalogue())}"
        )
    return spec


def _race(
    options: argparse.Namespace,
    spec: Any,
    settings: Settings,
    prompt: str,
    progress: ProgressPrinter,
) -> Any:
    """The loaded race, not yet begun."""
    from specviz import drafters
    from specviz.pairs import Shelf
    from specviz.race import Race

    known = list(drafters.described())
    if options.drafter is not None and options.drafter not in known:
        raise UsageError(f"there is no drafter {options.drafter!r}; choose {' or '.join(known)}")
    try:
        pair = Shelf().load(spec.target, spec.draft, options.dtype, progress, spec.name)
    finally:
        progress.close()
    drafter = options.drafter or drafters.names(pair)[0]
    if options.gamma is None:
        settings = replace(settings, gamma=drafters.best_gamma(drafter, spec.gamma))
    return Race(pair, drafter, prompt, settings, baseline=not options.no_baseline)


def _decode(
    options: argparse.Namespace, race: Any, progress: ProgressPrinter
) -> tuple[dict[str, Any], int]:
    """Run the race to its end, or to the round in which Ctrl-C was pressed."""
    printer = None if options.json else text_printer(options)
    status = 0
    with _interrupts_noted() as interrupted:
        start: dict[str, Any] = {}
        try:
            progress("Reading the prompt")
            for event in race.start():
                start = event if event["e"] == "start" else start
            progress.close()
            while not race.finished and not interrupted.is_set():
                for event in race.advance():
                    if printer is not None:
                        printer.show(event)
        except (ArithmeticError, RuntimeError, ValueError) as error:
            race.stop("error")
            status = complain(f"the run ended early: {error}", 1)
        if interrupted.is_set():
            race.stop("stopped")
            status = 130
    if printer is not None:
        printer.end_line()
    return start, status


@contextmanager
def _interrupts_noted() -> Iterator[threading.Event]:
    """Ctrl-C sets the event instead of breaking into a round; a second one breaks in."""
    noted = threading.Event()

    def note(number: int, frame: Any) -> None:
        if noted.is_set():
            raise KeyboardInterrupt
        noted.set()

    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _report(options: argparse.Namespace, race: Any, start: dict[str, Any], status: int) -> int:
    """Print the outcome and save the trace, whether the race came to its end or not."""
    trace: Trace = race.trace()
    done = race.finish()
    run = trace.run("speculative")
    assert run is not None
    if options.json:
        print(to_json(_outcome(trace, done)))
    else:
        print(f"\n{summary(start, done, run.finish_reason)}", end="")
    if options.trace is not None:
        _save(trace, options.trace)
    return status


def _outcome(trace: Trace, done: dict[str, Any]) -> dict[str, Any]:
    """The object of ``run --json``."""
    run = trace.run("speculative")
    assert run is not None
    figures = done["figures"]
    return {
        "pair": asdict(trace.pair),
        "drafter": run.drafter,
        "settings": asdict(trace.settings),
        "text": run.text,
        "finish_reason": run.finish_reason,
        **{name: figures[name] for name in FIGURES},
        "same_as_baseline": done["same_as_baseline"],
        "observe_s": figures["observe_s"],
    }


def _save(trace: Trace, path: Path) -> None:
    """Write the trace in one step: a reader never meets half a file. Raises Failure."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(dump_trace(trace), encoding="utf-8", newline="\n")
        os.replace(part, path)
    except OSError as error:
        raise Failure(f"cannot save {path}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        max_new_tokens=options.max_new_tokens,
        gamma=Settings().gamma if options.gamma is None else options.gamma,
        temperature=options.temperature,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
        chat=not options.raw,
    )


def _prompt(options: argparse.Namespace) -> str:
    """The prompt; of a file or standard input, one newline at the very end is not part of it."""
    text, source = _prompt_text(options)
    if len(text) > MAX_TEXT:
        raise UsageError(f"{source} is longer than {MAX_TEXT:,} characters; shorten it")
    return text


def _prompt_text(options: argparse.Namespace) -> tuple[str, str]:
    """The prompt, and what to call the place it came from."""
    if options.prompt_file is None and options.prompt != "-":
        return options.prompt, "the prompt"
    if options.prompt_file is None:
        data, source = sys.stdin.buffer.read(MAX_PROMPT_BYTES + 1), "standard input"
    else:
        data, source = read_file(options.prompt_file, MAX_PROMPT_BYTES), str(options.prompt_file)
    if len(data) > MAX_PROMPT_BYTES:
        raise UsageError(f"{source} is larger than {MAX_PROMPT_BYTES // 1_000_000} MB; shorten it")
    try:
        return data.decode("utf-8").replace("\r\n", "\n").removesuffix("\n"), source
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8 text (byte {error.start})") from None
