"""Two lanes side by side, measured like for like.

Each lane has its own clock that counts only its own compute, and the lane whose clock is behind
runs next. Both then advance as if side by side in real time, and what else the machine is doing
hits both alike.

The race speaks in events, plain JSON values that the page and the command line show as they
come: ``start``, ``prefill``, ``round``, ``end``, ``done``. A recorded trace becomes the same
events again (``replay_events``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from specviz import metrics
from specviz.records import (
    FinishReason,
    LaneName,
    Machine,
    PairInfo,
    PromptToken,
    Round,
    Run,
    Settings,
    Trace,
)
from specviz.trace import to_plain

Event = dict[str, Any]


class Recorded:
    """A lane that was measured before, handed out round by round like one that is being run."""

    def __init__(self, run: Run) -> None:
        self.lane: LaneName = run.lane
        self.seconds = 0.0
        self.finish_reason: FinishReason = "running" if run.rounds else _ended(run)
        self.prefill_s, self.draft_prefill_s = run.prefill_s, run.draft_prefill_s
        self._run = run
        self._next = 0

    def prefill(self) -> None:
        """Nothing is left to do."""

    def __next__(self) -> Round:
        if self.finish_reason != "running":
            raise StopIteration
        round_ = self._run.rounds[self._next]
        self._next += 1
        self.seconds += round_.seconds
        if self._next == len(self._run.rounds):
            self.finish_reason = _ended(self._run)
        return round_

    def stop(self, reason: FinishReason = "stopped") -> None:
        """The recorded run is whole; stopping only ends the showing of it."""
        if self.finish_reason == "running":
            self.finish_reason = reason

    def run(self) -> Run:
        """The rounds handed out so far."""
        whole = self._next == len(self._run.rounds)
        return replace(
            self._run,
            rounds=self._run.rounds[: self._next],
            finish_reason=self.finish_reason,
            text_end=self._run.text_end if whole else None,
        )


def _ended(run: Run) -> FinishReason:
    """Why a recorded run has no more rounds. One saved while it was paused goes no further."""
    return "stopped" if run.finish_reason == "running" else run.finish_reason


class Lanes:
    """The merge of one or two lanes into events with running figures."""

    def __init__(self, lanes: list[Any]) -> None:
        self._lanes = lanes
        self._tallies = {lane.lane: metrics.Tally() for lane in lanes}

    @property
    def finished(self) -> bool:
        """Whether every lane has come to its end."""
        return all(lane.finish_reason != "running" for lane in self._lanes)

    def prefill(self) -> Iterator[Event]:
        """Let each lane read the prompt."""
        for lane in self._lanes:
            lane.prefill()
            seconds = lane.prefill_s + lane.draft_prefill_s
            yield {"e": "prefill", "lane": lane.lane, "s": seconds}

    def advance(self) -> list[Event]:
        """One round of the lane whose clock is behind; its end where that was the last."""
        running = [lane for lane in self._lanes if lane.finish_reason == "running"]
        if not running:
            return []
        lane = min(running, key=lambda lane: lane.seconds)
        try:
            round_ = next(lane)
        except StopIteration:
            return [self._end(lane)]
        self._tallies[lane.lane].add(round_)
        event = {
            "e": "round",
            "lane": lane.lane,
            "round": to_plain(round_),
            "figures": self.figures().to_dict(),
        }
        return [event] if lane.finish_reason == "running" else [event, self._end(lane)]

    def stop(self, reason: FinishReason) -> list[Event]:
        """End every lane that still runs."""
        running = [lane for lane in self._lanes if lane.finish_reason == "running"]
        for lane in running:
            lane.stop(reason)
        return [self._end(lane) for lane in running]

    def ends_without_rounds(self) -> list[Event]:
        """The ends of lanes that were over before their first round."""
        return [self._end(lane) for lane in self._lanes if lane.finish_reason != "running"]

    def figures(self) -> metrics.Figures:
        """The figures at this moment."""
        tally = self._tallies.get("speculative", metrics.Tally())
        return metrics.figures(tally, self._tallies.get("baseline"))

    def runs(self) -> tuple[Run, ...]:
        """Each lane's record so far."""
        return tuple(lane.run() for lane in self._lanes)

    def _end(self, lane: Any) -> Event:
        run = lane.run()
        return {
            "e": "end",
            "lane": lane.lane,
            "finish_reason": run.finish_reason,
            "text_end": run.text_end,
        }


