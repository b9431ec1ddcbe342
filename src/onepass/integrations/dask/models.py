"""One way to use estimators and plain models: the former have scikit-learn's methods, the latter `learn`."""

from typing import Any

__all__ = ["is_estimator", "log_evidence", "update"]


def is_estimator(model: Any) -> bool:
    """Whether a model has the methods of scikit-learn."""
    return hasattr(model, "partial_fit")


def update(model: Any, X: Any, y: Any) -> None:
    """Learn rows."""
    if is_estimator(model):
        model.partial_fit(X, y)
    else:
        model.learn(X, y)


def log_evidence(model: Any) -> float:
    """Return the log evidence of the rows learned so far."""
    return float(model.log_evidence_ if is_estimator(model) else model.log_evidence)
