"""A pair is loaded once, checked and described."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace

import checkpoints
import pytest
import torch
from checkpoints import load

from specviz import pairs
from specviz.pairs import PairError, Shelf, models


def test_pair_is_loaded_checked_and_described(tmp_path, target):
    draft = checkpoints.save(tmp_path / "draft", seed=1, layers=1)
    pair = load(target, draft, name="tiny")
    assert pair.info.name == "tiny"
    assert pair.info.target_parameters > pair.info.draft_parameters > 0
    assert pair.machine.dtype == "float32"
    assert pair.machine.versions["torch"] == torch.__version__
    assert pair.target.vocabulary == pair.draft.vocabulary == len(pair.tokenizer)
    assert pair.eos_ids == (2,)
    assert {0, 1, 2} <= pair.special_ids
    assert pair.draft_ids is None
    assert not pair.target.module.training


def test_models_are_read_one_at_a_time(tmp_path, target, monkeypatch):
    from transformers import LlamaForCausalLM

    reading, overlaps = threading.Lock(), []
    by_transformers = LlamaForCausalLM.from_pretrained.__func__

    def read(cls, *given, **options):
        overlaps.append(not reading.acquire(blocking=False))
        try:
            time.sleep(0.2)
            return by_transformers(cls, *given, **options)
        finally:
            if not overlaps[-1]:
                reading.release()

    monkeypatch.setattr(LlamaForCausalLM, "from_pretrained", classmethod(read))
    other = str(checkpoints.save(tmp_path / "other", seed=1))
    shelf = Shelf()
    threads = [
        threading.Thread(target=shelf.load, args=(source, "", dtype))
        for source, dtype in ((target, "float32"), (other, "bfloat16"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == [False, False]


def test_loading_twice_is_loading_once(tmp_path, target, monkeypatch):
    reads = []
    read = pairs._read
    monkeypatch.setattr(pairs, "_read", lambda *given: reads.append(given[0]) or read(*given))
    draft = str(checkpoints.save(tmp_path / "draft", seed=1))
    shelf = Shelf()
    first = shelf.load(target, draft, "float32")
    assert shelf.load(target, draft, "float32") is first
    assert reads == [target, draft]


def test_target_shared_by_two_pairs_is_loaded_once(tmp_path, target):
    draft = str(checkpoints.save(tmp_path / "draft", seed=1))
    shelf = Shelf()
    with_draft = shelf.load(target, draft, "float32")
    alone = shelf.load(target, "", "float32")
    assert with_draft.target.module is alone.target.module
    assert alone.draft is None


def test_those_who_ask_at_once_wait_for_one_load(target, monkeypatch):
    reads = []
    read = pairs._read
    entered, go_on = threading.Event(), threading.Event()

    def slow(*given):
        reads.append(given[0])
        entered.set()
        assert go_on.wait(20)
        return read(*given)

    monkeypatch.setattr(pairs, "_read", slow)
    shelf = Shelf()
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(shelf.load(target, "", "float32")))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert entered.wait(20)
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(reads) == 1
    assert results[0] is results[1] is results[2]


def test_failed_load_leaves_nothing_and_can_be_tried_again(target, monkeypatch):
    shelf = Shelf()
    with monkeypatch.context() as patch:
        patch.setattr(pairs, "_warm_up", lambda pair: (_ for _ in ()).throw(PairError("no")))
        with pytest.raises(PairError):
            shelf.load(target, "", "float32")
    assert not shelf._pairs
    assert not shelf._models
    assert shelf.load(target, "", "float32").target.name == target


def test_shelf_drops_the_pair_not_asked_for_the_longest(tmp_path):
    folders = [str(checkpoints.save(tmp_path / name, seed=i)) for i, name in enumerate("abc")]
    shelf = Shelf(limit=2)
    first, second = (shelf.load(folder, "", "float32") for folder in folders[:2])
    assert shelf.load(folders[0], "", "float32") is first
    shelf.load(folders[2], "", "float32")
    assert len(shelf._models) == 2
    assert shelf.load(folders[0], "", "float32") is first
    assert shelf.load(folders[1], "", "float32") is not second


def test_dtypes_are_kept_apart(target):
    shelf = Shelf()
    assert shelf.load(target, "", "float32").target.module.dtype == torch.float32
    assert shelf.load(target, "", "bfloat16").target.module.dtype == torch.bfloat16


def test_warm_up_meets_a_context_shorter_than_a_round(tmp_path):
    folder = checkpoints.save(tmp_path / "short", context=4)
    assert load(folder).context == 4


def test_every_eos_id_is_kept(tmp_path, target):
    path = tmp_path / "target" / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": [7, 9]}))
    assert load(target).eos_ids == (7, 9, 2)


def test_short_draft_does_not_cut_the_target(tmp_path, target):
    draft = checkpoints.save(tmp_path / "draft", seed=1, context=32)
    pair = load(target, draft)
    assert (pair.context, pair.target.context, pair.draft.context) == (256, 256, 32)


def test_context_is_found_where_a_config_names_none():
    config = SimpleNamespace(max_position_embeddings=None)
    assert models._context(config, SimpleNamespace(model_max_length=77)) == 77
    endless = SimpleNamespace(model_max_length=10**30)
    assert models._context(config, endless) == models.UNLIMITED_CONTEXT
    assert models._context(SimpleNamespace(n_positions=1024), None) == 1024
