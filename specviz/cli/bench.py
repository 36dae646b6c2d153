"""``specviz bench``: a grid of measured runs, kept in a file that a second call goes on with."""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from specviz import prompts
from specviz.cli.bench_report import outcome, report
from specviz.cli.run import chosen_spec
from specviz.cli.terminal import (
    Failure,
    ProgressPrinter,
    UsageError,
    complain,
    printable,
    read_file,
    to_json,
)
from specviz.prompts import Prompt, Reading
from specviz.records import Settings
from specviz.rows import Setup, rows, to_csv

SCHEDULES = ("constant", "adaptive")
DTYPES = ("auto", "float32", "bfloat16", "float16")


def add_arguments(bench: argparse.ArgumentParser) -> None:
    """The options of ``bench``."""
    default = Settings()
    asked = bench.add_mutually_exclusive_group()
    asked.add_argument("--prompts", metavar="FILE", default="builtin", help="builtin, or a file"
                       " of plain lines or JSON lines")  # fmt: skip
    asked.add_argument("--questions", metavar="FILE", help="question.jsonl of Spec-Bench")
    bench.add_argument("--kinds", metavar="A,B", help="only prompts of these kinds")
    bench.add_argument("--limit", type=int, default=0, metavar="N", help="N prompts, kinds in turn")
    bench.add_argument("--bad-lines", choices=("refuse", "skip"), default="refuse")
    bench.add_argument("--pair", metavar="NAME", help="one of: specviz pairs")
    bench.add_argument("--target", metavar="ID", help="a Hub id or a folder")
    bench.add_argument("--draft", metavar="ID", help="a Hub id or a folder")
    bench.add_argument("--drafters", metavar="A,B", default="all", help="all, or names")
    bench.add_argument("--gammas", metavar="2,4", help="tokens drafted in a round")
    bench.add_argument("--temperature", metavar="0,1", default="0")
    bench.add_argument("--confidence", metavar="0,0.4", default="0", help="stop drafting below")
    bench.add_argument("--schedule", metavar="A,B", default="constant", help="constant, adaptive")
    bench.add_argument("--top-k", type=int, default=default.top_k, metavar="K")
    bench.add_argument("--top-p", type=float, default=default.top_p, metavar="P")
    bench.add_argument("--max-new-tokens", type=int, default=default.max_new_tokens, metavar="N")
    bench.add_argument("--repeats", type=int, default=1, metavar="N")
    bench.add_argument("--seed", type=int, default=default.seed, metavar="S")
    bench.add_argument("--raw", action="store_true", help="no chat template")
    bench.add_argument("--dtype", choices=DTYPES, default="auto")
    bench.add_argument("--against", choices=("transformers",), help="run its generate() as well")
    bench.add_argument("--out", metavar="FILE", type=Path, help="keep every round; goes on with it")
    bench.add_argument("--csv", metavar="FILE", type=Path, help="write the table")
    bench.add_argument("--json", action="store_true", help="one JSON object on stdout, no text")
    bench.set_defaults(command=bench_command)


def bench_command(options: argparse.Namespace) -> int:
    """Measure the grid; 1 when a run failed, 130 when it was stopped."""
    asked = _prompts(options)
    axes = _axes(options)
    settings = _settings(options, axes)
    for path in (options.out, options.csv):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise UsageError(f"{path} cannot be written: name a file in a folder that exists")
    from specviz.sweep import Plan, cross

    specs = _specs(options)
    warnings.simplefilter("ignore")
    progress = ProgressPrinter()
    try:
        pairs = _load(specs, options, progress)
        chosen = _sources(options.drafters, pairs)
        setups = cross(chosen, **{**axes, "gammas": axes["gammas"] or (specs[0].gamma,)})
        rivals = _rivals(setups, pairs) if options.against else ()
        plan = Plan(specs[0].target, setups, asked, settings, options.repeats, rivals)
        sweep, journal = _begin(options, plan, pairs)
        status = _run(sweep, journal, progress)
    finally:
        progress.close()
    _finish(options, sweep, journal)
    return status


# --- what is asked for ---------------------------------------------------------------------


def _prompts(options: argparse.Namespace) -> tuple[Prompt, ...]:
    name = options.questions or options.prompts
    if options.limit < 0:
        raise UsageError("--limit must be 0 (all) or more")
    if name == "builtin":
        reading = Reading(prompts.built_in())
    else:
        data = read_file(Path(name), prompts.MAX_BYTES)
        reading = prompts.read_file(data, Path(name).name)
    try:
        usable = reading.usable(options.bad_lines)
    except prompts.PromptsError as error:
        raise UsageError(f"{name}: {error} (--bad-lines skip leaves bad lines out)") from None
    if reading.faults:
        complain(f"{name}: skipped. {prompts.told(reading.faults)}", 0)
    if any(prompt.turns > 1 for prompt in usable):
        complain(f"{name}: of questions with several turns only the first is asked", 0)
    if options.kinds:
        usable = _of_kinds(usable, _words(options.kinds))
    return prompts.take(usable, options.limit)


def _of_kinds(usable: Sequence[Prompt], wanted: Sequence[str]) -> tuple[Prompt, ...]:
    known = prompts.kinds(usable)
    for kind in wanted:
        if kind not in known:
            raise UsageError(f"there is no prompt of the kind {kind!r}; kinds: {', '.join(known)}")
    return tuple(prompt for prompt in usable if prompt.kind in wanted)


