"""A person's prompt as the token ids the target reads."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from specviz.trace import MAX_TEXT

TEMPLATE_SECONDS = 5.0


class PromptError(ValueError):
    """A prompt that cannot be used; the message says what to change."""


def encode(pair: Any, prompt: str, chat: bool) -> list[int]:
    """Token ids of ``prompt`` for ``pair``, at least one of them and no more than its context
    holds.

    With ``chat`` the prompt is a user's turn in the tokenizer's chat template, if it has one, and
    the template alone decides about BOS. Without, the text is tokenised as it stands, with the
    BOS the tokenizer itself adds. There are never two. Raises PromptError for text that is not
    valid Unicode, is empty where nothing could start it, is longer than a trace may hold, or
    leaves no room in the context.
    """
    ids = _encoded(pair, prompt, chat)
    if len(ids) > pair.target.context - 1:
        raise PromptError(
            f"the prompt is {len(ids):,} tokens long, and {pair.target.name} has room for"
            f" {pair.target.context - 1:,}; shorten it, or let its beginning be left out"
            " (long_prompt)"
        )
    return ids


def encode_cut(pair: Any, prompt: str, chat: bool, new_tokens: int) -> tuple[list[int], int]:
    """As ``encode``, but where the prompt is longer than the context its beginning is left out:
    the ids, and how many tokens were left out. What the chat template puts around the prompt
    stays. So much is left out that ``new_tokens`` fit, but not more than to half of the context.
    Raises PromptError as ``encode`` does, and where the template alone fills the context."""
    ids = _encoded(pair, prompt, chat)
    context = pair.target.context
    if len(ids) < context:
        return ids, 0
    excess = len(ids) - max(context // 2, context - max(1, new_tokens))
    frame = _frame(pair.tokenizer, chat, ids[0])
    head = _shared(frame, ids)
    if excess > len(ids) - len(frame):
        raise PromptError(f"the chat template alone fills the context of {pair.target.name}")
    return ids[:head] + ids[head + excess :], excess


def _shared(one: list[int], other: list[int]) -> int:
    """How many ids two lists begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _frame(tokenizer: Any, chat: bool, first: int) -> list[int]:
    """What stands around any prompt: the template's ids, or a BOS."""
    if chat and tokenizer.chat_template:
        return _chat_ids(tokenizer, "")
    return [first] if first == _special(tokenizer, "bos") else []


def _encoded(pair: Any, prompt: str, chat: bool) -> list[int]:
    if len(prompt) > MAX_TEXT:
        raise PromptError(f"the prompt is longer than {MAX_TEXT:,} characters; shorten it")
    if any("\ud800" <= char <= "\udfff" for char in prompt):
        raise PromptError(
            "the prompt holds half a surrogate pair, which is no character; remove it"
        )
    tokenizer = pair.tokenizer
    ids = _chat_ids(tokenizer, prompt) if chat and tokenizer.chat_template else None
    if ids is None:
        ids = _raw_ids(tokenizer, prompt)
    if not ids:
        starts = (_special(tokenizer, "bos"), _special(tokenizer, "eos"))
        start = next((token for token in starts if token is not None), None)
        if start is None:
            raise PromptError("the prompt is empty and this model has no start token; type one")
        ids = [start]
    if max(ids) >= pair.target.vocabulary:
        token = tokenizer.convert_ids_to_tokens(max(ids))
        raise PromptError(f"the prompt holds {token!r}, which {pair.target.name} does not know")
    return ids


def _chat_ids(tokenizer: Any, prompt: str) -> list[int]:
    """The prompt in the template, which is a program that came with the model: it runs in a
    sandbox, for a while, and whatever it raises is told."""
    try:
        with _ended_after(TEMPLATE_SECONDS):
            text = tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False
            )
    except TimeoutError:
        raise PromptError(
            f"the chat template of this model did not end within {TEMPLATE_SECONDS:.0f} s; switch"
            " the chat template off"
        ) from None
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise PromptError(
            f"the chat template of this model refused the prompt ({why}); switch the chat"
            " template off"
        ) from None
    if len(text) > len(prompt) + MAX_TEXT:
        raise PromptError(
            f"the chat template of this model makes {len(text):,} characters of the prompt; switch"
            " the chat template off"
        )
    return list(tokenizer(text, add_special_tokens=False).input_ids)


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """Raises TimeoutError in Python code of this thread that goes on for longer. A single step in
    C cannot be ended."""
    end = time.monotonic() + seconds

    def look(frame: Any, event: str, argument: Any) -> Any:
        if time.monotonic() > end:
            raise TimeoutError
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def _raw_ids(tokenizer: Any, prompt: str) -> list[int]:
    """The ids of plain text, without a doubled BOS and without an EOS nobody typed."""
    ids = list(tokenizer(prompt).input_ids)
    bos, eos = _special(tokenizer, "bos"), _special(tokenizer, "eos")
    if bos is not None and ids[:2] == [bos, bos]:
        ids = ids[1:]
    typed = eos is not None and prompt.endswith(tokenizer.eos_token)
    if ids[1:] and ids[-1] == eos and not typed:
        ids = ids[:-1]
    return ids


def _special(tokenizer: Any, role: str) -> int | None:
    return getattr(tokenizer, f"{role}_token_id", None)
