"""Likelihoods: the probability of a target given the outputs of a model.

`base` defines what a likelihood is, and has the registry of names; `gaussian`, `labels` and `counts` have the built-in
ones. Perceptrons, networks, committees and fleets take the same ones, by name or as objects.
"""

from typing import Any

from onepass._validation import one_of
from onepass.activations import Activation, PaperSigmoid
from onepass.likelihoods.base import Likelihood, MomentMatch, encode_likelihood, likelihood_names, named, register
from onepass.likelihoods.counts import Counts, NegativeBinomial, Poisson
from onepass.likelihoods.gaussian import Gaussian, Heteroscedastic
from onepass.likelihoods.labels import Bernoulli, Categorical

__all__ = [
    "Bernoulli",
    "Categorical",
    "Counts",
    "Gaussian",
    "Heteroscedastic",
    "Likelihood",
    "MomentMatch",
    "NegativeBinomial",
    "Poisson",
    "as_likelihood",
    "encode_likelihood",
    "likelihood_names",
    "named",
    "register",
]


def as_likelihood(observation: Any, activation: Activation | None = None) -> Likelihood:
    """Check and resolve a user's choice, a name or an object.

    ``"auto"`` is the first likelihood without noise that has an exact update around the activation, if there is one
    and an ``activation`` is given; else Gaussian.
    """
    if isinstance(observation, Likelihood):
        return observation
    one_of(observation, ("auto", *likelihood_names()), "observation")
    return named(observation)() if observation != "auto" else _default(activation)


def _default(activation: Activation | None) -> Likelihood:
    if isinstance(activation, PaperSigmoid):
        return Bernoulli()
    plain = (Bernoulli(), Poisson())
    return next((own for own in plain if activation and own.exact(activation) is not None), Gaussian())
