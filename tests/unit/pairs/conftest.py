"""A tiny target in a folder, loaded on the CPU."""

from __future__ import annotations

import checkpoints
import pytest
import torch

from specviz import pairs

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setattr(pairs, "choose_device", lambda: CPU)


@pytest.fixture
def target(tmp_path):
    return str(checkpoints.save(tmp_path / "target"))
