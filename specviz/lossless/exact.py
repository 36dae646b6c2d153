"""The exact proof: every path of the decode loop, weighed, against the target's own law.

The loop is ``decode.speculative`` itself, with its caches, filters, drafters and ends of text;
only the models are tables and the chance is scripted. Appendix A.1 of arXiv 2211.17192 proves
one token; here whole texts are enumerated, several rounds deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from specviz import drafters
from specviz.decode import speculative
from specviz.drafters import Drafter
from specviz.lossless.enumeration import Script, law_of
from specviz.lossless.tables import TablePair, small_store, table_model
from specviz.lossless.variants import RIGHT, Variant
from specviz.records import Settings
from specviz.sampling import Chance, Filters
from specviz.text import Texts

TOLERANCE = 1e-12
Law = dict[tuple[int, ...], float]


@dataclass(frozen=True)
class Case:
    """A setting in which the law of a text is enumerated. ``prompt`` are token ids."""

    name: str
    pair: TablePair
    settings: Settings
    drafter: str = "draft model"
    prompt: tuple[int, ...] = (3, 1)


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Both laws of one case. ``texts`` holds each text with its probability by the target alone
    and by the loop, the target's likeliest first. ``rounds`` is the most that one path took,
    ``sources`` names where guesses came from."""

    case: str
    paths: int
    rounds: int
    sources: frozenset[str]
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


def cases() -> list[Case]:
    """What the proof goes through: drafters, filters, ends of the text, draft lengths."""
    target, draft = table_model(1), table_model(2)
    pair = TablePair(target, draft)
    part = replace(pair, draft=table_model(5, vocabulary=3), draft_ids=(2, 0, 3), draft_unknown=1)
    stored = replace(pair, datastore=small_store(3, vocabulary=4))
    warm = Settings(max_new_tokens=3, gamma=2, temperature=1.0)
    rows = (
        ("one guess a round", pair, replace(warm, gamma=1)),
        ("two guesses a round", pair, warm),
        ("five tokens, several rounds", pair, replace(warm, max_new_tokens=5, top_k=2)),
        ("the text may end early", replace(pair, eos_ids=(0, 2)), replace(warm, gamma=1)),
        ("temperature 0.6", pair, replace(warm, temperature=0.6)),
        ("top-p 0.9", pair, replace(warm, top_p=0.9)),
        ("min-p 0.3, temperature 1.4", pair, replace(warm, min_p=0.3, temperature=1.4)),
        ("repetition penalty 1.5, top-k 3", pair, replace(warm, repetition_penalty=1.5, top_k=3)),
        ("a draft over part of the vocabulary", part, replace(warm, temperature=0.9, top_p=0.95)),
        ("a draft length that adapts", pair, replace(warm, gamma=1, schedule="adaptive")),
        ("a draft that ends where it is unsure", pair, replace(warm, confidence=0.4)),
    )
    repeating = (3, 1, 2, 3, 1)
    return [
        *(Case(name, models, settings) for name, models, settings in rows),
        Case("guesses copied from the text", pair, warm, "prompt lookup", repeating),
        Case("guesses from a store", stored, warm, "retrieval", repeating),
        Case("guesses from wherever there are some", stored, warm, "combined", repeating),
    ]


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
    return ExactResult(case.name, written.paths, written.rounds, written.sources, tuple(rows))


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
        row = case.pair.target.module.table[prefix[-2], prefix[-1]].log()[None]
        for token, p in enumerate(filters.last(row, prefix).softmax(-1).tolist()):
            if p > 0:
                extend((*text, token), probability * p)

    extend((), 1.0)
    return law


@dataclass(frozen=True, slots=True)
class Written:
    """What the loop writes: its law, in how many paths and at most how many rounds, and where
    the guesses came from."""

    law: Law
    paths: int
    rounds: int
    sources: frozenset[str]


def written_law(case: Case, variant: Variant = RIGHT) -> Written:
    """The law of what the loop writes in one case, over every path."""
    texts = Texts(case.pair.tokenizer)
    rounds = 0
    sources: set[str] = set()

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
        sources.update(token.source for round_ in run.rounds for token in round_.drafted)
        return tuple(run.tokens[len(case.prompt) :])

    law, paths = law_of(play)
    return Written(law, paths, rounds, frozenset(sources))


def _drafter(case: Case, chance: Chance) -> Drafter:
    return drafters.create(case.drafter, case.pair, case.settings, len(case.prompt), chance)
