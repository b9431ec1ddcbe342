"""Models of the library without an estimator around them: rows are lists of plain numbers."""

from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import PredictedRows, Rows
from onepass.models.distribution import Prediction
from onepass.models.mixture import Mixture
from onepass.models.network import BayesianNetwork
from onepass.models.perceptron import BayesianPerceptron
from onepass.service.errors import ProblemError
from onepass.service.served.numbers import NumberRows, numbered_labels
from onepass.tables.explanation import Explanation
from onepass.tables.targets import CountTarget, NumberTarget, Target

__all__ = ["PlainRows"]

_MODELS = (BayesianPerceptron, BayesianNetwork, Mixture)


class PlainRows(NumberRows):
    """A perceptron, a network or a committee."""

    kind = "plain"

    def __init__(self, model: Any) -> None:
        self._begin(model, model)

    def _begin(self, model: Any, described: Any) -> None:
        """Serve a model that is described by another one: a fleet by its prior, which is a perceptron."""
        super().__init__(model, _target_of(described), [f"x{i}" for i in range(described.n_features)])
        self.expects_outliers = bool(described.outliers)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is such a model."""
        return type(model) in _MODELS  # a network that learns by other rules is of a class below one of these

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen)

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return int(self.model.n_set_aside)

    def distribution(self, rows: Rows) -> Prediction:
        """What is predicted for numbers and counts."""
        found: Prediction = self.model.predict(rows.X, **rows.options)
        return found

    def probabilities(self, rows: Rows) -> FloatArray:
        """Probabilities of all classes."""
        return _per_class(self.model.predict(rows.X, **rows.options).mean, sides=True)

    def learn(self, rows: Rows) -> PredictedRows:
        """Learn rows in their order."""
        seen, scores = self.model.predict_score_learn(rows.X, rows.y, **rows.options)
        mean, var, noise_var = seen.mean, seen.epistemic, seen.aleatoric
        if self.labels:
            mean, var, noise_var = _per_class(mean, sides=True), _per_class(var), _per_class(noise_var)
        return PredictedRows(mean, var, noise_var, *scores[:3])

    def explain(self, rows: Rows) -> tuple[str, Explanation]:
        """Refuse: it is unknown what an average row is."""
        raise ProblemError(
            409,
            "not for this model",
            f"a {type(self.model).__name__} can't explain its predictions, because nothing tells what an average row "
            "is: serve an estimator or a model made by 'onepass fit'",
        )


def _target_of(model: Any) -> Target:
    """What the targets of a perceptron or a network are."""
    likelihood, n_outputs = model.observation, getattr(model, "n_outputs", 1)
    if likelihood.is_class:
        return numbered_labels(n_outputs)
    if n_outputs > 1:
        raise ProblemError(
            422,
            "not a model to serve",
            f"a model with {n_outputs} outputs can't be served: serve one model per output",
        )
    if likelihood.is_label:
        return numbered_labels(2)
    return CountTarget("y") if likelihood.is_count else NumberTarget("y", 0.0, 1.0)


def _per_class(values: FloatArray, *, sides: bool = False) -> FloatArray:
    """Columns for all classes, of which a single number is that of the second; probabilities of both sides add up."""
    return values if values.ndim == 2 else np.column_stack([1.0 - values if sides else values, values])
