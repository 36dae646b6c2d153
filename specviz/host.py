"""What the person who hosts the page allows. Read once, at the start, from the environment.

The defaults trust whoever opens the page, as on one's own machine. On a public host (a Hugging
Face Space, or where ``SPECVIZ_PUBLIC`` says so) they do not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from specviz.catalogue import DRAFTS, catalogue
from specviz.records import SettingsError

ELSEWHERE = frozenset({"SPECVIZ_CACHE", "SPECVIZ_CUDA_GRAPHS", "SPECVIZ_DRAFT_DEVICE"})
"""Variables with our prefix that other modules read."""
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)


class HostError(ValueError):
    """A host setting that cannot be used; the message names it and what it takes."""


@dataclass(frozen=True, slots=True)
class Host:
    """The host's settings. ``Host()`` is a person's own machine.

    ``pair`` is the name of the pair chosen at first ("" for the first that can run), ``pairs`` are
    those on offer (none named: all). ``other_models`` tells whether other models may be typed in,
    ``folders`` where such a model may lie (None: anywhere). ``max_seconds`` bounds what one run
    computes, ``max_waiting`` how many stand in line, ``max_runs`` how many runs a sweep has. With
    ``gallery`` nothing is run at all. ``gpu_seconds`` is the longest that a GPU is borrowed at a
    time, on a Space that borrows one.
    """

    pair: str = ""
    pairs: tuple[str, ...] = ()
    other_models: bool = True
    folders: tuple[Path, ...] | None = None
    max_new_tokens: int = 8_192
    max_seconds: int = 3_600
    max_prompt_characters: int = 200_000
    max_waiting: int = 64
    max_runs: int = 100_000
    gallery: bool = False
    gpu_seconds: int = 120

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Host:
        """The settings of the variables that README lists. Raises HostError naming the variable
        that cannot be used and what it takes."""
        read = _Variables(environ)
        public = read.flag("SPECVIZ_PUBLIC", bool(environ.get("SPACE_ID")))
        host = cls(
            pair=read.text("SPECVIZ_PAIR"),
            pairs=read.names("SPECVIZ_PAIRS"),
            other_models=read.flag("SPECVIZ_OTHER_MODELS", not public),
            folders=read.folders("SPECVIZ_FOLDERS", () if public else None),
            max_new_tokens=read.number("SPECVIZ_MAX_NEW_TOKENS", 512 if public else 8_192, 100_000),
            max_seconds=read.number("SPECVIZ_MAX_SECONDS", 120 if public else 3_600, 86_400),
            max_prompt_characters=read.number(
                "SPECVIZ_MAX_PROMPT_CHARACTERS", 20_000 if public else 200_000, 1_000_000
            ),
            max_waiting=read.number("SPECVIZ_MAX_WAITING", 16 if public else 64, 1_000),
            max_runs=read.number("SPECVIZ_MAX_RUNS", 200 if public else 100_000, 100_000),
            gallery=read.flag("SPECVIZ_GALLERY", False),
            gpu_seconds=read.number("SPECVIZ_GPU_SECONDS", 120, 3_600),
        )
        read.refuse_unknown()
        host._check_pairs([spec.name for spec in catalogue()])
        return host

    def check(self, prompt: str, new_tokens: int) -> None:
        """Raises SettingsError, saying what to change, for a run that is too large here."""
        if len(prompt) > self.max_prompt_characters:
            raise SettingsError(
                f"The prompt is {len(prompt):,} characters long; this host takes"
                f" {self.max_prompt_characters:,} at most. Shorten it."
            )
        if new_tokens > self.max_new_tokens:
            raise SettingsError(
                f"Max new tokens is {new_tokens:,}; this host runs {self.max_new_tokens:,} at"
                " most. Lower it."
            )

    def check_sweep(self, runs: int) -> None:
        """Raises SettingsError, saying what to change, for a sweep that is too large here."""
        if runs > self.max_runs:
            raise SettingsError(
                f"This sweep has more than {self.max_runs:,} runs, and this host makes no more than"
                " that. Choose fewer drafters, gammas, temperatures, prompts or repeats."
            )

    def check_models(self, target: str, draft: str, listed: Collection[tuple[str, str]]) -> None:
        """Raises SettingsError for models that may not be used here. ``listed`` are the targets
        and drafts of the pairs on offer. Says the same of a folder whether it exists or not."""
        if (target, draft) in listed:
            return
        if not self.other_models:
            raise SettingsError("This host runs the listed pairs only. Pick one of them.")
        for source in filter(None, (target.strip(), draft.strip())):
            if self.folders is not None and not self._may_open(source):
                allowed = ", ".join(map(str, self.folders)) or "none"
                raise SettingsError(
                    f"{source[:80]!r} cannot be used: this host takes Hub ids such as owner/name,"
                    f" and model folders from these places only: {allowed}."
                )

    def _may_open(self, source: str) -> bool:
        """Whether a source is a Hub id, a shipped draft, or a folder in an allowed place. Links
        are followed first: those of the path, and those that lie in the folder."""
        try:
            folder = next((f for f in _folders_of(source) if f.is_dir()), None)
            if folder is None:
                return HUB_ID.fullmatch(source) is not None
            files = [folder, *folder.glob("*"), *folder.glob("*/*")]
            return all(self._inside(path.resolve()) for path in files)
        except (OSError, ValueError, RuntimeError):
            return False

    def _inside(self, path: Path) -> bool:
        allowed = any(path.is_relative_to(place.resolve()) for place in self.folders or ())
        return allowed or DRAFTS in path.parents

    def _check_pairs(self, known: Collection[str]) -> None:
        for variable, names in (("SPECVIZ_PAIR", (self.pair,)), ("SPECVIZ_PAIRS", self.pairs)):
            for name in filter(None, names):
                if name not in known:
                    raise HostError(
                        f"{variable} names {name!r}, which is no pair; it takes {', '.join(known)}."
                    )
        if self.pair and self.pairs and self.pair not in self.pairs:
            raise HostError(
                f"SPECVIZ_PAIR is {self.pair!r}, which SPECVIZ_PAIRS leaves out; it takes one of"
                f" {', '.join(self.pairs)}."
            )


OWN_MACHINE = Host()
"""What holds where nobody has set anything."""


def _folders_of(source: str) -> tuple[Path, ...]:
    """The folders a source can name, in the order ``pairs`` looks for them."""
    return DRAFTS / source, Path(source).expanduser()


class _Variables:
    """The environment, read strictly: a wrong value is refused, never guessed at."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._known = set(ELSEWHERE)

    def text(self, name: str) -> str:
        self._known.add(name)
        return self._environ.get(name, "").strip()

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text not in ("", "0", "1"):
            raise HostError(f"{name} takes 1 for yes or 0 for no, not {text!r}.")
        return text == "1" if text else default

    def number(self, name: str, default: int, most: int) -> int:
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= most:
            raise HostError(f"{name} takes a whole number from 1 to {most:,}, not {text!r}.")
        return int(text)

    def names(self, name: str) -> tuple[str, ...]:
        words = (word.strip() for word in self.text(name).split(","))
        return tuple(dict.fromkeys(filter(None, words)))

    def folders(self, name: str, default: tuple[Path, ...] | None) -> tuple[Path, ...] | None:
        text = self.text(name)
        if not text:
            return default
        found = tuple(Path(part).expanduser() for part in text.split(os.pathsep) if part)
        for folder in found:
            if not (folder.is_absolute() and folder.is_dir()):
                raise HostError(
                    f"{name} takes whole paths of folders that exist, joined by {os.pathsep!r};"
                    f" {str(folder)!r} is none."
                )
        return tuple(folder.resolve() for folder in found)

    def refuse_unknown(self) -> None:
        ours = sorted(name for name in self._environ if name.startswith("SPECVIZ_"))
        for name in ours:
            if name not in self._known:
                raise HostError(
                    f"There is no setting {name}; there are {', '.join(sorted(self._known))}."
                )
