"""A perceptron for each key, such as a store or a device, with a common prior that is learned from all keys.

The prior is learned from all keys, and again whenever the number of rows has doubled; each key then keeps what its own
rows have shown, and takes the rest from the others (`PerceptronFleet.pool`). A key that was never seen is predicted
from the common prior. The state depends on the rows alone and not on how calls divided them.

All keys have the same noise. Each time the prior is learned, the noise is set to the nearby value under which the rows
since the last time are most probable.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from onepass._limits import INTERVALS
from onepass._typing import FloatArray
from onepass._validation import as_count, one_of
from onepass.beliefs.prior import prior_variances
from onepass.estimators.rows import PredictedRows, Rows
from onepass.estimators.scaling import zero_for_nan
from onepass.files.state import Arrays, Parameters, as_number, as_tally, nested, sized, under
from onepass.models.adaptive import given_quantiles
from onepass.models.distribution import Prediction
from onepass.models.fleet import PerceptronFleet
from onepass.models.fleet.tracking import KeyedTracker
from onepass.models.prediction import PredictedMoments, RowScores
from onepass.models.tracking import TrackedPlaces

__all__ = ["FleetEstimator"]

_FIRST_POOLING = 32  # rows after which keys share for the first time
_FIRST_NOISE = 0.25  # variance, of targets of variance 1
_NOISES = 4.0 ** np.linspace(-1.0, 1.0, 17)  # compared with each other, relative to the present one


class FleetEstimator:
    """One perceptron per key, linear for numbers or sigmoid for two classes, with a prior learned from all keys.

    Inputs are standardised already; one that is NaN counts as 0, the mean.

    Parameters
    ----------
    n_features : int
    activation : {"linear", "sigmoid", "probit"}
        Linear for numbers; one of the others for labels 0 and 1.
    noise : float or "learn"
        Variance of the targets' noise, for numbers. A learned noise starts at a value for standardised targets.
    prior_scale : float, or one per feature
        Standard deviations of the weights before the first row of the first key.
    intercept_scale : float
        Standard deviation of the intercept before the first row of the first key.
    outliers, forgetting : float
        As for `onepass.BayesianPerceptronRegressor`.
    intervals : {"model", "adaptive"}
        Whether intervals are those of the model, or track where the targets of each key really fall; keys with few rows
        take more from all others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> slopes = {"ann": 1.0, "bob": 1.2, "eve": 0.8}
    >>> keys, X = rng.choice(list(slopes), 300).tolist(), rng.normal(size=(300, 1))
    >>> y = np.array([slopes[key] for key in keys]) * X[:, 0] + 0.1 * rng.normal(size=300)
    >>> model = FleetEstimator(1).learn(Rows(X, y, keys=keys))
    >>> mean, std = model.predict([[1.0]] * 4, return_std=True, keys=["ann", "bob", "eve", "new"])
    >>> mean.round(1), bool(std[3] > std[0])
    (array([1. , 1.2, 0.8, 1. ]), True)

    The key ``"new"`` has no rows: its mean is that of the other keys, and its standard deviation is larger.
    """

    covariance = "full"  # what others can choose
    drift: float = 0.0

    def __init__(
        self,
        n_features: int,
        activation: str = "linear",
        *,
        noise: Any = "learn",
        prior_scale: float | Sequence[float] = 1.0,
        intercept_scale: float | None = 4.0,
        outliers: float = 0.0,
        forgetting: float = 1.0,
        intervals: str = "model",
    ) -> None:
        self.n_features_in_: int = as_count(n_features, "n_features")
        self.activation = activation
        self.noise = noise
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.outliers = outliers
        self.forgetting = forgetting
        self.intervals = one_of(intervals, INTERVALS, "intervals")
        if intervals == "adaptive" and not self._predicts_numbers:
            raise ValueError(
                "intervals='adaptive' needs activation='linear': labels have probabilities, which are never observed"
            )
        self._tracker = KeyedTracker() if intervals == "adaptive" else None
        self._fleet = PerceptronFleet(
            n_features,
            activation,
            cov=prior_variances(n_features, 1, np.asarray(prior_scale), intercept_scale),
            noise=(_FIRST_NOISE if self._learns_noise else noise) if self._predicts_numbers else None,
            outliers=outliers,
            forgetting=forgetting,
        )
        self._n_rows = 0
        self._noise_evidence = np.zeros(len(_NOISES))  # log densities of the rows since keys shared last

    @property
    def _learns_noise(self) -> bool:
        return self._predicts_numbers and self.noise == "learn"

    @property
    def _predicts_numbers(self) -> bool:
        return self.activation == "linear"

    @property
    def classes_(self) -> Any:
        """The labels 0 and 1; empty for numbers."""
        return np.arange(0 if self._predicts_numbers else 2)

    # Learning.

    @property
    def _learner(self) -> Self:
        """What learns encoded rows: the estimator itself, see `onepass.estimators.learner`."""
        return self

    def learn(self, rows: Rows) -> Self:
        """Learn rows, which have keys, in their order."""
        for part in self._parts(len(rows)):
            self._predict_score_learn(rows.at(part))
        return self

    def predict_then_learn(self, rows: Rows) -> PredictedRows:
        """Predict every row just before learning it."""
        found = []
        for part in self._parts(len(rows)):
            seen, scores, places = self._predict_score_learn(rows.at(part))
            found.append(PredictedRows(*self._per_class(seen), *scores[:3], places))
        return PredictedRows.joined(found)

    def score(self, rows: Rows) -> PredictedRows:
        """Predict and score rows as `predict_then_learn`, without learning them."""
        prediction = self._fleet.predict(zero_for_nan(rows.X), keys=rows.keys)
        scores = np.atleast_1d(prediction.logpdf(rows.y)), np.zeros(len(rows)), np.zeros(len(rows))
        places = None
        if self._tracker is not None:  # limits stay while nothing is learned
            z = np.atleast_1d(prediction.normal_score(rows.y))
            places = TrackedPlaces(z, self._tracker.next(list(rows.keys or ())))
        return PredictedRows(*self._per_class(prediction.moments), *scores, places)

    def _parts(self, n: int) -> Iterator[slice]:
        """Rows to learn before keys share what they have in common again, and those after."""
        edges, at = [0], _FIRST_POOLING
        while at < self._n_rows + n:
            if at > self._n_rows:
                edges.append(at - self._n_rows)
            at *= 2
        yield from (slice(*pair) for pair in pairwise([*edges, n]))

    def _predict_score_learn(self, rows: Rows) -> tuple[PredictedMoments, RowScores, TrackedPlaces | None]:
        targets = rows.y
        prediction, scores = self._fleet.predict_score_learn(zero_for_nan(rows.X), targets, **rows.options)
        seen, places = prediction.moments, None
        if self._tracker is not None:
            z = np.atleast_1d(prediction.normal_score(targets))
            given = given_quantiles(self._tracker.normal, prediction, rows.limits)
            places = TrackedPlaces(z, self._tracker.update(z, None, given, keys=list(rows.keys or ())))
        if self._learns_noise:
            var = seen.var[:, None] + seen.noise_var[:, None] * _NOISES
            densities = -0.5 * (np.log(var) + np.square(targets - seen.mean)[:, None] / var)
            self._noise_evidence += (1.0 - scores.outliers) @ densities
        self._n_rows += len(targets)
        # A power of two times the first number.
        times, rest = divmod(self._n_rows, _FIRST_POOLING)
        if rest == 0 and times & (times - 1) == 0 and len(self._fleet) > 1:
            noise = self.noise_ * _NOISES[self._noise_evidence.argmax()] if self._learns_noise else None
            self._fleet.pool(noise)
            self._noise_evidence = np.zeros(len(_NOISES))
        return seen, scores, places

    def close_block(self) -> None:
        """Do nothing: a fleet learns every row at once."""

    # Predicting.

    def predict(self, X: Any, return_std: bool = False, *, keys: Sequence[str]) -> Any:
        """Expected targets, ``(n,)``; with ``return_std`` also the standard deviations of new targets."""
        seen = self._seen(X, keys)
        return (seen.mean, np.sqrt(seen.var + seen.noise_var)) if return_std else seen.mean

    def predict_proba(self, X: Any, *, keys: Sequence[str]) -> FloatArray:
        """Probabilities of both labels, ``(n, 2)``."""
        return self._per_class(self._seen(X, keys))[0]

    def predict_interval(self, X: Any, level: float = 0.95, *, keys: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits between which a new target lies with probability ``level``."""
        low, high = self.predict_dist(X, keys=keys).interval(level)
        return low, high

    def predict_dist(self, X: Any, *, keys: Sequence[str]) -> Prediction:
        """Predictive distributions of new targets."""
        seen = self._fleet.predict(zero_for_nan(np.asarray(X, dtype=np.float64)), keys=list(keys))
        return seen if self._tracker is None else seen.with_tracked(self._tracker.next(list(keys)))

    def _seen(self, X: Any, keys: Sequence[str]) -> PredictedMoments:
        return self._fleet.predict(zero_for_nan(np.asarray(X, dtype=np.float64)), keys=list(keys)).moments

    def _per_class(self, seen: PredictedMoments) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise; for labels of both."""
        if self._predicts_numbers:
            return seen.mean, seen.var, seen.noise_var
        mean = np.column_stack([1.0 - seen.mean, seen.mean])
        return mean, np.column_stack([seen.var, seen.var]), np.column_stack([seen.noise_var, seen.noise_var])

    # What was learned.

    def linear_belief(self, key: str) -> tuple[FloatArray, FloatArray]:
        """Mean ``(1 + d,)`` and covariance of the intercept and weights by which the next row of a key is predicted.

        For an unknown key they are the prior's.
        """
        return self._fleet.belief(key, rows_ahead=1)

    @property
    def n_keys(self) -> int:
        """Number of keys that have rows."""
        return len(self._fleet)

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        return self._n_rows

    @property
    def n_set_aside_(self) -> int:
        """Rows of all keys that were counted but not learned, since their target was absurdly far off."""
        return self._fleet.n_set_aside

    @property
    def coef_(self) -> FloatArray:
        """Mean weights of the population of keys."""
        return np.asarray(self._fleet.prior.mean[1:])

    @property
    def intercept_(self) -> float:
        """Mean intercept of the population of keys."""
        return float(self._fleet.prior.mean[0])

    @property
    def coef_cov_(self) -> FloatArray:
        """Covariance of the weights in the population: how much keys differ."""
        return np.asarray(self._fleet.prior.cov[1:, 1:])

    @property
    def noise_(self) -> float:
        """Variance of the noise, one for all keys."""
        return float(self._fleet.prior.noise)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets of a new key that can't be trusted."""
        return self._fleet.prior.outliers_

    @property
    def log_evidence_(self) -> float:
        """Sum of the log densities of all rows, each before it was learned."""
        return self._fleet.log_evidence

    # Files.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        state, arrays = self._fleet.export_state()
        names = ("activation", "noise", "prior_scale", "intercept_scale", "outliers", "forgetting", "intervals")
        arguments = {name: getattr(self, name) for name in names}
        parameters: Parameters = {
            "n_features": self.n_features_in_,
            "arguments": arguments,
            "n_rows": self._n_rows,
            "fleet": state,
        }
        tracked = {} if self._tracker is None else nested("tracker", self._tracker.to_arrays())
        return parameters, {**nested("fleet", arrays), **tracked, "noise_evidence": self._noise_evidence.copy()}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the estimator that `export_state` described; it continues to learn exactly as that one would."""
        arguments = dict(parameters["arguments"])
        for name in ("outliers", "forgetting"):
            as_number(arguments[name], name)
        scale = arguments["prior_scale"]
        single = not isinstance(scale, list | tuple)
        arguments["prior_scale"] = (
            as_number(scale, "prior_scale") if single else tuple(as_number(one, "prior_scale") for one in scale)
        )
        estimator = cls(parameters["n_features"], **arguments)
        fleet = PerceptronFleet.from_state(parameters["fleet"], under("fleet", arrays))
        if fleet.n_features != estimator.n_features_in_ or fleet.activation != estimator._fleet.activation:
            raise ValueError("the saved fleet has other features or another activation than its estimator")
        estimator._fleet = fleet
        if estimator._tracker is not None:
            estimator._tracker = KeyedTracker.from_arrays(under("tracker", arrays))
        estimator._noise_evidence = sized(arrays, "noise_evidence", (len(_NOISES),))
        estimator._n_rows = as_tally(parameters["n_rows"], "n_rows")
        return estimator
