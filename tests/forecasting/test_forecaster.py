"""Forecasts of one series: online, in any split, of awkward series as well, and nothing half-learned."""

import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass import BayesianForecaster
from onepass.forecasting import Forecast, Member


def seasonal(n: int, season: int = 12, seed: int = 0) -> np.ndarray:
    t = np.arange(n)
    return np.asarray(100 + 0.2 * t + 10 * np.sin(2 * np.pi * t / season) + np.random.default_rng(seed).normal(size=n))


def state(model: BayesianForecaster) -> np.ndarray:
    return np.asarray(model.export_state()[1]["record"])


def test_learning_in_any_split_gives_the_same_state() -> None:
    y, X = seasonal(150), np.random.default_rng(1).normal(size=(150, 2))
    y[40:44] = np.nan
    whole, parts, single = BayesianForecaster(12).learn(y, X), BayesianForecaster(12), BayesianForecaster(12)
    for at in (slice(0, 1), slice(1, 30), slice(30, 42), slice(42, 150)):
        parts.learn(y[at], X[at])
    for value, row in zip(y, X, strict=True):
        single.learn(value, row)
    np.testing.assert_array_equal(state(parts), state(whole))
    np.testing.assert_array_equal(state(single), state(whole))
    assert np.isfinite(whole.log_evidence)


def test_seasons_and_trend_are_followed() -> None:
    truth = seasonal(252)[240:]
    forecast = BayesianForecaster(12).learn(seasonal(240)).forecast(12)
    assert np.abs(forecast.mean - truth).mean() < 2.0
    low, high = forecast.interval(0.99)
    assert ((low < truth) & (truth < high)).all()


@pytest.mark.parametrize("later", [0, 3])
def test_saved_forecasters_go_on_as_if_nothing_had_happened(tmp_path: Path, later: int) -> None:
    t = np.arange("2001-01", "2012-07", dtype="datetime64[M]")[: 1 + 45 * later]
    y = seasonal(len(t))
    model = BayesianForecaster().learn(y, times=t)
    onepass.save(model, tmp_path / "model.onepass")
    loaded = onepass.load(tmp_path / "model.onepass")
    more = seasonal(40, seed=3), t[-1] + np.arange(1, 41)
    for own in (model, loaded):
        own.learn(more[0], times=more[1])
    np.testing.assert_array_equal(state(loaded), state(model))
    for horizon in (7, 5, 7):
        np.testing.assert_array_equal(loaded.forecast(horizon).mean, model.forecast(horizon).mean)
    copied = pickle.loads(pickle.dumps(model))
    for horizon in (5, 6):
        np.testing.assert_array_equal(copied.forecast(horizon).mean, model.forecast(horizon).mean)


def test_a_spike_is_not_followed_and_a_level_shift_is() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=203)
    spiked, shifted = y.copy(), y.copy()
    spiked[199], shifted[200:] = 100.0, shifted[200:] + 100.0
    after_spike = BayesianForecaster(1, outliers=True).learn(spiked[:200]).forecast(5)
    after_shift = BayesianForecaster(1, outliers=True).learn(shifted).forecast(5)
    assert np.abs(after_spike.mean).max() < 2.0
    assert np.abs(after_shift.mean - 100.0).max() < 3.0
    followed = BayesianForecaster(1).learn(spiked[:200]).forecast(1)
    assert abs(followed.mean[0]) > 3.0


def test_the_season_survives_a_level_shift() -> None:
    y = seasonal(260)
    y[230:] += 300.0
    forecast = BayesianForecaster(12, outliers=True).learn(y[:240]).forecast(12)
    assert np.abs(forecast.mean - y[240:252]).mean() < 3.0


@pytest.mark.parametrize(("n", "season"), [(60, 1), (150, 12)])
def test_intervals_of_plain_series_contain_their_share_from_the_start(n: int, season: int) -> None:
    rng, horizon, inside = np.random.default_rng(3), 8, {0.8: [], 0.95: []}  # type: ignore[var-annotated]
    for _ in range(40):
        y = np.zeros(n + horizon)
        for t, noise in enumerate(rng.normal(size=len(y))):
            y[t] = 0.6 * y[t - 1] + noise
        y += 3.0 * np.sin(2.0 * np.pi * np.arange(len(y)) / 12.0) if season > 1 else 0.0
        forecast = BayesianForecaster(season, horizon).learn(y[:n]).forecast(horizon)
        for level, found in inside.items():
            low, high = forecast.interval(level)
            found.append((low <= y[n:]) & (y[n:] <= high))
    assert 0.72 <= np.mean(inside[0.8]) <= 0.87
    assert 0.90 <= np.mean(inside[0.95]) <= 0.98


