"""Plans, running them, and the file that can be stopped at any moment."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kit import noisy, pair
from sweeps import PROMPTS, pairs, plan

from specviz.prompts import Prompt
from specviz.records import Machine, Settings
from specviz.rows import Setup, rows
from specviz.sweep import (
    Failed,
    Generated,
    Job,
    Journal,
    JournalError,
    PlanError,
    Sweep,
    compare,
    cross,
    read_bench,
    sources,
)
from specviz.sweep.plan import asks_draft

MACHINE = Machine("cpu", "float32", 1)


def ended(sweep):
    while not sweep.finished:
        sweep.advance()
    return sweep


@pytest.fixture(scope="module")
def whole():
    return ended(Sweep(pairs(), plan()))


# --- plans ---------------------------------------------------------------------------------


def test_a_grid_holds_every_combination_once():
    setups = cross([("a", ""), ("b", "d")], (2, 4, 2), (0.0, 1.0), (0.0, 0.4), ("constant",))
    assert len(setups) == len(set(setups)) == 2 * 2 * 2 * 2
    assert Setup("b", "d", 4, 1.0, 0.4, "constant") in setups


def test_every_setup_meets_every_prompt_and_repeat_once():
    jobs = list(plan(repeats=2).jobs())
    assert len(jobs) == len({job.key for job in jobs}) == len(plan(repeats=2)) == 4 * 3 * 2


def test_no_setup_is_always_the_first_on_a_prompt():
    jobs = list(plan().jobs())
    assert len({jobs[i].setup for i in range(0, len(jobs), 4)}) == 3


def test_repeats_draw_from_seeds_of_their_own():
    own = plan()
    assert own.settings_of(own.setups[0], 3).seed == own.settings.seed + 3


def test_a_drafter_that_asks_no_draft_is_there_once():
    two = {"N": pair(noisy()), "M": pair(noisy(0.1))}
    found = sources(two)
    assert ("draft model", "N") in found
    assert ("draft model", "M") in found
    assert [source for source in found if source[0] == "prompt lookup"] == [("prompt lookup", "")]
    assert asks_draft("draft model", two["N"])
    assert not asks_draft("prompt lookup", two["N"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setups": ()}, "nothing to measure"),
        ({"prompts": ()}, "nothing to measure"),
        ({"repeats": 0}, "repeats must be from 1"),
        ({"prompts": (*PROMPTS, Prompt("2", "x", "again"))}, "two prompts have the id '2'"),
        ({"setups": (Setup("draft model", gamma=99),)}, "gamma"),
    ],
)
def test_a_plan_that_cannot_be_made_says_why(changes, message):
    with pytest.raises(ValueError, match=message):
        plan(**changes)


# --- running -------------------------------------------------------------------------------


def test_a_sweep_makes_every_run_with_its_own_settings(whole):
    assert len(whole.measured) == whole.total == 12
    assert not whole.failed
    for one in whole.measured:
        settings = one.trace.settings
        assert (settings.gamma, one.run.drafter) == (one.setup.gamma, one.setup.drafter)
        assert len(one.run.tokens) == len(one.baseline.tokens) == 10
    assert {row.same for row in rows(whole.measured)} == {3}


def test_stopping_throws_away_the_run_that_was_under_way_and_nothing_else():
    sweep = Sweep(pairs(), plan())
    sweep.advance()
    asked = []

    def stop():
        asked.append(True)
        return len(asked) > 2

    assert sweep.advance(stop) is None
    assert len(sweep.measured) == 1
    assert len(ended(sweep).measured) == 12


def test_what_was_measured_before_is_not_measured_again(whole):
    again = Sweep(pairs(), plan(), whole.measured[:7])
    assert len(again.measured) == 7
    assert ended(again).measured[:7] == whole.measured[:7]


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": Settings(max_new_tokens=11, chat=False)},
        {"prompts": tuple(replace(prompt, text=prompt.text + "!") for prompt in PROMPTS)},
    ],
)
def test_a_run_of_other_settings_or_another_prompt_answers_nothing(whole, changes):
    assert Sweep(pairs(), plan(**changes), whole.measured).outcomes == []


def test_a_run_of_another_machine_answers_nothing(whole):
    elsewhere = {"N": pair(noisy(), machine=Machine("cpu", "bfloat16", 1))}
    assert Sweep(elsewhere, plan(), whole.measured).outcomes == []


def test_a_run_that_cannot_be_made_is_told_and_the_others_go_on():
    prompts = (*PROMPTS[:1], Prompt("long", "x", "1" * 400))
    sweep = ended(Sweep(pairs(), plan(prompts=prompts)))
    assert len(sweep.measured) == len(sweep.failed) == 4
    assert all(isinstance(one, Failed) and "shorten it" in one.why for one in sweep.failed)


def test_warming_up_meets_every_setup_and_measures_nothing():
    sweep = Sweep(pairs(), plan())
    made = []
    make = sweep._make
    sweep._make = lambda job, *rest, **named: made.append(job.setup) or make(job, *rest, **named)
    sweep.warm_up()
    assert sorted(made, key=str) == sorted(plan().setups, key=str)
    assert sweep.outcomes == []
    assert sweep.seconds_left is None


# --- the file ------------------------------------------------------------------------------


def written(path, runs, whole):
    journal = Journal.begin(path, whole.plan, MACHINE)
    for one in runs:
        journal.add(one)
    return journal


def test_the_file_is_json_after_every_run_and_reads_back_the_same(tmp_path, whole):
    path = tmp_path / "bench.json"
    journal = Journal.begin(path, whole.plan, MACHINE)
    for count, one in enumerate(whole.measured):
        assert len(json.loads(path.read_text(encoding="utf-8"))["runs"]) == count
        journal.add(one)
    bench = read_bench(path)
    assert list(bench.measured) == whole.measured
    assert not bench.complete


def test_the_table_in_the_file_equals_one_made_from_its_rounds(tmp_path, whole):
    path = tmp_path / "bench.json"
    written(path, whole.measured, whole).finish(whole.measured, [], True)
    document = json.loads(path.read_text(encoding="utf-8"))
    from specviz.rows import to_plain

    bench = read_bench(path)
    assert bench.complete
    assert document["rows"] == [
        json.loads(json.dumps(to_plain(row))) for row in rows(bench.measured)
    ]
    assert len(document["rows_by_kind"]) == 8


@pytest.mark.parametrize("kept", [0, 1, 5])
def test_a_file_that_was_cut_anywhere_is_gone_on_with(tmp_path, whole, kept):
    path = tmp_path / "bench.json"
    written(path, whole.measured[: kept + 1], whole)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    start = sum(map(len, lines[: kept + 1]))
    for cut in (start, start + 1, start + len(lines[kept + 1]) // 2, start + len(lines[kept + 1])):
        path.write_bytes(data[:cut])
        bench = read_bench(path)
        assert len(bench.measured) in (kept, kept + 1)
        sweep = Sweep(pairs(), plan(), bench.measured)
        journal = Journal.resume(path, bench, whole.plan, MACHINE)
        while not sweep.finished:
            journal.add(sweep.advance())
        journal.finish(sweep.measured, [], True)
        assert len(json.loads(path.read_text(encoding="utf-8"))["runs"]) == 12
        assert list(read_bench(path).measured) == sweep.measured


def test_going_on_with_a_stopped_file_replaces_its_table(tmp_path, whole):
    path = tmp_path / "bench.json"
    written(path, whole.measured[:2], whole).finish(whole.measured[:2], [], False)
    bench = read_bench(path)
    journal = Journal.resume(path, bench, whole.plan, MACHINE)
    journal.add(whole.measured[2])
    assert len(json.loads(path.read_text(encoding="utf-8"))["runs"]) == 3


def test_another_plan_or_machine_is_refused(tmp_path, whole):
    path = tmp_path / "bench.json"
    written(path, whole.measured[:1], whole)
    bench = read_bench(path)
    with pytest.raises(JournalError, match=r"another sweep \(repeats differ\)"):
        Journal.resume(path, bench, plan(repeats=2), MACHINE)
    with pytest.raises(JournalError, match="was measured on cpu"):
        Journal.resume(path, bench, whole.plan, Machine("cuda", "float32", 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no file of a sweep"),
        ("[]", "no file of a sweep"),
        ('{"specviz_trace":1,"runs":[\n]}', "no file of a sweep"),
        ('{"specviz_bench":9,"plan":{},"machine":{},"runs":[\n]}', "has the version 9"),
        ('{"specviz_bench":1,"plan":1,"machine":{},"runs":[\n]}', "plan or machine is missing"),
        ('{"specviz_bench":1,"plan":{},"machine":{},"runs":[\nnull\n]}', "line 2: a run is"),
        ('{"specviz_bench":1,"plan":{},"machine":{},"runs":[\n{\n{}\n]}', "line 2: not valid"),
        (
            '{"specviz_bench":1,"plan":{},"machine":{},"runs":[\n'
            '{"prompt":"1","kind":"k","repeat":0,"draft":"","trace":{"specviz_trace":1}}\n]}',
            "line 2: ",
        ),
        (
            '{"specviz_bench":1,"plan":{},"machine":{},"runs":[\n{"prompt":1}\n]}',
            "line 2: prompt: expected a short text",
        ),
        (
            '{"specviz_bench":1,"plan":{},"machine":{},"runs":[\n'
            '{"generated":{"seconds":1e99,"ids":[]}}\n]}',
            "line 2: generated: seconds",
        ),
    ],
)
def test_a_faulty_file_is_named_by_place_and_reason(tmp_path, text, message):
    path = tmp_path / "bench.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JournalError, match=message):
        read_bench(path)


# --- against generate() --------------------------------------------------------------------


def generated(one, method="generate", seconds=2.0, ids=None):
    tokens = tuple(token.id for token in one.baseline.tokens)
    return Generated(method, "", 0, one.prompt_id, one.repeat, seconds, ids or tokens)


def test_methods_are_set_beside_plain_generate(whole):
    one = whole.measured[0]
    calls = [generated(one), generated(one, "generate, prompt lookup", 1.0)]
    lines = {line.name: line for line in compare([one], calls)}
    assert lines["generate"].tokens_per_s == pytest.approx(10 / 2)
    assert lines["generate, prompt lookup"].times == pytest.approx(2.0)
    assert all((line.same, line.compared) == (1, 1) for line in lines.values())
    assert lines["specviz, target alone"].gamma == 0


def test_a_text_that_differs_is_counted_as_such(whole):
    one = whole.measured[0]
    calls = [generated(one), generated(one, "generate, prompt lookup", ids=(1, 2))]
    line = next(line for line in compare([one], calls) if "lookup" in line.name)
    assert (line.same, line.compared) == (0, 1)


def test_generate_runs_in_the_same_sweep_and_writes_the_same_text(tmp_path):
    from specviz.sweep.generate import rivals

    loaded = pairs()
    setups = cross([("draft model", "N"), ("prompt lookup", "")], (3,))
    own = plan(setups=setups, prompts=PROMPTS[:2], rivals=rivals(setups, loaded))
    sweep = ended(Sweep(loaded, own))
    assert not sweep.failed
    assert len(sweep.generated) == 3 * 2
    for line in compare(sweep.measured, sweep.generated):
        assert line.same == line.compared == (4 if "alone" in line.name else 2), line
    path = tmp_path / "bench.json"
    journal = Journal.begin(path, own, MACHINE)
    for one in sweep.outcomes:
        journal.add(one)
    assert list(read_bench(path).generated) == sweep.generated


@pytest.mark.parametrize(
    "setup",
    [Setup("a", temperature=1.0), Setup("a", confidence=0.5), Setup("a", schedule="adaptive")],
)
def test_what_generate_cannot_run_alike_is_refused(setup):
    from specviz.sweep.generate import rivals

    with pytest.raises(PlanError, match="only temperature 0"):
        rivals([setup], pairs())


def test_a_draft_lent_to_generate_stays_as_it_is():
    from specviz.sweep.generate import assistant

    own = pair(noisy())
    before = own.draft.module.generation_config.to_dict()
    made = assistant(own, 5)
    assert made.generation_config.num_assistant_tokens == 5
    assert own.draft.module.generation_config.to_dict() == before


def test_jobs_are_told_apart_by_setup_prompt_and_repeat():
    job = Job(Setup("a"), PROMPTS[0], 0)
    assert job.key != replace(job, repeat=1).key
