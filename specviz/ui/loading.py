"""The default pair, loading in the background while the recorded race is on screen."""

from __future__ import annotations

import threading
from typing import Any, Literal, Protocol

from specviz import drafters
from specviz.ui.worker import explain


class Shelf(Protocol):
    """What the page needs of ``specviz.pairs.Shelf``: loaded pairs, each loaded once."""

    def load(self, target: str, draft: str, dtype: str = "auto", progress: Any = ...) -> Any: ...


class Loading:
    """Loads one pair in a thread of its own. Any number of pages may watch ``state`` and
    ``text``; ``drafters`` are those the loaded pair can run, the preferred one first."""

    def __init__(self, shelf: Shelf, target: str, draft: str) -> None:
        self._shelf, self._target, self._draft = shelf, target, draft
        self.state: Literal["waiting", "loading", "ready", "failed"] = "waiting"
        self.text = "Loading models"
        self.drafters: list[str] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Start loading, once."""
        with self._lock:
            if self.state != "waiting":
                return
            self.state = "loading"
        threading.Thread(target=self._load, name="specviz loading", daemon=True).start()

    def _load(self) -> None:
        try:
            pair = self._shelf.load(self._target, self._draft, progress=self._progress)
            self.drafters = drafters.names(pair)
        except Exception as error:
            self.text = explain(error)
            self.state = "failed"
        else:
            self.text = ""
            self.state = "ready"

    def _progress(self, message: str, fraction: float | None = None) -> None:
        self.text = message if fraction is None else f"{message} {fraction:.0%}"
