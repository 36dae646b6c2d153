"""The recorded runs that come with specviz, each with what to look at."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "assets" / "traces"
INDEX = FOLDER / "gallery.json"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One recorded run: its file, a title, what to look at in a sentence, and how it was made
    (``settings`` as ``records.Settings`` takes them)."""

    file: str
    title: str
    look: str
    prompt: str
    drafter: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the trace lies."""
        return FOLDER / self.file


def exhibits() -> tuple[Exhibit, ...]:
    """The gallery in its order."""
    return tuple(Exhibit(**entry) for entry in json.loads(INDEX.read_text(encoding="utf-8")))
