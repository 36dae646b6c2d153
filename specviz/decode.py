"""The decode loop: draft, verify, keep what passes. Resumable: the caller asks for each round.

arXiv 2211.17192, algorithm 1, run to the end of the text. The baseline is this same loop with
nothing drafted, so that both lanes of a race pay for the same code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from specviz import schedule
from specviz.cache import CachedModel, LanguageModel
from specviz.drafters import Drafter, NoDrafter
from specviz.records import (
    Candidate,
    DraftedFate,
    FinishReason,
    LaneName,
    Round,
    Run,
    Settings,
    Token,
)
from specviz.sampling import (
    Chance,
    Filters,
    Guess,
    SeededChance,
    Verdict,
    Verify,
    argmax,
    dense_law,
    logits_of,
    verify_greedy,
    verify_sampled,
)
from specviz.text import Texts, first_stop
from specviz.timing import Clock, DeviceClock

TOP = 10


class Decoding(Iterator[Round]):
    """One lane: an iterator of Round that can be left and taken up again at any time.

    A class and not a generator function, since ``inference_mode`` around a ``yield`` leaks into
    whatever thread asks next. Attributes to read: ``tokens`` (prompt and output ids),
    ``seconds`` (the decode clock), ``finish_reason`` ("running" until the last round),
    ``prefill_s``, ``draft_prefill_s``, ``observe_s``.

    ``observe`` off leaves out what is only for showing: the top candidates of each position.
    ``verify`` decides where there is something to sample: the proofs put wrong ones here.
    """

    def __init__(
        self,
        lane: LaneName,
        target: LanguageModel,
        drafter: Drafter,
        prompt_ids: Sequence[int],
        settings: Settings,
        *,
        texts: Texts,
        eos_ids: Collection[int] = (),
        chance: Chance | None = None,
        clock: Clock | None = None,
        drafter_name: str = "",
        observe: bool = True,
        verify: Verify = verify_sampled,
    ) -> None:
        if not prompt_ids:
            raise ValueError("the prompt must hold at least one token")
        self.lane = lane
        self.settings = settings
        self.tokens = list(prompt_ids)
        self.rounds: list[Round] = []
        self.finish_reason: FinishReason = "running"
        self.seconds = self.prefill_s = self.draft_prefill_s = self.observe_s = 0.0
        self._prompt_length = len(prompt_ids)
        self._target = CachedModel(target, drafter.reads_features)
        self._context = target.context
        self._drafter = drafter
        self._drafter_name = drafter_name
        self._schedule = schedule.of(settings)
        self._chance = chance or SeededChance(settings.seed)
        self._filters = Filters(settings, len(prompt_ids), list(eos_ids), target.device)
        self._eos_ids = frozenset(eos_ids)
        self._clock = clock or DeviceClock(*target.devices, *drafter.devices)
        self._texts = texts
        self._detokenizer = texts.detokenizer(prompt_ids)
        self._text = ""
        self._text_end: int | None = None
        self._observe = observe
        self._verify = verify
        self._prefilled = False

    @torch.inference_mode()
    def prefill(self) -> None:
        """Read the prompt, all but its last token, with both models. Done once; the first
        round does it when nobody asked before."""
        if self._prefilled:
            return
        self._prefilled = True
        length = len(self.tokens)
        longest = length + self.settings.max_new_tokens
        self._target.prepare(length, longest, self._schedule.most + 1)
        self._drafter.prepare(length, longest, self._schedule.most)
        start = self._clock.now()
        if len(self.tokens) > 1:
            self._target.append(self.tokens[:-1])
        read = self._clock.now()
        if self._drafter.reads_features and len(self.tokens) > 1:
            self._drafter.read_features(self._target.features)
        self._drafter.prefill(self.tokens)
        self.prefill_s, self.draft_prefill_s = read - start, self._clock.now() - read

    @torch.inference_mode()
    def __next__(self) -> Round:
        self.prefill()
        self._end_if_full()
        if self.finish_reason != "running":
            raise StopIteration
        gamma = self._draft_length()
        start = self._clock.now()
        guesses = self._drafter.draft(self.tokens, gamma) if gamma else []
        drafted = self._clock.now()
        logits = self._target.append(
            [self.tokens[-1], *(guess.id for guess in guesses)], keep=len(guesses) + 1
        )
        verified = self._clock.now()
        with logits_of(f"{self._target.model.name}, the target,"):
            laws, verdict = self._decide(logits, guesses)
        self._target.roll_back(len(self.tokens) + verdict.accepted)
        self._schedule.learn(len(guesses), verdict.accepted)
        if self._drafter.reads_features:
            self._drafter.read_features(self._target.features[: verdict.accepted + 1])
        sampled = self._clock.now()
        times = (drafted - start, verified - drafted, sampled - verified)
        round_ = replace(self._record(guesses, laws, verdict, times), gamma=gamma)
        if self.finish_reason != "running":
            self._target.roll_back(min(self._target.length, len(self.tokens) - 1))
        self.rounds.append(round_)
        self.seconds += round_.seconds
        self.observe_s += self._clock.now() - sampled
        return round_

    def stop(self, reason: FinishReason = "stopped") -> None:
        """End the run here. What was decoded stays; of a character that nothing will finish any
        more the last token has what there is."""
        if self.finish_reason != "running":
            return
        self.finish_reason = reason
        if self.rounds and (rest := self._detokenizer.flush()):
            last = self.rounds[-1]
            assert last.added is not None, "only a round that ends the text adds nothing"
            added = replace(last.added, text=last.added.text + rest, label="")
            self.rounds[-1] = replace(last, added=added)

    def release(self) -> None:
        """Let go of both models and their caches: the run is over. What was recorded stays."""
        del self._target, self._drafter

    def run(self) -> Run:
        """Everything so far as one record."""
        return Run(
            lane=self.lane,
            drafter=self._drafter_name,
            rounds=tuple(self.rounds),
            finish_reason=self.finish_reason,
            prefill_s=self.prefill_s,
            draft_prefill_s=self.draft_prefill_s,
            observe_s=self.observe_s,
            text_end=self._text_end,
        )

    def _room(self) -> tuple[int, int]:
        """How many tokens may still be added: by the settings, and by the context."""
        wanted = self.settings.max_new_tokens - (len(self.tokens) - self._prompt_length)
        return wanted, self._context - len(self.tokens)

    def _end_if_full(self) -> None:
        """End the run where no token is left to add."""
        wanted, room = self._room()
        if self.finish_reason == "running" and min(wanted, room) <= 0:
            self.finish_reason = "length" if wanted <= 0 else "context"

    def _draft_length(self) -> int:
        """How many tokens to draft next. The round adds one more, so the last ones draft fewer."""
        return max(0, min(self._schedule.gamma, min(self._room()) - 1))

    def _decide(self, logits: Tensor, guesses: list[Guess]) -> tuple[Tensor, Verdict]:
        """The verdict over rows [n + 1, V], and the rows it was made from (logits when greedy,
        laws otherwise)."""
        if self._filters.pass_greedy_through:
            return logits, verify_greedy(argmax(logits), guesses)
        rows = self._filters.apply(logits, self.tokens, [guess.id for guess in guesses])
        if self._filters.greedy:
            return rows, verify_greedy(argmax(rows), guesses)
        laws = rows.softmax(-1)
        return laws, self._verify(laws, guesses, self._chance)

    # --- recording, outside the clocks -----------------------------------------------------

    def _record(
        self,
        guesses: list[Guess],
        laws: Tensor,
        verdict: Verdict,
        times: tuple[float, float, float],
    ) -> Round:
        position = len(self.tokens) - self._prompt_length
        ids = [guess.id for guess in guesses]
        foreseen = self._detokenizer.peek(ids)
        kept, pieces = self._commit([*ids[: verdict.accepted], verdict.added])
        accepted = min(verdict.accepted, kept)
        rejected = accepted if kept > verdict.accepted else None
        read_as = [*pieces[:accepted], *foreseen[accepted:]]
        drafted = self._drafted(guesses, laws, verdict, read_as, accepted, rejected)
        added = None
        if kept > verdict.accepted:
            added = self._added(guesses, laws, verdict, pieces[-1])
        return Round(len(self.rounds), position, tuple(drafted), added, *times)

    def _commit(self, ids: list[int]) -> tuple[int, list[str]]:
        """Put ids behind the text, up to the first that ends it. Returns how many, and the text
        of each."""
        pieces: list[str] = []
        for token in ids:
            self.tokens.append(token)
            pieces.append(self._detokenizer.push(token))
            self._text += pieces[-1]
            if token in self._eos_ids:
                self.finish_reason = "eos"
            elif self.settings.stop and (end := self._stop_at(pieces[-1])) is not None:
                self.finish_reason, self._text_end = "stop", end
            else:
                continue
            break
        self._end_if_full()
        if self.finish_reason != "running":
            pieces[-1] += self._detokenizer.flush()
        return len(pieces), pieces

    def _stop_at(self, piece: str) -> int | None:
        """Where the text ends because a stop string has just been completed, or None. Only the
        end of the text can hold a new match."""
        start = max(0, len(self._text) - len(piece) - max(map(len, self.settings.stop)))
        found = first_stop(self._text[start:], self.settings.stop)
        return None if found is None else start + found

    def _drafted(
        self,
        guesses: list[Guess],
        laws: Tensor,
        verdict: Verdict,
        texts: list[str],
        accepted: int,
        rejected: int | None,
    ) -> list[Token]:
        """The drafted tokens with their fates. Behind a rejection or the end of the text
        nothing counts as tested."""
        tokens = []
        for i, guess in enumerate(guesses):
            fate: DraftedFate = "discarded"
            if i < accepted or i == rejected:
                fate = "accepted" if i < accepted else "rejected"
            token = Token(
                id=guess.id,
                text=texts[i],
                label="" if texts[i] else self._texts.label(guess.id),
                fate=fate,
                source=guess.source,
                parent=i - 1,
                q=guess.q,
                copied_from=guess.copied_from,
                matched=guess.matched,
                passage=self._texts.decode(guess.passage) if guess.passage else "",
            )
            if fate != "discarded":
                token = replace(
                    token,
                    p=verdict.p[i],
                    u=verdict.u[i] if verdict.u else None,
                    p_top=self._top(laws[i], guess.id, verdict.added if i == rejected else None),
                    q_top=self._draft_top(guess),
                )
            if i == rejected and verdict.residual is not None:
                rest = verdict.residual / verdict.residual.sum()
                token = replace(token, residual_top=self._top_of(rest, [verdict.added]))
            tokens.append(token)
        return tokens

    def _added(
        self,
        guesses: list[Guess],
        laws: Tensor,
        verdict: Verdict,
        piece: str,
    ) -> Token:
        """The token of the target's own. A resampled one shares its row with the rejection."""
        resampled = verdict.accepted < len(guesses)
        row = laws[verdict.accepted]
        return Token(
            id=verdict.added,
            text=piece,
            label="" if piece else self._texts.label(verdict.added),
            fate="resampled" if resampled else "bonus" if guesses else "target",
            source="target",
            parent=verdict.accepted - 1,
            p=1.0 if self._filters.greedy else row[verdict.added].item(),
            p_top=() if resampled else self._top(row, verdict.added),
        )

    def _top(self, row: Tensor, *wanted: int | None) -> tuple[Candidate, ...]:
        """The likeliest tokens of a verified row, [V]."""
        if not self._observe:
            return ()
        law = row.float().softmax(-1) if self._filters.greedy else row
        return self._top_of(law, [token for token in wanted if token is not None])

    def _draft_top(self, guess: Guess) -> tuple[Candidate, ...]:
        """The likeliest tokens of the draft's law, in the target's ids."""
        if not self._observe or guess.logits is None:
            return ()
        law = guess.logits.float().softmax(-1) if guess.law is None else guess.law
        dense = dense_law(replace(guess, law=law), law.new_zeros(self._target.model.vocabulary))
        return self._top_of(dense, [guess.id])

    def _top_of(self, law: Tensor, wanted: list[int]) -> tuple[Candidate, ...]:
        """The TOP likeliest of a normalised law [V] and the wanted ids, likeliest first."""
        if not self._observe:
            return ()
        best = law.topk(min(TOP, law.shape[0]))
        listed = dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))
        for token in wanted:
            if token not in listed:
                listed[token] = law[token].item()
        return tuple(
            Candidate(token, self._texts.label(token), _six_digits(min(1.0, probability)))
            for token, probability in listed.items()
            if probability > 0
        )


def _six_digits(probability: float) -> float:
    """What is kept of a candidate's probability: a trace is mostly these."""
    return float(f"{probability:.6g}")


def speculative(
    target: LanguageModel,
    drafter: Drafter,
    prompt_ids: Sequence[int],
    settings: Settings,
    **options: Any,
) -> Decoding:
    """Speculative decoding of ``prompt_ids``, round by round; ``options`` as in Decoding.

    ``chance`` must be the one the drafter draws from, so that one seed fixes the whole run.
    Raises ValueError for an empty prompt, and from ``next`` ContextFull, NotRollable, BadLogits.
    """
    return Decoding("speculative", target, drafter, prompt_ids, settings, **options)


def baseline(
    target: LanguageModel, prompt_ids: Sequence[int], settings: Settings, **options: Any
) -> Decoding:
    """The target alone: one call a token, by the same loop. Raises as ``speculative`` does."""
    return Decoding("baseline", target, NoDrafter(), prompt_ids, settings, **options)
