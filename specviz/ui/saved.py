"""The files that visitors take along, until their tab is closed."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import gradio as gr
from gradio.utils import get_upload_folder

from specviz.ui.faults import explain


class SavedFiles:
    """A folder for each visitor. They lie in Gradio's own cache folder: of a file from anywhere
    else Gradio serves a copy, which would stay when the visitor's own is deleted."""

    def __init__(self) -> None:
        cache = Path(get_upload_folder())
        cache.mkdir(parents=True, exist_ok=True)
        self._folder = TemporaryDirectory(prefix="specviz-", dir=cache)

    def path(self, session: str, name: str) -> Path:
        """Where a file of the visitor's is to be written."""
        folder = Path(self._folder.name, session)
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

    def drop(self, session: str) -> None:
        """The visitor has left: delete all of theirs."""
        if session:
            shutil.rmtree(Path(self._folder.name, session), ignore_errors=True)
