"""Telling one fault of the machine from another, by what Python and torch raise."""

from __future__ import annotations

import errno

NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate")
"""What torch's allocators say, in a plain RuntimeError, on the CPU and on Apple's GPU."""


def out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of the machine or of a GPU."""
    if isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__:
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(words in text for words in NO_MEMORY)


def disk_full(error: BaseException) -> bool:
    """Whether a file could not be written for want of room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
