"""Regression: what all regressors predict, and the perceptron for each number of a target."""

from math import sqrt
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from onepass._limits import INTERVALS
from onepass._typing import FloatArray
from onepass._validation import as_share, one_of
from onepass.activations import Exponential, as_activation
from onepass.beliefs.prior import PERCEPTRON_BELIEFS
from onepass.estimators.base import OUTLIERS, OnePassEstimator
from onepass.estimators.blueprints import NumberPerceptrons
from onepass.estimators.documentation import documented
from onepass.estimators.learner import member_predictions
from onepass.estimators.posterior import Coefficients, add_noise, draw_counts, draw_functions, linear_coefficients
from onepass.estimators.rows import PredictedRows, Rows
from onepass.estimators.targets import NumberTargets, has_columns
from onepass.estimators.transforms import as_transform
from onepass.files.state import Parameters
from onepass.likelihoods import Gaussian, Likelihood, NegativeBinomial, likelihood_names, named
from onepass.likelihoods.counts import dispersion_of
from onepass.likelihoods.mixtures import mixture_moments
from onepass.models.distribution import Prediction
from onepass.models.mixture import Mixture

__all__ = ["BayesianPerceptronRegressor", "OnePassRegressor"]


class OnePassRegressor(RegressorMixin, OnePassEstimator):  # type: ignore[misc]
    """What all regressors share; a subclass says which models learn."""

    observation: str
    noise: Any
    intervals: str
    target_transform: Any

    _target_checks: ClassVar = {"multi_output": True, "y_numeric": True}

    def _check_parameters(self) -> None:
        one_of(self.observation, ("auto", *likelihood_names(self._can_learn)), "observation")
        one_of(self.intervals, INTERVALS, "intervals")
        if as_transform(self.target_transform) is not None and not self._likelihood.is_numeric:
            raise ValueError(
                f"target_transform={self.target_transform!r} needs targets that are numbers, got observation="
                f"{self._likelihood.name!r}; counts have an exponential rate as they are"
            )
        super()._check_parameters()
        if not (isinstance(self.noise, str) and self.noise == "learn"):
            self._likelihood().choose_noise(self.noise)

    @staticmethod
    def _can_learn(kind: type[Likelihood]) -> bool:
        """Whether the models can learn such targets."""
        return not kind.is_label

    @property
    def _likelihood(self) -> type[Likelihood]:
        """How targets come about, chosen by the user or for the user."""
        return Gaussian if self.observation == "auto" else named(self.observation)

    def _targets_of(self, y: Any, classes: Any) -> NumberTargets:
        return NumberTargets.of(self._likelihood, y, as_transform(self.target_transform))

    def _restored_targets(self, parameters: Parameters) -> NumberTargets:
        return NumberTargets.from_parameters(self._likelihood, parameters, as_transform(self.target_transform))

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
        if sample_weight is None and self._learn_row(X, y):
            return self
        return self._learn(X, y, sample_weight)

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> PredictedRows:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning.

        The first ``warm_up`` rows of a standardised model are predicted with a preliminary scale, the very first row
        not at all (NaN), and they are not scored.
        """
        return self._predict_then_learn(X, y, sample_weight)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def predict(self, X: Any, return_std: bool) -> Any: ...
    @overload
    def predict(self, X: Any, *, return_dist: Literal[True]) -> Prediction: ...
    def predict(self, X: Any, return_std: bool = False, *, return_dist: bool = False) -> Any:
        """Expected targets, ``(n,)`` or ``(n, q)``; with ``return_std`` also the standard deviations of new targets.

        With ``return_dist`` it is `predict_dist`, which a pipeline passes on.
        """
        if return_dist:
            if return_std:
                raise ValueError("pass either return_std=True or return_dist=True: the distribution has its std")
            return self.predict_dist(X)
        seen = None if self.target_transform is not None else self._predict_row(X)
        if seen is None or self._learner.targets.many:
            mean, std = self._moments(X)
            return (mean, std) if return_std else mean
        scaling = self._learner.state.targets
        mean = seen.mean * scaling.scale + scaling.centre
        return (mean, np.array([sqrt(seen.var)]) * scaling.scale) if return_std else mean

    def _moments(self, X: Any) -> tuple[FloatArray, FloatArray]:
        if self.target_transform is not None:
            mean, *variances = self._fitted.predict(self._encoded(X))
            return mean, np.sqrt(sum(variances))
        rows, scaling, moments = self._rows(X), self._learner.state.targets, []
        for mixture in self._learner.state.mixtures:
            parts = member_predictions(mixture, rows)
            moments.append(mixture_moments(mixture.component_weights, parts.mean, parts.var + parts.noise_var))
        mean, var = (np.column_stack(own) for own in zip(*moments, strict=True))
        return self._shaped(scaling.undo(mean)), self._shaped(np.sqrt(var) * scaling.scale)

    def _shaped(self, columns: FloatArray) -> FloatArray:
        shaped: FloatArray = self._learner.targets.shaped(columns)
        return shaped

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits between which a new target lies with probability ``level``.

        With ``intervals="adaptive"`` they are those that were tracked.
        """
        as_share(level, "level", open_above=True)
        learner = self._fitted
        low, high = (self._shaped(side) for side in learner.interval(self._encoded(X), level))
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
        random, rows = check_random_state(random_state), self._rows(X)
        drawn = [self._drawn_targets(mixture, rows, n_samples, random) for mixture in self._learner.state.mixtures]
        return self._as_samples(drawn)

    def sample_function(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw functions from the posterior: ``(n, n_samples)``, or ``(n, q, n_samples)``.

        The values are expected targets, without noise. All rows of a draw share its weights, as Thompson sampling
        needs.
        """
        random, rows = check_random_state(random_state), self._rows(X)
        mixtures = self._learner.state.mixtures
        return self._as_samples([draw_functions(one, rows, n_samples, random).outputs for one in mixtures])

    def _drawn_targets(
        self, mixture: Mixture, rows: list[Rows], n_samples: int, random: np.random.RandomState
    ) -> FloatArray:
        """New targets as the models have them, ``(n_samples, n)``."""
        draws, parts = draw_functions(mixture, rows, n_samples, random), member_predictions(mixture, rows)
        if self._likelihood.is_count:
            return draw_counts(draws, dispersion_of(parts.mean, parts.var, parts.noise_var), random)
        noise_var = parts.noise_var
        if any(row.variances is not None for row in rows):  # functions are drawn for the means of uncertain inputs
            certain = member_predictions(mixture, [Rows(row.X) for row in rows])
            noise_var = noise_var + np.maximum(parts.var - certain.var, 0.0)
        log_noise_var = np.array([part.log_noise_var for _, part in mixture.components])
        return add_noise(draws, noise_var, log_noise_var, random)

    def _as_samples(self, drawn: list[FloatArray]) -> FloatArray:
        """Draws of each output, ``(n_samples, n)``, in the targets' own units and in scikit-learn's order."""
        outputs, transform = self._learner.state.targets.undo(np.stack(drawn, axis=-1)), self._learner.targets.transform
        outputs = outputs if transform is None else transform.from_model(outputs)
        return np.asarray(np.moveaxis(outputs if self._learner.targets.many else outputs[..., 0], 0, -1))

    @property
    def noise_(self) -> Any:
        """Current variance of the noise; for counts their dispersion."""
        learner = self._fitted
        values = [
            mixture.weights @ [learner.blueprint.noise_of(member) for member in mixture.members] * scale**2
            for mixture, scale in zip(learner.state.mixtures, learner.state.targets.scale, strict=True)
        ]
        return np.array(values) if learner.targets.many else float(values[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.target_tags.positive_only = self._likelihood.is_count
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predicted means; for several outputs the mean over them, each over the rows that have it."""
        if not has_columns(y) or not np.isnan(targets := np.asarray(y, dtype=np.float64)).any():
            return float(super().score(X, y, sample_weight))
        predicted, seen, scores = self.predict(X), ~np.isnan(targets), []
        for k in np.flatnonzero(seen.any(axis=0)):
            rows = seen[:, k]
            weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
            scores.append(r2_score(targets[rows, k], predicted[rows, k], sample_weight=weights))
        if not scores:
            raise ValueError("y must have at least one number that is not NaN, got only NaN")
        return float(np.mean(scores))


@documented
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
    @fit_intercept
    covariance : {"auto", "full", "diagonal"}
        Keep all correlations between weights, or none, for very many features. ``"auto"`` keeps all of them up to 10
        million numbers, that is 3,162 weights with one ``prior_scale``, for which a row takes one or two milliseconds,
        and none otherwise. ``"full"`` is for more, up to 1.6 GB. `covariance_` says what was chosen.
    @outliers_of_numbers
    @change
    @passes_of_perceptrons
    @intervals
    @target_transform
    standardize : bool
        Standardise the inputs, and with a linear activation the targets, by mean and standard deviation of the first
        ``warm_up`` rows. Targets of ``"relu"`` and ``"leaky_relu"``, and sparse rows that stay sparse (with a diagonal
        covariance), are only divided by their size. The statistics stay fixed after that. With False,
        ``prior_scale`` is in the targets' units, and a warning says if it doesn't fit them; a scaler in a pipeline
        does not help there, because it does not see the targets.
    @warm_up
    missing : {"error", "mean", "standard"}
        What to do about NaN among the inputs: raise an error, or use the mean of the column so far, with the
        column's variance as its uncertainty. ``"standard"`` uses mean and variance of the rows that set the
        scale (0 and 1, if the inputs were standardised before), which takes no time where nothing is missing.
        (A categorical column of a data frame becomes columns of 0 and 1; a category that the first data frame
        did not have is all zeros.)

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
    @log_evidence_of_numbers
    @learned

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

    _blueprint = NumberPerceptrons
    _chooses_scale = True
    _chooses_intercept_scale = True

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
        covariance: str = "auto",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        passes: int = 1,
        refine: str = "auto",
        intervals: str = "model",
        target_transform: Any = None,
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
        self.intervals = intervals
        self.target_transform = target_transform
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
        whole = PERCEPTRON_BELIEFS[str(self.covariance_)].keeps_correlations
        return np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1) if whole else cov)

    @property
    def coef_cov_(self) -> FloatArray:
        """Covariance of the weights, in the units of the data; with a diagonal covariance its diagonal."""
        return np.asarray(self._stacked("cov"))

    @staticmethod
    def _can_learn(kind: type[Likelihood]) -> bool:
        return not (kind.is_label or kind.needs_network)

    @property
    def _likelihood(self) -> type[Likelihood]:
        is_dispersed = self.observation == "auto" and isinstance(self.noise, str) and self.noise == "learn"
        if is_dispersed and as_activation(self.activation) == Exponential():
            return NegativeBinomial
        return super()._likelihood

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self.covariance, ("auto", *PERCEPTRON_BELIEFS), "covariance")

    def _stacked(self, part: str) -> Any:
        """A part of the coefficients, for all outputs."""
        parts = [getattr(coefficients, part) for coefficients in self._coefficients()]
        return np.array(parts) if self._learner.targets.many else parts[0]

    def _coefficients(self) -> list[Coefficients]:
        state = self._fitted.state
        return [
            linear_coefficients(mixture, state.inputs, scale, centre)
            for mixture, scale, centre in zip(state.mixtures, state.targets.scale, state.targets.centre, strict=True)
        ]
