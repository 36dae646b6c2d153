"""Loaded models for the page: only those that its host allows, the default pair at once."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any, Literal, Protocol

from specviz import drafters
from specviz.host import Host
from specviz.ui.faults import explain, free_memory


class Shelf(Protocol):
    """What the page needs of ``specviz.pairs.Shelf``: loaded pairs, each loaded once."""

    def load(self, target: str, draft: str, dtype: str = "auto", progress: Any = ...) -> Any: ...


class AllowedShelf:
    """A shelf that gives only what ``host`` allows. Everything on the page takes its models from
    here, whichever way a name came in. ``listed`` are the targets and drafts on offer."""

    def __init__(self, shelf: Shelf, host: Host, listed: Collection[tuple[str, str]]) -> None:
        self._shelf, self._host, self._listed = shelf, host, listed

    def load(self, target: str, draft: str, dtype: str = "auto", progress: Any = None) -> Any:
        """As the shelf's own. Raises SettingsError for models that are not allowed here."""
        self._host.check_models(target, draft, self._listed)
        told = {} if progress is None else {"progress": progress}
        return self._shelf.load(target, draft, dtype, **told)


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
        except BaseException as error:  # whatever kills the thread: pages would wait for ever
            self.text = explain(error)
            free_memory()
            self.state = "failed"
        else:
            self.text = ""
            self.state = "ready"

    def _progress(self, message: str, fraction: float | None = None) -> None:
        self.text = message if fraction is None else f"{message} {fraction:.0%}"
