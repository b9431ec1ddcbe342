"""The log of decisions: what was chosen, how probable that was, and what came of it."""

from typing import Any, NamedTuple

from onepass._typing import FloatArray

__all__ = ["DecisionLog", "LoggedDecision"]


class LoggedDecision(NamedTuple):
    """A decision and its reward."""

    id: str
    time: float  # of the decision, in seconds since 1970
    context: FloatArray  # (d,)
    arm: Any
    action: int  # the arm's number
    position: int  # 0 for the arm that came first
    propensity: float | None  # with which it came first; None at later positions
    reward: float


class DecisionLog:
    """Decisions in memory, in the order in which they were rewarded."""

    def __init__(self) -> None:
        self.decisions: list[LoggedDecision] = []

    def append(self, decision: LoggedDecision) -> None:
        """Write down one more."""
        self.decisions.append(decision)