def _axes(options: argparse.Namespace) -> dict[str, tuple[Any, ...]]:
    schedules = _words(options.schedule)
    for schedule in schedules:
        if schedule not in SCHEDULES:
            raise UsageError(f"--schedule {schedule!r} is none of {', '.join(SCHEDULES)}")
    return {
        "gammas": _numbers("--gammas", options.gammas, int) if options.gammas else (),
        "temperatures": _numbers("--temperature", options.temperature, float),
        "confidences": _numbers("--confidence", options.confidence, float),
        "schedules": tuple(schedules),
    }


def _settings(options: argparse.Namespace, axes: Mapping[str, Sequence[Any]]) -> Settings:
    """What all setups share, once every value of the axes has been checked."""
    settings = Settings(
        max_new_tokens=options.max_new_tokens,
        top_k=options.top_k,
        top_p=options.top_p,
        seed=options.seed,
        chat=not options.raw,
    )
    if options.repeats < 1:
        raise UsageError("--repeats must be 1 or more")
    for name, values in (
        ("gamma", axes["gammas"]),
        ("temperature", axes["temperatures"]),
        ("confidence", axes["confidences"]),
    ):
        for value in values:
            replace(settings, **{name: value})
    return settings


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError(f"{text!r} names nothing; separate values by commas")
    return words


def _numbers(flag: str, text: str, kind: type) -> tuple[Any, ...]:
    try:
        return tuple(dict.fromkeys(kind(word) for word in _words(text)))
    except ValueError:
        name = "whole numbers" if kind is int else "numbers"
        raise UsageError(f"{flag} takes {name} separated by commas, not {text!r}") from None


def _specs(options: argparse.Namespace) -> list[Any]:
    """One spec a draft: those of the embedded target, or the one that was named."""
    from specviz.pairs import catalogue

    first = chosen_spec(options)
    if options.pair or options.target:
        return [first]
    return [spec for spec in catalogue() if spec.target == first.target]


def _load(
    specs: Sequence[Any], options: argparse.Namespace, progress: ProgressPrinter
) -> dict[str, Any]:
    """The loaded pairs by the name of their draft."""
    from specviz.pairs import Shelf

    shelf = Shelf(limit=len(specs))
    return {
        spec.draft: shelf.load(spec.target, spec.draft, options.dtype, progress, spec.name)
        for spec in specs
    }


def _sources(wanted: str, pairs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The (drafter, draft) that were asked for, of those the pairs can run."""
    from specviz.sweep import sources

    known = sources(pairs)
    if wanted == "all":
        return known
    names = list(dict.fromkeys(drafter for drafter, _ in known))
    for word in _words(wanted):
        if word not in names:
            raise UsageError(f"there is no drafter {word!r} here; choose all or {', '.join(names)}")
    return [source for source in known if source[0] in _words(wanted)]


def _rivals(setups: Sequence[Setup], pairs: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    from specviz.sweep.generate import rivals

    logging.getLogger("transformers").setLevel(logging.ERROR)
    return rivals(setups, pairs)


# --- measuring -----------------------------------------------------------------------------


def _begin(options: argparse.Namespace, plan: Any, pairs: Mapping[str, Any]) -> tuple[Any, Any]:
    """The sweep with what its file holds already, and the file; None without one."""
    from specviz.sweep import Journal, Sweep, read_bench

    machine = next(iter(pairs.values())).machine
    if options.out is None:
        return Sweep(pairs, plan), None
    try:
        if not options.out.exists():
            return Sweep(pairs, plan), Journal.begin(options.out, plan, machine)
        bench = read_bench(options.out)
        journal = Journal.resume(options.out, bench, plan, machine)
    except OSError as error:
        raise Failure(f"cannot use {options.out}: {error.strerror or error}") from None
    return Sweep(pairs, plan, [*bench.measured, *bench.generated]), journal


def _run(sweep: Any, journal: Any, progress: ProgressPrinter) -> int:
    """Make every run that is left. Ctrl-C leaves what is done in the file."""
    from specviz.sweep import Failed

    try:
        if not sweep.finished:
            progress("Warming up every setup")
        sweep.warm_up()
        while not sweep.finished:
            progress(_standing(sweep))
            one = sweep.advance()
            if isinstance(one, Failed):
                progress.close()
                complain(f"a run failed: {one.why}", 1)
            elif journal is not None:
                journal.add(one)
    except KeyboardInterrupt:
        progress.close()
        complain("stopped; the same command goes on with the file" if journal else "stopped", 130)
        return 130
    except OSError as error:
        raise Failure(f"cannot write the file: {error.strerror or error}") from None
    return 1 if sweep.failed else 0


def _standing(sweep: Any) -> str:
    made = len(sweep.outcomes)
    left = sweep.seconds_left
    rest = "" if left is None else f", about {_minutes(left)} left"
    return f"{made} of {sweep.total} runs{rest}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _finish(options: argparse.Namespace, sweep: Any, journal: Any) -> None:
    """Print the tables; write them into the file and the CSV file."""
    try:
        if journal is not None:
            complete = sweep.finished and not sweep.failed
            journal.finish(sweep.measured, sweep.generated, complete)
        if options.csv is not None:
            table = [*rows(sweep.measured), *rows(sweep.measured, by_kind=True)]
            options.csv.write_text(to_csv(table), encoding="utf-8", newline="")
    except OSError as error:
        raise Failure(f"cannot write the file: {error.strerror or error}") from None
    if options.json:
        print(to_json(outcome(sweep)))
        return
    for line in report(sweep):
        print(printable(line))
