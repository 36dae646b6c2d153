"""What every reader of a trace shares: how a fault is raised and shown, and limits of values."""

from __future__ import annotations

from typing import Any

MAX_TEXT = 1_000_000
MAX_LIST = 1_000_000
MAX_INT = 2**63
MAX_NUMBER = 1e15


class Fault(Exception):
    """What is wrong with a value. Readers put its place together on the way out, so that a good
    file costs no time for places."""

    def __init__(self, what: str, place: str = "") -> None:
        self.what, self.place = what, place


def require(holds: bool, place: str, what: str) -> None:
    """Raises Fault unless ``holds``."""
    if not holds:
        raise Fault(what, place)


def shown(value: Any) -> str:
    """A value in an error message: short, and whatever it is, on one line."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = ascii(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."
