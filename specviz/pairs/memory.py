"""What to do and to say when memory has run out."""

from __future__ import annotations

import gc
import traceback

import torch

from specviz.catalogue import PairSpec, catalogue
from specviz.pairs.machine import (
    choose_device,
    choose_dtype,
    free_memory_everywhere,
    gigabytes,
    memory_need,
)


def let_go(error: BaseException | None = None) -> None:
    """Give back the memory that nothing needs any more: what the calls that ended in ``error``
    held, unreachable objects, and the blocks that torch keeps for later."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


def ran_out(
    error: BaseException, name: str = "", parameters: int = 0, running: bool = False
) -> str:
    """Free what can be freed, and say what would fit. ``name`` is what did not, a model or a pair
    of so many parameters (0: not known); ``running`` tells whether it was being run."""
    let_go(error)
    device = choose_device()
    free = free_memory_everywhere(device)
    text = f"The memory ran out. {gigabytes(free)} are free now"
    if parameters:
        need = memory_need(parameters, choose_dtype(device))
        text += f", and {name} needs {gigabytes(need)}"
    smaller = _largest_that_fits(free, parameters)
    ways = ["a shorter prompt", "fewer new tokens"] if running else []
    if smaller is not None:
        ways.append(f"a smaller pair ({smaller.title})")
    return (
        f"{text}. Choose {', '.join(ways)}, or end other programs."
        if ways
        else (f"{text}. End other programs and try again.")
    )


def _largest_that_fits(free: int, below: int) -> PairSpec | None:
    """The largest pair on offer that fits into ``free`` bytes, of fewer parameters than ``below``
    where that is not 0."""
    dtype = choose_dtype(choose_device())
    sizes = [(spec.target_parameters + spec.draft_parameters, spec) for spec in catalogue()]
    fitting = [
        (size, spec)
        for size, spec in sizes
        if size and memory_need(size, dtype) <= free and not (below and size >= below)
    ]
    return max(fitting, key=lambda entry: entry[0])[1] if fitting else None
