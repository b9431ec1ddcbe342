"""Decisions: contextual bandits on the posteriors of perceptrons and networks.

A `ContextualBandit` chooses arms and learns from their rewards; `Thompson`, `UCB`, `Greedy` and `EpsilonGreedy` are its
policies. `open_bandit` keeps one in an event store, where nothing that was accepted is lost. A `DecisionLog` keeps what
was decided, and `evaluate` tells from it what another policy would have earned.
"""

from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.choice import Choice
from onepass.decisions.journal import open_bandit
from onepass.decisions.ledger import UnknownDecision
from onepass.decisions.log import DecisionLog, LoggedDecision
from onepass.decisions.off_policy import Estimate, Evaluation, evaluate
from onepass.decisions.policies import UCB, ArmScores, EpsilonGreedy, Greedy, Policy, Thompson

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
