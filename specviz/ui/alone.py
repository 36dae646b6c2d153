"""When something that works for a visitor is no longer wanted."""

from __future__ import annotations

import threading
import time

from specviz.ui.turns import Turns
from specviz.ui.worker import ALONE_SECONDS


class Unwanted(threading.Event):
    """Set once the work is to end: its visitor said so, or is gone and others wait, or is gone for
    too long. ``turns`` is the line that the work stands in, if it stands in one."""

    def __init__(self, turns: Turns | None = None) -> None:
        super().__init__()
        self._turns = turns
        self._left_at: float | None = None
        self._reader = 0

    def attend(self) -> int:
        """The visitor is there, perhaps again; the number of this reader."""
        self._reader, self._left_at = self._reader + 1, None
        return self._reader

    def leave_alone(self, reader: int | None = None) -> None:
        """The visitor is gone, or that reader, if no other has come since."""
        if reader in (None, self._reader):
            self._left_at = time.monotonic()

    def is_set(self) -> bool:
        """Whether the work is to end."""
        left = self._left_at
        if left is not None:
            contested = self._turns is not None and self._turns.contested
            if contested or time.monotonic() - left > ALONE_SECONDS:
                self.set()
        return super().is_set()
