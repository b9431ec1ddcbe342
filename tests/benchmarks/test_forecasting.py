"""Scores of forecasts against other definitions of the same, and the page against what is stored."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from benchmarks.forecasting import __main__ as command
from benchmarks.forecasting import competition, counts, page, parts, rollout
from benchmarks.stored import keep, stored

from onepass.forecasting import Forecast


def test_scores_of_one_series_by_hand() -> None:
    series = [competition.Series(np.array([1.0, 2.0, 4.0]), np.array([5.0, 0.0]))]
    forecasts = [Forecast(np.array([4.0, 2.0]), np.diag([1.0, 0.01]))]
    found = competition.scored(series, forecasts, 1)
    assert found["mase"] == pytest.approx(1.5 / 1.5)
    assert found["smape"] == pytest.approx((200.0 / 9.0 + 200.0) / 2.0)
    width = 2.0 * 1.959964 * np.array([1.0, 0.1])
    outside = np.array([0.0, 2.0 - 0.1959964])
    assert found["msis"] == pytest.approx((width + 40.0 * outside).mean() / 1.5, rel=1e-6)
    assert found["coverage"] == [1.0, 0.0]


def test_a_window_is_cut_from_train_alone(tmp_path: Path) -> None:
    kind = competition.KINDS[0]
    lines = ["series,part,value", *(f"a,train,{k}" for k in range(60)), *(f"a,test,{k}" for k in range(60, 73))]
    (tmp_path / "m4-weekly.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    [whole] = competition.read_series(tmp_path, kind)
    [cut] = competition.read_series(tmp_path, kind, 1)
    assert (len(whole.known), whole.future[0]) == (60, 60.0)
    assert (len(cut.known), cut.future.tolist()) == (47, list(map(float, range(47, 60))))


def test_the_regression_of_the_rollout_is_the_posterior_with_that_noise() -> None:
    process = rollout.PROCESSES[0]
    y = process.series(80, 3)
    mean, cov, noise = rollout.fitted(y, process.lags)
    X = np.column_stack([*[y[5 - lag : 80 - lag] for lag in process.lags], np.ones(75)])
    np.testing.assert_allclose(cov @ (X.T @ y[5:]) / noise, mean, rtol=0.05)


def test_the_rate_of_demand_by_hand() -> None:
    """The second demand of 5 comes two steps after the first one of 1: size 1.4, interval 1.1."""
    assert counts.demand_rate(np.array([1.0, 0.0, 5.0])) == pytest.approx(0.95 * 1.4 / 1.1)
    assert counts.demand_rate(np.zeros(10)) == pytest.approx(0.05)


def test_the_value_a_season_earlier_with_its_earlier_changes() -> None:
    found = counts.season_earlier(np.array([4.0, 1.0, 6.0, 0.0]), 2)
    np.testing.assert_array_equal(found[:, :4], [[8.0, 2.0, 8.0, 2.0], [5.0, 0.0, 5.0, 0.0]])


def test_simulated_counts_are_counts() -> None:
    for simulated, _ in counts.SIMULATED.values():
        y = simulated(np.random.default_rng(0))
        np.testing.assert_array_equal(y, np.maximum(np.floor(y), 0.0))


def test_stored_numbers_have_the_digits_that_mean_something(tmp_path: Path) -> None:
    keep(tmp_path / "a.json", {"x": [1 / 3, {"n": 2}]})
    assert stored(tmp_path / "a.json") == {"x": [0.333333, {"n": 2}]}
    assert stored(tmp_path / "none.json") == {}


def test_the_page_is_the_one_of_the_stored_results() -> None:
    written = (page.DOCS / "evidence" / "forecasting.md").read_text(encoding="utf-8")
    assert written == page.text(stored(command.STORED))


def test_a_fleet_in_parts_is_scored_on_what_one_fleet_is() -> None:
    kind = competition.Kind("made up", (7,), 7, 14, (0.0, 0.0, 0.0))
    series = parts.made_up(kind, 20, 60)
    found = parts.measure(series, kind)
    assert list(found) == ["one fleet", "4 parts", "16 parts"]
    assert found["4 parts"]["mase"] == pytest.approx(found["16 parts"]["mase"], rel=1e-9)
    assert found["4 parts"]["mase"] == pytest.approx(found["one fleet"]["mase"], rel=0.05)
