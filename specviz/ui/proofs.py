"""The proofs as events for the page. Imports torch, so the page imports this late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from specviz import drafters
from specviz.lossless import exact, variants
from specviz.lossless.greedy import GreedyResult
from specviz.lossless.sampled import FAILS_BELOW, Plan, SampledResult
from specviz.records import Settings
from specviz.ui.gpu import computed
from specviz.ui.lent import greedy_there, sampled_there
from specviz.ui.proving import Event, Progress


def exact_events(variant: str) -> Iterator[Event]:
    """Every path of the loop enumerated, an event a case."""
    for result in exact.prove(variants.find(variant)):
        yield {
            "e": "exact",
            "case": result.case,
            "paths": result.paths,
            "rounds": result.rounds,
            "gap": result.gap,
            "missing": result.missing,
            "holds": result.holds,
            "texts": [list(row) for row in result.texts],
        }


def sampled_events(pair: Any, plan: Plan, drafter: str, variant: str) -> Iterator[Event]:
    """Continuations drawn in both arms, and how they compare so far."""
    written = 2 * plan.n * (plan.tokens + plan.settings.gamma + 1)
    for result in computed(pair, sampled_there, plan, drafter, variant, tokens=written):
        yield _sampled_event(result, plan, pair.machine.dtype, variant)


def greedy_events(
    pair: Any, prompt: str, settings: Settings, progress: Progress
) -> Iterator[Event]:
    """Decoded greedily in both ways, with every drafter that the pair can run."""
    names = drafters.names(pair)
    progress(f"Decoding with {len(names)} drafters", None)
    written = (len(names) + 1) * settings.max_new_tokens
    for result in computed(pair, greedy_there, settings, prompt, names, tokens=written):
        yield _greedy_event(result)


def _sampled_event(result: SampledResult, plan: Plan, dtype: str, variant: str) -> Event:
    return {
        "e": "sampled",
        **asdict(result),
        "holds": result.holds,
        "planned": plan.n,
        "tokens": plan.tokens,
        "temperature": plan.settings.temperature,
        "fails_below": FAILS_BELOW,
        "dtype": dtype,
        "variant": variant,
    }


def _greedy_event(result: GreedyResult) -> Event:
    parting = None
    if result.parting is not None:
        parting = {**asdict(result.parting), "gap": result.parting.gap}
    return {"e": "greedy", **asdict(result), "parting": parting, "holds": result.holds}
