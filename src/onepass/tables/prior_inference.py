"""How large weights are likely to be, inferred from the first rows: the prior of a perceptron.

One prior for all tables is too wide for many features and few rows, which it then fits by chance, and for categories
that were never seen, whose intervals it widens. How much the features matter shows in the first rows: the prior is that
under which their targets are most probable. Numbers share one scale, and every column of categories, words or dates
has its own, the standard deviation between them; so a new category is expected to differ as much as the known ones do.

The evidence of a linear model is maximised by MacKay's fixed point. For labels and counts it is one of the targets as
numbers, whose weights are then turned into log odds (as a linear discriminant has them) or log rates: what is needed is
only their size.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import issparse

from onepass._typing import FloatArray
from onepass.estimators.rows import as_dense
from onepass.estimators.scaling import zero_for_nan
from onepass.tables.columns.column import Column
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.values import Bad, as_texts
from onepass.tables.targets import ClassTarget, CountTarget, Target

__all__ = ["Prior", "column_groups", "evident_scales", "infer_prior", "infer_prior_per_key"]

_LEAST_ROWS, _MOST_ROWS = 10, 1000
_MOST_KEYS = 20  # whose rows are looked at one by one
_MOST_NUMBERS = 2**23  # in the rows, and in the products of all groups: 64 MB each
_STEPS, _CLOSE = 15, 0.005  # at most, and the smallest change of a log variance that counts
_FARTHEST = 5.0  # standard deviations: targets beyond count as that far, so that a few wild ones don't set the noise
_WIDEST, _NARROWEST = 10.0, 1 / 30  # prior scales: of the targets' own, and of the first guess
_LEAST_NOISE = 1e-6  # of the targets' variance
_LEAST_UNEXPLAINED = 0.05  # share of a label's variance: classes may be separable among a few rows


class Prior(NamedTuple):
    """What the first rows say about the weights."""

    scales: tuple[float, ...]
    """Standard deviations of the weights, one per feature."""
    noise: float
    """Variance of the targets' noise, in units of the variance that they have."""


def infer_prior(encoding: Encoding, target: Target, sample: Any) -> Prior | None:
    """Infer a prior from some rows; None if there are too few, or if their targets are all the same.

    Parameters
    ----------
    encoding, target : what the columns of the rows mean
    sample : pyarrow.Table
    """
    groups = column_groups(encoding.columns)
    most = int(min(_MOST_ROWS, np.sqrt(_MOST_NUMBERS / (max(groups) + 1)), _MOST_NUMBERS / max(encoding.n_dense, 1)))
    places = np.unique(np.linspace(0, sample.num_rows - 1, min(most, sample.num_rows)).astype(np.int64))
    batch = sample.take(places).combine_chunks().to_batches()[0]
    encoded = encoding.encode(batch)
    bad: Bad = dict(encoded.bad)
    y = target.encode(batch.column(batch.schema.get_field_index(target.name)), bad)
    kept = np.setdiff1d(np.arange(len(y)), list(bad))
    if len(kept) < _LEAST_ROWS or np.ptp(y[kept]) == 0.0:
        return None
    responses, units = _as_responses(y[kept], target)
    found, noise = evident_scales(zero_for_nan(encoded.X[kept]), responses, np.array(groups))
    if isinstance(target, ClassTarget):
        found = found / max(noise, _LEAST_UNEXPLAINED)
    scales = np.minimum(found * units, _WIDEST)
    return Prior(tuple(scales[groups].tolist()), noise)


def infer_prior_per_key(encoding: Encoding, target: Target, sample: Any, by: str) -> Prior | None:
    """Infer the prior of the weights that each key has for itself, from the rows of those that have most.

    Rows of all keys together would say how large the weights are on average, and weights of both signs are 0 then.

    Parameters
    ----------
    encoding, target, sample : as for `infer_prior`
    by : the column of the keys
    """
    counts = pc.value_counts(as_texts(sample[by], by).drop_null())
    known = sorted(counts.to_pylist(), key=lambda one: -one["counts"])[:_MOST_KEYS]
    found: list[tuple[int, Prior]] = []
    for one in known:
        own = sample.filter(pc.equal(as_texts(sample[by], by), one["values"]))
        prior = infer_prior(encoding, target, own) if one["counts"] >= _LEAST_ROWS else None
        if prior is not None:
            found.append((one["counts"], prior))
    if not found:
        return None
    shares = np.array([count for count, _ in found]) / sum(count for count, _ in found)
    variances = shares @ np.square([prior.scales for _, prior in found])
    return Prior(tuple(np.sqrt(variances).tolist()), float(shares @ [prior.noise for _, prior in found]))


