"""What a sweep compares, and one measured run of it."""

from __future__ import annotations

from dataclasses import dataclass

from specviz.records import Run, Trace


@dataclass(frozen=True, slots=True)
class Setup:
    """What a sweep compares: where the guesses come from, and the settings that vary.

    ``draft`` names the draft model, empty where the drafter uses none. The rest is as in
    ``records.Settings``.
    """

    drafter: str
    draft: str = ""
    gamma: int = 4
    temperature: float = 0.0
    confidence: float = 0.0
    schedule: str = "constant"

    @property
    def source(self) -> str:
        """Where the guesses come from, in a few words."""
        return f"{self.drafter}, {self.draft}" if self.draft else self.drafter

    @property
    def rest(self) -> str:
        """The settings beside drafter and gamma, as far as they are not the usual ones."""
        parts = []
        if self.temperature:
            parts.append(f"temperature {self.temperature:g}")
        if self.confidence:
            parts.append(f"confidence {self.confidence:g}")
        if self.schedule != "constant":
            parts.append(f"{self.schedule} gamma")
        return ", ".join(parts)

    @property
    def name(self) -> str:
        """All of it but gamma."""
        return f"{self.source}, {self.rest}" if self.rest else self.source


@dataclass(frozen=True, slots=True)
class Measured:
    """One race of a sweep: a setup on a prompt, with its own baseline beside it."""

    setup: Setup
    prompt_id: str
    kind: str
    repeat: int
    trace: Trace

    @property
    def run(self) -> Run:
        """The speculative lane."""
        return next(run for run in self.trace.runs if run.lane == "speculative")

    @property
    def baseline(self) -> Run:
        """The target alone."""
        return next(run for run in self.trace.runs if run.lane == "baseline")
