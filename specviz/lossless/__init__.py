"""Three proofs that nothing is lost: exact on a small vocabulary, sampled and greedy on a pair.

``exact`` enumerates every path of the product's own decode loop and compares laws to 1e-12.
``sampled`` compares many short continuations of a real pair with the target's own. ``greedy``
compares texts token by token. ``variants`` are wrong ways of verifying that people really write:
each proof can be run on one, and then fails.
"""

from __future__ import annotations

from dataclasses import dataclass

SAMPLED_PROMPT = "The sea is calm. The sea is cold. The sky is clear. The sea is"
"""Continued as it stands; it repeats itself, so that every drafter has something to guess."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a proof does, what follows from it, and what does not."""

    name: str
    does: str
    shows: str
    leaves_open: str


PROOFS = (
    Proof(
        "exact",
        "Goes through every path of the decode loop over four tokens, accept, reject, resample,"
        " bonus and end of text, several rounds deep, and adds up the probability of each text.",
        "The loop's code gives every text exactly the target's own probability, whichever"
        " drafter and filter is used.",
        "Nothing about a real model's arithmetic: the models here are small tables, and a Llama"
        " of two layers.",
    ),
    Proof(
        "sampled",
        "Draws many short continuations of a real pair, speculatively and from the target alone,"
        " and asks whether both can come from one law (G-test, total variation).",
        "With real models, caches and number formats no difference of the stated size is there.",
        "A smaller difference: a test can find one, it can never rule one out.",
    ),
    Proof(
        "greedy",
        "Decodes prompts at temperature 0, speculatively and by the target alone, and compares"
        " the two texts token by token.",
        "In float32 the texts are equal. In lower precision the first difference is shown with"
        " both logits: a near tie, or a bug.",
        "Prompts that were not tried, and sampling, which the other two proofs are for.",
    ),
)

RIGHT = "right"
VERIFYING = {
    RIGHT: "The algorithm of arXiv 2211.17192, as specviz runs it.",
    "argmax draft": "The draft always guesses its likeliest token, and the test still divides by"
    " its q.",
    "softmaxed residual": "max(p - q, 0) goes through a softmax instead of being divided by its"
    " sum.",
    "no residual": "After a rejection the token is drawn from p itself.",
    "filters on one side": "The draft draws at half the temperature; the test uses the q of the"
    " full one.",
    "kept behind a rejection": "Every guess is tested, and as many are kept as passed, though one"
    " before them failed.",
}
"""The ways of verifying that ``variants`` implements, each in a sentence; all but the first are
wrong."""
