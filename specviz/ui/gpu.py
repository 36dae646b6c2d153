"""ZeroGPU on Hugging Face Spaces, where there is one: elsewhere the function as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
SECONDS = 120


def on_gpu(function: Function) -> Function:
    """Run ``function`` on a borrowed GPU. Its arguments and what it yields are pickled, so they
    must be plain values."""
    try:
        import spaces
    except ImportError:
        return function
    return spaces.GPU(duration=SECONDS)(function)
