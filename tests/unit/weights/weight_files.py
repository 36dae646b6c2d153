"""What stands for the target's file, and what a start may not leave behind."""

from __future__ import annotations

from pathlib import Path

GGUF = b"GGUF" + bytes(range(256)) * 40


def leftovers(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.glob("*") if not p.name.endswith(".lock"))
