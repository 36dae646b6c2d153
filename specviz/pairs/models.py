"""Reading one model into memory, and whether two of them make a pair.

Only safetensors and GGUF files are opened: pickled checkpoints can run code. Code that comes with
a model is never run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from specviz import feature
from specviz.attention import leave_out_cudnn
from specviz.catalogue import (
    DRAFTS,
    EMBEDDED,
    EMBEDDED_FEATURES,
    EMBEDDED_STORE,
    safetensors_parameters,
)
from specviz.datastore import Datastore
from specviz.faults import out_of_memory
from specviz.feature import FeatureModel
from specviz.graphs import Graphs
from specviz.llama import LeanLlama, lean
from specviz.pairs.files import check_files, parameters, read_id_map
from specviz.pairs.machine import PairError
from specviz.pairs.memory import ran_out
from specviz.pairs.placement import place
from specviz.pairs.replay import NOT_LEAN, feature_graphs, graphs_for
from specviz.weights import Progress, WeightsError, embedded_target, hub_folder
from specviz.weights.hub import one_line, quiet_transformers

UNKNOWN_KIND = (
    "Unrecognized configuration class",
    "Unrecognized model",
    "does not recognize this architecture",
)
UNLIMITED_CONTEXT = 32_768
"""Taken where neither config nor tokenizer names a limit."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory, as it is shared by the pairs it belongs to.

    ``head`` is the number of rows of logits; ``tokenizer`` is None for a draft over a reduced
    vocabulary, whose ``ids`` are the target's ids of its own 0, 1, 2, ... ``lean`` is the module
    laid out for the lean pass, where that applies, and ``graphs`` its decode steps as CUDA graphs,
    with a note for the machine's record; ``datastore`` is text that it wrote.
    ``features`` is the folder of a feature draft: the one that ships with a target, or, where
    ``module`` is None, the draft itself, which needs its target to be read.
    """

    name: str
    module: Any
    tokenizer: Any
    head: int
    context: int
    parameters: int
    eos_ids: tuple[int, ...]
    ids: tuple[int, ...] | None = None
    unknown: int = 0
    lean: LeanLlama | None = None
    graphs: Graphs | None = None
    graphs_note: str = ""
    datastore: Datastore | None = None
    features: Path | None = None


def locate(source: str, progress: Progress) -> Path:
    """The folder that holds a model's files, fetched if need be.

    ``source`` is as in PairSpec. Raises PairError.
    """
    name = source.strip()
    if not name:
        raise PairError("name a model: a Hub id such as owner/name, or a folder")
    try:
        if name == EMBEDDED:
            return embedded_target(progress)
        for folder in (DRAFTS / name, Path(name).expanduser()):
            if folder.is_dir():
                return folder.resolve()
        if name[0] in ".~/\\" or Path(name).is_absolute():
            raise PairError(f"{name}: there is no such folder")
        return hub_folder(name, progress)
    except WeightsError as error:
        raise PairError(str(error)) from error
    except (OSError, RuntimeError) as error:
        if out_of_memory(error):
            raise PairError(ran_out(error)) from None
        raise PairError(f"{name}: {one_line(error)}") from error


def load_model(
    source: str, folder: Path, dtype: torch.dtype, device: torch.device, progress: Progress
) -> Loaded:
    """Read the model in ``folder``, named ``source``, ready to be run.

    Raises PairError when the files are not usable, the architecture is not a causal language
    model that transformers knows, or the memory does not suffice.
    """
    name = "SmolLM2-135M-Instruct" if source == EMBEDDED else source
    if (folder / feature.CONFIG).is_file():
        return _unread_feature_draft(name, folder)
    gguf = check_files(name, folder)
    size = parameters(folder, gguf)
    placement = place(name, size, dtype, device)
    label = f"Loading {name} ({placement.words})"
    progress(label, None)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    if gguf is not None:
        options["gguf_file"] = gguf.name
    where = {} if placement.device_map is None else {"device_map": placement.device_map}
    reduced = (folder / "ids.json").is_file()
    with _errors_named(name, size), quiet_transformers(label, progress):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = None if reduced else AutoTokenizer.from_pretrained(folder, **options)
        from_pretrained: Any = AutoModelForCausalLM.from_pretrained
        module, found = from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation="sdpa",
            use_safetensors=gguf is None,
            output_loading_info=True,
            **where,
            **options,
        )
    _check_whole(name, module, found)
    if not where:
        module = module.to(placement.device)
    return _loaded(name, source, module, tokenizer, folder if reduced else None)


def _loaded(name: str, source: str, module: Any, tokenizer: Any, id_map: Path | None) -> Loaded:
    """What the pairs of a module that stands where it is to run need to know of it. ``id_map`` is
    the folder of a draft over a reduced vocabulary."""
    module = module.eval().requires_grad_(False)
    config = module.config.get_text_config()
    head = module.get_output_embeddings().weight.shape[0]
    ids, unknown = read_id_map(name, id_map / "ids.json", head) if id_map else (None, 0)
    context = _context(config, tokenizer)
    return Loaded(
        name=name,
        module=module,
        tokenizer=tokenizer,
        head=head,
        context=context,
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        eos_ids=_eos_ids(module, tokenizer),
        ids=ids,
        unknown=unknown,
        **_quickest(module, context),
        datastore=_datastore(source),
        features=EMBEDDED_FEATURES if source == EMBEDDED and EMBEDDED_FEATURES.is_dir() else None,
    )


def _quickest(module: Any, context: int) -> dict[str, Any]:
    """The quicker forms of a module where it now stands, as fields of Loaded."""
    leave_out_cudnn()
    form = lean(module)
    graphs, note = graphs_for(form, context)
    if form is None and any(weight.device.type == "cuda" for weight in module.parameters()):
        note = NOT_LEAN
    return {"lean": form, "graphs": graphs, "graphs_note": note}


def moved(loaded: Loaded, device: torch.device) -> Loaded:
    """The model on another device. The one that was given is not to be used any more."""
    if loaded.module is None:
        return loaded
    module = loaded.module.to(device)
    return replace(loaded, module=module, **_quickest(module, loaded.context))


def _unread_feature_draft(name: str, folder: Path) -> Loaded:
    """A feature draft's place in a pair; its weights are read beside its target's."""
    try:
        parameters = safetensors_parameters(folder / feature.WEIGHTS)
    except (OSError, ValueError) as error:
        raise PairError(f"{name}: the weights cannot be read ({one_line(error)})") from error
    return Loaded(name, None, None, 0, UNLIMITED_CONTEXT, parameters, (), features=folder)


def read_feature_draft(folder: Path, target: Loaded) -> FeatureModel:
    """The feature draft in ``folder`` for ``target``. Raises PairError where it does not fit."""
    if target.lean is None:
        raise PairError(
            f"{folder.name} reads the hidden states of a Llama on one device, and {target.name}"
            " is none; choose another draft"
        )
    try:
        model = FeatureModel.load(folder, target.lean)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise PairError(f"{folder.name} cannot be used: {one_line(error)}") from error
    if target.graphs is None:
        return model
    return feature_graphs(model, target.context, target.graphs.capture)


def _datastore(source: str) -> Datastore | None:
    """The store of the target's own text that ships with the embedded target."""
    if source != EMBEDDED or not EMBEDDED_STORE.exists():
        return None
    return Datastore.load(EMBEDDED_STORE)


