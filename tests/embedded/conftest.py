"""The embedded pair, loaded once for all tests that run it for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specviz.pairs import Shelf, catalogue
from specviz.weights import WeightsError

ROOT = Path(__file__).parents[2]


def _load(dtype):
    spec = catalogue()[0]
    assert spec.target == "embedded", "the first pair must need no hub"
    try:
        return Shelf().load(spec.target, spec.draft, dtype, name=spec.name)
    except WeightsError as error:
        pytest.skip(f"the embedded weights cannot be had here: {error}")


@pytest.fixture(scope="session")
def exact():
    """The pair in float32, where both lanes must agree to the token."""
    return _load("float32")


@pytest.fixture(scope="session")
def pair():
    """The pair as the page loads it."""
    return _load("auto")


@pytest.fixture(scope="session")
def prompts():
    """The built-in example prompts."""
    return json.loads((ROOT / "assets" / "prompts.json").read_text(encoding="utf-8"))
