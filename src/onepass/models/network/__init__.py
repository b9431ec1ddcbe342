"""Networks of Bayesian perceptrons, learned by one joint step per row."""

from onepass.models.network.network import BayesianNetwork

__all__ = ["BayesianNetwork"]
