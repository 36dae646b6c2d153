"""``specviz bench`` on a tiny pair: what goes where, and going on with a file."""

from __future__ import annotations

import csv
import json

import checkpoints
import pytest

from specviz.cli import main
from specviz.rows import rows, to_plain
from specviz.sweep import Sweep, read_bench

LOOKUP = ["--drafters", "prompt lookup,draft model", "--gammas", "2,3", "--max-new-tokens", "6"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    checkpoints.save(root / "target")
    checkpoints.save(root / "draft", seed=1, layers=1)
    (root / "lines.txt").write_text("the sea\nthe light\n1 2 3\n")
    questions = [
        {"question_id": 1, "category": "writing", "turns": ["the sea", "and then"]},
        {"question_id": 2, "category": "qa", "turns": ["the light"]},
    ]
    (root / "question.jsonl").write_text("\n".join(map(json.dumps, questions)) + "\n{}\n")
    return root


@pytest.fixture
def bench(folders, capsys):
    """``bench`` on the tiny pair; gives status, stdout, stderr."""

    def call(*arguments, prompts=("--prompts", "lines.txt")):
        given = [*prompts[:1], str(folders / prompts[1]), *LOOKUP]
        pair = ["--target", str(folders / "target"), "--draft", str(folders / "draft")]
        status = main(["bench", *pair, "--dtype", "float32", *given, *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_the_file_holds_every_run_and_the_table_made_from_them(bench, tmp_path):
    out, table = tmp_path / "bench.json", tmp_path / "bench.csv"
    status, text, _ = bench("--out", out, "--csv", table)
    assert status == 0
    document = json.loads(out.read_text(encoding="utf-8"))
    kept = read_bench(out)
    assert document["complete"] is kept.complete is True
    assert len(document["runs"]) == 2 * 2 * 3
    expected = [to_plain(row) for row in rows(kept.measured)]
    assert document["rows"] == json.loads(json.dumps(expected))
    for row in document["rows"]:
        assert f"{row['speedup']:.2f}x" in text
    cells = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    assert [float(c["speedup"]) for c in cells[:4]] == [row["speedup"] for row in expected]


def test_a_bench_that_was_interrupted_is_completed_by_the_same_command(
    bench, tmp_path, monkeypatch
):
    out = tmp_path / "bench.json"
    advance, made = Sweep.advance, []

    def interrupt(self, *arguments):
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append(advance(self, *arguments))
        return made[-1]

    monkeypatch.setattr(Sweep, "advance", interrupt)
    status, _, err = bench("--out", out)
    assert status == 130
    assert "the same command goes on" in err
    assert len(read_bench(out).measured) == 5
    monkeypatch.setattr(Sweep, "advance", advance)
    before = read_bench(out).measured
    assert bench("--out", out)[0] == 0
    kept = read_bench(out)
    assert kept.complete
    assert kept.measured[:5] == before
    assert len(kept.measured) == 12


def test_json_is_one_object(bench):
    status, text, _ = bench("--json", "--limit", "2")
    found = json.loads(text)
    assert status == 0
    assert len(found["rows"]) == 4
    assert found["complete"] is True
    assert found["diagnosis"]["headline"]
    assert found["failed"] == []


def test_questions_of_spec_bench_come_out_by_category(bench):
    prompts = ("--questions", "question.jsonl")
    status, text, err = bench("--bad-lines", "skip", prompts=prompts)
    assert status == 0
    assert "line 3" in err
    assert "only the first is asked" in err
    heading = next(line for line in text.splitlines() if "overall" in line)
    assert "mt_bench" in heading
    assert "qa" in heading
    assert "mean accepted tokens" in text


def test_faulty_lines_are_refused_by_number_unless_they_are_to_be_skipped(bench):
    status, text, err = bench(prompts=("--questions", "question.jsonl"))
    assert (status, text) == (2, "")
    assert "line 3: " in err
    assert "--bad-lines skip" in err


def test_against_transformers_the_texts_are_compared(bench):
    status, text, _ = bench("--against", "transformers", "--limit", "2", "--json")
    assert status == 0
    lines = {(line["name"], line["gamma"]): line for line in json.loads(text)["against"]}
    assert ("generate", 0) in lines
    assert ("generate, prompt lookup", 2) in lines
    assert any(name.startswith("generate, assistant, ") for name, _ in lines)
    assert all(line["same"] == line["compared"] > 0 for line in lines.values())


def test_a_run_that_fails_is_told_and_the_file_is_not_called_complete(bench, tmp_path, folders):
    (folders / "long.txt").write_text("the sea\n" + "sea " * 2000 + "\n")
    out = tmp_path / "bench.json"
    status, _, err = bench("--out", out, prompts=("--prompts", "long.txt"))
    assert status == 1
    assert "shorten it" in err
    assert not read_bench(out).complete


def test_another_bench_in_the_file_is_left_alone(bench, tmp_path):
    out = tmp_path / "bench.json"
    bench("--out", out, "--limit", "1")
    before = out.read_bytes()
    status, _, err = bench("--out", out, "--limit", "2")
    assert status == 2
    assert "holds another sweep (prompts differ)" in err
    assert out.read_bytes() == before
    foreign = tmp_path / "notes.json"
    foreign.write_text("{}")
    assert bench("--out", foreign)[0] == 2
    assert foreign.read_text() == "{}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prompts", "/nowhere/x"], "cannot read"),
        (["--prompts", "x", "--questions", "y"], "not allowed"),
        (["--limit", "-1"], "--limit"),
        (["--kinds", "poetry"], "'poetry'"),
        (["--gammas", "2,x"], "--gammas takes whole numbers"),
        (["--gammas", "99"], "gamma"),
        (["--gammas", ","], "--gammas takes whole numbers"),
        (["--temperature", "warm"], "--temperature takes numbers"),
        (["--confidence", "2"], "confidence"),
        (["--schedule", "random"], "'random'"),
        (["--repeats", "0"], "--repeats"),
        (["--max-new-tokens", "-1"], "max_new_tokens"),
        (["--out", "/nowhere/x.json"], "folder that exists"),
        (["--pair", "nope"], "'nope'"),
        (["--against", "vllm"], "invalid choice"),
    ],
)
def test_bad_input_exits_2_with_one_line(arguments, words, capsys):
    assert main(["bench", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert words in captured.err


def test_a_drafter_that_is_not_there_is_named(bench):
    status, _, err = bench("--drafters", "oracle")
    assert status == 2
    assert "there is no drafter 'oracle' here" in err
