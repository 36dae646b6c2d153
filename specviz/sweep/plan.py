"""What is to be measured: setups, prompts and repeats, and the jobs they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from specviz import drafters
from specviz.prompts import Prompt
from specviz.records import Settings
from specviz.rows import Setup
from specviz.trace import to_plain

MAX_JOBS = 100_000


class PlanError(ValueError):
    """A sweep that cannot be made; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Job:
    """One race: a setup on a prompt."""

    setup: Setup
    prompt: Prompt
    repeat: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells this job from all others of its plan."""
        return self.setup, self.prompt.id, self.repeat


@dataclass(frozen=True, slots=True)
class Rival:
    """One call of transformers' generate() on a prompt, to compare with.

    ``method``, ``draft`` and ``gamma`` are as in ``comparison.Generated``.
    """

    method: str
    draft: str
    gamma: int
    prompt: Prompt
    repeat: int

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells this call from all others of its plan."""
        return self.method, self.draft, self.gamma, self.prompt.id, self.repeat


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole sweep. ``settings`` holds what all setups share; ``rivals`` the (method, draft,
    gamma) of generate() to run on the same prompts. Raises PlanError for one that is empty, too
    large, or names a prompt twice."""

    target: str
    setups: tuple[Setup, ...]
    prompts: tuple[Prompt, ...]
    settings: Settings
    repeats: int = 1
    rivals: tuple[tuple[str, str, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.setups or not self.prompts:
            raise PlanError("nothing to measure: choose at least one drafter and one prompt")
        if not 1 <= self.repeats <= 1000:
            raise PlanError(f"repeats must be from 1 to 1000, not {self.repeats}")
        ids = [prompt.id for prompt in self.prompts]
        if len(set(ids)) != len(ids):
            twice = next(name for name in ids if ids.count(name) > 1)
            raise PlanError(f"two prompts have the id {twice!r}; give each its own")
        if len(self) > MAX_JOBS:
            raise PlanError(f"{len(self)} runs are more than {MAX_JOBS}; choose fewer values")
        for setup in self.setups:
            self.settings_of(setup, 0)

    def __len__(self) -> int:
        return (len(self.setups) + len(self.rivals)) * len(self.prompts) * self.repeats

    def settings_of(self, setup: Setup, repeat: int) -> Settings:
        """The settings of one run. Each repeat draws from a seed of its own. Raises
        SettingsError."""
        return replace(
            self.settings,
            gamma=setup.gamma,
            temperature=setup.temperature,
            confidence=setup.confidence,
            schedule=setup.schedule,  # type: ignore[arg-type]
            seed=self.settings.seed + repeat,
        )

    def jobs(self) -> Iterator[Job | Rival]:
        """Every run. All setups follow each other on a prompt, so that a slow minute of the
        machine hits all alike; each prompt begins with another one, so that none is always
        first."""
        for repeat in range(self.repeats):
            for turn, prompt in enumerate(self.prompts):
                on_prompt: list[Job | Rival] = [Job(s, prompt, repeat) for s in self.setups]
                on_prompt += [Rival(*rival, prompt, repeat) for rival in self.rivals]
                start = turn % len(on_prompt)
                yield from on_prompt[start:] + on_prompt[:start]

    def to_plain(self) -> dict[str, Any]:
        """The plan as JSON values; equal plans are equal there."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def cross(
    sources: Iterable[tuple[str, str]],
    gammas: Sequence[int],
    temperatures: Sequence[float] = (0.0,),
    confidences: Sequence[float] = (0.0,),
    schedules: Sequence[str] = ("constant",),
) -> tuple[Setup, ...]:
    """Every combination of (drafter, draft) sources and settings, each once."""
    combined = product(sources, gammas, temperatures, confidences, schedules)
    return tuple(
        dict.fromkeys(
            Setup(drafter, draft, gamma, temperature, confidence, schedule)
            for (drafter, draft), gamma, temperature, confidence, schedule in combined
        )
    )


def sources(pairs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every (drafter, draft) that ``pairs``, loaded pairs of one target by the name of their
    draft, can run. A drafter that asks no draft model is there once."""
    found: dict[tuple[str, str], None] = {}
    for draft, pair in pairs.items():
        for name in drafters.names(pair):
            found[name, draft if asks_draft(name, pair) else ""] = None
    return list(found)


def pair_of(pairs: Mapping[str, Any], draft: str) -> Any:
    """The loaded pair that runs a setup with this draft, any of them where it needs none."""
    return pairs[draft] if draft in pairs else next(iter(pairs.values()))


def asks_draft(name: str, pair: Any) -> bool:
    """Whether the drafter of that name looks for the pair's draft model when it is made."""
    watched = _Watched(pair)
    drafters.modules()[name].create(watched, Settings(), 1, None)
    return pair.draft is not None and "draft" in watched.asked


class _Watched:
    """A pair that notes what is asked of it."""

    def __init__(self, pair: Any) -> None:
        self._pair = pair
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(self._pair, name)
