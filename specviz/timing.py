"""A clock that waits for the devices before it is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import torch


class Clock(Protocol):
    """Anything with ``now() -> float`` in seconds; tests inject their own."""

    def now(self) -> float:
        """Seconds since some fixed moment."""


class DeviceClock:
    """Wall-clock seconds, read only once every device has finished what it was given."""

    def __init__(self, *devices: torch.device) -> None:
        waits = [_wait_for(device) for device in dict.fromkeys(devices)]
        self._waits = [wait for wait in waits if wait is not None]

    def now(self) -> float:
        """Seconds since some fixed moment, after everything queued on the devices is done."""
        for wait in self._waits:
            wait()
        return time.perf_counter()


def _wait_for(device: torch.device) -> Callable[[], object] | None:
    """What waits for a device; None for the CPU, which is done when a call returns."""
    if device.type == "cuda":
        # What this thread queues goes to one stream. Waiting for the whole device instead would
        # break a CUDA graph that another thread is capturing.
        return lambda: torch.cuda.current_stream(device).synchronize()
    return torch.mps.synchronize if device.type == "mps" else None
