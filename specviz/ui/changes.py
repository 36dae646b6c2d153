"""What a page is told of something that works in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from specviz.ui.alone import Unwanted


class Working(Protocol):
    """A proof or a sweep."""

    over: bool
    unwanted: Unwanted


async def changes(one: Working, text: Callable[[], str], pause: float) -> AsyncIterator[str]:
    """``text()`` each time it has changed, looked at every ``pause`` seconds until ``one`` is over.
    A reader that leaves before leaves it alone: the visitor may be back soon."""
    reader, told = one.unwanted.attend(), ""
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
        one.unwanted.leave_alone(reader)
