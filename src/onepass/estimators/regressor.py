"""Regression: one perceptron for each number of a target, all on the same inputs."""

from math import sqrt
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from onepass._typing import FloatArray
from onepass._validation import as_count, as_nonnegative, as_positive, as_share, one_of
from onepass.activations import Exponential, as_activation
from onepass.beliefs.prior import PERCEPTRON_BELIEFS, prior_variances
from onepass.estimators.base import OnePassEstimator
from onepass.estimators.batch import Batch, ModelRows, PredictedRows, is_sparse
from onepass.estimators.inputs import INTERCEPT_SCALE, OUTLIERS, WIDE_SCALES
from onepass.estimators.posterior import Coefficients, add_noise, draw_counts, draw_functions, linear_coefficients
from onepass.estimators.scaling import (
    Scaling,
    absurd,
    near,
    warn_of_constant,
    warn_of_targets,
    warn_of_unseen,
    zero_for_nan,
)
from onepass.files.state import Arrays, Parameters
from onepass.layers.layout import Layout
from onepass.likelihoods import Gaussian, Likelihood, NegativeBinomial, likelihood_names, named
from onepass.likelihoods.counts import dispersion_of
from onepass.likelihoods.mixtures import mixture_moments
from onepass.models.mixture import Mixture, with_drift
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.prediction import Prediction

__all__ = ["BayesianPerceptronRegressor", "OnePassRegressor"]

_EXPLAINED = 3.0  # times the targets' variance: what all features together explain before the first row
_NOISE_START = 0.1  # times the targets' variance


