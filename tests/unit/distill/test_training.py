"""Training goes on where it was interrupted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_corpus import END
from transformers import LlamaForCausalLM

from specviz.distill.student import IdMap, choose_ids, cut_student
from specviz.distill.training import Data, Trainer, TrainSettings, target_states, train


def make_trainer(
    target: LlamaForCausalLM, corpus: np.ndarray, folder: Path, settings: TrainSettings
) -> tuple[Trainer, IdMap]:
    ids = torch.from_numpy(corpus.astype(np.int64))
    id_map = choose_ids(corpus, 24, [1, END])
    student = cut_student(target, id_map, [0, 2], 16, ids)
    head = target.lm_head.weight[torch.tensor(id_map.ids)].detach().clone()
    folder.mkdir(exist_ok=True)
    states = target_states(target, ids, folder / "states.npy", rows=5)
    weights = torch.ones(ids.shape)
    return Trainer(student, head, id_map, Data(ids, weights, states), settings), id_map


SETTINGS = TrainSettings(rows=3, passes=4, learning_rate=5e-3, held_out=3, evaluate_every=2)


def run_training(trainer: Trainer, folder: Path) -> dict[str, Any]:
    steps: list[int] = []
    return train(
        trainer,
        evaluate=lambda: float(trainer.step),
        keep_best=lambda: steps.append(trainer.step),
        checkpoint=folder / "checkpoint.pt",
    )


def test_resumed_training_equals_uninterrupted_training(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    whole, _ = make_trainer(target, corpus, tmp_path / "whole", SETTINGS)
    finished = run_training(whole, tmp_path / "whole")

    first, _ = make_trainer(target, corpus, tmp_path / "cut", SETTINGS)
    first.total_steps, length = 6, first.total_steps
    rate, first.rate = first.rate, lambda step: whole.rate(step)  # type: ignore[method-assign]
    run_training(first, tmp_path / "cut")
    assert rate(5) != whole.rate(5)
    assert first.step == 6

    second, _ = make_trainer(target, corpus, tmp_path / "cut", SETTINGS)
    resumed = run_training(second, tmp_path / "cut")
    assert second.step == length
    assert resumed["tokens"] == finished["tokens"]
    for name, weight in whole.student.state_dict().items():
        assert torch.equal(weight, second.student.state_dict()[name]), name


def test_training_lowers_the_loss(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, passes=20)
    trainer, _ = make_trainer(target, corpus, tmp_path / "work", settings)
    rows = np.arange(9)
    before = trainer.loss(rows).item()
    run_training(trainer, tmp_path / "work")
    assert trainer.loss(rows).item() < before - 0.05


def test_a_checkpoint_of_other_settings_is_refused(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    trainer, _ = make_trainer(target, corpus, tmp_path / "work", SETTINGS)
    run_training(trainer, tmp_path / "work")
    other, _ = make_trainer(target, corpus, tmp_path / "work", replace(SETTINGS, seed=1))
    with pytest.raises(ValueError, match="other settings"):
        run_training(other, tmp_path / "work")


def test_training_stops_when_the_score_no_longer_rises(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    trainer, _ = make_trainer(
        target, corpus, tmp_path / "work", replace(SETTINGS, passes=50, patience=2)
    )
    kept: list[int] = []
    result = train(
        trainer, lambda: -1.0, lambda: kept.append(trainer.step), tmp_path / "work" / "c.pt"
    )
    assert kept == [2]
    assert result["best_step"] == 2
    assert result["steps"] == 6


def test_an_interrupted_pass_of_the_target_continues(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    ids = torch.from_numpy(corpus.astype(np.int64))
    whole = target_states(target, ids, tmp_path / "whole.npy", rows=4)

    calls = 0

    class Interrupted:
        config, device = target.config, target.device

        @staticmethod
        def model(**inputs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise KeyboardInterrupt
            return target.model(**inputs)

    with pytest.raises(KeyboardInterrupt):
        target_states(Interrupted(), ids, tmp_path / "cut.npy", rows=4)
    again = target_states(target, ids, tmp_path / "cut.npy", rows=4)
    assert (again == whole).all()


def test_states_of_another_corpus_are_refused(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    ids = torch.from_numpy(corpus.astype(np.int64))
    target_states(target, ids, tmp_path / "states.npy")
    with pytest.raises(ValueError, match="another corpus"):
        target_states(target, ids[:5], tmp_path / "states.npy")
