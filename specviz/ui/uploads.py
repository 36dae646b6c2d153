"""Files that visitors send: read once, then deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gradio.utils import get_upload_folder

from specviz.records import Trace
from specviz.trace import MAX_TRACE_BYTES, TraceError, load_trace


@contextmanager
def upload(path: str | None) -> Iterator[Path]:
    """A file that was sent, to be read now: afterwards it is deleted, whatever came of it."""
    file = Path(path or "")
    try:
        yield file
    finally:
        if _was_sent(file):
            with suppress(OSError):
                file.unlink()


def _was_sent(file: Path) -> bool:
    """Whether a file lies where Gradio puts what is sent: in a folder, named by what is in it, of
    its upload folder. Nothing else is ever deleted, whatever path an event may name."""
    return file.resolve().parent.parent == Path(get_upload_folder()).resolve()


def sent_trace(path: str | None) -> Trace:
    """The trace in a file that was sent. Raises TraceError."""
    with upload(path) as file:
        try:
            if file.stat().st_size > MAX_TRACE_BYTES:
                raise TraceError(f"the file is larger than {MAX_TRACE_BYTES // 1_000_000} MB")
            return load_trace(file.read_bytes())
        except OSError as error:
            raise TraceError(f"the file cannot be read: {error.strerror}") from None
