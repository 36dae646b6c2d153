"""``specviz check``: what it prints, and that its exit status can be trusted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import checkpoints
import pytest

from specviz.cli import main
from specviz.cli.check import greedy_words, verdict
from specviz.lossless import variants
from specviz.lossless.cases import cases
from specviz.lossless.greedy import GreedyResult, Parting

ROOT = Path(__file__).parents[2]


@pytest.fixture
def check(capsys):
    def call(*arguments):
        status = main(["check", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    checkpoints.save(root / "target")
    checkpoints.save(root / "draft", seed=1, layers=1)
    return ["--target", str(root / "target"), "--draft", str(root / "draft"), "--dtype", "float32"]


def test_the_exact_proof_holds_and_says_what_it_leaves_open(check):
    status, out, _ = check("--only", "exact")
    assert status == 0
    assert [
        line.split(":")[0].split("ok    ")[1] for line in out.splitlines() if "  ok  " in line
    ] == [case.name for case in cases()]
    assert "It leaves open: Nothing about a real model's arithmetic" in out
    assert out.endswith("All proofs hold.\n")


@pytest.mark.parametrize("variant", variants.WRONG, ids=lambda variant: variant.name)
def test_a_wrong_variant_fails_with_a_status_of_its_own(check, variant):
    status, out, _ = check("--variant", variant.name)
    assert status == 1
    assert "  FAIL  " in out
    assert "It shows" not in out
    assert out.endswith("NOT LOSSLESS: a proof failed.\n")


def test_all_proofs_run_on_a_pair_with_every_drafter(check, folders):
    status, out, err = check(*folders, "--samples", "10")
    assert status == 0, err
    assert "draft model, float32: 10 of each" in out
    assert "prompt lookup, float32: 10 of each" in out
    assert "tokens, the same as the target alone" in out


def test_a_wrong_variant_fails_on_a_pair_too_with_every_drafter_judged(check, folders):
    _, target, *_ = folders
    pair = ("--target", target, "--draft", target, "--dtype", "float32")  # a draft that agrees
    wrong = ("--variant", "argmax draft", "--only", "sampled", "--only", "exact")
    plan = ("--samples", "60", "--tokens", "1", "--temperature", "0.05")
    status, out, _ = check(*pair, *wrong, *plan, "--json")
    assert status == 1
    proofs = json.loads(out)["proofs"]
    assert set(proofs) == {"exact", "sampled"}
    held = {result["drafter"]: result["holds"] for result in proofs["sampled"]["results"]}
    assert held == {"combined": False, "draft model": False, "prompt lookup": True}


def test_a_comparison_that_tested_nothing_is_not_sold_as_a_proof():
    def outcome(holds, *tested):
        return {"holds": holds, "proofs": {"sampled": {"results": [{"tested": t} for t in tested]}}}

    assert verdict(outcome(True, True, True)) == "All proofs hold."
    assert verdict(outcome(True, True, False)).endswith("but 1 of 2 results tested nothing.")
    assert verdict(outcome(False, True, False)) == "NOT LOSSLESS: a proof failed."


def test_json_is_one_object(check, folders):
    status, out, _ = check(*folders, "--samples", "10", "--only", "sampled", "--json")
    assert status == 0
    outcome = json.loads(out)
    assert outcome["holds"] is True
    assert outcome["variant"] == "right"
    (result,) = [
        r for r in outcome["proofs"]["sampled"]["results"] if r["drafter"] == "draft model"
    ]
    assert result["n"] == 10


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--variant", "x"), "no variant 'x'"),
        (("--variant", "no residual", "--only", "greedy"), "a variant changes sampling alone"),
        (("--samples", "2"), "at least 10 continuations"),
        (("--temperature", "0"), "needs a temperature above 0"),
        (("--gamma", "0"), "gamma must be at least 1"),
        (("--pair", "nope"), "there is no pair 'nope'"),
    ],
)
def test_bad_input_is_one_line_and_exits_two(check, arguments, message):
    status, out, err = check(*arguments)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
    assert out == ""


def test_the_status_reaches_the_shell():
    command = [sys.executable, "-m", "specviz", "check", "--variant", "no residual"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 1


def parted(finding):
    parting = Parting(4, " sea", " fog", (21.5, 21.375), (21.375, 21.5), 0.5)
    return GreedyResult("p", "draft model", 4, "bfloat16", 9, finding, parting)


def test_a_difference_is_told_with_both_logits_and_in_so_many_words():
    words = greedy_words(parted("near tie"))
    assert words.startswith(
        "from token 5 on ' sea', in the baseline ' fog'; logits 21.5 and 21.375"
    )
    assert words.endswith("is rounding in bfloat16: a near tie")
    assert greedy_words(parted("bug")).endswith(": a bug")
