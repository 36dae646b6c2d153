"""Our runs beside transformers' generate() on the same prompts, in one table.

A call of generate() is timed as a whole, prompt included, because it cannot be asked for less; our
runs are set beside it in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from specviz.metrics import ratio
from specviz.records import Run
from specviz.rows import Measured

PLAIN, ASSISTED, LOOKUP = "generate", "generate, assistant", "generate, prompt lookup"
METHODS = (PLAIN, ASSISTED, LOOKUP)


@dataclass(frozen=True, slots=True)
class Generated:
    """One call of generate(): the new token ids and the seconds of the whole call.

    ``method`` is one of METHODS; ``draft`` and ``gamma`` are empty and 0 where it has none.
    """

    method: str
    draft: str
    gamma: int
    prompt_id: str
    repeat: int
    seconds: float
    ids: tuple[int, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """As ``plan.Rival.key``."""
        return self.method, self.draft, self.gamma, self.prompt_id, self.repeat


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the comparison. ``tokens_per_s`` is pooled over all prompts, with the time to
    read them counted in; ``times`` is the same over plain generate()'s on these prompts; ``same``
    of ``compared`` texts equal plain generate()'s to the token."""

    name: str
    gamma: int
    tokens_per_s: float | None
    times: float | None
    same: int
    compared: int


@dataclass(frozen=True, slots=True)
class _Text:
    place: tuple[str, int]
    seconds: float
    ids: tuple[int, ...]


def compare(measured: Iterable[Measured], generated: Iterable[Generated]) -> list[Comparison]:
    """Every method beside plain generate(), ours first."""
    groups: dict[tuple[str, int], list[_Text]] = {}
    for one in measured:
        place = one.prompt_id, one.repeat
        alone = groups.setdefault(("specviz, target alone", 0), [])
        alone.append(_text(place, one.baseline))
        own = groups.setdefault((f"specviz, {one.setup.source}", one.setup.gamma), [])
        own.append(_text(place, one.run))
    for call in generated:
        name = f"{call.method}, {call.draft}" if call.draft else call.method
        text = _Text((call.prompt_id, call.repeat), call.seconds, call.ids)
        groups.setdefault((name, call.gamma), []).append(text)
    plain = groups.get((PLAIN, 0), [])
    return [_line(name, gamma, texts, plain) for (name, gamma), texts in groups.items()]


def _text(place: tuple[str, int], run: Run) -> _Text:
    seconds = run.prefill_s + run.draft_prefill_s + sum(round_.seconds for round_ in run.rounds)
    return _Text(place, seconds, tuple(token.id for token in run.tokens))


def _line(name: str, gamma: int, texts: Sequence[_Text], plain: Sequence[_Text]) -> Comparison:
    wanted = {text.place: text.ids for text in plain}
    rate, places = _rate(texts), {text.place for text in texts}
    return Comparison(
        name,
        gamma,
        rate,
        ratio(rate, _rate([text for text in plain if text.place in places])),
        same=sum(wanted.get(text.place) == text.ids for text in texts),
        compared=sum(text.place in wanted for text in texts),
    )


def _rate(texts: Sequence[_Text]) -> float | None:
    return ratio(sum(len(text.ids) for text in texts), sum(text.seconds for text in texts))
