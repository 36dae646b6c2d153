"""Imports point one way, and the records can be read without torch."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "specviz"

# A module may import from its own layer and from those before it.
LAYERS = [
    {"__init__"},
    {"records", "theory", "text", "prompts"},
    {"trace", "metrics", "intervals", "rows", "figures", "diagnosis"}
    | {"catalogue", "gallery", "host"},
    {"sampling", "schedule", "timing", "attention", "llama", "graphs", "cache"}
    | {"chat", "datastore"},
    {"feature"},
    {"drafters"},
    {"decode"},
    {"race"},
    {"sweep", "lossless", "export", "distill"},
    {"weights", "pairs"},
    {"ui", "cli", "__main__"},
]
LIGHT = {"records", "trace", "catalogue", "theory", "prompts", "metrics"}
LIGHT |= {"intervals", "rows", "figures", "diagnosis", "gallery", "host"}
HEAVY = {"torch", "transformers", "gradio", "numpy", "safetensors"}
LOADERS = {"weights", "pairs"}


def files():
    return sorted(ROOT.rglob("*.py"))


def family(name: str) -> str:
    """The first part of a module's name, ``pairs`` for all of pairs/."""
    return name.split(".")[0]


def imported(file: Path) -> set[str]:
    """Dotted names of everything ``file`` imports, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def own(file: Path) -> set[str]:
    """The families of this package that ``file`` imports."""
    inside = [name.split(".", 1)[1] for name in imported(file) if name.startswith("specviz.")]
    known = set().union(*LAYERS)
    return {family(name) for name in inside if family(name) in known}


def name_of(file: Path) -> str:
    return family(str(file.relative_to(ROOT).with_suffix("")).replace("/", "."))


def layer_of(name: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if name in layer)


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_one_way(file):
    for other in own(file):
        assert layer_of(other) <= layer_of(name_of(file)), f"{name_of(file)} imports {other}"


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_light_modules_import_nothing_heavy(file):
    if name_of(file) in LIGHT:
        assert not {name.split(".")[0] for name in imported(file)} & HEAVY


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_only_the_page_and_the_command_line_load_models(file):
    if name_of(file) not in LOADERS | {"ui", "cli"}:
        assert not own(file) & LOADERS


def test_only_pairs_and_training_call_from_pretrained():
    callers = {name_of(f) for f in files() if ".from_pretrained(" in f.read_text()}
    assert callers <= {"pairs", "weights", "distill"}
