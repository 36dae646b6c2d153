"""From a draft's logits to a guess, the same way for every draft that computes any."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.records import Settings
from specviz.sampling import Chance, Filters, Guess, argmax, logits_of


class IdMap:
    """Ids of a draft over a reduced vocabulary to the target's and back. Ids the draft does not
    know are shown to it as its ``unknown`` id."""

    def __init__(self, to_target: Sequence[int], unknown: int, vocabulary: int) -> None:
        self.to_target = list(to_target)
        self.tensor = torch.tensor(self.to_target)
        self.to_draft = [unknown] * vocabulary
        for draft_id, target_id in enumerate(self.to_target):
            self.to_draft[target_id] = draft_id


class Guesser:
    """Chooses the tokens of one run's draft: the likeliest when greedy, else drawn from the
    draft's filtered law. ``eos_ids`` are the target's."""

    def __init__(
        self,
        source: str,
        settings: Settings,
        prompt_length: int,
        eos_ids: Sequence[int],
        device: torch.device,
        chance: Chance,
        id_map: IdMap | None = None,
    ) -> None:
        self._source = source
        self._map = id_map
        self._tensor = id_map.tensor.to(device) if id_map else None
        if id_map is not None:
            known = set(id_map.to_target)
            eos_ids = [id_map.to_draft[eos] for eos in eos_ids if eos in known]
        self._filters = Filters(settings, prompt_length, list(eos_ids), device)
        self._chance = chance

    def own(self, token: int) -> int:
        """The draft's id of a target's token."""
        return self._map.to_draft[token] if self._map else token

    def guess(self, logits: Tensor, text: Sequence[int]) -> Guess:
        """One token from a row of logits [1, Vd] behind ``text``, the target's ids. Raises
        BadLogits."""
        with logits_of(f"the {self._source}"):
            return self._chosen(logits, text)

    def _chosen(self, logits: Tensor, text: Sequence[int]) -> Guess:
        if self._filters.pass_greedy_through:
            return self._of(argmax(logits)[0], logits[0])
        prefix = [self.own(token) for token in text] if self._filters.reads_prefix else ()
        scores = self._filters.last(logits, prefix)
        if self._filters.greedy:
            return self._of(argmax(scores[None])[0], scores)
        law = scores.softmax(-1)
        own = self._chance.choose(law)
        return self._of(own, scores, law, law[own].item())

    def _of(self, own: int, logits: Tensor, law: Tensor | None = None, q: float = 1.0) -> Guess:
        token = self._map.to_target[own] if self._map else own
        return Guess(token, self._source, law, q, ids=self._tensor, logits=logits)
