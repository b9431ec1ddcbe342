import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from onepass import BayesianForecaster
from onepass.evaluation import backtest
from onepass.evaluation.backtesting import NAIVE, OURS, SEASONAL, backtest_table
from onepass.tables.readers.registry import open_source
from onepass.tables.series import read_series
from onepass.tables.series_rows import SeriesColumns

T = np.arange(150)
Y = 50 + 10 * np.sin(2 * np.pi * T / 7) + np.random.default_rng(0).normal(size=150)


def test_scores_are_those_of_forecasters_refitted_at_every_origin() -> None:
    """The other route: a new forecaster per origin, and the scores by their definitions."""
    found = backtest(Y, 5, season_length=7, origins=3)
    assert (found.origins, found.forecasts) == (3, 3)
    mase, smape, crps, inside = [], [], [], []
    for origin in (75, 110, 145):
        past, actual = Y[:origin], Y[origin : origin + 5]
        forecast = BayesianForecaster(7, 5).learn(past).forecast(5)
        scale = np.abs(past[7:] - past[:-7]).mean()
        error = np.abs(actual - forecast.mean)
        mase.append(error.mean() / scale)
        smape.append((200 * error / (np.abs(actual) + np.abs(forecast.mean))).mean())
        draws = np.asarray(forecast.sample(40_000, rng=0)).reshape(40_000, 5)
        spread = np.abs(draws[:20_000] - draws[20_000:]).mean(axis=0)
        crps.append((np.abs(draws - actual).mean(axis=0) - 0.5 * spread).mean() / scale)
        low, high = forecast.interval(0.95)
        inside.append(((low <= actual) & (actual <= high)).mean())
    scores = found.scores[OURS]
    assert scores["mase"] == pytest.approx(np.mean(mase), rel=1e-9)
    assert scores["smape"] == pytest.approx(np.mean(smape), rel=1e-9)
    assert scores["crps"] == pytest.approx(np.mean(crps), rel=0.02)
    assert scores["in_95"] == pytest.approx(np.mean(inside))


def test_the_naive_forecasts_are_earlier_values() -> None:
    y = np.tile([1.0, 5.0, 9.0], 20) + np.where(np.arange(60) == 56, 3.0, 0.0)
    found = backtest(y, 3, season_length=3, origins=1)
    # the origin is 57; the values 1, 5, 9 follow, the last one is 12, those a season earlier are 1, 5, 12
    scale = np.abs(y[3:57] - y[:54]).mean()
    assert found.scores[NAIVE]["mase"] == pytest.approx((11 + 7 + 3) / 3 / scale)
    assert found.scores[SEASONAL]["mase"] == pytest.approx(3 / 3 / scale)


def test_a_backtest_knows_nothing_of_later_values() -> None:
    changed = Y.copy()
    changed[145:] = 1e6
    spoiled = backtest(changed, 5, season_length=7, origins=1)
    assert spoiled.scores[OURS]["mase"] > 1e3


def test_coverage_is_counted_step_by_step() -> None:
    found = backtest(Y, 10, season_length=7)
    shares = found.coverage[OURS]
    assert shares.shape == (2, 10)
    assert shares[1].mean() == pytest.approx(found.scores[OURS]["in_95"])
    assert found.scores[OURS]["in_95"] >= 0.9
    assert found.scores[OURS]["mase"] < found.scores[NAIVE]["mase"]


def test_many_series_are_scored_as_a_fleet() -> None:
    rng = np.random.default_rng(1)
    many = {str(key): Y * key + rng.normal(size=150) for key in range(1, 6)}
    found = backtest(many, 7, season_length=7, origins=4)
    assert found.forecasts == 20
    assert "5" not in found.scores
    assert found.scores[OURS]["mase"] < found.scores[NAIVE]["mase"]


def test_missing_values_are_left_out() -> None:
    holes = Y.copy()
    holes[::5] = np.nan
    found = backtest(holes, 7, season_length=7)
    assert all(math.isfinite(score) for score in found.scores[OURS].values())


def test_equal_values_have_no_scale() -> None:
    found = backtest(np.full(50, 3.0), 5)
    assert math.isnan(found.scores[OURS]["mase"])
    assert found.scores[OURS]["smape"] < 0.1
    assert found.table()[1][1] == "-"


def test_a_short_series_is_tested_over_fewer_steps() -> None:
    found = backtest(Y[:14], 10, season_length=1)
    assert found.horizon == 6
    with pytest.raises(ValueError, match="at least 9 values"):
        backtest(Y[:5], 3)
    with pytest.raises(ValueError, match="compare"):
        backtest(Y, 3, compare=["prophet"])


def test_exponential_smoothing_forecasts_the_same_origins() -> None:
    pytest.importorskip("statsmodels")
    found = backtest(Y, 7, season_length=7, origins=2, compare=["ets"])
    assert found.failed == {}
    assert found.scores["ETS"]["mase"] < found.scores[NAIVE]["mase"]


def test_a_missing_statsmodels_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onepass.evaluation.backtesting.is_installed", lambda package: False)
    with pytest.raises(ImportError, match="pip install statsmodels"):
        backtest(Y, 3, compare=["ets"])


def test_a_forecast_that_is_certain_has_its_error_as_score_without_a_warning() -> None:
    y = np.tile([1.0, 5.0, 9.0], 20)
    y[-2] = 8.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = backtest(y, 3, season_length=3, origins=1)
    assert found.scores[SEASONAL]["crps"] == found.scores[SEASONAL]["mase"] > 0.0


def test_of_many_series_some_spread_over_all_are_scored() -> None:
    found = backtest(dict.fromkeys(map(str, range(150)), Y[:40]), 2, origins=1)
    assert found.forecasts == 100


def test_counts_are_scored_by_their_own_distribution(tmp_path: Path) -> None:
    y = np.random.default_rng(0).poisson(0.6, 120)
    file = tmp_path / "counts.csv"
    days = np.arange("2024-01-01", "2024-04-30", dtype="datetime64[D]")
    file.write_text("day,y\n" + "".join(f"{day},{n}\n" for day, n in zip(days, y, strict=True)))
    columns = SeriesColumns("day", "y", counts=True)
    found = backtest_table(read_series([open_source(str(file))], columns, seasons=1), 5, origins=1)
    assert found is not None
    past, actual = y[:115], y[115:]
    forecast = BayesianForecaster(1, 5, counts=True).learn(past).forecast(5)
    k = np.arange(60.0)[:, None]
    expected = np.square(forecast.cdf(k) - (k >= actual)).sum(axis=0).mean() / np.abs(np.diff(past)).mean()
    assert found.scores[OURS]["crps"] == pytest.approx(expected, rel=0.01)
