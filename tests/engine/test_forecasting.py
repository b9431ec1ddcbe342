"""Scores, shares and widths of forecasts, against the same written out."""

import numpy as np
import pytest

from onepass.engine.forecasting import (
    SIZING_HEAD,
    SIZING_SCORED,
    SIZING_WIDTH,
    ForecastWorkspace,
    combine_sizings,
    empty_sizing,
    forecast_series,
    learn_values,
    posterior_weights,
)
from onepass.engine.lag_sums import AT_SCORED, AT_STEP, Plan, normal_equations
from tests.engine.test_lag_sums import plan

NO_INPUTS = np.zeros((1, 1))


class Series:
    """A record that learns and forecasts."""

    def __init__(self, own: Plan) -> None:
        self.plan, self.record, self.priors = own, np.zeros((1, own.size)), own.empty_priors()
        self.sizing, self.work = empty_sizing(own.horizon), ForecastWorkspace(own, own.horizon)
        own.begin(self.record[0], 0.0)

    def learn(self, y: np.ndarray) -> None:
        args = (y, np.zeros((len(y), 1)), np.zeros(len(y), dtype=np.int64), self.record, self.priors, self.sizing)
        learn_values(self.plan, *args, self.work)

    def forecast(self) -> np.ndarray:
        args = (self.record[0], NO_INPUTS, self.priors, self.sizing, self.work)
        return np.asarray(forecast_series(self.plan, *args))


def walk(n: int) -> np.ndarray:
    return np.asarray(60.0 + np.cumsum(np.random.default_rng(2).normal(size=n)))


def test_members_are_weighed_by_the_errors_of_their_last_forecasts() -> None:
    y, series, errors = walk(120), Series(plan()), []
    for t in range(len(y)):
        if series.record[0, AT_STEP] == 0.0:  # an origin: what members say is what they are scored by
            series.forecast()
            means = series.work.arrays[0].copy()
            errors.append(np.abs(means[:, : len(y) - t] - y[t : t + 5]))
        series.learn(y[t : t + 1])
    assert series.record[0, AT_SCORED] == len(errors) - 1 > 3
    series.forecast()
    mae = np.concatenate(errors[-3:], axis=1).mean(axis=1)
    expected = np.exp(-(mae - mae.min()) / (0.2 * mae.min()))
    np.testing.assert_allclose(series.work.arrays[3], expected / expected.sum(), rtol=1e-9)


def test_forecasting_changes_nothing() -> None:
    series = Series(plan())
    series.learn(walk(90))
    before = series.record.copy()
    first = series.forecast()
    np.testing.assert_array_equal(series.record, before)
    np.testing.assert_array_equal(series.forecast(), first)


def test_weights_are_the_posterior_of_the_sums() -> None:
    series = Series(plan())
    series.learn(walk(150))
    matrix, targets, _, _ = normal_equations(series.plan, series.record[0], 1)
    found = posterior_weights(series.plan, series.record[0], 1, 1, series.priors, series.work)
    assert found is not None
    np.testing.assert_allclose(found, np.linalg.solve(matrix + 10.0 * np.eye(len(matrix)), targets))


def test_a_given_prior_replaces_the_first_one() -> None:
    series = Series(plan())
    series.learn(walk(150))
    (_, p, at) = series.plan.tier_places(1)[1]
    series.priors[at], series.priors[at + 1 : at + 1 + p] = 1.0, 0.2
    series.priors[at + 1 + p : at + 1 + p + p * p] = (1e9 * np.eye(p)).ravel()
    found = posterior_weights(series.plan, series.record[0], 1, 1, series.priors, series.work)
    np.testing.assert_allclose(found, 0.2, atol=1e-6)  # type: ignore[arg-type]


def test_sizings_of_parts_move_as_if_their_forecasts_had_come_one_after_the_other() -> None:
    rng = np.random.default_rng(0)
    for each in (1, 3, 5000):  # forecasts that each of four parts scores
        before = np.concatenate([[1000.0, 1.0, 1.0], np.ones(2), np.full(2, 3.0)])
        errors, together, after = rng.gamma(4.0, 0.3, size=(4, each)), 1.0, []
        for part in errors:
            own = before.copy()
            own[SIZING_SCORED] += each
            for error in part:
                own[SIZING_HEAD : SIZING_HEAD + 2] += 0.002 * (error - own[SIZING_HEAD])
            after.append(own)
        for error in errors.T.ravel():
            together += 0.002 * (error - together)
        found = combine_sizings(before, [after[0], before, *after[1:]])
        assert found[SIZING_SCORED] == 1000.0 + 4 * each
        np.testing.assert_allclose(found[SIZING_HEAD] - 1.0, together - 1.0, rtol=0.3)
        np.testing.assert_allclose(found[SIZING_HEAD + 2 :], 3.0)
    np.testing.assert_allclose(combine_sizings(before, [own]), own)
    np.testing.assert_array_equal(combine_sizings(before, [before, before]), before)
    first = empty_sizing(2)
    own = np.concatenate([[2.0, 1.0, 9.0], first[SIZING_HEAD:]])  # the first width takes the place of none
    assert combine_sizings(first, [own] * 8)[SIZING_WIDTH] == pytest.approx(9.0)
