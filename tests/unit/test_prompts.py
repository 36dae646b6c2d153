"""Prompts from the built-in set, a list and files, with every faulty line named."""

from __future__ import annotations

import json

import pytest

from specviz import prompts
from specviz.prompts import PromptsError, Reading, built_in, kinds, read_file, read_lines, take


def test_the_built_in_set_holds_eight_prompts_of_each_of_seven_kinds():
    found = built_in()
    counts = {kind: sum(p.kind == kind for p in found) for kind in kinds(found)}
    assert counts == dict.fromkeys(
        (
            "conversation",
            "translation",
            "summarisation",
            "question answering",
            "mathematics",
            "retrieval",
            "code",
        ),
        8,
    )
    assert len({p.text for p in found}) == len({p.id for p in found}) == 56


def test_the_first_prompt_is_the_one_of_the_recorded_run():
    assert built_in()[0].text == "Write a short story about a lighthouse keeper."


def test_a_limit_takes_the_kinds_in_turn():
    lines = [{"prompt": f"{kind} {i}", "kind": kind} for kind in "ab" for i in range(5)]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    taken = take(read_file(data, "x.jsonl").prompts, 4)
    assert [p.text for p in taken] == ["a 0", "b 0", "a 1", "b 1"]
    assert len(take(built_in(), 0)) == 56


def test_a_pasted_list_is_one_prompt_a_line():
    found = read_lines("one\n\n  two\\nlines  \n").prompts
    assert [(p.id, p.text) for p in found] == [("1", "one"), ("3", "two\nlines")]


def test_a_plain_file_is_counted_under_its_name():
    found = read_file(b"\xef\xbb\xbfone\r\ntwo\r\n", "mine.txt").prompts
    assert [(p.kind, p.text) for p in found] == [("mine.txt", "one"), ("mine.txt", "two")]


def test_a_question_of_spec_bench_is_its_first_turn():
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["first", "second"]},
        {"question_id": 241, "category": "translation", "turns": ["only"]},
    ]
    found = read_file("\n".join(map(json.dumps, lines)).encode(), "question.jsonl").prompts
    assert [(p.id, p.kind, p.text, p.turns) for p in found] == [
        ("81", "mt_bench", "first", 2),
        ("241", "translation", "only", 1),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{broken", "not valid JSON at column"),
        (b"[1]", "neither an object nor a string"),
        (b"{}", 'neither "prompt" nor "turns"'),
        (b'{"prompt": 7}', '"prompt" is no string'),
        (b'{"prompt": " "}', "the prompt is empty"),
        (b'{"turns": []}', '"turns" must be a list'),
        (b'{"turns": [1]}', '"turns" must be a list'),
        (b'{"prompt": "x", "kind": ["a"]}', '"kind" is neither'),
        (b'{"prompt": "x", "id": 1.5}', '"id" is neither'),
        (b'{"prompt": "\\ud800"}', "half a surrogate"),
        (b'{"prompt": "\xff"}', "not UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_faulty_line_is_named_by_its_number_and_reason(line: bytes, why: str):
    reading = read_file(b'{"prompt": "fine"}\n' + line + b'\n"last"\n', "x.jsonl")
    assert [p.text for p in reading.prompts] == ["fine", "last"]
    assert [fault.line for fault in reading.faults] == [2]
    assert why in reading.faults[0].why


def test_faults_are_refused_or_skipped_as_chosen():
    reading = read_file(b'{"prompt": "fine"}\n{}\n', "x.jsonl")
    assert [p.text for p in reading.usable("skip")] == ["fine"]
    with pytest.raises(PromptsError, match="1 line cannot be used: line 2: "):
        reading.usable("refuse")


@pytest.mark.parametrize("on_fault", ["skip", "refuse"])
def test_nothing_usable_is_refused_either_way(on_fault):
    with pytest.raises(PromptsError, match="no prompt"):
        Reading(()).usable(on_fault)
    with pytest.raises(PromptsError, match="line 1"):
        read_file(b"{}", "x.jsonl").usable(on_fault)


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(prompts, "MAX_PROMPTS", 2)
    monkeypatch.setattr(prompts, "MAX_CHARACTERS", 5)
    monkeypatch.setattr(prompts, "MAX_BYTES", 100)
    reading = read_lines("one\ntoo long a prompt\ntwo\nthree")
    assert [str(fault) for fault in reading.faults] == [
        "line 2: the prompt is longer than 5 characters",
        "line 4: more than 2 prompts",
    ]
    with pytest.raises(PromptsError, match="larger than"):
        read_file(b"x" * 101, "x.txt")
