"""The gallery: complete, of the current schema, and showing what its sentences say."""

from __future__ import annotations

import json

import pytest

from specviz.gallery import FOLDER, exhibits
from specviz.race import done_event
from specviz.records import Settings
from specviz.trace import dump_trace, load_trace

EXHIBITS = {exhibit.file: exhibit for exhibit in exhibits()}


def loaded(file):
    return load_trace(EXHIBITS[file].path.read_bytes())


def figures(file):
    return done_event(loaded(file))["figures"]


def fates(file):
    rounds = loaded(file).run("speculative").rounds
    return [token.fate for r in rounds for token in (*r.drafted, *filter(None, [r.added]))]


@pytest.mark.parametrize("file", EXHIBITS)
def test_an_exhibit_is_of_the_current_schema_and_was_made_as_the_index_says(file):
    exhibit, data = EXHIBITS[file], EXHIBITS[file].path.read_bytes()
    trace = load_trace(data)
    assert dump_trace(trace).encode("utf-8") == data
    assert len(data) <= 250_000
    assert trace.prompt == exhibit.prompt
    assert trace.note == exhibit.look
    assert trace.settings == Settings(**exhibit.settings)
    assert trace.run("speculative").drafter == exhibit.drafter
    assert trace.run("baseline").finish_reason in ("eos", "length")


def test_the_gallery_is_large_and_says_what_to_look_at():
    assert len(EXHIBITS) >= 8
    for exhibit in EXHIBITS.values():
        assert exhibit.look.endswith(".")
        assert 20 < len(exhibit.look) < 200
        assert 3 < len(exhibit.title) < 40


def test_every_file_of_the_folder_is_in_the_index():
    files = {path.name for path in FOLDER.glob("*.json")}
    assert files == {*EXHIBITS, "first.json", "gallery.json"}


def test_the_recorded_run_of_the_first_paint_is_of_the_current_schema():
    data = (FOLDER / "first.json").read_bytes()
    trace = load_trace(data)
    assert dump_trace(trace).encode("utf-8") == data
    assert trace.run("baseline") is not None


def test_most_guesses_are_right_in_one_and_wrong_in_another():
    assert figures("good-acceptance.json")["alpha"] > 0.75
    assert figures("poor-acceptance.json")["alpha"] < 0.45


def test_one_is_slower_than_the_target_alone():
    assert figures("slower.json")["speedup"] < 1


def test_one_samples_and_rejects():
    assert not loaded("sampling.json").settings.greedy
    assert {"rejected", "resampled"} <= set(fates("sampling.json"))


def test_one_copies_from_its_prompt():
    trace = loaded("prompt-lookup.json")
    drafted = [token for r in trace.run("speculative").rounds for token in r.drafted]
    before = len(trace.prompt_tokens)
    assert any(t.copied_from is not None and t.copied_from < before for t in drafted)


def test_one_holds_emoji_and_cjk_in_several_tokens_a_character():
    text = loaded("emoji-cjk.json").run("speculative").text
    assert any(ord(char) > 0x1F000 for char in text)
    assert any(0x4E00 <= ord(char) <= 0x9FFF for char in text)
    tokens = loaded("emoji-cjk.json").run("speculative").tokens
    assert any(token.text == "" for token in tokens)


def test_one_is_code():
    assert "def " in loaded("code.json").run("speculative").text


def test_one_ends_by_itself():
    assert loaded("stop-at-eos.json").run("speculative").finish_reason == "eos"


def test_two_ran_the_same_prompt_with_other_guesses():
    code, stored = loaded("code.json"), loaded("retrieval.json")
    assert code.prompt == stored.prompt
    assert code.run("speculative").drafter != stored.run("speculative").drafter


def test_the_index_is_plain_json():
    assert isinstance(json.loads((FOLDER / "gallery.json").read_text(encoding="utf-8")), list)
