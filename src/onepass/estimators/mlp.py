"""Classifier and regressor whose models are networks of perceptrons."""

from dataclasses import replace
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import as_count, as_seed, one_of
from onepass.beliefs.choice import BELIEFS, Covariance
from onepass.estimators.base import OUTLIERS, OnePassEstimator
from onepass.estimators.blueprints import INTERCEPT_SCALE, Networks
from onepass.estimators.classifier import OnePassClassifier
from onepass.estimators.documentation import documented
from onepass.estimators.refinement import Schedule
from onepass.estimators.regressor import OnePassRegressor
from onepass.layers import ImageShape, Layer, LayerSize, as_image_shape

__all__ = ["BayesianMLPClassifier", "BayesianMLPRegressor"]

_PROBES = 200  # inputs at which the importance of features is measured


class _Networks(OnePassEstimator):
    """What the estimators of networks share: layers, images and members."""

    hidden_layer_sizes: LayerSize | tuple[LayerSize, ...]
    image_shape: ImageShape | None
    activation: Any
    members: int
    shuffle: bool | str
    random_state: Any

    _blueprint = Networks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if as_count(self.members, "members") > 1 and isinstance(self.prior_scale, str):
            raise ValueError(
                f"members={self.members} have different priors already, so prior_scale='auto' can't be used: pass "
                "prior_scale as a number, or members=1"
            )
        if not isinstance(self.shuffle, (bool, np.bool_)) and self.shuffle != "auto":
            raise ValueError(f"shuffle must be True, False or 'auto', got {self.shuffle!r}")
        if not isinstance(self.covariance, (tuple, list)):
            one_of(self.covariance, ("auto", *BELIEFS), "covariance")
        seed = self.random_state
        if seed is not None and not isinstance(seed, np.random.RandomState):
            as_seed(seed, "random_state")
        if self.image_shape is not None:
            as_image_shape(self.image_shape, "image_shape")
        sizes = self.hidden_layer_sizes
        for layer in sizes if np.iterable(sizes) and not isinstance(sizes, str) else (sizes,):
            if not isinstance(layer, Layer):
                as_count(layer, "hidden_layer_sizes")
            elif layer.needs_images and self.image_shape is None:
                raise ValueError(f"{layer} needs images: pass their image_shape, such as (28, 28) or (32, 32, 3)")

    def _check_passes(self) -> None:
        if isinstance(self.passes, str) and self.passes != "auto":
            raise ValueError(f"passes must be 'auto' or a whole number of at least 1, got {self.passes!r}")
        if not isinstance(self.passes, str):
            super()._check_passes()

    @property
    def _schedule(self) -> Schedule:
        plain = super()._schedule
        # A row that is distrusted contributes nothing, so later passes would distrust it all the more.
        once = self.refine == "reuse" or isinstance(self.prior_scale, str) or self.outliers > 0.0
        return replace(plain, shuffle=self._shuffles, once=once)

    @property
    def _shuffles(self) -> bool:
        """Whether `fit` shuffles its rows: by default unless their order means something."""
        if not isinstance(self.shuffle, str):
            return bool(self.shuffle)
        return self.forgetting == 1.0 and self.drift == 0.0 and not isinstance(self.prior_scale, str)

    @property
    def n_passes_(self) -> int:
        """How often `fit` went over its rows; the choice made by ``passes="auto"``."""
        return self._fitted.state.n_passes

    @property
    def feature_importances_(self) -> FloatArray:
        """How much the outputs change with each input, ``(d,)``, as shares that sum to 1.

        The share of an input is the mean absolute value of the expected derivative of an output by that input, times
        the input's standard deviation. It is measured at random inputs drawn from independent Gaussians with the means
        and standard deviations of the first ``warm_up`` rows (0 and 1 without ``standardize``). For classes, a change
        that is the same in all log odds does not count. A categorical column is one input: the root of the sum of
        squares over its categories. So there is one number for each of ``n_features_in_``, as
        `sklearn.feature_selection.SelectFromModel` needs. An input can be important here and still add nothing to the
        predictions, if other inputs carry the same information; to measure that use
        `sklearn.inspection.permutation_importance`.
        """
        learner = self._fitted
        n_inputs, categories = learner.blueprint.n_inputs, learner.encoder.categories
        rows = np.random.default_rng(0).normal(size=(_PROBES, n_inputs))
        sizes = np.zeros(n_inputs)
        for mixture in learner.state.mixtures:
            for weight, member in zip(mixture.weights, mixture.members, strict=True):
                slopes = member.input_jacobian(rows)
                if slopes.shape[1] > 1:
                    slopes = slopes - slopes.mean(axis=1, keepdims=True)
                sizes += weight * np.abs(slopes).mean(axis=(0, 1))
        if categories is not None:
            sizes = categories.sizes_of_columns(sizes)
        total = sizes.sum()
        return np.asarray(sizes / total if total > 0.0 else sizes)


