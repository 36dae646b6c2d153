"""What types alone cannot say: ranges, and that the rounds of a run tell one story."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specviz.records import Round, Run, Token, Trace
from specviz.trace.faults import require


def _check_trace(trace: Trace) -> None:
    lanes = [run.lane for run in trace.runs]
    told = bool(lanes) and len(set(lanes)) == len(lanes)
    require(told, ".runs", "expected one speculative run, one baseline run, or both")
    for name in ("target_parameters", "draft_parameters"):
        require(getattr(trace.pair, name) >= 0, f".pair.{name}", "cannot be negative")
    require(trace.machine.threads >= 0, ".machine.threads", "cannot be negative")


def _check_run(run: Run) -> None:
    _times(run, ("prefill_s", "draft_prefill_s", "observe_s"))
    position = 0
    for i, round_ in enumerate(run.rounds):
        require(round_.index == i, f".rounds[{i}].index", f"expected {i}")
        require(round_.position == position, f".rounds[{i}].position", f"expected {position}")
        position += len(round_.committed)
    within = run.text_end is None or 0 <= run.text_end <= sum(len(t.text) for t in run.tokens)
    require(within, ".text_end", "lies outside the text")


def _check_round(round_: Round) -> None:
    _times(round_, ("draft_s", "verify_s", "sample_s"))
    drafted, accepted, added = len(round_.drafted), round_.accepted, round_.added
    pattern = ["accepted"] * accepted
    if drafted > accepted and added is not None:
        pattern.append("rejected")
    pattern += ["discarded"] * (drafted - len(pattern))
    fates = [token.fate for token in round_.drafted]
    require(fates == pattern, ".drafted", "the fates are in an impossible order")
    if added is None:
        require(accepted > 0, ".added", "a round that adds nothing must accept something")
    else:
        expected = "target" if not drafted else "bonus" if accepted == drafted else "resampled"
        found = added.fate == expected
        require(found, ".added.fate", f"expected {expected}, found {added.fate}")
        require(added.parent < max(drafted, 1), ".added.parent", "points outside the round")
    for i, token in enumerate(round_.drafted):
        require(token.parent < drafted, f".drafted[{i}].parent", "points outside the round")
    enough = round_.gamma is None or round_.gamma >= drafted
    require(enough, ".gamma", f"is less than the {drafted} tokens drafted")


def _check_token(token: Token) -> None:
    require(token.id >= 0, ".id", "cannot be negative")
    require(token.parent >= -1, ".parent", "points outside the round")
    for name in ("p", "q", "u"):
        value = getattr(token, name)
        require(value is None or 0 <= value <= 1, f".{name}", "is not between 0 and 1")
    for name in ("copied_from", "matched"):
        value = getattr(token, name)
        require(value is None or value >= 0, f".{name}", "cannot be negative")


def _times(record: Any, names: tuple[str, ...]) -> None:
    for name in names:
        require(getattr(record, name) >= 0, f".{name}", "seconds cannot be negative")


CHECKS: dict[Any, Callable[[Any], None]] = {
    Trace: _check_trace,
    Run: _check_run,
    Round: _check_round,
    Token: _check_token,
}
