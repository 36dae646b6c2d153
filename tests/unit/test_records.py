"""The trace file: a faithful round trip, and a clear refusal of everything else."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import get_args

import pytest
from kit import PROMPT, noisy, pair, plain, speculate

from specviz import metrics, race
from specviz import trace as trace_module
from specviz.records import (
    Candidate,
    Fate,
    FinishReason,
    LaneName,
    Machine,
    PairInfo,
    PromptToken,
    Round,
    Run,
    Schedule,
    Settings,
    SettingsError,
    Token,
    Trace,
)
from specviz.trace import TraceError, dump_trace, load_trace

FIXTURES = Path(__file__).parent / "fixtures"


def made_trace(temperature=1.0, drafter="draft model", tokens=40):
    settings = Settings(max_new_tokens=tokens, gamma=3, temperature=temperature, seed=3)
    draft = noisy() if drafter == "draft model" else None
    models = pair(draft)
    return Trace(
        pair=models.info,
        machine=models.machine,
        settings=settings,
        prompt='<img src=x onerror=alert(1)> ${x} "quoted" 👍',
        prompt_tokens=tuple(PromptToken(token, chr(token)) for token in PROMPT),
        runs=(speculate(settings, draft, drafter).run(), plain(settings).run()),
        note="",
    )


@pytest.fixture(scope="module")
def document():
    return json.loads(dump_trace(made_trace()))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("drafter", ["draft model", "prompt lookup"])
def test_saving_and_loading_again_is_byte_identical(temperature, drafter):
    saved = dump_trace(made_trace(temperature, drafter))
    assert dump_trace(load_trace(saved)) == saved
    assert dump_trace(load_trace(saved.encode())) == saved


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_loaded_trace_is_the_run_itself_and_so_are_its_metrics(temperature):
    trace = made_trace(temperature)
    loaded = load_trace(dump_trace(trace))
    assert loaded == trace
    assert race.done_event(loaded) == race.done_event(trace)
    assert list(race.replay_events(loaded)) == list(race.replay_events(trace))


def test_metrics_of_a_greedy_difference_survive_the_file():
    trace = made_trace(0.0)
    run, plain_run = trace.runs
    other = replace(plain_run.rounds[5].added, id=plain_run.rounds[5].added.p_top[1].id)
    rounds = list(plain_run.rounds)
    rounds[5] = replace(rounds[5], added=other)
    changed = replace(trace, runs=(run, replace(plain_run, rounds=tuple(rounds))))
    found = metrics.divergence(*changed.runs)
    assert found.gap is not None
    assert metrics.divergence(*load_trace(dump_trace(changed)).runs) == found


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("trace-v1-*.json")), ids=lambda f: f.name)
def test_a_trace_of_the_first_version_loads_for_ever(file):
    """These files are never written anew: what reads them no longer has broken people's traces."""
    data = file.read_bytes()
    trace = load_trace(data)
    assert dump_trace(trace).encode("utf-8") == data
    assert len(trace.run("speculative").tokens) in (13, 14)
    assert trace.note == "A trace written to be read for ever."


def parts(value):
    """A record and every record in it."""
    if is_dataclass(value):
        yield value
        for field in fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from parts(item)


@pytest.fixture(scope="module")
def kept():
    """Every record of the kept traces, by its class."""
    found = {}
    for file in FIXTURES.glob("trace-v1-*.json"):
        for part in parts(load_trace(file.read_bytes())):
            found.setdefault(type(part), []).append(part)
    return found


RECORDS = [Trace, PairInfo, Machine, Settings, PromptToken, Run, Round, Token, Candidate]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_the_kept_traces_use_every_field_there_is(kept, kind):
    """With a value that is not the field's default, so that leaving the field out would show."""
    for field in fields(kind):
        values = [getattr(record, field.name) for record in kept[kind]]
        assert any(value and value != field.default for value in values) or (
            field.name == "chat" and False in values
        ), field.name


