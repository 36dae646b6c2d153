"""The model pairs that are offered by name. Nothing here loads anything."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

EMBEDDED = "embedded"
EMBEDDED_PARAMETERS = 134_515_008
ASSETS = Path(__file__).resolve().parents[1] / "assets"
DRAFTS = ASSETS / "drafts"
EMBEDDED_FEATURES = DRAFTS / "smollm2-135m-feature"
BEST_GAMMA = {"smollm2-135m-2x576": 2, "smollm2-135m-1x576": 2, "smollm2-135m-4x256": 2}
"""The shipped draft models, the fastest first, with the draft length that was measured best with
each: see the table in the README."""
EMBEDDED_STORE = ASSETS / "stores" / "smollm2-135m-instruct.npz"
MAX_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class PairSpec:
    """A pair as it is listed.

    ``target`` is a Hub id, a local folder or "embedded"; ``draft`` a Hub id, a local folder, the
    name of a folder in assets/drafts, or empty. Parameters are counts of numbers, 0 for unknown.
    """

    name: str
    target: str
    draft: str
    title: str
    target_parameters: int = 0
    draft_parameters: int = 0
    gamma: int = 4


_SMOLLM = "HuggingFaceTB/SmolLM2-{}-Instruct"
_LLAMA_70B = "meta-llama/Llama-3.1-70B-Instruct"
_LLAMA_8B = "meta-llama/Llama-3.1-8B-Instruct"
_LLAMA_1B = "meta-llama/Llama-3.2-1B-Instruct"

HUB_PAIRS: tuple[PairSpec, ...] = (
    PairSpec(
        "smollm2-360m",
        _SMOLLM.format("360M"),
        _SMOLLM.format("135M"),
        "SmolLM2 360M with 135M",
        361_821_120,
        134_515_008,
        3,
    ),
    PairSpec(
        "smollm2-1.7b",
        _SMOLLM.format("1.7B"),
        _SMOLLM.format("135M"),
        "SmolLM2 1.7B with 135M",
        1_711_376_384,
        134_515_008,
    ),
    PairSpec(
        "qwen2.5-1.5b",
        "Qwen/Qwen2.5-1.5B-Instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen2.5 1.5B with 0.5B",
        1_543_714_304,
        494_032_768,
        3,
    ),
    PairSpec(
        "qwen2.5-7b",
        "Qwen/Qwen2.5-7B-Instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen2.5 7B with 0.5B",
        7_615_616_512,
        494_032_768,
        5,
    ),
    PairSpec(
        "qwen3-4b",
        "Qwen/Qwen3-4B",
        "Qwen/Qwen3-0.6B",
        "Qwen3 4B with 0.6B",
        4_022_468_096,
        596_049_920,
    ),
    PairSpec(
        "qwen3-8b",
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-0.6B",
        "Qwen3 8B with 0.6B",
        8_190_735_360,
        596_049_920,
        5,
    ),
    PairSpec(
        "llama-3.1-8b",
        _LLAMA_8B,
        _LLAMA_1B,
        "Llama 3.1 8B with 3.2 1B",
        8_030_261_248,
        1_235_814_400,
    ),
    PairSpec(
        "llama-3.1-70b",
        _LLAMA_70B,
        _LLAMA_8B,
        "Llama 3.1 70B with 8B",
        70_553_706_496,
        8_030_261_248,
        5,
    ),
    PairSpec(
        "llama-3.1-70b-1b",
        _LLAMA_70B,
        _LLAMA_1B,
        "Llama 3.1 70B with 3.2 1B",
        70_553_706_496,
        1_235_814_400,
        6,
    ),
    PairSpec(
        "pythia-1.4b",
        "EleutherAI/pythia-1.4b",
        "EleutherAI/pythia-70m",
        "Pythia 1.4B with 70M",
        1_414_647_808,
        70_426_624,
    ),
    PairSpec(
        "pythia-6.9b",
        "EleutherAI/pythia-6.9b",
        "EleutherAI/pythia-160m",
        "Pythia 6.9B with 160M",
        6_857_302_016,
        162_322_944,
        5,
    ),
    PairSpec(
        "gpt2-xl",
        "openai-community/gpt2-xl",
        "distilbert/distilgpt2",
        "GPT-2 XL with DistilGPT-2",
        1_557_611_200,
        81_912_576,
    ),
    PairSpec(
        "gemma-2-9b",
        "google/gemma-2-9b-it",
        "google/gemma-2-2b-it",
        "Gemma 2 9B with 2B",
        9_241_705_984,
        2_614_341_888,
    ),
)


def embedded_pairs() -> tuple[PairSpec, ...]:
    """The embedded target with each draft in assets/drafts, the one that was measured fastest
    first, unknown ones last and smallest first; with none where the folder is empty."""
    folders = DRAFTS.iterdir() if DRAFTS.is_dir() else ()
    drafts = [(parameters, path) for path in folders if (parameters := draft_size(path))]
    if not drafts:
        title = "SmolLM2 135M, no draft model"
        return (PairSpec("smollm2-135m", EMBEDDED, "", title, EMBEDDED_PARAMETERS),)
    known = list(BEST_GAMMA)
    drafts.sort(key=lambda d: (known.index(d[1].name) if d[1].name in known else len(known), d[0]))
    return tuple(
        PairSpec(
            path.name,
            EMBEDDED,
            path.name,
            f"SmolLM2 135M, draft {shape_of(path)}{parameters / 1e6:.1f}M",
            EMBEDDED_PARAMETERS,
            parameters,
            gamma=BEST_GAMMA.get(path.name, 3),
        )
        for parameters, path in drafts
    )


def catalogue() -> tuple[PairSpec, ...]:
    """Every pair on offer, the default one first."""
    return embedded_pairs() + HUB_PAIRS


def find(name: str) -> PairSpec | None:
    """The pair of that name, or None."""
    return next((spec for spec in catalogue() if spec.name == name), None)


def draft_size(folder: Path) -> int:
    """Parameters of a finished draft checkpoint, 0 where the folder holds none."""
    if not all((folder / name).is_file() for name in ("config.json", "ids.json")):
        return 0
    try:
        return safetensors_parameters(folder / "model.safetensors")
    except (OSError, ValueError):
        return 0


def shape_of(folder: Path) -> str:
    """A checkpoint's layers and width for a title, such as "2x576, "; empty where its config does
    not say."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return f"{config['num_hidden_layers']}x{config['hidden_size']}, "
    except (OSError, ValueError, KeyError):
        return ""


def safetensors_parameters(path: Path) -> int:
    """How many numbers a safetensors file holds, from its header. Raises OSError, ValueError."""
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else MAX_HEADER_BYTES + 1
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"{path.name} is not a safetensors file")
        header = json.loads(file.read(length))
    total = 0
    for name, entry in header.items():
        if name != "__metadata__":
            size = 1
            for dimension in entry["shape"]:
                size *= dimension
            total += size
    return total