@documented
class BayesianMLPClassifier(_Networks, OnePassClassifier):
    """Network of Bayesian perceptrons for classification.

    Parameters
    ----------
    @hidden_layers
    @prior_scale_of_networks
    intercept_scale : float, optional
        Standard deviation of the output's bias before the first row, independent of ``prior_scale``; the default is
        wide enough for rare classes. With more than two classes it is the standard deviation of the log odds between
        any two. None uses the network's prior, times ``prior_scale``.
    @networks
    @outliers_of_classes
    @change
    @probabilities
    standardize : bool
        Standardise the inputs by mean and standard deviation of the first ``warm_up`` rows; for images one mean and
        standard deviation per channel. They stay fixed after that.
    @warm_up
    @missing_in_networks
    @class_weight
    @random_state

    Attributes
    ----------
    classes_ : (K,) array
    @log_evidence_of_classes
    @learned
    @learned_by_networks

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from onepass import BayesianMLPClassifier
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = BayesianMLPClassifier(hidden_layer_sizes=(20,)).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.9)
    True

    Images, as a table of their pixels:

    >>> from sklearn.datasets import load_digits
    >>> from onepass import Conv2D
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BayesianMLPClassifier((Conv2D(8, 3),), image_shape=(8, 8)).fit(X[:1000], y[:1000])
    >>> model.covariance_, bool(model.score(X[1000:], y[1000:]) > 0.9)
    ('kronecker', True)
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSize | tuple[LayerSize, ...] = (50,),
        activation: Any = "relu",
        *,
        prior_scale: Any = 1.0,
        intercept_scale: float | None = INTERCEPT_SCALE,
        covariance: Covariance = "auto",
        image_shape: ImageShape | None = None,
        members: int = 1,
        passes: int | str = "auto",
        refine: str = "auto",
        shuffle: bool | str = "auto",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        probabilities: str = "model",
        standardize: bool = True,
        warm_up: int = 100,
        missing: str = "error",
        class_weight: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.image_shape = image_shape
        self.members = members
        self.passes = passes
        self.refine = refine
        self.shuffle = shuffle
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.probabilities = probabilities
        self.standardize = standardize
        self.warm_up = warm_up
        self.missing = missing
        self.class_weight = class_weight
        self.random_state = random_state


@documented
class BayesianMLPRegressor(_Networks, OnePassRegressor):
    """Network of Bayesian perceptrons for regression; several outputs get one network each.

    Parameters
    ----------
    @hidden_layers
    observation : {"auto", "gaussian", "heteroscedastic", "poisson", "negative_binomial"}
        What a target is: the output plus Gaussian noise, which is the default, or a count whose rate is the exponential
        of the output; with ``"negative_binomial"`` counts vary more than a Poisson distribution allows, by a dispersion
        that is learned. With ``"heteroscedastic"`` the variance of the noise depends on the input, and is learned with
        an additional output of the network.
    noise : float or "learn"
        Variance of the targets' noise, or the dispersion of negative binomial counts; by default it is estimated from
        the rows.
    @prior_scale_of_networks
    intercept_scale : float, optional
        Standard deviation of the output's bias before the first row, independent of ``prior_scale``. By default it is 1
        for numbers and 4 for counts, times ``prior_scale``.
    @networks
    @outliers_of_numbers
    @change
    @intervals
    @target_transform
    standardize : bool
        Standardise inputs, and targets unless they are counts, by mean and standard deviation of the first ``warm_up``
        rows; for images one mean and standard deviation per channel. They stay fixed after that.
    @warm_up
    @missing_in_networks
    @random_state

    Attributes
    ----------
    noise_ : float or (q,) array
        Current variance of the noise; if it depends on the input, its mean over the rows. For counts their dispersion.
    @log_evidence_of_numbers
    @learned
    @learned_by_networks

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianMLPRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> model = BayesianMLPRegressor(hidden_layer_sizes=(20,)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSize | tuple[LayerSize, ...] = (50,),
        activation: Any = "relu",
        *,
        observation: str = "auto",
        noise: Any = "learn",
        prior_scale: Any = 1.0,
        intercept_scale: float | None = None,
        covariance: Covariance = "auto",
        image_shape: ImageShape | None = None,
        members: int = 1,
        passes: int | str = "auto",
        refine: str = "auto",
        shuffle: bool | str = "auto",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        intervals: str = "model",
        target_transform: Any = None,
        standardize: bool = True,
        warm_up: int = 100,
        missing: str = "error",
        random_state: Any = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.observation = observation
        self.noise = noise
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.image_shape = image_shape
        self.members = members
        self.passes = passes
        self.refine = refine
        self.shuffle = shuffle
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.intervals = intervals
        self.target_transform = target_transform
        self.standardize = standardize
        self.warm_up = warm_up
        self.missing = missing
        self.random_state = random_state
