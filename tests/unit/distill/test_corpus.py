"""The target writes its own training text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_corpus import END, TEMPLATE, split_turns, tiny_target
from transformers import LlamaForCausalLM

from specviz.datastore import Datastore
from specviz.distill.commands import loss_weights, main
from specviz.distill.corpus import USER_LIMIT, pick, write_batch
from specviz.distill.training import answer_positions


def test_corpus_rows_follow_the_chat_template(corpus: np.ndarray) -> None:
    assert corpus.shape == (12, 120)
    assert corpus.dtype == np.uint16
    turns = [turn for row in corpus.tolist() for turn in split_turns(row)]
    assert any(who == "assistant" for who, _ in turns)


def test_corpus_begins_some_user_turns_with_a_task(corpus: np.ndarray) -> None:
    starts = [row[5:8] == [11, 12, 13] for row in corpus.tolist()]
    assert any(starts)
    assert not all(starts)


def test_corpus_ends_a_user_turn_at_its_limit() -> None:
    talker = tiny_target()
    with torch.no_grad():  # a target that hardly ever ends a turn by itself
        talker.model.embed_tokens.weight[END] = 0.0
    rows = write_batch(talker, TEMPLATE, [], rows=4, length=USER_LIMIT + 20, seed=0)
    turns = [turn for row in rows.tolist() for turn in split_turns(row)]
    assert turns
    assert max(len(text) for _, text in turns) <= USER_LIMIT


def test_corpus_of_a_seed_is_always_the_same(target: LlamaForCausalLM, corpus: np.ndarray) -> None:
    again = write_batch(target, TEMPLATE, [[11, 12, 13]], rows=12, length=120, seed=3)
    other = write_batch(target, TEMPLATE, [[11, 12, 13]], rows=12, length=120, seed=4)
    assert (again == corpus).all()
    assert (other != corpus).any()


def test_pick_samples_the_softmax_among_the_narrow_set() -> None:
    logits = torch.zeros(4000, 60)
    logits[:, 0] = 1.0
    logits[:, 55:] = -1.0
    heat = torch.ones(4000)
    drawn = pick(logits, heat, torch.ones(4000, dtype=torch.bool), torch.Generator().manual_seed(0))
    share = (drawn == 0).float().mean().item()
    assert share == pytest.approx(np.e / (np.e + 54), abs=0.01)
    cold = pick(logits, heat * 0, torch.zeros(4000, dtype=torch.bool), torch.Generator())
    assert (cold == 0).all()


def test_answer_positions_are_those_whose_next_id_is_the_answers() -> None:
    #     system      user  header  answer end header'  user
    row = [1, 7, 2, 1, 8, 30, 2, 5, 1, 9, 31, 32, 2, 5, 1, 8, 33]
    marked = answer_positions(np.array([row]), (END, 5, 1, 9), END)[0]
    assert [row[t + 1] for t in np.flatnonzero(marked)] == [31, 32, END]


def test_loss_weights_leave_out_what_all_rows_begin_with() -> None:
    rows = np.array([[1, 8, 30, 2, 5, 1, 9, 31], [1, 8, 33, 2, 5, 1, 9, 32]])
    weights = loss_weights(rows, (END, 5, 1, 9), END, user=0.25)
    assert weights.tolist() == [[0, 0.25, 0.25, 0.25, 0.25, 0.25, 1, 1]] * 2


def test_a_store_holds_the_rows_without_their_common_beginning(tmp_path: Path) -> None:
    rows = np.array([[1, 2, 3, 4], [1, 2, 5, 6]], np.uint16)
    np.savez(tmp_path / "corpus.npz", ids=rows)
    out = tmp_path / "store.npz"
    assert main(["store", "--corpus", str(tmp_path / "corpus.npz"), "--out", str(out)]) == 0
    store = Datastore.load(out)
    assert store.longest([3], 1, 1) is not None
    assert store.longest([1, 2], 2, 1) is None
    assert store.longest([4, 5], 2, 2) is None
