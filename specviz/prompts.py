"""Prompts to measure on: the built-in set, a pasted list, or a file.

A file holds plain lines (one prompt each) or JSON lines. A JSON line is a string, an object with
``prompt`` and perhaps ``kind`` and ``id``, or a question of Spec-Bench (``question_id``,
``category``, ``turns``; arXiv 2401.07851), of which the first turn is the prompt. Lines that
cannot be used are reported by number; the caller says whether they are skipped or refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

BUILT_IN = Path(__file__).parents[1] / "assets" / "prompts.json"
MAX_BYTES = 32_000_000
MAX_PROMPTS = 10_000
MAX_CHARACTERS = 200_000
SHOWN_FAULTS = 5
MT_BENCH = frozenset(
    ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
)
"""Categories that Spec-Bench counts as one, its multi-turn conversation."""

OnFault = Literal["skip", "refuse"]


class PromptsError(ValueError):
    """Prompts that cannot be used; the message names the lines and what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with the kind it is counted under.

    ``turns`` is the number of turns the question had; only the first is asked. ``example`` is
    the word on the prompt's button on the page, empty where it has none.
    """

    id: str
    kind: str
    text: str
    turns: int = 1
    example: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that holds no prompt: its number, from 1, and why."""

    line: int
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a list or a file held."""

    prompts: tuple[Prompt, ...]
    faults: tuple[Fault, ...] = ()

    def usable(self, on_fault: OnFault) -> tuple[Prompt, ...]:
        """The prompts. Raises PromptsError where there are none, or where there are faults and
        they are to be refused."""
        if self.faults and (on_fault == "refuse" or not self.prompts):
            raise PromptsError(told(self.faults))
        if not self.prompts:
            raise PromptsError("there is no prompt in it: write one a line")
        return self.prompts


def told(faults: Sequence[Fault]) -> str:
    """The faults in one sentence, the first few by number and reason."""
    lines = "1 line cannot" if len(faults) == 1 else f"{len(faults)} lines cannot"
    shown = "; ".join(str(fault) for fault in faults[:SHOWN_FAULTS])
    more = len(faults) - SHOWN_FAULTS
    return f"{lines} be used: {shown}" + (f"; and {more} more" if more > 0 else "")


def built_in() -> tuple[Prompt, ...]:
    """The prompts written for specviz: eight of each kind, the kinds in turn."""
    entries = json.loads(BUILT_IN.read_text(encoding="utf-8"))
    return tuple(
        Prompt(str(i), entry["kind"], entry["prompt"], example=entry.get("example", ""))
        for i, entry in enumerate(entries, start=1)
    )


def kinds(prompts: Iterable[Prompt]) -> list[str]:
    """The kinds of ``prompts``, each once, in order."""
    return list(dict.fromkeys(prompt.kind for prompt in prompts))


def take(prompts: Sequence[Prompt], limit: int) -> tuple[Prompt, ...]:
    """The first ``limit`` prompts, the kinds in turn, so that each has its share; 0 takes all."""
    groups = [[p for p in prompts if p.kind == kind] for kind in kinds(prompts)]
    in_turn = [p for row in zip_longest(*groups) for p in row if p is not None]
    return tuple(in_turn[:limit] if limit else prompts)


def read_lines(text: str, kind: str = "pasted") -> Reading:
    """One prompt a line. ``\\n`` written out stands for a line break; empty lines are nothing."""
    return _read(enumerate(text.splitlines(), start=1), lambda line, n: _plain(line, n, kind))


def read_file(data: bytes, name: str) -> Reading:
    """The prompts of a file, as JSON lines where its first line looks like one, else plain.

    ``name`` is what plain prompts are counted under. Raises PromptsError for a file too large.
    """
    if len(data) > MAX_BYTES:
        raise PromptsError(f"{name} is larger than {MAX_BYTES // 1_000_000} MB")
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    first = next((line.strip() for line in lines if line.strip()), b"")
    json_lines = first.startswith((b"{", b'"'))
    parse = _json if json_lines else lambda line, number: _plain(line, number, name)
    return _read(enumerate(lines, start=1), parse)


class _Unusable(Exception):
    """Why a line is no prompt."""


def _read(lines: Iterator[tuple[int, Any]], parse: Any) -> Reading:
    prompts: list[Prompt] = []
    faults: list[Fault] = []
    for number, line in lines:
        if not line.strip():
            continue
        if len(prompts) == MAX_PROMPTS:
            faults.append(Fault(number, f"more than {MAX_PROMPTS} prompts"))
            break
        try:
            prompts.append(_checked(parse(_decoded(line), number)))
        except _Unusable as fault:
            faults.append(Fault(number, str(fault)))
    return Reading(tuple(prompts), tuple(faults))


def _decoded(line: str | bytes) -> str:
    if isinstance(line, str):
        return line
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Unusable(f"not UTF-8 text (byte {error.start} of the line)") from None


def _checked(prompt: Prompt) -> Prompt:
    if not prompt.text.strip():
        raise _Unusable("the prompt is empty")
    if len(prompt.text) > MAX_CHARACTERS:
        raise _Unusable(f"the prompt is longer than {MAX_CHARACTERS} characters")
    if any("\ud800" <= char <= "\udfff" for char in prompt.text + prompt.kind + prompt.id):
        raise _Unusable("the text holds half a surrogate pair, which is no character")
    return prompt


def _plain(line: str, number: int, kind: str) -> Prompt:
    return Prompt(str(number), kind, line.strip().replace("\\n", "\n"))


def _json(line: str, number: int) -> Prompt:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise _Unusable(f"not valid JSON at column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise _Unusable("not valid JSON: nested too deeply, or a number too long") from None
    if isinstance(entry, str):
        return Prompt(str(number), "file", entry)
    if not isinstance(entry, dict):
        raise _Unusable("neither an object nor a string")
    if "turns" in entry:
        return _question(entry, number)
    return Prompt(
        _word(entry.get("id", number), "id"),
        _word(entry.get("kind", "file"), "kind"),
        _text(entry, "prompt"),
    )


def _question(entry: dict[str, Any], number: int) -> Prompt:
    turns = entry["turns"]
    if not isinstance(turns, list) or not turns or not all(isinstance(t, str) for t in turns):
        raise _Unusable('"turns" must be a list of one or more strings')
    category = _word(entry.get("category", "file"), "category")
    return Prompt(
        _word(entry.get("question_id", number), "question_id"),
        "mt_bench" if category in MT_BENCH else category,
        turns[0],
        turns=len(turns),
    )


def _text(entry: dict[str, Any], key: str) -> str:
    if key not in entry:
        raise _Unusable(f'neither "{key}" nor "turns" is there')
    if not isinstance(entry[key], str):
        raise _Unusable(f'"{key}" is no string')
    return str(entry[key])


def _word(value: Any, key: str) -> str:
    """A short label, such as a number or a category."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or len(str(value)) > 80:
        raise _Unusable(f'"{key}" is neither a short string nor a whole number')
    return str(value)
