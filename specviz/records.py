"""What happened in a run, as plain frozen values.

The words used for a token's fate:

- drafted tokens end as ``accepted``, ``rejected`` (the first that failed its test) or
  ``discarded`` (drafted behind a rejection or behind the end of the text: never tested);
- the round then adds one token of the target's own: ``resampled`` after a rejection, ``bonus``
  after full acceptance, ``target`` where nothing had been drafted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

DraftedFate = Literal["accepted", "rejected", "discarded"]
Fate = Literal["accepted", "rejected", "discarded", "resampled", "bonus", "target"]
FinishReason = Literal["eos", "length", "stop", "context", "stopped", "error", "running"]
LaneName = Literal["speculative", "baseline"]
Schedule = Literal["constant", "adaptive"]
LongPrompt = Literal["refuse", "cut"]
GREEDY_BELOW = 1e-4
CUDA_GRAPHS = "CUDA graphs"


class SettingsError(ValueError):
    """A setting that cannot be used; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a run but the models and the prompt.

    ``temperature`` 0 is greedy decoding. ``top_k`` 0, ``top_p`` 1, ``min_p`` 0,
    ``repetition_penalty`` 1, ``no_repeat_ngram_size`` 0 and ``min_new_tokens`` 0 are off.
    ``gamma`` is the number of tokens drafted in a round; with the ``schedule`` "adaptive" only
    of the first, and later ones follow what was accepted. ``confidence`` ends a draft early, once
    the draft's own probability that all of it is right falls below; 0 is off. ``chat`` wraps the
    prompt in the tokenizer's chat template. ``long_prompt`` says what happens to a prompt that is
    longer than the target's context: it is refused, or its beginning is left out.
    """

    max_new_tokens: int = 128
    gamma: int = 4
    schedule: Schedule = "constant"
    confidence: float = 0.0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    min_new_tokens: int = 0
    seed: int = 0
    stop: tuple[str, ...] = ()
    chat: bool = True
    long_prompt: LongPrompt = "refuse"

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken. One threshold for draft, verify and bonus:
        dividing by a temperature below it overflows, and the law is one-hot long before."""
        return self.temperature < GREEDY_BELOW

    def __post_init__(self) -> None:
        _check(self.max_new_tokens, "max_new_tokens", 0, 100_000, whole=True)
        _check(self.gamma, "gamma", 0, 64, whole=True)
        _check(self.confidence, "confidence", 0.0, 1.0)
        _check(self.temperature, "temperature", 0.0, 100.0)
        _check(self.top_k, "top_k", 0, 10_000_000, whole=True)
        _check(self.top_p, "top_p", 0.0, 1.0)
        _check(self.min_p, "min_p", 0.0, 1.0)
        _check(self.repetition_penalty, "repetition_penalty", 0.01, 100.0)
        _check(self.no_repeat_ngram_size, "no_repeat_ngram_size", 0, 1000, whole=True)
        _check(self.min_new_tokens, "min_new_tokens", 0, 100_000, whole=True)
        _check(self.seed, "seed", 0, 2**63 - 1, whole=True)
        if self.schedule not in get_args(Schedule):
            raise SettingsError(
                f"schedule must be one of {', '.join(get_args(Schedule))}, not {self.schedule!r}"
            )
        if self.long_prompt not in get_args(LongPrompt):
            raise SettingsError(
                f"long_prompt must be one of {', '.join(get_args(LongPrompt))}, not"
                f" {self.long_prompt!r}"
            )
        if self.top_p == 0:
            raise SettingsError("top_p must be above 0: 0 keeps no token at all; 1 turns it off")
        if len(self.stop) > 16 or any(not s or len(s) > 200 for s in self.stop):
            raise SettingsError("stop takes at most 16 strings of 1 to 200 characters each")