def test_forecasts_from_five_values_are_wide() -> None:
    rng, y = np.random.default_rng(4), []
    for _ in range(40):
        series = np.cumsum(rng.normal(size=9))
        low, high = BayesianForecaster(1).learn(series[:5]).forecast(4).interval(0.95)
        y.append((low <= series[5:]) & (series[5:] <= high))
    assert np.mean(y) >= 0.85


def test_inputs_known_ahead_are_used() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(200, 1)).astype(float)
    y = 50.0 + 20.0 * X[:, 0] + rng.normal(size=200)
    model = BayesianForecaster(1).learn(y, X)
    low, high = model.forecast(2, [[0.0], [1.0]]).mean
    assert high - low == pytest.approx(20.0, abs=2.0)
    np.testing.assert_allclose(model.forecast(2).mean, model.forecast(2, np.repeat(X[-1:], 2, axis=0)).mean)


@pytest.mark.parametrize("n", [28, 100, 200])
@pytest.mark.parametrize("missing", [120, 150, 200, 380, 385, 400, 410])
def test_a_long_gap_leaves_no_certainty(n: int, missing: int) -> None:
    y = 50.0 + 8.0 * np.sin(2.0 * np.pi * np.arange(n) / 7.0) + np.random.default_rng(0).normal(size=n)
    forecast = BayesianForecaster(7).learn(np.concatenate([y, np.full(missing, np.nan)])).forecast(3)
    assert forecast.std.min() > 0.5 * y.std()


@pytest.mark.parametrize("logarithm", [False, True])
def test_a_gap_makes_forecasts_hardly_less_certain_later(logarithm: bool) -> None:
    rng = np.random.default_rng(5)
    y = 500.0 + 20.0 * rng.normal(size=300)
    gap = np.where(np.isin(np.arange(300), (100, 101)), np.nan, y)
    members = [Member((1, 2, 3), logarithm=logarithm)]
    with_gap, without = (BayesianForecaster(1, 8, members=members).learn(own).forecast(8) for own in (gap, y))
    np.testing.assert_allclose(with_gap.std, without.std, rtol=0.15)


def test_gaps_in_times_are_missing_values() -> None:
    t, y = np.arange("2024-01-01", "2024-04-01", dtype="datetime64[D]"), seasonal(91, 7)
    kept = np.ones(91, dtype=bool)
    kept[[30, 31, 50]] = False
    gaps = BayesianForecaster(7).learn(y[kept], times=t[kept])
    marked = BayesianForecaster(7).learn(np.where(kept, y, np.nan))
    np.testing.assert_array_equal(state(gaps), state(marked))


@pytest.mark.parametrize(
    "y",
    [
        np.full(60, 7.0),
        np.zeros(60),
        np.full(60, 1e-30),
        np.arange(60.0),
        np.array([3.0, 4.0]),
        np.array([3.0, 4.0, 6.0]),
        np.array([5.0, np.nan, np.nan, 6.0]),
        np.concatenate([np.ones(30), [0.0], np.ones(30)]),
        np.concatenate([np.full(50, np.nan), [2.0, 3.0, 2.5]]),
        np.where(np.arange(80) % 2, 1.0, np.nan),
        1e80 * np.random.default_rng(0).normal(size=80),
        np.exp(np.arange(100.0)),
        -np.exp(0.5 * np.arange(100.0)),
        np.random.default_rng(0).poisson(0.1, 200).astype(float),
    ],
)
def test_awkward_series_have_finite_forecasts(y: np.ndarray) -> None:
    model = BayesianForecaster(7).learn(y)
    forecast = model.forecast(30)
    low, high = forecast.interval(0.95)
    assert np.isfinite([forecast.mean, forecast.std, low, high]).all()
    assert (low <= high).all()
    assert np.isfinite(model.log_evidence)
    reach = 20.0 * (np.nanmax(y) - np.nanmin(y)) + np.abs(np.nanmax(y)) + 1e-6
    assert (np.abs(forecast.mean - y[~np.isnan(y)][-1]) <= reach).all()


