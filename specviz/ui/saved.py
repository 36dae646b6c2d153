"""The files that visitors take along, until their tab is closed."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import gradio as gr
from gradio.utils import get_upload_folder

from specviz.ui.faults import explain
from specviz.ui.visitors import OneEach, nothing


class SavedFiles(OneEach[Path]):
    """A folder for each visitor, ``kept`` for a while after they are gone or not. They lie in
    Gradio's own cache folder: of a file from anywhere else Gradio serves a copy, which would stay
    when the visitor's own is deleted."""

    def __init__(self, *, kept: bool = False) -> None:
        super().__init__(_delete, nothing if kept else None)
        cache = Path(get_upload_folder())
        cache.mkdir(parents=True, exist_ok=True)
        self._folder = TemporaryDirectory(prefix="specviz-", dir=cache)

    def path(self, session: str, name: str) -> Path:
        """Where a file of the visitor's is to be written. Raises OSError."""
        folder = self.change(session, lambda own: own or Path(mkdtemp(dir=self._folder.name)))
        folder.mkdir(exist_ok=True)
        return folder / name

    def write(self, session: str, name: str, text: str) -> Path:
        """Write a file of the visitor's. Raises gr.Error, saying what to do, where that fails;
        nothing half-written stays."""
        path = None
        try:
            path = self.path(session, name)
            path.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            if path is not None:
                path.unlink(missing_ok=True)
            raise gr.Error(explain(error), print_exception=False) from error
        return path


def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
