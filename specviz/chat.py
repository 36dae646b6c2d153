"""A person's prompt as the token ids the target reads."""

from __future__ import annotations

from typing import Any

from specviz.trace import MAX_TEXT


class PromptError(ValueError):
    """A prompt that cannot be used; the message says what to change."""


def encode(pair: Any, prompt: str, chat: bool) -> list[int]:
    """Token ids of ``prompt`` for ``pair``, at least one of them.

    With ``chat`` the prompt is a user's turn in the tokenizer's chat template, if it has one, and
    the template alone decides about BOS. Without, the text is tokenised as it stands, with the
    BOS the tokenizer itself adds. There are never two. Raises PromptError for text that is not
    valid Unicode, is empty where nothing could start it, is longer than a trace may hold, or
    leaves no room in the context.
    """
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
    if len(ids) > pair.target.context - 1:
        raise PromptError(
            f"the prompt is {len(ids)} tokens long, and {pair.target.name} has room for"
            f" {pair.target.context - 1}; shorten it"
        )
    if max(ids) >= pair.target.vocabulary:
        token = tokenizer.convert_ids_to_tokens(max(ids))
        raise PromptError(f"the prompt holds {token!r}, which {pair.target.name} does not know")
    return ids


def _chat_ids(tokenizer: Any, prompt: str) -> list[int]:
    from jinja2.exceptions import TemplateError

    try:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], add_generation_prompt=True, tokenize=False
        )
    except TemplateError as error:
        raise PromptError(
            f"the chat template of this model refused the prompt ({error}); switch the chat"
            " template off"
        ) from None
    return list(tokenizer(text, add_special_tokens=False).input_ids)


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
