"""Training a student on its target's distributions.

The target reads the whole corpus once and its last normalised hidden states are kept on disk
(two bytes a number); its probabilities over the student's ids are then one small matrix product
away, so every pass over the corpus costs only the student.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from specviz.distill.student import IdMap

REPORT_EVERY = 20  # steps


@dataclass(frozen=True)
class TrainSettings:
    """What a training run does. Two runs with equal settings and data give equal weights.

    rows: corpus rows in a step. passes: passes over the corpus. learning_rate: AdamW's peak, for
    the layers; embeddings take `embedding_rate` of it. warmup: part of the steps. hard: weight
    in [0, 1) of the target's likeliest token against its whole distribution. user: weight of
    positions outside answers. held_out: rows at the end of the corpus never trained on.
    depth: guesses in a row that a feature draft is trained on.
    evaluate_every: steps between evaluations; patience: evaluations without a new best before
    training stops.
    """

    rows: int = 8
    passes: float = 8.0
    learning_rate: float = 1e-3
    embedding_rate: float = 0.3
    warmup: float = 0.04
    weight_decay: float = 0.05
    hard: float = 0.3
    user: float = 0.0
    seed: int = 0
    held_out: int = 64
    depth: int = 3
    evaluate_every: int = 200
    patience: int = 8


@dataclass(frozen=True)
class Data:
    """ids [N, T] int64 target ids; weights [N, T] loss weight of predicting the id after each
    position; states [N, T, H] the target's hidden states, bfloat16 bits in an int16 array."""

    ids: Tensor
    weights: Tensor
    states: np.ndarray


def answer_positions(ids: np.ndarray, header: Sequence[int], end: int) -> np.ndarray:
    """Where the model is to write: bool [N, T], true at t if id t + 1 belongs to an answer.

    An answer starts behind `header` (the assistant's header in the chat template) and runs to
    `end`, inclusive. Without a header everything counts.
    """
    if not header:
        return np.ones(ids.shape, dtype=bool)
    marked = np.zeros(ids.shape, dtype=bool)
    width = len(header)
    windows = np.lib.stride_tricks.sliding_window_view(ids, width, axis=1)
    starts = np.zeros(ids.shape, dtype=bool)
    starts[:, width - 1 :] = (windows == np.asarray(header)).all(axis=2)
    writing = np.zeros(len(ids), dtype=bool)
    for t in range(ids.shape[1]):
        writing = (writing & (ids[:, t] != end)) | starts[:, t]
        marked[:, t] = writing
    return marked


@torch.inference_mode()
def target_states(target: Any, ids: Tensor, path: Path, rows: int = 16) -> np.ndarray:
    """The target's last normalised hidden states over `ids` [N, T], kept in the .npy file `path`.

    Continues where an interrupted pass stopped. Returns a read-only memory map [N, T, H] of
    bfloat16 bits. Raises ValueError when `path` holds the states of a corpus of another size.
    """
    mark = path.with_suffix(".progress")
    shape = (*ids.shape, target.config.hidden_size)
    if path.exists() and np.load(path, mmap_mode="r").shape != shape:
        raise ValueError(f"{path} belongs to another corpus; use another work folder")
    if path.exists() and not mark.exists():
        return np.load(path, mmap_mode="r")
    done = int(mark.read_text()) if path.exists() else 0
    mark.write_text(str(done))
    mode: Any = "r+" if done else "w+"
    states = np.lib.format.open_memmap(path, mode, dtype=np.int16, shape=shape)
    started, first = time.perf_counter(), done
    while done < len(ids):
        batch = ids[done : done + rows].to(target.device)
        hidden = target.model(input_ids=batch, use_cache=False).last_hidden_state
        states[done : done + rows] = hidden.to("cpu", torch.bfloat16).view(torch.int16).numpy()
        done = min(done + rows, len(ids))
        states.flush()
        mark.write_text(str(done))
        left = (time.perf_counter() - started) / (done - first) * (len(ids) - done)
        report(f"target states: {done}/{len(ids)} rows", left)
    mark.unlink()
    return np.load(path, mmap_mode="r")


def report(line: str, seconds_left: float | None = None) -> None:
    """One line of progress on stderr."""
    left = "" if seconds_left is None else f", {seconds_left / 60:.1f} min left"
    print(line + left, file=sys.stderr, flush=True)


