"""What each drafter costs and how often it is right, on the embedded target.

    python tests/benchmarks/drafts.py [--gammas 1 2 3 4 6 8] [--temperatures 0 1] [--tokens 96]

Every run is a race against its own baseline, lane by lane in turn, on prompts that no draft was
trained on (the page's examples). Prints parameters, then for each drafter (the draft model once
with each draft that ships), gamma and temperature: milliseconds a draft step, c, v, alpha, tokens
per target call, speedup (total seconds per token, baseline over speculative) and the loop's
efficiency; last, speedup by prompt kind at each drafter's best gamma.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from specviz import drafters, metrics
from specviz.catalogue import embedded_pairs
from specviz.drafters import draft_model
from specviz.pairs import Shelf
from specviz.race import Race
from specviz.records import Settings

ASSETS = Path(__file__).parents[2] / "assets"


class Cell:
    """All runs of one drafter, gamma and temperature, as one tally."""

    def __init__(self) -> None:
        self.run, self.plain = metrics.Tally(), metrics.Tally()
        self.kinds: dict[str, tuple[metrics.Tally, metrics.Tally]] = defaultdict(
            lambda: (metrics.Tally(), metrics.Tally())
        )

    def add(self, kind: str, race: Race) -> None:
        trace = race.trace()
        for lane, tally, own in (
            ("speculative", self.run, self.kinds[kind][0]),
            ("baseline", self.plain, self.kinds[kind][1]),
        ):
            for round_ in trace.run(lane).rounds:
                tally.add(round_)
                own.add(round_)

    def row(self) -> str:
        figures, costs = metrics.figures(self.run, self.plain), metrics.costs(self.run, self.plain)
        step = metrics.ratio(self.run.draft_s, self.run.drafted)
        values = {
            "ms a draft step": None if step is None else 1e3 * step,
            "c": costs.cost_ratio,
            "v": costs.verify_ratio,
            "TAR": figures.tar,
            "alpha": figures.alpha,
            "tokens a call": figures.tokens_per_target_call,
            "speedup": figures.speedup,
            "predicted": costs.predicted_speedup,
            "efficiency": costs.efficiency,
        }
        return " | ".join(f"{v:.3f}" if v is not None else "—" for v in values.values())

    @property
    def speedup(self) -> float:
        return metrics.figures(self.run, self.plain).speedup or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gammas", type=int, nargs="+", default=[1, 2, 3, 4, 6, 8])
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--drafters", nargs="+", default=None)
    parser.add_argument("--prompts", type=int, default=0, help="only the first N prompts")
    options = parser.parse_args()
    examples = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))
    shelf = Shelf(limit=8)
    sources = {}
    for spec in embedded_pairs():
        pair = shelf.load(spec.target, spec.draft)
        print(f"{spec.draft}: {pair.draft.parameters / 1e6:.2f} M parameters")
        for name in drafters.names(pair):
            # All but the draft model are the same whichever draft model is beside them.
            label = f"{name} {spec.draft}" if name == draft_model.NAME else name
            if options.drafters is None or name in options.drafters:
                sources.setdefault(label, (pair, name))
    print(f"{pair.machine.device}, {pair.machine.dtype}, {pair.machine.threads} threads")
    measure(sources, examples[: options.prompts or None], options)


def measure(sources: dict, examples: list, options: argparse.Namespace) -> None:
    """All setups follow one another on a prompt, so that a slow minute hits them alike."""
    cells: dict[tuple, Cell] = defaultdict(Cell)
    for pair, drafter in sources.values():
        run(pair, drafter, 2, 0.0, examples[0], 16, Cell())
    for example in examples:
        for temperature in options.temperatures:
            for label, (pair, drafter) in sources.items():
                for gamma in options.gammas:
                    cell = cells[label, temperature, gamma]
                    run(pair, drafter, gamma, temperature, example, options.tokens, cell)
    show(cells)


def run(pair, drafter, gamma, temperature, example, tokens, cell) -> None:
    settings = Settings(max_new_tokens=tokens, gamma=gamma, temperature=temperature)
    race = Race(pair, drafter, example["prompt"], settings, observe=False)
    list(race.start())
    while not race.finished:
        race.advance()
    cell.add(example["kind"], race)


def show(cells: dict[tuple, Cell]) -> None:
    print("drafter, temperature, gamma | ms a draft step | c | v | TAR | alpha | tokens a call"
          " | speedup | predicted | efficiency")  # fmt: skip
    for (drafter, temperature, gamma), cell in sorted(cells.items()):
        print(f"{drafter}, {temperature:g}, {gamma} | {cell.row()}")
    print("by prompt kind, at the gamma with the highest speedup:")
    for drafter, temperature in sorted({key[:2] for key in cells}):
        own = {k: c for k, c in cells.items() if k[:2] == (drafter, temperature)}
        best = max(own, key=lambda key: own[key].speedup)
        kinds = {
            kind: metrics.figures(run, plain).speedup
            for kind, (run, plain) in own[best].kinds.items()
        }
        line = ", ".join(f"{kind} {value:.2f}" for kind, value in kinds.items() if value)
        print(f"{drafter}, {temperature:g}, gamma {best[2]}: {line}")


if __name__ == "__main__":
    main()
