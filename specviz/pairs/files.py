"""What a model's folder holds, before anything of it is loaded.

Only safetensors and GGUF files are opened: pickled checkpoints can run code.
"""

from __future__ import annotations

import json
from pathlib import Path

from specviz.catalogue import safetensors_parameters
from specviz.pairs.machine import PairError
from specviz.weights.hub import one_line


def check_files(name: str, folder: Path) -> Path | None:
    """The GGUF file to read, or None for a safetensors checkpoint. Raises PairError."""
    files = [path for path in folder.iterdir() if path.is_file()]
    suffixes = {path.suffix for path in files}
    ggufs = [path for path in files if path.suffix == ".gguf"]
    if ".safetensors" in suffixes:
        if not (folder / "config.json").is_file():
            raise PairError(f"{name}: config.json is missing beside the weights")
        return None
    if len(ggufs) == 1:
        return ggufs[0]
    if ggufs:
        raise PairError(f"{name}: the folder holds {len(ggufs)} GGUF files; leave one in it")
    if suffixes & {".bin", ".pt", ".pth", ".ckpt", ".pkl"}:
        raise PairError(
            f"{name}: the weights are pickle files, which can run code when they are opened;"
            " choose a copy in safetensors format"
        )
    raise PairError(
        f"{name}: no weights in safetensors format are there; choose a model that has them"
    )


def parameters(folder: Path, gguf: Path | None) -> int:
    """How many numbers the weights in ``folder`` hold. Raises PairError."""
    try:
        if gguf is not None:
            from gguf import GGUFReader

            return sum(int(tensor.n_elements) for tensor in GGUFReader(gguf).tensors)
        return sum(safetensors_parameters(path) for path in folder.glob("*.safetensors"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PairError(
            f"the weights in {folder} are damaged ({one_line(error)}); fetch them again"
        ) from error


def read_id_map(name: str, path: Path, head: int) -> tuple[tuple[int, ...], int]:
    """A reduced vocabulary's ids in the target's, one for each of ``head`` rows, and the row that
    stands for all others. Raises PairError."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        ids, unknown = fields["ids"], fields["unknown"]
        whole = all(type(token) is int and token >= 0 for token in [*ids, unknown])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PairError(f"{name}: ids.json cannot be read ({one_line(error)})") from error
    if not whole or len(set(ids)) != len(ids) or len(ids) != head or unknown >= head:
        raise PairError(
            f"{name}: ids.json must list {head} different target ids, one for each row of the"
            ' draft\'s head, and an "unknown" that is one of the rows'
        )
    return tuple(ids), unknown