def test_series_without_negative_values_have_no_negative_limits() -> None:
    low, _ = BayesianForecaster(7).learn(np.random.default_rng(0).poisson(0.5, 200)).forecast(10).interval(0.99)
    assert (low >= 0.0).all()


@pytest.mark.parametrize(
    ("y", "X", "times", "words"),
    [
        ([1.0, np.inf], None, None, "finite"),
        ([1.0, 1e101], None, None, "larger units"),
        ([[1.0, 2.0]], None, None, "shape"),
        ([1.0, 2.0], [[1.0]], None, "row of inputs"),
        ([1.0, 2.0], None, [6.0, 5.0], "go back"),
        ([1.0, 2.0, 3.0], None, [4.0, 5.0, 5.0], "repeat"),
        ([1.0, 2.0, 3.0], None, [4.0, 5.0, 5.5], "rhythm"),
        ([1.0], None, None, "all values or with none"),
        ([1.0], None, ["2024-01-01"], "all dates or all numbers"),
    ],
)
def test_what_is_refused_changes_nothing(y: object, X: object, times: object, words: str) -> None:
    model = BayesianForecaster(1).learn([1.0, 2.0, 3.0, 2.0], times=[0.0, 1.0, 2.0, 3.0])
    before = model.export_state()
    with pytest.raises((ValueError, TypeError), match=words):
        model.learn(y, X, times)  # type: ignore[arg-type]
    after = model.export_state()
    assert after[0] == before[0]
    np.testing.assert_array_equal(after[1]["record"], before[1]["record"])


def test_too_few_values_are_said_so() -> None:
    with pytest.raises(ValueError, match="at least 2 values, got 0"):
        BayesianForecaster(12).forecast(3)
    with pytest.raises(ValueError, match="at least 2 values, got 0"):
        BayesianForecaster(12).learn([np.nan] * 20).forecast(3)


def test_the_rhythm_of_the_times_sets_the_season() -> None:
    t = np.arange("2024-01-01", "2024-02-01", dtype="datetime64[h]")
    model = BayesianForecaster().learn(seasonal(len(t), 24)[:1], times=t[:1])
    assert model.members == ()
    model.learn(seasonal(len(t), 24)[1:], times=t[1:])
    assert len(model.members) == 8
    assert max(max(member.lags) for member in model.members) == 192


def test_own_members_are_used() -> None:
    model = BayesianForecaster(1, 4, members=[Member((1, 2)), Member((1,), difference=1)]).learn(seasonal(80))
    assert sum(model.shares.values()) == pytest.approx(1.0)
    assert {part.member for part in model.forecast(2).members} <= set(model.members)


def test_columns_of_a_table_are_learned_as_they_are() -> None:
    table = np.column_stack([seasonal(60), seasonal(60, seed=1)])
    np.testing.assert_array_equal(
        state(BayesianForecaster(12).learn(table[:, 1])), state(BayesianForecaster(12).learn(table[:, 1].copy()))
    )


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_apart_and_go_on_as_the_original(copied: Callable[[BayesianForecaster], BayesianForecaster]) -> None:
    y, more = seasonal(100), seasonal(40, seed=3)
    model, same = BayesianForecaster(12).learn(y), BayesianForecaster(12).learn(y)
    model.forecast(5)
    own = copied(model)
    before = [own.forecast(horizon).mean for horizon in (30, 3)]
    model.learn(more)
    model.forecast(30)
    for horizon, mean in zip((30, 3), before, strict=True):
        np.testing.assert_array_equal(own.forecast(horizon).mean, mean)
    same.learn(more)
    own.learn(more)
    np.testing.assert_array_equal(state(own), state(same))
    np.testing.assert_array_equal(own.forecast(7).interval(), same.forecast(7).interval())
    np.testing.assert_array_equal(model.forecast(7).interval(), same.forecast(7).interval())


