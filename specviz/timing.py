"""A clock that waits for the device before it is read."""

from __future__ import annotations

import time
from typing import Protocol

import torch


class Clock(Protocol):
    """Anything with ``now() -> float`` in seconds; tests inject their own."""

    def now(self) -> float:
        """Seconds since some fixed moment."""


class DeviceClock:
    """Wall-clock seconds, read only once the device has finished what it was given."""

    def __init__(self, device: torch.device) -> None:
        self._wait = {
            "cuda": lambda: torch.cuda.synchronize(device),
            "mps": torch.mps.synchronize,
        }.get(device.type)

    def now(self) -> float:
        """Seconds since some fixed moment, after everything queued on the device is done."""
        if self._wait is not None:
            self._wait()
        return time.perf_counter()
