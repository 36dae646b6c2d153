"""Measuring a plan, run by run, in the caller's own time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from specviz.race import begin
from specviz.rows import Measured
from specviz.sweep.comparison import Generated
from specviz.sweep.plan import Job, Plan, Rival, pair_of
from specviz.trace import dump_trace, load_trace

WARM_UP_TOKENS = 8

Stop = Callable[[], bool]


def never() -> bool:
    """Nobody stops."""
    return False


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that could not be made, with the reason."""

    job: Job | Rival
    why: str


Outcome = Measured | Generated | Failed


class Sweep:
    """A plan on its way. ``pairs`` are the loaded pairs of one target by the name of their
    draft; ``done`` is what an earlier sitting has measured, which is not measured again
    where prompt, settings, models and machine are the same.

    Attributes to read: ``outcomes`` (all so far), ``total`` (runs in the plan), ``machine``.
    """

    def __init__(
        self,
        pairs: Mapping[str, Any],
        plan: Plan,
        done: Iterable[Measured | Generated] = (),
    ) -> None:
        self.plan = plan
        self.total = len(plan)
        self._pairs = pairs
        self.machine = next(iter(pairs.values())).machine
        jobs = {job.key: job for job in plan.jobs()}
        self.outcomes: list[Outcome] = []
        for one in done:
            if self._answers(one, jobs.get(key_of(one))):
                self.outcomes.append(one)
                del jobs[key_of(one)]
        self._waiting = deque(jobs.values())
        self._generate: Any = None
        self._seconds = 0.0
        self._made = 0

    @property
    def finished(self) -> bool:
        """Whether no run is left."""
        return not self._waiting

    @property
    def measured(self) -> list[Measured]:
        """The races so far."""
        return [one for one in self.outcomes if isinstance(one, Measured)]

    @property
    def generated(self) -> list[Generated]:
        """The calls of generate() so far."""
        return [one for one in self.outcomes if isinstance(one, Generated)]

    @property
    def failed(self) -> list[Failed]:
        """The runs that could not be made in this sitting."""
        return [one for one in self.outcomes if isinstance(one, Failed)]

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes if it goes on as in this sitting; None before its first run."""
        if not self._made:
            return None
        return self._seconds / self._made * len(self._waiting)

    def warm_up(self, stop: Stop = never) -> None:
        """Let every setup that is still to run meet its first time where nobody measures."""
        for _ in self.warm_ups(stop):
            pass

    def warm_ups(self, stop: Stop = never) -> Iterator[Job | Rival]:
        """``warm_up`` one setup after another: yields each when it has been run."""
        met: set[Any] = set()
        for job in self._waiting:
            what = job.key[:-2]
            if what in met or stop():
                continue
            met.add(what)
            self._make(job, stop, tokens=WARM_UP_TOKENS)
            yield job

    def advance(self, stop: Stop = never) -> Outcome | None:
        """Make the next run. None when ``stop`` ended it: it then counts as not made."""
        if self.finished:
            return None
        job = self._waiting[0]
        begin = time.monotonic()
        outcome = self._make(job, stop)
        if outcome is None:
            return None
        self._waiting.popleft()
        self._seconds += time.monotonic() - begin
        self._made += 1
        self.outcomes.append(outcome)
        return outcome

    def _answers(self, one: Measured | Generated, job: Job | Rival | None) -> bool:
        """Whether what was measured earlier is what this job would measure here."""
        if not isinstance(job, Job) or not isinstance(one, Measured):
            return job is not None
        trace, here = one.trace, self.machine
        return (
            trace.settings == self.plan.settings_of(job.setup, job.repeat)
            and trace.prompt == job.prompt.text
            and trace.pair.target == pair_of(self._pairs, job.setup.draft).info.target
            and (trace.machine.device, trace.machine.dtype, trace.machine.threads)
            == (here.device, here.dtype, here.threads)
        )

    def _make(self, job: Job | Rival, stop: Stop, tokens: int | None = None) -> Outcome | None:
        try:
            if isinstance(job, Rival):
                return self._rival(job, tokens)
            return self._race(job, stop, tokens)
        except (ArithmeticError, RuntimeError, ValueError) as error:
            return Failed(job, str(error))

    def _rival(self, job: Rival, tokens: int | None) -> Generated:
        if self._generate is None:
            # Only a comparison needs transformers' generate.
            from specviz.sweep.generate import Generate

            self._generate = Generate(self._pairs, self.plan)
        called: Generated = self._generate.call(job, tokens)
        return called

    def _race(self, job: Job, stop: Stop, tokens: int | None) -> Measured | None:
        settings = self.plan.settings_of(job.setup, job.repeat)
        if tokens is not None:
            settings = replace(settings, max_new_tokens=min(tokens, settings.max_new_tokens))
        pair = pair_of(self._pairs, job.setup.draft)
        race = begin(pair, job.setup.drafter, job.prompt.text, settings, observe=False)
        for _ in race.start():
            pass
        while not race.finished:
            if stop():
                return None
            race.advance()
        # Figures are taken from what can be saved, so that a table is the same from a file.
        trace = load_trace(dump_trace(race.trace()))
        return Measured(job.setup, job.prompt.id, job.prompt.kind, job.repeat, trace)


def key_of(outcome: Measured | Generated) -> tuple[Any, ...]:
    """The key of the job that an outcome belongs to."""
    if isinstance(outcome, Generated):
        return outcome.key
    return outcome.setup, outcome.prompt_id, outcome.repeat
