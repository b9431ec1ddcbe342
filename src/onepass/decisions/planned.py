"""Changes that are planned and not applied yet, as whatever is planned next has to know them."""

from typing import Any

from onepass.decisions.changes import Change
from onepass.decisions.choice import Pending

__all__ = ["NOTHING_PLANNED", "Planned"]


class Planned:
    """Decisions and rewards that a bandit will have made once they are stored.

    Attributes
    ----------
    decisions : those that will wait for a reward, by id
    rewards : by the id of the decision and the name of the arm
    n_decisions : how many decisions there are
    """

    def __init__(self) -> None:
        self.decisions: dict[str, Pending] = {}
        self.rewards: dict[tuple[str, Any], float] = {}
        self.n_decisions = 0

    def add(self, change: Change) -> None:
        """Take note of a change."""
        if change.kind == "decision":
            self.n_decisions += 1
            self.decisions[change.key] = Pending.of(change)
        elif change.kind == "reward":
            self.rewards |= {(key, arm): value for key, arm, value in change.data["rewards"]}


NOTHING_PLANNED = Planned()
