"""Where guesses come from. A drafter is one file in this folder.

A drafter's module has five names: ``NAME``, ``SUMMARY`` (a sentence for the page), ``ORDER`` (a
number, its place in the list), ``available(pair) -> bool`` and ``create(pair, settings,
prompt_length, chance) -> Drafter``; a sixth, ``GAMMA``, is the draft length that was measured best
with it, where that does not depend on the pair. It is found by being there. Verification is the
same for all, so a drafter can make a run slow but never wrong.

What a module says of itself in capitals are plain values, each on a line of its own: they are read
without importing it (``described``), since importing it takes torch.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from specviz.records import Settings

if TYPE_CHECKING:  # so that the page can name drafters where no torch is
    import torch
    from torch import Tensor

    from specviz.sampling import Chance, Guess

SAID = ("NAME", "SUMMARY", "ORDER", "GAMMA")


class Drafter:
    """Proposes tokens. One instance serves one run and owns all the run's draft state."""

    reads_features = False
    """Whether ``read_features`` is to be called."""

    devices: tuple[torch.device, ...] = ()
    """What it computes on, beside the target's own devices."""

    def prepare(self, start: int, end: int, gamma: int) -> None:
        """Make ready, before any clock starts, for a text that grows from ``start`` to ``end``
        tokens with drafts of up to ``gamma``. Nothing where there is nothing to make ready."""

    def prefill(self, tokens: Sequence[int]) -> None:
        """Read the prompt, all but its last token. Nothing where a drafter needs no reading."""

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """Up to ``gamma`` guesses at what follows ``tokens``, the whole text so far.

        A drafter finds out by comparing with what it has read which of its earlier guesses were
        thrown away, so it cannot fall out of step with the text.
        """
        raise NotImplementedError

    def read_features(self, features: Tensor) -> None:
        """The target's normalised hidden states of the tokens that have become part of the text
        since the last call, [n, W]: of every token but the text's last, each once, in order. For
        the prompt they come before ``prefill``."""


class NoDrafter(Drafter):
    """Drafts nothing: the loop then is plain decoding, which is what the baseline runs."""

    def draft(self, tokens: Sequence[int], gamma: int) -> list[Guess]:
        """No guesses."""
        return []


@dataclass(frozen=True, slots=True)
class Described:
    """What a drafter's module says of itself; ``gamma`` is None where it has no GAMMA."""

    module: str
    name: str
    summary: str
    order: int = 100
    gamma: int | None = None


@cache
def described() -> dict[str, Described]:
    """Every drafter of this folder by its NAME, in the order of ORDER, then name. Imports none."""
    paths = [
        Path(folder, f"{info.name}.py")
        for folder in __path__
        for info in pkgutil.iter_modules([folder])
    ]
    found = [
        Described(path.stem, **{name.lower(): said[name] for name in SAID if name in said})
        for path in paths
        if "NAME" in (said := _constants(path))
    ]
    found.sort(key=lambda one: (one.order, one.name))
    return {one.name: one for one in found}


def _constants(path: Path) -> dict[str, Any]:
    """The values of a module's names in SAID."""
    return {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in SAID
    }


def modules() -> dict[str, ModuleType]:
    """Every drafter's module by its NAME, in the order of ``described``."""
    return {
        name: importlib.import_module(f"{__name__}.{one.module}")
        for name, one in described().items()
    }


def names(pair: Any) -> list[str]:
    """The drafters that ``pair`` can run, the preferred one first."""
    return [name for name, module in modules().items() if module.available(pair)]


def best_gamma(name: str, otherwise: int) -> int:
    """The draft length to begin with: the drafter's own, else the pair's."""
    own = described()[name].gamma
    return otherwise if own is None else own


def create(name: str, pair: Any, settings: Settings, prompt_length: int, chance: Chance) -> Drafter:
    """A fresh drafter for one run. Raises ValueError for a name this pair cannot run."""
    if name not in names(pair):
        raise ValueError(
            f"there is no drafter {name!r} for this pair; choose one of {', '.join(names(pair))}"
        )
    return modules()[name].create(pair, settings, prompt_length, chance)
