"""How many tokens to draft next. The state belongs to one run."""

from __future__ import annotations

from specviz.records import Settings

MOST = 16
"""A longer draft is all but never right to its end."""


class Constant:
    """The same length in every round."""

    def __init__(self, gamma: int) -> None:
        self.gamma = gamma

    @property
    def most(self) -> int:
        """The longest draft that may come."""
        return self.gamma

    def learn(self, drafted: int, accepted: int) -> None:
        """Nothing changes the length."""


class Adaptive(Constant):
    """Two tokens more after a draft that was right to its end, one fewer after a rejection.

    It follows the acceptance of the last rounds and nothing else, no clock in particular, so that
    the same seed gives the same run on every machine. transformers' "heuristic" schedule of
    assistant tokens moves by the same steps.
    """

    @property
    def most(self) -> int:
        """See ``Constant.most``."""
        return max(MOST, self.gamma)

    def learn(self, drafted: int, accepted: int) -> None:
        """Take in how a round went. One that drafted nothing says nothing."""
        if drafted and accepted == drafted:
            self.gamma = min(self.most, self.gamma + 2)
        elif drafted:
            self.gamma = max(1, self.gamma - 1)


def of(settings: Settings) -> Constant:
    """A fresh schedule for one run, starting at ``settings.gamma``."""
    kinds = {"constant": Constant, "adaptive": Adaptive}
    return kinds[settings.schedule](settings.gamma)