class OnePassRegressor(RegressorMixin, OnePassEstimator):  # type: ignore[misc]
    """What all regressors share; a subclass says which models learn (`_new_member`)."""

    observation: str
    noise: Any

    _wide_scales: tuple[float, ...] = ()  # of priors for targets in units of their own

    def _check_parameters(self) -> None:
        one_of(self.observation, ("auto", *likelihood_names(self._can_learn)), "observation")
        super()._check_parameters()
        if not (isinstance(self.noise, str) and self.noise == "learn"):
            self._kind().choose_noise(self.noise)

    @staticmethod
    def _can_learn(kind: type[Likelihood]) -> bool:
        """Whether the models can learn such targets."""
        return not kind.is_label

    @property
    def _observation(self) -> str:
        """How targets come about, chosen by the user or for the user."""
        return Gaussian.name if self.observation == "auto" else self.observation

    @property
    def _kind(self) -> type[Likelihood]:
        return named(self._observation)

    @property
    def _learns_counts(self) -> bool:
        return self._kind.is_count

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows, in the order given.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) or (n, q) array
            With several outputs, NaN marks those that were not observed in a row; they are not learned from it.
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; ``w`` need not be whole, and 0 leaves the row out.
        """
        return self._learn(X, y, sample_weight, restart=False)

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> PredictedRows:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning.

        The first ``warm_up`` rows of a standardised model are predicted with a preliminary scale, the very first row
        not at all (NaN), and they are not scored.
        """
        return self._predict_then_learn(X, y, sample_weight)

    def outlier_probability(self, X: Any, y: Any) -> FloatArray:
        """Probability that each target can't be trusted, by the current belief, ``(n,)``.

        With ``outliers=0`` it is 1 for targets that would be set aside, and 0 for all others. Of several outputs it is
        that of the least trusted one.
        """
        return self._outlier_probability(X, y)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def predict(self, X: Any, return_std: bool) -> Any: ...
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Expected targets, ``(n,)`` or ``(n, q)``; with ``return_std`` also the standard deviations of new targets."""
        mean, std = self._moments(X)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits between which a new target lies with probability ``level``."""
        as_share(level, "level", open_above=True)
        chunks = list(self._rows(X))
        sides = [mixture.interval_of(self._interval_parts(mixture, chunks), level) for mixture in self._mixtures]
        low, high = (
            self._shaped(self._target_scaling.undo(np.column_stack(side))) for side in zip(*sides, strict=True)
        )
        return low, high

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw new targets, noise included: ``(n, n_samples)``, or ``(n, q, n_samples)``.

        Targets of the same draw belong to one function (see `sample_function`), each with noise of its own; counts are
        drawn as counts. A ``random_state`` makes the draws repeatable.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import BayesianPerceptronRegressor
        >>> X = np.linspace(-1.0, 1.0, 200)[:, None]
        >>> model = BayesianPerceptronRegressor().fit(X, 3.0 * X[:, 0] + np.random.default_rng(0).normal(size=200))
        >>> drawn = model.sample_y(X[:1], 10_000, random_state=0)
        >>> mean, std = model.predict(X[:1], return_std=True)
        >>> drawn.shape, bool(abs(drawn.std() / std[0] - 1.0) < 0.03)
        ((1, 10000), True)
        """
        random, rows = check_random_state(random_state), list(self._rows(X))
        drawn = [self._drawn_targets(mixture, rows, n_samples, random) for mixture in self._mixtures]
        return self._as_samples(drawn)

    def sample_function(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw functions from the posterior: ``(n, n_samples)``, or ``(n, q, n_samples)``.

        The values are expected targets, without noise. All rows of a draw share its weights, as Thompson sampling
        needs.
        """
        random, rows = check_random_state(random_state), list(self._rows(X))
        return self._as_samples([draw_functions(one, rows, n_samples, random).outputs for one in self._mixtures])

    def _drawn_targets(
        self, mixture: Mixture, rows: list[ModelRows], n_samples: int, random: np.random.RandomState
    ) -> FloatArray:
        """New targets as the models have them, ``(n_samples, n)``."""
        draws, parts = draw_functions(mixture, rows, n_samples, random), self._member_predictions(mixture, rows)
        if self._learns_counts:
            return draw_counts(draws, dispersion_of(parts.mean, parts.var, parts.noise_var), random)
        noise_var = parts.noise_var
        if any(row.options for row in rows):  # functions are drawn for the means of uncertain inputs
            certain = self._member_predictions(mixture, [ModelRows(row.X, {}) for row in rows])
            noise_var = noise_var + np.maximum(parts.var - certain.var, 0.0)
        log_noise_var = np.array([part.log_noise_var for _, part in mixture.components])
        return add_noise(draws, noise_var, log_noise_var, random)

    def _as_samples(self, drawn: list[FloatArray]) -> FloatArray:
        """Draws of each output, ``(n_samples, n)``, in the targets' own units and in scikit-learn's order."""
        outputs = self._target_scaling.undo(np.stack(drawn, axis=-1))
        return np.asarray(np.moveaxis(outputs if self._many else outputs[..., 0], 0, -1))

    @property
    def noise_(self) -> Any:
        """Current variance of the noise; for counts their dispersion."""
        check_is_fitted(self)
        values = [
            mixture.weights @ [self._noise_of(member) for member in mixture.members] * scale**2
            for mixture, scale in zip(self._mixtures, self._target_scaling.scale, strict=True)
        ]
        return np.array(values) if self._many else float(values[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.target_tags.positive_only = self._learns_counts
        return tags

    _target_checks = {"multi_output": True, "y_numeric": True}  # noqa: RUF012

    def _checked_pairs(self, X: Any, y: Any, *, restart: bool) -> tuple[Any, Any]:
        """Rows and targets to learn; of several numbers in a target some may be NaN, which were not observed."""
        if not _has_columns(y):
            return super()._checked_pairs(X, y, restart=restart)
        X = self._checked_rows(X, restart=restart)
        y = check_array(y, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(X, y)
        return X, y

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predicted means; for several outputs the mean over them, each over the rows that have it."""
        if not _has_columns(y) or not np.isnan(targets := np.asarray(y, dtype=np.float64)).any():
            return float(super().score(X, y, sample_weight))
        predicted, seen, scores = self.predict(X), ~np.isnan(targets), []
        for k in np.flatnonzero(seen.any(axis=0)):
            rows = seen[:, k]
            weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
            scores.append(r2_score(targets[rows, k], predicted[rows, k], sample_weight=weights))
        if not scores:
            raise ValueError("y must have at least one number that is not NaN, got only NaN")
        return float(np.mean(scores))

    def _encoded(self, y: Any, classes: Any, *, restart: bool) -> FloatArray:
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), *(np.shape(y)[1:] or (1,)))
        self._kind().check(columns[:, 0] if columns.shape[1] == 1 else columns)
        if restart:
            self._many, self._n_outputs = np.ndim(y) == 2, int(columns.shape[1])
        elif columns.shape[1] != self._n_outputs:
            raise ValueError(f"y must have {self._n_outputs} columns as before, got {columns.shape[1]}")
        return columns

    @property
    def _n_targets(self) -> int:
        return self._n_outputs

    @property
    def _prediction_shape(self) -> tuple[int, ...]:
        return (self._n_outputs,) if self._many else ()

    def _noise_of(self, member: Any) -> float:
        """Variance of the noise that a model has learned or was given."""
        raise NotImplementedError

    def _scaling_of_targets(self, batch: Batch) -> Scaling:
        if self._learns_counts:
            return self._target_scaling
        if len(batch) == self.warm_up:
            warn_of_unseen(batch.targets)
            warn_of_constant(batch.targets, self.outliers)
        return Scaling.of_targets(batch.targets, self.outliers, batch.weights)

    def _absurd_targets(self, batch: Batch) -> NDArray[np.bool_]:
        if self.outliers or self._learns_counts or not self._scales_targets:
            return super()._absurd_targets(batch)
        found = absurd(batch.targets)
        if found.any() and not is_sparse(batch.rows):  # inputs that are as far off may well explain a target
            found &= ~absurd(batch.rows).any(axis=1, keepdims=True)
        return found

    @property
    def _scales_targets(self) -> bool:
        """Whether the models learn targets of unit scale."""
        return self.standardize

    @property
    def _scales(self) -> tuple[float, ...]:
        plain = self._scales_targets or self._learns_counts or not isinstance(self.prior_scale, str)
        return super()._scales if plain else (*super()._scales, *self._wide_scales)

    def _warn_of_targets(self, batch: Batch) -> None:
        if self._learns_counts or self._scales_targets:
            return
        scale = max(float(np.max(scale)) for scale in self._scales)
        trusted = (near(batch.targets, self.outliers) | np.isnan(batch.targets)).all(axis=1)
        own = self._own_intercept_scale or scale
        warn_of_targets(batch.targets[trusted], zero_for_nan(batch.rows[trusted]), scale, own)

    def _predicted(self, predictions: list[Prediction]) -> tuple[FloatArray, FloatArray, FloatArray]:
        mean, var, noise = (
            np.column_stack([getattr(one, part) for one in predictions]) for part in ("mean", "var", "noise_var")
        )
        squared = self._target_scaling.scale**2
        mean, var, noise = self._target_scaling.undo(mean), var * squared, noise * squared
        return self._shaped(mean), self._shaped(var), self._shaped(noise)

    def _moments(self, X: Any) -> tuple[FloatArray, FloatArray]:
        rows, moments = list(self._rows(X)), []
        for mixture in self._mixtures:
            parts = self._member_predictions(mixture, rows)
            moments.append(mixture_moments(mixture.component_weights, parts.mean, parts.var + parts.noise_var))
        mean = self._target_scaling.undo(np.column_stack([mean for mean, _ in moments]))
        std = np.sqrt(np.column_stack([var for _, var in moments])) * self._target_scaling.scale
        return self._shaped(mean), self._shaped(std)

    def _shaped(self, columns: FloatArray) -> FloatArray:
        return columns if self._many else columns[:, 0]

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        return {**parameters, "many": self._many, "n_outputs": self._n_outputs}, arrays

    def _restore(self, parameters: Parameters, arrays: Arrays) -> None:
        self._many = bool(parameters["many"])
        self._n_outputs = as_count(parameters["n_outputs"], "n_outputs")
        if len(parameters["mixtures"]) != self._n_outputs or arrays["targets/centre"].shape != (self._n_outputs,):
            raise ValueError(f"the saved state is incomplete: it should have {self._n_outputs} outputs")


class BayesianPerceptronRegressor(OnePassRegressor):
    """Bayesian perceptron for regression, learned in one pass.

    Parameters
    ----------
    activation : str or Activation
        As for `onepass.BayesianPerceptron`; ``"linear"`` is Bayesian linear regression, ``"exp"`` is for counts.
    observation : {"auto", "gaussian", "poisson", "negative_binomial"}
        What a target is: the output plus Gaussian noise, or a count with the output as its rate; with
        ``"negative_binomial"`` counts vary more than a Poisson distribution allows, by a dispersion that is learned.
        The default is negative binomial for ``"exp"`` (hardly worse for Poisson counts), and Gaussian otherwise or if
        ``noise`` is given; so a known dispersion needs ``observation="negative_binomial"`` as well.
    noise : float or "learn"
        Variance of the targets' noise, or the dispersion of negative binomial counts; by default it is estimated from
        the rows.
    noise_start : float, optional
        First estimate of a learned variance; by default a tenth of the weights' prior variance, or with the default
        ``prior_scale`` of the targets' variance, where these are standardised.
    prior_scale : float, (d,) array, "auto" or None
        Standard deviation of the weights before the first row: one number for all, or one per feature. ``"auto"``
        learns with several scales side by side, weighted by how well each predicted the last rows; it needs
        ``passes=1``. If targets are not standardised, the scales go up to 10⁸, for the intercept too, so targets may
        be in any unit. None is 1; but with ``standardize`` and a linear activation it is 1 for up to three features,
        then ``sqrt(3 / d)``, so that all features together explain about three times the targets' variance before the
        first row. (Of sparse rows that stay sparse, the entries of a row count instead of ``d``.)
    intercept_scale : float, "auto" or None
        Standard deviation of the intercept before the first row, independent of ``prior_scale``; in the units of the
        targets, standardised if they are. None gives the intercept the prior of a weight. ``"auto"`` is 4, except 1 for
        ``"exp"`` with Gaussian noise, where 4 would expect targets of e⁸, and 1 for ``"relu"`` and ``"leaky_relu"``
        with standardised targets, which have size 1; a wider intercept would also make a learned noise start too large.
    fit_intercept : bool
        Whether there is an intercept.
    covariance : {"full", "diagonal"}
        Keep all correlations between weights, or none, for very many features.
    outliers : float
        Share of the targets that can't be trusted, in [0, 0.5), such as sensor spikes or typing errors. 0 trusts every
        target; above 0 the share is learned, starting from this value, and each row is weighted by the probability that
        its target can be trusted. If many rows in succession are distrusted, the relation itself is taken to have
        changed, and the model returns to the uncertainty of the prior. With ``standardize``, extreme values among the
        first rows are left out of the statistics of their column.
    forgetting : float
        In (0, 1]; below 1 older rows count less, for relations that change.
    drift : float or "auto"
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. ``"auto"`` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted
        row by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs ``passes=1``
        and ``forgetting=1``.
    passes : int
        How often ``fit`` goes over its rows; ``partial_fit`` always makes one pass. One pass is online learning; five
        correct intervals that one pass over few rows leaves too narrow, and make the order of the rows unimportant.
    refine : {"auto", "ep", "reuse"}
        What the later passes do. ``"ep"`` (expectation propagation) removes a row's contribution before learning it
        again, so each row counts once; ``"reuse"`` counts it again, which makes intervals too narrow. The default is
        ``"ep"`` if it is possible, that is with a full covariance, no forgetting and no drift; else ``"reuse"``.
    standardize : bool
        Standardise the inputs, and with a linear activation the targets, by mean and standard deviation of the first
        ``warm_up`` rows. Targets of ``"relu"`` and ``"leaky_relu"``, and sparse rows that stay sparse
        (``covariance="diagonal"``), are only divided by their size. The statistics stay fixed after that. With False,
        ``prior_scale`` is in the targets' units, and a warning says if it doesn't fit them; a scaler in a pipeline
        does not help there, because it does not see the targets.
    warm_up : int
        With ``standardize``: how many of the first rows determine mean and standard deviation.
    missing : {"error", "mean"}
        What to do about NaN among the inputs: raise an error, or use the mean of the column so far, with the column's
        variance as its uncertainty. (A categorical column of a data frame becomes columns of 0 and 1; a category that
        the first data frame did not have is all zeros.)

    Attributes
    ----------
    coef_ : (d,) or (q, d) array
        Mean weights, in the units of the data, averaged over what is known of a learned noise. Predictions are made at
        one noise, which differs slightly while there are few rows per weight.
    intercept_ : float or (q,) array
    coef_std_ : (d,) or (q, d) array
        Their standard deviations.
    coef_cov_ : (d, d) or (q, d, d) array
        Their covariance, in the same units; with ``covariance="diagonal"`` its diagonal.
    noise_ : float or (q,) array
        Current variance of the noise; for counts their dispersion: counts of mean ``m`` have the variance
        ``m + noise_ m²``.
    log_evidence_ : float
        Sum of the log predictive densities of all rows, each before it was learned. With ``standardize=True`` the first
        ``warm_up`` rows are left out, so compare only models with the same ``standardize`` and ``warm_up``.
    outliers_ : float or (q,) array
        Estimated share of the targets that can't be trusted.
    n_set_aside_ : int or (q,) array
        Rows that were set aside, that is counted and not learned. With ``outliers=0`` that happens to an absurd target:
        more than 30 standard deviations from its prediction, and ten times as far as any before.
    drift_ : dict
        Current probability of each rate of drift; for several outputs a list of such dictionaries.
    n_seen_ : int
        Rows learned; a row counts once whatever its weight, and not at all if its weight is 0.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onepass import BayesianPerceptronRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianPerceptronRegressor(standardize=True).fit(X[:300], y[:300])
    >>> print(f"{model.score(X[300:], y[300:]):.2f}")
    0.50
    >>> mean, std = model.predict(X[300:], return_std=True)
    >>> low, high = model.predict_interval(X[300:], level=0.9)
    >>> print(f"{((low < y[300:]) & (y[300:] < high)).mean():.2f}")
    0.91
    """

    _wide_scales = WIDE_SCALES
    _chooses_scale = True
    _n_entries: float | None = None  # of a sparse row, in the mean over the warm-up

    def __init__(
        self,
        activation: Any = "linear",
        *,
        observation: str = "auto",
        noise: Any = "learn",
        noise_start: float | None = None,
        prior_scale: Any = None,
        intercept_scale: float | str | None = "auto",
        fit_intercept: bool = True,
        covariance: str = "full",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        passes: int = 1,
        refine: str = "auto",
        standardize: bool = True,
        warm_up: int = 100,
        missing: str = "error",
    ) -> None:
        self.activation = activation
        self.observation = observation
        self.noise = noise
        self.noise_start = noise_start
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.fit_intercept = fit_intercept
        self.covariance = covariance
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.passes = passes
        self.refine = refine
        self.standardize = standardize
        self.warm_up = warm_up
        self.missing = missing

    @property
    def coef_(self) -> FloatArray:
        """Mean weights, in the units of the data."""
        return np.asarray(self._stacked("mean"))

    @property
    def intercept_(self) -> Any:
        """Mean of the bias, in the units of the data."""
        return self._stacked("intercept")

    @property
    def coef_std_(self) -> FloatArray:
        """Standard deviations of the weights, in the units of the data."""
        cov = self.coef_cov_
        whole = PERCEPTRON_BELIEFS[self.covariance].keeps_correlations
        return np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1) if whole else cov)

    @property
    def coef_cov_(self) -> FloatArray:
        """Covariance of the weights, in the units of the data; with a diagonal covariance its diagonal."""
        return np.asarray(self._stacked("cov"))

    @property
    def _layout(self) -> Layout:
        return Layout((self._n_inputs, 1))

    def _new_member(self, scale: float, target_scale: float) -> Any:
        noise: Any = self.noise
        if not self._kind.takes_noise:
            noise = None
        elif not isinstance(noise, str):
            noise = as_nonnegative(noise, "noise") / target_scale**2
        noise_start = _NOISE_START if self._chosen_for_targets else None
        if self.noise_start is not None:
            noise_start = as_positive(self.noise_start, "noise_start") / target_scale**2
        return with_drift(
            BayesianPerceptron,
            self._n_inputs,
            self.activation,
            bias=self.fit_intercept,
            cov=prior_variances(self._n_inputs, int(self.fit_intercept), scale, self._intercept_scale_of(scale)),
            observation=self._observation,
            noise=noise,
            noise_start=noise_start,
            covariance=self.covariance,
            outliers=self.outliers,
            forgetting=self.forgetting,
            drift=self.drift,
        )

    @property
    def _scales(self) -> tuple[Any, ...]:
        if self.prior_scale is not None:
            return super()._scales
        if not self._chosen_for_targets:
            return (1.0,)
        n_features = self._n_inputs if self._n_entries is None else self._n_entries
        return (min(1.0, sqrt(_EXPLAINED / max(n_features, 1.0))),)

    @property
    def _chosen_for_targets(self) -> bool:
        """Whether the prior scale is left to the estimator, and targets of variance 1 tell what it may be."""
        linear = self._activation_is("linear") and not self._learns_counts
        return self.prior_scale is None and linear and self._scales_targets

    def _scaling_of_inputs(self, batch: Batch) -> Scaling:
        sparse = is_sparse(batch.rows) and self._keeps_sparse
        self._n_entries = batch.rows.count_nonzero() / len(batch) if sparse else None
        return super()._scaling_of_inputs(batch)

    def _intercept_scale_of(self, scale: float) -> float | None:
        """The intercept's scale; beside weights so wide that the targets' units must be unknown, as wide as these."""
        unknown = isinstance(self.prior_scale, str) and scale > max(self._auto_scales)
        own = self._own_intercept_scale
        return max(own, scale) if unknown and own is not None else own

    @property
    def _own_intercept_scale(self) -> float | None:
        if not (isinstance(self.intercept_scale, str) and self.intercept_scale == "auto"):
            return super()._own_intercept_scale
        narrow = not self._learns_counts and (
            self._activation_is("exp") or (self.standardize and self._activation_is("relu", "leaky_relu"))
        )
        return 1.0 if narrow else INTERCEPT_SCALE

    @staticmethod
    def _can_learn(kind: type[Likelihood]) -> bool:
        return not (kind.is_label or kind.needs_network)

    @property
    def _observation(self) -> str:
        if self.observation == "auto" and self.noise == "learn" and as_activation(self.activation) == Exponential():
            return NegativeBinomial.name
        return super()._observation

    def _noise_of(self, member: Any) -> float:
        return float(member.noise)

    def _scaling_of_targets(self, batch: Batch) -> Scaling:
        # Shifted targets would leave the range of any other activation, and scaled ones that of most.
        if self._activation_is("linear") or self._learns_counts:
            return super()._scaling_of_targets(batch)
        if self._activation_is("relu", "leaky_relu"):
            return Scaling.of_size(batch.targets, self.outliers, batch.weights)
        return self._target_scaling

    def _activation_is(self, *names: str) -> bool:
        return as_activation(self.activation) in [as_activation(name) for name in names]

    @property
    def _scales_targets(self) -> bool:
        return super()._scales_targets and self._activation_is("linear", "relu", "leaky_relu")

    def _warn_of_targets(self, batch: Batch) -> None:
        if not self._activation_is("exp"):  # of which the prior's standard deviation is that of the targets' logarithm
            super()._warn_of_targets(batch)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self.covariance, tuple(PERCEPTRON_BELIEFS), "covariance")

    _takes_variances = True

    def _stacked(self, part: str) -> Any:
        """A part of the coefficients, for all outputs."""
        parts = [getattr(coefficients, part) for coefficients in self._coefficients()]
        return np.array(parts) if self._many else parts[0]

    def _coefficients(self) -> list[Coefficients]:
        check_is_fitted(self)
        inputs, targets = self._input_scaling, self._target_scaling
        return [
            linear_coefficients(mixture, inputs, scale, centre)
            for mixture, scale, centre in zip(self._mixtures, targets.scale, targets.centre, strict=True)
        ]


def _has_columns(y: Any) -> bool:
    """Whether targets have several numbers each."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1
