"""Which device, which number format, how much memory."""

from __future__ import annotations

import pytest
import torch

from specviz.pairs import PairError, choose_dtype, machine

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "capabilities, expected",
    [
        ({"avx512_bf16": True}, torch.bfloat16),
        ({"amx_bf16": True}, torch.bfloat16),
        ({"avx2": True}, torch.float32),
        ({}, torch.float32),
    ],
)
def test_cpu_computes_in_bfloat16_only_where_it_is_native(capabilities, expected, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert choose_dtype(CPU) == expected


def test_cpu_of_an_older_torch_computes_in_float32(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert choose_dtype(CPU) == torch.float32


def test_dtype_can_be_forced_and_float16_needs_cuda():
    assert choose_dtype(CPU, "bfloat16") == torch.bfloat16
    assert choose_dtype(torch.device("cuda"), "float16") == torch.float16
    with pytest.raises(PairError, match="CUDA"):
        choose_dtype(CPU, "float16")
    with pytest.raises(PairError, match="int3"):
        choose_dtype(CPU, "int3")


def test_container_limit_counts_what_can_be_reclaimed(tmp_path):
    assert machine._container_memory(tmp_path) > 2**60
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 100\n")
    assert machine._container_memory(tmp_path) == 400
    (tmp_path / "memory.max").write_text("max\n")
    assert machine._container_memory(tmp_path) > 2**60
