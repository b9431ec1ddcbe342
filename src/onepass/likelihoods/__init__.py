"""Likelihoods: the probability of a target given the pre-activation.

`base` defines what a likelihood of a perceptron is; `bernoulli`, `gaussian` and `counts` have the built-in ones;
`outputs` has the likelihoods of networks.
"""

from typing import Any

import numpy as np

from onepass._validation import as_count, as_nonnegative, one_of
from onepass.activations import Activation, PaperSigmoid
from onepass.engine.step import LearningState
from onepass.likelihoods.base import Likelihood, MomentMatch
from onepass.likelihoods.bernoulli import Bernoulli
from onepass.likelihoods.counts import Counts, NegativeBinomial, Poisson
from onepass.likelihoods.gaussian import Gaussian

__all__ = [
    "Bernoulli",
    "Counts",
    "Gaussian",
    "Likelihood",
    "MomentMatch",
    "NegativeBinomial",
    "Poisson",
    "as_likelihood",
]

# Likelihoods without parameters, by their names in arguments and files; "auto" takes the first that is exact.
_PLAIN: dict[str, Likelihood] = {kind.name: kind() for kind in (Bernoulli, Poisson)}
_NOISY: dict[str, Any] = {kind.name: kind for kind in (Gaussian, NegativeBinomial)}  # those with a noise
_NOISE = 0.01


def as_likelihood(
    observation: Any, noise: Any, noise_window: int | None, activation: Activation
) -> tuple[Likelihood, LearningState]:
    """Check and resolve a user's choice: the likelihood, and the state of learning to start with."""
    if isinstance(observation, Likelihood):
        likelihood = observation
    else:
        one_of(observation, ("auto", Gaussian.name, *_PLAIN, NegativeBinomial.name), "observation")
        if observation == "auto":
            observation = _default_name(activation) if noise is None else Gaussian.name
        if observation == NegativeBinomial.name and noise is None:
            noise = "learn"  # how far counts vary more than Poisson's is never known beforehand
        likelihood = _NOISY[observation](_NOISE) if observation in _NOISY else _PLAIN[observation]
    likelihood.check_activation(activation)
    if noise_window is not None and noise != "learn":
        raise ValueError(f"noise_window needs noise='learn', got noise={noise!r}")
    if isinstance(observation, str) and observation in _NOISY:
        return _with_noise(likelihood, noise, noise_window)
    if noise is not None:
        raise ValueError(
            f"noise can be given only with observation={' or '.join(map(repr, _NOISY))}, got noise={noise!r} with "
            f"observation={observation!r}"
        )
    return likelihood, LearningState()


def _with_noise(likelihood: Likelihood, noise: Any, noise_window: int | None) -> tuple[Likelihood, LearningState]:
    if noise == "learn":
        window = np.inf if noise_window is None else float(as_count(noise_window, "noise_window"))
        start, weight = likelihood.noise_start
        return likelihood.with_noise(start), LearningState(start, min(weight, window), window)
    if isinstance(noise, str):
        raise ValueError(f"noise must be a number that is not negative, or 'learn', got {noise!r}")
    fixed = _NOISE if noise is None else as_nonnegative(noise, "noise")
    return likelihood.with_noise(fixed), LearningState(fixed)


def _default_name(activation: Activation) -> str:
    if isinstance(activation, PaperSigmoid):
        return Bernoulli.name
    return next((name for name, kind in _PLAIN.items() if kind.exact(activation) is not None), Gaussian.name)
