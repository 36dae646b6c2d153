"""Train a draft for a target from nothing but the target.

    python -m specviz.distill corpus   --target FOLDER --out corpus.npz
    python -m specviz.distill train    --target FOLDER --corpus corpus.npz --out assets/drafts/NAME
    python -m specviz.distill evaluate --target FOLDER --draft assets/drafts/NAME
    python -m specviz.distill store    --corpus corpus.npz --out store.npz

`corpus` has the target write conversations; `train` cuts a student out of the target and trains
it on the target's distributions over that text; `evaluate` counts accepted tokens in greedy
speculative runs on prompts that no corpus holds; `store` packs the text for retrieval drafting,
without what all rows begin with. The target is a folder (or Hub id) of any
Llama-like causal model with a chat template. A GPU is used when there is one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from specviz.datastore import END
from specviz.distill.corpus import ANSWER_TEMPERATURES, read_template, write_corpus
from specviz.distill.evaluation import (
    Acceptance,
    GreedyText,
    cached_greedy_texts,
    evaluate,
    greedy_texts,
)
from specviz.distill.feature import (
    FeatureTrainer,
    cut_feature_student,
    evaluate_feature,
    load_feature_student,
    text_states,
)
from specviz.distill.prompts import REPORT, SELECTION
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
    report,
    target_states,
    train,
)
from specviz.feature import CONFIG

TRAIN_OPTIONS = {
    "rows": "corpus rows in a step",
    "passes": "passes over the corpus",
    "learning_rate": "peak for the layers",
    "embedding_rate": "part of it for embeddings and head",
    "hard": "weight of the target's likeliest token against its distribution",
    "user": "loss weight of the user's turns",
    "seed": "of the data order",
    "depth": "guesses in a row a feature draft is trained on",
    "evaluate_every": "steps",
    "patience": "evaluations without a new best before it stops",
}


def load_target(folder: str) -> tuple[Any, Any]:
    """The target in bfloat16 on the GPU when there is one, and its tokenizer."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    target = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    return target.eval().to(device), AutoTokenizer.from_pretrained(folder)


def corpus_command(args: argparse.Namespace) -> None:
    """Write the corpus batch by batch; what `--out` already holds is kept and continued."""
    target, tokenizer = load_target(args.target)
    out = Path(args.out)
    parts = [np.load(out)["ids"]] if out.exists() else []
    done = first = len(parts[0]) if parts else 0
    started = time.perf_counter()
    heats = [float(heat) for heat in args.temperatures.split(",")]
    for part in write_corpus(
        target, tokenizer, args.rows, args.length, args.seed, args.batch, heats, done
    ):
        parts.append(part)
        done += len(part)
        unfinished = out.with_suffix(".part.npz")
        np.savez_compressed(unfinished, ids=np.concatenate(parts))
        unfinished.replace(out)
        left = (time.perf_counter() - started) / (done - first) * (args.rows - done)
        report(f"corpus: {done}/{args.rows} rows", left)


def loss_weights(ids: np.ndarray, header: Sequence[int], end: int, user: float) -> np.ndarray:
    """[N, T] float32: 1 where the next id belongs to an answer, `user` elsewhere, 0 in what all
    rows begin with (the system prompt). The last id counts: the target's distribution after it is
    known, and what really followed is not needed."""
    weights = np.where(answer_positions(ids, header, end), 1.0, user).astype(np.float32)
    common = int((ids == ids[0]).all(axis=0).cumprod().sum())
    weights[:, : max(0, common - 1)] = 0.0
    return weights


def read_data(args: argparse.Namespace, target: Any, tokenizer: Any) -> tuple[Data, np.ndarray]:
    """The corpus with its weights and the target's states, and the tokens of all answers."""
    raw = np.concatenate([np.load(path)["ids"] for path in args.corpus]).astype(np.int64)
    ids = torch.from_numpy(raw)
    template = read_template(tokenizer)
    header = (template.end, *template.to_answer)
    weights = loss_weights(raw, header, template.end, args.user)
    states = target_states(target, ids, Path(args.work) / "states.npy")
    return Data(ids, torch.from_numpy(weights), states), raw[:, 1:][weights[:, :-1] == 1.0]


