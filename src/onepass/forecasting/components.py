"""What made a forecast: the level, seasons, inputs and lags of all members, which add up to its mean.

A member's mean is a linear recursion: each value ahead is a weighted sum of values before it and of columns. So it is
the sum of the same recursion begun with parts of the past and driven by parts of the columns:

- *level*: the mean of the last season (the last value, without seasons), its slope, and the constant,
- *seasons*: the pattern of the last one or two seasons, and the waves,
- *inputs*: what inputs change, compared with inputs that always are as at the last value,
- *lags*: the rest, which is what the latest values carry on, and how uncertain weights move the mean.

A logarithmic member multiplies. Its forecast without the level's part is divided among the others in proportion to
their parts of the logarithm, with the logarithmic mean ``(a - b) / log(a / b)`` of forecast and level as the factor.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.forecasting import ForecastWorkspace, member_regression
from onepass.engine.lag_sums import AT_LENGTH, AT_LOG_ORIGIN, AT_ORIGIN, AT_PHASE, Plan
from onepass.forecasting.members import Member

__all__ = ["Components", "Origin", "decompose"]

_MOST_LOG = 690.0


class Components(NamedTuple):
    """What made the mean of a forecast, per step, each ``(h,)`` and in the units of the series; they add up to it."""

    level: FloatArray
    seasons: FloatArray
    lags: FloatArray
    inputs: FloatArray

    @classmethod
    def of_level(cls, mean: FloatArray) -> Self:
        """A mean that is nothing but a level."""
        return cls(mean.copy(), *(np.zeros_like(mean) for _ in range(3)))


class Origin(NamedTuple):
    """What a forecast was made from."""

    plan: Plan
    members: Sequence[Member]
    seasons: Sequence[float]
    record: FloatArray
    ahead: FloatArray
    priors: FloatArray


def decompose(origin: Origin, parts: Sequence[tuple[Any, float, FloatArray]], mean: FloatArray) -> Components:
    """Divide a mean ``(h,)`` among the components, given members, their shares and their own means."""
    work = ForecastWorkspace(origin.plan, len(mean))
    numbers = [list(origin.members).index(member) for member, _, _ in parts]
    weights, values = zip(*(_regression(origin, number, work) for number in numbers), strict=True)
    found = np.zeros((3, len(mean)))
    for (member, share, own), own_weights in zip(parts, weights, strict=True):
        alike = (one for (other, _, _), one in zip(parts, values, strict=True) if other.logarithm == member.logarithm)
        found += share * _of_member(origin, member, own_weights, max(alike, key=len), own)
    level, seasons, inputs = found
    return Components(level, seasons, mean - level - seasons - inputs, inputs)


def _regression(origin: Origin, number: int, work: ForecastWorkspace) -> tuple[FloatArray, FloatArray]:
    """A member's weights, and the last values or logarithms, less their origin and most recent first."""
    plan, member = origin.plan, origin.members[number]
    weights, past = member_regression(plan, origin.record.copy(), number, origin.ahead, origin.priors, work)
    at = plan.at_log_past if member.logarithm else plan.at_past
    return weights, _values(past, origin.record[at : at + plan.longest_difference], member.difference)


def _of_member(origin: Origin, member: Member, weights: FloatArray, values: FloatArray, mean: FloatArray) -> FloatArray:
    """Level, seasons and inputs of a member's mean, ``(3, h)``."""
    d, n_lags = member.difference, len(member.lags)
    driven = _driven(origin, member, weights[n_lags:], len(mean))
    inputs, driven[2] = _of_inputs(origin, weights[n_lags:], d, len(values), len(mean))
    starts = np.stack([*_level_and_pattern(values - inputs, _season(origin.seasons, member, len(values))), inputs])
    found = _recursion(weights[:n_lags], np.array(member.lags), d, starts, driven)
    found[0] += origin.record[AT_LOG_ORIGIN if member.logarithm else AT_ORIGIN]
    return _of_logarithm(found, mean) if member.logarithm else found


