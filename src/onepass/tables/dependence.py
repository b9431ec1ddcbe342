"""How much of a target one column explains alone: a first look at a table, before anything is learned."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from onepass._typing import FloatArray

__all__ = ["share_explained"]

_FEWEST_PER_LEVEL = 4.0  # rows, on the mean, below which levels explain by their number alone


def share_explained(values: FloatArray, outcomes: FloatArray, *, ordered: bool, classes: int = 0) -> float:
    """Share of a target that a column explains, from 0 to 1.

    Of a number it is the share of the variance: R² of a line through the values or their ranks, or if they have no
    order, of the means of their levels, corrected for the number of levels. Of a class it is the share of the errors
    of the most frequent class that are avoided, each row being predicted by other rows.

    Parameters
    ----------
    values : (n,) of the column, NaN where missing
    outcomes : (n,) numbers, or places of classes
    ordered : whether the values are numbers, or else names of levels
    classes : number of classes; 0: the target is a number

    Examples
    --------
    >>> x = np.arange(100.0)
    >>> round(share_explained(x, 3.0 * x, ordered=True), 2), round(share_explained(x % 2, x, ordered=False), 2)
    (1.0, 0.0)
    """
    known = np.isfinite(values) & np.isfinite(outcomes)
    x, y = values[known], outcomes[known]
    if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
        return 0.0
    levels = np.unique(x, return_inverse=True)[1]
    many = levels.max() + 1 > len(x) / _FEWEST_PER_LEVEL
    if classes:
        if many and not ordered:
            return 0.0
        return _errors_avoided(_by_neighbour(x, y) if many else _by_level(levels, y), y)
    if ordered:
        return max(_squared_correlation(x, y), _squared_correlation(rankdata(x), rankdata(y)))
    return 0.0 if many else _variance_between(levels, y)


def _squared_correlation(x: FloatArray, y: FloatArray) -> float:
    x, y = x - x.mean(), y - y.mean()
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return float((x @ y) ** 2 / ((x @ x) * (y @ y)))


def _variance_between(levels: NDArray[np.intp], y: FloatArray) -> float:
    """Adjusted R² of the means of the levels."""
    n, k = len(y), int(levels.max()) + 1
    means = np.bincount(levels, y) / np.bincount(levels)
    left, total = np.sum((y - means[levels]) ** 2) / (n - k), np.sum((y - y.mean()) ** 2) / (n - 1)
    return float(max(1.0 - left / total, 0.0))


def _errors_avoided(is_right: NDArray[np.bool_], y: FloatArray) -> float:
    by_guessing = 1.0 - np.unique(y, return_counts=True)[1].max() / len(y)
    return float(max(1.0 - (1.0 - is_right.mean()) / by_guessing, 0.0))


def _by_level(levels: NDArray[np.intp], y: FloatArray) -> NDArray[np.bool_]:
    """Whether each class is the most frequent one of the other rows of its level."""
    places = np.unique(y, return_inverse=True)[1]
    counts = np.zeros((int(levels.max()) + 1, int(places.max()) + 1))
    np.add.at(counts, (levels, places), 1.0)
    others = counts[levels]
    rows = np.arange(len(y))
    own = others[rows, places] - 1.0
    others[rows, places] = -1.0
    return np.asarray(own > np.maximum(others.max(axis=1), 0.0))


def _by_neighbour(x: FloatArray, y: FloatArray) -> NDArray[np.bool_]:
    """Whether each class is that of the row with the next larger value; equal values are in a random order."""
    shuffled = np.random.default_rng(0).permutation(len(x))
    order = shuffled[np.argsort(x[shuffled], kind="stable")]
    found = y[order]
    return np.append(found[:-1] == found[1:], found[-1] == found[-2])