def build_trainer(args: argparse.Namespace, target: Any, tokenizer: Any) -> tuple[Trainer, IdMap]:
    """Student, data and id map as the command line asks."""
    torch.manual_seed(args.seed)
    data, answers = read_data(args, target, tokenizer)
    special = [i for i in (tokenizer.bos_token_id, tokenizer.eos_token_id) if i is not None]
    sample = data.ids[:16].to(target.device)
    student: Any
    if args.feature and args.start:
        student = load_feature_student(target, Path(args.start))
        id_map = IdMap(student.ids, unknown=0)
    elif args.feature:
        id_map = choose_ids(answers, args.vocabulary, special)
        student = cut_feature_student(target, id_map.ids, args.intermediate, sample)
    elif args.start:
        student, id_map = load_draft(Path(args.start), torch.float32)
        student.train()
    else:
        id_map = choose_ids(answers, args.vocabulary, special)
        layers = [int(index) for index in args.layers.split(",")]
        if args.width:
            student = narrow_student(target, id_map, len(layers), args.width, args.intermediate)
        else:
            student = cut_student(target, id_map, layers, args.intermediate, sample)
    head = target.get_output_embeddings().weight[torch.tensor(id_map.ids)].detach().clone()
    settings = TrainSettings(
        **{name: getattr(args, name) for name in TRAIN_OPTIONS},
    )
    kind = FeatureTrainer if args.feature else Trainer
    return kind(student.to(target.device), head, id_map, data, settings), id_map


def train_command(args: argparse.Namespace) -> None:
    work = Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    target, tokenizer = load_target(args.target)
    texts = cached_greedy_texts(target, tokenizer, SELECTION, 96, work / "selection.json")
    trainer, id_map = build_trainer(args, target, tokenizer)
    known = [text_states(target, text) for text in texts] if args.feature else []
    del target  # half a gigabyte that training has no use for

    def score() -> float:
        trainer.student.eval()
        if args.feature:
            total, _ = evaluate_feature(trainer.student, trainer.head, known, texts, args.gamma)
        else:
            total, _ = evaluate(trainer.student, id_map, texts, args.gamma)
        trainer.student.train()
        return total.tokens_per_target_call

    def keep_best() -> None:
        if args.feature:
            size = trainer.student.save(Path(args.out))
        else:
            size = save_draft(trainer.student, id_map, Path(args.out))
        report(f"wrote {args.out}, {size / 1e6:.2f} MB of weights")

    progress = train(trainer, score, keep_best, work / "checkpoint.pt")
    overlap = trainer.held_out_overlap()
    print(json.dumps(progress | {"held_out_overlap": round(overlap, 3)}, sort_keys=True))


def store_command(args: argparse.Namespace) -> None:
    """Write the corpus as one array of ids, texts separated, that ``Datastore.load`` reads."""
    rows = np.concatenate([np.load(path)["ids"] for path in args.corpus])
    if rows.max() >= END:
        raise SystemExit(f"a store holds ids below {END} only; this corpus has {rows.max()}")
    common = int((rows == rows[0]).all(axis=0).cumprod().sum())
    texts = np.full((rows.shape[0], rows.shape[1] - common + 1), END, np.uint16)
    texts[:, :-1] = rows[:, common:]
    np.savez_compressed(args.out, tokens=texts.ravel())
    report(f"wrote {args.out}, {texts.size} tokens, {Path(args.out).stat().st_size / 1e6:.2f} MB")


Judge = Callable[[Sequence[GreedyText], int], tuple[Acceptance, list[Acceptance]]]


def judge_of(target: Any, folder: Path, texts: Sequence[GreedyText]) -> Judge:
    """What plays greedy rounds with the draft in ``folder``, of either kind."""
    if (folder / CONFIG).is_file():
        student = load_feature_student(target, folder).eval()
        head = target.get_output_embeddings().weight[torch.tensor(student.ids)]
        states = [text_states(target, text) for text in texts]
        return lambda texts, gamma: evaluate_feature(student, head, states, texts, gamma)
    draft, id_map = load_draft(folder, torch.bfloat16)
    draft = draft.to(target.device)
    return lambda texts, gamma: evaluate(draft, id_map, texts, gamma)


