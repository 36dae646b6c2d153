"""Wrong ways of speculative sampling that people really write. Each breaks the law of the text.

They stand in for ``sampling.verify_sampled``, or for the chance the draft draws from; all the
rest of the loop stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from specviz import lossless
from specviz.lossless import VERIFYING
from specviz.sampling import Chance, Guess, Verdict, Verify, residual, verify_sampled


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to verify, and to draw what is drafted."""

    name: str
    summary: str
    verify: Verify = verify_sampled
    drafting: Callable[[Chance], Chance] = lambda chance: chance


class _Likeliest:
    """Draws nothing: takes the likeliest, while the draft still reports the law as its q."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def accepts(self, probability: float) -> tuple[bool, float]:
        return self._chance.accepts(probability)

    def choose(self, law: Tensor) -> int:
        return int(law.argmax())


class _Sharper(_Likeliest):
    """Draws at half the temperature, while the draft still reports the law as its q."""

    def choose(self, law: Tensor) -> int:
        return self._chance.choose(law**2)


def _rejecting(draw_from: Callable[[Tensor, Guess], Tensor]) -> Verify:
    """The right test of each guess, and after a rejection a token from ``draw_from(p, guess)``."""

    def verify(laws: Tensor, guesses: Sequence[Guess], chance: Chance) -> Verdict:
        p, u, passed = _tests(laws, guesses, chance, to_the_end=False)
        if all(passed):
            return Verdict(len(guesses), chance.choose(laws[-1]), p, u)
        place = len(p) - 1
        rest = draw_from(laws[place], guesses[place])
        return Verdict(place, chance.choose(rest), p, u, rest)

    return verify


def _count_what_passed(laws: Tensor, guesses: Sequence[Guess], chance: Chance) -> Verdict:
    """Tests every guess and keeps as many as passed, wherever in the draft those stood."""
    p, u, passed = _tests(laws, guesses, chance, to_the_end=True)
    kept = sum(passed)
    if kept == len(guesses):
        return Verdict(kept, chance.choose(laws[-1]), p, u)
    rest = residual(laws[kept], guesses[kept])
    return Verdict(kept, chance.choose(rest), p[: kept + 1], u[: kept + 1], rest)


def _tests(
    laws: Tensor, guesses: Sequence[Guess], chance: Chance, *, to_the_end: bool
) -> tuple[tuple[float, ...], tuple[float, ...], list[bool]]:
    """p, u and the outcome of each test, up to the first failure unless ``to_the_end``."""
    p: list[float] = []
    u: list[float] = []
    passed: list[bool] = []
    for i, guess in enumerate(guesses):
        p.append(laws[i, guess.id].item())
        accepted, drawn = chance.accepts(min(1.0, p[i] / guess.q))
        u.append(drawn)
        passed.append(accepted)
        if not accepted and not to_the_end:
            break
    return tuple(p), tuple(u), passed


def _variant(name: str, **how: Any) -> Variant:
    return Variant(name, VERIFYING[name], **how)


RIGHT = _variant(lossless.RIGHT)
WRONG = (
    _variant("argmax draft", drafting=_Likeliest),
    _variant(
        "softmaxed residual", verify=_rejecting(lambda p, guess: residual(p, guess).softmax(-1))
    ),
    _variant("no residual", verify=_rejecting(lambda p, guess: p)),
    _variant("filters on one side", drafting=_Sharper),
    _variant("kept behind a rejection", verify=_count_what_passed),
)


def find(name: str) -> Variant:
    """A variant by its name. Raises ValueError naming those there are."""
    for variant in (RIGHT, *WRONG):
        if variant.name == name:
            return variant
    raise ValueError(
        f"there is no variant {name!r}; choose one of {', '.join(v.name for v in WRONG)}"
    )
