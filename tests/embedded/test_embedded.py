"""The real pair: exact, faster in target calls, and the same through every door."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import torch

from specviz.chat import encode
from specviz.drafters import names
from specviz.race import Race
from specviz.records import Settings
from specviz.text import Texts
from specviz.trace import dump_trace, load_trace

STORY = "Write a short story about a lighthouse keeper."


def finished(pair, drafter, prompt, **settings):
    race = Race(pair, drafter, prompt, Settings(**settings))
    list(race.start())
    while not race.finished:
        race.advance()
    return race


def test_the_target_has_a_lean_form(pair):
    assert pair.target.lean is not None
    assert pair.draft.lean is not None


@pytest.mark.parametrize("kind", ["conversation", "code", "translation"])
def test_in_float32_the_text_is_the_targets_own(exact, prompts, kind):
    prompt = next(example["prompt"] for example in prompts if example["kind"] == kind)
    for drafter in names(exact):
        race = finished(exact, drafter, prompt, max_new_tokens=40, gamma=4)
        done = race.finish()
        assert done["same_as_baseline"] is True, (drafter, done["divergence"])


def test_in_float32_the_baseline_is_what_generate_writes(exact):
    ids = encode(exact, STORY, True)
    inputs = torch.tensor([ids])
    expected = exact.target.module.generate(
        inputs, attention_mask=torch.ones_like(inputs), max_new_tokens=40, do_sample=False,
        pad_token_id=exact.eos_ids[0],
    )[0, len(ids) :].tolist()  # fmt: skip
    race = finished(exact, "prompt lookup", STORY, max_new_tokens=40)
    assert [token.id for token in race.trace().run("baseline").tokens] == expected


def test_the_draft_is_worth_its_calls_on_the_story(pair):
    race = finished(pair, "draft model", STORY, max_new_tokens=96, gamma=4)
    figures = race.finish()["figures"]
    assert figures["tokens_per_target_call"] > 1.3
    assert math.isfinite(figures["speedup"])
    assert math.isfinite(figures["tar"])


def test_a_greedy_difference_in_low_precision_is_a_near_tie(pair, prompts):
    for example in prompts[:3]:
        done = finished(pair, "draft model", example["prompt"], max_new_tokens=48).finish()
        if done["divergence"]:
            # One rounding step of a bfloat16 logit of 16 to 32 is an eighth.
            assert abs(done["divergence"]["gap"]) <= 0.5, done["divergence"]


def test_pieces_of_a_real_run_join_to_the_tokenizers_own_text(pair):
    prompt = "Repeat exactly: 日本 👍🏽 naïve עברית"
    race = finished(pair, "draft model", prompt, max_new_tokens=60, temperature=1.2, seed=4)
    for run in race.trace().runs:
        ids = [token.id for token in run.tokens]
        assert "".join(token.text for token in run.tokens) == Texts(pair.tokenizer).decode(ids)


def test_a_real_trace_round_trips(pair):
    trace = finished(pair, "draft model", STORY, max_new_tokens=32, temperature=0.8).trace()
    saved = dump_trace(trace)
    assert dump_trace(load_trace(saved)) == saved


def test_no_token_of_the_prompt_is_doubled(pair):
    start = pair.tokenizer.convert_tokens_to_ids("<|im_start|>")
    chat = encode(pair, "Hello", True)
    assert chat.count(start) == 3
    assert pair.tokenizer.decode(chat).startswith("<|im_start|>system\n")
    assert encode(pair, "Hello", False) == pair.tokenizer.encode("Hello", add_special_tokens=False)


def test_the_command_line_prints_one_object_with_measured_figures():
    command = [sys.executable, "-m", "specviz", "run", "--prompt", STORY]
    result = subprocess.run(
        [*command, "--max-new-tokens", "24", "--json"], capture_output=True, text=True, check=True
    )
    figures = json.loads(result.stdout)
    assert figures["tokens"] == 24
    assert figures["speedup"] > 0
    assert figures["text"]
