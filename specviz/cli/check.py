"""``specviz check``: the proofs that nothing is lost, in the terminal."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from specviz.cli.run import chosen_spec
from specviz.cli.terminal import ProgressPrinter, UsageError, one_line, to_json
from specviz.lossless import PROOFS, SAMPLED_PROMPT
from specviz.records import Settings

NAMES = tuple(proof.name for proof in PROOFS)
GREEDY_PROMPTS = 3
GREEDY_TOKENS = 48
Say = Callable[[str], None]
Lines = Iterator[tuple[bool, str, dict[str, Any]]]
"""Of each result: whether it holds, a line for people, and the plain values."""


def add_arguments(check: argparse.ArgumentParser) -> None:
    """The options of ``check``."""
    check.add_argument("--pair", metavar="NAME", help="one of: specviz pairs")
    check.add_argument("--target", metavar="ID", help="a Hub id or a folder")
    check.add_argument("--draft", metavar="ID", help="a Hub id or a folder")
    check.add_argument("--dtype", choices=("auto", "float32", "bfloat16", "float16"))
    check.add_argument("--only", choices=NAMES, action="append", help="this proof; repeatable")
    check.add_argument("--variant", metavar="NAME", help="a wrong way to verify, to see it fail")
    check.add_argument("--samples", type=int, default=120, metavar="N", help="of each arm")
    check.add_argument("--tokens", type=int, default=2, metavar="K", help="compared of each")
    check.add_argument("--temperature", type=float, default=0.8, metavar="T")
    check.add_argument("--gamma", type=int, default=4, metavar="N")
    check.add_argument("--json", action="store_true", help="one JSON object on stdout, no text")
    check.set_defaults(command=check_command)


def check_command(options: argparse.Namespace) -> int:
    """Run the proofs; 1 when one of them fails."""
    from specviz.lossless import variants

    variant = variants.find(options.variant) if options.variant else variants.RIGHT
    names = options.only or (NAMES[:1] if options.variant else NAMES)
    if options.variant and "greedy" in names:
        raise UsageError("a variant changes sampling alone; the greedy proof has none")
    runners = {"exact": _exact, "sampled": _sampled, "greedy": _greedy}
    plan = _plan(options)
    spec = chosen_spec(options)
    warnings.simplefilter("ignore")
    progress = ProgressPrinter()
    say: Say = (lambda _: None) if options.json else (lambda text: print(text, flush=True))
    outcome: dict[str, Any] = {"variant": variant.name, "proofs": {}}
    try:
        for proof in PROOFS:
            if proof.name in names:
                say(f"{proof.name}: {proof.does}")
                lines = runners[proof.name](options, spec, plan, variant, progress)
                found = outcome["proofs"][proof.name] = _follow(lines, progress, say)
                if found["holds"]:
                    say(f"It shows: {proof.shows}\nIt leaves open: {proof.leaves_open}")
                say("")
    finally:
        progress.close()
    outcome["holds"] = all(part["holds"] for part in outcome["proofs"].values())
    if options.json:
        print(to_json(outcome))
    else:
        print(verdict(outcome))
    return 0 if outcome["holds"] else 1


def _plan(options: argparse.Namespace) -> Any:
    from specviz.lossless.sampled import Plan

    if options.gamma < 1:
        raise UsageError("gamma must be at least 1, or there is nothing to verify")
    settings = Settings(gamma=options.gamma, temperature=options.temperature, chat=False)
    return Plan(SAMPLED_PROMPT, settings, options.samples, options.tokens)


def _follow(lines: Lines, progress: ProgressPrinter, say: Say) -> dict[str, Any]:
    """Print each result as it comes; the plain values of all of them."""
    results: list[dict[str, Any]] = []
    for holds, text, values in lines:
        progress.close()
        results.append({"holds": holds, "tested": True, **values})
        mark = "FAIL" if not holds else "ok  " if results[-1]["tested"] else "none"
        say(f"  {mark}  {one_line(text)}")
    return {"holds": all(result["holds"] for result in results), "results": results}


def verdict(outcome: dict[str, Any]) -> str:
    """What the proofs come to, in one sentence."""
    if not outcome["holds"]:
        return "NOT LOSSLESS: a proof failed."
    results = [result for part in outcome["proofs"].values() for result in part["results"]]
    untested = sum(not result["tested"] for result in results)
    if untested:
        return f"No proof failed, but {untested} of {len(results)} results tested nothing."
    return "All proofs hold."


def _exact(options: Any, spec: Any, plan: Any, variant: Any, progress: Any) -> Lines:
    import torch

    from specviz.lossless import exact

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tables are too small to share: on a busy machine it only waits
    results = list(exact.prove(variant))
    torch.set_num_threads(threads)
    for result in results:
        text = (
            f"{result.case}: {result.paths} paths, up to {result.rounds} rounds,"
            f" {len(result.texts)} texts; largest difference {result.gap:.1e}"
        )
        values = {"case": result.case, "paths": result.paths, "rounds": result.rounds}
        yield result.holds, text, {**values, "gap": result.gap, "missing": result.missing}


def _sampled(options: Any, spec: Any, plan: Any, variant: Any, progress: Any) -> Lines:
    from specviz import drafters
    from specviz.lossless.sampled import Arms

    pair = _load(spec, options.dtype or "auto", progress)
    arms = Arms(pair, plan)
    for name in drafters.names(pair):
        for result in arms.compare(name, variant):
            progress(f"{name}: {result.n} of {plan.n}", result.n / plan.n)
        values = {**asdict(result), "tested": result.tested, "dtype": pair.machine.dtype}
        yield result.holds, f"{name}, {pair.machine.dtype}: {sampled_words(result)}", values


def sampled_words(result: Any) -> str:
    """The last result of a sampled comparison in one sentence."""
    if not result.drafted:
        return f"{result.n} of each, and nothing was drafted: nothing was tested"
    if result.p_value is None:
        return f"{result.n} of each, too few texts that came up often enough: nothing was tested"
    distance = result.distance
    return (
        f"{result.n} of each, p {result.p_value:.3f} ({result.degrees} degrees of freedom); total"
        f" variation {distance.measured:.3f} ({distance.low:.3f} to {distance.high:.3f}), by chance"
        f" alone {distance.by_chance:.3f} and in 19 of 20 cases under {distance.by_chance_95:.3f};"
        f" {result.smallest:.2f} would be found with probability 0.8;"
        f" {result.rejected} of {result.drafted} guesses rejected"
    )


def _greedy(options: Any, spec: Any, plan: Any, variant: Any, progress: Any) -> Lines:
    from specviz import drafters
    from specviz.lossless.greedy import GreedyProof
    from specviz.pairs import choose_device, choose_dtype
    from specviz.prompts import built_in, take

    own = str(choose_dtype(choose_device(), options.dtype or "auto")).removeprefix("torch.")
    for dtype in dict.fromkeys(("float32", own)) if options.dtype is None else (own,):
        pair = _load(spec, dtype, progress)
        proof = GreedyProof(pair, Settings(max_new_tokens=GREEDY_TOKENS, gamma=options.gamma))
        fitting = [prompt for prompt in take(built_in(), 12) if _fits(pair, prompt.text)]
        for prompt in fitting[:GREEDY_PROMPTS]:
            progress(f"greedy, {dtype}: {prompt.kind}")
            for result in proof.compare(prompt.text, drafters.names(pair)):
                text = f"{dtype}, {prompt.kind}, {result.drafter}: {greedy_words(result)}"
                values = asdict(result)
                values.pop("texts")
                yield result.holds, text, values


def _fits(pair: Any, prompt: str) -> bool:
    """Whether a prompt and the tokens behind it have room in the target's context."""
    from specviz.chat import PromptError, encode

    try:
        return len(encode(pair, prompt, True)) + GREEDY_TOKENS <= pair.context
    except PromptError:
        return False


def greedy_words(result: Any) -> str:
    """The result of one greedy comparison in one sentence."""
    if result.parting is None:
        same = "the same as the target alone" if result.holds else "NOT the same: a bug"
        return f"{result.tokens} tokens, {same}"
    parting = result.parting
    own, other = parting.logits
    plain_own, plain_other = parting.baseline_logits
    what = "a near tie" if result.finding == "near tie" else "a bug"
    return (
        f"from token {parting.index + 1} on {parting.text!r}, in the baseline"
        f" {parting.baseline_text!r}; logits {own:.6g} and {other:.6g} here, {plain_own:.6g} and"
        f" {plain_other:.6g} there, apart by {parting.gap:.2g} at most where {parting.rounding:.2g}"
        f" is rounding in {result.dtype}: {what}"
    )


def _load(spec: Any, dtype: str, progress: ProgressPrinter) -> Any:
    from specviz.pairs import Shelf

    try:
        return Shelf().load(spec.target, spec.draft, dtype, progress, spec.name)
    finally:
        progress.close()
