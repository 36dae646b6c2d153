"""Whether speculative text equals the target's own, on every built-in prompt and drafter.

    python tests/benchmarks/same_text.py [--dtype float32] [--tokens 96] [--limit N]

In float32 every line must say the same. In lower precision a difference is printed with the
logit gap of the two tokens as each lane computed it: a near tie, or a fault.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from specviz.drafters import names
from specviz.pairs import Shelf, catalogue
from specviz.race import Race
from specviz.records import Settings

PROMPTS = Path(__file__).parents[2] / "assets" / "prompts.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--limit", type=int, default=0, help="only N prompts, kinds in turn")
    parser.add_argument("--gammas", type=int, nargs="+", default=[1, 4, 8])
    options = parser.parse_args()
    spec = catalogue()[0]
    pair = Shelf().load(spec.target, spec.draft, options.dtype)
    same = total = 0
    examples = json.loads(PROMPTS.read_text(encoding="utf-8"))[: options.limit or None]
    for example in examples:
        baseline = True
        for drafter in names(pair):
            for gamma in options.gammas:
                settings = Settings(max_new_tokens=options.tokens, gamma=gamma)
                race = Race(pair, drafter, example["prompt"], settings, baseline=baseline)
                list(race.start())
                while not race.finished:
                    race.advance()
                baseline = race.trace().run("baseline")
                done = race.finish()
                total, same = total + 1, same + done["same_as_baseline"]
                if not done["same_as_baseline"]:
                    print(f"{example['kind']}, {drafter}, gamma {gamma}: {done['divergence']}")
    print(f"{pair.machine.dtype}: {same} of {total} runs wrote the target's own text")


if __name__ == "__main__":
    main()
