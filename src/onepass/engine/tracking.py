"""Quantiles of a stream, tracked as its values arrive, whatever the stream does.

Values ``z`` are targets in the units of their predictive distributions: standard normal if the model is right. For a
probability ``p`` the tracked quantile is ``centre + scale * end``. After each value the end moves by ``rate * error``,
where the error is ``p - 1`` if the value was at most the quantile, and ``p`` otherwise, less 0.7 times the error of the
quantile of ``1 - p``. So a value outside an interval moves both of its limits out, the limit that it passed farther.
What keeps the share inside an interval constant then moves each limit less than if the limits were tracked apart, and
limits that move less need less width on average.

As the moves add up to no more than the range of an end, the share of values inside an interval differs from its level
by at most the range of its two ends over ``1.7 * rate * n``, and the share of values at most one quantile from its
``p`` by at most the range of an end over ``0.3 * rate * n``. This holds for every ``centre`` and ``scale`` that are
known before the value comes; they are running means of the values and their distances, so that ends need not go far
when the stream changes.
The bound says something as long as the values stay within a bounded number of such scales of their running mean.
"""

import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log

_CAP = cython.declare(cython.double, 50.0)  # scales that a value counts as away, so that no wild one sets the scale
_MIRRORED = cython.declare(cython.double, 0.7)  # share of a limit's move that the opposite limit makes too
_KEPT_CENTRE = cython.declare(cython.double, 0.98)  # of the running means, per row
_KEPT_SCALE = cython.declare(cython.double, 0.97)
# What the running means reach by their own noise does not count. It would widen the intervals of a model that is right.
_CENTRE_NOISE = cython.declare(cython.double, 0.2)
_LOG_SCALE_NOISE = cython.declare(cython.double, 0.1)
_LEAST_SCALE = cython.declare(cython.double, 0.3)
_MEAN_DISTANCE = cython.declare(cython.double, 0.7978845608028654)  # of a standard normal from 0


def track_quantiles(
    values: cython.const[cython.double][::1],
    weights: cython.const[cython.double][::1],
    probabilities: cython.const[cython.double][::1],
    rates: cython.const[cython.double][::1],
    ends: cython.double[::1],
    location: cython.double[::1],
    given: cython.const[cython.double][:, ::1],
) -> "FloatArray":
    """Return the quantiles that hold before each of ``n`` values, sorted, ``(n, q)``, and move on with the values.

    Values that come late are compared with the quantiles that were ``given`` when they were predicted, ``(n, q)``;
    these are empty, ``(0, q)``, where no value is late, and NaN in the rows whose value is not. Probabilities are in
    order, and those of ``p`` and ``1 - p`` mirror each other.

    ``ends``, ``(q,)``, and ``location``, running centre and scale, are changed in place. A value of weight ``w`` moves
    the ends ``w`` times as far; one that is NaN was not observed and moves nothing.
    """
    n: cython.Py_ssize_t = values.shape[0]
    q: cython.Py_ssize_t = ends.shape[0]
    found = np.empty((n, q))
    view: cython.double[:, ::1] = found
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    wide: cython.Py_ssize_t = 1 if weights.shape[0] > 1 else 0
    late: cython.bint = given.shape[0] > 0
    with cython.nogil:
        for i in range(n):
            row = cython.address(view[i, 0])
            _fill(q, cython.address(ends[0]), cython.address(location[0]), row)
            if late and given[i, 0] == given[i, 0]:
                for j in range(q):
                    row[j] = given[i, j]
            weight = weights[wide * i]
            if values[i] == values[i] and weight > 0.0:
                _move(
                    values[i], weight, probabilities, rates, row, cython.address(ends[0]), cython.address(location[0])
                )
            _sort(q, row)
    return found