class SoftCrossEntropy(torch.autograd.Function):
    """sum over rows of share * cross-entropy(wanted, softmax(logits)).

    logits [P, V]; wanted [P, V] float32, each row a distribution; share [P]. The gradient is
    share * (softmax - wanted), made at once and in place: on a CPU the passes over [P, V]
    that autograd would make on the way cost more than all matrix products of the student.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, wanted: Tensor, share: Tensor) -> Tensor:
        log_q = logits.float().log_softmax(dim=-1)
        loss = -((wanted * log_q).sum(dim=-1) * share).sum()
        gradient = log_q.exp_().sub_(wanted).mul_(share[:, None])
        ctx.save_for_backward(gradient.to(logits.dtype))
        return loss

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * scale.to(gradient.dtype), None, None


class Trainer:
    """Trains `student` in place; `state()` and `restore()` make it resumable at any step.

    head: [V, H] the target's output rows for the ids of `id_map`, frozen: it turns the stored
    hidden states into the target's logits.
    """

    def __init__(
        self, student: Any, head: Tensor, id_map: IdMap, data: Data, settings: TrainSettings
    ) -> None:
        self.settings = settings
        self.student = student
        self.device = student.device
        self.head = head.to(self.device, torch.bfloat16)
        self.data = data
        self.draft_ids = id_map.to_draft(data.ids)
        self.trained_rows = len(data.ids) - settings.held_out
        if self.trained_rows < settings.rows:
            raise ValueError(f"{self.trained_rows} rows to train on, {settings.rows} in a step")
        self.steps_per_pass = self.trained_rows // settings.rows
        self.total_steps = max(1, round(self.steps_per_pass * settings.passes))
        self.step = 0
        self.tokens = 0
        self.optimizers = _optimizers(student, settings)

    def _groups(self) -> Iterator[dict[str, Any]]:
        for optimizer in self.optimizers:
            yield from optimizer.param_groups

    def rate(self, step: int) -> float:
        """Part of the peak learning rate: linear warm-up, then a cosine to zero."""
        warmup = max(1, round(self.settings.warmup * self.total_steps))
        if step < warmup:
            return (step + 1) / warmup
        done = (step - warmup) / max(1, self.total_steps - warmup)
        return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))

    def batch_rows(self, step: int) -> np.ndarray:
        """The rows of a step: a function of the seed and the step alone, hence resumable."""
        turn, place = divmod(step, self.steps_per_pass)
        order = np.random.default_rng((self.settings.seed, turn)).permutation(self.trained_rows)
        rows = self.settings.rows
        return np.sort(order[place * rows : (place + 1) * rows])

    def train_step(self) -> float:
        """One update. Returns the loss: cross-entropy in nats over a weighted position."""
        rate = self.rate(self.step)
        for group in self._groups():
            group["lr"] = group["peak"] * rate
        loss = self.loss(self.batch_rows(self.step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.tokens += self.settings.rows * self.data.ids.shape[1]
        return loss.item()

    def loss(self, rows: np.ndarray) -> Tensor:
        """Cross-entropy against the target's distribution over the student's ids.

        Part `hard` of each position's target distribution is moved onto its likeliest token: at
        temperature 0 that token alone is accepted.
        """
        weights = self.data.weights[rows].to(self.device)
        used = weights > 0
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            ids = self.draft_ids[rows].to(self.device)
            hidden = self.student.model(input_ids=ids, use_cache=False).last_hidden_state
            logits = functional.linear(hidden[used], self.student.get_output_embeddings().weight)
        share = weights[used] / weights[used].sum()
        return SoftCrossEntropy.apply(logits, self.target_distribution(rows, used), share)

    @torch.no_grad()
    def target_distribution(self, rows: np.ndarray, used: Tensor) -> Tensor:
        """[positions where `used`, V] float32: what the student is to say there."""
        states = torch.from_numpy(self.data.states[rows]).view(torch.bfloat16).to(self.device)
        wanted = functional.linear(states[used], self.head).float().softmax(dim=-1)
        if hard := self.settings.hard:
            best = wanted.argmax(dim=-1, keepdim=True)
            moved = torch.full_like(best, hard, dtype=wanted.dtype)
            wanted.mul_(1 - hard).scatter_add_(1, best, moved)
        return wanted

    @torch.no_grad()
    def held_out_overlap(self, rows: int = 16) -> float:
        """Mean over answer positions of held-out rows of sum(min(p, q)): the acceptance rate at
        temperature 1, with p restricted to the student's ids."""
        last = np.arange(len(self.data.ids))[-self.settings.held_out :][:rows]
        used = self.data.weights[last].to(self.device) >= 1
        ids = self.draft_ids[last].to(self.device)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            logits = self.student(input_ids=ids, use_cache=False).logits[used]
        states = torch.from_numpy(self.data.states[last]).view(torch.bfloat16).to(self.device)
        p = functional.linear(states[used], self.head).float().softmax(dim=-1)
        return torch.minimum(p, logits.float().softmax(dim=-1)).sum(dim=-1).mean().item()

    def state(self) -> dict[str, Any]:
        return {
            "settings": asdict(self.settings),
            "step": self.step,
            "tokens": self.tokens,
            "student": self.student.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
        }

    def restore(self, state: dict[str, Any]) -> None:
        if state["settings"] != asdict(self.settings):
            raise ValueError(f"the checkpoint was made with other settings: {state['settings']}")
        self.student.load_state_dict(state["student"])
        for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
        self.step, self.tokens = state["step"], state["tokens"]


