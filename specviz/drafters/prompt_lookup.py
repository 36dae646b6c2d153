"""Guess that the text repeats itself: find where its last n-gram stood before, and propose what
followed it there. Costs next to nothing, and is right wherever the answer copies the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specviz.drafters import Drafter
from specviz.records import Settings
from specviz.sampling import Chance, Guess

NAME = "prompt lookup"
SUMMARY = (
    "No second model: it looks for the last words earlier in the text and copies what came next."
)
ORDER = 10
GAMMA = 6
LONGEST = 4
SHORTEST = 2


class PromptLookup(Drafter):
    """Longest match first, the most recent place first. Keeps an index of every n-gram seen, so
    a round costs the same however long the text is."""

    def __init__(self, longest: int = LONGEST, shortest: int = SHORTEST) -> None:
        self._lengths = range(longest, shortest - 1, -1)
        self._ends: dict[tuple[int, ...], int] = {}
        self._indexed = 0

    def prefill(self, tokens: Sequence[int]) -> None:
        """See ``Drafter.prefill``."""
        self._index(tokens)

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """See ``Drafter.draft``. Nothing where nothing matches."""
        self._index(tokens)
        for length in self._lengths:
            end = self._ends.get(tuple(tokens[-length:])) if len(tokens) > length else None
            if end is not None:
                return self._copy(tokens, end, gamma, length)
        return []

    @staticmethod
    def _copy(tokens: Sequence[int], end: int, gamma: int, matched: int) -> list[Guess]:
        """What follows ``end``; past the end of the text the same again, as it would be if the
        text repeats with that period."""
        period = len(tokens) - end
        places = [end + i % period for i in range(gamma)]
        return [Guess(tokens[place], NAME, copied_from=place, matched=matched) for place in places]

    def _index(self, tokens: Sequence[int]) -> None:
        """Note where each n-gram ends, for those that something follows. The text before the
        last token never changes again, so each place is noted once."""
        for end in range(self._indexed + 1, len(tokens)):
            for length in self._lengths:
                if end >= length:
                    self._ends[tuple(tokens[end - length : end])] = end
        self._indexed = max(self._indexed, len(tokens) - 1)


def available(pair: Any) -> bool:
    """Always: it needs no model."""
    return True


def create(pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> PromptLookup:
    """A prompt-lookup drafter for one run."""
    return PromptLookup()
