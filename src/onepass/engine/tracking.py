"""Quantiles of a stream, tracked as its values arrive, whatever the stream does.

Values ``z`` are targets in the units of their predictive distributions: standard normal if the model is right. For a
probability ``p`` the tracked quantile is ``centre + scale * end``. After each value the end moves out by ``rate * p``
if the value was at most the quantile's, and in by ``rate * (1 - p)`` otherwise (with the signs that make it so). As the
moves add up to no more than the range of the end, the share of values at most their quantiles differs from ``p``
by at most that range over ``rate * n``. This holds for every ``centre`` and ``scale`` that are known before the value
comes; they are running means of the values and their distances, so that ends need not go far when the stream changes.
The bound says something as long as the values stay within a bounded number of such scales of their running mean.
"""

import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log

_CAP = cython.declare(cython.double, 50.0)  # scales that a value counts as away, so that no wild one sets the scale
_KEPT_CENTRE = cython.declare(cython.double, 0.98)  # of the running means, per row
_KEPT_SCALE = cython.declare(cython.double, 0.97)
# What the running means reach by their own noise does not count. It would widen the intervals of a model that is right.
_CENTRE_NOISE = cython.declare(cython.double, 0.3)
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
) -> "FloatArray":
    """Return the quantiles that hold before each of ``n`` values, sorted, ``(n, q)``, and move on with the values.

    ``ends``, ``(q,)``, and ``location``, running centre and scale, are changed in place. A value of weight ``w`` moves
    the ends ``w`` times as far; one that is NaN was not observed and moves nothing.
    """
    found = np.empty((values.shape[0], ends.shape[0]))
    view: cython.double[:, ::1] = found
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    wide: cython.Py_ssize_t = 1 if weights.shape[0] > 1 else 0
    with cython.nogil:
        for i in range(values.shape[0]):
            centre = _shrunk(location[0], _CENTRE_NOISE)
            scale = exp(_shrunk(log(location[1]), _LOG_SCALE_NOISE))
            for j in range(ends.shape[0]):
                view[i, j] = centre + scale * ends[j]
            weight = weights[wide * i]
            value = values[i]
            if value == value and weight > 0.0:
                for j in range(ends.shape[0]):
                    ends[j] += weight * rates[j] * (probabilities[j] - (1.0 if value <= view[i, j] else 0.0))
                cap = _CAP * location[1]
                distance = min(fabs(value - centre), cap) / _MEAN_DISTANCE
                location[0] += (1.0 - _KEPT_CENTRE) * min(max(value - location[0], -cap), cap)
                location[1] = max(_KEPT_SCALE * location[1] + (1.0 - _KEPT_SCALE) * distance, _LEAST_SCALE)
            _sort(ends.shape[0], cython.address(view[i, 0]))
    return found


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
