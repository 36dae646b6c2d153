"""What ``specviz bench`` prints: tables as text, and one object for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from specviz.diagnosis import recommend
from specviz.metrics import ACCEPTANCE, COSTS
from specviz.rows import Row, rows, to_plain

DASH = "\u2014"


def outcome(sweep: Any) -> dict[str, Any]:
    """The object of ``bench --json``."""
    from specviz.sweep import compare

    measured, generated = sweep.measured, sweep.generated
    return {
        "plan": sweep.plan.to_plain(),
        "complete": sweep.finished and not sweep.failed,
        "rows": [to_plain(row) for row in rows(measured)],
        "rows_by_kind": [to_plain(row) for row in rows(measured, by_kind=True)],
        "against": [asdict(line) for line in compare(measured, generated)] if generated else [],
        "diagnosis": asdict(recommend(measured)),
        "failed": [failed.why for failed in sweep.failed],
    }


def report(sweep: Any) -> Iterator[str]:
    """The tables, line by line: setups, kinds of prompt, other implementations, advice."""
    table = rows(sweep.measured)
    if not table:
        yield "Nothing was measured."
        return
    yield from _aligned(_setups(table))
    kinds = rows(sweep.measured, by_kind=True)
    if len({row.kind for row in kinds}) > 1:
        yield ""
        yield "By kind of prompt: mean accepted tokens (tokens per target call) and speedup"
        yield from _aligned(_kinds(table, kinds))
    if sweep.generated:
        yield ""
        yield "Against transformers, prompt included"
        yield from _aligned(_against(sweep))
    yield ""
    found = recommend(sweep.measured)
    yield found.headline
    yield from found.facts
    if found.advice is not None:
        yield found.advice.words
    if not sweep.finished:
        yield f"Unfinished: {len(sweep.outcomes)} of {sweep.total} runs are made."


def _setups(table: Sequence[Row]) -> Iterator[list[str]]:
    yield [
        "guesses from", "gamma", "speedup", "95 %", "mean", "median", "end to end", "TAR",
        "alpha", "tokens/call", "c", "v", "predicted", "efficiency", "same text",
    ]  # fmt: skip
    for row in table:
        figures, spread = row.figures, row.spread.get("speedup")
        low, high = row.interval or (None, None)
        yield [
            row.setup.name,
            str(row.setup.gamma),
            f"{_number(row.speedup)}x",
            f"{_number(low)}-{_number(high)}" if row.interval else DASH,
            _number(spread.mean if spread else None),
            _number(spread.median if spread else None),
            *(_number(figures[name]) for name in ("end_to_end_speedup", *ACCEPTANCE, *COSTS)),
            f"{row.same}/{row.compared}" if row.compared else DASH,
        ]


def _kinds(table: Sequence[Row], kinds: Sequence[Row]) -> Iterator[list[str]]:
    names = list(dict.fromkeys(row.kind for row in kinds))
    yield ["guesses from", "gamma", *names, "overall"]
    for row in table:
        own = {one.kind: one for one in kinds if one.setup == row.setup}
        yield [
            row.setup.name,
            str(row.setup.gamma),
            *(_both(own.get(name)) for name in names),
            _both(row),
        ]


def _both(row: Row | None) -> str:
    if row is None:
        return DASH
    return f"{_number(row.figures['tokens_per_target_call'])} {_number(row.speedup)}x"


def _against(sweep: Any) -> Iterator[list[str]]:
    from specviz.sweep import compare

    yield ["method", "gamma", "tokens/s", "of generate", "same text"]
    for line in compare(sweep.measured, sweep.generated):
        yield [
            line.name,
            str(line.gamma or DASH),
            _number(line.tokens_per_s, 1),
            f"{_number(line.times)}x",
            f"{line.same}/{line.compared}",
        ]


def _aligned(lines: Iterator[list[str]]) -> Iterator[str]:
    """Cells under each other: names to the left, numbers to the right."""
    cells = list(lines)
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for line in cells:
        first = line[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        yield "  ".join([first, *rest]).rstrip()


def _number(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:.{digits}f}"