def _optimizers(student: Any, settings: TrainSettings) -> list[torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for norms, biases and embeddings.

    Muon's updates are scaled to the size AdamW's have, so that one learning rate serves both.
    """
    matrices: list[Tensor] = []
    vectors: list[Tensor] = []
    embeddings: list[Tensor] = []
    for name, parameter in student.named_parameters():
        if "embed_tokens" in name or "lm_head" in name:
            embeddings.append(parameter)
        else:
            (matrices if parameter.ndim > 1 else vectors).append(parameter)
    peak = settings.learning_rate
    muon = torch.optim.Muon(
        [{"params": matrices, "peak": peak}],
        lr=0.0,
        weight_decay=settings.weight_decay,
        adjust_lr_fn="match_rms_adamw",
    )
    adamw = torch.optim.AdamW(
        [
            {"params": vectors, "peak": peak},
            {"params": embeddings, "peak": peak * settings.embedding_rate},
        ],
        lr=0.0,
        betas=(0.9, 0.98),
        weight_decay=0.0,
        fused=True,
    )
    return [muon, adamw]


def save_checkpoint(trainer: Trainer, progress: dict[str, Any], path: Path) -> None:
    """Atomically: an interrupted save leaves the previous checkpoint."""
    part = path.with_suffix(".part")
    torch.save({"trainer": trainer.state(), "progress": progress}, part)
    os.replace(part, path)


def train(
    trainer: Trainer,
    evaluate: Callable[[], float],
    keep_best: Callable[[], None],
    checkpoint: Path,
) -> dict[str, Any]:
    """Train to the end, or until `evaluate` (higher is better) has not risen for `patience`
    evaluations; continue from `checkpoint` if it exists. `keep_best` is called at each new best.

    Returns seconds of training, tokens seen, steps, and the best score with its step.
    """
    settings = trainer.settings
    progress: dict[str, Any] = {"seconds": 0.0, "best": -math.inf, "best_step": 0, "since_best": 0}
    if checkpoint.exists():
        kept = torch.load(checkpoint, map_location=trainer.device, weights_only=True)
        trainer.restore(kept["trainer"])
        progress = kept["progress"]
    started, before, first = time.perf_counter(), progress["seconds"], trainer.step
    losses: list[float] = []
    while trainer.step < trainer.total_steps and progress["since_best"] < settings.patience:
        losses.append(trainer.train_step())
        seconds = time.perf_counter() - started
        if trainer.step % REPORT_EVERY == 0:
            left = seconds / (trainer.step - first) * (trainer.total_steps - trainer.step)
            mean = sum(losses) / len(losses)
            report(f"step {trainer.step}/{trainer.total_steps}: loss {mean:.3f}", left)
            losses.clear()
        if trainer.step % settings.evaluate_every == 0 or trainer.step == trainer.total_steps:
            progress = _judge(trainer, progress, evaluate(), keep_best)
            progress["seconds"] = before + time.perf_counter() - started
            save_checkpoint(trainer, progress, checkpoint)
    return progress | {"tokens": trainer.tokens, "steps": trainer.step}


def _judge(
    trainer: Trainer, progress: dict[str, Any], score: float, keep_best: Callable[[], None]
) -> dict[str, Any]:
    """Progress after an evaluation."""
    if score <= progress["best"]:
        report(f"step {trainer.step}: score {score:.3f}")
        return progress | {"since_best": progress["since_best"] + 1}
    report(f"step {trainer.step}: score {score:.3f} (best so far)")
    keep_best()
    return progress | {"best": score, "best_step": trainer.step, "since_best": 0}
