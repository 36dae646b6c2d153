"""The traces there are to look at: the gallery, and those a visitor has opened or kept, as bytes,
until a while after the tab is closed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from specviz.gallery import exhibits
from specviz.records import Trace
from specviz.trace import dump_trace, load_trace
from specviz.ui.visitors import OneEach, nothing

MOST = 20
MOST_BYTES = 48_000_000
TITLE = 60


class Full(ValueError):
    """There is no room for one more; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One trace with the name it is listed under. ``id`` cannot be guessed."""

    id: str
    title: str
    data: bytes

    @property
    def trace(self) -> Trace:
        """The trace itself."""
        return load_trace(self.data)


@dataclass(frozen=True, slots=True)
class Shown:
    """A trace to be put on a stage, by the id it is listed under."""

    id: str
    title: str
    trace: Trace


class Collections(OneEach[tuple[Kept, ...]]):
    """The gallery, and each visitor's own traces in the order they came. Nothing is written to
    disk."""

    def __init__(self) -> None:
        super().__init__(nothing, nothing)
        self._gallery = {f"gallery:{exhibit.file}": exhibit for exhibit in exhibits()}

    def own(self, session: str) -> tuple[Kept, ...]:
        """The visitor's traces."""
        return self.of(session) or ()

    @property
    def first(self) -> str:
        """The id of the first of the gallery."""
        return next(iter(self._gallery))

    def gallery(self) -> list[dict[str, str]]:
        """The gallery as it is listed: id, title, and what to look at."""
        return [
            {"id": name, "title": exhibit.title, "look": exhibit.look}
            for name, exhibit in self._gallery.items()
        ]

    def find(self, session: str, wanted: str) -> Shown:
        """A trace of the gallery, or of the visitor's own, by its id. Raises LookupError."""
        if wanted in self._gallery:
            exhibit = self._gallery[wanted]
            return Shown(wanted, exhibit.title, load_trace(exhibit.path.read_bytes()))
        kept = next((kept for kept in self.own(session) if kept.id == wanted), None)
        if kept is None:
            raise LookupError("That trace is no longer kept here.")
        return Shown(kept.id, kept.title, kept.trace)

    def add(self, session: str, trace: Trace) -> Kept:
        """Keep a trace. Raises Full, and TraceError for one too long to be written."""
        kept = Kept(secrets.token_urlsafe(9), title(trace), dump_trace(trace).encode("utf-8"))

        def added(own: tuple[Kept, ...] | None) -> tuple[Kept, ...]:
            own = own or ()
            if len(own) >= MOST:
                raise Full(f"{MOST} traces are kept already; delete one first")
            if sum(len(k.data) for k in own) + len(kept.data) > MOST_BYTES:
                raise Full("the traces kept here take too much room; delete one first")
            return (*own, kept)

        self.change(session, added)
        return kept

    def delete(self, session: str, wanted: str) -> None:
        """Forget one of the visitor's traces."""
        self.change(session, lambda own: tuple(k for k in own or () if k.id != wanted))


def title(trace: Trace) -> str:
    """What a trace is listed as: where its guesses came from, and its prompt."""
    run = trace.run("speculative")
    words = " ".join(trace.prompt.split())
    short = words if len(words) <= TITLE else words[: TITLE - 1] + "\u2026"
    return f"{run.drafter if run else 'the target alone'}: {short}"
