"""The folder of drafters: each file is one, and says what it is."""

from __future__ import annotations

import sys

import pytest
from every_drafter import extras
from kit import new_ids, noisy, pair, plain, speculate, start

from specviz import drafters
from specviz.records import Settings


def test_pairs_without_a_draft_offer_prompt_lookup_only():
    assert drafters.names(pair(None)) == ["prompt lookup"]
    assert drafters.names(pair(noisy())) == ["combined", "draft model", "prompt lookup"]
    assert drafters.names(pair(noisy(), **extras())) == [
        "combined",
        "draft model",
        "feature draft",
        "prompt lookup",
        "retrieval",
    ]
    with pytest.raises(ValueError, match="choose one of prompt lookup"):
        start(Settings(), None, "draft model")


def test_a_drafter_is_one_file_in_the_folder(tmp_path, monkeypatch):
    (tmp_path / "echo.py").write_text(
        """
from specviz.drafters import Drafter
from specviz.sampling import Guess

NAME = "echo"
SUMMARY = "Says the last word again."
ORDER = 99
GAMMA = 2


class Echo(Drafter):
    def draft(self, tokens, gamma):
        return [Guess(tokens[-1], NAME)] * gamma


def available(pair):
    return True


def create(pair, settings, prompt_length, chance):
    return Echo()
"""
    )
    monkeypatch.setattr(drafters, "__path__", [*drafters.__path__, str(tmp_path)])
    drafters.described.cache_clear()
    try:
        assert drafters.names(pair(None))[-1] == "echo"
        assert drafters.best_gamma("echo", 7) == 2
        settings = Settings(max_new_tokens=12, gamma=2)
        run = speculate(settings, None, "echo")
        assert run.rounds[0].drafted[0].source == "echo"
        assert new_ids(run) == new_ids(plain(settings))
    finally:
        drafters.described.cache_clear()
        sys.modules.pop("specviz.drafters.echo", None)


def test_what_a_drafter_says_is_read_without_importing_it():
    for name, module in drafters.modules().items():
        said = drafters.described()[name]
        assert (said.name, said.summary) == (module.NAME, module.SUMMARY)
        assert said.order == module.ORDER
        assert said.gamma == getattr(module, "GAMMA", None)


def test_every_built_in_drafter_says_what_it_is_and_how_long_it_drafts():
    for name, module in drafters.modules().items():
        assert module.SUMMARY.endswith(".")
        assert 1 <= drafters.best_gamma(name, 5) <= 16
