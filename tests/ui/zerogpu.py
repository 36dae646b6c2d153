"""A stand-in for the ``spaces`` package on ZeroGPU: a decorated generator runs in a forked process,
and everything goes through pickle both ways. What cannot be pickled fails the test."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import gradio as gr

FORK = multiprocessing.get_context("fork")
VISITOR: ContextVar[str] = ContextVar("visitor", default="nobody")


class ZeroGpu:
    """``GPU`` as the package offers it. ``calls`` notes (seconds asked for, visitor, process).
    ``dies_after`` pieces the process ends as if it had been taken away; ``refuses`` is raised
    instead of lending."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str, int]] = []
        self.dies_after: int | None = None
        self.refuses: gr.Error | None = None
        self.ended: list[str] = []

    def GPU(self, duration: Any = None) -> Callable[[Any], Any]:
        def decorate(task: Any) -> Any:
            def call(*arguments: Any) -> Any:
                seconds = duration(*arguments) if callable(duration) else duration
                if self.refuses is not None:
                    raise self.refuses
                return self._pieces(task, pickle.dumps(arguments), seconds)

            return call

        return decorate

    def _pieces(self, task: Any, arguments: bytes, seconds: int) -> Any:
        here, there = FORK.Pipe(duplex=False)
        stop = FORK.Event()
        process = FORK.Process(
            target=_work, args=(task, arguments, there, stop, self.dies_after), daemon=True
        )
        process.start()
        there.close()
        self.calls.append((seconds, VISITOR.get(), process.pid or 0))
        try:
            while (piece := self._next(here)) is not None:
                yield pickle.loads(piece)
            self.ended.append("by itself")
        except GeneratorExit:
            stop.set()
            self.ended.append("closed")
            raise
        finally:
            while self._drained(here):
                pass
            process.join(30)

    def _next(self, here: Any) -> bytes | None:
        try:
            piece: bytes = here.recv_bytes()
        except EOFError:
            raise gr.Error("GPU task aborted") from None
        return piece or None

    def _drained(self, here: Any) -> bool:
        try:
            return bool(here.recv_bytes())
        except EOFError:
            return False


def _work(task: Any, arguments: bytes, there: Any, stop: Any, dies_after: int | None) -> None:
    pieces = task(*pickle.loads(arguments))
    for made, piece in enumerate(pieces):
        if made == dies_after:
            os._exit(9)
        if stop.is_set():
            pieces.close()
            break
        there.send_bytes(pickle.dumps(piece))
    there.send_bytes(b"")
    os._exit(0)
