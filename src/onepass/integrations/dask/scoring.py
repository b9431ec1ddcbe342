"""Scores of an evaluation on a cluster: every task keeps its own, and they are merged at the end."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.evaluation.metrics import Accuracy, ClassPredictions, Coverage95, NumberPredictions, RootMeanSquaredError
from onepass.likelihoods import Bernoulli, Categorical, Gaussian

__all__ = ["Tally"]


@dataclass
class Tally:
    """Metrics over the rows of one or several tasks; which of them are there depends on the model's targets."""

    rmse: RootMeanSquaredError
    """Of numbers; of labels and classes the differences of their probabilities from 0 and 1."""
    accuracy: Accuracy | None = None
    coverage: Coverage95 | None = None
    log_evidence: float = 0.0
    rows: int = 0
    """Number of rows; of several outputs every number that was observed is scored."""

    @classmethod
    def of(cls, model: Any) -> "Tally":
        """Start with no rows."""
        kind = _likelihood(model)
        if kind.is_label:
            return cls(RootMeanSquaredError(), accuracy=Accuracy())
        return cls(RootMeanSquaredError(), coverage=Coverage95() if kind.is_numeric else None)

    def update(self, model: Any, predicted: Any, y: Any) -> None:
        """Score what the model predicted for rows before it learned them."""
        self.rows += len(y)
        mean, var = predicted.mean, predicted.var
        if y.ndim == 2:  # several outputs, of which those that are NaN were not observed
            seen = ~np.isnan(y)
            y, mean, var = y[seen], mean[seen], var[seen]
        if self.accuracy is None:
            numbers = NumberPredictions(y, mean, None if self.coverage is None else np.sqrt(var))
        else:
            index = np.searchsorted(model.classes_, y) if hasattr(model, "classes_") else y.astype(np.int64)
            probabilities = _of_all_classes(mean)
            self.accuracy.update(ClassPredictions(index, probabilities))
            truth = np.eye(probabilities.shape[1])[index]
            numbers = NumberPredictions(truth, probabilities)
            if not _likelihood(model).is_class:  # the probability of a 1 says all
                numbers = NumberPredictions(truth[:, 1], probabilities[:, 1])
        self.rmse.update(numbers)
        if self.coverage is not None:
            self.coverage.update(numbers)

    def merge(self, other: "Tally") -> "Tally":
        """Add the rows of another."""
        for mine, theirs in zip(self._metrics(), other._metrics(), strict=True):
            mine.merge(theirs)
        self.log_evidence += other.log_evidence
        self.rows += other.rows
        return self

    def _metrics(self) -> list[Any]:
        return [metric for metric in (self.rmse, self.accuracy, self.coverage) if metric is not None]

    def values(self) -> dict[str, float]:
        """Values by the names of `Evaluation`; NaN for those that the targets don't have."""
        return {
            "log_loss": -self.log_evidence / self.rows,
            "rmse": self.rmse.get(),
            "accuracy": np.nan if self.accuracy is None else self.accuracy.get(),
            "coverage": np.nan if self.coverage is None else self.coverage.get(),
        }


def _of_all_classes(mean: FloatArray) -> FloatArray:
    """Probabilities ``(n, K)``, also where the model gives that of a 1 alone."""
    return mean if mean.ndim == 2 else np.column_stack([1.0 - mean, mean])


def _likelihood(model: Any) -> Any:
    """How targets come about."""
    if hasattr(model, "partial_fit"):  # an estimator
        n_classes = len(getattr(model, "classes_", ()))
        return Gaussian if not n_classes else Bernoulli if n_classes == 2 else Categorical
    return model.observation
