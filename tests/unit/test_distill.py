"""distill: tiny random models, no weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specviz.datastore import Datastore
from specviz.distill.commands import build_parser, loss_weights, main
from specviz.distill.corpus import USER_LIMIT, Template, pick, write_batch
from specviz.distill.evaluation import GreedyText, evaluate, right_guesses, simulate
from specviz.distill.student import (
    IdMap,
    choose_ids,
    cut_student,
    load_draft,
    narrow_student,
    save_draft,
)
from specviz.distill.training import (
    Data,
    Trainer,
    TrainSettings,
    answer_positions,
    target_states,
    train,
)

VOCABULARY, END = 40, 2
TEMPLATE = Template(opening=(1, 7, 2, 1, 8), to_answer=(5, 1, 9), to_user=(5, 1, 8), end=END)


def tiny_target(seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.6,
        bos_token_id=1,
        eos_token_id=END,
        pad_token_id=END,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def target() -> LlamaForCausalLM:
    return tiny_target()


@pytest.fixture(scope="module")
def corpus(target: LlamaForCausalLM) -> np.ndarray:
    return write_batch(target, TEMPLATE, [[11, 12, 13]], rows=12, length=120, seed=3)


def split_turns(row: list[int]) -> list[tuple[str, list[int]]]:
    """Follow one row by the template alone; fails where the row leaves it."""
    opening = list(TEMPLATE.opening)
    assert row[: len(opening)] == opening
    turns, who, rest = [], "user", row[len(opening) :]
    while END in rest:
        stop = rest.index(END)
        turns.append((who, rest[:stop]))
        rest = rest[stop + 1 :]
        between = list(TEMPLATE.to_answer if who == "user" else TEMPLATE.to_user)
        assert rest[: len(between)] == between[: len(rest)]
        rest = rest[len(between) :]
        who = "assistant" if who == "user" else "user"
    return [*turns, (who, rest)]


def test_corpus_rows_follow_the_chat_template(corpus: np.ndarray) -> None:
    assert corpus.shape == (12, 120)
    assert corpus.dtype == np.uint16
    turns = [turn for row in corpus.tolist() for turn in split_turns(row)]
    assert any(who == "assistant" for who, _ in turns)


def test_corpus_begins_some_user_turns_with_a_task(corpus: np.ndarray) -> None:
    starts = [row[5:8] == [11, 12, 13] for row in corpus.tolist()]
    assert any(starts)
    assert not all(starts)


def test_corpus_ends_a_user_turn_at_its_limit() -> None:
    talker = tiny_target()
    with torch.no_grad():  # a target that hardly ever ends a turn by itself
        talker.model.embed_tokens.weight[END] = 0.0
    rows = write_batch(talker, TEMPLATE, [], rows=4, length=USER_LIMIT + 20, seed=0)
    turns = [turn for row in rows.tolist() for turn in split_turns(row)]
    assert turns
    assert max(len(text) for _, text in turns) <= USER_LIMIT


def test_corpus_of_a_seed_is_always_the_same(target: LlamaForCausalLM, corpus: np.ndarray) -> None:
    again = write_batch(target, TEMPLATE, [[11, 12, 13]], rows=12, length=120, seed=3)
    other = write_batch(target, TEMPLATE, [[11, 12, 13]], rows=12, length=120, seed=4)
    assert (again == corpus).all()
    assert (other != corpus).any()


def test_pick_samples_the_softmax_among_the_narrow_set() -> None:
    logits = torch.zeros(4000, 60)
    logits[:, 0] = 1.0
    logits[:, 55:] = -1.0
    heat = torch.ones(4000)
    drawn = pick(logits, heat, torch.ones(4000, dtype=torch.bool), torch.Generator().manual_seed(0))
    share = (drawn == 0).float().mean().item()
    assert share == pytest.approx(np.e / (np.e + 54), abs=0.01)
    cold = pick(logits, heat * 0, torch.zeros(4000, dtype=torch.bool), torch.Generator())
    assert (cold == 0).all()


def test_answer_positions_are_those_whose_next_id_is_the_answers() -> None:
    #     system      user  header  answer end header'  user
    row = [1, 7, 2, 1, 8, 30, 2, 5, 1, 9, 31, 32, 2, 5, 1, 8, 33]
    marked = answer_positions(np.array([row]), (END, 5, 1, 9), END)[0]
    assert [row[t + 1] for t in np.flatnonzero(marked)] == [31, 32, END]


def test_loss_weights_leave_out_what_all_rows_begin_with() -> None:
    rows = np.array([[1, 8, 30, 2, 5, 1, 9, 31], [1, 8, 33, 2, 5, 1, 9, 32]])
    weights = loss_weights(rows, (END, 5, 1, 9), END, user=0.25)
    assert weights.tolist() == [[0, 0.25, 0.25, 0.25, 0.25, 0.25, 1, 1]] * 2


def test_id_map_round_trip(tmp_path: Path) -> None:
    id_map = choose_ids(np.array([[9, 9, 9, 4, 4, 1, 6]]), size=5, special=[1, 2])
    assert id_map.ids == (0, 1, 2, 9, 4)
    known = torch.tensor(id_map.ids)
    assert torch.equal(id_map.to_target(id_map.to_draft(known)), known)
    assert id_map.to_draft(torch.tensor([6, 39])).tolist() == [id_map.unknown] * 2
    id_map.save(tmp_path / "ids.json")
    assert IdMap.load(tmp_path / "ids.json") == id_map
    assert json.loads((tmp_path / "ids.json").read_text()) == {"ids": [0, 1, 2, 9, 4], "unknown": 0}


def test_id_map_refuses_an_id_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        IdMap((0, 1, 1), 0)


def whole_map() -> IdMap:
    return IdMap(tuple(range(VOCABULARY)), unknown=0)


def test_a_student_with_every_layer_neuron_and_id_is_the_target(
    target: LlamaForCausalLM, corpus: np.ndarray
) -> None:
    rows = torch.from_numpy(corpus.astype(np.int64))
    student = cut_student(target, whole_map(), [0, 1, 2], 24, rows)
    with torch.no_grad():
        torch.testing.assert_close(student(rows).logits, target(rows).logits)


def test_a_cut_student_keeps_the_neurons_that_matter(
    target: LlamaForCausalLM, corpus: np.ndarray
) -> None:
    rows = torch.from_numpy(corpus.astype(np.int64))
    weak = tiny_target()
    down = weak.model.layers[1].mlp.down_proj.weight
    with torch.no_grad():
        down[:, [0, 5, 7]] = 0.0
    student = cut_student(weak, whole_map(), [1], 21, rows)
    kept = [i for i in range(24) if i not in (0, 5, 7)]
    assert torch.equal(student.model.layers[0].mlp.down_proj.weight, down[:, kept])


def test_a_narrow_student_sees_the_embeddings_along_their_main_directions(
    target: LlamaForCausalLM,
) -> None:
    student = narrow_student(target, whole_map(), 3, 8, 12)
    own, theirs = student.model.embed_tokens.weight, target.model.embed_tokens.weight
    assert own.shape == (VOCABULARY, 8)
    assert student.config.num_hidden_layers == 3
    assert own.norm().item() == pytest.approx(theirs.norm().item(), rel=1e-4)
    alike = torch.corrcoef(torch.stack([(own @ own.T).ravel(), (theirs @ theirs.T).ravel()]))[0, 1]
    assert alike > 0.8
    assert torch.isfinite(student(torch.tensor([[1, 2, 3]])).logits).all()


def test_a_width_that_heads_do_not_fill_is_refused(target: LlamaForCausalLM) -> None:
    with pytest.raises(ValueError, match="multiple of the head size, 4"):
        narrow_student(target, whole_map(), 1, 10, 12)


def test_a_saved_draft_loads_as_an_ordinary_llama(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    rows = torch.from_numpy(corpus.astype(np.int64))
    id_map = choose_ids(corpus, 20, [1, END])
    student = cut_student(target, id_map, [0, 2], 16, rows)
    size = save_draft(student, id_map, tmp_path / "draft")
    assert size == (tmp_path / "draft" / "model.safetensors").stat().st_size
    loaded, loaded_map = load_draft(tmp_path / "draft", torch.bfloat16)
    for name, weight in student.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight.to(torch.bfloat16)), name
    assert loaded_map == id_map
    files = sorted(path.name for path in (tmp_path / "draft").iterdir())
    assert files == ["config.json", "ids.json", "model.safetensors"]


def make_trainer(
    target: LlamaForCausalLM, corpus: np.ndarray, folder: Path, settings: TrainSettings
) -> tuple[Trainer, IdMap]:
    ids = torch.from_numpy(corpus.astype(np.int64))
    id_map = choose_ids(corpus, 24, [1, END])
    student = cut_student(target, id_map, [0, 2], 16, ids)
    head = target.lm_head.weight[torch.tensor(id_map.ids)].detach().clone()
    folder.mkdir(exist_ok=True)
    states = target_states(target, ids, folder / "states.npy", rows=5)
    weights = torch.ones(ids.shape)
    return Trainer(student, head, id_map, Data(ids, weights, states), settings), id_map


SETTINGS = TrainSettings(rows=3, passes=4, learning_rate=5e-3, held_out=3, evaluate_every=2)


def run_training(trainer: Trainer, folder: Path) -> dict[str, Any]:
    steps: list[int] = []
    return train(
        trainer,
        evaluate=lambda: float(trainer.step),
        keep_best=lambda: steps.append(trainer.step),
        checkpoint=folder / "checkpoint.pt",
    )


def test_resumed_training_equals_uninterrupted_training(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    whole, _ = make_trainer(target, corpus, tmp_path / "whole", SETTINGS)
    finished = run_training(whole, tmp_path / "whole")

    first, _ = make_trainer(target, corpus, tmp_path / "cut", SETTINGS)
    first.total_steps, length = 6, first.total_steps
    rate, first.rate = first.rate, lambda step: whole.rate(step)  # type: ignore[method-assign]
    run_training(first, tmp_path / "cut")
    assert rate(5) != whole.rate(5)
    assert first.step == 6

    second, _ = make_trainer(target, corpus, tmp_path / "cut", SETTINGS)
    resumed = run_training(second, tmp_path / "cut")
    assert second.step == length
    assert resumed["tokens"] == finished["tokens"]
    for name, weight in whole.student.state_dict().items():
        assert torch.equal(weight, second.student.state_dict()[name]), name


def test_training_lowers_the_loss(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, passes=20)
    trainer, _ = make_trainer(target, corpus, tmp_path / "work", settings)
    rows = np.arange(9)
    before = trainer.loss(rows).item()
    run_training(trainer, tmp_path / "work")
    assert trainer.loss(rows).item() < before - 0.05


def test_a_checkpoint_of_other_settings_is_refused(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    trainer, _ = make_trainer(target, corpus, tmp_path / "work", SETTINGS)
    run_training(trainer, tmp_path / "work")
    other, _ = make_trainer(target, corpus, tmp_path / "work", replace(SETTINGS, seed=1))
    with pytest.raises(ValueError, match="other settings"):
        run_training(other, tmp_path / "work")


def test_training_stops_when_the_score_no_longer_rises(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    trainer, _ = make_trainer(
        target, corpus, tmp_path / "work", replace(SETTINGS, passes=50, patience=2)
    )
    kept: list[int] = []
    result = train(
        trainer, lambda: -1.0, lambda: kept.append(trainer.step), tmp_path / "work" / "c.pt"
    )
    assert kept == [2]
    assert result["best_step"] == 2
    assert result["steps"] == 6


def test_an_interrupted_pass_of_the_target_continues(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    ids = torch.from_numpy(corpus.astype(np.int64))
    whole = target_states(target, ids, tmp_path / "whole.npy", rows=4)

    calls = 0

    class Interrupted:
        config, device = target.config, target.device

        @staticmethod
        def model(**inputs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 3:
                raise KeyboardInterrupt
            return target.model(**inputs)

    with pytest.raises(KeyboardInterrupt):
        target_states(Interrupted(), ids, tmp_path / "cut.npy", rows=4)
    again = target_states(target, ids, tmp_path / "cut.npy", rows=4)
    assert (again == whole).all()


def test_states_of_another_corpus_are_refused(
    target: LlamaForCausalLM, corpus: np.ndarray, tmp_path: Path
) -> None:
    ids = torch.from_numpy(corpus.astype(np.int64))
    target_states(target, ids, tmp_path / "states.npy")
    with pytest.raises(ValueError, match="another corpus"):
        target_states(target, ids[:5], tmp_path / "states.npy")


@torch.no_grad()
def greedy(model: LlamaForCausalLM, ids: list[int], count: int) -> list[int]:
    """Token by token without any cache, until the end token."""
    written: list[int] = []
    while len(written) < count:
        logits = model(torch.tensor([ids + written])).logits[0, -1]
        written.append(int(logits.argmax()))
        if written[-1] == END:
            break
    return written


@torch.no_grad()
def brute_force(
    target: LlamaForCausalLM, draft: LlamaForCausalLM, id_map: IdMap, text: GreedyText, gamma: int
) -> tuple[list[int], int, list[int]]:
    """Speculative decoding written down naively: tokens, target calls, accepted per round."""
    prompt, out, calls, accepted = list(text.prompt_ids), [], 0, []
    while len(out) < text.budget and END not in out:
        guesses: list[int] = []
        for _ in range(min(gamma, text.budget - len(out) - 1)):
            seen = id_map.to_draft(torch.tensor([prompt + out + guesses]))
            guesses.append(id_map.ids[int(draft(seen).logits[0, -1].argmax())])
        calls += 1
        passed = 0
        for place in range(len(guesses) + 1):
            token = greedy(target, prompt + out, 1)[0]
            out.append(token)
            if place == len(guesses) or guesses[place] != token:
                break
            passed += 1
            if token == END:
                break
        accepted.append(passed)
    return out, calls, accepted


@pytest.mark.parametrize("gamma", [1, 3, 5])
@pytest.mark.parametrize("budget", [17, 24])
def test_simulated_rounds_equal_brute_force_rounds(gamma: int, budget: int) -> None:
    target = tiny_target(seed=1)
    id_map = IdMap(tuple(range(VOCABULARY - 3)), unknown=0)
    rows = torch.randint(3, VOCABULARY, (4, 12), generator=torch.Generator().manual_seed(5))
    draft = cut_student(target, id_map, [0, 1, 2], 20, rows).eval()
    some_accepted = some_rejected = False
    for row in rows.tolist():
        text = GreedyText("test", "", tuple(row), tuple(greedy(target, row, budget)), budget)
        out, calls, accepted = brute_force(target, draft, id_map, text, gamma)
        result = simulate([right_guesses(draft, id_map, text)] * gamma, gamma, budget)
        assert tuple(out) == text.ids
        assert (result.tokens, result.target_calls) == (len(out), calls)
        assert sum(passed for _, passed in result.by_position) == sum(accepted)
        some_accepted |= any(accepted)
        some_rejected |= 0 in accepted
    assert some_accepted
    assert some_rejected


def test_simulate_counts_an_end_token_inside_the_draft() -> None:
    result = simulate([[True, True]] * 4, gamma=4, budget=20)
    assert (result.tokens, result.target_calls) == (2, 1)
    assert result.by_position == ((1, 1), (1, 1), (0, 0), (0, 0))


def test_simulate_never_overshoots_the_budget() -> None:
    result = simulate([[True] * 5] * 4, gamma=4, budget=5)
    assert (result.tokens, result.target_calls, result.drafted) == (5, 1, 4)
    result = simulate([[True] * 6] * 4, gamma=4, budget=6)
    assert (result.tokens, result.target_calls, result.drafted) == (6, 2, 4)


def test_evaluate_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one prompt"):
        evaluate(None, whole_map(), [], 4)


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    needed = {"corpus": "--out", "train": "--corpus", "evaluate": "--draft", "store": "--corpus"}
    for command, option in needed.items():
        with pytest.raises(SystemExit) as stop:
            build_parser().parse_args([command, "--help"])
        assert stop.value.code == 0
        assert option in capsys.readouterr().out


def test_a_store_holds_the_rows_without_their_common_beginning(tmp_path: Path) -> None:
    rows = np.array([[1, 2, 3, 4], [1, 2, 5, 6]], np.uint16)
    np.savez(tmp_path / "corpus.npz", ids=rows)
    out = tmp_path / "store.npz"
    assert main(["store", "--corpus", str(tmp_path / "corpus.npz"), "--out", str(out)]) == 0
    store = Datastore.load(out)
    assert store.longest([3], 1, 1) is not None
    assert store.longest([1, 2], 2, 1) is None
    assert store.longest([4, 5], 2, 2) is None
