"""Likelihoods: the probability of a target given the pre-activation.

`base` defines what a likelihood of a perceptron is; `bernoulli`, `gaussian` and `poisson` are the built-in ones;
`outputs` has the likelihoods of networks.
"""

from typing import Any

import numpy as np

from onepass._validation import as_count, as_nonnegative, one_of
from onepass.activations import Activation, PaperSigmoid
from onepass.engine.step import NOISE_START, NOISE_START_WEIGHT, LearningState
from onepass.likelihoods.base import Likelihood, MomentMatch
from onepass.likelihoods.bernoulli import Bernoulli
from onepass.likelihoods.gaussian import Gaussian
from onepass.likelihoods.poisson import Poisson

__all__ = ["Bernoulli", "Gaussian", "Likelihood", "MomentMatch", "Poisson", "as_likelihood"]

# Likelihoods without parameters, by their names in arguments and files; "auto" takes the first that is exact.
_PLAIN: dict[str, Likelihood] = {kind.name: kind() for kind in (Bernoulli, Poisson)}
_NOISE = 0.01


def as_likelihood(
    observation: Any, noise: Any, noise_window: int | None, activation: Activation
) -> tuple[Likelihood, LearningState]:
    """Check and resolve a user's choice: the likelihood, and the state of learning to start with."""
    if noise_window is not None and noise != "learn":
        raise ValueError(f"noise_window is for noise='learn', got noise={noise!r}")
    if isinstance(observation, Likelihood):
        likelihood = observation
    else:
        one_of(observation, ("auto", Gaussian.name, *_PLAIN), "observation")
        if observation == "auto":
            observation = _default_name(activation) if noise is None else Gaussian.name
        if observation == Gaussian.name:
            return _as_gaussian(noise, noise_window)
        likelihood = _PLAIN[observation]
    if noise is not None:
        raise ValueError(f"noise is for observation='gaussian', got noise={noise!r} with observation={observation!r}")
    likelihood.check_activation(activation)
    return likelihood, LearningState()


def _as_gaussian(noise: Any, noise_window: int | None) -> tuple[Likelihood, LearningState]:
    if noise == "learn":
        window = np.inf if noise_window is None else float(as_count(noise_window, "noise_window"))
        return Gaussian(NOISE_START), LearningState(NOISE_START, min(NOISE_START_WEIGHT, window), window)
    if isinstance(noise, str):
        raise ValueError(f"noise must be a number that is not negative, or 'learn', got {noise!r}")
    fixed = _NOISE if noise is None else as_nonnegative(noise, "noise")
    return Gaussian(fixed), LearningState(fixed)


def _default_name(activation: Activation) -> str:
    if isinstance(activation, PaperSigmoid):
        return Bernoulli.name
    return next((name for name, kind in _PLAIN.items() if kind.exact(activation) is not None), Gaussian.name)
