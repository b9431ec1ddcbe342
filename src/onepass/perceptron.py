"""The Bayesian perceptron: Algorithms 1 and 2 of the paper, to be read beside it.

M. F. Huber, "Bayesian Perceptron: Towards fully Bayesian Neural Networks", 2020. The equations are named as in
the paper's source. This is the reference for everything faster: one row at a time, in NumPy.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from onepass.activations import Activation, as_activation
from onepass.gaussian import FloatArray
from onepass.observations import Gaussian, kalman_step
from onepass.posterior import Full
from onepass.validation import as_count, as_covariance, as_floats, as_nonnegative, as_rows, as_targets, one_of

__all__ = ["BayesianPerceptron", "Prediction"]


class Prediction(NamedTuple):
    """The predictive distribution: numbers for one row, arrays ``(n,)`` for many."""

    mean: Any
    """``mu_y``, the expected output."""
    var: Any
    """``sigma_y²``, the variance of ``f(a)`` that comes from not knowing the weights."""
    pre_mean: Any
    """``mu_a``, the mean of the pre-activation."""
    pre_var: Any
    """``sigma_a²``, its variance."""
    noise_var: Any
    """``epsilon``, the variance of the observation noise; ``var + noise_var`` is the variance of ``y``."""


class BayesianPerceptron:
    """A perceptron ``y = f(x'w) + noise`` whose weights are a Gaussian belief.

    Parameters
    ----------
    n_features : int
        Length of an input row, without the bias.
    activation : str or Activation
        ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"linear"``, or an object with ``moments``, such
        as a `PiecewiseLinear`.
    bias : bool
        Put a constant 1 before every row; weight 0 is then the bias.
    mean : (p,) array, optional
        Prior mean of the weights, ``p = n_features + bias``; zeros by default.
    cov : (p, p) array, optional
        Prior covariance of the weights; the identity by default.
    observation : {"gaussian"}
        Gaussian noise around the output.
    noise : float
        Variance of that noise, the paper's epsilon.
    update : {"kalman"}
        The paper's rule.
    moments : {"paper"}
        The paper's approximate moments of the sigmoid and tanh.

    Examples
    --------
    >>> bp = BayesianPerceptron(n_features=1, activation="relu", noise=0.01)
    >>> bp = bp.learn([[1.0], [2.0], [3.0]], [2.1, 3.9, 6.0])
    >>> prediction = bp.predict([2.5])
    >>> print(f"{prediction.mean:.2f} +- {prediction.var ** 0.5:.2f}")
    4.96 +- 0.07
    """

    def __init__(
        self,
        n_features: int,
        activation: str | Activation = "sigmoid",
        *,
        bias: bool = True,
        mean: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        observation: str = "gaussian",
        noise: float = 0.01,
        update: str = "kalman",
        moments: str = "paper",
    ) -> None:
        self.n_features = as_count(n_features, "n_features")
        self.activation = as_activation(activation)
        self.bias = bool(bias)
        one_of(observation, ("gaussian",), "observation")
        one_of(update, ("kalman",), "update")
        one_of(moments, ("paper",), "moments")
        self.observation = Gaussian(as_nonnegative(noise, "noise"))
        size = self.n_features + self.bias
        prior_mean = np.zeros(size) if mean is None else as_floats(mean, "mean")
        if prior_mean.shape != (size,):
            raise ValueError(f"mean must have shape ({size},), got shape {prior_mean.shape}")
        self._posterior = Full(prior_mean, np.eye(size) if cov is None else as_covariance(cov, size))

    @property
    def mean(self) -> FloatArray:
        """Mean of the weights, ``(p,)``; the bias first."""
        return self._posterior.mean.copy()

    @property
    def cov(self) -> FloatArray:
        """Covariance of the weights, ``(p, p)``."""
        return self._posterior.cov

    def predict(self, X: ArrayLike) -> Prediction:
        """Forward pass (Algorithm 1) for one row ``(d,)`` or many ``(n, d)``."""
        rows, single = as_rows(X, self.n_features)
        rows = self._with_bias(rows)
        pre_mean = rows @ self._posterior.mean  # (mua)
        pre_var = self._posterior.variances(rows)  # (sigmaa)
        output = self.activation.moments(pre_mean, pre_var)
        columns = (output.mean, output.var, pre_mean, pre_var, self.observation.noise_var(output))
        return Prediction(*(float(column[0]) if single else column for column in columns))

    def learn(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Backward pass (Algorithm 2) for one row and its target, or for many in their order.

        All rows are learned or, if anything is wrong with one of them, none.
        """
        rows, single = as_rows(X, self.n_features)
        targets = as_targets(y, len(rows), single)
        posterior = self._posterior.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # answered by the check below
            for x, target in zip(self._with_bias(rows), targets, strict=True):
                seen = posterior.project(x)  # sigma_a² and sigma_wa of (backward_sigmawa)
                step = kalman_step(self.activation, self.observation, x @ posterior.mean, seen.var, target)
                posterior.rank_one_step(seen, step.alpha, step.kappa)  # (backward_weightupdate)
        if not posterior.is_finite():
            raise ValueError(
                f"X and y overflow float64: their largest magnitudes are {np.abs(rows).max():.3g} and "
                f"{np.abs(targets).max():.3g}; rescale them. Nothing was learned."
            )
        self._posterior = posterior
        return self

    def _with_bias(self, rows: FloatArray) -> FloatArray:
        return np.hstack([np.ones((len(rows), 1)), rows]) if self.bias else rows
