"""Many series with a common prior: in any split, saved, and better than each alone while they are short."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass
from onepass.forecasting import BayesianForecaster, ForecastingFleet, Member
from onepass.forecasting.times import Clock

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
    with pytest.raises(ValueError, match="have been learned"):
        model.learn_frame(second)
    with pytest.raises(ValueError, match="lacks ds"):
        model.learn_frame({"unique_id": ["a"], "y": [1.0]})


def priced(n: int = 80) -> dict[str, np.ndarray]:
    """Three series of different lengths that fall by 2 for each unit of the price."""
    rng = np.random.default_rng(0)
    parts: dict[str, list[np.ndarray]] = {"unique_id": [], "ds": [], "y": [], "price": []}
    for i, own in enumerate((n, n - 3, n - 20)):
        price = rng.integers(1, 5, own).astype(float)
        parts["unique_id"].append(np.repeat(f"s{i}", own))
        parts["ds"].append(np.datetime64("2024-01-01") + np.arange(own))
        parts["y"].append(50.0 + i - 2.0 * price + rng.normal(0, 0.1, own))
        parts["price"].append(price)
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def test_a_frame_of_forecasts_has_the_library_the_times_and_the_numbers_of_each_series(tmp_path: Path) -> None:
    table = pl.DataFrame(priced())
    model = ForecastingFleet(1, 4, members=MEMBERS, inputs=["price"]).learn_frame(table)
    onepass.save(model, tmp_path / "fleet.onepass")
    for own in (model, onepass.load(tmp_path / "fleet.onepass")):
        found = own.forecast_frame(3, levels=(80, 95))
        assert found.columns == [
            "unique_id",
            "ds",
            "onepass",
            *(f"onepass-{s}-{k}" for k in (80, 95) for s in ["lo", "hi"]),
        ]
        one = found.filter(pl.col("unique_id") == "s1")
        days = np.datetime64("2024-01-01") + np.arange(77, 80)
        np.testing.assert_array_equal(one["ds"].to_numpy(), days.astype("datetime64[ns]"))
        forecast = model.forecast(3, key="s1")
        np.testing.assert_allclose(one["onepass"], forecast.mean)
        np.testing.assert_allclose(one["onepass-hi-80"], forecast.interval(0.8)[1])
    assert isinstance(model.learn_frame(pd.DataFrame(priced()).iloc[:0]).forecast_frame(1), pd.DataFrame)


def test_inputs_ahead_are_those_of_each_series() -> None:
    table = priced()
    model = ForecastingFleet(1, 4, members=MEMBERS, inputs=["price"]).learn_frame(table)
    day = np.datetime64("2024-01-01") + 77
    ahead = {"unique_id": ["s1", "s1"], "ds": np.array([day + 1, day]), "price": [4.0, 1.0]}
    found = model.forecast_frame(3, X_df=ahead)
    own = found["onepass"][found["unique_id"] == "s1"]
    assert own[0] - own[1] == pytest.approx(6.0, abs=2.0)
    np.testing.assert_allclose(own, model.forecast(3, key="s1", X=[[1.0], [4.0], [np.nan]]).mean)
    np.testing.assert_allclose(found["onepass"][:3], model.forecast(3, key="s0").mean)
    for wrong, words in (
        ({**ahead, "ds": [day, day + 3]}, "4 steps after"),
        ({"unique_id": ["s1"]}, "lacks ds, price"),
    ):
        with pytest.raises(ValueError, match=words):
            model.forecast_frame(3, X_df=wrong)
    with pytest.raises(KeyError, match="no values have been learned"):
        model.forecast_frame(3, X_df={**ahead, "unique_id": ["s1", "other"]})


def test_inputs_that_are_missing_are_as_in_the_step_before_of_the_same_series() -> None:
    table = priced()
    gaps = np.isin(np.arange(len(table["y"])), [0, 5, 6, 90])
    last = table["price"].copy()
    last[[0, 5, 6, 90]] = [0.0, last[4], last[4], last[89]]
    models = [ForecastingFleet(1, 4, members=MEMBERS, inputs=["price"]) for _ in range(2)]
    for model, price in zip(models, (np.where(gaps, np.nan, table["price"]), last), strict=True):
        model.learn_frame({**table, "price": price})
    same(*models)
    with pytest.raises(ValueError, match="must have 1 inputs"):
        models[0].learn([1.0], keys=["s0"])


def test_frames_need_times_and_short_series_are_nan() -> None:
    y, keys = rows(5, 20)
    with pytest.raises(ValueError, match="learn them with learn_frame"):
        fleet().learn(y, keys=keys).forecast_frame(2)
    table = {"unique_id": ["a", "a", "a", "b"], "ds": [1, 2, 3, 3], "y": [1.0, 2.0, 3.0, 4.0]}
    found = fleet().learn_frame(table).forecast_frame(2, levels=[])
    assert found["ds"].tolist() == [4, 5, 4, 5]
    np.testing.assert_array_equal(np.isnan(found["onepass"]), [False, False, True, True])


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_apart_and_go_on_as_the_original(copied: Callable[[ForecastingFleet], ForecastingFleet]) -> None:
    y, keys = rows(20, 30)
    model, expected = fleet().learn(y[:400], keys=keys[:400]), fleet().learn(y[:400], keys=keys[:400])
    own = copied(model)
    before = [own.forecast(horizon, key=3).mean for horizon in (9, 2)]
    model.learn(y[400:], keys=keys[400:]).forecast(9, key=3)
    for horizon, mean in zip((9, 2), before, strict=True):
        np.testing.assert_array_equal(own.forecast(horizon, key=3).mean, mean)
    expected.learn(y[400:], keys=keys[400:])
    same(own.learn(y[400:], keys=keys[400:]), expected)
    same(model, expected)


@pytest.mark.parametrize("revisions", [0, 3])
def test_a_rhythm_that_is_set_is_not_guessed_from_the_first_times(revisions: int) -> None:
    fleet = ForecastingFleet(revisions=revisions)
    fleet.set_rhythm(Clock(False, 0.0, 1.0))
    steps = np.array([0, *range(5, 40)])
    fleet.learn_frame({"unique_id": ["a", *"b" * 35], "ds": steps.astype(float), "y": steps % 3})
    assert fleet.times_ahead(2, "b").tolist() == [40, 41]
    with pytest.raises(ValueError, match="has learned times"):
        fleet.set_rhythm(Clock(False, 0.0, 2.0))


def counted(n_series: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.poisson(np.tile(rng.gamma(1.0, 1.0, n_series), n)).astype(float), np.tile(np.arange(n_series), n)


def test_a_fleet_of_counts_forecasts_whole_numbers_and_is_saved(tmp_path: Path) -> None:
    y, keys = counted(30, 60)
    model = ForecastingFleet(1, 7, counts=True).learn(y, keys=keys)
    onepass.save(model, tmp_path / "fleet.onepass")
    loaded = onepass.load(tmp_path / "fleet.onepass")
    inside = []
    for key in range(30):
        found = model.forecast(7, key=key)
        high = found.interval(0.9)[1]
        np.testing.assert_array_equal(high, np.floor(high))
        np.testing.assert_array_equal(loaded.forecast(7, key=key).interval(0.9)[1], high)
        rate = y[keys == key].mean()
        inside.append(found.mean - rate)
    assert np.abs(np.mean(inside)) < 0.1


def test_tables_of_counts_have_whole_limits_and_refuse_other_values() -> None:
    y, keys = counted(8, 40)
    frame = {"unique_id": keys, "ds": np.repeat(np.arange(40.0), 8), "y": y}
    ahead = ForecastingFleet(1, 7, counts=True).learn_frame(frame).forecast_frame(5, levels=[80])
    for name in ("onepass-lo-80", "onepass-hi-80"):
        np.testing.assert_array_equal(ahead[name], np.floor(ahead[name]))
    model = ForecastingFleet(1, 7, counts=True)
    with pytest.raises(ValueError, match=r"counts 0, 1, 2, \.\.\."):
        model.learn_frame({**frame, "y": y + 0.5})
    with pytest.raises(ValueError, match=r"counts 0, 1, 2, \.\.\."):
        model.learn(y - 1.0, keys=keys)
    assert not len(model)


def test_a_series_of_another_frequency_is_named() -> None:
    days, weeks = np.arange(40), np.arange(0, 70, 7)
    frame = {"unique_id": ["day"] * 40 + ["week"] * 10, "ds": [*days, *weeks], "y": np.ones(50)}
    with pytest.warns(UserWarning, match="'week' has a value only every 7 steps, and the steps"):
        ForecastingFleet(1, 4).learn_frame(frame)


def test_a_table_that_was_learned_is_refused_with_the_last_time() -> None:
    frame = {"unique_id": ["a"] * 5, "ds": np.arange(5), "y": np.arange(5.0)}
    model = ForecastingFleet(1, 4).learn_frame(frame)
    with pytest.raises(ValueError, match=r"series 'a' up to 4.* have been learned"):
        model.learn_frame(frame)
    with pytest.raises(TypeError, match=r"such as \[95\], got 95"):
        model.forecast_frame(2, levels=95)  # type: ignore[arg-type]