def test_the_kept_traces_have_every_record_and_every_fate(kept):
    assert set(kept) == set(RECORDS)
    assert {token.fate for token in kept[Token]} == set(get_args(Fate))
    assert {run.lane for run in kept[Run]} == set(get_args(LaneName))
    assert {one.schedule for one in kept[Settings]} == set(get_args(Schedule))


@pytest.mark.parametrize("reason", get_args(FinishReason))
def test_every_way_to_end_is_written_and_read_back(reason):
    trace = made_trace(tokens=3)
    ended = replace(trace, runs=tuple(replace(run, finish_reason=reason) for run in trace.runs))
    assert load_trace(dump_trace(ended)) == ended


def test_a_run_too_long_for_a_file_is_saved_without_candidates(monkeypatch):
    trace = made_trace(tokens=30)
    whole = len(dump_trace(trace).encode())
    monkeypatch.setattr(trace_module, "MAX_TRACE_BYTES", whole - 1)
    first = load_trace(dump_trace(trace))
    assert first.run("speculative") == trace.run("speculative")
    assert all(not t.p_top for t in first.run("baseline").tokens)
    monkeypatch.setattr(trace_module, "MAX_TRACE_BYTES", 20_000)
    bare = load_trace(dump_trace(trace))
    assert all(not t.p_top for t in bare.run("speculative").tokens)
    assert bare.run("speculative").text == trace.run("speculative").text
    monkeypatch.setattr(trace_module, "MAX_TRACE_BYTES", 1_000)
    with pytest.raises(TraceError, match="too long for a trace"):
        dump_trace(trace)


def test_a_trace_of_a_thousand_tokens_stays_under_two_megabytes():
    trace = made_trace(tokens=200)
    assert len(dump_trace(trace).encode()) * 5 < 2_000_000


