"""``specviz replay``: a recorded run in the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_trace import trace

from specviz import cli
from specviz.cli import main
from specviz.trace import dump_trace

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(dump_trace(trace()), encoding="utf-8")
    return path


def test_replay_shows_text_and_summary(saved, capsys):
    assert main(["replay", str(saved), "--speed", "0"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The lighthouse\n")
    assert "draft model on tiny" in out
    assert "alpha 50.0%" in out


def test_replay_shows_guesses_that_failed_when_asked(saved, capsys):
    assert main(["replay", str(saved), "--speed", "0", "--show-rejected"]) == 0
    assert capsys.readouterr().out.startswith("The light[-sea-][-gull-]house\n")


def test_replay_keeps_the_recorded_clock(saved, monkeypatch, capsys):
    now, slept = [100.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(cli, "time", clock)
    assert main(["replay", str(saved), "--speed", "2"]) == 0
    assert slept == pytest.approx([0.031 / 2, 0.041 / 2])


def test_replay_of_a_baseline_alone_shows_its_text(tmp_path, capsys):
    path = tmp_path / "plain.json"
    path.write_text(dump_trace(trace(lanes=("baseline",))))
    assert main(["replay", str(path), "--speed", "0"]) == 0
    assert capsys.readouterr().out.startswith("The lighthouse\n")


def test_replay_ends_where_a_stop_string_cut_the_text(tmp_path, capsys):
    path = tmp_path / "cut.json"
    path.write_text(dump_trace(trace(text_end=6)))
    assert main(["replay", str(path), "--speed", "0"]) == 0
    assert capsys.readouterr().out.startswith("The li\n")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "not valid JSON"),
        (b"{}", "no specviz trace"),
        (b'{"specviz_trace": 99}', "newer"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"specviz_trace": "\\u001b[2J"}', "no version number"),
    ],
)
def test_bad_trace_exits_2_with_one_line_that_names_the_file(content, words, tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert "bad.json" in captured.err
    assert words in captured.err
    assert "\x1b" not in captured.err


@pytest.mark.parametrize("speed", ["-1", "nan", "inf"])
def test_replay_speed_that_is_none_exits_2(speed, saved, capsys):
    assert main(["replay", str(saved), f"--speed={speed}"]) == 2
    assert "--speed" in capsys.readouterr().err


def test_missing_trace_exits_2(capsys):
    assert main(["replay", "/nowhere/run.json"]) == 2
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["replay", "--help", "bad"])
def test_replay_help_and_bad_arguments_need_no_torch(command, saved):
    arguments = {
        "replay": ["replay", str(saved), "--speed", "0"],
        "--help": ["run", "--help"],
        "bad": ["run", "--prompt", "x", "--gamma", "99"],
    }[command]
    script = (
        "import sys\nfrom specviz.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'gradio'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr


def test_text_that_stdout_cannot_encode_does_not_break_the_json(saved):
    arguments = ["replay", str(saved), "--speed", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "specviz", *arguments],
        cwd=ROOT,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"The lighthouse")
