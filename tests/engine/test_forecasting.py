"""Scores, shares and widths of forecasts, against the same written out."""

import numpy as np
import pytest

from onepass.engine.forecasting import (
    SIZING_HEAD,
    SIZING_RATIO,
    SIZING_SCORED,
    SIZING_SERIES,
    SIZING_YOUNG,
    ForecastWorkspace,
    combine_sizings,
    empty_sizing,
    forecast_series,
    learn_values,
    member_regression,
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


def test_members_are_weighed_by_the_errors_of_their_forecasts_the_last_ones_most() -> None:
    y, series, errors, lengths = walk(120), Series(plan()), [], []
    for t in range(len(y)):
        if series.record[0, AT_STEP] == 0.0:  # an origin: what members say is what they are scored by
            series.forecast()
            means, shares = series.work.arrays[0].copy(), series.work.arrays[3]
            means[shares == 0.0] = np.nan  # no forecast yet
            errors.append(np.abs(means[:, : len(y) - t] - y[t : t + 5]))
            lengths.append(t)
        series.learn(y[t : t + 1])
    assert series.record[0, AT_SCORED] == len(errors) - 1 > 3
    series.forecast()
    kept = 1.0 - 1.0 / series.plan.n_tests
    weights = [kept**age * (0.05 if t < 12 else 1.0) for age, t in zip(range(len(errors))[::-1], lengths, strict=True)]
    known = sum(weight * np.isfinite(own).sum(axis=1) for weight, own in zip(weights, errors, strict=True))
    mae = sum(weight * np.nansum(own, axis=1) for weight, own in zip(weights, errors, strict=True)) / known
    expected = np.exp(-(mae - mae.min()) / (0.2 * mae.min()))
    np.testing.assert_allclose(series.work.arrays[3], expected / expected.sum(), rtol=1e-9)


def scored_forecasts(series: Series, y: np.ndarray) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Learn values; where each forecast that was scored began, its errors in deviations, and those in half-widths."""
    found, horizon, at = [], series.plan.horizon, series.plan.at_combined
    for t in range(len(y)):
        if series.record[0, AT_STEP] == 0.0 and t + horizon <= len(y):
            mean, deviation, spread = series.record[0, at : at + 3 * horizon].reshape(3, horizon).copy()
            errors = np.abs(y[t : t + horizon] - mean)
            found.append((t, np.minimum(errors / deviation, 15.0), errors / spread))
        series.learn(y[t : t + 1])
    return found


def test_sizes_and_quantiles_are_tracked_as_written_out() -> None:
    y = 60.0 + 3.0 * np.random.default_rng(5).standard_t(3, size=400)
    series = Series(plan())
    sizes, quantiles, ratio, n = np.full(5, np.sqrt(2.0 / np.pi)), np.full(5, 2.0), 1.0, 0
    for start, deviations, widths in scored_forecasts(series, y):
        if start < 12:
            continue
        rate = 3.0 / (120.0 + min(n, 903.0))
        ratio *= np.exp(2.0 * rate * np.sign(np.mean(deviations / sizes) - ratio))
        sizes += rate * (deviations - sizes)
        outside = np.mean(widths > quantiles)  # at five steps all are near each other
        quantiles = quantiles * np.exp(4.0 / (200.0 + min(n, 1)) * (outside - 0.05))
        n += 1
    assert n > 50
    found = series.sizing
    assert found[SIZING_SCORED] == n
    assert found[SIZING_SERIES] == 1.0
    np.testing.assert_allclose(found[SIZING_RATIO], ratio)
    np.testing.assert_allclose(found[SIZING_HEAD:], np.concatenate([sizes, quantiles]))


def test_a_first_forecast_sizes_nothing_but_first_forecasts() -> None:
    series, before = Series(plan()), empty_sizing(5)
    y = np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 500.0, 900.0, 100.0])
    assert len(scored_forecasts(series, y)) == 1
    changed = np.flatnonzero(series.sizing != before)
    assert changed.tolist() == [SIZING_YOUNG]
    assert series.sizing[SIZING_YOUNG] > before[SIZING_YOUNG]


def test_widths_follow_the_phase_of_the_season() -> None:
    t = np.arange(598)
    y = 60.0 + np.random.default_rng(1).normal(size=598) * np.where(t % 7 == 3, 6.0, 1.0)
    series = Series(plan())
    series.learn(y)  # the next value is at the wild phase
    _, deviations, quantiles = series.forecast()
    widths = deviations * quantiles
    assert 2.0 < widths[0] / widths[1:].mean() < 10.0
    assert np.ptp(widths[1:]) < 0.5 * widths[1]


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
    mean, cov = found
    np.testing.assert_allclose(mean, np.linalg.solve(matrix + 10.0 * np.eye(len(matrix)), targets))
    unit = np.linalg.inv(matrix + 10.0 * np.eye(len(matrix)))
    np.testing.assert_allclose(cov / cov[0, 0], unit / unit[0, 0])


def autoregressive(weight: float) -> np.ndarray:
    """A series whose lags' weights are certain to sum to less than 1, so that bounding them changes nothing."""
    changes = np.random.default_rng(4).normal(size=400)
    for t in range(1, len(changes)):
        changes[t] += weight * changes[t - 1]
    return np.asarray(60.0 + np.cumsum(changes))


@pytest.mark.parametrize("weight", [0.0, -0.95])
def test_a_series_tells_how_far_its_weights_are_from_the_prior(weight: float) -> None:
    series = Series(plan())
    series.learn(autoregressive(weight))
    matrix, targets, squares, n = normal_equations(series.plan, series.record[0], 1)
    p = len(matrix)
    first = np.linalg.solve(matrix + 10.0 * np.eye(p), targets)
    left = 10.0 * np.trace(np.linalg.inv(matrix + 10.0 * np.eye(p)))
    noise = (squares - 2.0 * first @ targets + first @ matrix @ first + 0.02) / (n - (p - left) + 2.0)
    tightness = (p - left + 5.0) / (10.0 * first @ first / noise + 5.0)
    assert tightness > 1.2 if weight == 0.0 else tightness < 0.8
    expected = np.linalg.solve(matrix + 10.0 * tightness * np.eye(p), targets)
    found, _ = member_regression(series.plan, series.record[0].copy(), 1, NO_INPUTS, series.priors, series.work)
    std = np.sqrt(noise * np.diag(np.linalg.inv(matrix + 10.0 * tightness * np.eye(p))))[:4]
    assert (np.abs(found[:4] - expected[:4]) < 0.01 * std).all()
    assert (np.abs(found[:4] - first[:4]) > 0.02 * std).any()


def test_a_given_prior_replaces_the_first_one() -> None:
    series = Series(plan())
    series.learn(walk(150))
    (_, p, at) = series.plan.tier_places(1)[1]
    series.priors[at], series.priors[at + 1 : at + 1 + p] = 1.0, 0.2
    series.priors[at + 1 + p : at + 1 + p + p * p] = (1e9 * np.eye(p)).ravel()
    found = posterior_weights(series.plan, series.record[0], 1, 1, series.priors, series.work)
    assert found is not None
    np.testing.assert_allclose(found[0], 0.2, atol=1e-6)


def test_sizings_of_parts_move_as_if_their_forecasts_had_come_one_after_the_other() -> None:
    rng, rate = np.random.default_rng(0), 3.0 / 1080.0  # of so many forecasts of 60 series
    for each in (1, 3, 5000):  # forecasts that each of four parts scores
        before = np.concatenate([[2000.0, 20.0, 1.0, 1.5], np.ones(2), np.full(2, 3.0)])
        errors, together, after = rng.gamma(4.0, 0.3, size=(4, each)), 1.0, []
        for part in errors:
            own = before.copy()
            own[SIZING_SCORED] += each
            own[SIZING_SERIES] += 10.0
            for error in part:
                own[SIZING_HEAD : SIZING_HEAD + 2] += rate * (error - own[SIZING_HEAD])
            after.append(own)
        for error in errors.T.ravel():
            together += rate * (error - together)
        found = combine_sizings(before, [after[0], before, *after[1:]])
        assert found[SIZING_SCORED] == 2000.0 + 4 * each
        assert found[SIZING_SERIES] == 60.0
        np.testing.assert_allclose(found[SIZING_HEAD] - 1.0, together - 1.0, rtol=0.35)
        np.testing.assert_allclose(found[SIZING_HEAD + 2 :], 3.0)
    np.testing.assert_allclose(combine_sizings(before, [own]), own)
    np.testing.assert_array_equal(combine_sizings(before, [before, before]), before)


def test_parts_of_young_series_agree_how_much_wider_their_intervals_are() -> None:
    before, first, second = empty_sizing(2), empty_sizing(2), empty_sizing(2)
    first[SIZING_YOUNG], second[SIZING_YOUNG] = 4.0, 1.0
    assert combine_sizings(before, [first, second])[SIZING_YOUNG] == pytest.approx(2.0)


def test_the_sizing_of_one_part_is_what_it_has_learned() -> None:
    series = Series(plan())
    series.learn(walk(200))
    np.testing.assert_allclose(combine_sizings(empty_sizing(series.plan.horizon), [series.sizing]), series.sizing)
