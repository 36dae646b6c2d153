"""A small trace, written by hand."""

from __future__ import annotations

from specviz.records import Machine, PairInfo, PromptToken, Round, Run, Settings, Token, Trace


def token(text, fate, label=""):
    return Token(id=1, text=text, fate=fate, source="draft model", label=label)


def trace(text="light", settings=None, text_end=None, lanes=("speculative", "baseline")):
    """A small trace: one full acceptance and one rejection against three plain rounds."""
    rounds = (
        Round(0, 0, (token("The ", "accepted"),), token(text, "bonus"), 0.01, 0.02, 0.001),
        Round(
            1,
            2,
            (token("sea", "rejected"), token("gull", "discarded")),
            token("house", "resampled"),
            0.02,
            0.02,
            0.001,
        ),
    )
    plain = tuple(
        Round(i, i, (), Token(1, piece, "target", "target"), 0.0, 0.02, 0.001)
        for i, piece in enumerate(("The ", text, "house"))
    )
    runs = {
        "speculative": Run("speculative", "draft model", rounds, "length", 0.1, text_end=text_end),
        "baseline": Run("baseline", "", plain, "length", 0.1),
    }
    return Trace(
        pair=PairInfo("tiny", "T", "D"),
        machine=Machine("CPU: test", "float32", 1),
        settings=settings or Settings(),
        prompt="Begin.",
        prompt_tokens=(PromptToken(5, "Begin"),),
        runs=tuple(runs[lane] for lane in lanes),
    )