def track_keyed_quantiles(
    values: cython.const[cython.double][::1],
    weights: cython.const[cython.double][::1],
    probabilities: cython.const[cython.double][::1],
    rates: cython.const[cython.double][::1],
    slots: cython.const[cython.Py_ssize_t][::1],
    ends: cython.double[:, ::1],
    locations: cython.double[:, ::1],
    totals: cython.double[::1],
    population_rows: cython.double,
    given: cython.const[cython.double][:, ::1],
) -> "FloatArray":
    """Track values of many keys, each drawn towards the population of all as if that were so many rows of its own.

    Keys have a row each in ``ends``, ``(m, q)``, ``locations``, ``(m, 2)``, and ``totals``, ``(m,)``; the first is the
    population's, which every value moves. ``slots``, ``(n,)``, are the rows of the values' keys; a value of slot 0 has
    no key of its own. The rest is as for `track_quantiles`.
    """
    n: cython.Py_ssize_t = values.shape[0]
    q: cython.Py_ssize_t = ends.shape[1]
    found = np.empty((n, q))
    view: cython.double[:, ::1] = found
    common: cython.double[::1] = np.empty(q)
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    wide: cython.Py_ssize_t = 1 if weights.shape[0] > 1 else 0
    late: cython.bint = given.shape[0] > 0
    with cython.nogil:
        for i in range(n):
            k = slots[i]
            row = cython.address(view[i, 0])
            _fill(q, cython.address(ends[0, 0]), cython.address(locations[0, 0]), cython.address(common[0]))
            _fill(q, cython.address(ends[k, 0]), cython.address(locations[k, 0]), row)
            share = totals[k] / (totals[k] + population_rows)
            for j in range(q):
                row[j] = share * row[j] + (1.0 - share) * common[j]
            if late and given[i, 0] == given[i, 0]:
                for j in range(q):
                    row[j] = given[i, j]
            weight = weights[wide * i]
            value = values[i]
            if value == value and weight > 0.0:
                _move(
                    value,
                    weight,
                    probabilities,
                    rates,
                    row,
                    cython.address(ends[k, 0]),
                    cython.address(locations[k, 0]),
                )
                totals[k] += weight
                if k:
                    _move(
                        value,
                        weight,
                        probabilities,
                        rates,
                        cython.address(common[0]),
                        cython.address(ends[0, 0]),
                        cython.address(locations[0, 0]),
                    )
                    totals[0] += weight
            _sort(q, row)
    return found


@cython.final
@cython.cclass
class RowTracker:
    """Tracks values one at a time, as `track_quantiles` does, in the arrays of its last two arguments.

    For a single value the arguments of a function would take longer than all the rest.
    """

    def __init__(
        self,
        probabilities: cython.const[cython.double][::1],
        rates: cython.const[cython.double][::1],
        ends: cython.double[::1],
        location: cython.double[::1],
    ):
        self.probabilities, self.rates, self.ends, self.location = probabilities, rates, ends, location

    def track(
        self, value: cython.double, weight: cython.double, found: cython.double[::1], is_late: cython.bint
    ) -> cython.void:
        """Write the quantiles that a value is compared with, ``(q,)``, and move on; if it is late, they are given."""
        if not is_late:
            self._fill(cython.address(found[0]))
        if value == value and weight > 0.0:
            ends, location = cython.address(self.ends[0]), cython.address(self.location[0])
            _move(value, weight, self.probabilities, self.rates, cython.address(found[0]), ends, location)
        _sort(self.ends.shape[0], cython.address(found[0]))

    def look(self, found: cython.double[::1]) -> cython.void:
        """Write the quantiles that hold for the next value, ``(q,)``."""
        self._fill(cython.address(found[0]))
        _sort(self.ends.shape[0], cython.address(found[0]))

    def _fill(self, found):
        _fill(self.ends.shape[0], cython.address(self.ends[0]), cython.address(self.location[0]), found)


def _fill(q, ends, location, out):
    """Fill in the quantiles that hold now."""
    j: cython.Py_ssize_t
    centre = _shrunk(location[0], _CENTRE_NOISE)
    scale = exp(_shrunk(log(location[1]), _LOG_SCALE_NOISE))
    for j in range(q):
        out[j] = centre + scale * ends[j]


def _move(value, weight, probabilities, rates, quantiles, ends, location):
    """Move ends, and the running mean and scale, with a value that was compared with these quantiles."""
    j: cython.Py_ssize_t
    q: cython.Py_ssize_t = probabilities.shape[0]
    for j in range(q):
        error = probabilities[j] - (1.0 if value <= quantiles[j] else 0.0)
        opposite = probabilities[q - 1 - j] - (1.0 if value <= quantiles[q - 1 - j] else 0.0)
        ends[j] += weight * rates[j] * (error - _MIRRORED * opposite)
    cap = _CAP * location[1]
    distance = min(fabs(value - _shrunk(location[0], _CENTRE_NOISE)), cap) / _MEAN_DISTANCE
    location[0] += (1.0 - _KEPT_CENTRE) * min(max(value - location[0], -cap), cap)
    location[1] = max(_KEPT_SCALE * location[1] + (1.0 - _KEPT_SCALE) * distance, _LEAST_SCALE)


def _shrunk(value, noise):
    """A value drawn towards 0 by what may be noise."""
    if value > noise:
        return value - noise
    return value + noise if value < -noise else 0.0


def _sort(n, row):
    """Sort the ``n`` numbers of a row, which are nearly sorted, by insertion."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(1, n):
        value = row[j]
        k = j
        while k > 0 and row[k - 1] > value:
            row[k] = row[k - 1]
            k -= 1
        row[k] = value
