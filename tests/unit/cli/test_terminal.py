"""How a run looks in a terminal."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from small_trace import token, trace

from specviz.cli import terminal as cli_terminal
from specviz.cli.terminal import ProgressPrinter, TextPrinter, printable, summary
from specviz.records import Machine, PairInfo, Round


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


@pytest.mark.parametrize(
    "versions, said",
    [
        ({}, ""),
        ({"CUDA graphs": "on"}, "CUDA graphs: on\n"),
        ({"CUDA graphs": "off: no\x1b room"}, "CUDA graphs: off: no\\x1b room\n"),
    ],
)
def test_whether_steps_were_replayed_is_told_where_the_record_says_so(versions, said):
    from dataclasses import replace

    from specviz.race import done_event, start_event

    one = replace(trace(), machine=Machine("a GPU", "bfloat16", 1, versions))
    lines = summary(start_event(one, "replay", False), done_event(one), "length").splitlines(True)
    assert "".join(line for line in lines if "graphs" in line) == said


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
