"""Intervals that hold whatever the stream does: the limits of a predictive distribution, tracked as targets arrive.

A model's own intervals contain the share of the targets that they should as long as the model is right. When the stream
changes in a way that the model did not foresee, they don't. `QuantileTracker` follows where targets really fall within
their predictive distributions: see `onepass.engine.tracking` for the rule and what it guarantees. How wide the interval
of a row is still depends on what the model knows about that row.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from onepass._arrays import sized
from onepass._typing import FloatArray
from onepass._validation import as_share
from onepass.engine.tracking import RowTracker, track_quantiles

__all__ = ["LEVELS", "QuantileTracker", "TrackedPlaces", "TrackedQuantiles", "as_levels"]

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Levels that are tracked unless others are given."""
# How far an end moves per row, in units of the squared standard normal quantile: chosen on streams other than those of
# the evidence page, as the smallest that kept nearly all windows of 500 rows within 2 points of 95 %.
_RATE = 0.21 / float(ndtri(0.975)) ** 2
_ONE, _ON_TIME = np.ones(1), np.empty((0, 0))


class TrackedQuantiles(NamedTuple):
    """The quantiles that a tracker had when rows were predicted, from which `Prediction.interval` takes its limits."""

    normal: FloatArray
    """Standard normal quantiles of the levels, ``(q,)``, in order."""
    quantiles: FloatArray
    """What they really are: ``(q,)``, or those of each row, ``(n, q)``."""

    def limits(self, level: float) -> tuple[Any, Any]:
        """Lower and upper limit of a level, as normal scores: numbers, or ``(n,)``.

        Between the levels that are tracked, limits are interpolated; beyond the largest, they are extrapolated.
        """
        z = float(ndtri(0.5 + as_share(level, "level", open_above=True) / 2))
        return self._between(-z), self._between(z)

    def _between(self, z: float) -> Any:
        """The tracked quantiles as a function of the standard normal ones: linear between them and beyond."""
        normal, rows = self
        right = min(max(bisect_left(normal, z), 1), len(normal) - 1)
        left = right - 1
        share = (z - normal[left]) / (normal[right] - normal[left])
        return rows[..., left] + share * (rows[..., right] - rows[..., left])

    def row(self, i: int) -> "TrackedQuantiles":
        """Those of one of several rows."""
        return self._replace(quantiles=self.quantiles[i])

    def of_rows(self, n_rows: int) -> FloatArray:
        """Those of each of ``n`` rows, ``(n, q)``."""
        return np.ascontiguousarray(np.broadcast_to(self.quantiles, (n_rows, len(self.normal))))


