"""The likelihoods of labels: 0 or 1, and one class among several."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from onepass._typing import FloatArray
from onepass.activations import Activation, Moments, Sigmoid, activation_text
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.matches import KalmanLabel
from onepass.engine.vector_matches import VectorLikelihood
from onepass.likelihoods.base import LOG_NOISE, Likelihood, LogNoise, refuse_first, register
from onepass.likelihoods.mixtures import Components, mixture_mean

__all__ = ["Bernoulli", "Categorical"]


class _Labels(Likelihood):
    """What labels and classes have in common: whole numbers, and a probability ``f(a)`` of each."""

    is_numeric: ClassVar[bool] = False
    is_label: ClassVar[bool] = True
    link: Activation = Sigmoid()

    def noise_var(self, output: Moments) -> FloatArray:
        """``E[f (1 - f)]``, so that with the output's variance it is ``mu_y (1 - mu_y)``, the variance of a label."""
        noise: Any = output.mean * (1.0 - output.mean) - output.var
        # Of one row without NumPy, which would take longer than all the rest of the prediction.
        noise = max(noise, 0.0) if type(noise) is float else np.maximum(noise, 0.0)
        return noise  # type: ignore[no-any-return]

    def normal_score(self, parts: Components, y: FloatArray) -> FloatArray:
        """Of the distribution function of a label, which steps at 0 and at 1."""
        zero = 1.0 - mixture_mean(parts.weights, parts.mean)
        return np.asarray(ndtri(np.where(y < 0.0, 0.0, np.where(y < 1.0, zero, 1.0))))

    def log_density(self, parts: Components, y: FloatArray) -> FloatArray:
        """Log probability of labels."""
        one = mixture_mean(parts.weights, parts.mean)
        with np.errstate(divide="ignore"):
            return np.where(y == 1.0, np.log(one), np.where(y == 0.0, np.log1p(-one), -np.inf))

    def at_normal_score(self, parts: Components, z: FloatArray) -> FloatArray:
        """The label that the distribution function reaches there."""
        return np.where(ndtr(z) <= 1.0 - mixture_mean(parts.weights, parts.mean), 0.0, 1.0)

    def interval(self, parts: Components, level: float) -> tuple[FloatArray, FloatArray]:
        """``f`` of the quantiles of the pre-activation, which is exact since ``f`` rises."""
        low, high = parts.pre_activations().interval(level)
        return parts.activation(low), parts.activation(high)


@register
@dataclass(frozen=True)
class Bernoulli(_Labels):
    """A label, 1 with probability ``f(a)`` and 0 otherwise; exact for sigmoid, probit and step.

    In a network with several outputs there is one label for each, independent given the outputs.
    """

    name: ClassVar[str] = "bernoulli"
    words: ClassVar[str] = "0 or 1"
    kalman: ClassVar[type[KalmanLabel]] = KalmanLabel

    def check(self, y: FloatArray) -> None:
        """Take 0 and 1 only."""
        refuse_first(y, self.impossible(y), f"labels 0 and 1 for observation={self.name!r}")

    def impossible(self, y: FloatArray) -> Any:
        """All but 0 and 1."""
        return (y != 0.0) & (y != 1.0) & ~np.isnan(y)

    def check_activation(self, activation: Activation) -> None:
        """Take activations between 0 and 1."""
        values = activation([-1e3, 0.0, 1e3])
        if ((values < 0.0) | (values > 1.0)).any():
            raise ValueError(
                f"observation={self.name!r} needs an activation between 0 and 1, such as 'sigmoid', 'probit' or "
                f"'step', got {activation_text(activation)}"
            )


@register
@dataclass(frozen=True)
class Categorical(_Labels):
    """One of as many classes as there are outputs; each output is compared with all others."""

    name: ClassVar[str] = "categorical"
    words: ClassVar[str] = "classes"
    is_class: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True

    def outputs(self, n_outputs: int, log_noise: LogNoise = LOG_NOISE) -> VectorLikelihood:
        """All logits together, at least two."""
        if n_outputs < 2:
            raise ValueError(f"n_outputs must be the number of classes, at least 2, got {n_outputs}")
        return CategoricalOutputs(n_outputs)

    def as_targets(self, value: Any, n_rows: int, single: bool, outputs: VectorLikelihood) -> FloatArray:
        """Take whole numbers from 0 to the last class."""
        targets = super().as_targets(value, n_rows, single, outputs)
        y, last = targets[:, 0], outputs.n_outputs - 1
        refuse_first(y, (y < 0) | (y > last) | (y != np.floor(y)), f"labels 0 to {last}")
        return targets

    def bias_std(self, intercept_scale: float | None) -> float | None:
        """By this the log odds between two classes, a difference of two outputs, have the deviation asked for."""
        return None if intercept_scale is None else intercept_scale / np.sqrt(2.0)

    def output_moments(self, activation: Activation, mean: FloatArray, var: FloatArray) -> Moments:
        """Probabilities of all classes, from the moments of their log odds."""
        output = activation.moments(mean, var)
        return output._replace(mean=np.asarray(output.mean / output.mean.sum(axis=1, keepdims=True)))

    def response(self, outputs: FloatArray) -> FloatArray:
        """The probabilities of the classes."""
        return np.asarray(softmax(outputs, axis=-1))