def test_loading_and_replaying_import_no_torch(tmp_path):
    file = tmp_path / "trace.json"
    file.write_text(dump_trace(made_trace()), encoding="utf-8")
    code = (
        "import sys; from specviz.trace import load_trace;"
        "from specviz.race import replay_events;"
        f"events = list(replay_events(load_trace(open({str(file)!r}, 'rb').read())));"
        "assert events[-1]['e'] == 'done';"
        "assert not {'torch', 'transformers', 'gradio'} & set(sys.modules), 'heavy import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def broken(document, change):
    copied = copy.deepcopy(document)
    change(copied)
    return json.dumps(copied)


def first_round(d):
    return d["runs"][0]["rounds"][0]


CASES = {
    "no version": (lambda d: d.pop("specviz_trace"), "no specviz trace"),
    "newer version": (lambda d: d.update(specviz_trace=99), "version 99 is newer"),
    "version of the wrong type": (lambda d: d.update(specviz_trace="1"), "no version number"),
    "unknown key": (lambda d: d.update(evil=1), r"trace: unknown key 'evil'"),
    "missing key": (lambda d: d.pop("pair"), r"the key 'pair' is missing"),
    "wrong type": (lambda d: d.update(prompt=5), r"trace.prompt: expected str, found 5"),
    "bool for int": (
        lambda d: d["machine"].update(threads=True), r"trace.machine.threads: expected int"
    ),
    "negative time": (lambda d: first_round(d).update(draft_s=-1), "rounds.0..draft_s"),
    "huge number": (lambda d: first_round(d).update(draft_s=1e300), "out of range"),
    "bad probability": (lambda d: first_round(d)["drafted"][0].update(p=1.5), "between 0 and 1"),
    "unknown fate": (lambda d: first_round(d)["drafted"][0].update(fate="x"), "'x' is none of"),
    "gamma below what was drafted": (lambda d: first_round(d).update(gamma=0), "is less than"),
    "parent outside": (
        lambda d: first_round(d)["drafted"][0].update(parent=99),
        r"drafted.0..parent: points outside",
    ),
    "candidate that is no number": (
        lambda d: first_round(d)["drafted"][0].update(p_top=[[1, "x", "y"]]),
        r"drafted.0..p_top.0..2.: 'y' is not between 0 and 1",
    ),
    "prompt token that is none": (
        lambda d: d.update(prompt_tokens=[[-1, "x"]]), r"prompt_tokens.0..0.: -1 is no token id"
    ),
    "a name of half a character": (
        lambda d: d["machine"].update(versions={"\udc00": "1"}), r"versions: .*surrogate"
    ),
    "impossible order": (
        lambda d: first_round(d)["drafted"][0].update(fate="discarded"), "impossible order"
    ),
    "wrong index": (lambda d: first_round(d).update(index=4), "index: expected 0"),
    "wrong position": (lambda d: d["runs"][0]["rounds"][1].update(position=99), "position"),
    "two runs of a lane": (lambda d: d["runs"][1].update(lane="speculative"), "trace.runs"),
    "no runs": (lambda d: d.update(runs=[]), "trace.runs"),
    "bad setting": (lambda d: d["settings"].update(gamma=1000), r"trace.settings: gamma must be"),
    "object for list": (lambda d: d.update(runs={}), "trace.runs: expected a list"),
    "short candidate": (
        lambda d: first_round(d)["drafted"][0].update(p_top=[[1, "x"]]), r"expected a list of 3"
    ),
    "text end outside": (lambda d: d["runs"][0].update(text_end=10**6), "outside the text"),
    "half a surrogate": (lambda d: d.update(prompt="\ud800"), "surrogate"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_broken_trace_is_refused_naming_the_place(document, case):
    change, message = CASES[case]
    with pytest.raises(TraceError, match=message):
        load_trace(broken(document, change))


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", "not valid JSON"),
        (b"[1, 2]", "no specviz trace"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"specviz_trace": 1, "note": NaN}', "NaN"),
        (b'{"specviz_trace": 1, "note": -Infinity}', "Infinity"),
        (b'{"specviz_trace": 1, "a": 1, "a": 2}', "stands twice"),
        (b'{"specviz_trace": ' + b"1" * 5000 + b"}", "cannot be read"),
        (b"[" * 200_000, "nested too deeply|not valid JSON"),
        (b" " * 12_000_001, "larger than 12 MB"),
        (b'{"specviz_trace": 1e400}', "no version number"),
    ],
)
def test_what_is_no_trace_at_all_is_refused(data, message):
    with pytest.raises(TraceError, match=message):
        load_trace(data)


def test_nan_is_never_written():
    trace = made_trace(tokens=4)
    bad = Trace(
        trace.pair, trace.machine, trace.settings, trace.prompt, trace.prompt_tokens,
        tuple(type(run)(run.lane, run.drafter, run.rounds, run.finish_reason, float("nan"))
              for run in trace.runs),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        dump_trace(bad)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"gamma": -1}, "gamma must be a whole number from 0 to 64"),
        ({"gamma": 2.5}, "gamma must be a whole number"),
        ({"temperature": float("nan")}, "temperature must be a number"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"top_p": 0}, "top_p must be above 0"),
        ({"top_p": 1.1}, "top_p must be a number from 0.0 to 1.0"),
        ({"max_new_tokens": True}, "max_new_tokens"),
        ({"stop": ("",)}, "stop takes"),
    ],
)
def test_settings_that_cannot_be_used_say_what_to_do(changes, message):
    with pytest.raises(SettingsError, match=message):
        Settings(**changes)


def test_replayed_events_are_in_the_order_of_the_clocks():
    events = list(race.replay_events(made_trace()))
    assert [e["e"] for e in events[:3]] == ["start", "prefill", "prefill"]
    clocks = {"speculative": 0.0, "baseline": 0.0}
    for event in events:
        if event["e"] != "round":
            continue
        others = [clocks[lane] for lane in clocks if lane != event["lane"]]
        if event["figures"]["tokens"] < 40 and event["figures"]["baseline_tokens"] < 40:
            assert clocks[event["lane"]] <= others[0] + 1e-9
        round_ = event["round"]
        clocks[event["lane"]] += round_["draft_s"] + round_["verify_s"] + round_["sample_s"]
    json.dumps(events, allow_nan=False)
