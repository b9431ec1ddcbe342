"""How much a model relies on each column: how much worse it predicts if the column's values change places.

All features of a column change places together, so the importance of a column of categories, hashed or not, of a time
or of a text is a single number. It is that of the column to the model, given the other columns: of two columns that say
the same, each may seem to matter little.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.evaluation.kept_rows import Kept
from onepass.evaluation.metrics import RowMean
from onepass.evaluation.prequential import own_predictions
from onepass.tables.model import TabularModel

__all__ = ["Importance", "column_importance"]

_MOST_NUMBERS = 2**26  # of features that are predicted for all columns together


class Importance(NamedTuple):
    """By how much a metric rises without what a column says, and the standard error of that."""

    column: str
    rise: float
    std: float


def column_importance(
    model: TabularModel, kept: Kept, metric: type[RowMean[Any]], *, repeats: int = 5, seed: int = 0
) -> list[Importance]:
    """The importance of every column, the largest first.

    Parameters
    ----------
    model : TabularModel
        Not one per key.
    kept : rows to predict
    metric : a loss, whose rise is found
    repeats : how often the values of a column change places at random
    seed : of the permutations
    """
    n, d = kept.X.shape
    rng = np.random.default_rng(seed)
    width = max(_MOST_NUMBERS // (max(d, 1) * repeats * max(len(model.encoding.columns), 1)), 50)
    if n > width:
        kept = kept.at(np.sort(rng.choice(n, width, replace=False)))
        n = width
    orders = [rng.permutation(n) for _ in range(repeats)]
    before = _losses(model, kept, kept.X, metric)
    start, found = 0, []
    for column in model.encoding.columns:
        stop = start + len(column.features)
        losses = [_losses(model, kept, _shuffled(kept.X, start, stop, order), metric) for order in orders]
        found.append(Importance(column.name, *_rise(before, np.mean(losses, axis=0), metric)))
        start = stop
    return sorted(found, key=lambda one: -one.rise)


def _losses(model: TabularModel, kept: Kept, X: Any, metric: type[RowMean[Any]]) -> Any:
    rows = kept.rows(X)
    predicted = own_predictions(model.target, rows.y, model.predict_and_score(rows), doubts=False)
    return metric.per_row(predicted)


def _rise(before: Any, after: Any, metric: type[RowMean[Any]]) -> tuple[float, float]:
    """The rise of the metric and its standard error over rows, each compared with itself."""
    change = after - before
    error = float(change.std() / np.sqrt(len(change)))
    low, high = (float(metric.of_mean(losses.mean())) for losses in (before, after))
    slope = 0.5 / max(high, 1e-300) if metric.is_root else 1.0
    return high - low, error * slope


def _shuffled(X: Any, start: int, stop: int, order: Any) -> Any:
    """Rows in which the values of some features have changed places."""
    if isinstance(X, np.ndarray):
        moved = X.copy()
        moved[:, start:stop] = X[order, start:stop]
        return moved
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack([X[:, :start], X[order][:, start:stop], X[:, stop:]], format="csr"))
