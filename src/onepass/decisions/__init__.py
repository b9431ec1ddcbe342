"""Decisions: contextual bandits on the posteriors of perceptrons and networks.

A `ContextualBandit` chooses arms and learns from their rewards; `Thompson`, `UCB`, `Greedy` and `EpsilonGreedy` are its
policies. `open_bandit` keeps one in an event store, where
nothing that was accepted is lost.
"""

from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.choice import Choice
from onepass.decisions.journal import open_bandit
from onepass.decisions.ledger import UnknownDecision
from onepass.decisions.log import DecisionLog, LoggedDecision
from onepass.decisions.policies import UCB, ArmScores, EpsilonGreedy, Greedy, Policy, Thompson

__all__ = [
    "UCB",
    "ArmScores",
    "Choice",
    "ContextualBandit",
    "DecisionLog",
    "EpsilonGreedy",
    "Greedy",
    "LoggedDecision",
    "Policy",
    "Thompson",
    "UnknownDecision",
    "open_bandit",
]
