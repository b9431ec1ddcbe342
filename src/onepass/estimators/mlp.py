"""The same estimators with networks of perceptrons as their models."""

from typing import Any

from onepass.activations import as_activation
from onepass.estimators.classifier import OnePassClassifier
from onepass.estimators.regressor import OnePassRegressor
from onepass.network import BayesianNetwork
from onepass.validation import as_nonnegative

__all__ = ["BayesianMLPClassifier", "BayesianMLPRegressor"]

_SCALES = (0.5, 1.0, 2.0)  # beside the network's own prior


class BayesianMLPClassifier(OnePassClassifier):
    """Network of Bayesian perceptrons for classification, learned in one pass.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
    activation : str or Activation
        Of the hidden units, as for `onepass.BayesianPerceptron`.
    prior_scale : float or "auto"
        Multiplies the standard deviations that weights have before the first row. ``"auto"`` has several learn side by
        side, weighted by how well each foretold the last rows.
    covariance : {"auto", "full", "layer", "neuron", "diagonal"}
        Between which weights correlations are kept; by default the richest structure that is not too large.
    forgetting : float
        In (0, 1]; below 1 the past fades, for classes that drift.
    standardize : bool
        Standardise the inputs by mean and standard deviation of the first ``warm_up`` rows. The statistics are then
        frozen.
    warm_up : int
    random_state : int
        Seed of the means that the weights start with.

    Attributes
    ----------
    classes_ : (K,) array
    log_evidence_ : float
        Sum of the log probabilities of all labels, each before it was learned.
    n_seen_ : int
        Rows learned.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = BayesianMLPClassifier(hidden_layer_sizes=(20,)).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.9)
    True
    """

    _auto_scales = _SCALES
    _sparse_models = False

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (50,),
        activation: Any = "relu",
        *,
        prior_scale: Any = 1.0,
        covariance: str = "auto",
        forgetting: float = 1.0,
        standardize: bool = True,
        warm_up: int = 100,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior_scale = prior_scale
        self.covariance = covariance
        self.forgetting = forgetting
        self.standardize = standardize
        self.warm_up = warm_up
        self.random_state = random_state

    @property
    def _link(self) -> Any:
        return as_activation("sigmoid")

    def _member(self, n_features: int, scale: float) -> Any:
        binary = self._binary
        return BayesianNetwork(
            n_features,
            tuple(self.hidden_layer_sizes),
            1 if binary else len(self.classes_),
            self.activation,
            observation="bernoulli" if binary else "categorical",
            covariance=self.covariance,
            prior_scale=scale,
            seed=self.random_state or 0,
            forgetting=self.forgetting,
        )


class BayesianMLPRegressor(OnePassRegressor):
    """Network of Bayesian perceptrons for regression, learned in one pass; several outputs have a network each.

    Parameters
    ----------
    hidden_layer_sizes : tuple of int
    activation : str or Activation
        Of the hidden units, as for `onepass.BayesianPerceptron`.
    noise : float or "learn"
        Variance of the targets' noise; by default it is estimated on the way.
    prior_scale : float or "auto"
        Multiplies the standard deviations that weights have before the first row. ``"auto"`` has several learn side by
        side, weighted by how well each foretold the last rows.
    covariance : {"auto", "full", "layer", "neuron", "diagonal"}
        Between which weights correlations are kept; by default the richest structure that is not too large.
    forgetting : float
        In (0, 1]; below 1 the past fades, for relations that drift.
    standardize : bool
        Standardise inputs and targets by mean and standard deviation of the first ``warm_up`` rows. The statistics are
        then frozen.
    warm_up : int
    random_state : int
        Seed of the means that the weights start with.

    Attributes
    ----------
    noise_ : float or (q,) array
        Variance of the noise as it is now.
    log_evidence_ : float
        Sum of the log predictive densities of all rows, each before it was learned.
    n_seen_ : int
        Rows learned.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> model = BayesianMLPRegressor(hidden_layer_sizes=(20,)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    _auto_scales = _SCALES
    _sparse_models = False

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (50,),
        activation: Any = "relu",
        *,
        noise: Any = "learn",
        prior_scale: Any = 1.0,
        covariance: str = "auto",
        forgetting: float = 1.0,
        standardize: bool = True,
        warm_up: int = 100,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.noise = noise
        self.prior_scale = prior_scale
        self.covariance = covariance
        self.forgetting = forgetting
        self.standardize = standardize
        self.warm_up = warm_up
        self.random_state = random_state

    def _member(self, n_features: int, scale: float, spread: float) -> Any:
        noise: Any = self.noise
        if not isinstance(noise, str):
            noise = as_nonnegative(noise, "noise") / spread**2
        return BayesianNetwork(
            n_features,
            tuple(self.hidden_layer_sizes),
            1,
            self.activation,
            noise=noise,
            covariance=self.covariance,
            prior_scale=scale,
            seed=self.random_state or 0,
            forgetting=self.forgetting,
        )

    def _noise_of(self, member: Any) -> float:
        return float(member.noise_var[0])