def test_forecasts_over_several_horizons_leave_no_trace(tmp_path: Path) -> None:
    model, asked = BayesianForecaster(12).learn(seasonal(100)), BayesianForecaster(12).learn(seasonal(100))
    onepass.save(asked, tmp_path / "model.onepass")
    loaded = onepass.load(tmp_path / "model.onepass")
    for own in (asked, loaded):
        for horizon in (40, 24, 3):
            own.forecast(horizon)
    more = seasonal(60, seed=4)
    for own in (model, asked, loaded):
        own.learn(more)
    for own in (asked, loaded):
        np.testing.assert_array_equal(state(own), state(model))
        np.testing.assert_array_equal(own.forecast(40).cov, model.forecast(40).cov)


@pytest.mark.parametrize("zero", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("member", [Member((1, 7), waves=((7, (1, 2)),)), Member((1,), difference=7)])
def test_effects_of_inputs_do_not_depend_on_where_their_zero_is(member: Member, zero: float) -> None:
    rng = np.random.default_rng(0)
    price = rng.choice([-1.0, 0.0, 1.0], size=(300, 1))
    y = 50.0 - 10.0 * price[:, 0] + 8.0 * np.sin(2 * np.pi * np.arange(300) / 7) + rng.normal(size=300)
    model = BayesianForecaster(7, members=[member]).learn(y, zero + price)
    low, high = (model.forecast(1, [[zero + own]]).mean[0] for own in (-1.0, 1.0))
    assert low - high == pytest.approx(20.0, abs=1.5)


# Counts.


def intermittent(n: int, mean: float, seed: int, *, size: float = 2.0) -> np.ndarray:
    """An autoregression of negative binomial counts, INGARCH(1, 1)."""
    rng, found, expected = np.random.default_rng(seed), np.zeros(n), mean
    for t in range(n):
        found[t] = rng.poisson(rng.gamma(size, expected / size))
        expected = 0.2 * mean + 0.3 * found[t] + 0.5 * expected
    return found


def crps(forecast: Forecast, actual: np.ndarray) -> float:
    """By quantiles of the forecast."""
    levels = (np.arange(100) + 0.5) / 100
    loss = actual - forecast.ppf(levels[:, None])
    return float(2.0 * (loss * (levels[:, None] - (loss < 0.0))).mean())


def forecasts(model: BayesianForecaster, y: np.ndarray, horizon: int) -> Iterator[tuple[Forecast, np.ndarray]]:
    """Forecasts at rolling origins, with what came."""
    done = 0
    for origin in range(80, len(y) - horizon, horizon):
        model.learn(y[done:origin])
        done = origin
        yield model.forecast(horizon), y[origin : origin + horizon]


@pytest.mark.parametrize("mean", [0.3, 2.0, 20.0])
def test_intervals_of_counts_contain_their_share(mean: float) -> None:
    """What lies beyond a limit has at least its nominal share, less the probability of the limit itself."""
    beyond: dict[float, list[np.ndarray]] = {0.8: [], 0.95: []}
    rng = np.random.default_rng(0)
    for seed in range(6):
        for forecast, actual in forecasts(BayesianForecaster(1, counts=True), intermittent(400, mean, seed), 14):
            uniform = forecast.cdf(actual) - rng.random(14) * forecast.pdf(actual)
            for level, found in beyond.items():
                found.append(np.abs(uniform - 0.5) <= 0.5 * level)
    assert np.mean(beyond[0.8]) == pytest.approx(0.8, abs=0.05)
    assert np.mean(beyond[0.95]) == pytest.approx(0.95, abs=0.025)


@pytest.mark.parametrize("mean", [0.3, 2.0, 20.0])
def test_counts_are_forecast_better_as_counts(mean: float) -> None:
    scores = {True: 0.0, False: 0.0}
    for seed in range(4):
        y = intermittent(300, mean, seed + 50)
        for counts in scores:
            scores[counts] += sum(crps(*pair) for pair in forecasts(BayesianForecaster(1, counts=counts), y, 14))
    assert scores[True] < (0.9 if mean < 1.0 else 0.97) * scores[False]


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(50),
        np.full(40, 7.0),
        np.where(np.arange(60) == 40, 1.0, 0.0),
        np.where(np.arange(200) % 50 == 0, 1e6, 0.0),
        np.where(np.arange(80) % 3 == 0, np.nan, 2.0),
        np.array([0.0, 0.0]),
        np.array([3.0, 0.0, np.nan]),
        np.floor(np.exp(0.15 * np.arange(120.0))),
        np.full(30, 1e15),
    ],
)
def test_awkward_counts_have_whole_forecasts(y: np.ndarray) -> None:
    forecast = BayesianForecaster(7, counts=True).learn(y).forecast(20)
    low, high = forecast.interval(0.95)
    found = np.array([low, high, *forecast.sample_paths(3, 0), *forecast.sample(3, 0)])
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, np.floor(found))
    assert (forecast.mean > 0.0).all()
    assert np.isfinite(forecast.std).all()
    assert (low <= high).all()
    assert forecast.decomposition.level.shape == (20,)


