"""Totals that agree with their parts: forecasts of a hierarchy, given that the sums must hold.

The values to come of all series, ``y``, are Gaussian with the forecasts' means ``m`` and a covariance ``W``; the sums
are linear constraints ``C y = 0``. Conditional on them

    mean = m - W C' (C W C')^-1 C m,      cov = W - W C' (C W C')^-1 C W,

which is the trace minimisation of Wickramasuriya, Athanasopoulos and Hyndman (2019) for this ``W``. All steps are
reconciled together, so that sums over the horizon agree as well.
"""

from collections.abc import Hashable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, null_space

from onepass._typing import FloatArray
from onepass._validation import as_floats, as_floats_or_nan
from onepass.forecasting.forecast import Forecast

__all__ = ["reconcile"]

Key = TypeVar("Key", bound=Hashable)

_JITTER = 1e-12  # relative, of what the sums are conditioned by


def reconcile(
    forecasts: Mapping[Key, Forecast],
    hierarchy: Mapping[Key, Sequence[Key]] | ArrayLike,
    *,
    errors: Mapping[Key, ArrayLike] | None = None,
) -> dict[Key, Forecast]:
    """Make forecasts of totals agree with those of their parts, all by what is known about each.

    Parameters
    ----------
    forecasts : mapping from keys to Forecast
        Of all series, over the same steps.
    hierarchy : mapping, or (n, b) array
        For each total the keys of its parts, on as many levels as there are; keys that it leaves out stay as they are.
        Or a summing matrix, with a row for each of the n keys in their order, and a column for each of b parts.
    errors : mapping from keys to (t,) arrays, optional
        Earlier errors of all series' forecasts at the same times, NaN where one is missing. How they correlate is taken
        into account, shrunk towards independence. Without them forecasts are taken to err independently. Where totals
        err because their parts do, as is common, intervals are then too narrow.

    Returns
    -------
    dict from keys to Forecast
        Its decomposition is only a level. Forecasts of counts stay such: where a mean would be below 0 it is 0, and the
        sums differ by that much.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.forecasting import Forecast, reconcile
    >>> own = {"north": ([3.0], 1.0), "south": ([5.0], 1.0), "all": ([10.0], 2.0)}
    >>> given = {key: Forecast(np.array(mean), var * np.eye(1)) for key, (mean, var) in own.items()}
    >>> found = reconcile(given, {"all": ["north", "south"]})
    >>> [float(found[key].mean[0]) for key in ("north", "south", "all")]
    [3.5, 5.5, 9.0]
    """
    keys = list(forecasts)
    sums = _constraints(hierarchy, keys)
    means = _means(forecasts)
    if not len(sums):
        return dict(forecasts)
    covs = np.stack([forecast.cov for forecast in forecasts.values()])
    roots = np.stack([_root(cov) for cov in covs])
    (n, h), p = means.shape, len(sums)
    spread = np.einsum("pk,kij->pikj", sums, roots).reshape(p * h, n, h)
    crossed = spread if errors is None else np.einsum("akj,kl->alj", spread, _correlation(errors, keys))
    of_sums = crossed.reshape(p * h, n * h) @ spread.reshape(p * h, n * h).T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(of_sums), 1e-300))
    factor = cho_factor(of_sums * np.outer(scale, scale) + _JITTER * np.eye(p * h), lower=True)
    with_sums = np.einsum("akj,kij->kai", crossed, roots) * scale[:, None]  # (n, p h, h): covariance with each series
    found = means
    for _ in range(2):  # the second time takes away what the jitter has left
        found = found - np.einsum("kai,a->ki", with_sums, cho_solve(factor, scale * (sums @ found).ravel()))
    return {key: _conditioned(forecasts[key], found[i], with_sums[i], factor) for i, key in enumerate(keys)}


def _conditioned(forecast: Forecast, mean: FloatArray, with_sums: FloatArray, factor: Any) -> Forecast:
    cov = forecast.cov - with_sums.T @ cho_solve(factor, with_sums)
    cov = 0.5 * (cov + cov.T)
    np.fill_diagonal(cov, np.maximum(np.diag(cov), 1e-300))
    return forecast.with_moments(mean, cov)


def _means(forecasts: Mapping[Key, Forecast]) -> FloatArray:
    wrong = next((one for one in forecasts.values() if not isinstance(one, Forecast)), None)
    if wrong is not None:
        raise TypeError(f"forecasts must be objects of onepass.forecasting.Forecast, got {wrong!r}")
    lengths = {len(forecast) for forecast in forecasts.values()}
    if len(lengths) != 1:
        raise ValueError(f"forecasts must be over the same number of steps, at least one forecast, got {lengths or {}}")
    return np.stack([np.asarray(forecast.moments.mean) for forecast in forecasts.values()])


def _constraints(hierarchy: Any, keys: Sequence[Hashable]) -> FloatArray:
    """One row for each sum, ``(p, n)``, that is 0 for values that agree."""
    if not isinstance(hierarchy, Mapping):
        summing = as_floats(hierarchy, "hierarchy")
        if summing.ndim != 2 or len(summing) != len(keys):
            raise ValueError(f"hierarchy must have a row for each of the {len(keys)} keys, got shape {summing.shape}")
        return np.asarray(null_space(summing.T).T)
    places = {key: i for i, key in enumerate(keys)}
    rows = np.zeros((len(hierarchy), len(keys)))
    for row, (total, parts) in zip(rows, hierarchy.items(), strict=True):
        unknown = [key for key in (total, *parts) if key not in places]
        if unknown:
            raise KeyError(f"hierarchy has the key {unknown[0]!r}, of which there is no forecast")
        if len(set(parts)) < len(parts) or not parts:
            raise ValueError(f"the parts of {total!r} must be different keys, at least one, got {list(parts)}")
        row[places[total]] = 1.0
        row[[places[key] for key in parts]] -= 1.0
    try:
        TopologicalSorter({total: list(parts) for total, parts in hierarchy.items()}).prepare()
    except CycleError as error:
        raise ValueError(f"hierarchy has keys that are parts of themselves: {error.args[1]}") from None
    return rows


def _root(cov: FloatArray) -> FloatArray:
    """A matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T)


def _correlation(errors: Mapping[Key, ArrayLike], keys: Sequence[Key]) -> FloatArray:
    """Correlations of series' errors, shrunk as by Schäfer and Strimmer (2005)."""
    missing = [key for key in keys if key not in errors]
    if missing:
        raise KeyError(f"errors must have those of all keys; they lack {missing[0]!r}")
    columns = [as_floats_or_nan(errors[key], "errors") for key in keys]
    if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
        raise ValueError("errors must have one number of each key for each time")
    table = np.stack(columns, axis=1)
    table = table[~np.isnan(table).any(axis=1)]
    n = len(table)
    if n < 3:
        raise ValueError(f"errors must be known of all keys at 3 times at least, got {n}")
    size = np.sqrt(np.square(table).mean(axis=0))
    z = table / np.where(size > 0.0, size, 1.0)
    found = z.T @ z / n
    uncertain = (np.square(z).T @ np.square(z) / n - np.square(found)) / (n - 1)
    apart = ~np.eye(len(keys), dtype=bool)
    total = np.square(found[apart]).sum()
    share = min(1.0, uncertain[apart].sum() / total) if total > 0.0 else 1.0
    return np.where(apart, (1.0 - share) * found, 1.0)
