"""Tests that need a CUDA GPU; elsewhere they are skipped, saying so.

    pytest tests/gpu -s

runs them and prints what was measured.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA GPU, and there is none on this machine")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def gpu():
    """The first GPU."""
    return torch.device("cuda", 0)
