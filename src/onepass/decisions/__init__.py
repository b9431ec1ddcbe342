"""Decisions: contextual bandits whose rewards are learned by perceptrons or networks.

A `ContextualBandit` chooses arms and learns from their rewards; `Thompson`, `UCB`, `Greedy` and `EpsilonGreedy` are its
policies. `open_bandit` keeps one in an event store, where no accepted decision or reward is lost. A `DecisionLog`
records decisions and rewards, and `evaluate` estimates from it what another policy would have earned.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onepass._extras import require
from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.choice import Choice, LoggedDecision
from onepass.decisions.history import UnknownDecision
from onepass.decisions.policies import UCB, ArmScores, EpsilonGreedy, Greedy, Policy, Thompson
from onepass.decisions.stored import open_bandit

if TYPE_CHECKING:
    from onepass.decisions.log import DecisionLog
    from onepass.decisions.off_policy import Estimate, Evaluation, evaluate

__all__ = [
    "UCB",
    "ArmScores",
    "Choice",
    "ContextualBandit",
    "DecisionLog",
    "EpsilonGreedy",
    "Estimate",
    "Evaluation",
    "Greedy",
    "LoggedDecision",
    "Policy",
    "Thompson",
    "UnknownDecision",
    "evaluate",
    "open_bandit",
]

# They need PyArrow, for which a single decision should not wait.
_LATER = {
    "DecisionLog": "onepass.decisions.log",
    "Estimate": "onepass.decisions.off_policy",
    "Evaluation": "onepass.decisions.off_policy",
    "evaluate": "onepass.decisions.off_policy",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("cli", f"onepass.decisions.{name}", "pyarrow")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
