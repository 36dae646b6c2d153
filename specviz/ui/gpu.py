"""ZeroGPU on Hugging Face Spaces: a GPU that is lent for one call at a time.

There the page's own process has no GPU. A generator that ``spaces.GPU`` decorates runs in another
process, forked from this one, which has one until the generator ends. So models are loaded here
into the CPU's memory, where the fork inherits them, and moved to the GPU there; and everything
that crosses, an ``Errand`` in and pieces of its results out, is plain values that can be pickled.

A pair that is loaded here is lent: it says what it can draft and how long its context is, and
whatever is to be computed with it goes through ``computed``. Off ZeroGPU nothing of this is used,
and ``computed`` calls the function where it stands.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import gradio as gr

from specviz.records import Machine
from specviz.ui.engine import OwnShelf
from specviz.ui.faults import explain

if TYPE_CHECKING:  # off ZeroGPU, torch is imported when the page is up
    from specviz.pairs import Shelf

Task: TypeAlias = Callable[..., Iterator[Any]]
Sources: TypeAlias = tuple[str, str, str]
"""Target, draft and dtype of a pair, as they are asked for."""

DTYPE = "bfloat16"
"""What every GPU that is lent computes natively, whatever the CPU of the page can do."""
START_SECONDS = 15.0
"""For moving the models, warming up and capturing."""
UNKNOWN_RATE = 10.0
"""New tokens a second taken for a pair that has not run yet: slow, so that it may finish."""
MARGIN = 1.5
CUT_OFF = "The GPU was taken back before this was done. What arrived is kept; ask for fewer tokens."


class GpuError(RuntimeError):
    """The lent GPU did not do what was asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What is computed on a lent GPU: ``task(pair, *arguments)``, a generator of plain values.
    ``task`` is found by its module and name. ``tokens`` is how many may be written."""

    task: Task
    sources: Sources
    arguments: tuple[Any, ...]
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An errand's last piece when something went wrong: what to tell a person."""

    message: str


def computed(pair: Any, task: Task, *arguments: Any, tokens: int = 0) -> Iterator[Any]:
    """``task(pair, *arguments)``, wherever the pair's models compute. Raises GpuError."""
    if isinstance(pair, LentPair):
        return pair.compute(task, arguments, tokens)
    return task(pair, *arguments)


def on_zero_gpu(environ: Mapping[str, str]) -> bool:
    """Whether this is a Space whose GPU is lent call by call."""
    return environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def shelf_for(environ: Mapping[str, str], most_seconds: int) -> Any:
    """Where the page takes its models from. ``most_seconds`` bounds how long a GPU is asked for
    at a time."""
    if not on_zero_gpu(environ):
        return OwnShelf()
    import torch

    from specviz.pairs import Shelf

    return LendingShelf(Shelf(device=torch.device("cpu"), dtype=DTYPE), most_seconds)


def seconds_for(tokens: int, rate: float | None, most: int) -> int:
    """How long to ask for a GPU that writes ``tokens`` at ``rate`` a second (None: not known),
    with a margin, at most ``most``."""
    wanted = START_SECONDS + MARGIN * tokens / (rate or UNKNOWN_RATE)
    return min(most, math.ceil(wanted))


class LendingShelf:
    """A shelf whose pairs compute on a lent GPU."""

    def __init__(self, shelf: Shelf, most_seconds: int) -> None:
        self._shelf = shelf
        self._gpu = Gpu(shelf, most_seconds)

    def load(self, target: str, draft: str, dtype: str = "auto", **how: Any) -> LentPair:
        """As ``Shelf.load``: into the memory of this process, once."""
        sources = (target, draft, DTYPE if dtype == "auto" else dtype)
        return LentPair(self._shelf.load(*sources, **how), self._gpu, sources)


class Gpu:
    """Runs errands on a lent GPU, and knows how quick it was with each target."""

    def __init__(self, shelf: Shelf, most_seconds: int) -> None:
        import spaces

        self._shelf, self._home = shelf, os.getpid()
        self._most_seconds = most_seconds
        self._rates: dict[str, float] = {}
        self.machines: dict[Sources, Machine] = {}

        def there(errand: Errand) -> Iterator[Any]:
            yield from self._there(errand)

        self._run: Callable[[Errand], Generator[Any, None, None]]
        self._run = spaces.GPU(duration=self.seconds)(there)

    def seconds(self, errand: Errand) -> int:
        """How long to ask for the GPU."""
        rate = self._rates.get(errand.sources[0])
        return seconds_for(errand.tokens, rate, self._most_seconds)

    def learn(self, target: str, tokens: int, seconds: float) -> None:
        """Take in how long the target and its drafts took to write so many tokens."""
        if tokens and seconds > 0:
            self._rates[target] = tokens / seconds

    def run(self, errand: Errand) -> Generator[Any, None, None]:
        """The pieces of an errand as they come. Raises GpuError. Closing the iterator ends the
        errand at its next piece, and gives the GPU back."""
        begun = False
        try:
            with closing(self._run(errand)) as pieces:
                for piece in pieces:
                    if isinstance(piece, Failure):
                        raise GpuError(piece.message)
                    begun = True
                    yield piece
        except gr.Error as error:
            refused = f"The GPU that this page borrows is not to be had: {error.message}"
            raise GpuError(CUT_OFF if begun else refused) from error

    def _there(self, errand: Errand) -> Iterator[Any]:
        """In the process that has the GPU."""
        try:
            yield from errand.task(self._shelf_there().load(*errand.sources), *errand.arguments)
        except Exception as error:
            yield Failure(explain(error))

    def _shelf_there(self) -> Shelf:
        """The models that were in memory when this process was forked, on the GPU."""
        if os.getpid() != self._home:
            import torch

            from specviz.pairs import choose_device

            # After a fork the other threads of a parallel region would be waited for in vain.
            torch.set_num_threads(1)
            self._shelf, self._home = self._shelf.moved(choose_device()), os.getpid()
        return self._shelf


class LentPair:
    """A pair in this process's memory whose models compute on a lent GPU. What is asked of it
    beyond that is the pair's own."""

    def __init__(self, pair: Any, gpu: Gpu, sources: Sources) -> None:
        self._pair, self._gpu, self._sources = pair, gpu, sources

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pair, name)

    @property
    def machine(self) -> Machine:
        """What the GPU's process says it is. Asked once, as no errand has run before."""
        known = self._gpu.machines
        if self._sources not in known:
            known[self._sources] = next(self.compute(machine_there, ()))
        return known[self._sources]

    def race(self, *arguments: Any, **options: Any) -> Any:
        """A ``Race`` on the lent GPU; arguments as there."""
        from specviz.ui.lent import LentRace

        return LentRace(self, *arguments, **options)

    def compute(self, task: Task, arguments: tuple[Any, ...], tokens: int = 0) -> Iterator[Any]:
        """See ``computed``."""
        return self._gpu.run(Errand(task, self._sources, arguments, tokens))

    def learn(self, tokens: int, seconds: float) -> None:
        """See ``Gpu.learn``."""
        self._gpu.learn(self._sources[0], tokens, seconds)


def machine_there(pair: Any) -> Iterator[Machine]:
    """The record of the machine that a pair computes on."""
    yield pair.machine
