"""The lag regressions that a forecaster consists of, and which it has unless others are given.

A `Member` regresses a series (or its logarithm), or differences of it, on some of its own past values and on waves of
its seasons. Members differ in how they see the series: with or without logarithm, by changes from value to value or
from season to season, remembering all of the past or mostly the latest. None is best for all series, so a forecaster
has several and weighs them by how well each has forecast.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._validation import as_count, as_flag, as_positive, as_share, as_whole
from onepass.engine.lag_sums import Plan

__all__ = ["Member", "as_members", "as_seasons", "count_members", "default_horizon", "default_members", "make_plan"]

_TIER_LAGS = (1, 2, 4, 8, 14, 28, 54, 80, 110, 200, 400)
"""The longest lags that a member begins with, while a series is short."""
_TESTS = 5  # earlier forecasts by which members are weighed
_TESTED_STEPS = 30  # and steps at least
_MOST_LAG = 2000
_VARIANCE = 0.1  # of weights before anything is known, in units of the noise
_PERSISTENCE = {0: 1.0, 1: 0.0}  # the mean of the first lag's weight, by the difference
_SEASONAL_PERSISTENCE = 0.7
_INPUT_VARIANCE = 100.0
_CONSTANT_VARIANCE = 1e6  # of levels with inputs


@dataclass(frozen=True)
class Member:
    """One lag regression.

    Parameters
    ----------
    lags : sequence of int
        How many steps back the values lie that it regresses on.
    waves : sequence of (float, sequence of int)
        Periods of seasons, and which of their harmonics are regressed on.
    difference : int
        0 for the values themselves, 1 for changes from value to value, ``m`` for changes since ``m`` steps earlier.
    logarithm : bool
        Whether values are replaced by their logarithms. Such a member pauses for ever once a value is not positive.
    forgetting : float
        The weight of a value relative to that of the next one; 1 remembers all values alike.
    shrinkage : float
        In a fleet: the variance of its weights relative to their variance over all series; 0 for weights that series
        don't share.

    Examples
    --------
    >>> Member(lags=(1, 2, 12), difference=12, logarithm=True)
    Member(lags=(1, 2, 12), waves=(), difference=12, logarithm=True, forgetting=1.0, shrinkage=1.0)
    """

    lags: Sequence[int]
    waves: Sequence[tuple[float, Sequence[int]]] = ()
    difference: int = 0
    logarithm: bool = False
    forgetting: float = 1.0
    shrinkage: float = 1.0

    def __post_init__(self) -> None:
        lags = tuple(sorted({as_count(lag, "each lag") for lag in self.lags}))
        if not lags or lags[-1] > _MOST_LAG:
            raise ValueError(f"lags must have at least one number and none above {_MOST_LAG}, got {self.lags}")
        waves = tuple(
            (as_positive(p, "a period"), tuple(as_count(k, "a harmonic") for k in ks)) for p, ks in self.waves
        )
        object.__setattr__(self, "lags", lags)
        object.__setattr__(self, "waves", waves)
        object.__setattr__(self, "difference", as_whole(self.difference, "difference"))
        object.__setattr__(self, "logarithm", as_flag(self.logarithm, "logarithm"))
        object.__setattr__(self, "forgetting", as_share(self.forgetting, "forgetting"))
        if self.forgetting < 0.5:
            raise ValueError(f"forgetting must be between 0.5 and 1, got {self.forgetting}")
        if not 0.0 <= float(self.shrinkage) < np.inf:
            raise ValueError(f"shrinkage must be a number that is not negative, got {self.shrinkage}")

    def columns(self, n_inputs: int) -> tuple[list[int], list[float]]:
        """Kinds and frequencies of what is regressed on besides lags: see `onepass.engine.lag_sums.Plan`."""
        kinds, frequencies = [0], [0.0]
        for period, harmonics in self.waves:
            for k in harmonics:
                own = [1] if 2 * k == period else [1, 2]
                kinds += own
                frequencies += [2.0 * np.pi * k / period] * len(own)
        return [*kinds, *[3] * n_inputs], [*frequencies, *map(float, range(n_inputs))]

    def first_prior(self, n_inputs: int) -> tuple[list[float], list[float]]:
        """Means and precisions of weights before anything is known, in units of the noise.

        A random walk, a change since the last season that goes on in part, or no change from value to value. The
        weights of long lags vary less.
        """
        n_columns = len(self.columns(n_inputs)[0])
        start = [0.0] * (len(self.lags) + n_columns)
        start[0] = _PERSISTENCE.get(self.difference, _SEASONAL_PERSISTENCE)
        precision = [math.sqrt(lag) / _VARIANCE for lag in self.lags] + [1.0 / _VARIANCE] * n_columns
        if n_inputs:
            precision[-n_inputs:] = [1.0 / _INPUT_VARIANCE] * n_inputs
            if not self.difference:  # it makes up for the mean of the inputs
                precision[len(self.lags)] = 1.0 / _CONSTANT_VARIANCE
        return start, precision

    @property
    def tiers(self) -> list[int]:
        """Numbers of lags that are in use while a series is short, and at last."""
        counts = [sum(lag <= longest for lag in self.lags) for longest in _TIER_LAGS]
        return sorted({n for n in counts if n} | {len(self.lags)})

    def to_data(self) -> dict[str, Any]:
        """The member as plain data."""
        return {**vars(self), "lags": list(self.lags), "waves": [[p, list(ks)] for p, ks in self.waves]}


def default_members(seasons: Sequence[float] = ()) -> tuple[Member, ...]:
    """The members of a forecaster of series with these season lengths, in steps.

    Examples
    --------
    >>> len(default_members([12])), len(default_members([24, 168]))
    (8, 8)
    """
    lengths = as_seasons(seasons)
    if not lengths:
        return _without_season()
    short = [m for m in lengths if m <= _LONG]
    if len(short) >= 2:
        return _two_short_seasons(round(short[0]), round(short[1]))
    if short:
        return _short_season(short[0], [m for m in lengths if m > _LONG])
    return _long_season(lengths[0])


def count_members(seasons: Sequence[float] = ()) -> tuple[Member, ...]:
    """The members of a forecaster of counts: mostly levels, since changes of few counts say little.

    Examples
    --------
    >>> len(count_members()), len(count_members([7]))
    (4, 6)
    """
    lengths = as_seasons(seasons)
    if not lengths:
        return (
            Member(lags=(1,)),
            Member(lags=(1,), forgetting=0.98),
            Member(lags=range(1, 9), forgetting=0.99),
            Member(lags=range(1, 15)),
        )
    waves = tuple((m, range(1, min(int(m / 2), 6) + 1)) for m in lengths)
    m = round(lengths[0])
    of_season = {"lags": [1, 2, 3, m, 2 * m, 3 * m], "difference": m} if m <= _LONG else {"lags": range(1, 15)}
    return (
        Member(lags=(1,), forgetting=0.98),
        Member(lags=(1,), waves=waves, forgetting=0.99),
        *_both(lags=range(1, 4), waves=waves),
        *_both(**of_season),
    )


_LONG = 200  # steps of a season that lags can reach across easily
_HARMONICS = 6  # of a short season, at most
_YEAR_OF_WEEKS = (40.0, 60.0)


def _both(**options: Any) -> tuple[Member, Member]:
    """A member without and with logarithm."""
    return Member(**options), Member(**options, logarithm=True)


def _without_season() -> tuple[Member, ...]:
    return (
        *_both(lags=range(1, 9), difference=1),
        *_both(lags=range(1, 3), difference=1, forgetting=0.97),
        *_both(lags=range(1, 5)),
        Member(lags=(1,), difference=1),
    )


def _short_season(season: float, longer: Sequence[float]) -> tuple[Member, ...]:
    if _YEAR_OF_WEEKS[0] <= season <= _YEAR_OF_WEEKS[1]:
        return _long_season(season)
    m = round(season)
    near = [*range(1, m + 3), *range(2 * m - 1, 2 * m + 2)]
    waves = tuple((period, range(1, 4)) for period in longer)
    harmonics = range(1, min(int(season / 2), _HARMONICS) + 1)
    latest: tuple[Member, ...] = (Member(lags=(1,), difference=m, forgetting=0.99),)
    if season <= 2 * _HARMONICS:  # waves can have any shape that a season has
        latest = _both(lags=(1, 2), difference=1, waves=((season, harmonics), *waves), forgetting=0.99)
    return (
        *_both(lags=near, difference=1, waves=waves),
        *_both(lags=[*range(1, min(m, 13) + 1), m, m + 1], difference=m, waves=waves),
        *_both(lags=[*range(1, 4), m - 1, m, m + 1] if m > 4 else range(1, m + 2), waves=((season, harmonics), *waves)),
        *latest,
    )


def _two_short_seasons(first: int, second: int) -> tuple[Member, ...]:
    """Such as a day and a week of hours."""
    days = range(2, second // first)
    ratio = second // first
    week = ((float(second), (1, 2, 3)),)
    apart = [k for k in range(1, 16) if k % ratio and k not in (10, 11, 12)]  # what is not a harmonic of the day
    week_and_day = ((float(second), apart), (float(first), range(1, min(8, first // 2) + 1)))
    near = [*range(1, first + 3), *range(2 * first - 2, 2 * first + 3), *[k * first for k in days]]
    long = [*near, *range(second - first - 1, second - first + 3), *range(second - 3, second + 4)]
    wide = [*range(1, first + 7), 2 * first - 1, 2 * first, 2 * first + 1, *[k * first for k in days]]
    return (
        *_both(lags=long, waves=week, difference=first, shrinkage=0.3),
        *_both(lags=[*range(1, 5), *range(first - 1, first + 2)], waves=week_and_day),
        *_both(
            lags=[*range(1, 7), *range(first - 2, first + 3), *range(2 * first - 1, 2 * first + 2)],
            difference=second,
            forgetting=0.995,
        ),
        *_both(lags=[*wide, second - 1, second, second + 1, second + first], difference=1),
    )


def _long_season(season: float) -> tuple[Member, ...]:
    """Such as a year of weeks."""
    m = round(season)
    year = ((season, range(1, 7)),)
    if not _YEAR_OF_WEEKS[0] <= season <= _YEAR_OF_WEEKS[1]:
        return (*_both(lags=range(1, 15), difference=1), *_both(lags=range(1, 9), waves=year, difference=1))
    half, quarter = m // 2, m // 4
    some = [*range(1, 9), quarter - 1, quarter, quarter + 1, half, half + 1, *range(m - 1, m + 3)]
    return (
        *_both(lags=[*range(1, m + 3), 3 * half, *range(2 * m - 1, 2 * m + 3)], difference=1, forgetting=0.99),
        *_both(lags=range(1, m + 3), difference=1),
        *_both(lags=range(1, 9), waves=year, difference=1),
        Member([*some, 3 * quarter, *range(2 * m - 1, 2 * m + 2)], difference=1, forgetting=0.99, logarithm=True),
        Member(some, difference=1, forgetting=0.97),
        Member([*range(1, 5), quarter, half, m - 1, m, m + 1], difference=m, shrinkage=0.0),
    )


def default_horizon(seasons: Sequence[float]) -> int:
    """How many steps ahead members are weighed for: two short seasons, or a quarter of a long one."""
    short = [m for m in seasons if m <= 30]
    if short:
        return max(6, min(48, round(2 * short[0])))
    return 13 if seasons else 8


def as_seasons(value: Any) -> tuple[float, ...]:
    """Check season lengths: numbers above 1, sorted."""
    given = (value,) if isinstance(value, (int, float)) else tuple(value)
    lengths = sorted({as_positive(m, "season_length") for m in given})
    if any(m < 2.0 for m in lengths if m != 1.0):
        raise ValueError(f"season_length must be at least 2 steps, or 1 for no season, got {value!r}")
    return tuple(m for m in lengths if m != 1.0)


def as_members(value: Iterable[Any]) -> tuple[Member, ...]:
    """Check members, of which there must be at least one."""
    members = tuple(value)
    wrong = next((member for member in members if not isinstance(member, Member)), None)
    if wrong is not None or not members:
        raise TypeError(
            f"members must be objects of onepass.forecasting.Member, at least one, got {wrong or members!r}"
        )
    return members


def make_plan(members: Sequence[Member], horizon: int, season: int, n_inputs: int, outliers: float) -> Plan:
    """What the compiled code needs to know."""
    views = list(dict.fromkeys((int(member.logarithm), member.difference) for member in members))
    rows = []
    for member in members:
        kinds, frequencies = member.columns(n_inputs)
        start, precision = member.first_prior(n_inputs)
        rows.append(
            {
                "view": views.index((int(member.logarithm), member.difference)),
                "rate": member.forgetting,
                "lags": list(member.lags),
                "kinds": kinds,
                "frequencies": frequencies,
                "tiers": member.tiers,
                "start": start,
                "precision": precision,
            }
        )
    n_tests = max(_TESTS, -(-_TESTED_STEPS // horizon))
    return Plan(
        {
            "views": views,
            "members": rows,
            "horizon": horizon,
            "n_tests": n_tests,
            "n_inputs": n_inputs,
            "season": season,
            "pause": _pause(horizon, season, n_tests),
            "outliers": outliers,
        }
    )


def _pause(horizon: int, season: int, n_tests: int) -> int:
    """Values between test forecasts, so that the tests begin in all phases of the season and not always in one."""
    if math.gcd(horizon, season) == 1:
        return 0
    apart = -(-season // (n_tests - 1))
    return next(pause for pause in range(apart, apart + season) if math.gcd(horizon + pause, season) == 1)