def real_vocabulary(loaded: Loaded) -> int:
    """The number of ids that mean something: heads are often padded beyond the tokenizer's."""
    return min(loaded.head, max(loaded.tokenizer.get_vocab().values()) + 1)


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Ids that stand for no text: those with a role, and all others marked special."""
    marked = [token for token, entry in tokenizer.added_tokens_decoder.items() if entry.special]
    return frozenset([*marked, *tokenizer.all_special_ids])


def check_pair(target: Loaded, draft: Loaded, vocabulary: int) -> None:
    """Whether ``draft`` speaks of the same tokens as ``target``, whose real ids are
    0 .. ``vocabulary`` - 1. Raises PairError naming the first difference."""
    if draft.module is None:
        return
    if draft.ids is not None:
        outside = next((token for token in draft.ids if token >= vocabulary), None)
        foreign = [e for e in draft.eos_ids if draft.ids[e] not in target.eos_ids]
        if outside is not None or foreign:
            raise PairError(
                f"{draft.name} was made for another target than {target.name}: its ids.json does"
                " not fit that vocabulary; choose the target it was trained for"
            )
        return
    theirs = _strings_by_id(draft.tokenizer)
    for token, text in sorted(_strings_by_id(target.tokenizer).items()):
        if token < vocabulary and theirs.get(token) != text:
            other = repr(theirs[token]) if token in theirs else "nothing"
            raise PairError(
                f"{target.name} and {draft.name} do not share a tokenizer: id {token} is"
                f" {text!r} in the first and {other} in the second; choose a draft of the"
                " target's own family"
            )
    if draft.head < vocabulary:
        raise PairError(
            f"{draft.name} knows {draft.head} ids and {target.name} {vocabulary}; choose a draft"
            " with the target's whole vocabulary"
        )


# --- files ---------------------------------------------------------------------------------


def _check_whole(name: str, module: Any, found: Any) -> None:
    """transformers fills weights that a checkpoint lacks with random numbers."""
    lacking = sorted(found["missing_keys"]) + sorted(str(k) for k in found["mismatched_keys"])
    if lacking:
        raise PairError(
            f"{name} is no whole language model: {len(lacking)} of its weights are missing or of"
            f" another shape, first {lacking[0]}; choose another model"
        )
    if module.config.is_encoder_decoder or module.get_output_embeddings() is None:
        raise PairError(f"{name} is no causal language model; choose one that writes text")


@contextmanager
def _errors_named(name: str, size: int) -> Iterator[None]:
    """Whatever transformers raises, as one sentence. ``size`` is in parameters."""
    try:
        yield
    except Exception as error:
        if out_of_memory(error):
            raise PairError(ran_out(error, name, size)) from None
        text = one_line(error)
        if "trust_remote_code" in text or "custom code" in text:
            text = (
                "it needs code of its own to run, and specviz runs no code that comes with models"
            )
        elif any(part in text for part in UNKNOWN_KIND):
            text = "transformers knows no causal language model of this kind"
        raise PairError(f"{name} cannot be loaded: {text}") from error


# --- where it goes, what it can ------------------------------------------------------------


def _context(config: Any, tokenizer: Any) -> int:
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    limits = [getattr(config, name, None) for name in names]
    if not any(limits) and tokenizer is not None:
        limits = [tokenizer.model_max_length]
    known = [limit for limit in limits if isinstance(limit, int) and 0 < limit < 10**9]
    return min(known, default=UNLIMITED_CONTEXT)


def _eos_ids(module: Any, tokenizer: Any) -> tuple[int, ...]:
    """Every id that ends a text, from generation config, config and tokenizer."""
    found: list[Any] = []
    for holder in (module.generation_config, module.config.get_text_config(), tokenizer):
        value = getattr(holder, "eos_token_id", None)
        found += value if isinstance(value, (list, tuple)) else [value]
    return tuple(dict.fromkeys(token for token in found if isinstance(token, int)))


def _strings_by_id(tokenizer: Any) -> dict[int, str]:
    return {token: text for text, token in tokenizer.get_vocab().items()}