def _values(past: FloatArray, last: FloatArray, d: int) -> FloatArray:
    """The last values less their origin, most recent first, from a view's last differences and the last values."""
    if d == 0:
        return past
    values = np.concatenate([last[:d], np.zeros_like(past)])
    for i, change in enumerate(past):
        values[i + d] = values[i] - change
    return values


def _season(seasons: Sequence[float], member: Member, n: int) -> int:
    """The longest season that the last ``n`` values contain; 1 is none."""
    own = [*seasons, member.difference, *(period for period, _ in member.waves)]
    return max([round(m) for m in own if 2 <= round(m) <= n], default=1)


def _level_and_pattern(values: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """The level of each value and its season's deviation from it, by the last one or two seasons of length m."""
    n = len(values)
    slope = 0.0 if m == 1 or n == m else (values[: min(n - m, m)] - values[m : 2 * m]).mean() / m
    level = values[:m].mean() + slope * (0.5 * (m - 1) - np.arange(n))
    rest = values - level
    pattern = rest[: n // m * m][: 2 * m].reshape(-1, m).mean(axis=0)
    return level, np.resize(pattern - pattern.mean(), n)


def _driven(origin: Origin, member: Member, weights: FloatArray, steps: int) -> FloatArray:
    """What the constant, waves and the last inputs add at each step, ``(3, steps)``; inputs ahead are added later."""
    plan, record, q = origin.plan, origin.record, origin.plan.n_inputs
    kinds, frequencies = (np.array(numbers)[: len(weights) - q] for numbers in member.columns(q))
    angles = np.outer(frequencies, record[AT_LENGTH] + record[AT_PHASE] + np.arange(steps))
    waves = np.where(kinds[:, None] == 1, np.cos(angles), np.sin(angles))[1:]  # the first column is the constant
    driven = np.zeros((3, steps))
    driven[0] = weights[0]
    driven[1] = weights[1 : len(weights) - q] @ waves
    if q and not member.difference:
        driven[0] += record[plan.at_inputs : plan.at_inputs + q] @ weights[-q:]
    return driven


def _of_inputs(origin: Origin, weights: FloatArray, d: int, n: int, steps: int) -> tuple[FloatArray, FloatArray]:
    """What inputs have added to the last n values, most recent first, and add at each step, compared with the last."""
    plan, q = origin.plan, origin.plan.n_inputs
    if not q:
        return np.zeros(n), np.zeros(steps)
    past = origin.record[plan.at_inputs : plan.at_inputs + n * q].reshape(n, q)
    effects = np.concatenate([past[::-1], origin.ahead]) @ weights[-q:]
    effects -= effects[n - 1]
    changes = effects[n:] - effects[n - d : len(effects) - d] if d else effects[n:]
    return effects[:n][::-1], changes


def _recursion(weights: FloatArray, lags: Any, d: int, starts: FloatArray, driven: FloatArray) -> FloatArray:
    """Continue each of the starts ``(k, n)``, most recent first, by lags of their differences, ``(k, steps)``."""
    k, steps = driven.shape
    longest = lags[-1]
    values = np.concatenate([starts[:, ::-1], np.zeros((k, steps))], axis=1)
    n = starts.shape[1]
    changes = np.zeros((k, longest + steps))
    known = values[:, d:n] - values[:, : n - d] if d else values[:, :n]
    have = min(longest, known.shape[1])
    changes[:, longest - have : longest] = known[:, known.shape[1] - have :]
    for h in range(steps):
        changes[:, longest + h] = changes[:, longest + h - lags] @ weights + driven[:, h]
        values[:, n + h] = changes[:, longest + h] + (values[:, n + h - d] if d else 0.0)
    return values[:, n:]


def _of_logarithm(logs: FloatArray, mean: FloatArray) -> FloatArray:
    """Turn parts of logarithms into parts of the mean."""
    level = np.exp(np.minimum(logs[0], _MOST_LOG))
    apart = np.log(mean / level)
    close = np.abs(apart) < 1e-6
    factor = np.where(close, 0.5 * (mean + level), (mean - level) / np.where(close, 1.0, apart))
    return np.stack([level, logs[1] * factor, logs[2] * factor])
