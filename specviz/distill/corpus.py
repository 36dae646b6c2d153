"""Text for a draft to learn from, written by the target itself and by nothing else.

Every row is a conversation. The target invents the user's turn after the chat template's user
header (temperature 1, the 50 likeliest tokens; in 60 % of the turns we give it the first words of
a task), then answers it at the row's own temperature. All rows advance one token a step: what the
template or we dictate is fed instead of sampled, so no row ever needs padding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from specviz.llama import LeanRows, lean

ANSWER_TEMPERATURES = (0.0, 0.0, 0.7, 1.0)
TASK_SHARE = 0.6
USER_TOP_K = 50
USER_LIMIT = 90  # tokens

TASKS = (
    "Write a Python function that",
    "Write a JavaScript function that",
    "Write a short story about",
    "Write a poem about",
    "Write a polite email to",
    "Write a SQL query that",
    "Write a paragraph about",
    "Write a product description for",
    "Write a letter to",
    "Write a dialogue between",
    "Translate into French:",
    "Translate into Spanish:",
    "Translate into German:",
    "Translate into Italian:",
    "Summarise this text:",
    "Summarize the following passage:",
    "Give the main point of this text:",
    "Extract all names and places from this text:",
    "List the dates in this text:",
    "Correct the grammar of this sentence:",
    "Rewrite this sentence in simpler words:",
    "Explain how",
    "Explain why",
    "Explain the difference between",
    "Explain to a child what",
    "What is the capital of",
    "What is the meaning of",
    "What are the advantages of",
    "What are the main causes of",
    "What happens when",
    "Who was",
    "Why do",
    "When did",
    "Where can I find",
    "How do I",
    "How can I improve",
    "How many",
    "How does a",
    "Calculate",
    "Solve this problem step by step:",
    "If a train travels",
    "A shop sells",
    "Give me five ideas for",
    "Give me tips for",
    "Give three examples of",
    "List ten",
    "Compare",
    "Describe",
    "Classify the sentiment of this review:",
    "I have a question about",
    "Can you help me with",
    "Plan a day in",
)


@dataclass(frozen=True)
class Template:
    """A chat template as ids: `opening` up to and with the first user header, `to_answer` from
    the end of a user turn to the start of the answer, `to_user` from the end of an answer to the
    next user turn. `end` closes a turn and is the last id before both."""

    opening: tuple[int, ...]
    to_answer: tuple[int, ...]
    to_user: tuple[int, ...]
    end: int


def read_template(tokenizer: Any) -> Template:
    """Take the chat template apart by rendering two marked conversations.

    Raises ValueError when the tokenizer has no chat template or its turns do not end with the
    end-of-text token.
    """
    if not tokenizer.chat_template:
        raise ValueError("the target's tokenizer has no chat template")
    first, answer, second = "FIRSTTURN", "ANSWERTURN", "SECONDTURN"
    chat = [
        {"role": "user", "content": first},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": second},
    ]
    whole = tokenizer.apply_chat_template(chat, tokenize=False)
    opened = tokenizer.apply_chat_template(chat[:1], tokenize=False, add_generation_prompt=True)
    end = tokenizer.eos_token
    opening = opened.split(first)[0]
    to_answer = opened.split(first)[1]
    to_user = whole.split(answer)[1].split(second)[0]
    if not (to_answer.startswith(end) and to_user.startswith(end)):
        raise ValueError(f"the turns of the chat template do not end with {end!r}")

    def ids(text: str) -> tuple[int, ...]:
        return tuple(tokenizer.encode(text, add_special_tokens=False))

    return Template(ids(opening), ids(to_answer)[1:], ids(to_user)[1:], int(tokenizer.eos_token_id))


class Conversation:
    """One row being written: whose turn it is, and what is dictated next."""

    def __init__(
        self,
        template: Template,
        tasks: Sequence[Sequence[int]],
        temperature: float,
        rng: np.random.Generator,
    ) -> None:
        self.template = template
        self.tasks = tasks
        self.temperature = temperature
        self.rng = rng
        self.ids: list[int] = []
        self.dictated = deque(template.opening)
        self._begin_user_turn()

    def _begin_user_turn(self) -> None:
        self.answering, self.in_turn = False, -len(self.dictated)
        if self.tasks and self.rng.random() < TASK_SHARE:
            self.dictated.extend(self.tasks[int(self.rng.integers(len(self.tasks)))])

    def append(self, sampled: int) -> int:
        """Take the dictated id if there is one, else `sampled`; returns the id taken."""
        token = self.dictated.popleft() if self.dictated else sampled
        free = not self.dictated
        self.ids.append(token)
        self.in_turn += 1
        if free and token == self.template.end:
            self._change_turn()
        elif free and not self.answering and self.in_turn >= USER_LIMIT:
            self.dictated.append(self.template.end)
        return token

    def _change_turn(self) -> None:
        if self.answering:
            self.dictated.extend(self.template.to_user)
            self._begin_user_turn()
        else:
            self.dictated.extend(self.template.to_answer)
            self.answering = True

    def sampling(self) -> tuple[float, int]:
        """Temperature and top-k (0 for all) of the next free token."""
        return (self.temperature, 0) if self.answering else (1.0, USER_TOP_K)


def pick(
    logits: Tensor, temperatures: Tensor, narrow: Tensor, generator: torch.Generator
) -> Tensor:
    """Sample one id a row. logits [B, V] float32; temperatures [B], 0 for the likeliest id;
    narrow [B] bool: only among the USER_TOP_K likeliest. Returns [B] int64."""
    picked = logits.argmax(dim=-1)
    warm = temperatures > 0
    for rows, among in ((warm & narrow, USER_TOP_K), (warm & ~narrow, logits.shape[-1])):
        if not rows.any():
            continue
        scores, ids = logits[rows] / temperatures[rows, None], None
        if among < scores.shape[-1]:
            scores, ids = scores.topk(among, dim=-1)
        law = scores.softmax(dim=-1)
        # The first of independent clocks of rates law[i] to ring is i with probability law[i].
        clocks = torch.empty_like(law).exponential_(generator=generator)
        first = (law / clocks).argmax(dim=-1, keepdim=True)
        picked[rows] = (first if ids is None else ids.gather(-1, first))[:, 0]
    return picked


@torch.inference_mode()
def write_batch(
    target: Any,
    template: Template,
    tasks: Sequence[Sequence[int]],
    rows: int,
    length: int,
    seed: int,
    temperatures: Sequence[float] = ANSWER_TEMPERATURES,
) -> np.ndarray:
    """Let the target write `rows` conversations of `length` ids; row i answers at the
    temperatures[i % len]. Returns uint16 (uint32 for vocabularies past 65,536) [rows, length]."""
    rng = np.random.default_rng(seed)
    generator = torch.Generator(target.device).manual_seed(seed)
    heats = [temperatures[i % len(temperatures)] for i in range(rows)]
    conversations = [Conversation(template, tasks, heat, rng) for heat in heats]
    tokens = [conversation.append(0) for conversation in conversations]
    step = _stepper(target, rows, length)
    while len(conversations[0].ids) < length:
        logits = step(torch.tensor(tokens, device=target.device))
        if all(conversation.dictated for conversation in conversations):
            sampled = [0] * rows
        else:
            how = [conversation.sampling() for conversation in conversations]
            heat = torch.tensor([t for t, _ in how], device=target.device)
            narrow = torch.tensor([k > 0 for _, k in how], device=target.device)
            sampled = pick(logits.float(), heat, narrow, generator).tolist()
        tokens = [c.append(token) for c, token in zip(conversations, sampled, strict=True)]
    kind = np.uint16 if target.config.vocab_size <= 1 << 16 else np.uint32
    return np.array([conversation.ids for conversation in conversations], dtype=kind)


def _stepper(target: Any, rows: int, length: int) -> Callable[[Tensor], Tensor]:
    """A function that appends one id to each text, [B], and returns the logits behind, [B, V]."""
    model = lean(target)
    if model is not None:
        return LeanRows(model, rows, length).step
    cache = DynamicCache(config=target.config)

    def step(ids: Tensor) -> Tensor:
        output = target(input_ids=ids[:, None], cache=cache, use_cache=True)
        logits: Tensor = output.logits[:, -1]
        return logits

    return step


def write_corpus(
    target: Any,
    tokenizer: Any,
    rows: int,
    length: int,
    seed: int,
    batch: int,
    temperatures: Sequence[float],
    done: int = 0,
) -> Iterator[np.ndarray]:
    """Conversations in batches of `batch` until `rows` are written; `done` of them already are.

    A batch is a function of the seed and of its place alone, so an interrupted corpus continues
    to the same text.
    """
    template = read_template(tokenizer)
    tasks = [tokenizer.encode(task, add_special_tokens=False) for task in TASKS]
    for first in range(done, rows, batch):
        size = min(batch, rows - first)
        yield write_batch(target, template, tasks, size, length, seed + first, temperatures)