class TrackedPlaces(NamedTuple):
    """Where the targets of rows ``(n,)`` fell among the quantiles that were tracked before each."""

    score: FloatArray
    """Normal scores, ``(n,)``; NaN of rows that had no limits yet."""
    tracked: TrackedQuantiles

    def inside(self, level: float) -> FloatArray:
        """Whether each target lay in its interval of this level."""
        low, high = self.tracked.limits(level)
        return np.asarray((low <= self.score) & (self.score <= high))

    def at(self, index: Any) -> "TrackedPlaces":
        """Those of some of the rows."""
        return TrackedPlaces(self.score[index], self.tracked.row(index))

    @classmethod
    def joined(cls, parts: "Sequence[tuple[TrackedPlaces | None, int]]") -> "TrackedPlaces | None":
        """Those of consecutive parts with their numbers of rows; None if no part has any."""
        known = next((places.tracked for places, _ in parts if places is not None), None)
        if known is None:
            return None
        scores = [np.full(n, np.nan) if places is None else places.score for places, n in parts]
        rows = [np.tile(known.normal, (n, 1)) if places is None else places.tracked.of_rows(n) for places, n in parts]
        return cls(np.concatenate(scores), TrackedQuantiles(known.normal, np.concatenate(rows)))


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
    >>> low, high = tracker.update(z).limits(0.95)
    >>> inside = (low <= z) & (z <= high)
    >>> print(f"{inside[:2000].mean():.3f} {inside[2000:].mean():.3f}; plain {(abs(z[2000:]) < 1.96).mean():.3f}")
    0.951 0.950; plain 0.485
    """

    def __init__(self, levels: Iterable[float] = LEVELS) -> None:
        self.levels = as_levels(levels)
        tails = 0.5 - 0.5 * np.array(self.levels)
        self.probabilities = np.concatenate([tails[::-1], 1.0 - tails])
        self.normal = np.concatenate([ndtri(tails[::-1]), -ndtri(tails)])
        self.rates = _RATE * self.normal**2
        self.ends = self.normal.copy()
        """Quantiles ``(q,)`` of all levels, in order, before centre and scale."""
        self.location = np.array([0.0, 1.0])
        """Running mean and scale of ``z``."""
        self._rows = RowTracker(self.probabilities, self.rates, self.ends, self.location)
        self.total = 0.0
        """Sum of the weights of the rows so far."""

    def update(
        self, z: FloatArray, weights: FloatArray | None = None, given: TrackedQuantiles | None = None
    ) -> TrackedQuantiles:
        """Track rows ``(n,)`` in their order and return the quantiles that held before each.

        NaN marks a target that was not observed. A target that comes late is scored with the quantiles that were
        ``given`` when it was predicted.
        """
        if given is None and len(z) == 1:  # often, and then most of the time would go to what many rows need
            normal, found = self.update_one(z[0], 1.0 if weights is None else weights[0])
            return TrackedQuantiles(normal, found[None])
        values = np.ascontiguousarray(z, dtype=np.float64)
        counts = _ONE if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        late = _ON_TIME if given is None else given.of_rows(len(values))
        rates = self.probabilities, self.rates
        found = np.asarray(track_quantiles(values, counts, *rates, self.ends, self.location, late))
        self.total += float((counts * (values == values)).sum())
        return TrackedQuantiles(self.normal, found)

    def update_one(self, z: float, weight: float = 1.0, given: TrackedQuantiles | None = None) -> TrackedQuantiles:
        """Track one row as `update` does; the quantiles that are returned are ``(q,)``."""
        found = np.empty(len(self.normal)) if given is None else given.quantiles.copy()
        self._rows.track(z, weight, found, given is not None)
        if z == z:
            self.total += weight
        return TrackedQuantiles(self.normal, found)

    @property
    def next(self) -> TrackedQuantiles:
        """The quantiles that hold for the next row."""
        found = np.empty(len(self.normal))
        self._rows.look(found)
        return TrackedQuantiles(self.normal, found)

    def copy(self) -> Self:
        """Copy what tracking changes."""
        return type(self).from_arrays(self.to_arrays())

    def __reduce__(self) -> Any:
        return type(self).from_arrays, (self.to_arrays(),)

    def to_arrays(self) -> dict[str, FloatArray]:
        """Everything that has been tracked, as arrays for a file."""
        state = np.append(self.location, self.total)
        return {"levels": np.array(self.levels), "ends": self.ends.copy(), "state": state}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Check and restore what `to_arrays` returned."""
        new = cls(sized(arrays, "levels", (arrays["levels"].size,)).tolist())
        new.ends[:] = sized(arrays, "ends", new.ends.shape)
        centre, scale, total = sized(arrays, "state", (3,)).tolist()
        if not (scale > 0.0 and total >= 0.0):
            raise ValueError("tracked intervals need a positive scale and a number of rows that is not negative")
        new.location[:], new.total = (centre, scale), total
        return new


def as_levels(levels: Iterable[float]) -> tuple[float, ...]:
    """Check levels, each above 0 and below 1; sorted, each once."""
    if not isinstance(levels, Iterable):
        raise TypeError(f"levels must be a sequence of numbers in (0, 1), such as (0.5, 0.95), got {levels!r}")
    found = tuple(sorted({as_share(level, "each level", open_above=True) for level in levels}))
    if not found:
        raise ValueError("levels must not be empty")
    return found
