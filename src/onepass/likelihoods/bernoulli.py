"""The likelihood of labels 0 and 1."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.activations import Activation, Moments, activation_text
from onepass.engine.matches import KalmanLabel
from onepass.likelihoods.base import Likelihood

__all__ = ["Bernoulli"]


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    """A label, 1 with probability ``f(a)`` and 0 otherwise; exact for sigmoid, probit and step."""

    name: ClassVar[str] = "bernoulli"
    kalman: ClassVar[type[KalmanLabel]] = KalmanLabel

    def check(self, y: FloatArray) -> None:
        """Take 0 and 1 only."""
        bad = (y != 0.0) & (y != 1.0)
        if bad.any():
            where = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"y must hold labels 0 and 1 for observation='bernoulli', got {y[where]:g} at index {where}"
            )

    def check_activation(self, activation: Activation) -> None:
        """Take activations between 0 and 1."""
        values = activation([-1e3, 0.0, 1e3])
        if ((values < 0.0) | (values > 1.0)).any():
            raise ValueError(
                "observation='bernoulli' needs an activation between 0 and 1, such as 'sigmoid', 'probit' or 'step', "
                f"got {activation_text(activation)}"
            )

    def noise_var(self, output: Moments) -> FloatArray:
        """``E[f (1 - f)]``, so that with the output's variance it is ``mu_y (1 - mu_y)``, the variance of a label."""
        noise: Any = output.mean * (1.0 - output.mean) - output.var
        # Of one row without NumPy, which would take longer than all the rest of the prediction.
        noise = max(noise, 0.0) if type(noise) is float else np.maximum(noise, 0.0)
        return noise  # type: ignore[no-any-return]

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """The exact quantile of ``f(a)``, since ``f`` rises."""
        return activation(mean + ndtri(level) * np.sqrt(var))
