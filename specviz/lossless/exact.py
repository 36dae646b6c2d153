"""The exact proof: every path of the decode loop, weighed, against the target's own law.

The loop is ``decode.speculative`` itself, with its caches, filters, drafters and ends of text;
only the models are small, tables and a Llama of two layers, and the chance is scripted. Appendix
A.1 of arXiv 2211.17192 proves one token; here whole texts are enumerated, several rounds deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specviz import drafters
from specviz.decode import speculative
from specviz.drafters import Drafter
from specviz.lossless.cases import Case, cases
from specviz.lossless.enumeration import Script, law_of
from specviz.lossless.variants import RIGHT, Variant
from specviz.sampling import Chance, Filters
from specviz.text import Texts

TOLERANCE = 1e-12
Law = dict[tuple[int, ...], float]


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Both laws of one case. ``texts`` holds each text with its probability by the target alone
    and by the loop, the target's likeliest first. ``rounds`` is the most that one path took,
    ``sources`` names where guesses came from and ``fates`` what became of tokens on some path."""

    case: str
    paths: int
    rounds: int
    sources: frozenset[str]
    fates: frozenset[str]
    texts: tuple[tuple[str, float, float], ...]

    @property
    def gap(self) -> float:
        """The largest difference of the two probabilities of a text."""
        return max(abs(target - written) for _, target, written in self.texts)

    @property
    def missing(self) -> float:
        """How far the loop's probabilities are from adding up to 1."""
        return abs(1.0 - sum(written for _, _, written in self.texts))

    @property
    def holds(self) -> bool:
        """Whether the two laws are one."""
        return self.gap <= TOLERANCE and self.missing <= TOLERANCE


def prove(variant: Variant = RIGHT, chosen: Sequence[Case] | None = None) -> Iterator[ExactResult]:
    """One result after another, for each case. A wrong ``variant`` breaks some of them."""
    for case in cases() if chosen is None else chosen:
        yield compare(case, variant)


def compare(case: Case, variant: Variant = RIGHT) -> ExactResult:
    """Both laws of one case."""
    expected, written = target_law(case), written_law(case, variant)
    texts = {*expected, *written.law}
    name = case.pair.tokenizer.decode
    rows = [(name(t), expected.get(t, 0.0), written.law.get(t, 0.0)) for t in texts]
    rows.sort(key=lambda row: (-row[1], row[0]))
    return ExactResult(
        case=case.name,
        paths=written.paths,
        rounds=written.rounds,
        sources=written.sources,
        fates=written.fates,
        texts=tuple(rows),
    )


def target_law(case: Case) -> Law:
    """The law of the target alone, by multiplying its filtered rows along every text."""
    law: Law = {}
    device = case.pair.target.device
    filters = Filters(case.settings, len(case.prompt), case.pair.eos_ids, device)

    def extend(text: tuple[int, ...], probability: float) -> None:
        ended = bool(text) and text[-1] in case.pair.eos_ids
        if len(text) == case.settings.max_new_tokens or ended:
            law[text] = probability
            return
        prefix = [*case.prompt, *text]
        row = filters.last(case.pair.logits(prefix), prefix)
        for token, p in enumerate(row.softmax(-1).tolist()):
            if p > 0:
                extend((*text, token), probability * p)

    extend((), 1.0)
    return law


@dataclass(frozen=True, slots=True)
class Written:
    """What the loop writes: its law, in how many paths and at most how many rounds, where the
    guesses came from, and what became of tokens."""

    law: Law
    paths: int
    rounds: int
    sources: frozenset[str]
    fates: frozenset[str]


def written_law(case: Case, variant: Variant = RIGHT) -> Written:
    """The law of what the loop writes in one case, over every path."""
    texts = Texts(case.pair.tokenizer)
    rounds = 0
    sources: set[str] = set()
    fates: set[str] = set()

    def play(chance: Script) -> tuple[int, ...]:
        nonlocal rounds
        run = speculative(
            case.pair.target,
            _drafter(case, variant.drafting(chance)),
            case.prompt,
            case.settings,
            texts=texts,
            eos_ids=case.pair.eos_ids,
            chance=chance,
            verify=variant.verify,
            observe=False,
        )
        rounds = max(rounds, len(list(run)))
        for round_ in run.rounds:
            sources.update(token.source for token in round_.drafted)
            fates.update(token.fate for token in (*round_.drafted, *round_.committed))
        return tuple(run.tokens[len(case.prompt) :])

    law, paths = law_of(play)
    return Written(law, paths, rounds, frozenset(sources), frozenset(fates))


def _drafter(case: Case, chance: Chance) -> Drafter:
    return drafters.create(case.drafter, case.pair, case.settings, len(case.prompt), chance)
