"""Token ids to text, one token at a time, so that the pieces join to the exact full text.

A token may end inside a character (emoji, CJK). Its piece is then empty, and the token that
completes the character carries all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

Decode = Callable[[Sequence[int]], str]
UNFINISHED = "\N{REPLACEMENT CHARACTER}"
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
NO_TEXT = re.compile("[\udc80-\udcff]+")
"""Bytes that are no text, as "surrogateescape" leaves them."""


class Detokenizer:
    """Incremental decoding through any ``decode(ids) -> str``.

    ``context`` are the ids before the text: tokenizers that drop a leading space need them.
    The window decoded at each step goes back to the last place where a character ended.
    """

    def __init__(self, decode: Decode, context: Sequence[int] = ()) -> None:
        self._decode = decode
        self._settled = list(context[-4:])
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        """The text that ``token`` completes; empty while a character is unfinished."""
        self._pending.append(token)
        text = self._decode([*self._settled, *self._pending])
        if text.endswith(UNFINISHED):
            return ""
        return self._settle(text)

    def flush(self) -> str:
        """What an unfinished character at the very end decodes to."""
        if not self._pending:
            return ""
        return self._settle(self._decode([*self._settled, *self._pending]))

    def peek(self, tokens: Sequence[int]) -> list[str]:
        """The pieces that ``tokens`` would give here. Changes nothing."""
        copy = Detokenizer(self._decode)
        copy._settled, copy._pending = self._settled, list(self._pending)
        return [copy.push(token) for token in tokens]

    def _settle(self, text: str) -> str:
        known = self._decode(self._settled) if self._settled else ""
        piece = text[len(known) :]
        self._settled = self._pending if piece else [*self._settled, *self._pending]
        self._pending = []
        return piece


class Texts:
    """What a tokenizer's ids look like: text for the stream, labels for single tokens."""

    def __init__(self, tokenizer) -> None:  # type: ignore[no-untyped-def]
        self._tokenizer = tokenizer
        self._labels: dict[int, str] = {}

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``, special tokens left out, spaces untouched."""
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def detokenizer(self, context: Sequence[int] = ()) -> Detokenizer:
        """A fresh incremental decoder behind ``context``."""
        return Detokenizer(self.decode, context)

    def label(self, token: int) -> str:
        """A token by itself, for lists: its text. Where that alone says nothing, its vocabulary
        entry (special tokens), or its bytes (parts of a character)."""
        if token not in self._labels:
            text = self.decode([token])
            if not text or UNFINISHED in text:
                text = readable(str(self._tokenizer.convert_ids_to_tokens(token)))
            self._labels[token] = text
        return self._labels[token]


def readable(entry: str) -> str:
    """A vocabulary entry that stands for bytes as its text, with bytes that are no whole character
    written in hexadecimal, such as ⟨F0 9F⟩. Any other entry as it is.

    Byte-level vocabularies (GPT-2 and its kin) write a byte as a visible character, those of the
    SentencePiece kind as "<0xF0>".
    """
    data = _bytes_of(entry)
    if data is None:
        return entry
    text = data.decode("utf-8", "surrogateescape")
    return NO_TEXT.sub(lambda found: _in_hex(found[0]), text)


def _in_hex(escaped: str) -> str:
    data = escaped.encode("utf-8", "surrogateescape")
    return "\u27e8" + data.hex(" ").upper() + "\u27e9"


def _bytes_of(entry: str) -> bytes | None:
    """The bytes a vocabulary entry stands for, or None where it stands for none."""
    if found := BYTE_TOKEN.fullmatch(entry):
        return bytes([int(found[1], 16)])
    letters = _byte_letters()
    return bytes(letters[c] for c in entry) if all(c in letters for c in entry) else None


@cache
def _byte_letters() -> dict[str, int]:
    """The character that byte-level vocabularies write for each byte, read backwards: printable
    ones of Latin-1 for themselves, the others, in order, from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    moved = {chr(0x100 + i): byte for i, byte in enumerate(others)}
    return {chr(byte): byte for byte in printable} | moved


def first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the stop string that completes first begins in ``text``, or None."""
    found = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    return min(found)[1] if found else None
