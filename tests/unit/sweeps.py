"""A small plan on the tiny pair, and made-up runs with chosen times."""

from __future__ import annotations

from kit import noisy, pair

from specviz.prompts import Prompt
from specviz.records import Machine, PairInfo, Round, Run, Settings, Token, Trace
from specviz.rows import Measured, Setup
from specviz.sweep import Plan, cross

# The tiny vocabulary holds the characters below "@" alone.
PROMPTS = (
    Prompt("1", "code", "121212 12"),
    Prompt("2", "story", "7, 8, 9;"),
    Prompt("3", "story", "(+)(+)"),
)


def pairs():
    """The tiny pair under the name of its draft."""
    return {"N": pair(noisy(), info=PairInfo("tiny", "T", "N"))}


def plan(**changes):
    values = {
        "target": "T",
        "setups": cross([("draft model", "N"), ("prompt lookup", "")], (2, 3)),
        "prompts": PROMPTS,
        "settings": Settings(max_new_tokens=10, chat=False),
    }
    return Plan(**{**values, **changes})


def round_of(index, position, accepted, drafted, draft_s=0.0, verify_s=1.0, sample_s=0.0):
    """A round that accepted so many of so many drafted tokens, with the seconds it took."""
    fates = ["accepted"] * accepted + ["rejected"] * (accepted < drafted)
    fates += ["discarded"] * (drafted - len(fates))
    tokens = tuple(Token(i, "x", fate, "d", parent=i - 1) for i, fate in enumerate(fates))
    kind = "target" if not drafted else "bonus" if accepted == drafted else "resampled"
    added = Token(9, "y", kind, "target")
    return Round(index, position, tokens, added, draft_s, verify_s, sample_s)


def rounds_of(*rounds):
    """Rounds (accepted, drafted, draft_s, verify_s, sample_s) put one behind the other."""
    made, position = [], 0
    for index, (accepted, drafted, *seconds) in enumerate(rounds):
        made.append(round_of(index, position, accepted, drafted, *seconds))
        position += accepted + 1
    return tuple(made)


def trace_of(own, plain, gamma=2, **settings):
    """A trace whose lanes have these rounds."""
    values = {"max_new_tokens": 1000, "gamma": gamma, **settings}
    return Trace(
        PairInfo("tiny", "T", "N"),
        Machine("cpu", "float32", 1),
        Settings(**values),
        "prompt",
        (),
        (
            Run("speculative", "draft model", rounds_of(*own), "length", 0.5),
            Run("baseline", "", rounds_of(*plain), "length", 0.5),
        ),
    )


def measured(own, plain, prompt_id="1", kind="code", setup=None, repeat=0):
    """One race with these rounds."""
    setup = setup or Setup("draft model", "N", gamma=2)
    return Measured(setup, prompt_id, kind, repeat, trace_of(own, plain, setup.gamma))
