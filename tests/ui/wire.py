"""A wire between a browser and a page being served, which can be cut and mended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from visit import Site, Visit


class Wire:
    """Listens on a port of its own and passes everything on to ``url``. Cut, it closes every
    connection and takes no new one, as a network that is gone does."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._far = (parts.hostname, parts.port)
        self._cut = threading.Event()
        self._open: set[socket.socket] = set()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}/"
        threading.Thread(target=self._listen, daemon=True).start()

    def cut(self) -> None:
        """Close what is open and refuse what comes."""
        self._cut.set()
        for one in list(self._open):
            _close(one)

    def mend(self) -> None:
        """Pass on what comes again."""
        self._cut.clear()

    def close(self) -> None:
        """For good."""
        self.cut()
        _close(self._door)

    def _listen(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            if self._cut.is_set():
                _close(near)
                continue
            far = socket.create_connection(self._far)
            self._open |= {near, far}
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            self._open.discard(end)
            _close(end)


@contextmanager
def far_away(browser: Any, site: Site) -> Iterator[tuple[Visit, Wire]]:
    """A visitor at the far end of a wire, whose browser may complain about it."""
    wire = Wire(site.url)
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    one = Visit(context.new_page(), Site(wire.url))
    one.go("/")
    yield one.ready(), wire
    context.close()
    wire.close()


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
