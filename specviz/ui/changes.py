"""What a page is told of something that works in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol


class Working(Protocol):
    """A proof or a sweep."""

    over: bool

    def stop(self) -> None:
        """End soon. Returns at once."""


async def changes(one: Working, text: Callable[[], str], pause: float) -> AsyncIterator[str]:
    """``text()`` each time it has changed, looked at every ``pause`` seconds until ``one`` is over.
    Stops ``one`` when the reader leaves before."""
    told = ""
    try:
        while True:
            over = one.over
            if told != (now := text()):
                told = now
                yield told
            if over:
                return
            await asyncio.sleep(pause)
    finally:
        if not one.over:
            one.stop()
