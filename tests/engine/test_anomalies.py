"""Scores and alarms of the compiled code, against the same written out with SciPy's distributions."""

import numpy as np
import pytest
from scipy import stats

from onepass.engine import anomalies as found_at
from onepass.engine.anomalies import AT_CONFIRMED, AT_N, N_FOUND, first_state, score_values
from onepass.engine.forecasting import ForecastWorkspace, empty_sizing
from onepass.engine.lag_sums import AT_ERROR_SIZE, AT_MISSING, AT_ORIGIN, AT_READY, Plan
from tests.engine.test_lag_sums import plan

T2 = stats.t(2)


class Series:
    """A record that scores values one at a time."""

    def __init__(self, own: Plan, rarest: float, side: int = 0, quiet: float = 10.0) -> None:
        self.plan, self.record, self.priors = own, np.zeros(own.size), own.empty_priors()
        self.sizing, self.work = empty_sizing(own.horizon), ForecastWorkspace(own, own.horizon)
        self.state, self.settings = first_state(), (rarest, side, quiet)
        own.begin(self.record, 0.0)

    def score(self, y: np.ndarray) -> np.ndarray:
        found = np.zeros((len(y), N_FOUND))
        args = (self.record, self.priors, self.sizing, self.work, self.state, *self.settings, found)
        score_values(self.plan, y, np.zeros((len(y), 1)), *args)
        return found


class Tail:
    """The distribution of a statistic by two of its quantiles."""

    def __init__(self, first: float, second: float) -> None:
        self.logs = [np.log(first), np.log(second)]

    def rarity(self, x: float) -> float:
        slope = np.clip(np.log(2.0) / (self.logs[1] - self.logs[0]), 1.0, 4.0)
        return float(np.log(10.0) * (x / np.exp(self.logs[0])) ** slope)

    def track(self, x: float, n: int, rate: float) -> None:
        for k, (share, memory) in enumerate([(0.1, 1000), (0.01, 4000)]):
            self.logs[k] += rate / (share * min(n + 100, memory)) * ((np.log(max(x, 1e-300)) > self.logs[k]) - share)
        self.logs[1] = max(self.logs[1], self.logs[0] + 0.1)


class Written:
    """The scores as the module's text says."""

    def __init__(self, side: int) -> None:
        self.own, self.last, self.mean = Tail(1.9, 3.0), Tail(1.6, 2.6), 1.0
        self.side, self.log_size, self.n = side, 0.0, 0

    def score(self, error: float) -> tuple[float, float]:
        z = error / np.exp(self.log_size)
        surprise = -{0: T2.logsf(abs(z)) + np.log(2.0), 1: T2.logsf(z), -1: T2.logcdf(z)}[self.side]
        own = self.own.rarity(surprise)
        self.own.track(surprise, self.n, 0.2)
        self.mean += 0.25 * (min(own, 20.0) - self.mean)
        evidence = max(own / 2.0, self.mean)
        total = self.last.rarity(evidence)
        self.last.track(evidence, self.n, 0.05)
        self.n += 1
        self.log_size += max(1.0 / (self.n + 5.0), 0.01) * (1.0 if abs(z) > T2.ppf(0.75) else -1.0)
        return np.exp(-own), 1.0 - np.exp(-total)


def walk(n: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    y = 60.0 + np.cumsum(rng.standard_t(4, size=n))
    y[[n // 2, n // 3]] += 30.0, -20.0
    y[n // 4 : n // 4 + 3] = np.nan
    return np.asarray(y)


@pytest.mark.parametrize("side", [0, 1, -1])
def test_scores_are_those_written_out(side: int) -> None:
    series, written, compared = Series(plan(), np.log(1e3), side), Written(side), 0
    for y in walk(400):
        ready = series.record[AT_READY] > 0.0
        wider = np.sqrt(1.0 + series.record[AT_MISSING]) / series.record[AT_ERROR_SIZE]
        (found,) = series.score(np.array([y]))
        if not ready:
            continue
        if np.isnan(y):
            assert np.isnan(found[[found_at.FOUND_TAIL, found_at.FOUND_SCORE]]).all()
            continue
        tail, score = written.score((y - series.work.expected) / (series.work.expected_std * wider))
        assert found[found_at.FOUND_EXPECTED] == series.work.expected
        np.testing.assert_allclose(found[found_at.FOUND_TAIL], tail, rtol=1e-6)
        np.testing.assert_allclose(found[found_at.FOUND_SCORE], score, rtol=1e-6, atol=1e-12)
        compared += 1
    assert compared == series.state[AT_N] > 380


@pytest.mark.parametrize("side", [0, 1, -1])
def test_a_value_at_its_limit_is_just_as_rare_as_alarms_are(side: int) -> None:
    rarest, y = np.log(1e3), walk(300)
    for offset, expected in ((-1e-4, False), (1e-4, True)):
        series = Series(plan(), rarest, side, quiet=0.0)
        series.score(y)
        (before,) = series.score(np.array([np.nan]))
        low, high = before[[found_at.FOUND_LOW, found_at.FOUND_HIGH]]
        centre, limit = before[found_at.FOUND_EXPECTED], high if side >= 0 else low
        series = Series(plan(), rarest, side, quiet=0.0)
        series.score(y)
        series.state[found_at.AT_MEAN] = -100.0  # no evidence but the value itself
        (found,) = series.score(np.array([limit + offset * (limit - centre)]))
        assert (found[found_at.FOUND_SCORE] > 1.0 - 1e-3) == expected
        assert (found[found_at.FOUND_KIND] == found_at.SPIKE) == expected
        assert (found[found_at.FOUND_LOW] == -np.inf) == (side == 1)
        assert (found[found_at.FOUND_HIGH] == np.inf) == (side == -1)


def test_a_spike_is_held_back_and_a_level_is_found_once() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    y[300] += 40.0
    y[400:] += 40.0
    series = Series(plan(), np.log(1e4))
    found = series.score(y[:301])
    assert found[300, found_at.FOUND_KIND] == found_at.SPIKE
    assert abs(series.score(np.array([np.nan]))[0, found_at.FOUND_EXPECTED]) < 2.0
    origin = series.record[AT_ORIGIN]
    kinds = series.score(y[301:])[:, found_at.FOUND_KIND]
    assert np.flatnonzero(kinds).tolist() == [99, 101]
    assert kinds[[99, 101]].tolist() == [found_at.SPIKE, found_at.LEVEL]
    assert series.record[AT_ORIGIN] - origin == pytest.approx(40.0, abs=2.0)
    assert series.state[AT_CONFIRMED] == -1.0  # nothing is in question


def test_after_equal_values_another_one_is_as_rare_as_the_rule_of_succession_says() -> None:
    series = Series(plan(), np.log(50.0))
    found = series.score(np.array([5.0] * 99 + [6.0]))
    np.testing.assert_array_equal(found[1:99, found_at.FOUND_SCORE], 0.0)
    assert found[99, found_at.FOUND_TAIL] == pytest.approx(0.01)
    assert found[99, found_at.FOUND_KIND] == found_at.SPIKE
    again = Series(plan(), np.log(200.0)).score(np.array([5.0] * 99 + [6.0]))
    assert again[99, found_at.FOUND_KIND] == found_at.NO_ALARM
    assert series.state[found_at.AT_QUIET] == 10.0
