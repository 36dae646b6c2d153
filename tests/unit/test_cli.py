"""The command line's contract, on a tiny pair: what goes where, and with which exit status."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import checkpoints
import pytest

from specviz import catalogue as offered
from specviz import cli
from specviz.cli import main
from specviz.cli import run as cli_run
from specviz.cli import terminal as cli_terminal
from specviz.cli.terminal import ProgressPrinter, TextPrinter, printable, summary
from specviz.records import Machine, PairInfo, PromptToken, Round, Run, Settings, Token, Trace
from specviz.trace import dump_trace, load_trace

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    checkpoints.save(root / "target")
    checkpoints.save(root / "draft", seed=1, layers=1)
    return root


@pytest.fixture
def run(folders, capsys):
    """``run`` on the tiny pair; gives status, stdout, stderr."""

    def call(*arguments, pair=True):
        chosen = ["--target", str(folders / "target"), "--draft", str(folders / "draft")]
        given = ["run", *(chosen if pair else []), "--dtype", "float32", *arguments]
        status = main(given)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def token(text, fate, label=""):
    return Token(id=1, text=text, fate=fate, source="draft model", label=label)


def trace(text="light", settings=None, text_end=None, lanes=("speculative", "baseline")):
    """A small trace: one full acceptance and one rejection against three plain rounds."""
    rounds = (
        Round(0, 0, (token("The ", "accepted"),), token(text, "bonus"), 0.01, 0.02, 0.001),
        Round(
            1,
            2,
            (token("sea", "rejected"), token("gull", "discarded")),
            token("house", "resampled"),
            0.02,
            0.02,
            0.001,
        ),
    )
    plain = tuple(
        Round(i, i, (), Token(1, piece, "target", "target"), 0.0, 0.02, 0.001)
        for i, piece in enumerate(("The ", text, "house"))
    )
    runs = {
        "speculative": Run("speculative", "draft model", rounds, "length", 0.1, text_end=text_end),
        "baseline": Run("baseline", "", plain, "length", 0.1),
    }
    return Trace(
        pair=PairInfo("tiny", "T", "D"),
        machine=Machine("CPU: test", "float32", 1),
        settings=settings or Settings(),
        prompt="Begin.",
        prompt_tokens=(PromptToken(5, "Begin"),),
        runs=tuple(runs[lane] for lane in lanes),
    )


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(dump_trace(trace()), encoding="utf-8")
    return path


# --- run -----------------------------------------------------------------------------------


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


# --- bad input -----------------------------------------------------------------------------


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


# --- Ctrl-C and failures --------------------------------------------------------------------


class FakeRace:
    """Rounds of the small trace; does something odd in its second."""

    def __init__(self, odd):
        self._trace, self._odd, self._round, self.finished, self._reason = (
            trace(),
            odd,
            0,
            False,
            "",
        )

    def start(self):
        from specviz.race import start_event

        yield start_event(self._trace, "live", False)

    def advance(self):
        from specviz.trace import to_plain

        self._round += 1
        if self._round == 2:
            self._odd()
        round_ = to_plain(self._trace.runs[0].rounds[0])
        return [{"e": "round", "lane": "speculative", "round": round_, "figures": {}}]

    def stop(self, reason="stopped"):
        self.finished, self._reason = True, reason
        return [{"e": "end", "lane": "speculative", "finish_reason": reason}]

    def trace(self):
        from dataclasses import replace

        runs = self._trace.runs
        cut = replace(runs[0], rounds=runs[0].rounds[:1], finish_reason=self._reason)
        return replace(self._trace, runs=(cut, *runs[1:]))

    def finish(self):
        from specviz.race import done_event

        return done_event(self.trace())


def test_interrupt_keeps_the_partial_run_saves_it_and_exits_130(run, tmp_path, monkeypatch):
    race = FakeRace(lambda: os.kill(os.getpid(), signal.SIGINT))
    monkeypatch.setattr(cli_run, "_race", lambda *given: race)
    path = tmp_path / "run.json"
    status, out, _ = run("--prompt", "x", "--trace", str(path), "--json")
    assert status == 130
    assert json.loads(out)["finish_reason"] == "stopped"
    assert json.loads(out)["text"] == "The light"
    assert load_trace(path.read_bytes()).run("speculative").finish_reason == "stopped"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_run_that_fails_midway_keeps_what_there_is_and_exits_1(run, monkeypatch):
    def fail():
        raise ArithmeticError("the logits are no numbers")

    monkeypatch.setattr(cli_run, "_race", lambda *given: FakeRace(fail))
    status, out, err = run("--prompt", "x", "--json")
    assert status == 1
    assert json.loads(out)["finish_reason"] == "error"
    assert err.splitlines()[-1].endswith("the logits are no numbers")


def test_interrupt_while_loading_exits_130_without_a_word(run, monkeypatch):
    def interrupt(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_run, "_race", interrupt)
    assert run("--prompt", "x") == (130, "", "")


# --- replay --------------------------------------------------------------------------------


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


# --- pairs and fetch -----------------------------------------------------------------------


def test_pairs_lists_every_pair_with_its_need(capsys):
    assert main(["pairs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [s.name for s in offered.catalogue()]
    assert all(" GB" in line for line in lines)


def test_pairs_json_is_one_object(capsys):
    assert main(["pairs", "--json", "--dtype", "float32"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["dtype"] == "float32"
    names = [row["name"] for row in listed["pairs"]]
    assert names == [spec.name for spec in offered.catalogue()]
    assert all(row["memory"] > 0 and "why_not" in row for row in listed["pairs"])


def test_fetch_prints_the_folder_and_nothing_else(tmp_path, monkeypatch, capsys):
    from specviz import weights

    def prepare(progress):
        progress("Downloading", 0.5)
        return tmp_path

    monkeypatch.setattr(weights, "embedded_target", prepare)
    assert main(["fetch"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}\n"


def test_fetch_that_fails_exits_1_with_one_line(monkeypatch, capsys):
    from specviz import weights

    def fail(progress):
        progress("Downloading", 0.5)
        raise weights.WeightsError("nothing is reachable;\nconnect and try again")

    monkeypatch.setattr(weights, "embedded_target", fail)
    assert main(["fetch"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "specviz: nothing is reachable; connect and try again\n"


# --- the terminal --------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def round_event(*drafted, added=None):
    from specviz.trace import to_plain

    round_ = Round(0, 0, drafted, added, 0.0, 0.0, 0.0)
    return {"e": "round", "lane": "speculative", "round": to_plain(round_)}


def test_fates_are_told_apart_by_colour_and_shape():
    stream = Terminal()
    printer = TextPrinter(stream, colour=True, show_rejected=True)
    printer.show(
        round_event(
            token("a", "accepted"), token("", "rejected", "<eos>"), added=token("c", "resampled")
        )
    )
    printer.show(round_event(token("d", "accepted"), added=token("e\nf", "bonus")))
    assert stream.getvalue() == (
        "\x1b[32;4ma\x1b[0m\x1b[31;9m<eos>\x1b[0m\x1b[33mc\x1b[0m"
        "\x1b[32;4md\x1b[0m\x1b[34me\x1b[0m\n\x1b[34mf\x1b[0m"
    )


def test_only_the_own_lane_is_printed():
    stream = io.StringIO()
    printer = TextPrinter(stream)
    printer.show({**round_event(added=token("x", "target")), "lane": "baseline"})
    printer.show({"e": "end", "lane": "baseline", "finish_reason": "length"})
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    "text, shown",
    [
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\rb", "a\\rb"),
        ("\u202egnp", "\\u202egnp"),
        ("line\n\tindent", "line\n\tindent"),
        ("\N{FAMILY} \u05d0 \u4e2d \N{ZERO WIDTH JOINER}", None),
    ],
)
def test_control_characters_of_a_model_are_spelled_out(text, shown):
    assert printable(text) == (text if shown is None else shown)


def test_hostile_names_in_a_trace_reach_the_terminal_as_text():
    from dataclasses import replace

    from specviz.race import done_event, start_event

    hostile = replace(trace(), pair=PairInfo("\x1b]0;own\x07", "T\n\n", "D"))
    text = summary(start_event(hostile, "replay", False), done_event(hostile), "length")
    assert "\x1b" not in text
    assert "\x07" not in text


def test_summary_says_plainly_when_it_was_slower():
    from specviz.race import done_event, start_event

    slow = trace()
    text = summary(start_event(slow, "replay", False), done_event(slow), "length")
    assert "x measured: slower than the target alone" in text
    assert "same text as the target alone: yes" in text


def test_what_was_not_measured_is_an_em_dash():
    from specviz.race import done_event, start_event

    alone = trace(lanes=("speculative",))
    text = summary(start_event(alone, "replay", False), done_event(alone), "length")
    assert "speedup —x measured" in text
    assert "same text" not in text


def test_progress_rewrites_one_line_on_a_terminal():
    stream = Terminal()
    progress = ProgressPrinter(stream)
    progress("Downloading", 0.25)
    progress("Downloading", 0.5)
    progress.close()
    assert stream.getvalue().endswith("Downloading 50%\r\x1b[K")
    assert "\n" not in stream.getvalue()


def test_progress_in_a_file_is_a_line_a_message_once_it_takes_long(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(cli_terminal, "time", SimpleNamespace(monotonic=lambda: now[0]))
    stream = io.StringIO()
    progress = ProgressPrinter(stream)
    progress("Looking", None)
    assert stream.getvalue() == ""
    now[0] = 10.0
    for share in (0.1, 0.2):
        progress("Downloading", share)
    assert stream.getvalue() == "Looking\nDownloading\n"


def test_no_color_is_respected(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert cli_terminal.uses_colour(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not cli_terminal.uses_colour(Terminal())


def test_text_that_stdout_cannot_encode_does_not_break_the_json(saved, folders):
    arguments = ["replay", str(saved), "--speed", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "specviz", *arguments],
        cwd=ROOT,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert done.stdout.startswith(b"The lighthouse")
