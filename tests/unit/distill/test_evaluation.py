"""Simulated rounds are real ones."""

from __future__ import annotations

import pytest
import torch
from tiny_corpus import END, VOCABULARY, tiny_target, whole_map
from transformers import LlamaForCausalLM

from specviz.distill.commands import build_parser
from specviz.distill.evaluation import GreedyText, evaluate, right_guesses, simulate
from specviz.distill.student import IdMap, cut_student


@torch.no_grad()
def greedy(model: LlamaForCausalLM, ids: list[int], count: int) -> list[int]:
    """Token by token without any cache, until the end token."""
    written: list[int] = []
    while len(written) < count:
        logits = model(torch.tensor([ids + written])).logits[0, -1]
        written.append(int(logits.argmax()))
        if written[-1] == END:
            break
    return written


@torch.no_grad()
def brute_force(
    target: LlamaForCausalLM, draft: LlamaForCausalLM, id_map: IdMap, text: GreedyText, gamma: int
) -> tuple[list[int], int, list[int]]:
    """Speculative decoding written down naively: tokens, target calls, accepted per round."""
    prompt, out, calls, accepted = list(text.prompt_ids), [], 0, []
    while len(out) < text.budget and END not in out:
        guesses: list[int] = []
        for _ in range(min(gamma, text.budget - len(out) - 1)):
            seen = id_map.to_draft(torch.tensor([prompt + out + guesses]))
            guesses.append(id_map.ids[int(draft(seen).logits[0, -1].argmax())])
        calls += 1
        passed = 0
        for place in range(len(guesses) + 1):
            token = greedy(target, prompt + out, 1)[0]
            out.append(token)
            if place == len(guesses) or guesses[place] != token:
                break
            passed += 1
            if token == END:
                break
        accepted.append(passed)
    return out, calls, accepted


@pytest.mark.parametrize("gamma", [1, 3, 5])
@pytest.mark.parametrize("budget", [17, 24])
def test_simulated_rounds_equal_brute_force_rounds(gamma: int, budget: int) -> None:
    target = tiny_target(seed=1)
    id_map = IdMap(tuple(range(VOCABULARY - 3)), unknown=0)
    rows = torch.randint(3, VOCABULARY, (4, 12), generator=torch.Generator().manual_seed(5))
    draft = cut_student(target, id_map, [0, 1, 2], 20, rows).eval()
    some_accepted = some_rejected = False
    for row in rows.tolist():
        text = GreedyText("test", "", tuple(row), tuple(greedy(target, row, budget)), budget)
        out, calls, accepted = brute_force(target, draft, id_map, text, gamma)
        result = simulate([right_guesses(draft, id_map, text)] * gamma, gamma, budget)
        assert tuple(out) == text.ids
        assert (result.tokens, result.target_calls) == (len(out), calls)
        assert sum(passed for _, passed in result.by_position) == sum(accepted)
        some_accepted |= any(accepted)
        some_rejected |= 0 in accepted
    assert some_accepted
    assert some_rejected


def test_simulate_counts_an_end_token_inside_the_draft() -> None:
    result = simulate([[True, True]] * 4, gamma=4, budget=20)
    assert (result.tokens, result.target_calls) == (2, 1)
    assert result.by_position == ((1, 1), (1, 1), (0, 0), (0, 0))


def test_simulate_never_overshoots_the_budget() -> None:
    result = simulate([[True] * 5] * 4, gamma=4, budget=5)
    assert (result.tokens, result.target_calls, result.drafted) == (5, 1, 4)
    result = simulate([[True] * 6] * 4, gamma=4, budget=6)
    assert (result.tokens, result.target_calls, result.drafted) == (6, 2, 4)


def test_evaluate_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one prompt"):
        evaluate(None, whole_map(), [], 4)


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    needed = {"corpus": "--out", "train": "--corpus", "evaluate": "--draft", "store": "--corpus"}
    for command, option in needed.items():
        with pytest.raises(SystemExit) as stop:
            build_parser().parse_args([command, "--help"])
        assert stop.value.code == 0
        assert option in capsys.readouterr().out
