"""Intervals that hold whatever the stream does: the limits of a predictive distribution, tracked as targets arrive.

A model's own intervals contain the share of the targets that they should as long as the model is right. When the stream
changes in a way that the model did not foresee, they don't. `QuantileTracker` follows where targets really fall within
their predictive distributions: see `onepass.engine.tracking` for the rule and what it guarantees. How wide the interval
of a row is still depends on what the model knows about that row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from onepass._arrays import sized
from onepass._typing import FloatArray
from onepass._validation import as_share
from onepass.engine.tracking import track_quantiles

__all__ = ["LEVELS", "QuantileTracker", "as_levels"]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Levels that are tracked unless others are given."""
# How far an end moves per row, in units of the squared standard normal quantile: chosen on streams other than those of
# the evidence page, as the smallest that kept windows of 500 rows within 2 points of 95 %.
_RATE = 0.4 / float(ndtri(0.975)) ** 2
_ONE = np.ones(1)


class QuantileTracker:
    """Tracks the limits of central intervals of several ``levels``, as standard normal quantiles ``z``.

    A target's ``z`` is where it lies in its predictive distribution. While the model is right the limits of level 0.95
    stay near -1.96 and 1.96.

    Parameters
    ----------
    levels : sequence of float
        Levels to track; limits of levels in between are interpolated.

    Examples
    --------
    Noise of three times the predicted size from the middle of a stream on:

    >>> import numpy as np
    >>> from onepass.models.tracking import QuantileTracker
    >>> z = np.random.default_rng(0).normal(size=4000)
    >>> z[2000:] *= 3.0
    >>> tracker = QuantileTracker()
    >>> low, high = tracker.limits(0.95, tracker.update(z))
    >>> inside = (low <= z) & (z <= high)
    >>> print(f"{inside[:2000].mean():.3f} {inside[2000:].mean():.3f}; plain {(abs(z[2000:]) < 1.96).mean():.3f}")
    0.951 0.951; plain 0.485
    """

    def __init__(self, levels: Iterable[float] = LEVELS) -> None:
        self.levels = as_levels(levels)
        tails = 0.5 - 0.5 * np.array(self.levels)
        self._probabilities = np.concatenate([tails[::-1], 1.0 - tails])
        self._normal = np.concatenate([ndtri(tails[::-1]), -ndtri(tails)])
        self._rates = _RATE * self._normal**2
        self.ends = self._normal.copy()
        """Quantiles ``(q,)`` of all levels, in order, before centre and scale."""
        self.location = np.array([0.0, 1.0])
        """Running mean and scale of ``z``."""
        self.total = 0.0
        """Sum of the weights of the rows so far."""

    def update(self, z: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Track rows ``(n,)`` in their order and return the quantiles that held before each, ``(n, q)``.

        NaN marks a target that was not observed.
        """
        values = np.ascontiguousarray(z, dtype=np.float64)
        given = _ONE if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        found = np.asarray(track_quantiles(values, given, self._probabilities, self._rates, self.ends, self.location))
        self.total += float(np.broadcast_to(given, values.shape)[~np.isnan(values)].sum())
        return found

    @property
    def quantiles(self) -> FloatArray:
        """The quantiles of all levels that hold for the next row, ``(q,)``."""
        state = self.ends.copy(), self.location.copy()
        return np.asarray(track_quantiles(np.array([np.nan]), _ONE, self._probabilities, self._rates, *state)[0])

    def limits(self, level: float, quantiles: FloatArray | None = None) -> tuple[Any, Any]:
        """Lower and upper limit of a level, from `quantiles` ``(q,)`` or ``(n, q)``; by default those of the next row.

        Between the levels that are tracked, limits are interpolated; beyond the largest, they are extrapolated.
        """
        rows = self.quantiles if quantiles is None else quantiles
        z = float(ndtri(0.5 + as_share(level, "level", open_above=True) / 2))
        return self._between(-z, rows), self._between(z, rows)

    def _between(self, z: float, rows: FloatArray) -> Any:
        """The tracked quantiles as a function of the standard normal ones: linear between them and beyond."""
        right = int(np.clip(np.searchsorted(self._normal, z), 1, len(self._normal) - 1))
        left = right - 1
        share = (z - self._normal[left]) / (self._normal[right] - self._normal[left])
        return rows[..., left] + share * (rows[..., right] - rows[..., left])

    def shrunk(self, population: "QuantileTracker", rows: float) -> FloatArray:
        """The `quantiles`, drawn towards those of a population as if it had been seen for so many ``rows``."""
        share = self.total / (self.total + rows)
        return np.asarray(share * self.quantiles + (1.0 - share) * population.quantiles)

    @classmethod
    def merged(cls, trackers: Sequence["QuantileTracker"]) -> Self:
        """The tracker of several that followed parts of a stream: their means, by the rows that each has seen."""
        levels = {tracker.levels for tracker in trackers}
        if len(levels) != 1:
            raise ValueError(f"only trackers of the same levels can be merged, got {sorted(levels)}")
        new = cls(trackers[0].levels)
        new.total = sum(tracker.total for tracker in trackers)
        if new.total > 0.0:
            shares = [tracker.total / new.total for tracker in trackers]
            new.ends = np.asarray(sum(share * own.ends for share, own in zip(shares, trackers, strict=True)))
            new.location = np.asarray(sum(share * own.location for share, own in zip(shares, trackers, strict=True)))
        return new

    def copy(self) -> Self:
        """Copy what tracking changes."""
        return type(self).from_arrays(self.to_arrays())

    def to_arrays(self) -> dict[str, FloatArray]:
        """Everything that has been tracked, as arrays for a file."""
        state = np.append(self.location, self.total)
        return {"levels": np.array(self.levels), "ends": self.ends.copy(), "state": state}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Check and restore what `to_arrays` returned."""
        new = cls(sized(arrays, "levels", (arrays["levels"].size,)).tolist())
        new.ends = sized(arrays, "ends", new.ends.shape)
        centre, scale, total = sized(arrays, "state", (3,)).tolist()
        if not (scale > 0.0 and total >= 0.0):
            raise ValueError("tracked intervals need a positive scale and a number of rows that is not negative")
        new.location, new.total = np.array([centre, scale]), total
        return new


def as_levels(levels: Iterable[float]) -> tuple[float, ...]:
    """Check levels, each above 0 and below 1; sorted, each once."""
    if not isinstance(levels, Iterable):
        raise TypeError(f"levels must be a sequence of numbers in (0, 1), such as (0.5, 0.95), got {levels!r}")
    found = tuple(sorted({as_share(level, "each level", open_above=True) for level in levels}))
    if not found:
        raise ValueError("levels must not be empty")
    return found
