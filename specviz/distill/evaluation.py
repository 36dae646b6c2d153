"""How good a draft is: real greedy speculative runs on prompts it was not trained on.

At temperature 0 a drafted token passes if it equals the token the target would write there. Up to
the first that fails, the draft has therefore read exactly the target's own greedy text. So what a
speculative run does is fixed by one list of booleans, "is the draft's guess here the target's
token?", and one forward pass of the draft over the target's text gives them all. `simulate` plays
the rounds from it; nothing is approximated except that a pass over many tokens and one token at a
time may round differently.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from specviz.distill.student import IdMap


@dataclass(frozen=True)
class GreedyText:
    """What the target writes after a prompt at temperature 0.

    prompt_ids, ids: target ids of the prompt and of the text. budget: the max_new_tokens it was
    written with; the text is shorter where the target ended it.
    """

    kind: str
    prompt: str
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    budget: int


@dataclass(frozen=True)
class Acceptance:
    """Counts over greedy rounds. by_position[k] = (tested, accepted) at the k-th drafted token."""

    tokens: int
    target_calls: int
    drafted: int
    by_position: tuple[tuple[int, int], ...]

    def __add__(self, other: Acceptance) -> Acceptance:
        pairs = zip(self.by_position, other.by_position, strict=True)
        return Acceptance(
            self.tokens + other.tokens,
            self.target_calls + other.target_calls,
            self.drafted + other.drafted,
            tuple((a + c, b + d) for (a, b), (c, d) in pairs),
        )

    @property
    def tokens_per_target_call(self) -> float:
        return self.tokens / self.target_calls

    @property
    def alpha(self) -> float:
        """Accepted / tested."""
        tested = sum(tested for tested, _ in self.by_position)
        return sum(accepted for _, accepted in self.by_position) / tested if tested else 0.0

    def summary(self) -> dict[str, Any]:
        """Plain figures: alpha by position is accepted / tested there."""
        return {
            "tokens": self.tokens,
            "target_calls": self.target_calls,
            "tokens_per_target_call": round(self.tokens_per_target_call, 3),
            "alpha": round(self.alpha, 3),
            "alpha_by_position": [round(a / t, 3) if t else None for t, a in self.by_position],
        }


@torch.inference_mode()
def greedy_texts(
    target: Any, tokenizer: Any, prompts: Sequence[tuple[str, str]], budget: int
) -> list[GreedyText]:
    """Let the target answer each (kind, prompt) at temperature 0 with at most `budget` tokens."""
    texts = []
    for kind, prompt in prompts:
        chat = [{"role": "user", "content": prompt}]
        prompt_ids = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_dict=False
        )
        ids = torch.tensor([prompt_ids], device=target.device)
        written = target.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=budget,
            do_sample=False,
        )[0, len(prompt_ids) :].tolist()
        texts.append(GreedyText(kind, prompt, tuple(prompt_ids), tuple(written), budget))
    return texts


def cached_greedy_texts(
    target: Any, tokenizer: Any, prompts: Sequence[tuple[str, str]], budget: int, cache: Path
) -> list[GreedyText]:
    """`greedy_texts`, written to or read from the JSON file `cache`."""
    if not cache.exists():
        texts = greedy_texts(target, tokenizer, prompts, budget)
        cache.write_text(json.dumps([asdict(text) for text in texts]))
    return read_greedy_texts(cache)


def read_greedy_texts(cache: Path) -> list[GreedyText]:
    return [
        GreedyText(
            kind=fields["kind"],
            prompt=fields["prompt"],
            prompt_ids=tuple(fields["prompt_ids"]),
            ids=tuple(fields["ids"]),
            budget=fields["budget"],
        )
        for fields in json.loads(cache.read_text())
    ]


@torch.inference_mode()
def right_guesses(draft: Any, id_map: IdMap, text: GreedyText) -> list[bool]:
    """For each token of the text: is it what the draft guesses after all before it?"""
    ids = torch.tensor([text.prompt_ids + text.ids[:-1]], device=draft.device)
    logits = draft(input_ids=id_map.to_draft(ids), use_cache=False).logits[0]
    guesses = id_map.to_target(logits[len(text.prompt_ids) - 1 :].argmax(dim=-1))
    return [guess == token for guess, token in zip(guesses.tolist(), text.ids, strict=True)]


def simulate(right: Sequence[Sequence[bool]], gamma: int, budget: int) -> Acceptance:
    """Play the rounds of greedy speculative decoding.

    right[k][t]: is the target's token t what a round guesses in place k, when it has been right in
    the places before? For a draft model that is the same in every place (`right_guesses`).
    gamma: drafted tokens a round, fewer where `budget` (max_new_tokens) leaves no room for them. A
    text shorter than the budget ended with an end-of-text token.
    """
    tested, accepted = [0] * gamma, [0] * gamma
    at = calls = drafted = 0
    length = len(right[0])
    while at < length:
        calls += 1
        in_round = min(gamma, budget - at - 1)
        drafted += in_round
        for place in range(in_round):
            if at == length:  # the text ended inside the draft
                break
            tested[place] += 1
            if not right[place][at]:
                break
            accepted[place] += 1
            at += 1
        at = min(at + 1, length)
    return Acceptance(length, calls, drafted, tuple(zip(tested, accepted, strict=True)))


def evaluate(
    draft: Any, id_map: IdMap, texts: Sequence[GreedyText], gamma: int
) -> tuple[Acceptance, list[Acceptance]]:
    """Greedy rounds over all texts: the sum, and text by text."""
    if not texts:
        raise ValueError("evaluate needs at least one prompt")
    each = [simulate([right_guesses(draft, id_map, t)] * gamma, gamma, t.budget) for t in texts]
    total = each[0]
    for acceptance in each[1:]:
        total = total + acceptance
    return total, each
