"""Models of a pair must agree on every id."""

from __future__ import annotations

import json

import checkpoints
import pytest
from checkpoints import load

from specviz.cache import CachedModel
from specviz.pairs import PairError


def test_padded_heads_are_cut_to_the_shared_real_ids(tmp_path):
    target = checkpoints.save(tmp_path / "target", padding=20)
    draft = checkpoints.save(tmp_path / "draft", seed=1, padding=84)
    pair = load(target, draft)
    real = len(checkpoints.tokenizer())
    assert pair.target.vocabulary == pair.draft.vocabulary == real
    assert CachedModel(pair.draft).append([5]).shape == (1, real)


def test_tokenizers_that_differ_in_one_id_are_refused_naming_it(tmp_path, target):
    words = checkpoints.tokenizer()
    path = checkpoints.save(tmp_path / "draft", seed=1) / "tokenizer.json"
    document = json.loads(path.read_text())
    vocabulary = document["model"]["vocab"]
    swapped = {word: token for word, token in vocabulary.items() if token in (40, 41)}
    first, second = sorted(swapped, key=swapped.get)
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]
    path.write_text(json.dumps(document))
    with pytest.raises(PairError) as caught:
        load(target, tmp_path / "draft")
    text = str(caught.value)
    assert "id 40" in text
    assert repr(words.convert_ids_to_tokens(40)) in text
    assert repr(words.convert_ids_to_tokens(41)) in text


def test_draft_that_lacks_ids_is_refused(tmp_path):
    more = checkpoints.tokenizer(extra=("<|tool|>",))
    target = checkpoints.save(tmp_path / "target", words=more)
    draft = checkpoints.save(tmp_path / "draft", seed=1)
    with pytest.raises(PairError, match=r"<\|tool\|>.*nothing"):
        load(target, draft)


def test_reduced_draft_keeps_its_map_and_its_own_vocabulary(tmp_path, target):
    ids = [0, 2, 50, 60, 70]
    draft = checkpoints.save_reduced_draft(tmp_path / "draft", ids, unknown=0)
    pair = load(target, draft)
    assert pair.draft_ids == tuple(ids)
    assert pair.draft_unknown == 0
    assert pair.draft.vocabulary == 5


@pytest.mark.parametrize(
    "content",
    [
        '{"ids": [0, 2, 50, 60], "unknown": 0}',
        '{"ids": [0, 2, 50, 60, 60], "unknown": 0}',
        '{"ids": [0, 2, 50, 60, -7], "unknown": 0}',
        '{"ids": [0, 2, 50, 60, 1.5], "unknown": 0}',
        '{"ids": [0, 2, 50, 60, 70], "unknown": 5}',
        '{"ids": [0, 2, 50, 60, 70]}',
        "not json",
        "[]",
    ],
)
def test_wrong_id_map_is_refused(content, tmp_path, target):
    draft = checkpoints.save_reduced_draft(tmp_path / "draft", [0, 2, 50, 60, 70])
    (draft / "ids.json").write_text(content)
    with pytest.raises(PairError, match=r"ids\.json"):
        load(target, draft)


@pytest.mark.parametrize("ids", [[0, 2, 50, 60, 9999], [2, 0, 50, 60, 70]])
def test_reduced_draft_of_another_target_is_refused(ids, tmp_path, target):
    draft = checkpoints.save_reduced_draft(tmp_path / "draft", ids)
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps({**config, "eos_token_id": 1}))
    (draft / "generation_config.json").unlink()
    with pytest.raises(PairError, match="made for another target"):
        load(target, draft)


def test_reduced_draft_is_no_target(tmp_path):
    draft = checkpoints.save_reduced_draft(tmp_path / "draft", [0, 2, 50])
    with pytest.raises(PairError, match="choose another target"):
        load(draft)
