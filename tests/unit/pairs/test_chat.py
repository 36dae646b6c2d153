"""From a prompt to the ids that the models see."""

from __future__ import annotations

from types import SimpleNamespace

import checkpoints
import pytest

from specviz.chat import PromptError, encode


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