def test_a_count_that_never_changes_is_almost_certain() -> None:
    forecast = BayesianForecaster(7, counts=True).learn(np.full(300, 3.0)).forecast(4)
    low, high = forecast.interval(0.95)
    assert (forecast.std < 0.3).all()
    assert (low >= 2.0).all()
    assert (high <= 4.0).all()


def test_very_large_counts_are_forecast_and_larger_ones_refused() -> None:
    model = BayesianForecaster(7, counts=True).learn(np.random.default_rng(0).integers(1, 9, 300) * 1e14)
    low, high = model.forecast(3).interval(0.95)
    assert (low < high).all()
    with pytest.raises(ValueError, match=r"beyond 1e\+15"):
        model.learn(1e17)


def test_after_zeros_alone_a_count_is_still_possible() -> None:
    """As with half a count among so many values, Jeffreys' prior of a Poisson rate."""
    for n in (20, 200):
        forecast = BayesianForecaster(1, counts=True).learn(np.zeros(n)).forecast(3)
        np.testing.assert_allclose(forecast.mean, 0.5 / n)
        assert (forecast.pdf(1.0) > 0.0).all()


@pytest.mark.parametrize("wrong", [-1.0, 0.5])
@pytest.mark.parametrize("revisions", [0, 3])
def test_what_is_not_a_count_is_refused_and_changes_nothing(wrong: float, revisions: int) -> None:
    t = np.arange(40.0)
    model = BayesianForecaster(1, counts=True, revisions=revisions).learn(np.arange(40) % 3, times=t)
    before = state(model)
    with pytest.raises(ValueError, match=r"counts 0, 1, 2, \.\.\. for counts=True, got .* at index 1"):
        model.learn([2.0, wrong], times=t[-1] + np.array([1.0, 2.0]))
    np.testing.assert_array_equal(state(model), before)


def test_counts_are_learned_in_any_split_saved_and_revised(tmp_path: Path) -> None:
    y, t = intermittent(200, 2.0, 0), np.arange(200.0)
    whole, parts = BayesianForecaster(7, counts=True).learn(y, times=t), BayesianForecaster(7, counts=True)
    for at in (slice(0, 1), slice(1, 90), slice(90, 200)):
        parts.learn(y[at], times=t[at])
    late = BayesianForecaster(7, counts=True, revisions=5).learn(np.where(t == 198, 9.0, y), times=t)
    late.learn(y[198], times=198.0)
    onepass.save(parts, tmp_path / "model.onepass")
    for model in (
        parts,
        late,
        onepass.load(tmp_path / "model.onepass"),
        copy.copy(whole),
        pickle.loads(pickle.dumps(whole)),
    ):
        assert model.counts
        np.testing.assert_array_equal(model.forecast(14).mean, whole.forecast(14).mean)
        np.testing.assert_array_equal(model.forecast(14).interval()[1], whole.forecast(14).interval()[1])


def test_seasons_of_counts_are_followed() -> None:
    rate = np.tile([0.2, 0.2, 0.5, 2.0, 4.0, 8.0, 0.2], 60)
    y = np.random.default_rng(0).poisson(rate).astype(float)
    forecast = BayesianForecaster(7, counts=True).learn(y).forecast(7)
    np.testing.assert_allclose(forecast.mean, rate[:7], atol=0.5, rtol=0.25)
    assert forecast.pdf(0.0)[0] > 0.6
    assert forecast.pdf(0.0)[5] < 0.05


def test_the_variance_of_counts_is_in_proportion_to_the_mean_however_many_steps_are_asked_for() -> None:
    model = BayesianForecaster(7, counts=True).learn(intermittent(90, 2.0, 0))
    ratios = np.concatenate([(one.var / one.mean) for one in (model.forecast(20), model.forecast(2))])
    np.testing.assert_allclose(ratios, ratios[0])
