"""What computes is imported in the background, when the page is up: torch and transformers take
longer to import than the page takes to be drawn."""

from __future__ import annotations

import importlib
import threading
from typing import Any

PARTS = ("specviz.pairs", "specviz.ui.proofs")
_ONE = threading.Lock()


def import_engine() -> None:
    """Import all that computes, once; whoever comes second waits. (Two threads that import
    transformers at the same time can find each other's modules half done.)"""
    with _ONE:
        for part in PARTS:
            importlib.import_module(part)


class OwnShelf:
    """``specviz.pairs.Shelf``, made when it is first asked for a pair."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shelf: Any = None

    def load(self, target: str, draft: str, dtype: str = "auto", **how: Any) -> Any:
        """As ``pairs.Shelf.load``."""
        import_engine()
        from specviz.pairs import Shelf

        with self._lock:
            if self._shelf is None:
                self._shelf = Shelf()
        return self._shelf.load(target, draft, dtype, **how)
