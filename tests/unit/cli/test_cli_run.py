"""``specviz run``: what it prints, saves and refuses."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import checkpoints
import pytest

from specviz.cli import main
from specviz.cli import run as cli_run
from specviz.cli.terminal import printable
from specviz.trace import load_trace

KEYS = [
    "pair",
    "drafter",
    "settings",
    "text",
    "finish_reason",
    "tokens",
    "target_calls",
    "drafted",
    "tested",
    "accepted",
    "tar",
    "alpha",
    "tokens_per_target_call",
    "tokens_per_s",
    "baseline_tokens_per_s",
    "speedup",
    "end_to_end_speedup",
    "cost_ratio",
    "verify_ratio",
    "predicted_speedup",
    "efficiency",
    "same_as_baseline",
    "observe_s",
]


def test_json_is_one_object_with_the_keys_of_the_contract(run):
    status, out, err = run("--prompt", "the sea", "--max-new-tokens", "12", "--json")
    assert status == 0
    assert len(out.splitlines()) == 1
    figures = json.loads(out)
    assert list(figures) == KEYS
    assert figures["tokens"] == 12
    assert figures["speedup"] > 0
    assert figures["same_as_baseline"] is True
    assert figures["settings"]["max_new_tokens"] == 12
    assert figures["drafter"] == "combined"
    assert "the sea" not in err


def test_json_without_baseline_leaves_out_what_was_not_measured(run):
    status, out, _ = run("--prompt", "x", "--max-new-tokens", "4", "--no-baseline", "--json")
    figures = json.loads(out)
    assert status == 0
    assert list(figures) == KEYS
    for name in ("speedup", "baseline_tokens_per_s", "same_as_baseline", "predicted_speedup"):
        assert figures[name] is None


def test_no_tokens_asked_for_is_a_run_of_none(run):
    status, out, _ = run("--prompt", "x", "--max-new-tokens", "0", "--json")
    figures = json.loads(out)
    assert status == 0
    assert (figures["tokens"], figures["text"], figures["tar"]) == (0, "", None)


def test_text_and_summary_go_to_stdout_without_colour_codes(run):
    status, out, _ = run("--prompt", "the sea", "--max-new-tokens", "8")
    assert status == 0
    assert "8 tokens in" in out
    assert "TAR" in out
    assert "speedup" in out
    assert "\x1b" not in out


def test_settings_reach_the_run(run):
    sampling = ("--temperature", "0.7", "--top-k", "5", "--top-p", "0.9", "--seed", "3")
    others = ("--gamma", "2", "--raw", "--max-new-tokens", "3", "--json")
    _, out, _ = run("--prompt", "x", *sampling, *others)
    settings = json.loads(out)["settings"]
    assert (settings["temperature"], settings["top_k"], settings["top_p"]) == (0.7, 5, 0.9)
    assert (settings["seed"], settings["gamma"], settings["chat"]) == (3, 2, False)


def test_drafter_can_be_chosen(run):
    _, out, _ = run(
        "--prompt", "x", "--max-new-tokens", "3", "--json", "--drafter", "prompt lookup"
    )
    assert json.loads(out)["drafter"] == "prompt lookup"


def test_prompt_comes_from_standard_input_or_a_file(run, tmp_path, monkeypatch):
    path = tmp_path / "prompt.txt"
    path.write_bytes("Zeile \N{LATIN SMALL LETTER U WITH DIAERESIS}\r\nzwei\n".encode())
    stdin = SimpleNamespace(buffer=io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    prompts = []
    for arguments in (["--prompt", "-"], ["--prompt-file", str(path)]):
        target = tmp_path / "trace.json"
        status, _, _ = run(*arguments, "--max-new-tokens", "1", "--trace", str(target))
        assert status == 0
        prompts.append(load_trace(target.read_bytes()).prompt)
    assert prompts == ["Zeile \N{LATIN SMALL LETTER U WITH DIAERESIS}\nzwei"] * 2


def test_trace_is_saved_whole_and_replays_as_the_same_text(run, tmp_path, capsys):
    path = tmp_path / "run.json"
    _, out, _ = run("--prompt", "x", "--max-new-tokens", "9", "--json", "--trace", str(path))
    assert load_trace(path.read_bytes()).run("speculative").text == json.loads(out)["text"]
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    assert main(["replay", str(path), "--speed", "0"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(printable(json.loads(out)["text"]))


def test_trace_that_cannot_be_saved_fails_after_the_figures_were_printed(
    run, tmp_path, monkeypatch
):
    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli_run.os, "replace", refuse)
    path = tmp_path / "run.json"
    arguments = ("--prompt", "x", "--max-new-tokens", "2", "--json", "--trace", str(path))
    status, out, err = run(*arguments)
    assert status == 1
    assert json.loads(out)["tokens"] == 2
    assert "No space left" in err
    assert list(tmp_path.iterdir()) == []


BAD_RUNS = [
    ([], "--prompt"),
    (["--prompt", "x", "--prompt-file", "y"], "--prompt"),
    (["--prompt-file", "/nowhere/x"], "cannot read"),
    (["--prompt", "x", "--gamma", "65"], "gamma"),
    (["--prompt", "x", "--gamma", "two"], "gamma"),
    (["--prompt", "x", "--temperature", "nan"], "temperature"),
    (["--prompt", "x", "--temperature", "-1"], "temperature"),
    (["--prompt", "x", "--top-p", "0"], "top_p"),
    (["--prompt", "x", "--max-new-tokens", "-1"], "max_new_tokens"),
    (["--prompt", "x", "--seed", "-1"], "seed"),
    (["--prompt", "x", "--pair", "nope"], "'nope'"),
    (["--prompt", "x", "--pair", "gpt2-xl", "--target", "y"], "not both"),
    (["--prompt", "x", "--draft", "y"], "--target"),
    (["--prompt", "x", "--target", "/nowhere/model"], "no such folder"),
    (["--prompt", "x", "--target", "a/b/c"], "neither a folder"),
    (["--prompt", "x", "--drafter", "oracle"], "'oracle'"),
    (["--prompt", "x", "--dtype", "int8"], "dtype"),
    (["--prompt", "x", "--trace", "/nowhere/x.json"], "does not exist"),
    (["--prompt", "x", "--trace", "/"], "folder"),
    (["--prompt", "x", "--bogus"], "--bogus"),
]


@pytest.mark.parametrize("arguments, words", BAD_RUNS)
def test_bad_input_exits_2_with_one_line(arguments, words, capsys):
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert words in captured.err
    assert "\x1b" not in captured.err


@pytest.mark.parametrize("arguments", [[], ["nope"], ["replay"], ["replay", "x", "--speed", "q"]])
def test_unknown_command_exits_2_with_one_line(arguments, capsys):
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("prompt, words", [("a\ud800", "surrogate"), ("sea " * 2000, "shorten")])
def test_prompt_the_pair_cannot_read_exits_2_with_one_line(prompt, words, run):
    status, out, err = run("--prompt", prompt)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert words in err


def test_pair_that_does_not_match_exits_2_with_one_line(folders, tmp_path, capsys):
    other = checkpoints.save(tmp_path / "other", words=checkpoints.tokenizer(extra=("<|x|>",)))
    arguments = ["--target", str(other), "--draft", str(folders / "draft"), "--prompt", "x"]
    capsys.readouterr()  # what making the checkpoint said
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "do not share a tokenizer" in captured.err
    assert len(captured.err.splitlines()) == 1


def test_prompt_file_that_is_no_text_exits_2(tmp_path, capsys):
    path = tmp_path / "prompt"
    path.write_bytes(b"ab\xff")
    assert main(["run", "--prompt-file", str(path)]) == 2
    assert "UTF-8" in capsys.readouterr().err
