"""Pairs of tiny checkpoints on disk: what is refused and why, what is cut, loaded once."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import checkpoints
import pytest
import torch

from specviz import catalogue as offered
from specviz import pairs
from specviz.cache import CachedModel
from specviz.chat import PromptError, encode
from specviz.pairs import (
    PairError,
    PairSpec,
    Shelf,
    choose_dtype,
    machine,
    models,
    why_not,
)
from specviz.weights import WeightsError

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    monkeypatch.setattr(pairs, "choose_device", lambda: CPU)


@pytest.fixture
def target(tmp_path):
    return str(checkpoints.save(tmp_path / "target"))


def load(target, draft="", **given):
    return Shelf().load(str(target), str(draft), given.pop("dtype", "float32"), **given)


# --- loading -------------------------------------------------------------------------------


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


# --- vocabularies --------------------------------------------------------------------------


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


def test_every_eos_id_is_kept(tmp_path, target):
    path = tmp_path / "target" / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": [7, 9]}))
    assert load(target).eos_ids == (7, 9, 2)


# --- context -------------------------------------------------------------------------------


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


# --- what is refused -----------------------------------------------------------------------


def test_pickled_weights_are_refused_unread(tmp_path, target):
    for path in (tmp_path / "target").glob("*.safetensors"):
        path.unlink()
    (tmp_path / "target" / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(PairError, match="pickle"):
        load(target)


def test_code_that_comes_with_a_model_is_not_run(tmp_path, target):
    folder = tmp_path / "target"
    marker = tmp_path / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {
            "AutoConfig": "modeling_own.Own",
            "AutoModelForCausalLM": "modeling_own.Own",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(PairError, match="runs no code that comes with models"):
        load(target)
    assert not marker.exists()


def test_weights_that_are_missing_are_not_filled_with_random_ones(tmp_path, target):
    from safetensors.torch import load_file, save_file

    path = tmp_path / "target" / "model.safetensors"
    state = load_file(path)
    del state["model.layers.1.mlp.up_proj.weight"]
    save_file(state, path, metadata={"format": "pt"})
    with pytest.raises(PairError, match=r"layers\.1\.mlp\.up_proj"):
        load(target)


def spoil(name, content=None):
    def apply(folder):
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)

    return apply


@pytest.mark.parametrize(
    "spoiled, words",
    [
        (spoil("config.json"), "config.json is missing"),
        (spoil("config.json", b"{"), "cannot be loaded"),
        (spoil("config.json", b'{"model_type": "no-such-kind"}'), "no causal language model"),
        (spoil("config.json", b'{"model_type": "vit"}'), "no causal language model"),
        (spoil("model.safetensors"), "no weights in safetensors format"),
        (spoil("model.safetensors", b"\0" * 4), "damaged"),
        (spoil("model.safetensors", b"\xff" * 64), "damaged"),
        (spoil("model.safetensors", b"\2" + b"\0" * 7 + b"[]"), "damaged"),
    ],
)
def test_spoiled_checkpoint_is_one_sentence(spoiled, words, tmp_path, target):
    spoiled(tmp_path / "target")
    with pytest.raises(PairError) as caught:
        load(target)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source, words",
    [
        ("./nowhere", "no such folder"),
        ("/nowhere", "no such folder"),
        ("", "name a model"),
        ("a\0b", "a"),
        ("x" * 5000, "x"),
    ],
)
def test_source_that_is_nothing_is_refused(source, words, monkeypatch):
    def offline(repository, progress):
        raise WeightsError(f"{repository}: the Hub is not reachable")

    monkeypatch.setattr(models, "hub_folder", offline)
    with pytest.raises(PairError, match=words):
        models.locate(source, lambda *given: None)


def test_what_weights_cannot_fetch_is_a_pair_error(monkeypatch):
    def fail(progress):
        raise WeightsError("nothing is reachable")

    monkeypatch.setattr(models, "embedded_target", fail)
    with pytest.raises(PairError, match="nothing is reachable"):
        load("embedded")


def test_model_that_does_not_fit_is_refused_before_it_is_read(target, monkeypatch):
    monkeypatch.setattr(models, "free_memory", lambda device: 1000)
    monkeypatch.setattr(models, "free_memory_everywhere", lambda device: 1000)
    with pytest.raises(PairError, match=r"needs .* GB of memory"):
        load(target)


def test_gguf_folder_is_read_and_two_files_are_refused(tmp_path):
    (tmp_path / "a.gguf").touch()
    assert models._check_files("x", tmp_path) == tmp_path / "a.gguf"
    (tmp_path / "b.gguf").touch()
    with pytest.raises(PairError, match="2 GGUF files"):
        models._check_files("x", tmp_path)


# --- device and dtype ----------------------------------------------------------------------


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


# --- the catalogue -------------------------------------------------------------------------


def test_each_finished_draft_folder_is_a_pair(tmp_path, monkeypatch):
    monkeypatch.setattr(offered, "DRAFTS", tmp_path)
    (only,) = offered.embedded_pairs()
    assert (only.target, only.draft) == ("embedded", "")
    checkpoints.save_reduced_draft(tmp_path / "tiny", [0, 2, 50])
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "note.md").write_text("")
    (spec,) = offered.embedded_pairs()
    assert spec.draft == "tiny"
    assert spec.draft_parameters > 0
    assert offered.find(spec.name) == spec
    assert offered.catalogue()[0] == spec


def test_missing_draft_folder_still_leaves_a_pair(tmp_path, monkeypatch):
    monkeypatch.setattr(offered, "DRAFTS", tmp_path / "absent")
    assert offered.embedded_pairs()[0].target == "embedded"


def test_names_are_unique_and_gammas_usable():
    names = [spec.name for spec in offered.catalogue()]
    assert len(set(names)) == len(names)
    assert all(1 <= spec.gamma <= 16 for spec in offered.catalogue())


def test_pair_too_large_for_the_memory_says_both_numbers(monkeypatch):
    monkeypatch.setattr(pairs, "free_memory_everywhere", lambda device: 8_000_000_000)
    big = PairSpec("big", "a/b", "c/d", "", 70_000_000_000, 8_000_000_000)
    reason = why_not(big, "bfloat16")
    assert "171.6 GB" in reason
    assert "8.0 GB" in reason
    assert why_not(PairSpec("small", "a/b", "c/d", "", 1_000_000, 0)) is None


def test_uncached_pair_cannot_run_with_the_hub_switched_off(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in why_not(PairSpec("x", "no-such-owner/no-such-model", "", ""))
    assert why_not(PairSpec("x", "embedded", "", "")) is None


def test_pair_on_the_shelf_can_always_run(target, monkeypatch):
    shelf = Shelf()
    shelf.load(target, "", "float32")
    monkeypatch.setattr(pairs, "free_memory_everywhere", lambda device: 0)
    spec = PairSpec("x", target, "", "", 10**12)
    assert shelf.why_not(spec, "float32") is None
    assert shelf.why_not(spec, "bfloat16") is not None


# --- prompts -------------------------------------------------------------------------------


def prompt_pair(words, context=256, vocabulary=None):
    target = SimpleNamespace(name="T", context=context, vocabulary=vocabulary or len(words))
    return SimpleNamespace(tokenizer=words, target=target)


def test_chat_prompt_follows_the_template_and_asks_for_an_answer():
    words = checkpoints.tokenizer()
    ids = encode(prompt_pair(words), "the sea", chat=True)
    expected = "<|im_start|>user\nthe sea<|im_end|>\n<|im_start|>assistant\n"
    assert words.decode(ids) == expected


def test_bos_is_never_doubled():
    template = "{{ bos_token }}" + checkpoints.TEMPLATE.replace("<|im_start|>", "")
    words = checkpoints.tokenizer(bos=True, template=template)
    assert words("x").input_ids[0] == 1
    pair = prompt_pair(words)
    for ids in (encode(pair, "the sea", True), encode(pair, "the sea", False)):
        assert ids[0] == 1
        assert ids.count(1) == 1
    assert encode(pair, "<|im_start|>the", False).count(1) == 1


def test_raw_text_gets_no_bos_the_tokenizer_does_not_add():
    words = checkpoints.tokenizer()
    assert 1 not in encode(prompt_pair(words), "the sea", chat=False)


def test_prompt_without_template_is_raw_text():
    words = checkpoints.tokenizer(template=None)
    assert words.decode(encode(prompt_pair(words), "the sea", chat=True)) == "the sea"


def test_empty_prompt_begins_with_the_start_token_or_is_refused():
    words = checkpoints.tokenizer()
    assert encode(prompt_pair(words), "", chat=False) == [1]
    words.bos_token = words.eos_token = None
    with pytest.raises(PromptError, match="no start token"):
        encode(prompt_pair(words), "", chat=False)


def test_prompt_longer_than_the_context_says_both_numbers():
    words = checkpoints.tokenizer()
    fitting = encode(prompt_pair(words, context=5), "1234", chat=False)
    assert len(fitting) == 4
    with pytest.raises(PromptError, match=r"5 tokens.*room for 4"):
        encode(prompt_pair(words, context=5), "12345", chat=False)


def test_lone_surrogate_is_refused_and_control_characters_are_not():
    pair = prompt_pair(checkpoints.tokenizer())
    with pytest.raises(PromptError, match="surrogate"):
        encode(pair, "a\ud800", chat=True)
    text = "\x00\x1b[31m\u202e\r\n"
    assert pair.tokenizer.decode(encode(pair, text, chat=False)) == text


def test_template_that_refuses_the_prompt_is_a_prompt_error():
    words = checkpoints.tokenizer(template="{{ raise_exception('system only') }}")
    with pytest.raises(PromptError, match="system only"):
        encode(prompt_pair(words), "x", chat=True)


def test_token_outside_the_head_is_refused():
    words = checkpoints.tokenizer(extra=("<|tool|>",))
    with pytest.raises(PromptError, match="tool"):
        encode(prompt_pair(words, vocabulary=len(words) - 1), "<|tool|>", chat=False)
