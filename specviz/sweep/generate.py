"""Calling transformers' generate() on a pair: plain, assisted by the draft, by prompt lookup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from typing import Any

import torch
from transformers import LlamaForCausalLM

from specviz.chat import encode
from specviz.drafters.draft_model import IdMap
from specviz.rows import Setup
from specviz.sweep.comparison import ASSISTED, LOOKUP, PLAIN, Generated
from specviz.sweep.plan import Plan, PlanError, Rival, pair_of
from specviz.timing import DeviceClock


def rivals(setups: Sequence[Setup], pairs: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """The (method, draft, gamma) to run beside ``setups``: plain once, and at each gamma the
    lookup and every draft that generate() can use. Raises PlanError for setups that generate()
    could not run alike."""
    if not all(_comparable(setup) for setup in setups):
        raise PlanError(
            "against transformers only temperature 0, confidence 0 and a constant gamma are"
            " compared: with others the two do not run the same thing"
        )
    drafts = [draft for draft, pair in pairs.items() if _can_assist(pair)]
    found: list[tuple[str, str, int]] = [(PLAIN, "", 0)]
    for gamma in sorted({setup.gamma for setup in setups}):
        found += [(ASSISTED, draft, gamma) for draft in drafts]
        found.append((LOOKUP, "", gamma))
    return tuple(found)


def _comparable(setup: Setup) -> bool:
    return not setup.temperature and not setup.confidence and setup.schedule == "constant"


def _can_assist(pair: Any) -> bool:
    """A draft over a part of the vocabulary must be a Llama, the kind that is widened here."""
    if pair.draft is None:
        return False
    return pair.draft_ids is None or isinstance(pair.draft.module, LlamaForCausalLM)


class WholeVocabulary(LlamaForCausalLM):
    """A draft over a part of the vocabulary as generate() needs it: target ids in, logits over
    all of them out. The head stays small, so assisted generation pays no more for it than we do.

    ``to_draft`` [V] holds the draft's id of each of the target's, ``to_target`` [Vd] the reverse.
    """

    to_draft: torch.Tensor
    to_target: torch.Tensor

    @classmethod
    def of(cls, pair: Any) -> WholeVocabulary:
        """The pair's draft, widened to the target's ids. The draft itself stays as it is."""
        narrow, vocabulary = pair.draft.module, pair.target.vocabulary
        wide: Any = cls(deepcopy(narrow.config))
        wide = wide.to(device=pair.draft.device, dtype=next(narrow.parameters()).dtype)
        wide.load_state_dict(narrow.state_dict())
        id_map = IdMap(pair.draft_ids, pair.draft_unknown, vocabulary)
        wide.to_draft = torch.tensor(id_map.to_draft, device=pair.draft.device)
        wide.to_target = id_map.tensor.to(pair.draft.device)
        wide.config.vocab_size = vocabulary
        whole: WholeVocabulary = wide.eval()
        return whole

    def forward(self, input_ids: Any = None, **arguments: Any) -> Any:
        """Logits [B, S, V] over the target's ids; minus infinity where the draft has none."""
        output = super().forward(input_ids=self.to_draft[input_ids], **arguments)
        shape = (*output.logits.shape[:-1], self.config.vocab_size)
        whole = output.logits.new_full(shape, float("-inf"))
        whole[..., self.to_target] = output.logits
        output.logits = whole
        return output


def assistant(pair: Any, gamma: int) -> Any:
    """The pair's draft as an assistant that drafts ``gamma`` tokens in every round."""
    module = copy(pair.draft.module) if pair.draft_ids is None else WholeVocabulary.of(pair)
    module.generation_config = settings = deepcopy(module.generation_config)
    settings.num_assistant_tokens = gamma
    settings.num_assistant_tokens_schedule = "constant"
    settings.assistant_confidence_threshold = 0.0
    settings.eos_token_id = settings.pad_token_id = next(iter(pair.eos_ids), None)
    return module


class Generate:
    """Makes the calls of a plan's rivals. Keeps one assistant for each draft and gamma."""

    def __init__(self, pairs: Mapping[str, Any], plan: Plan) -> None:
        self._pairs, self._settings = pairs, plan.settings
        self._assistants: dict[tuple[str, int], Any] = {}

    @torch.inference_mode()
    def call(self, rival: Rival, tokens: int | None = None) -> Generated:
        """One timed call; ``tokens`` asks for fewer new ones than the plan. Raises what
        generate() raises."""
        pair = pair_of(self._pairs, rival.draft)
        ids = encode(pair, rival.prompt.text, self._settings.chat)
        inputs = torch.tensor([ids], device=pair.target.device)
        new = self._settings.max_new_tokens if tokens is None else tokens
        arguments = self._arguments(rival, pair)
        devices = pair.target.devices + (pair.draft.devices if pair.draft else ())
        clock = DeviceClock(*devices)
        begin = clock.now()
        output = pair.target.module.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=new,
            do_sample=False,
            eos_token_id=list(pair.eos_ids) or None,
            pad_token_id=next(iter(pair.eos_ids), None),
            **arguments,
        )
        seconds = float(f"{clock.now() - begin:.6g}")
        return Generated(
            rival.method,
            rival.draft,
            rival.gamma,
            rival.prompt.id,
            rival.repeat,
            seconds,
            tuple(output[0, len(ids) :].tolist()),
        )

    def _arguments(self, rival: Rival, pair: Any) -> dict[str, Any]:
        if rival.method == LOOKUP:
            return {"prompt_lookup_num_tokens": rival.gamma}
        if rival.method != ASSISTED:
            return {}
        key = rival.draft, rival.gamma
        if key not in self._assistants:
            self._assistants[key] = assistant(pair, rival.gamma)
        return {"assistant_model": self._assistants[key]}
