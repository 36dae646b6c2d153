"""What is computed on a lent GPU: a race, told round by round, and the proofs on real models.

Both lanes of a race run there, in one call. Here each lane hands out its rounds as they arrive, and
events and figures are made as of any race. A race that is paused here goes on there: the GPU is not
kept waiting for a person, and the rounds are shown when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from specviz.lossless import variants
from specviz.lossless.greedy import GreedyProof, GreedyResult
from specviz.lossless.sampled import Arms, Plan, SampledResult
from specviz.race import Lanes, Race
from specviz.records import FinishReason, LaneName, Round, Run, Settings
from specviz.ui.gpu import CUT_OFF, GpuError, computed


def race_there(
    pair: Any, drafter: str, prompt: str, settings: Settings, baseline: bool | Run, observe: bool
) -> Iterator[Any]:
    """Where the models are: first the trace of a race that has read its prompt, then, for each
    round, its lane's record with that round alone; without any where the lane just ends."""
    race = Race(pair, drafter, prompt, settings, baseline=baseline, observe=observe)
    for _ in race.start():
        pass
    yield race.trace()
    while not race.finished:
        event = race.advance()[0]
        run = race.trace().run(event["lane"])
        assert run is not None
        yield replace(run, rounds=run.rounds[-1:] if event["e"] == "round" else ())


class Arriving:
    """A lane whose rounds come from elsewhere, handed out like those of one that is run here."""

    def __init__(self, head: Run, pieces: Iterator[Run]) -> None:
        self.lane: LaneName = head.lane
        self.seconds = 0.0
        self.finish_reason: FinishReason = head.finish_reason
        self.prefill_s, self.draft_prefill_s = head.prefill_s, head.draft_prefill_s
        self._head, self._pieces = head, pieces
        self._rounds: list[Round] = []

    def prefill(self) -> None:
        """The prompt was read there."""

    def __next__(self) -> Round:
        if self.finish_reason != "running":
            raise StopIteration
        self._head = self._next_piece()
        self.finish_reason = self._head.finish_reason
        if not self._head.rounds:
            raise StopIteration
        fresh = self._head.rounds[0]
        self._rounds.append(fresh)
        self.seconds += fresh.seconds
        return fresh

    def stop(self, reason: FinishReason = "stopped") -> None:
        """End the lane here. What has arrived stays."""
        if self.finish_reason == "running":
            self.finish_reason = reason

    def run(self) -> Run:
        """The rounds that have arrived."""
        return replace(self._head, rounds=tuple(self._rounds), finish_reason=self.finish_reason)

    def release(self) -> None:
        """Nothing is held here."""

    def _next_piece(self) -> Run:
        """The next round's piece: both sides let the lane whose clock is behind go next, so it is
        this lane's."""
        piece = next(self._pieces, None)
        if piece is None or piece.lane != self.lane:
            raise GpuError(CUT_OFF)
        return piece


class LentRace(Race):
    """See ``Race``; ``pair`` is a lent one."""

    def __init__(
        self,
        pair: Any,
        drafter: str,
        prompt: str,
        settings: Settings,
        *,
        baseline: bool | Run = True,
        observe: bool = True,
    ) -> None:
        self._pair = pair
        self._reused = isinstance(baseline, Run)
        lanes = 2 if baseline is True else 1
        self._pieces = computed(
            pair, race_there, drafter, prompt, settings, baseline, observe,
            tokens=lanes * settings.max_new_tokens,
        )  # fmt: skip
        opening = next(self._pieces, None)
        if opening is None:
            raise GpuError(CUT_OFF)
        self.info, self.machine, self.note = opening.pair, opening.machine, opening.note
        self.settings, self.prompt, self.drafter = settings, prompt, drafter
        self._prompt_tokens = opening.prompt_tokens
        arriving = [Arriving(run, self._pieces) for run in opening.runs]
        self._live: list[Any] = [lane for lane in arriving if not self._recorded(lane)]
        self._lanes = Lanes(arriving)

    def _recorded(self, lane: Arriving) -> bool:
        """Whether the lane was measured in an earlier race."""
        return self._reused and lane.lane == "baseline"

    def finish(self) -> dict[str, Any]:
        """See ``Race.finish``."""
        written = sum(len(lane.run().tokens) for lane in self._live)
        self._pair.learn(written, self.seconds)
        return super().finish()

    def release(self) -> None:
        """Give the GPU back: the race is over. What has arrived stays."""
        self._pieces.close()  # type: ignore[attr-defined]


def sampled_there(pair: Any, plan: Plan, drafter: str, variant: str) -> Iterator[SampledResult]:
    """Where the models are: both arms of a sampled proof."""
    yield from Arms(pair, plan).compare(drafter, variants.find(variant))


def greedy_there(
    pair: Any, settings: Settings, prompt: str, names: Sequence[str]
) -> Iterator[GreedyResult]:
    """Where the models are: a greedy proof with each drafter."""
    yield from GreedyProof(pair, settings).compare(prompt, names)