def evaluation(judge: Judge, texts: Sequence[GreedyText], gammas: Sequence[int]) -> dict[str, Any]:
    """What `evaluate` prints: the sum and every prompt, for each gamma."""
    result: dict[str, Any] = {}
    for gamma in gammas:
        total, each = judge(texts, gamma)
        prompts = [
            {"kind": text.kind, "prompt": text.prompt[:60]} | acceptance.summary()
            for text, acceptance in zip(texts, each, strict=True)
        ]
        result[f"gamma {gamma}"] = {"total": total.summary(), "prompts": prompts}
    return result


def evaluate_command(args: argparse.Namespace) -> None:
    target, tokenizer = load_target(args.target)
    texts = greedy_texts(target, tokenizer, REPORT, args.max_new_tokens)
    gammas = [int(gamma) for gamma in args.gamma.split(",")]
    judge = judge_of(target, Path(args.draft), texts)
    print(json.dumps(evaluation(judge, texts, gammas), indent=1))


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m specviz.distill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    _add_corpus(commands)
    _add_train(commands)
    _add_evaluate(commands)
    _add_store(commands)
    return parser


def _command(commands: Any, name: str, run: Any, about: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=about,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--target", required=True, help="folder or Hub id of the target")
    return parser


def _add_corpus(commands: Any) -> None:
    parser = _command(commands, "corpus", corpus_command, "have the target write conversations")
    parser.add_argument("--out", required=True, help="npz file to write (array ids)")
    parser.add_argument("--rows", type=int, default=3072, help="conversations")
    parser.add_argument("--length", type=int, default=376, help="tokens in each")
    parser.add_argument("--batch", type=int, default=96, help="written side by side")
    parser.add_argument("--seed", type=int, default=0, help="another seed, another corpus")
    heats = ",".join(str(heat) for heat in ANSWER_TEMPERATURES)
    parser.add_argument("--temperatures", default=heats, help="of the answers, in equal parts")


def _add_train(commands: Any) -> None:
    parser = _command(commands, "train", train_command, "train a draft; rerun to resume")
    parser.add_argument(
        "--corpus", required=True, nargs="+", help="npz files made by corpus, rows of one length"
    )
    parser.add_argument("--out", required=True, help="folder the best draft is kept in")
    parser.add_argument("--work", default="distill-work", help="folder for checkpoint and states")
    parser.add_argument("--start", help="folder of a draft to go on from, instead of cutting one")
    parser.add_argument(
        "--feature", action="store_true", help="a feature draft instead of a draft model"
    )
    parser.add_argument("--layers", default="0,1", help="target layers the student starts from")
    parser.add_argument(
        "--width",
        type=int,
        default=0,
        help="another width than the target's: the layers then start random, as many as --layers",
    )
    parser.add_argument("--intermediate", type=int, default=704, help="neurons kept in each MLP")
    parser.add_argument("--vocabulary", type=int, default=5632, help="ids the draft knows")
    settings = TrainSettings()
    for name, about in TRAIN_OPTIONS.items():
        default = getattr(settings, name)
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=type(default), default=default, help=about)
    parser.add_argument("--gamma", type=int, default=4, help="draft length evaluations use")


def _add_evaluate(commands: Any) -> None:
    parser = _command(commands, "evaluate", evaluate_command, "greedy runs on unseen prompts")
    parser.add_argument("--draft", required=True, help="folder of the draft")
    parser.add_argument("--gamma", default="2,4,6", help="draft lengths, comma-separated")
    parser.add_argument("--max-new-tokens", type=int, default=96, help="tokens a prompt")


def _add_store(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser("store", help="pack text for retrieval")
    parser.set_defaults(run=store_command)
    parser.add_argument("--corpus", required=True, nargs="+", help="npz files made by corpus")
    parser.add_argument("--out", required=True, help="npz file to write (array tokens)")


def main(argv: Sequence[str] | None = None) -> int:
    args = build_parser().parse_args(argv)
    args.run(args)
    return 0
