"""A draft cut out of its target."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_corpus import END, VOCABULARY, tiny_target, whole_map
from transformers import LlamaForCausalLM

from specviz.distill.student import (
    IdMap,
    choose_ids,
    cut_student,
    load_draft,
    narrow_student,
    save_draft,
)


def test_id_map_round_trip(tmp_path: Path) -> None:
    id_map = choose_ids(np.array([[9, 9, 9, 4, 4, 1, 6]]), size=5, special=[1, 2])
    assert id_map.ids == (0, 1, 2, 9, 4)
    known = torch.tensor(id_map.ids)
    assert torch.equal(id_map.to_target(id_map.to_draft(known)), known)
    assert id_map.to_draft(torch.tensor([6, 39])).tolist() == [id_map.unknown] * 2
    id_map.save(tmp_path / "ids.json")
    assert IdMap.load(tmp_path / "ids.json") == id_map
    assert json.loads((tmp_path / "ids.json").read_text()) == {"ids": [0, 1, 2, 9, 4], "unknown": 0}


def test_id_map_refuses_an_id_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        IdMap((0, 1, 1), 0)


def test_a_student_with_every_layer_neuron_and_id_is_the_target(
    target: LlamaForCausalLM, corpus: np.ndarray
) -> None:
    rows = torch.from_numpy(corpus.astype(np.int64))
    student = cut_student(target, whole_map(), [0, 1, 2], 24, rows)
    with torch.no_grad():
        torch.testing.assert_close(student(rows).logits, target(rows).logits)


def test_a_cut_student_keeps_the_neurons_that_matter(
    target: LlamaForCausalLM, corpus: np.ndarray
) -> None:
    rows = torch.from_numpy(corpus.astype(np.int64))
    weak = tiny_target()
    down = weak.model.layers[1].mlp.down_proj.weight
    with torch.no_grad():
        down[:, [0, 5, 7]] = 0.0
    student = cut_student(weak, whole_map(), [1], 21, rows)
    kept = [i for i in range(24) if i not in (0, 5, 7)]
    assert torch.equal(student.model.layers[0].mlp.down_proj.weight, down[:, kept])


def test_a_narrow_student_sees_the_embeddings_along_their_main_directions(
    target: LlamaForCausalLM,
) -> None:
    student = narrow_student(target, whole_map(), 3, 8, 12)
    own, theirs = student.model.embed_tokens.weight, target.model.embed_tokens.weight
    assert own.shape == (VOCABULARY, 8)
    assert student.config.num_hidden_layers == 3
    assert own.norm().item() == pytest.approx(theirs.norm().item(), rel=1e-4)
    alike = torch.corrcoef(torch.stack([(own @ own.T).ravel(), (theirs @ theirs.T).ravel()]))[0, 1]
    assert alike > 0.8
    assert torch.isfinite(student(torch.tensor([[1, 2, 3]])).logits).all()


def test_a_width_that_heads_do_not_fill_is_refused(target: LlamaForCausalLM) -> None:
    with pytest.raises(ValueError, match="multiple of the head size, 4"):
        narrow_student(target, whole_map(), 1, 10, 12)


def test_a_saved_draft_loads_as_an_ordinary_llama(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    rows = torch.from_numpy(corpus.astype(np.int64))
    id_map = choose_ids(corpus, 20, [1, END])
    student = cut_student(target, id_map, [0, 2], 16, rows)
    size = save_draft(student, id_map, tmp_path / "draft")
    assert size == (tmp_path / "draft" / "model.safetensors").stat().st_size
    loaded, loaded_map = load_draft(tmp_path / "draft", torch.bfloat16)
    for name, weight in student.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight.to(torch.bfloat16)), name
    assert loaded_map == id_map
    files = sorted(path.name for path in (tmp_path / "draft").iterdir())
    assert files == ["config.json", "ids.json", "model.safetensors"]
