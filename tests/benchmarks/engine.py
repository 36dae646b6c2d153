"""Our loop against transformers' generate, on the embedded pair, interleaved in one process.

    python tests/benchmarks/engine.py [--tokens 96] [--gamma 4] [--repeats 3] [--dtype auto]

Rows: plain greedy, assisted by the same draft at the same fixed gamma, prompt lookup. Each
repeat runs every row once on every prompt, so that noise hits all alike; figures are medians of
decode tokens a second, prefill included on both sides (generate cannot leave it out).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import torch

from specviz import decode, drafters, metrics
from specviz.chat import encode
from specviz.pairs import Pair, Shelf, catalogue
from specviz.records import Settings
from specviz.sampling import SeededChance
from specviz.sweep.generate import assistant
from specviz.text import Texts

PROMPTS = Path(__file__).parents[2] / "assets" / "prompts.json"


def ours(pair: Pair, ids: list[int], settings: Settings, drafter: str | None) -> decode.Decoding:
    """One finished run of our loop."""
    texts, chance = Texts(pair.tokenizer), SeededChance(0)
    if drafter is None:
        run = decode.baseline(pair.target, ids, settings, texts=texts, eos_ids=pair.eos_ids)
    else:
        guesses = drafters.create(drafter, pair, settings, len(ids), chance)
        run = decode.speculative(
            pair.target, guesses, ids, settings, texts=texts, eos_ids=pair.eos_ids, chance=chance
        )
    list(run)
    return run


def timed_ours(pair: Pair, drafter: str | None, settings: Settings) -> Callable:
    def row(ids: list[int]) -> SimpleNamespace:
        run = ours(pair, ids, settings, drafter)
        seconds = run.seconds + run.prefill_s + run.draft_prefill_s
        return SimpleNamespace(ids=run.tokens[len(ids) :], seconds=seconds, rounds=run.rounds)

    return row


def timed_generate(pair: Pair, settings: Settings, **arguments: object) -> Callable:
    @torch.inference_mode()
    def row(ids: list[int]) -> SimpleNamespace:
        inputs = torch.tensor([ids])
        start = time.perf_counter()
        output = pair.target.module.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=settings.max_new_tokens,
            do_sample=False,
            pad_token_id=pair.eos_ids[0],
            eos_token_id=list(pair.eos_ids),
            **arguments,
        )
        seconds = time.perf_counter() - start
        return SimpleNamespace(ids=output[0, len(ids) :].tolist(), seconds=seconds, rounds=None)

    return row


def measure(rows: dict[str, Callable], prompts: list[list[int]], repeats: int) -> dict:
    """Every row on every prompt, ``repeats`` times, after one pass that is not counted."""
    results: dict[str, list] = {name: [] for name in rows}
    for repeat in range(repeats + 1):
        for ids in prompts if repeat else prompts[:1]:
            for name, row in rows.items():
                result = row(ids)
                if repeat:
                    results[name].append(result)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--gamma", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=0, help="only the first N prompts")
    parser.add_argument("--dtype", default="auto")
    options = parser.parse_args()
    spec = catalogue()[0]
    pair = Shelf().load(spec.target, spec.draft, options.dtype)
    settings = Settings(max_new_tokens=options.tokens, gamma=options.gamma)
    examples = json.loads(PROMPTS.read_text())[: options.prompts or None]
    prompts = [encode(pair, example["prompt"], True) for example in examples]
    rows = {
        "generate": timed_generate(pair, settings),
        "ours, baseline": timed_ours(pair, None, settings),
        "generate, assistant": timed_generate(
            pair, settings, assistant_model=assistant(pair, options.gamma)
        ),
        "ours, draft model": timed_ours(pair, "draft model", settings),
        "generate, prompt lookup": timed_generate(
            pair, settings, prompt_lookup_num_tokens=options.gamma
        ),
        "ours, prompt lookup": timed_ours(pair, "prompt lookup", settings),
    }
    results = measure(rows, prompts, options.repeats)
    show(results, spec.name, pair, options)


def show(results: dict, name: str, pair: Pair, options: argparse.Namespace) -> None:
    print(f"{name}, {pair.machine.dtype}, {pair.machine.device}, {pair.machine.threads} threads")
    print(f"gamma {options.gamma}, {options.tokens} tokens, {options.repeats} repeats")
    plain = results["generate"]
    for row, runs in results.items():
        rate = statistics.median(len(run.ids) / run.seconds for run in runs)
        against = statistics.median(
            (len(run.ids) / run.seconds) / (len(other.ids) / other.seconds)
            for run, other in zip(runs, plain, strict=True)
        )
        same = sum(run.ids == other.ids for run, other in zip(runs, plain, strict=True))
        print(f"{row:26}{rate:8.1f} tokens/s {against:6.2f}x of generate, same {same}/{len(runs)}")
    for drafter in ("draft model", "prompt lookup"):
        print(f"ours / generate, {drafter}: {_against(results, drafter):.2f}x")
        print(f"  {_figures(results, drafter)}")


def _against(results: dict, drafter: str) -> float:
    other = {"draft model": "assistant", "prompt lookup": "prompt lookup"}[drafter]
    pairs = zip(results[f"ours, {drafter}"], results[f"generate, {other}"], strict=True)
    return statistics.median(
        (len(run.ids) / run.seconds) / (len(other.ids) / other.seconds) for run, other in pairs
    )


def _figures(results: dict, drafter: str) -> str:
    tally, plain = metrics.Tally(), metrics.Tally()
    for run, base in zip(results[f"ours, {drafter}"], results["ours, baseline"], strict=True):
        for round_ in run.rounds:
            tally.add(round_)
        for round_ in base.rounds:
            plain.add(round_)
    figures, costs = metrics.figures(tally, plain), metrics.costs(tally, plain)
    return ", ".join(
        f"{name} {value:.3f}"
        for name, value in {
            "tar": figures.tar,
            "alpha": figures.alpha,
            "tokens per target call": figures.tokens_per_target_call,
            "speedup": figures.speedup,
            "c": costs.cost_ratio,
            "v": costs.verify_ratio,
            "predicted": costs.predicted_speedup,
            "efficiency": costs.efficiency,
        }.items()
        if value is not None
    )


if __name__ == "__main__":
    main()