def _check(value: float, name: str, low: float, high: float, *, whole: bool = False) -> None:
    kind = "a whole number" if whole else "a number"
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise SettingsError(f"{name} must be {kind}, not {value!r}")
    if not math.isfinite(value) or not low <= value <= high:
        raise SettingsError(f"{name} must be {kind} from {low} to {high}, not {value!r}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One of the likeliest tokens at a position, with its probability.

    The law is the filtered one the run decides by. At temperature 0 that law is one-hot, so the
    softmax of the same logits at temperature 1 is kept instead: a near tie can be seen.
    """

    id: int
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Token:
    """A token that was drafted or added, and why it was kept or not.

    ``p`` and ``q`` are the target's and the draft's probability of it under the filtered laws
    (one-hot at temperature 0); ``u`` the uniform number it was tested with (None when greedy).
    ``text`` is what the token adds to the decoded text, empty while a character is unfinished
    and for special tokens; ``label`` then says what to show in its place.
    ``source`` names where the guess came from; ``copied_from`` is the position, in prompt and
    output together, of the token it repeats, ``matched`` the length of the n-gram that matched,
    ``passage`` the text of a store where it and the guesses behind it were found, kept with the
    first of them.
    ``parent`` is the index in the round of the drafted token before it, -1 for the text so far.
    """

    id: int
    text: str
    fate: Fate
    source: str
    label: str = ""
    parent: int = -1
    p: float | None = None
    q: float | None = None
    u: float | None = None
    copied_from: int | None = None
    matched: int | None = None
    passage: str = ""
    p_top: tuple[Candidate, ...] = ()
    q_top: tuple[Candidate, ...] = ()
    residual_top: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One draft and one target call. Times are seconds of this lane's own compute.

    ``position`` is the number of new tokens before the round. ``added`` is None when the text
    ended inside the accepted tokens. ``gamma`` is how many tokens could have been drafted: by the
    schedule, and with room left in the text.
    """

    index: int
    position: int
    drafted: tuple[Token, ...]
    added: Token | None
    draft_s: float
    verify_s: float
    sample_s: float
    gamma: int | None = None

    @property
    def seconds(self) -> float:
        """Seconds on this lane's decode clock."""
        return self.draft_s + self.verify_s + self.sample_s

    @property
    def accepted(self) -> int:
        """Drafted tokens that were kept."""
        return sum(token.fate == "accepted" for token in self.drafted)

    @property
    def tested(self) -> int:
        """Drafted tokens that were tested: accepted or rejected."""
        return sum(token.fate != "discarded" for token in self.drafted)

    @property
    def committed(self) -> tuple[Token, ...]:
        """The tokens the round added to the text, in order."""
        kept = tuple(token for token in self.drafted if token.fate == "accepted")
        return kept if self.added is None else (*kept, self.added)


@dataclass(frozen=True, slots=True)
class Run:
    """One lane from its first round to its last.

    ``prefill_s`` and ``draft_prefill_s`` are the seconds each model took over the prompt, and
    ``observe_s`` those spent recording for the page; none of them is on the decode clock.
    ``text_end`` is the number of characters kept when a stop string cut the text.
    """

    lane: LaneName
    drafter: str
    rounds: tuple[Round, ...]
    finish_reason: FinishReason
    prefill_s: float
    draft_prefill_s: float = 0.0
    observe_s: float = 0.0
    text_end: int | None = None

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every committed token in order."""
        return tuple(token for round_ in self.rounds for token in round_.committed)

    @property
    def text(self) -> str:
        """The generated text, cut before a stop string."""
        return "".join(token.text for token in self.tokens)[: self.text_end]


@dataclass(frozen=True, slots=True)
class PairInfo:
    """Which models ran. ``draft`` is empty where the drafter needs no model."""

    name: str
    target: str
    draft: str = ""
    target_parameters: int = 0
    draft_parameters: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    """What the run was measured on.

    ``versions`` are those of the programs by name. On a GPU ``CUDA_GRAPHS`` is there too: "on"
    where decode steps were replayed as graphs, else "off: " and why.
    """

    device: str
    dtype: str
    threads: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token of the prompt as the models saw it. ``text`` is what it adds to the text, or a label
    where that is nothing."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """All of one race: a speculative run, and its baseline when one was measured."""

    pair: PairInfo
    machine: Machine
    settings: Settings
    prompt: str
    prompt_tokens: tuple[PromptToken, ...]
    runs: tuple[Run, ...]
    note: str = ""

    def run(self, lane: LaneName) -> Run | None:
        """The run of one lane, or None where that lane was not measured."""
        return next((run for run in self.runs if run.lane == lane), None)
