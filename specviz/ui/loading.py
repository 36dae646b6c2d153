"""Loaded models for the page: only those that its host allows, the default pair at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from specviz import drafters
from specviz.host import Host, HostError
from specviz.ui.elements import Choice
from specviz.ui.engine import import_engine
from specviz.ui.faults import explain, free_memory

Row: TypeAlias = tuple[Choice, str, str]
"""A pair on offer, with its target and its draft."""
Weigh: TypeAlias = Callable[[Sequence[Row]], list[Row]]
"""Says of each pair what memory it needs, or why it cannot run on this machine."""

FIRST_VISIT_SECONDS = 3.0
"""How long the models wait for a first visitor: until their page is drawn, the processor is
theirs."""
LOOK_SECONDS = 0.2


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


async def until_weighed(loading: Loading) -> None:
    """Until it is known which pairs can run here, or that this cannot be found out."""
    while not loading.weighed and loading.state in ("waiting", "loading"):
        await asyncio.sleep(LOOK_SECONDS)


class Loading:
    """Finds out which of the pairs on offer can run here and loads the first of them, in a thread
    of its own.

    Any number of pages may watch. ``state`` and ``text`` tell how far it is; ``rows`` are the
    pairs, ``weighed`` whether it is known of each if it can run; ``drafters`` are those that the
    loaded pair can run, the preferred one first.
    """

    def __init__(self, shelf: Shelf, rows: Sequence[Row], weigh: Weigh = list) -> None:
        self._shelf, self._weigh = shelf, weigh
        self.rows, self.weighed = list(rows), False
        self.state: Literal["waiting", "loading", "ready", "failed"] = "waiting"
        self.text = "Loading models"
        self.drafters: list[str] = []
        self._lock = threading.Lock()

    @property
    def first(self) -> str:
        """The name of the pair to choose at first: the first that can run, as far as is known."""
        return next((choice.name for choice, _, _ in self.rows if not choice.why), "")

    def begin_soon(self) -> None:
        """Start when the first page is drawn, which calls ``begin``, or without one in a while."""
        timer = threading.Timer(FIRST_VISIT_SECONDS, self.begin)
        timer.daemon = True
        timer.start()

    def begin(self) -> None:
        """Start loading, once."""
        with self._lock:
            if self.state != "waiting":
                return
            self.state = "loading"
        threading.Thread(target=self._load, name="specviz loading", daemon=True).start()

    def weigh(self) -> None:
        """Find out which pairs can run here. Imports torch where nobody has yet."""
        import_engine()
        with self._lock:
            if not self.weighed:
                self.rows = self._weigh(self.rows)
                self.weighed = True

    def _load(self) -> None:
        try:
            self.weigh()
            pair = self._shelf.load(*self._first_models(), progress=self._progress)
            self.drafters = drafters.names(pair)
        except BaseException as error:  # whatever kills the thread: pages would wait for ever
            self.text = explain(error)
            free_memory()
            self.state = "failed"
        else:
            self.text = ""
            self.state = "ready"

    def _first_models(self) -> tuple[str, str]:
        """Target and draft of the first pair that can run. Raises HostError where none can."""
        for choice, target, draft in self.rows:
            if not choice.why:
                return target, draft
        reasons = "; ".join(f"{choice.title}: {choice.why}" for choice, _, _ in self.rows)
        raise HostError(f"No pair that may be chosen here can run on this machine. {reasons}.")

    def _progress(self, message: str, fraction: float | None = None) -> None:
        self.text = message if fraction is None else f"{message} {fraction:.0%}"
