"""The list of pairs."""

from __future__ import annotations

import re

import checkpoints

from specviz import catalogue as offered
from specviz import pairs
from specviz.pairs import PairSpec, why_not


def test_each_finished_draft_folder_is_a_pair(tmp_path, monkeypatch):
    monkeypatch.setattr(offered, "DRAFTS", tmp_path)
    (only,) = offered.embedded_pairs()
    assert (only.target, only.draft) == ("embedded", "")
    checkpoints.save_reduced_draft(tmp_path / "tiny", [0, 2, 50])
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "note.md").write_text("")
    (spec,) = offered.embedded_pairs()
    assert spec.draft == "tiny"
    assert spec.draft_parameters > 0
    assert offered.find(spec.name) == spec
    assert offered.catalogue()[0] == spec


def test_the_fastest_draft_comes_first_and_titles_tell_the_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr(offered, "DRAFTS", tmp_path)
    fastest = next(iter(offered.BEST_GAMMA))
    for name, kept in (("tiny", [0, 2, 50]), (fastest, [0, 2, 50, 60])):
        checkpoints.save_reduced_draft(tmp_path / name, kept)
    first, second = offered.embedded_pairs()
    assert (first.name, second.name) == (fastest, "tiny")
    assert first.gamma == offered.BEST_GAMMA[fastest]
    assert re.search(r"draft \d+x\d+, \d", first.title)
    (tmp_path / "tiny" / "config.json").write_text("{}")
    assert re.search(r"draft \d+\.\dM", offered.embedded_pairs()[1].title)


def test_every_shipped_draft_is_ranked():
    assert {spec.name for spec in offered.embedded_pairs()} == set(offered.BEST_GAMMA)


def test_missing_draft_folder_still_leaves_a_pair(tmp_path, monkeypatch):
    monkeypatch.setattr(offered, "DRAFTS", tmp_path / "absent")
    assert offered.embedded_pairs()[0].target == "embedded"


def test_names_are_unique_and_gammas_usable():
    names = [spec.name for spec in offered.catalogue()]
    assert len(set(names)) == len(names)
    assert all(1 <= spec.gamma <= 16 for spec in offered.catalogue())


def test_pair_too_large_for_the_memory_says_both_numbers(monkeypatch):
    monkeypatch.setattr(pairs, "free_memory_everywhere", lambda device: 8_000_000_000)
    big = PairSpec("big", "a/b", "c/d", "", 70_000_000_000, 8_000_000_000)
    reason = why_not(big, "bfloat16")
    assert "171.6 GB" in reason
    assert "8.0 GB" in reason
    assert why_not(PairSpec("small", "a/b", "c/d", "", 1_000_000, 0)) is None


def test_uncached_pair_cannot_run_with_the_hub_switched_off(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in why_not(PairSpec("x", "no-such-owner/no-such-model", "", ""))
    assert why_not(PairSpec("x", "embedded", "", "")) is None
