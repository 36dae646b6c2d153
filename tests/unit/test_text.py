"""Invariant 4, first half: joined pieces equal the full decode, byte for byte."""

from __future__ import annotations

import random

import pytest
from kit import TEXTS, ByteTokenizer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from specviz.text import Detokenizer, Texts, first_stop, readable

HARD = [
    "plain words, and a newline\n\n    indented\ttab  two spaces ",
    "日本語のテキストと漢字、そして中文。",
    "family 👨‍👩‍👧‍👦, flag 🇫🇷, thumbs 👍🏽, zero-width \u200d\u200b",
    "עברית ועוד العربية mixed with English (and brackets).",
    "<think>&lt;b&gt; <img src=x onerror=alert(1)> ${alert(1)} {{value}} `tick` \\u0041",
    "\ufffd a real replacement character \ufffd",
    "é ñ ü \u0301 combining",
]


def pieces(texts: Texts, ids: list[int]) -> list[str]:
    detokenizer = texts.detokenizer()
    found = [detokenizer.push(token) for token in ids]
    found[-1] += detokenizer.flush()
    return found


@pytest.mark.parametrize("text", HARD)
def test_pieces_of_single_bytes_join_to_the_text(text):
    assert "".join(pieces(TEXTS, list(text.encode()))) == text


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_text_that_ends_inside_a_character_joins_to_the_full_decode(cut):
    ids = list("go 👍".encode())[:-cut]
    assert "".join(pieces(TEXTS, ids)) == TEXTS.decode(ids)


def test_random_bytes_join_to_the_full_decode():
    source = random.Random(0)
    for _ in range(200):
        ids = [source.choice([*range(256), 257]) for _ in range(source.randrange(1, 40))]
        assert "".join(pieces(TEXTS, ids)) == TEXTS.decode(ids)


def test_a_piece_is_empty_until_its_character_is_complete():
    assert pieces(TEXTS, list("é!".encode())) == ["", "é", "!"]


@pytest.fixture(scope="module")
def metaspace():
    """A tokenizer of the SentencePiece kind: its decoder drops the space at the very start."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)]
    )  # fmt: skip
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<unk>", *byte_tokens], show_progress=False
    )
    tokenizer.train_from_iterator([HARD[0], "the cat sat on the mat and the dog ran"], trainer)
    return tokenizer


def test_a_tokenizer_that_drops_the_first_space_keeps_those_inside(metaspace):
    prompt = metaspace.encode("the cat").ids
    answer = metaspace.encode(" sat on the mat and 猫 ran").ids
    detokenizer = Detokenizer(lambda ids: metaspace.decode(list(ids)), prompt)
    found = "".join([*(detokenizer.push(token) for token in answer), detokenizer.flush()])
    assert "the cat" + found == metaspace.decode([*prompt, *answer])
    assert found.startswith(" sat on")


def test_peeking_changes_nothing_and_reads_as_pushing_would():
    ids = list("a👍b".encode())
    detokenizer = TEXTS.detokenizer()
    detokenizer.push(ids[0])
    foreseen = detokenizer.peek(ids[1:])
    assert foreseen == [detokenizer.push(token) for token in ids[1:]] == ["", "", "", "👍", "b"]


def test_a_special_token_is_labelled_by_its_vocabulary_entry():
    texts = Texts(ByteTokenizer())
    assert texts.label(258) == "<special 258>"
    assert texts.label(ord("x")) == "x"


def test_half_a_character_is_labelled_by_its_bytes():
    assert Texts(ByteTokenizer()).label(0xF0) == "⟨F0⟩"
    assert readable("<0xE7>") == "⟨E7⟩"
    assert readable("ĠðŁ") == " ⟨F0 9F⟩"
    assert readable("Į") == "⟨8C⟩"
    assert readable("æĺ¥å¤") == "春⟨E5 A4⟩"


@pytest.mark.parametrize("entry", ["<|im_start|>", "▁猫", "<special 258>", "the"])
def test_an_entry_that_is_no_bytes_is_shown_as_it_is(entry):
    assert readable(entry) == entry


def test_every_byte_of_a_byte_level_vocabulary_is_known():
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in HARD:
        ((entry, _),) = letters.pre_tokenize_str(text)
        assert readable(entry) == text


def test_the_stop_string_that_completes_first_wins():
    assert first_stop("one two three", ["three", "two", "wo th"]) == 4
    assert first_stop("one", ["two"]) is None
