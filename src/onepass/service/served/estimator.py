"""Estimators: their rows are plain numbers, and they know what an average one is."""

from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
    learner_of,
)
from onepass.estimators.rows import PredictedRows, Rows
from onepass.estimators.transforms import transformed
from onepass.files.checkpoint import to_bytes
from onepass.models.distribution import Prediction
from onepass.service.errors import ProblemError
from onepass.service.served.numbers import NumberRows, number_columns
from onepass.tables.columns.encoding import Encoding
from onepass.tables.explanation import Explanation, explain
from onepass.tables.model import TabularModel
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["EstimatorRows"]

_ESTIMATORS = (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)


class EstimatorRows(NumberRows):
    """An estimator: rows are lists of numbers, or objects by the names of its features."""

    kind = "estimator"

    def __init__(self, estimator: Any) -> None:
        # Rows come as plain numbers, for which scikit-learn would warn if it knew names: these are kept separately.
        self._begin(copy(estimator), _target_of(estimator))

    def _begin(self, own: Any, target: Target) -> None:
        self._given_names = own.__dict__.pop("feature_names_in_", None)
        names = [f"x{i}" for i in range(own.n_features_in_)] if self._given_names is None else self._given_names
        super().__init__(own, target, names, allows_missing=getattr(own, "missing", "error") != "error")
        self.expects_outliers = bool(own.outliers)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is an estimator."""
        return isinstance(model, _ESTIMATORS)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen_)

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return int(self.model.n_set_aside_)

    def learn(self, rows: Rows) -> PredictedRows:
        """Learn rows in their order."""
        learner = learner_of(self.model)
        transform = None if self.labels else getattr(self.model, "target_transform", None)
        rows = rows if self.tracks_intervals else replace(rows, limits=None)
        limits = rows.limits
        if transform is not None:
            if limits is not None:  # of which some may have reached the end of what can be transformed
                with np.errstate(all="ignore"):
                    limits = np.asarray(learner.targets.transform.to_model(limits), dtype=np.float64)
                limits[~np.isfinite(limits).all(axis=1)] = np.nan
            rows = replace(rows, y=transformed(learner.targets.transform, rows.y), limits=limits)
        predicted: PredictedRows = learner.predict_then_learn(rows)
        return predicted

    @property
    def tracks_intervals(self) -> bool:
        """Whether intervals follow where the targets of rows that it learns really fall."""
        return bool(getattr(self.model, "intervals", "model") == "adaptive")

    def distribution(self, rows: Rows) -> Prediction:
        """What is predicted for numbers and counts."""
        found: Prediction = self.model.predict_dist(rows.X, **rows.options)
        return found

    def probabilities(self, rows: Rows) -> FloatArray:
        """Probabilities of all classes."""
        return np.asarray(self.model.predict_proba(rows.X, **rows.options))

    def close_block(self) -> None:
        """Let rows that were learned wait for no others, so that it does not matter where snapshots are taken."""
        learner_of(self.model).close_block()

    def explain(self, rows: Rows) -> tuple[str, Explanation]:
        """What each number adds to the prediction of an average row.

        Average numbers are the means that the estimator scales by; zeros, if it expects numbers that are scaled.
        """
        scaled = _Scaled(self.model)
        return self._unit(rows), explain(self._around(scaled), scaled.rows(rows.X))

    def weights(self) -> dict[str, list[Any]]:
        """What each number does: the change that one standard deviation brings, or 1 where numbers are not scaled."""
        return self._around(_Scaled(self.model)).weights()

    def _around(self, estimator: Any) -> TabularModel:
        return TabularModel.around(estimator, Encoding(number_columns(self.names), {}), self.target)

    def content(self) -> bytes:
        """The estimator as a file, with the names that it was given."""
        return to_bytes(self._named_model())

    def published(self) -> Self:
        """A copy that never changes."""
        return type(self)(deepcopy(self._named_model()))

    def _named_model(self) -> Any:
        if self._given_names is None:
            return self.model
        named = copy(self.model)
        named.feature_names_in_ = self._given_names
        return named


class _Scaled:
    """An estimator that is asked with numbers in standard deviations from their means, as it scales them itself.

    So a row of zeros is an average row, which explanations and weights of tables are about.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator, self._state = estimator, learner_of(estimator).state
        self._scaling = self._state.inputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimator, name)

    def rows(self, X: FloatArray) -> FloatArray:
        """Rows as it is asked with them; what is missing has the mean of its column so far."""
        scaled: FloatArray = self._scaling(X)
        moments = self._state.columns
        return scaled if moments is None else moments.filled(scaled)[0]

    def predict(self, X: FloatArray) -> Any:
        return self._estimator.predict(self._own(X))

    def predict_proba(self, X: FloatArray) -> Any:
        return self._estimator.predict_proba(self._own(X))

    def sample_function(self, X: FloatArray, n_samples: int, random_state: int) -> Any:
        return self._estimator.sample_function(self._own(X), n_samples, random_state=random_state)

    @property
    def _learner(self) -> Self:
        return self

    def linear_belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of intercept and weights, for the target in its own units."""
        mean, cov = learner_of(self._estimator).linear_belief()
        targets = self._state.targets
        mean = mean * targets.scale[0]
        mean[0] += targets.centre[0]
        return mean, cov * targets.scale[0] ** 2

    @property
    def coef_(self) -> Any:
        return self._estimator.coef_ * self._scaling.scale

    @property
    def coef_cov_(self) -> Any:
        cov, scale = self._estimator.coef_cov_, self._scaling.scale
        return cov * (np.outer(scale, scale) if cov.shape == (len(scale), len(scale)) else scale**2)

    def _own(self, X: FloatArray) -> FloatArray:
        return np.asarray(X * self._scaling.scale + self._scaling.centre)


def _target_of(estimator: Any) -> Target:
    if learner_of(estimator).encoder.categories is not None:
        raise ProblemError(
            422,
            "not a model to serve",
            "an estimator with categorical columns can't be served: make the model with 'onepass fit' instead",
        )
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        numeric = np.issubdtype(np.asarray(classes).dtype, np.number)
        return ClassTarget("y", tuple(map(str, classes)), bool(numeric))
    targets = learner_of(estimator).targets
    if targets.n_targets > 1:
        raise ProblemError(
            422, "not a model to serve", "an estimator with several targets can't be served: serve one for each"
        )
    return CountTarget("y") if targets.likelihood.is_count else NumberTarget("y", 0.0, 1.0)