def column_groups(columns: tuple[Column, ...]) -> list[int]:
    """For every feature the number of the scale that its weight shares: 0 for all numbers, else one per column."""
    groups, last = [], 0
    for column in columns:
        own = not column.shares_scale
        last += own
        groups += [last if own else 0] * len(column.features)
    return groups


def evident_scales(X: Any, Y: FloatArray, groups: Any) -> tuple[FloatArray, float]:
    """Standard deviations of the weights of each group of features, and the noise, for which targets are most probable.

    Parameters
    ----------
    X : (n, d) array, dense or sparse
    Y : (n, q) array
        Of unit variance; each column has weights of its own, and all have the same scales.
    groups : (d,) array of int
        The group of each feature.
    """
    n_groups = int(groups.max()) + 1
    Y = Y - Y.mean(axis=0)
    n, rest = X.shape[0], 0.0
    if not issparse(X):
        X = X - X.mean(axis=0)
        if n > X.shape[1]:  # as many rows as features tell the same of the weights
            Q, X = np.linalg.qr(X)
            rest = float(np.mean(np.square(Y).sum(axis=0)))
            Y = Q.T @ Y
            rest = max(rest - float(np.mean(np.square(Y).sum(axis=0))), 0.0)
    products = np.array([_products(X[:, groups == g]) for g in range(n_groups)])
    # Before the data are asked, half of the targets' variance is from the weights, a like share from each.
    guess = 1.0 / max(float(np.trace(products.sum(axis=0))) / n, 1.0)
    variances, noise = np.full(n_groups, guess), 0.5
    for _ in range(_STEPS):
        whole = np.tensordot(variances, products, 1)
        whole[np.diag_indices(len(whole))] += noise
        factor = cho_factor(whole, lower=True)
        residuals, inverse = cho_solve(factor, Y), cho_solve(factor, np.eye(len(whole)))
        determined = variances * np.tensordot(products, inverse, 2)  # weights that the rows determine, of each group
        squares = variances**2 * np.einsum("iq,gij,jq->g", residuals, products, residuals) / Y.shape[1]
        unexplained = noise**2 * float(np.mean(np.square(residuals).sum(axis=0))) + rest
        noise = max(unexplained / max(n - determined.sum(), 0.05 * n), _LEAST_NOISE)
        # The guess counts as one more weight, so that a group that nothing is known of keeps it.
        before = variances
        variances = np.clip((squares + guess) / (determined + 1.0), guess * _NARROWEST**2, _WIDEST**2)
        if np.abs(np.log(variances / before)).max() < _CLOSE:
            break
    return np.sqrt(variances), noise


def _products(X: Any) -> FloatArray:
    """Products of all pairs of rows, which are centred if they are not yet: sparse ones have stayed so."""
    found = X @ X.T
    if not issparse(found):
        return np.asarray(found)
    dense = as_dense(found)
    return np.asarray(dense - dense.mean(axis=0) - dense.mean(axis=1)[:, None] + dense.mean())


def _as_responses(y: FloatArray, target: Target) -> tuple[FloatArray, float]:
    """Targets as columns of unit variance, and what weights for them have to be multiplied by."""
    if isinstance(target, ClassTarget):
        classes = np.arange(1 if len(target.labels) == 2 else 0, len(target.labels))
        columns = (y[:, None] == classes[np.isin(classes, y)]).astype(np.float64)
        shares, stds = columns.mean(axis=0), columns.std(axis=0)
        return (columns - shares) / stds, float(np.average(1.0 / stds, weights=shares))
    if isinstance(target, CountTarget):
        # Around the mean count m, 2 log(1 + y/m) rises by as much as the log rate; it is finite at 0, and tame above.
        y = 2.0 * np.log1p(y / y.mean())
    std = float(y.std())
    return np.clip((y - y.mean()) / std, -_FARTHEST, _FARTHEST)[:, None], std
