"""Many series with a common prior: in any split, saved, and better than each alone while they are short."""

from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass.forecasting import BayesianForecaster, ForecastingFleet, Member

MEMBERS = [Member((1, 2)), Member((1, 2), difference=1, logarithm=True)]


def rows(n_series: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values and keys, one value of every series after the other: autoregressions with the same weights."""
    rng = np.random.default_rng(seed)
    y = np.zeros((n, n_series))
    for t in range(2, n):
        y[t] = 1.2 * y[t - 1] - 0.7 * y[t - 2] + rng.normal(size=n_series)
    return 50.0 + y.ravel(), np.tile(np.arange(n_series), n)


def fleet() -> ForecastingFleet:
    return ForecastingFleet(1, 4, members=MEMBERS)


def same(first: ForecastingFleet, second: ForecastingFleet) -> None:
    for name, array in first.export_state()[1].items():
        np.testing.assert_array_equal(second.export_state()[1][name], array)


def test_learning_in_any_split_gives_the_same_fleet() -> None:
    y, keys = rows(20, 40)
    whole, parts = fleet().learn(y, keys=keys), fleet()
    for at in np.split(np.arange(len(y)), [1, 200, 333, 700]):
        parts.learn(y[at], keys=keys[at])
    assert whole.export_state()[1]["priors"].any()
    same(parts, whole)


def test_a_saved_fleet_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    y, keys = rows(20, 30)
    model = fleet().learn(y[:500], keys=keys[:500])
    onepass.save(model, tmp_path / "fleet.onepass")
    loaded = onepass.load(tmp_path / "fleet.onepass")
    for own in (model, loaded):
        own.learn(y[500:], keys=keys[500:])
    same(loaded, model)


def test_short_series_are_forecast_by_what_the_others_have_shown() -> None:
    y, keys = rows(60, 80)
    model = fleet().learn(y, keys=keys)
    alone, together = [], []
    short, _ = rows(40, 16, seed=1)
    for i, series in enumerate(short.reshape(16, 40).T):
        known, truth = series[:12], series[12:]
        model.learn(known, keys=[f"new {i}"] * 12)
        together.append(np.abs(model.forecast(4, key=f"new {i}").mean - truth).mean())
        alone.append(np.abs(BayesianForecaster(1, 4, members=MEMBERS).learn(known).forecast(4).mean - truth).mean())
    assert np.mean(together) < np.mean(alone)


def test_a_new_series_is_forecast_from_its_third_value_on() -> None:
    y, keys = rows(20, 40)
    model = fleet().learn(y, keys=keys).learn([50.0, 51.0, 50.5], keys=["new"] * 3)
    forecast = model.forecast(6, key="new")
    assert np.isfinite(forecast.mean).all()
    assert (np.abs(forecast.mean - 50.0) < 10.0).all()


def test_intervals_contain_their_share() -> None:
    y, keys = rows(60, 104)
    model, truth = fleet().learn(y[: 60 * 100], keys=keys[: 60 * 100]), y[60 * 100 :].reshape(4, 60)
    inside = []
    for key in range(60):
        low, high = model.forecast(4, key=key).interval(0.95)
        inside.append((low <= truth[:, key]) & (truth[:, key] <= high))
    assert 0.91 <= np.mean(inside) <= 0.99


def test_what_is_refused_changes_nothing() -> None:
    y, keys = rows(5, 20)
    model = fleet().learn(y, keys=keys)
    before = model.export_state()
    with pytest.raises(ValueError, match="keys must name"):
        model.learn([1.0, 2.0], keys=["new"])
    with pytest.raises(ValueError, match="finite"):
        model.learn([1.0, np.inf], keys=["new", "new"])
    assert model.export_state()[0] == before[0]
    with pytest.raises(KeyError, match="no values of the series 'new'"):
        model.forecast(3, key="new")
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        model.learn([1.0], keys=["new"]).forecast(3, key="new")


def long_table(n_series: int = 12, n: int = 40) -> dict[str, np.ndarray]:
    y, keys = rows(n_series, n)
    days = np.repeat(np.arange("2024-01-01", "2025-01-01", dtype="datetime64[D]")[:n], n_series)
    return {"unique_id": np.array([f"s{key}" for key in keys]), "ds": days, "y": y}


def test_a_long_table_is_learned_in_the_order_of_time() -> None:
    table = long_table()
    plain = fleet().learn(table["y"], keys=table["unique_id"])
    mixed = np.lexsort((table["ds"], table["unique_id"]))
    framed = fleet().learn_frame({name: column[mixed] for name, column in table.items()})
    key = "s3"
    np.testing.assert_allclose(framed.forecast(4, key=key).mean, plain.forecast(4, key=key).mean, rtol=0.02)
    assert framed.n_seen == plain.n_seen


def test_times_left_out_are_missing_and_calls_go_on(tmp_path: Path) -> None:
    table = long_table()
    kept = (table["unique_id"] != "s1") | (table["ds"] != np.datetime64("2024-01-20"))
    late = table["ds"] >= np.datetime64("2024-02-01")
    first, second = ({name: c[kept & when] for name, c in table.items()} for when in (~late, late))
    model = fleet().learn_frame(first)
    onepass.save(model, tmp_path / "fleet.onepass")
    loaded = onepass.load(tmp_path / "fleet.onepass").learn_frame(second)
    same(model.learn_frame(second), loaded)
    assert model.n_seen == len(table["y"])
    with pytest.raises(ValueError, match="must increase"):
        model.learn_frame(second)
    with pytest.raises(ValueError, match="lacks ds"):
        model.learn_frame({"unique_id": ["a"], "y": [1.0]})
