"""Where the targets of each key of a fleet really fall, drawn towards where those of all keys do.

A key with few rows says little about its own tails, so its quantiles are a mean of its own and of the population's, by
how many rows it has: see `onepass.models.tracking` for the rule.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from onepass._arrays import sized
from onepass._typing import FloatArray
from onepass.engine.tracking import track_keyed_quantiles
from onepass.models.fleet.keys import as_keys, decode_keys, encode_keys
from onepass.models.tracking import LEVELS, QuantileTracker, TrackedQuantiles

__all__ = ["KeyedTracker"]

_POPULATION_ROWS = 50.0  # of its own that a key weighs the population with


class KeyedTracker:
    """A `QuantileTracker` for each key, shrunk towards that of all keys together.

    Parameters
    ----------
    levels : sequence of float
        Levels to track.

    Examples
    --------
    >>> tracker = KeyedTracker()
    >>> z = np.random.default_rng(0).normal(size=4000)
    >>> z[::2] *= 3.0
    >>> rows = tracker.update(z, keys=["wild", "calm"] * 2000)
    >>> [f"{tracker.next([key]).limits(0.95)[1][0]:.0f}" for key in ("wild", "calm")]
    ['6', '2']
    """

    def __init__(self, levels: Iterable[float] = LEVELS) -> None:
        self._start = QuantileTracker(levels)
        self._slots: dict[Any, int] = {}
        self._ends = self._start.ends[None].copy()  # the population's first
        self._locations = self._start.location[None].copy()
        self._totals = np.zeros(1)

    @property
    def levels(self) -> tuple[float, ...]:
        """The levels that are tracked."""
        return self._start.levels

    @property
    def normal(self) -> FloatArray:
        """Standard normal quantiles of the levels, ``(q,)``, in order."""
        return self._start.normal

    def update(
        self,
        z: FloatArray,
        weights: FloatArray | None = None,
        given: TrackedQuantiles | None = None,
        *,
        keys: Any,
    ) -> TrackedQuantiles:
        """Track rows ``(n,)`` of these keys in their order and return the quantiles that held before each."""
        names = _listed(keys, len(z))
        for name in names:
            self._slots.setdefault(name, 1 + len(self._slots))
        if (short := 1 + len(self._slots) - len(self._totals)) > 0:
            more = max(short, len(self._totals))
            self._ends = np.concatenate([self._ends, np.tile(self._start.ends, (more, 1))])
            self._locations = np.concatenate([self._locations, np.tile(self._start.location, (more, 1))])
            self._totals = np.concatenate([self._totals, np.zeros(more)])
        return self._tracked(z, weights, given, names)

    def next(self, keys: Any) -> TrackedQuantiles:
        """The quantiles that hold for the next row of each of these keys; for unknown ones the population's."""
        names = _listed(keys, np.size(keys))
        nothing = np.full(len(names), np.nan)
        return self._tracked(nothing, None, None, names)

    def _tracked(
        self, z: FloatArray, weights: FloatArray | None, given: TrackedQuantiles | None, names: list[Any]
    ) -> TrackedQuantiles:
        start, slots = self._start, np.array([self._slots.get(name, 0) for name in names], dtype=np.intp)
        counts = np.ones(1) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        late = start.ends[None][:0] if given is None else given.of_rows(len(z))
        values = np.ascontiguousarray(z, dtype=np.float64)
        rates = start.probabilities, start.rates
        state = self._ends, self._locations, self._totals
        found = track_keyed_quantiles(values, counts, *rates, slots, *state, _POPULATION_ROWS, late)
        return TrackedQuantiles(start.normal, np.asarray(found))

    def copy(self) -> Self:
        """Copy what tracking changes."""
        twin = type(self)(self.levels)
        twin._slots = dict(self._slots)
        twin._ends, twin._locations, twin._totals = self._ends.copy(), self._locations.copy(), self._totals.copy()
        return twin

    def to_arrays(self) -> dict[str, FloatArray]:
        """Everything that has been tracked, as arrays for a file."""
        n, names = 1 + len(self._slots), list(self._slots)
        state = np.column_stack([self._locations[:n], self._totals[:n]])
        arrays = {"levels": np.array(self.levels), "ends": self._ends[:n].copy(), "state": state}
        return arrays | (encode_keys(as_keys(names, len(names))) if names else {})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Check and restore what `to_arrays` returned."""
        new = cls(sized(arrays, "levels", (arrays["levels"].size,)).tolist())
        n = len(arrays["ends"])
        new._ends = np.ascontiguousarray(sized(arrays, "ends", (n, len(new._start.ends))))
        state = sized(arrays, "state", (n, 3))
        if n < 1 or not ((state[:, 1] > 0.0) & (state[:, 2] >= 0.0)).all():
            raise ValueError("tracked intervals need positive scales and numbers of rows that are not negative")
        new._locations, new._totals = np.ascontiguousarray(state[:, :2]), state[:, 2].copy()
        names = _listed(decode_keys(dict(arrays), n - 1), n - 1) if n > 1 else []
        new._slots = {name: 1 + place for place, name in enumerate(names)}
        if len(new._slots) != n - 1:
            raise ValueError("the saved keys must all be different")
        return new


def _listed(keys: Any, n: int) -> list[Any]:
    found = as_keys(keys, n)
    return list(found.tolist() if isinstance(found, np.ndarray) else found)