class Race:
    """A speculative run and its baseline on a loaded pair.

    ``baseline`` is True to measure it, False to leave it out, or an earlier Run to reuse (see
    ``baseline_key``). Raises ValueError from the constructor for a prompt or a drafter that
    cannot be used.
    """

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
        # Only a race needs torch; replaying must do without.
        from specviz import decode, drafters
        from specviz.sampling import SeededChance
        from specviz.text import Texts

        self.info: PairInfo = pair.info
        self.machine: Machine = pair.machine
        self.settings, self.prompt, self.drafter = settings, prompt, drafter
        self._ids, self.note = _encoded(pair, prompt, settings)
        texts = Texts(pair.tokenizer)
        self._prompt_tokens = _prompt_tokens(texts, self._ids)
        self._reused = isinstance(baseline, Run)
        chance = SeededChance(settings.seed)
        common: dict[str, Any] = {
            "texts": texts,
            "eos_ids": pair.eos_ids,
            "observe": observe,
        }
        self._live = [
            decode.speculative(
                pair.target,
                drafters.create(drafter, pair, settings, len(self._ids), chance),
                self._ids,
                settings,
                chance=chance,
                drafter_name=drafter,
                **common,
            )
        ]
        if baseline is True:
            self._live.append(decode.baseline(pair.target, self._ids, settings, **common))
        recorded = []
        if isinstance(baseline, Run):
            # What recording it took was spent in the run it comes from.
            recorded = [Recorded(replace(baseline, observe_s=0.0))]
        self._lanes = Lanes([*self._live, *recorded])

    @property
    def finished(self) -> bool:
        """Whether every lane has come to its end."""
        return self._lanes.finished

    @property
    def seconds(self) -> float:
        """Seconds computed so far: the prompt and the rounds, of both lanes unless one is a
        recorded run."""
        return sum(lane.prefill_s + lane.draft_prefill_s + lane.seconds for lane in self._live)

    def start(self) -> Iterator[Event]:
        """What is to be shown first, then the prompt being read by each lane."""
        yield start_event(self.trace(), "live", self._reused)
        yield from self._lanes.prefill()

    def advance(self) -> list[Event]:
        """One round of the lane whose clock is behind."""
        return self._lanes.advance()

    def stop(self, reason: FinishReason = "stopped", note: str = "") -> list[Event]:
        """End both lanes here; everything so far is kept. ``note`` says why, in the trace."""
        self.note = " ".join(filter(None, (self.note, note)))
        return self._lanes.stop(reason)

    def release(self) -> None:
        """Let go of the models and of both lanes' caches: the race is over. What was recorded
        stays."""
        for lane in self._live:
            lane.release()

    def finish(self) -> Event:
        """The closing figures."""
        return done_event(self.trace())

    def trace(self) -> Trace:
        """Everything so far as a record that can be saved."""
        return Trace(
            pair=self.info,
            machine=self.machine,
            settings=self.settings,
            prompt=self.prompt,
            prompt_tokens=self._prompt_tokens,
            runs=self._lanes.runs(),
            note=self.note,
        )


def _encoded(pair: Any, prompt: str, settings: Settings) -> tuple[list[int], str]:
    """The prompt's ids, and a note where they are not all of it. Raises PromptError."""
    from specviz.chat import encode, encode_cut

    if settings.long_prompt != "cut":
        return encode(pair, prompt, settings.chat), ""
    ids, left_out = encode_cut(pair, prompt, settings.chat, settings.max_new_tokens)
    if not left_out:
        return ids, ""
    return ids, (
        f"The prompt was longer than the context: {left_out:,} tokens of its beginning were left"
        " out."
    )


def begin(pair: Any, *arguments: Any, **options: Any) -> Race:
    """A ``Race`` with these arguments, made by the pair itself where its models are elsewhere."""
    own: Any = getattr(pair, "race", partial(Race, pair))
    race: Race = own(*arguments, **options)
    return race


def baseline_key(models: Any, prompt: str, settings: Settings) -> Hashable:
    """Equal for two races whose baselines would be the same run on the same machine: a measured
    one may then be shown again. ``models`` is a pair or a race. The draft, the drafter and how
    much is drafted do not matter to it."""
    machine = models.machine
    alone = replace(settings, gamma=0, schedule="constant", confidence=0.0)
    return models.info.target, machine.device, machine.dtype, prompt, alone


def replay_events(trace: Trace) -> Iterator[Event]:
    """A recorded race as the events it was made of, in the order of the clocks."""
    yield start_event(trace, "replay", False)
    lanes = Lanes([Recorded(run) for run in trace.runs])
    yield from lanes.prefill()
    yield from lanes.ends_without_rounds()
    while not lanes.finished:
        yield from lanes.advance()
    yield done_event(trace)


def start_event(trace: Trace, mode: str, reused: bool) -> Event:
    """What runs on what, and the prompt as the models see it."""
    return {
        "e": "start",
        "mode": mode,
        "lanes": [run.lane for run in trace.runs],
        "pair": asdict(trace.pair),
        "machine": {**asdict(trace.machine), "versions": dict(trace.machine.versions)},
        "settings": asdict(trace.settings),
        "drafter": next((r.drafter for r in trace.runs if r.lane == "speculative"), ""),
        "prompt": trace.prompt,
        "prompt_tokens": to_plain(trace.prompt_tokens),
        "note": trace.note,
        "baseline_reused": reused,
    }


def done_event(trace: Trace) -> Event:
    """The closing figures of a race that has ended, whether by itself or not."""
    run, plain = trace.run("speculative"), trace.run("baseline")
    tally = metrics.Tally.of(run.rounds if run else ())
    other = metrics.Tally.of(plain.rounds) if plain else None
    figures: Event = {
        **metrics.figures(tally, other).to_dict(),
        **asdict(metrics.costs(tally, other)),
    }
    figures["end_to_end_speedup"] = (
        metrics.end_to_end_speedup([run], [plain]) if run and plain else None
    )
    figures["observe_s"] = sum(lane.observe_s for lane in trace.runs)
    event: Event = {"e": "done", "figures": figures, "same_as_baseline": None, "divergence": None}
    if run and plain and trace.settings.greedy:
        event["same_as_baseline"] = metrics.same_text(run, plain)
        event["divergence"] = _divergence_event(run, plain)
    return event


def _divergence_event(run: Run, plain: Run) -> Event | None:
    found = metrics.divergence(run, plain)
    if found is None:
        return None
    return {
        "index": found.index,
        "text": found.token.text or found.token.label,
        "baseline_text": found.baseline_token.text or found.baseline_token.label,
        "gap": found.gap,
        "baseline_gap": found.baseline_gap,
    }


def _prompt_tokens(texts: Any, ids: list[int]) -> tuple[PromptToken, ...]:
    """The prompt as it is shown: what each token adds to the text, or its label where that is
    nothing."""
    detokenizer = texts.detokenizer()
    return tuple(PromptToken(token, detokenizer.push(token) or texts.label(token)) for token in ids)
