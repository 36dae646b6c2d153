"""How often the advice is right: is the recommended gamma as fast as the best measured one?

    python tests/benchmarks/advice.py [--gammas 1 2 3 4 6 8] [--tokens 96] [--repeats 2] [--limit 0]

Every built-in prompt is run at every gamma, against its own baseline, with the pair's preferred
drafter (or ``--drafter``). From the runs at ``--start`` alone the diagnosis recommends a gamma; it
is right where that gamma, or the nearest measured one, is within 5 % of the best measured speedup.
Printed: the share of right advice prompt by prompt, the same for keeping gamma as it was, and the
one advice from all prompts together. A speedup of 1 stands for the target alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from specviz import drafters, metrics, prompts
from specviz.diagnosis.profile import profile
from specviz.pairs import Shelf, catalogue
from specviz.records import Settings
from specviz.rows import Measured, Setup, pooled
from specviz.sweep import Plan, Sweep, cross

TOLERANCE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gammas", type=int, nargs="+", default=[1, 2, 3, 4, 6, 8])
    parser.add_argument("--start", type=int, default=4, help="the gamma the advice is made from")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0, help="only so many prompts")
    parser.add_argument("--drafter", default="")
    options = parser.parse_args()
    spec = catalogue()[0]
    pair = Shelf().load(spec.target, spec.draft, name=spec.name)
    drafter = options.drafter or drafters.names(pair)[0]
    gammas = sorted({*options.gammas, options.start})
    plan = Plan(
        spec.target,
        cross([(drafter, spec.draft)], gammas),
        prompts.take(prompts.built_in(), options.limit),
        Settings(max_new_tokens=options.tokens),
        options.repeats,
    )
    print(f"{spec.name}, {drafter}, {pair.machine.dtype}, {pair.machine.threads} threads")
    report(measure(Sweep({spec.draft: pair}, plan)), options.start)


def measure(sweep: Sweep) -> list[Measured]:
    sweep.warm_up()
    while not sweep.finished:
        sweep.advance()
    for failed in sweep.failed:
        print(f"a run failed: {failed.why}")
    return sweep.measured


def report(runs: list[Measured], start: int) -> None:
    by_prompt: dict[str, list[Measured]] = {}
    for one in runs:
        by_prompt.setdefault(one.prompt_id, []).append(one)
    advised = kept = total = 0
    for name, group in by_prompt.items():
        speedups = by_gamma(group)
        advice = advised_gamma(group, start)
        if advice is None or start not in speedups:
            continue
        total += 1
        advised += right(speedups, advice)
        kept += right(speedups, start)
        table = ", ".join(f"{g}: {s:.2f}x" for g, s in speedups.items())
        word = "right" if right(speedups, advice) else "wrong"
        print(f"prompt {name} ({group[0].kind}): advised {advice}, {word}; {table}")
    if not total:
        print("nothing was measured")
        return
    print(f"advice within 5 % of the best: {advised} of {total} ({100 * advised / total:.0f} %)")
    print(f"gamma {start} kept: {kept} of {total} ({100 * kept / total:.0f} %)")
    speedups, advice = by_gamma(runs), advised_gamma(runs, start)
    table = ", ".join(f"{g}: {s:.2f}x" for g, s in speedups.items())
    print(f"all prompts together: advised {advice}; {table}")


def by_gamma(group: list[Measured]) -> dict[int, float]:
    """Measured speedup by gamma, and 1 for drafting nothing."""
    setups: dict[Setup, list[Measured]] = {}
    for one in group:
        setups.setdefault(one.setup, []).append(one)
    found = {setup.gamma: pooled(own)["speedup"] for setup, own in setups.items()}
    return {0: 1.0} | {gamma: value for gamma, value in sorted(found.items()) if value}


def advised_gamma(group: list[Measured], start: int) -> int | None:
    """What the diagnosis recommends from the runs at ``start``; 0 is the target alone."""
    own = profile([one.trace for one in group if one.setup.gamma == start])
    if own is None:
        return None
    best = own.best_gamma()
    return best if own.at_gamma(best) > 1 else 0


def right(speedups: Mapping[int, float], gamma: int) -> bool:
    nearest = min(speedups, key=lambda other: (abs(other - gamma), other))
    share = metrics.ratio(speedups[nearest], max(speedups.values()))
    return share is not None and share >= 1 - TOLERANCE


if __name__ == "__main__":
    main()
