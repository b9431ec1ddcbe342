"""Late and corrected values give the forecasts of values that came right and in order."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass
from onepass.forecasting import BayesianForecaster, ForecastingFleet, Member
from onepass.forecasting.revisions import TooLateError

MEMBERS = [Member((1, 2, 3)), Member((1, 2), difference=1, logarithm=True)]
WINDOW = 6


def forecaster(revisions: int = WINDOW) -> BayesianForecaster:
    return BayesianForecaster(4, 3, members=MEMBERS, revisions=revisions)


def fleet(revisions: int = WINDOW) -> ForecastingFleet:
    return ForecastingFleet(4, 3, members=MEMBERS, revisions=revisions)


def series(n: int, seed: int = 0) -> np.ndarray:
    return np.asarray(50.0 + np.cumsum(np.random.default_rng(seed).normal(size=n)))


def same(first: Any, second: Any) -> None:
    for one, other in zip(first.export_state(), second.export_state(), strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_equal(one[name], other[name], err_msg=name)


def frame(keys: list[str], times: Any, values: Any) -> dict[str, np.ndarray]:
    return {"unique_id": np.array(keys), "ds": np.asarray(times), "y": np.asarray(values, dtype=np.float64)}


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, float]], list[int]]:
    """Steps that have a value, all that arrives in its order with corrections before the truth, and where calls end."""
    n = draw(st.integers(3, 40))
    steps = [t for t in range(n) if t < 2 or draw(st.integers(0, 9))]
    delays = [t + (draw(st.floats(0.0, WINDOW - 1.5)) if t > 1 else 0.0) for t in steps]  # the first two set the rhythm
    truth = [(delay, t, True) for delay, t in zip(delays, steps, strict=True)]
    wrong = [(delay - 0.1, t, False) for delay, t in zip(delays, steps, strict=True) if not draw(st.integers(0, 4))]
    y = series(n)
    come = [(t, float(y[t]) if right else -1e6) for _, t, right in sorted(truth + wrong)]
    cuts = sorted(draw(st.sets(st.integers(1, len(come)), max_size=6)) | {len(come)})
    return steps, come, cuts


@settings(max_examples=60, deadline=None)
@given(arrivals(), st.booleans())
def test_values_in_any_order_give_the_same_forecaster(case: Any, dated: bool) -> None:
    steps, come, cuts = case
    days = np.arange("2024-02-01", "2024-05-01", dtype="datetime64[D]") if dated else np.arange(90.0)
    late, start = forecaster(), 0
    for stop in cuts:
        at, values = zip(*come[start:stop], strict=True)
        late.learn(values, times=days[list(at)])
        start = stop
    y = series(40)
    in_order, plain = forecaster(), forecaster(0)
    for model in (in_order, plain):
        model.learn(y[steps], times=days[steps])
    same(late, in_order)
    if late.n_seen > 1:
        np.testing.assert_array_equal(late.forecast(3).cov, plain.forecast(3).cov)
        assert late.log_evidence == plain.log_evidence


def test_the_rhythm_is_that_of_the_first_two_times_however_they_came() -> None:
    late = forecaster().learn(3.0, times=[30.0]).learn(2.0, times=[20.0]).learn(1.0, times=[10.0])
    same(late, forecaster().learn([1.0, 2.0, 3.0], times=[10.0, 20.0, 30.0]))


def test_inputs_are_revised_with_their_value() -> None:
    rng = np.random.default_rng(0)
    y, X, t = series(30), rng.normal(size=(30, 2)), np.arange(30.0)
    X[7] = np.nan
    wrong = forecaster().learn(y, X + (t == 27)[:, None], t)
    same(wrong.learn(y[27], X[27], t[27:28]), forecaster().learn(y, X, t))


@pytest.mark.parametrize("n", [1, 3, 40])
def test_what_is_recent_is_saved(tmp_path: Path, n: int) -> None:
    days = np.arange("2024-02-01", "2024-05-01", dtype="datetime64[D]")
    model = forecaster().learn(series(n), times=days[:n])
    many = fleet().learn_frame(frame(["a"] * n + ["b"] * n, np.tile(days[:n], 2), series(2 * n)))
    for name, saved in {"one": model, "many": many}.items():
        onepass.save(saved, tmp_path / name)
        same(onepass.load(tmp_path / name), saved)
    loaded = onepass.load(tmp_path / "one")
    same(loaded.learn(5.0, times=days[n - 1 : n]), model.learn(5.0, times=days[n - 1 : n]))
    again = frame(["a"], days[n - 1 : n], [5.0])
    same(onepass.load(tmp_path / "many").learn_frame(again), many.learn_frame(again))


def test_a_value_that_is_too_late_is_refused_and_changes_nothing() -> None:
    model = forecaster().learn(series(20), times=np.arange(20.0))
    before = forecaster().learn(series(20), times=np.arange(20.0))
    with pytest.raises(TooLateError, match="index 1 is 6 steps older") as refused:
        model.learn([1.0, 1.0], times=[15.0, 13.0])
    assert (refused.value.index, refused.value.behind) == (1, 6)
    for bad, error in [([15.5], ValueError), (["2024-01-01"], TypeError), ([1e9], ValueError), (None, ValueError)]:
        with pytest.raises(error):
            model.learn([1.0], times=bad)
    with pytest.raises(ValueError, match="inputs"):
        model.learn([1.0], [[1.0]], [15.0])
    same(model, before)


def test_late_times_are_checked_with_all_that_follow_them() -> None:
    model = forecaster().learn(series(20), times=np.arange(20.0))
    before = model.forecast(3).mean
    for late in (18.0, 19.0):
        with pytest.raises(ValueError, match="gap"):
            model.check_times([late, 300_000.0])
    model.check_times([18.0, 10_000.0])
    np.testing.assert_array_equal(model.forecast(3).mean, before)


def test_a_value_of_another_day_of_the_month_does_not_replace_that_of_its_end() -> None:
    ends = np.arange("2023-02", "2025-02", dtype="datetime64[M]").astype("datetime64[D]") - 1
    model = forecaster().learn(series(24), times=ends)
    with pytest.raises(ValueError, match="rhythm"):
        model.learn(1000.0, times=np.array("2024-11-05", dtype="datetime64[D]"))
    assert 1000.0 not in model.recent[1]


def test_memory_is_bounded() -> None:
    model = forecaster().learn(series(500), times=np.arange(500.0))
    parameters, arrays = model.export_state()
    assert len(parameters["recent"]["times"]) == len(arrays["recent/values"]) == WINDOW
    many = fleet().learn_frame(frame(["a"] * 500, np.arange(500.0), series(500)))
    assert many.export_state()[1]["recent/values"].shape == (1, WINDOW, 1)


# Fleets.


def fleet_rows(n: int = 90, n_series: int = 9) -> dict[str, np.ndarray]:
    keys = [f"s{k}" for _ in range(n) for k in range(n_series)]
    y = np.array([series(n, k) for k in range(n_series)]).T.ravel()
    return frame(keys, np.repeat(np.arange(float(n)), n_series), y)


def part(table: dict[str, np.ndarray], at: Any) -> dict[str, np.ndarray]:
    return {name: column[at] for name, column in table.items()}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_values_in_any_order_give_the_same_fleet(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = part(fleet_rows(), rng.random(810) < 0.9)
    n = len(table["y"])
    order = np.argsort(table["ds"] + rng.uniform(0.0, WINDOW - 1.0, n), kind="stable")
    late = fleet()
    for at in np.split(order, np.sort(rng.choice(n, 30))):
        wrong = part(table, at)
        corrected = wrong["ds"] > wrong["ds"].max(initial=0.0) - 1.0
        late.learn_frame(wrong | {"y": np.where(corrected, -1e6, wrong["y"])})
        late.learn_frame(part(wrong, corrected))
    whole = fleet().learn_frame(table)
    assert late.n_seen == whole.n_seen
    for k in range(9):
        forecasts = [model.forecast(3, key=f"s{k}") for model in (late, whole)]
        np.testing.assert_array_equal(forecasts[0].cov, forecasts[1].cov)
    for name in ("records", "priors", "sizing"):
        np.testing.assert_array_equal(late.export_state()[1][name], whole.export_state()[1][name])


def test_what_series_share_is_learned_from_values_that_no_longer_change() -> None:
    table = fleet_rows()
    old = table["ds"] <= 89.0 - WINDOW
    plain, recent = fleet(0).learn_frame(part(table, old)), fleet().learn_frame(table)
    assert plain.export_state()[1]["priors"].any()
    for name in ("records", "priors", "sizing"):
        np.testing.assert_array_equal(recent.export_state()[1][name], plain.export_state()[1][name])
    plain.learn_frame(part(table, ~old & (table["unique_id"] == "s2")))
    np.testing.assert_allclose(recent.forecast(3, key="s2").mean, plain.forecast(3, key="s2").mean)


def test_a_series_that_is_behind_catches_up_in_order() -> None:
    model = fleet().learn_frame(frame(["a"] * 50, np.arange(50.0), series(50)))
    model.learn_frame(frame(["b"] * 30, np.arange(5.0, 35.0), series(30, 1)))
    with pytest.raises(TooLateError):
        model.learn_frame(frame(["b", "b"], [40.0, 34.0], [1.0, 1.0]))
    model.learn_frame(frame(["b"] * 5, [39.0, 38.0, 37.0, 36.0, 35.0], series(35, 1)[:29:-1]))
    alone = forecaster(0).learn(series(35, 1), times=np.arange(35.0))
    np.testing.assert_allclose(model.forecast(3, key="b").mean, alone.forecast(3).mean, rtol=0.05)
    assert model.n_seen == 85
    assert model.keys == ["a", "b"]


def test_what_a_fleet_refuses_changes_nothing() -> None:
    table = fleet_rows(20)
    model, before = fleet().learn_frame(table), fleet().learn_frame(table)
    for bad in (
        frame(["s1", "s1"], [19.0, 2.0], [1.0, 1.0]),
        frame(["new", "s1"], [19.0, 19.5], [1.0, 1.0]),
        frame(["new"], [1e6], [1.0]),
        frame(["new"], ["2024-01-01"], [1.0]),
        frame(["new"], [19.0], [1e101]),
        frame(["new"], [19.0], [np.inf]),
    ):
        with pytest.raises((ValueError, TypeError)):
            model.learn_frame(bad)
    with pytest.raises(ValueError, match="learn_frame"):
        model.learn([1.0], keys=["s1"])
    same(model, before)
    with pytest.raises(KeyError):
        model.forecast(3, key="new")
    model.learn_frame(frame(["new"], [19.0], [1.0]))
    with pytest.raises(ValueError, match="at least 2 values, got 1"):
        model.forecast(3, key="new")


def test_late_rows_of_a_fleet_keep_their_inputs() -> None:
    rng, n = np.random.default_rng(3), 60
    price = rng.normal(size=n)
    y = 10.0 + 3.0 * price + 0.1 * rng.normal(size=n)
    rows = {"unique_id": np.array(["a"] * n), "ds": np.arange(float(n)), "y": y, "price": price}

    def part(at: np.ndarray) -> dict[str, Any]:
        return {name: column[at] for name, column in rows.items()}

    def made(*parts: np.ndarray) -> ForecastingFleet:
        new = ForecastingFleet(1, revisions=WINDOW, inputs=["price"])
        for at in parts:
            new.learn_frame(part(at))
        return new

    order = np.arange(n)
    late = np.concatenate([order[: n - 4], order[n - 2 :], order[n - 4 : n - 2]])
    expected = made(order).forecast(3, key="a", X=[[1.0], [0.0], [-1.0]])
    found = made(late[:20], late[20:-3], late[-3:]).forecast(3, key="a", X=[[1.0], [0.0], [-1.0]])
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    assert expected.mean[0] > expected.mean[1] + 2.0 > expected.mean[2] + 4.0
    frame = made(late).forecast_frame(2, levels=[90])
    assert frame["ds"].tolist() == [60.0, 61.0]


def test_times_are_compared_with_those_of_the_series() -> None:
    days = np.arange("2024-02-01", "2024-05-01", dtype="datetime64[D]")
    model = forecaster().learn(series(20), times=days[:20])
    many = fleet().learn_frame(frame(["a"] * 20 + ["b"] * 5, np.concatenate([days[:20], days[:5]]), series(25)))
    np.testing.assert_array_equal(model.steps_ahead(days[18:22]), [-1, 0, 1, 2])
    np.testing.assert_array_equal(many.steps_ahead(days[18:22], "b"), [14, 15, 16, 17])
    np.testing.assert_array_equal(model.times_ahead(2), days[20:22])
    np.testing.assert_array_equal(many.times_ahead(2, "b"), days[5:7])
    np.testing.assert_array_equal(model.recent[0], days[14:20])
    np.testing.assert_array_equal(many.recent("a")[1], series(25)[14:20])
    for check in (model.check_times, lambda times: many.check_times(times, ["a"] * len(times))):
        check(days[14:20])
        with pytest.raises(TooLateError):
            check(days[13:14])
        with pytest.raises(TypeError):
            check([3.0])
    with pytest.raises(ValueError, match="not known"):
        forecaster().learn(1.0, times=[1.0]).times_ahead(1)
