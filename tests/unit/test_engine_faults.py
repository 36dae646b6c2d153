"""What happens when memory runs out, models return nonsense, prompts are too long or strange."""

from __future__ import annotations

import errno
import gc
import weakref
from types import SimpleNamespace

import checkpoints
import pytest
import torch
from kit import llama, noisy, pair, speculate, start, target, wrap

from specviz import pairs
from specviz.chat import PromptError, encode, encode_cut
from specviz.faults import disk_full, out_of_memory
from specviz.pairs import PairError, Shelf, memory, models
from specviz.race import Race
from specviz.records import Settings, SettingsError
from specviz.sampling import BadLogits
from specviz.trace import dump_trace, load_trace

CPU = torch.device("cpu")
CPU_ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you"
    " tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)"
)
NO_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory"),
    MemoryError(),
    RuntimeError(CPU_ALLOCATOR),
]


def raiser(error):
    def fail(*_, **__):
        raise error

    return fail


# --- memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
def test_memory_that_ran_out_is_known_by_any_of_its_names(error):
    assert out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("shape mismatch"), OSError("memory"), KeyError()])
def test_other_errors_are_not_taken_for_it(error):
    assert not out_of_memory(error)


def test_a_full_disk_is_known_by_its_number():
    assert disk_full(OSError(errno.ENOSPC, "No space left on device"))
    assert not disk_full(OSError(errno.EACCES, "Permission denied"))


def test_what_a_failed_call_held_is_let_go_though_its_error_is_kept():
    class Large:
        pass

    held = []

    def load():
        large = Large()
        held.append(weakref.ref(large))
        raise MemoryError

    try:
        load()
    except MemoryError as caught:
        error = caught
    assert held[0]() is not None
    memory.let_go(error)
    assert held[0]() is None


@pytest.fixture
def roomy(monkeypatch):
    """A machine on the CPU with 2 GB free."""
    monkeypatch.setattr(pairs, "choose_device", lambda: CPU)
    monkeypatch.setattr(memory, "choose_device", lambda: CPU)
    monkeypatch.setattr(memory, "free_memory_everywhere", lambda device: 2_000_000_000)


def test_the_message_says_what_is_free_what_is_needed_and_what_would_fit(roomy):
    text = memory.ran_out(MemoryError(), "A pair", 8_000_000_000, running=True)
    assert "2.0 GB are free now, and A pair needs" in text
    assert "a shorter prompt, fewer new tokens, a smaller pair (SmolLM2" in text


def test_no_pair_is_named_where_none_is_smaller_or_fits(roomy, monkeypatch):
    assert "smaller pair" not in memory.ran_out(MemoryError(), "The smallest", 1)
    monkeypatch.setattr(memory, "free_memory_everywhere", lambda device: 1_000_000)
    assert "End other programs" in memory.ran_out(MemoryError())


@pytest.mark.parametrize("error", NO_MEMORY, ids=lambda error: type(error).__name__)
def test_a_load_that_runs_out_of_memory_leaves_nothing_and_can_be_tried_again(
    error, tmp_path, roomy, monkeypatch
):
    from transformers import AutoModelForCausalLM

    folder = str(checkpoints.save(tmp_path / "target"))
    shelf = Shelf()
    with monkeypatch.context() as patch:
        patch.setattr(AutoModelForCausalLM, "from_pretrained", raiser(error))
        with pytest.raises(PairError, match=r"memory ran out\. 2\.0 GB are free now, and .* needs"):
            shelf.load(folder, "", "float32")
    assert not shelf._pairs
    assert not shelf._models
    assert shelf.load(folder, "", "float32").target.name == folder


def test_a_load_that_fails_half_way_keeps_neither_half(tmp_path, roomy, monkeypatch):
    target_folder = str(checkpoints.save(tmp_path / "target"))
    draft_folder = str(checkpoints.save(tmp_path / "draft", seed=1))
    read = models.load_model
    loaded = []

    def fail_second(source, *given):
        if source == draft_folder:
            raise RuntimeError("the connection to the disk is lost")
        model = read(source, *given)
        loaded.append(weakref.ref(model.module))
        return model

    shelf = Shelf()
    with monkeypatch.context() as patch:
        patch.setattr(pairs, "load_model", fail_second)
        with pytest.raises(RuntimeError):
            shelf.load(target_folder, draft_folder, "float32")
    gc.collect()
    assert [ref() for ref in loaded] == [None]
    assert not shelf._models
    assert shelf.load(target_folder, draft_folder, "float32").draft is not None


def test_a_race_that_is_over_holds_neither_models_nor_caches():
    broken_in = wrap(llama(0), "T")
    models = pair(noisy(), target=broken_in)
    race = Race(models, "draft model", "\x05\x09", Settings(max_new_tokens=6, chat=False))
    list(race.start())
    while not race.finished:
        race.advance()
    held = weakref.ref(broken_in.module)
    race.release()
    del models, broken_in
    gc.collect()
    assert held() is None
    assert len(race.trace().run("speculative").tokens) == 6


# --- models that return nonsense --------------------------------------------------------------


