"""Text to copy from: a suffix array over token ids, searched for the longest match.

The idea of retrieval-based drafting (REST, arXiv 2311.08252): what followed the same words in a
store of the target's own text is a good guess at what follows them now. Pure numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

END = 65_535
"""Stands between two texts of a store; no token id."""
SORTED_DEPTH = 16
"""Suffixes are sorted by this many tokens: no match is looked for that is longer."""


@dataclass(frozen=True, slots=True)
class Match:
    """All places of the store where the same ``length`` tokens stand: ``order[low:high]``."""

    low: int
    high: int
    length: int


class Datastore:
    """Texts of a target, as one array of ids. Read-only, shared by every run.

    tokens: uint16 [n], texts separated by END.
    """

    def __init__(self, tokens: np.ndarray) -> None:
        self.tokens = np.concatenate([tokens, np.full(SORTED_DEPTH + 1, END)]).astype(np.uint16)
        self.order = _suffix_order(self.tokens)
        first = self.tokens[self.order]
        self._starts = np.searchsorted(first, np.arange(END + 2))

    @classmethod
    def load(cls, file: Path) -> Datastore:
        """The store in an .npz file that holds ``tokens``. Raises OSError, ValueError, KeyError."""
        with np.load(file, allow_pickle=False) as data:
            return cls(data["tokens"])

    def longest(self, tokens: Sequence[int], most: int, least: int) -> Match | None:
        """Where the longest end of ``tokens`` stands, of ``most`` down to ``least`` tokens."""
        for length in range(min(most, len(tokens), SORTED_DEPTH - 1), least - 1, -1):
            match = self._find(tokens[-length:])
            if match is not None:
                return match
        return None

    def narrow(self, match: Match, token: int) -> Match | None:
        """The places of ``match`` where ``token`` follows."""
        if match.length >= SORTED_DEPTH - 1:
            return None
        column = self._column(match)
        low = match.low + int(np.searchsorted(column, token, "left"))
        high = match.low + int(np.searchsorted(column, token, "right"))
        return Match(low, high, match.length + 1) if low < high else None

    def successors(self, match: Match) -> tuple[np.ndarray, np.ndarray]:
        """What follows a match: ids [k] and how often each, [k]. Ends of texts are left out."""
        column = self._column(match)
        edges = np.flatnonzero(column[1:] != column[:-1]) + 1
        bounds = np.concatenate([[0], edges, [column.shape[0]]])
        ids, counts = column[bounds[:-1]].astype(np.int64), np.diff(bounds)
        within = ids != END
        return ids[within], counts[within]

    def passage(self, match: Match, after: int) -> list[int]:
        """The tokens of the first place of a match, and up to ``after`` that follow it there."""
        start = int(self.order[match.low])
        found = self.tokens[start : start + match.length + after].tolist()
        return found[: found.index(END)] if END in found else found

    def _find(self, pattern: Sequence[int]) -> Match | None:
        head = pattern[0]
        match: Match | None = Match(int(self._starts[head]), int(self._starts[head + 1]), 1)
        if match is None or match.low == match.high:
            return None
        for token in pattern[1:]:
            match = self.narrow(match, token)
            if match is None:
                return None
        return match

    def _column(self, match: Match) -> np.ndarray:
        """What follows each place of a match; sorted, since the suffixes are."""
        return self.tokens[self.order[match.low : match.high] + match.length]


def _suffix_order(tokens: np.ndarray) -> np.ndarray:
    """Starts of the suffixes of [n] ids, sorted by their first SORTED_DEPTH tokens, by doubling:
    ranks by k tokens give ranks by 2k. int32 [n], those too near the end to read from left out."""
    count = tokens.shape[0]
    rank = tokens.astype(np.int64)
    depth = 1
    while depth < SORTED_DEPTH:
        behind = np.full(count, -1, np.int64)
        behind[:-depth] = rank[depth:]
        key = rank * (count + END + 2) + behind + 1
        order = np.argsort(key, kind="stable")
        changed = key[order][1:] != key[order][:-1]
        rank = np.empty(count, np.int64)
        rank[order] = np.concatenate([[0], np.cumsum(changed)])
        depth *= 2
    order = np.argsort(rank, kind="stable")
    return order[order < count - SORTED_DEPTH - 1].astype(np.int32)
