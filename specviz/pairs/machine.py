"""What this machine can compute with: device, dtype, memory."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import psutil
import torch

from specviz import __version__
from specviz.records import Machine

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class PairError(ValueError):
    """A pair that cannot be used here; the message says why and what to do."""


def choose_device() -> torch.device:
    """The first CUDA GPU, else Apple's, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def choose_dtype(device: torch.device, wanted: str = "auto") -> torch.dtype:
    """The dtype to compute in: bfloat16 where the hardware does so natively, else float32.

    ``wanted`` is "auto" or the name of the dtype to force. Raises PairError for one that is
    unknown or that the device does not have.
    """
    if wanted == "auto":
        return torch.bfloat16 if _native_bfloat16(device) else torch.float32
    if wanted not in DTYPES:
        raise PairError(f"there is no dtype {wanted!r}; choose auto, {', '.join(DTYPES)}")
    if wanted == "float16" and device.type != "cuda":
        raise PairError("float16 needs a CUDA GPU; choose auto, float32 or bfloat16 here")
    return DTYPES[wanted]


def _native_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).major >= 8  # from Ampere on
    if device.type != "cpu":
        return False
    ask = getattr(torch.cpu, "get_capabilities", None)
    capabilities = ask() if ask else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def memory_need(parameters: int, dtype: torch.dtype) -> int:
    """Bytes a model takes while it runs: weights, and a tenth for KV cache and activations."""
    return int(parameters * dtype.itemsize * 1.1)


def free_memory(device: torch.device) -> int:
    """Bytes that can still be had on one device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min(psutil.virtual_memory().available, _container_memory())


def free_memory_everywhere(device: torch.device) -> int:
    """Bytes over all the places that accelerate can spread a model on."""
    if device.type != "cuda":
        return free_memory(device)
    gpus = sum(free_memory(torch.device("cuda", i)) for i in range(torch.cuda.device_count()))
    return gpus + free_memory(torch.device("cpu"))


def _container_memory(root: Path = Path("/sys/fs/cgroup")) -> int:
    """What a container still allows; inside one, psutil reports the memory of its host."""
    try:
        limit = int((root / "memory.max").read_text())
        used = int((root / "memory.current").read_text())
        rows = (line.split() for line in (root / "memory.stat").read_text().splitlines())
        reclaimable = {name: int(value) for name, value in rows}.get("inactive_file", 0)
    except (OSError, ValueError):  # no such file, or "max": no limit
        return 2**62
    return limit - used + reclaimable


def describe(device: torch.device, dtype: torch.dtype) -> Machine:
    """The machine as it stands in a trace."""
    return Machine(
        device=device_among(device),
        dtype=str(dtype).removeprefix("torch."),
        threads=torch.get_num_threads(),
        versions={
            "specviz": __version__,
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "transformers": version("transformers"),
        },
    )


def device_among(device: torch.device) -> str:
    """What people call a device, and how many of its kind there are where it is not alone."""
    gpus = torch.cuda.device_count() if device.type == "cuda" else 1
    return device_name(device) + ("" if gpus == 1 else f" (one of {gpus})")


def device_name(device: torch.device) -> str:
    """What people call a device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return f"Apple GPU ({platform.machine()})"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    name = names[0] if names else platform.processor() or platform.machine()
    return f"CPU: {name}"


def gigabytes(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 1e9:.1f} GB"