def spoiled(value: float):
    """A model whose logits are all ``value``."""
    module = llama(0)
    with torch.no_grad():
        module.lm_head.weight.fill_(value)
    return wrap(module, "Spoiled")


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_name_the_target_and_what_to_do(value, temperature):
    settings = Settings(max_new_tokens=4, gamma=2, temperature=temperature)
    with pytest.raises(BadLogits, match=r"^Spoiled, the target, returned.*choose float32"):
        speculate(settings, noisy(), target=spoiled(value))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_name_the_draft_and_what_to_do(value, temperature):
    settings = Settings(max_new_tokens=4, gamma=2, temperature=temperature)
    with pytest.raises(BadLogits, match=r"^the draft model returned.*choose float32"):
        speculate(settings, spoiled(value))


def test_what_was_decoded_before_is_kept():
    run = start(Settings(max_new_tokens=20, gamma=2), noisy())
    for _ in range(3):
        next(run)
    append = run._target.append
    run._target.append = lambda *given, **how: append(*given, **how) * float("nan")
    with pytest.raises(BadLogits):
        next(run)
    run.stop("error")
    assert len(run.run().rounds) == 3
    assert run.run().finish_reason == "error"


# --- prompts ----------------------------------------------------------------------------------


def words_pair(context=64, **how):
    words = checkpoints.tokenizer(**how)
    return SimpleNamespace(
        tokenizer=words, target=SimpleNamespace(name="T", context=context, vocabulary=len(words))
    )


def test_a_long_prompt_loses_its_beginning_and_keeps_the_template():
    models = words_pair()
    prompt = "".join(str(i % 10) for i in range(200))
    ids, left_out = encode_cut(models, prompt, chat=True, new_tokens=20)
    text = models.tokenizer.decode(ids)
    assert text.startswith("<|im_start|>user\n")
    assert text.endswith(prompt[-20:] + "<|im_end|>\n<|im_start|>assistant\n")
    assert len(ids) == 64 - 20
    whole = encode(words_pair(context=10_000), prompt, chat=True)
    assert left_out == len(whole) - len(ids)


def test_a_long_prompt_without_a_template_keeps_its_bos_and_its_end():
    models = words_pair(bos=True, template=None)
    ids, left_out = encode_cut(models, "9" * 200, chat=False, new_tokens=1)
    assert ids[0] == 1
    assert len(ids) == 63
    assert left_out == len(encode(words_pair(10_000, bos=True), "9" * 200, chat=False)) - 63


def test_room_for_the_answer_is_never_more_than_half_of_the_context():
    ids, _ = encode_cut(words_pair(), "9" * 200, chat=False, new_tokens=5000)
    assert len(ids) == 32


def test_a_prompt_that_fits_is_not_cut():
    models = words_pair()
    assert encode_cut(models, "1234", True, 20) == (encode(models, "1234", True), 0)


def test_a_template_that_fills_the_context_alone_is_refused():
    with pytest.raises(PromptError, match="the chat template alone"):
        encode_cut(words_pair(context=12), "9" * 200, chat=True, new_tokens=4)


def test_a_million_characters_are_refused_or_cut_as_chosen():
    models = words_pair()
    million = "1 2 3 4 5 " * 100_000
    with pytest.raises(PromptError, match=r"[0-9,]+ tokens long, and T has room for 63"):
        encode(models, million, chat=True)
    ids, left_out = encode_cut(models, million, chat=True, new_tokens=20)
    assert len(ids) == 44
    assert left_out > 100_000
    with pytest.raises(PromptError, match="longer than 1,000,000 characters"):
        encode_cut(models, million + "1", chat=True, new_tokens=20)


def race_on(prompt: str, **settings):
    values = {"max_new_tokens": 8, "gamma": 2, "chat": False, **settings}
    race = Race(pair(noisy()), "draft model", prompt, Settings(**values))
    list(race.start())
    while not race.finished:
        race.advance()
    return race.trace()


def test_a_race_notes_how_much_of_its_prompt_was_left_out_and_keeps_all_of_it():
    prompt = "\x05\x09" * 200
    with pytest.raises(PromptError):
        race_on(prompt)
    trace = load_trace(dump_trace(race_on(prompt, long_prompt="cut")))
    assert "152 tokens of its beginning were left out" in trace.note
    assert trace.prompt == prompt
    assert len(trace.prompt_tokens) == 248
    assert len(trace.run("speculative").tokens) == 8


@pytest.mark.parametrize("prompt", ["\x05", "\x00", "\x1b\x07\x08\x0d\x0a\x09"])
def test_one_token_and_control_characters_run_and_can_be_saved(prompt):
    trace = race_on(prompt)
    assert load_trace(dump_trace(trace)) == trace
    assert len(trace.prompt_tokens) == len(prompt)


def test_what_to_do_with_a_long_prompt_is_one_of_two():
    with pytest.raises(SettingsError, match="long_prompt must be one of refuse, cut"):
        Settings(long_prompt="shrink")


def test_a_lone_surrogate_is_refused_either_way():
    for read in (
        lambda p: encode(words_pair(), p, True),
        lambda p: encode_cut(words_pair(), p, True, 4),
    ):
        with pytest.raises(PromptError, match="surrogate"):
            read("a\ud800")


def test_the_shared_target_of_these_tests_is_unharmed():
    assert torch.isfinite(target().module.lm_head.weight).all()
