"""The exact law of a random program: run it once for every path through its decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar

from torch import Tensor

Outcome = TypeVar("Outcome", bound=Hashable)


class Script:
    """A Chance that follows a given path and multiplies up the probability of it.

    Where the path ends it goes on with the first possible option and writes that down, so that
    ``path`` and ``options`` tell afterwards which paths there are.
    """

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.weight = 1.0
        self.options: list[list[float]] = []

    def accepts(self, probability: float) -> tuple[bool, float]:
        """See ``Chance.accepts``."""
        taken = self._take([probability, 1 - probability])
        return taken == 0, 0.0 if taken == 0 else 1.0

    def choose(self, law: Tensor) -> int:
        """See ``Chance.choose``."""
        exact = law.double()
        return self._take((exact / exact.sum()).tolist())

    def _take(self, probabilities: list[float]) -> int:
        step = len(self.options)
        self.options.append(probabilities)
        if step == len(self.path):
            self.path.append(next(i for i, p in enumerate(probabilities) if p > 0))
        self.weight *= probabilities[self.path[step]]
        return self.path[step]


def law_of(play: Callable[[Script], Outcome]) -> tuple[dict[Outcome, float], int]:
    """The probability of every outcome of ``play(chance)`` and the number of paths, by
    depth-first enumeration. ``play`` must take all its chances from ``chance``."""
    law: dict[Outcome, float] = defaultdict(float)
    paths = 0
    path: list[int] | None = []
    while path is not None:
        script = Script(path)
        outcome = play(script)
        law[outcome] += script.weight
        paths += 1
        path = _next_path(script)
    return dict(law), paths


def _next_path(script: Script) -> list[int] | None:
    """The path that branches off last: at the deepest decision with an option left."""
    for step in reversed(range(len(script.options))):
        later = script.options[step][script.path[step] + 1 :]
        ahead = next((i for i, p in enumerate(later) if p > 0), None)
        if ahead is not None:
            return [*script.path[:step], script.path[step] + 1 + ahead]
    return None
