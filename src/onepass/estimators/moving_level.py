"""A linear regression whose level moves with time, as an estimator of encoded rows: see `onepass.models.moving_level`.

One feature is the time. Intercept and weights answer for what the features say; the level adds what rows close in time
have in common, and fades with the distance from the last row.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from onepass._typing import FloatArray
from onepass._validation import as_count, as_positive
from onepass.activations import as_activation
from onepass.estimators.rows import PredictedRows, Rows
from onepass.estimators.scaling import zero_for_nan
from onepass.files.state import Arrays, Parameters, as_number, as_tally, sized
from onepass.likelihoods import Gaussian
from onepass.models.distribution import Family, Mixed, Prediction
from onepass.models.moving_level import MovingLevels
from onepass.models.prediction import PredictedMoments

__all__ = ["MovingLevelRegressor"]

_FIRST_NOISE = 0.1  # variance, of targets of variance 1


class MovingLevelRegressor(BaseEstimator):  # type: ignore[misc]
    """Bayesian linear regression around a level that moves with time.

    Inputs and targets are standardised already; an input that is NaN counts as 0, the mean. Rows come in the order of
    time: one that is older than a row before it tells less of the level, the older it is.

    Parameters
    ----------
    time : int
        Which feature is the time.
    step : float
        The usual time between rows, in the units of that feature.
    prior_scale : float, or one per feature
        Standard deviations of the weights before the first row.
    intercept_scale : float
        Standard deviation of the intercept before the first row.
    noise_start : float, optional
        A first guess of the noise variance.

    Examples
    --------
    >>> from onepass.estimators import start_learner
    >>> t = np.arange(300.0)
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=300)) / 10.0
    >>> model = MovingLevelRegressor(0, 1 / 300)
    >>> _ = start_learner(model, 1).learn(Rows(t[:, None] / 300, walk))
    >>> mean, std = model.predict([[300 / 300], [400 / 300]], return_std=True)
    >>> bool(abs(mean[0] - walk[-1]) < 0.1), bool(std[1] > 3.0 * std[0])
    (True, True)
    """

    activation = "linear"  # what other estimators let users choose
    covariance = "full"
    noise = "learn"
    outliers: float = 0.0
    forgetting: float = 1.0
    drift: float = 0.0
    has_level = True  # what others have not

    n_features_in_: int
    _levels: MovingLevels

    def __init__(
        self,
        time: int,
        step: float,
        *,
        prior_scale: Any = 1.0,
        intercept_scale: float = 4.0,
        noise_start: float | None = None,
    ) -> None:
        self.time = time
        self.step = step
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.noise_start = noise_start

    def _start(self, n_features: int, classes: Any = None, *, scaled_targets: bool = True) -> Self:
        """Forget everything, and give the learner, ready to predict from the prior alone."""
        d = self.n_features_in_ = as_count(n_features, "n_features")
        if not 0 <= self.time < d:
            raise ValueError(f"time must be the place of one of {d} features, got {self.time!r}")
        scales = np.broadcast_to(np.asarray(self.prior_scale, dtype=np.float64), d)
        own = as_positive(self.intercept_scale, "intercept_scale")
        noise = _FIRST_NOISE if self.noise_start is None else as_positive(self.noise_start, "noise_start")
        step = as_positive(self.step, "step")
        self._levels = MovingLevels(np.square([own, *scales]), noise, step)
        self._n_rows, self._weight_sum, self._log_evidence = 0, 0.0, 0.0
        return self

    # As the learner of an estimator: see `onepass.estimators.learner`.

    @property
    def _learner(self) -> Self:
        return self

    def learn(self, rows: Rows) -> Self:
        """Learn rows in their order."""
        self.predict_then_learn(rows)
        return self

    def predict_then_learn(self, rows: Rows) -> PredictedRows:
        """Predict every row just before learning it."""
        scored = self._levels.learn(*self._timed(rows.X), rows.y, rows.weights)
        found = np.array(scored, dtype=np.float64).reshape(len(rows), 5)
        weights = rows.full_weights
        self._n_rows += rows.n_counted
        self._weight_sum += float(weights.sum())
        self._log_evidence += float(weights @ found[:, 3])
        return PredictedRows._make([*found.T, np.zeros(len(rows)), None])

    def score(self, rows: Rows) -> PredictedRows:
        """Predict and score rows as `predict_then_learn`, without learning them."""
        seen = self.predict_dist(rows.X)
        nothing = np.zeros(len(rows))
        moments = seen.moments
        return PredictedRows(moments.mean, moments.var, moments.noise_var, seen.logpdf(rows.y), nothing, nothing)

    def close_block(self) -> None:
        """Do nothing: every row is learned at once."""

    def linear_belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``(1 + d,)`` and covariance of the intercept and the weights; the level comes on top of them."""
        return self._levels.belief()

    def _timed(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """The times of rows, and their features after a 1."""
        X = np.asarray(X, dtype=np.float64)
        return X[:, self.time], np.column_stack([np.ones(len(X)), zero_for_nan(X)])

    # Predicting.

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Expected targets, ``(n,)``; with ``return_std`` also the standard deviations of new targets."""
        seen = self.predict_dist(X)
        return (seen.mean, seen.std) if return_std else seen.mean

    def predict_dist(self, X: Any) -> Prediction:
        """Predictive distributions of new targets: those of all hypotheses, by their probabilities."""
        seen = self._levels.predict(*self._timed(X))
        noise = np.broadcast_to(seen.noise_var[:, None], seen.mean.shape)
        parts = PredictedMoments(seen.mean, seen.var, seen.mean, seen.var, noise)
        mean, var, noise_var = seen.moments()
        return Prediction(
            Family(Gaussian(), as_activation("linear")),
            PredictedMoments(mean, var, mean, var, noise_var),
            mixed=Mixed(seen.weights, parts, np.zeros(len(seen.weights))),
        )

    def level(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the level at the times of rows, ``(n,)`` each."""
        times, rows = self._timed(X)
        mean, var, _ = self._levels.predict(times, np.zeros_like(rows)).moments()
        return mean, var

    def share_ahead(self, X: Any) -> FloatArray:
        """How much of the variance of new targets is not known already for rows right after the last one, ``(n,)``.

        Without a level nothing is known to depend on the distance, and it is all of the variance.
        """
        times, rows = self._timed(X)
        seen = self._levels.predict(times, rows)
        now = self._levels.predict(np.full(len(times), self._levels.last_time), rows)
        _, var, noise_var = seen.moments()
        known = now.weights[1:] @ (now.var + now.noise_var[:, None])[1:]
        return np.asarray(np.clip(1.0 - known / (var + noise_var), 0.0, 1.0))

    # What was learned.

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        return self._n_rows

    @property
    def weight_sum_(self) -> float:
        """Sum of the weights of all rows learned."""
        return self._weight_sum

    @property
    def n_set_aside_(self) -> int:
        """Rows that were counted but not learned, since their target was absurdly far off."""
        return self._levels.n_set_aside

    @property
    def level_probability_(self) -> float:
        """The probability that there is a level that moves."""
        return self._levels.level_probability

    @property
    def coef_(self) -> FloatArray:
        """Mean weights."""
        return np.asarray(self.linear_belief()[0][1:])

    @property
    def intercept_(self) -> float:
        """Mean of the intercept."""
        return float(self.linear_belief()[0][0])

    @property
    def coef_cov_(self) -> FloatArray:
        """Covariance of the weights."""
        return np.asarray(self.linear_belief()[1][1:, 1:])

    @property
    def noise_(self) -> float:
        """Variance of the noise around the level."""
        return self._levels.noise

    @property
    def log_evidence_(self) -> float:
        """Sum of the log densities of all rows, each before it was learned."""
        return self._log_evidence

    # Files.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        given = self.get_params(deep=False)
        scale = np.asarray(given.pop("prior_scale"), dtype=np.float64)
        parameters: Parameters = {
            "arguments": given,
            "n_features": self.n_features_in_,
            "n_rows": self._n_rows,
            "weight_sum": self._weight_sum,
            "log_evidence": self._log_evidence,
        }
        scales = np.broadcast_to(scale, self.n_features_in_).copy()
        return parameters, {"prior_scale": scales, **self._levels.to_arrays()}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the estimator that `export_state` described; it continues to learn exactly as that one would."""
        d = as_count(parameters["n_features"], "n_features")
        scale = tuple(sized(arrays, "prior_scale", (d,)).tolist())
        estimator = cls(**parameters["arguments"], prior_scale=scale)._start(d)
        estimator._levels = estimator._levels.with_arrays(arrays)
        estimator._n_rows = as_tally(parameters["n_rows"], "n_rows")
        estimator._weight_sum = as_number(parameters["weight_sum"], "weight_sum")
        estimator._log_evidence = as_number(parameters["log_evidence"], "log_evidence")
        return estimator
