"""Checkpoints that are refused, in one sentence."""

from __future__ import annotations

import json

import pytest
from checkpoints import load

from specviz.pairs import PairError, files, models, placement
from specviz.weights import WeightsError


def test_pickled_weights_are_refused_unread(tmp_path, target):
    for path in (tmp_path / "target").glob("*.safetensors"):
        path.unlink()
    (tmp_path / "target" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(PairError, match="pickle"):
        load(target)


def test_code_that_comes_with_a_model_is_not_run(tmp_path, target):
    folder = tmp_path / "target"
    marker = tmp_path / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {
            "AutoConfig": "modeling_own.Own",
            "AutoModelForCausalLM": "modeling_own.Own",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(PairError, match="runs no code that comes with models"):
        load(target)
    assert not marker.exists()


def test_weights_that_are_missing_are_not_filled_with_random_ones(tmp_path, target):
    from safetensors.torch import load_file, save_file

    path = tmp_path / "target" / "model.safetensors"
    state = load_file(path)
    del state["model.layers.1.mlp.up_proj.weight"]
    save_file(state, path, metadata={"format": "pt"})
    with pytest.raises(PairError, match=r"layers\.1\.mlp\.up_proj"):
        load(target)


def spoil(name, content=None):
    def apply(folder):
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)

    return apply


@pytest.mark.parametrize(
    "spoiled, words",
    [
        (spoil("config.json"), "config.json is missing"),
        (spoil("config.json", b"{"), "cannot be loaded"),
        (spoil("config.json", b'{"model_type": "no-such-kind"}'), "no causal language model"),
        (spoil("config.json", b'{"model_type": "vit"}'), "no causal language model"),
        (spoil("model.safetensors"), "no weights in safetensors format"),
        (spoil("model.safetensors", b"\0" * 4), "damaged"),
        (spoil("model.safetensors", b"\xff" * 64), "damaged"),
        (spoil("model.safetensors", b"\2" + b"\0" * 7 + b"[]"), "damaged"),
    ],
)
def test_spoiled_checkpoint_is_one_sentence(spoiled, words, tmp_path, target):
    spoiled(tmp_path / "target")
    with pytest.raises(PairError) as caught:
        load(target)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source, words",
    [
        ("./nowhere", "no such folder"),
        ("/nowhere", "no such folder"),
        ("", "name a model"),
        ("a\0b", "a"),
        ("x" * 5000, "x"),
    ],
)
def test_source_that_is_nothing_is_refused(source, words, monkeypatch):
    def offline(repository, progress):
        raise WeightsError(f"{repository}: the Hub is not reachable")

    monkeypatch.setattr(models, "hub_folder", offline)
    with pytest.raises(PairError, match=words):
        models.locate(source, lambda *given: None)


def test_what_weights_cannot_fetch_is_a_pair_error(monkeypatch):
    def fail(progress):
        raise WeightsError("nothing is reachable")

    monkeypatch.setattr(models, "embedded_target", fail)
    with pytest.raises(PairError, match="nothing is reachable"):
        load("embedded")


def test_model_that_does_not_fit_is_refused_before_it_is_read(target, monkeypatch):
    monkeypatch.setattr(placement, "free_memory", lambda device: 1000)
    monkeypatch.setattr(placement, "free_memory_everywhere", lambda device: 1000)
    with pytest.raises(PairError, match=r"needs .* GB of memory"):
        load(target)


def test_gguf_folder_is_read_and_two_files_are_refused(tmp_path):
    (tmp_path / "a.gguf").touch()
    assert files.check_files("x", tmp_path) == tmp_path / "a.gguf"
    (tmp_path / "b.gguf").touch()
    with pytest.raises(PairError, match="2 GGUF files"):
        files.check_files("x", tmp_path)
