"""``specviz run`` that is interrupted, or fails midway."""

from __future__ import annotations

import json
import os
import signal

from small_trace import trace

from specviz.cli import run as cli_run
from specviz.trace import load_trace


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
    before = signal.getsignal(signal.SIGINT)
    status, out, _ = run("--prompt", "x", "--trace", str(path), "--json")
    assert status == 130
    assert json.loads(out)["finish_reason"] == "stopped"
    assert json.loads(out)["text"] == "The light"
    assert load_trace(path.read_bytes()).run("speculative").finish_reason == "stopped"
    assert signal.getsignal(signal.SIGINT) is before


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
