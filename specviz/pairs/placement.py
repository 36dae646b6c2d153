"""Where a model's weights go: one device, another one, or spread over all of them by accelerate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from specviz.pairs.machine import (
    PairError,
    choose_dtype,
    device_among,
    device_name,
    free_memory,
    free_memory_everywhere,
    gigabytes,
    memory_need,
)
from specviz.records import CUDA_GRAPHS, Machine

DRAFT_DEVICE = "SPECVIZ_DRAFT_DEVICE"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model goes. ``device_map`` is from_pretrained's, None where the weights are read
    into the CPU's memory and then moved to ``device``; ``need`` is in bytes."""

    need: int
    device: torch.device
    device_map: Any = None

    @property
    def words(self) -> str:
        """What is about to be taken, for people."""
        if self.device_map == "auto":
            gpus = torch.cuda.device_count()
            over = "the GPU" if gpus == 1 else f"{gpus} GPUs"
            return f"{gigabytes(self.need)}, spread over {over} and, where they are full, the CPU"
        return gigabytes(self.need)


def place(name: str, parameters: int, dtype: torch.dtype, device: torch.device) -> Placement:
    """``device`` if the model fits, else another GPU that it fits on whole, else all GPUs and the
    CPU's memory together. Raises PairError where even they do not suffice."""
    need = memory_need(parameters, dtype)
    for one in (device, *_other_gpus(device)):
        if need <= free_memory(one):
            return Placement(need, one, {"": one} if one.type == "cuda" else None)
    everywhere = free_memory_everywhere(device)
    if device.type == "cuda" and need <= everywhere:
        return Placement(need, device, "auto")
    raise PairError(
        f"{name} needs {gigabytes(need)} of memory and {gigabytes(everywhere)} are free; choose a"
        " smaller model, or end other programs"
    )


def _other_gpus(device: torch.device) -> list[torch.device]:
    """Every GPU but ``device``; none where that is no GPU."""
    count = torch.cuda.device_count() if device.type == "cuda" else 0
    return [torch.device("cuda", i) for i in range(count) if i != device.index]


def draft_device(target: torch.device) -> torch.device:
    """Where a draft goes: beside its target, or where SPECVIZ_DRAFT_DEVICE says ("cpu",
    "cuda:1"). Raises PairError for a device that is not there."""
    wanted = os.environ.get(DRAFT_DEVICE, "").strip()
    if not wanted:
        return target
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    known = device is not None and (
        device.type == "cpu"
        or (device.type == "mps" and torch.backends.mps.is_available())
        or (device.type == "cuda" and (device.index or 0) < torch.cuda.device_count())
    )
    if device is None or not known:
        raise PairError(f"{DRAFT_DEVICE}={wanted}: there is no such device here")
    return torch.device("cuda", device.index or 0) if device.type == "cuda" else device


def draft_dtype(device: torch.device, wanted: str) -> torch.dtype:
    """The dtype of a draft on ``device``: as asked for, where the device has it."""
    return choose_dtype(device, "auto" if wanted == "float16" and device.type != "cuda" else wanted)


def as_placed(
    machine: Machine, target: Sequence[torch.device], draft: Sequence[torch.device], graphs: str
) -> Machine:
    """The machine's record with the devices that the models really stand on, and whether steps are
    replayed as CUDA graphs ("on", or why not; empty where that does not arise)."""
    elsewhere = [device for device in draft if device not in target]
    if len(target) == 1 and not elsewhere:
        names = device_among(target[0])
    else:
        names = " and ".join(dict.fromkeys(map(device_name, sorted(target, key=str, reverse=True))))
    if elsewhere:
        names += f"; draft on {' and '.join(map(device_name, elsewhere))}"
    noted = {CUDA_GRAPHS: graphs} if graphs else {}
    return replace(machine, device=names, versions={**machine.versions, **noted})
