"""The file of a sweep: one JSON document that is whole after every run.

The first line holds the plan and the machine, each further line one run with all its rounds, the
last closes the document. A run is added by writing over that last line, so a sweep that is stopped
at any moment leaves a file that can be read and gone on with. If the machine itself fell over in
the middle of a line, that line is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from specviz.records import Machine
from specviz.rows import Measured, Setup, rows, to_plain
from specviz.sweep.comparison import METHODS, Generated, compare
from specviz.sweep.plan import Plan
from specviz.trace import TraceError, dump_trace, load_trace

BENCH_VERSION = 1
MAX_BENCH_BYTES = 2_000_000_000
OPENING = ',"runs":['
CLOSING = "\n]}\n"


class JournalError(ValueError):
    """A file that cannot be read or gone on with; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a file holds. ``plan`` and ``machine`` are as they were written; ``complete`` tells
    whether every run of the plan is there; ``size`` is where the last whole run ends, in bytes.
    """

    plan: Mapping[str, Any]
    machine: Mapping[str, Any]
    measured: tuple[Measured, ...]
    generated: tuple[Generated, ...]
    complete: bool
    size: int


class Journal:
    """A file being written, one run at a time."""

    def __init__(self, path: Path, size: int, runs: int) -> None:
        self._path, self._size, self._runs = path, size, runs

    @classmethod
    def begin(cls, path: Path, plan: Plan, machine: Machine) -> Journal:
        """A new file. Raises OSError."""
        head = _dump({"specviz_bench": BENCH_VERSION, **_header(plan, machine)})
        opening = head.removesuffix("}") + OPENING + "\n"
        path.write_text(opening + CLOSING.lstrip("\n"), encoding="utf-8", newline="\n")
        return cls(path, len(opening.encode()) - 1, 0)

    @classmethod
    def resume(cls, path: Path, bench: Bench, plan: Plan, machine: Machine) -> Journal:
        """Go on with a file. Raises JournalError where it belongs to another sweep or was
        measured on another machine: figures of two machines do not mix."""
        wanted = json.loads(_dump(_header(plan, machine)))
        if _of_machine(bench.machine) != _of_machine(wanted["machine"]):
            raise JournalError(
                f"{path} was measured on {_named(bench.machine)}, and this is"
                f" {_named(wanted['machine'])}; choose another file"
            )
        if bench.plan != wanted["plan"]:
            raise JournalError(
                f"{path} holds another sweep ({_difference(bench.plan, wanted['plan'])} differ);"
                " choose another file, or the settings it was begun with"
            )
        runs = len(bench.measured) + len(bench.generated)
        return cls(path, bench.size, runs)

    def add(self, one: Measured | Generated) -> None:
        """Write a run. Raises OSError."""
        text = ("," if self._runs else "") + "\n" + _entry(one)
        self._write(text + CLOSING)
        self._size += len(text.encode())
        self._runs += 1

    def finish(
        self, measured: Iterable[Measured], generated: Iterable[Generated], complete: bool
    ) -> None:
        """Close the file with the table, for readers that want no rounds."""
        measured, generated = list(measured), list(generated)
        table = _dump(
            {
                "complete": complete,
                "rows": [to_plain(row) for row in rows(measured)],
                "rows_by_kind": [to_plain(row) for row in rows(measured, by_kind=True)],
                "against": [asdict(line) for line in compare(measured, generated)]
                if generated
                else [],
            }
        )
        self._write("\n]," + table.removeprefix("{") + "\n")

    def _write(self, text: str) -> None:
        with self._path.open("r+b") as file:
            file.seek(self._size)
            file.write(text.encode())
            file.truncate()


def _header(plan: Plan, machine: Machine) -> dict[str, Any]:
    return {
        "plan": plan.to_plain(),
        "machine": {**asdict(machine), "versions": dict(machine.versions)},
    }


def _entry(one: Measured | Generated) -> str:
    if isinstance(one, Generated):
        return _dump({"generated": asdict(one)})
    where = {"prompt": one.prompt_id, "kind": one.kind, "repeat": one.repeat}
    head = _dump({**where, "draft": one.setup.draft})
    return f'{head[:-1]},"trace":{dump_trace(one.trace).strip()}}}'


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# --- reading -------------------------------------------------------------------------------


def read_bench(path: Path) -> Bench:
    """Read a file of a sweep. Raises JournalError naming the line of the first fault, and
    OSError."""
    if path.stat().st_size > MAX_BENCH_BYTES:
        raise JournalError(f"{path} is larger than {MAX_BENCH_BYTES // 1_000_000_000} GB")
    with path.open("rb") as file:
        first = file.readline(MAX_BENCH_BYTES)
        head = _head(first, path)
        found: list[Measured | Generated] = []
        size, number, complete = len(first) - 1, 1, False
        for number, line in enumerate(file, start=2):
            if line.startswith(b"]"):
                complete = line.startswith(b'],"complete":true')
                break
            try:
                found.append(_read_entry(line))
            except _Torn:
                if file.readline():
                    raise JournalError(f"{path}, line {number}: not valid JSON") from None
                break
            except (TraceError, JournalError) as error:
                raise JournalError(f"{path}, line {number}: {error}") from None
            size += len(line.rstrip(b",\n")) + (2 if len(found) > 1 else 1)
    return Bench(
        plan=head["plan"],
        machine=head["machine"],
        measured=tuple(one for one in found if isinstance(one, Measured)),
        generated=tuple(one for one in found if isinstance(one, Generated)),
        complete=complete,
        size=size,
    )


class _Torn(Exception):
    """A line that ends in the middle."""


def _head(line: bytes, path: Path) -> dict[str, Any]:
    try:
        head = _load(line.decode("utf-8").rstrip().removesuffix(OPENING) + "}")
    except (_Torn, UnicodeDecodeError):
        head = None
    if not isinstance(head, dict) or "specviz_bench" not in head:
        raise JournalError(f"{path} is no file of a sweep; choose another one")
    if head["specviz_bench"] != BENCH_VERSION:
        raise JournalError(
            f"{path} has the version {head['specviz_bench']!r}, and this program reads"
            f" {BENCH_VERSION}"
        )
    if not all(isinstance(head.get(name), dict) for name in ("plan", "machine")):
        raise JournalError(f"{path}: plan or machine is missing")
    return head


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _Torn from None


def _read_entry(line: bytes) -> Measured | Generated:
    try:
        entry = _load(line.decode("utf-8").strip().removesuffix(","))
    except UnicodeDecodeError:
        raise _Torn from None
    if not isinstance(entry, dict):
        raise JournalError("a run is an object")
    if "generated" in entry:
        return _read_generated(entry["generated"])
    prompt, kind = _text(entry, "prompt"), _text(entry, "kind")
    draft, repeat = _text(entry, "draft"), _whole(entry, "repeat")
    trace = load_trace(_dump(entry.get("trace")))
    if {run.lane for run in trace.runs} != {"speculative", "baseline"}:
        raise JournalError("a run needs both lanes")
    settings = trace.settings
    setup = Setup(
        drafter=next(run.drafter for run in trace.runs if run.lane == "speculative"),
        draft=draft,
        gamma=settings.gamma,
        temperature=settings.temperature,
        confidence=settings.confidence,
        schedule=settings.schedule,
    )
    return Measured(setup, prompt, kind, repeat, trace)


def _read_generated(entry: Any) -> Generated:
    if not isinstance(entry, dict):
        raise JournalError("generated: expected an object")
    seconds, ids = entry.get("seconds"), entry.get("ids")
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
        raise JournalError("generated: seconds is no number of seconds")
    if not isinstance(ids, list) or not all(type(token) is int and token >= 0 for token in ids):
        raise JournalError("generated: ids is no list of token ids")
    method = _text(entry, "method")
    if method not in METHODS:
        raise JournalError(f"generated: method is none of {', '.join(METHODS)}")
    return Generated(
        method,
        _text(entry, "draft"),
        _whole(entry, "gamma"),
        _text(entry, "prompt_id"),
        _whole(entry, "repeat"),
        float(seconds),
        tuple(ids),
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or len(value) > 1000:
        raise JournalError(f"{key}: expected a short text")
    return value


def _whole(entry: Mapping[str, Any], key: str) -> int:
    value = entry.get(key)
    if type(value) is not int or not 0 <= value < 10**6:
        raise JournalError(f"{key}: expected a whole number")
    return value


# --- telling two sweeps apart --------------------------------------------------------------


def _of_machine(machine: Mapping[str, Any]) -> tuple[Any, ...]:
    return machine.get("device"), machine.get("dtype"), machine.get("threads")


def _named(machine: Mapping[str, Any]) -> str:
    device, dtype, threads = _of_machine(machine)
    return f"{device} ({dtype}, {threads} threads)"


def _difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    names = dict.fromkeys([*found, *wanted])
    return ", ".join(name for name in names if found.get(name) != wanted.get(name))
