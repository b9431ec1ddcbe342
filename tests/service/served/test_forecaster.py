"""Served forecasters: values in any order, forecasts over HTTP's types, and nothing half-done."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.forecasting import BayesianForecaster, ForecastingFleet
from onepass.service.checking import check_state
from onepass.service.declared import declared_content
from onepass.service.errors import ProblemError
from onepass.service.served import serve
from onepass.service.wire import (
    Declared,
    ForecastRequest,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RollbackRequest,
    RowsRequest,
)
from tests.service.running import Running, crashed_copy, served

START = np.datetime64("2030-01-01T00")


def hour(t: int) -> str:
    return f"{START + np.timedelta64(t, 'h')}:00Z"


def series(n: int, seed: int = 0) -> list[float]:
    t = np.arange(n)
    y = 50.0 + 10.0 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(seed).normal(size=n)
    return [float(value) for value in y.round(3)]


def described(**options: Any) -> bytes:
    return declared_content(Declared(forecaster={"season_length": 24, "horizon": 24, "revisions": 12, **options}))


def record(t: int, y: float, key: str | None = None, **inputs: float) -> dict[str, Any]:
    found = {"x": {"time": hour(t), **inputs}, "y": y}
    return found if key is None else {**found, "key": key}


def learn(running: Running, name: str, records: list[dict[str, Any]], id: str | None = None) -> Any:
    return running.ask(running.model(name).learn_rows(RowsRequest(records=records), id))


def forecast(running: Running, name: str, horizon: int = 3, **options: Any) -> Any:
    return running.ask(running.model(name).forecast(ForecastRequest(horizon, **options)))


def problem(running: Running, question: Any) -> ProblemError:
    with pytest.raises(ProblemError) as refused:
        running.ask(question)
    return refused.value


@pytest.fixture
def running(tmp_path: Path) -> Any:
    with served(tmp_path / "state") as found:
        for name, content in {
            "one": described(),
            "many": described(by_key=True),
            "sales": described(inputs=["promo"]),
            "calls": described(counts=True),
        }.items():
            found.ask(found.state.create(name, content))
        yield found


def test_forecasts_are_those_of_the_library(running: Running) -> None:
    y = series(100)
    learn(running, "one", [record(t, value) for t, value in enumerate(y)])
    own = BayesianForecaster(24, 24, revisions=12)
    for t, value in enumerate(y):
        own.learn(value, times=START.astype("datetime64[ns]") + np.timedelta64(t, "h"))
    found, expected = forecast(running, "one", 24, levels=(0.5, 0.9), recent=5), own.forecast(24)
    np.testing.assert_allclose([step.mean for step in found.steps], expected.mean)
    np.testing.assert_allclose([step.std for step in found.steps], expected.std)
    for place, level in enumerate((0.5, 0.9)):
        low, high = expected.interval(level)
        assert all(step.intervals[place].level == level for step in found.steps)
        np.testing.assert_allclose([step.intervals[place].lower for step in found.steps], low)
        np.testing.assert_allclose([step.intervals[place].upper for step in found.steps], high)
    assert [step.time for step in found.steps[:2]] == ["2030-01-05T04:00:00Z", "2030-01-05T05:00:00Z"]
    assert found.total.mean == pytest.approx(float(expected.total().mean))
    assert found.total.std == pytest.approx(float(expected.total().std))
    assert [one.y for one in found.recent] == y[-5:]
    assert found.recent[-1].time == hour(99).replace(":00Z", ":00:00Z")
    row = running.ask(running.model("one").predict(PredictRequest({"time": hour(102)})))
    assert (row.mean, row.std) == pytest.approx((own.forecast(3).mean[2], own.forecast(3).std[2]))


def test_values_in_any_order_give_the_same_forecast(running: Running) -> None:
    y = series(60)
    running.ask(running.state.create("late", described()))
    for t, value in enumerate(y):
        running.ask(running.model("one").learn(LearnRequest({"time": hour(t)}, value)))
    order = np.argsort(np.arange(60) + np.random.default_rng(0).uniform(0, 8, 60) * (np.arange(60) > 1)).tolist()
    for t in order:
        running.ask(running.model("late").learn(LearnRequest({"time": hour(t)}, -1e3 if t == 55 else y[t])))
    running.ask(running.model("late").learn(LearnRequest({"time": hour(55)}, y[55])))
    assert forecast(running, "late").steps == forecast(running, "one").steps


def test_a_value_is_learned_once_by_its_id(running: Running) -> None:
    learn(running, "one", [record(t, value) for t, value in enumerate(series(30))])
    first = running.ask(running.model("one").learn(LearnRequest({"time": hour(30)}, 50.0, "a")))
    corrected = running.ask(running.model("one").learn(LearnRequest({"time": hour(30)}, 70.0, "b")))
    after = forecast(running, "one")
    again = running.ask(running.model("one").learn(LearnRequest({"time": hour(30)}, 50.0, "a")))
    assert again == first
    assert corrected.version == first.version + 1
    assert forecast(running, "one") == after


def test_what_was_forecast_one_step_ahead_is_scored(running: Running) -> None:
    y = series(80)
    learn(running, "one", [record(t, value) for t, value in enumerate(y)])
    own, errors = BayesianForecaster(24, 24), []
    for t, value in enumerate(y):
        if own.n_seen > 1:
            errors.append(value - float(own.forecast(1).mean[0]))
        own.learn(value, times=float(t))
    report = running.model("one").metrics()
    assert report["rows"] == len(errors)
    assert report["scores"]["mae"] == pytest.approx(np.abs(errors).mean())
    learn(running, "one", [record(75, 1e3)])
    assert running.model("one").metrics()["rows"] == len(errors)  # a late value was not forecast


def test_counts_have_whole_limits_and_other_values_are_refused(running: Running) -> None:
    y = np.random.default_rng(0).poisson(2.0, 60)
    learn(running, "calls", [record(t, float(value)) for t, value in enumerate(y)])
    model, found = running.model("calls"), forecast(running, "calls", 5, levels=(0.8,))
    alone = BayesianForecaster(24, 24, counts=True).learn(y)
    own = alone.forecast(5)
    assert [step.intervals[0].upper for step in found.steps] == own.interval(0.8)[1].tolist()
    assert found.total.intervals[0].upper == own.total().interval(0.8)[1]
    for wrong in (1.5, -1.0):
        refused = problem(running, model.learn(LearnRequest({"time": hour(60)}, wrong)))
        assert (refused.status, refused.code) == (422, "not_a_count")
    records = [record(60, 1.0), record(61, 0.5)]
    assert problem(running, model.learn_rows(RowsRequest(records=records))).code == "not_a_count"
    assert forecast(running, "calls", 5, levels=(0.8,)) == found
    ahead = running.ask(model.predict(PredictRequest({"time": hour(61)}, levels=[0.8])))
    assert ahead.intervals[0].upper == alone.forecast(2).interval(0.8)[1][1]
    assert model.status()["schema"]["target"]["kind"] == "count"
    assert np.isfinite(model.metrics()["scores"]["log_likelihood"])


def test_series_are_told_apart_by_their_key(running: Running) -> None:
    records = [record(t, series(80, k)[t] + 100.0 * k, f"shop {k}") for t in range(80) for k in range(3)]
    learn(running, "many", records)
    own = ForecastingFleet(24, 24, revisions=12)
    columns = {"unique_id": np.array([one["key"] for one in records]), "y": np.array([one["y"] for one in records])}
    own.learn_frame({**columns, "ds": np.repeat(START + np.arange(80), 3)})
    for k in range(3):
        found, expected = forecast(running, "many", key=f"shop {k}"), own.forecast(3, key=f"shop {k}")
        np.testing.assert_allclose([step.mean for step in found.steps], expected.mean)
    status = running.model("many").status()
    assert status["n_seen"] == 240
    assert status["schema"]["key"] == {"kind": "text"}
    unknown = problem(running, running.model("many").forecast(ForecastRequest(3, key="shop 9")))
    assert (unknown.status, unknown.code) == (404, "unknown_key")
    assert problem(running, running.model("many").forecast(ForecastRequest(3))).code == "missing_key"
    assert problem(running, running.model("many").learn(LearnRequest({"time": hour(80)}, 1.0))).code == "missing_key"
    assert problem(running, running.model("one").learn(LearnRequest({"time": hour(0)}, 1.0, key="a"))).field == "key"


def test_inputs_are_known_for_every_step(running: Running) -> None:
    rng = np.random.default_rng(0)
    promo = rng.integers(0, 2, 120)
    values = 50.0 + 20.0 * promo + rng.normal(size=120)
    learn(running, "sales", [record(t, float(values[t]), promo=int(promo[t])) for t in range(120)])
    found = forecast(running, "sales", 2, inputs=[{"promo": 0}, {"promo": 1}])
    assert found.steps[1].mean - found.steps[0].mean == pytest.approx(20.0, abs=4.0)
    model = running.model("sales")
    wrong: list[tuple[Any, str]] = [
        (None, "missing_inputs"),
        ([{"promo": 1}], "missing_inputs"),
        ([{}, {}], "missing_inputs"),
        ([{"promo": None}, {"promo": 1}], "missing_inputs"),
        ([{"promo": "x"}, {"promo": 1}], "not_a_number"),
    ]
    for inputs, code in wrong:
        refused = problem(running, model.forecast(ForecastRequest(2, inputs=inputs)))
        assert (refused.status, refused.code) == (422, code)
    refused = problem(running, model.forecast(ForecastRequest(1, inputs=[{"promos": 1}])))
    assert refused.field == "inputs.promos"
    assert problem(running, model.learn(LearnRequest({"time": hour(120)}, 1.0))).field == "x.promo"
    refused = problem(running, running.model("one").forecast(ForecastRequest(1, inputs=[{"promo": 1}])))
    assert refused.status in (409, 422)


@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        ({"time": 7}, 1.0, "mixed_times"),
        ({"time": hour(20)}, 1.0, "too_late"),
        ({"time": "2030-01-02T08:20:00Z"}, 1.0, "out_of_rhythm"),
        ({"time": "9999-12-31"}, 1.0, "not_a_time"),
        ({"time": "2199-12-31"}, 1.0, "out_of_rhythm"),
        ({"time": "soon"}, 1.0, "not_a_time"),
        ({"time": True}, 1.0, "not_a_time"),
        ({"time": None}, 1.0, "not_a_time"),
        ({"time": hour(40)}, None, "missing"),
        ({"time": hour(40)}, "much", "not_a_number"),
        ({"time": hour(40), "z": 1}, 1.0, None),
    ],
)
def test_what_is_refused_changes_nothing(running: Running, x: Any, y: Any, code: str | None) -> None:
    learn(running, "one", [record(t, value) for t, value in enumerate(series(40))])
    before = running.files()["one"], running.model("one").status()["version"]
    refused = problem(running, running.model("one").learn(LearnRequest(x, y)))
    assert (refused.status, refused.code) == (422, code)
    batch = [record(40, 1.0), {"x": x, "y": y}]
    refused = problem(running, running.model("one").learn_rows(RowsRequest(records=batch)))
    assert (refused.status, refused.code, refused.place) == (422, code, ("row", 2))
    assert (running.files()["one"], running.model("one").status()["version"]) == before


def test_times_that_do_not_fit_each_other_in_one_request_are_refused_together(running: Running) -> None:
    mixed = [{"x": {"time": 1}, "y": 1.0}, record(0, 1.0)]
    assert problem(running, running.model("one").learn_rows(RowsRequest(records=mixed))).code == "mixed_times"
    apart = [{"x": {"time": t}, "y": 1.0} for t in (0.0, 1.0, 2.5)]
    assert problem(running, running.model("one").learn_rows(RowsRequest(records=apart))).status == 422
    assert running.model("one").status()["n_seen"] == 0


def test_a_batch_with_a_late_value_is_learned_whole_or_not_at_all(running: Running) -> None:
    learn(running, "one", [{"x": {"time": t}, "y": y} for t, y in enumerate(series(100))])
    before = running.files()["one"], forecast(running, "one", recent=12)
    batch = [{"x": {"time": 98}, "y": 0.0}, {"x": {"time": 300_000}, "y": 1.0}]
    refused = problem(running, running.model("one").learn_rows(RowsRequest(records=batch)))
    assert (refused.status, refused.code, refused.place) == (422, "out_of_rhythm", ("row", 2))
    assert (running.files()["one"], forecast(running, "one", recent=12)) == before


@pytest.mark.parametrize("name", ["one", "many"])
def test_a_batch_is_learned_if_its_values_are_one_after_another(running: Running, name: str) -> None:
    def rows(times: list[int]) -> list[dict[str, Any]]:
        return [{"x": {"time": t}, "y": 1.0} | ({"key": "a"} if name == "many" else {}) for t in times]

    learn(running, name, rows([10, 12]))
    refused = problem(running, running.model(name).learn_rows(RowsRequest(records=rows([1, 2]))))
    assert (refused.status, refused.code) == (422, "out_of_rhythm")  # 1 alone, before 10 and 12
    assert running.model(name).status()["n_seen"] == 2
    learn(running, name, rows([9, 8]))
    assert running.model(name).status()["n_seen"] == 4


def test_a_forecast_needs_values_and_a_time_ahead(running: Running) -> None:
    model = running.model("one")
    assert problem(running, model.forecast(ForecastRequest(3))).status == 409
    learn(running, "one", [record(t, value) for t, value in enumerate(series(30))])
    assert forecast(running, "one", 1).steps[0].time == "2030-01-02T06:00:00Z"
    assert problem(running, model.predict(PredictRequest({"time": hour(29)}))).code == "not_ahead"
    assert problem(running, model.predict(PredictRequest({"time": hour(29)}, "a"))).code == "not_ahead"
    assert problem(running, model.forecast(ForecastRequest(1000))).code == "horizon_too_long"
    running.ask(running.state.create("bandit", declared_content(Declared(bandit={"arms": ["a"], "n_features": 1}))))
    assert problem(running, running.model("bandit").forecast(ForecastRequest(3))).status == 409


def test_a_prediction_may_wait_for_its_value(running: Running) -> None:
    learn(running, "one", [record(t, value) for t, value in enumerate(series(30))])
    model = running.model("one")
    running.ask(model.predict(PredictRequest({"time": hour(30)}, "next")))
    assert running.ask(model.label(LabelRequest("next", 51.0))).status == "learned"
    assert forecast(running, "one", recent=1).recent[0].y == 51.0


def test_arrow_batches_have_a_column_of_times(running: Running) -> None:
    y, hours = series(40), START.astype("datetime64[us]") + np.arange(40) * np.timedelta64(1, "h")
    batch = pa.RecordBatch.from_pydict({"time": pa.array(hours), "y": y})
    running.ask(running.model("one").learn_rows(RowsRequest(table=batch)))
    keyed = pa.RecordBatch.from_pydict({"time": pa.array(hours), "y": y, "key": ["a"] * 40})
    running.ask(running.model("many").learn_rows(RowsRequest(table=keyed)))
    running.ask(running.state.create("same", described()))
    learn(running, "same", [record(t, value) for t, value in enumerate(y)])
    assert forecast(running, "same").steps == forecast(running, "one").steps
    assert len(forecast(running, "many", key="a").steps) == 3


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ms", "Europe/Berlin"), pa.date32(), pa.date64()]
)
def test_arrow_times_have_any_unit(running: Running, kind: pa.DataType) -> None:
    days = pa.array(np.array(["2030-01-01", "2030-01-02", "2030-01-03"], dtype="datetime64[D]"))
    times = days.cast(pa.timestamp(kind.unit)).cast(kind) if pa.types.is_timestamp(kind) else days.cast(kind)
    if kind == pa.timestamp("ns"):  # below a microsecond
        times = pa.array(times.cast(pa.int64()).to_numpy() + 789).cast(kind)
    table = pa.RecordBatch.from_arrays([times, pa.array([1.0, 2.0, 3.0])], ["time", "y"])
    running.ask(running.model("one").learn_rows(RowsRequest(table=table)))
    assert [one.time for one in forecast(running, "one", recent=3).recent] == [
        f"2030-01-0{day}T00:00:00Z" for day in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1, 2], pa.time32("s")),
        pa.array([1, 2], pa.time64("ns")),
        pa.array([1, 2], pa.duration("ns")),
        pa.array([10**15, 0], pa.timestamp("s")),
        pa.array([2**31 - 1, 0], pa.date32()),
        pa.nulls(2, pa.timestamp("us")),
    ],
)
def test_arrow_columns_without_dates_are_refused(running: Running, times: pa.Array) -> None:
    table = pa.RecordBatch.from_arrays([times, pa.array([1.0, 2.0])], ["time", "y"])
    refused = problem(running, running.model("one").learn_rows(RowsRequest(table=table)))
    assert (refused.status, refused.code, refused.place) == (422, "not_a_time", ("row", 1))


@pytest.mark.parametrize("name", ["one", "many", "sales"])
def test_a_crash_loses_nothing_and_a_replay_gives_the_same_bytes(tmp_path: Path, running: Running, name: str) -> None:
    rng = np.random.default_rng(1)
    keys: dict[str, Any] = {"key": "a"} if name == "many" else {}
    inputs: dict[str, Any] = {"promo": 1.0} if name == "sales" else {}
    model = running.model(name)
    learn(running, name, [{**record(t, value, **inputs), **keys} for t, value in enumerate(series(30))], "history")
    for t in range(30, 70):
        late = int(t - rng.integers(0, 6))
        running.ask(model.learn(LearnRequest({"time": hour(late), **inputs}, float(rng.normal(50.0)), f"v{t}", **keys)))
        if t == 50:
            running.ask(model.snapshot())
    before, content = forecast(running, name, inputs=[inputs] * 3 if inputs else None, **keys), running.files()[name]
    with served(crashed_copy(running.folder, tmp_path / "crashed")) as again:
        assert again.files()[name] == content
        assert forecast(again, name, inputs=[inputs] * 3 if inputs else None, **keys) == before
        report = again.model(name).metrics()
        assert report["scores"] == model.metrics()["scores"]
        back = again.ask(again.model(name).rollback(RollbackRequest(20)))
        assert back["to"] == 20
    assert check_state(crashed_copy(running.folder, tmp_path / "checked")) == []


def test_a_candidate_learns_the_same_values_and_takes_over(running: Running) -> None:
    learn(running, "one", [record(t, value) for t, value in enumerate(series(40))])
    running.ask(running.model("one").set_shadow(described(season_length=1)))
    learn(running, "one", [record(t, value) for t, value in enumerate(series(80))][40:])
    report = running.model("one").metrics()
    assert report["shadow"]["rows"] > 30
    running.ask(running.model("one").promote())
    assert len(forecast(running, "one", 5).steps) == 5


def test_only_forecasters_that_accept_revisions_are_served() -> None:
    with pytest.raises(ProblemError, match="revisions=48"):
        serve(BayesianForecaster(12))
    assert serve(ForecastingFleet(12, revisions=3)).facts()["series"] == "0"
    model = serve(BayesianForecaster(12, revisions=3).learn([1.0], [[2.0]], [0.0]))
    assert [column["name"] for column in model.schema()["columns"]] == ["time", "x0"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"season_length": "weekly"}, "forecaster.season_length"),
        ({"season_length": -3}, "forecaster"),
        ({"season_length": "auto", "by_key": True}, "forecaster.season_length"),
        ({"inputs": ["time"]}, "forecaster.inputs"),
        ({"inputs": ["a", "a"]}, "forecaster"),
        ({"horizon": 0}, "forecaster.horizon"),
        ({"revisions": 0}, "forecaster.revisions"),
        ({"period": 12}, "forecaster.period"),
    ],
)
def test_a_wrong_description_names_its_field(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ProblemError) as refused:
        declared_content(Declared(forecaster=options))
    assert refused.value.status == 422
    assert (refused.value.field or "").startswith(field)
    with pytest.raises(ProblemError, match="what a forecaster learns are the values"):
        declared_content(Declared(forecaster={}, target="y"))
