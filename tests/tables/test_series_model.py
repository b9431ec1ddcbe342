from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.files.lock import LockedError, locked
from onepass.files.versions import undo
from onepass.forecasting import Forecast
from onepass.tables import forecast
from onepass.tables.columns.errors import SchemaError
from onepass.tables.forecasting import load_series_model
from onepass.tables.readers.registry import open_source
from onepass.tables.series import SeriesTable, read_series
from onepass.tables.series_model import SeriesForecast, SeriesModel
from onepass.tables.series_rows import SeriesColumns

DAYS = np.arange("2024-01-01", "2024-06-01", dtype="datetime64[D]")
T = np.arange(len(DAYS))
VALUES = 50 + 10 * np.sin(2 * np.pi * T / 7) + np.random.default_rng(0).normal(size=len(DAYS))


def table(folder: Path, part: slice, values: Any = VALUES, known: SeriesModel | None = None) -> SeriesTable:
    file = folder / "series.csv"
    file.write_text("date,y\n" + "".join(f"{day},{y}\n" for day, y in zip(DAYS[part], values[part], strict=True)))
    sources = [open_source(str(file))]
    if known is None:
        return read_series(sources, SeriesColumns("date", "y"))
    return known.read(sources)


def means(model: SeriesModel) -> list[float]:
    (found,) = model.forecasts(7)
    expected: list[float] = found.forecast.mean.tolist()
    return expected


def test_going_on_gives_what_learning_at_once_does(tmp_path: Path) -> None:
    whole = SeriesModel(table(tmp_path, slice(0, 150)), 7)
    parts = SeriesModel(table(tmp_path, slice(0, 120)), 7)
    parts = from_bytes(to_bytes(parts))
    parts.learn(table(tmp_path, slice(120, 150), known=parts))
    assert parts.n_seen == whole.n_seen == 150
    horizon = parts.forecasters.horizon
    assert horizon == whole.forecasters.horizon
    np.testing.assert_allclose(means(parts), means(whole), rtol=1e-9)


def test_corrected_values_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    wrong = VALUES.copy()
    wrong[116] = 500.0
    model = SeriesModel(table(tmp_path, slice(0, 120), wrong), 7, revisions=10)
    before = means(model)
    model.learn(table(tmp_path, slice(115, 125), known=model))
    right = SeriesModel(table(tmp_path, slice(0, 120)), 7, revisions=10)
    right.learn(table(tmp_path, slice(120, 125), known=right))
    np.testing.assert_allclose(means(model), means(right), rtol=1e-9)
    assert not np.allclose(before, means(right))
    (found,) = model.forecasts(1)
    assert found.recent[-9] == VALUES[116]
    assert model.n_seen == 125


def test_values_that_are_too_old_change_nothing(tmp_path: Path) -> None:
    model = SeriesModel(table(tmp_path, slice(0, 120)), 7, revisions=5)
    before = means(model)
    with pytest.raises(SchemaError) as caught:
        model.learn(table(tmp_path, slice(110, 130), known=model))
    reason = caught.value.reason
    assert (reason.code, reason.value, reason.facts["window"]) == ("old_times", 5, 5)
    assert means(model) == before
    assert model.n_seen == 120


def test_series_of_a_file_are_a_fleet(tmp_path: Path) -> None:
    file = tmp_path / "shops.csv"
    rows = list(zip(DAYS, VALUES, strict=True))
    lines = [f"{day},{y * scale},{key}" for day, y in rows for key, scale in (("a", 1), ("b", 3))]
    file.write_text("date,y,shop\n" + "\n".join(lines) + "\n2024-05-30,5,new\n")
    found = forecast(file, "date", "y", by="shop", horizon=5, level=[0.5, 0.95])
    assert found.column_names == ["date", "shop", "mean", "std", "lower_50", "upper_50", "lower_95", "upper_95"]
    assert found["shop"].to_pylist() == ["a"] * 5 + ["b"] * 5
    assert found["date"].to_pylist()[:2] == ["2024-06-01", "2024-06-02"]
    expected = 50 + 10 * np.sin(2 * np.pi * np.arange(len(T), len(T) + 5) / 7)
    assert np.abs(np.array(found["mean"].to_pylist()[5:]) / 3 - expected).max() < 4


@pytest.mark.parametrize("revisions", [0, 5])
def test_series_that_begin_far_apart_are_forecast(tmp_path: Path, revisions: int) -> None:
    file = tmp_path / "shops.csv"
    lines = ["2024-01-01,5,a"] + [f"{day},{y},b" for day, y in zip(DAYS[5:80], VALUES[5:80], strict=True)]
    file.write_text("date,y,shop\n" + "\n".join(lines) + "\n")
    found = forecast(file, "date", "y", by="shop", horizon=2, revisions=revisions, model=tmp_path / "m")
    assert (found["shop"].to_pylist(), found["date"].to_pylist()) == (["b"] * 2, ["2024-03-21", "2024-03-22"])
    file.write_text("date,y,shop\n2024-03-21,55,b\n2024-03-25,55,b\n2024-03-25,5,a\n")
    assert forecast(file, horizon=1, model=tmp_path / "m")["date"].to_pylist() == ["2024-03-26"] * 2


def test_a_series_whose_second_value_comes_late_is_forecast(tmp_path: Path) -> None:
    file = tmp_path / "gap.csv"
    file.write_text("date,y\n2024-01-01,5\n" + "".join(f"2024-01-{day:02d},5\n" for day in range(6, 31)))
    assert forecast(file, "date", "y", horizon=1)["date"].to_pylist() == ["2024-01-31"]


def test_inputs_ahead_are_used(tmp_path: Path) -> None:
    promo = np.random.default_rng(1).random(len(DAYS) + 4) < 0.2
    promo[-4:] = [True, False, False, True]
    days = [*map(str, DAYS), *(f"2024-06-0{i}" for i in range(1, 5))]
    values = [str(y + 20 * p) for y, p in zip(VALUES, promo, strict=False)] + [""] * 4
    file = tmp_path / "promo.csv"
    lines = [f"{day},{y},{int(p)}\n" for day, y, p in zip(days, values, promo, strict=True)]
    file.write_text("date,y,promo\n" + "".join(lines))
    with_inputs = forecast(file, "date", "y", inputs=["promo"], horizon=4)["mean"].to_numpy()
    expected = 50 + 10 * np.sin(2 * np.pi * np.arange(len(T), len(T) + 4) / 7) + 20 * promo[-4:]
    assert np.abs(with_inputs - expected).max() < 4


def test_inputs_without_values_do_not_move_the_forecast(tmp_path: Path) -> None:
    file, model = tmp_path / "x.csv", tmp_path / "m"
    file.write_text("date,y,x\n" + "".join(f"{day},{10 * (i % 3 == 0)},{i % 3 == 0}\n" for i, day in enumerate(DAYS)))
    forecast(file, "date", "y", inputs=["x"], horizon=2, model=model)
    file.write_text("date,y,x\n2024-06-03,,True\n2024-06-04,,False\n")
    found = forecast(file, horizon=4, model=model)
    assert found["date"].to_pylist() == [f"2024-06-0{i}" for i in range(1, 5)]
    assert np.flatnonzero(found["mean"].to_numpy() > 5).tolist() == [2]


@pytest.mark.parametrize(
    ("size", "text"), [(3000.0, "1,234,568"), (30.0, "1,234,568"), (3.0, "1,234,567.9"), (0.02, "1,234,567.890")]
)
def test_a_value_has_the_digits_that_its_uncertainty_leaves(size: float, text: str) -> None:
    found = Forecast(np.zeros(3), np.eye(3) * size**2)
    assert SeriesForecast("", 0, found, np.zeros(0)).value_text(1234567.8901) == text


@pytest.mark.parametrize("values", [[3, 3], [0, 0, 0], [1, 2, 3], [5, 5, 5, 5, 5, 5, 5, 5, 5, 5]])
def test_short_and_constant_series_have_a_forecast(tmp_path: Path, values: list[int]) -> None:
    file = tmp_path / "short.csv"
    file.write_text("date,y\n" + "".join(f"2024-01-{i + 1:02d},{y}\n" for i, y in enumerate(values)))
    found = forecast(file, "date", "y", horizon=3)
    mean = found["mean"].to_numpy()
    assert np.isfinite(mean).all()
    assert (found["lower"].to_numpy() <= mean).all()
    assert abs(mean[0] - values[-1]) <= 1.5


def test_one_value_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "short.csv"
    file.write_text("date,y\n2024-01-01,3\n2024-01-02,\n")
    with pytest.raises(SchemaError) as caught:
        forecast(file, "date", "y", horizon=3)
    assert caught.value.reason.code == "too_few_values"


def test_the_function_keeps_a_model_and_goes_on_with_it(tmp_path: Path) -> None:
    table(tmp_path, slice(0, 120))
    path = tmp_path / "m.onepass"
    first = forecast(tmp_path / "series.csv", "date", "y", horizon=3, model=path)
    table(tmp_path, slice(120, 123))
    second = forecast(tmp_path / "series.csv", horizon=3, model=path)
    assert first["date"].to_pylist()[0] == "2024-04-30"
    assert second["date"].to_pylist()[0] == "2024-05-03"
    assert forecast(horizon=3, model=path).equals(second)
    with pytest.raises(ValueError, match="give time and target"):
        forecast(tmp_path / "series.csv", "date", horizon=3)


def test_the_function_refuses_what_the_model_has_already_and_can_be_undone(tmp_path: Path) -> None:
    path = tmp_path / "m.onepass"
    table(tmp_path, slice(0, 120))
    forecast(tmp_path / "series.csv", "date", "y", horizon=3, model=path)
    before = path.read_bytes()
    table(tmp_path, slice(120, 123))
    with pytest.raises(ValueError, match=r"season, revisions: a saved model has its own"):
        forecast(tmp_path / "series.csv", horizon=3, model=path, season=12, revisions=3)
    with locked(path), pytest.raises(LockedError):
        forecast(tmp_path / "series.csv", horizon=3, model=path)
    assert path.read_bytes() == before
    forecast(tmp_path / "series.csv", horizon=3, model=path)
    assert path.read_bytes() != before
    undo(path)
    assert path.read_bytes() == before


def fleet_file(folder: Path, spans: dict[str, tuple[int, int]]) -> Path:
    file = folder / "shops.csv"
    lines = [f"{DAYS[i]},{VALUES[i]},{key}\n" for key, (start, stop) in spans.items() for i in range(start, stop)]
    file.write_text("date,y,shop\n" + "".join(lines))
    return file


def test_of_many_series_the_newest_value_says_what_can_still_be_corrected(tmp_path: Path) -> None:
    model = tmp_path / "m.onepass"
    forecast(fleet_file(tmp_path, {"a": (0, 120), "b": (0, 90)}), "date", "y", by="shop", horizon=3, model=model)
    before = model.read_bytes()
    window = load_series_model(model).forecasters.revisions
    assert window == 12
    for spans, window in (({"b": (85, 95)}, 0), ({"a": (107, 121)}, 12)):
        with pytest.raises(SchemaError) as caught:
            forecast(fleet_file(tmp_path, spans), horizon=3, model=model)
        assert (caught.value.reason.code, caught.value.reason.facts["window"]) == ("old_times", window)
        assert model.read_bytes() == before
    found = forecast(fleet_file(tmp_path, {"a": (108, 121), "b": (90, 93)}), horizon=1, model=model)
    assert found["date"].to_pylist() == [str(DAYS[121]), str(DAYS[93])]


@pytest.mark.parametrize("n_series", [1, 14])
def test_corrections_further_back_than_what_is_drawn_are_kept(tmp_path: Path, n_series: int) -> None:
    days = np.arange("2015-01-01", "2022-01-01", dtype="datetime64[D]")
    file, keys = tmp_path / "long.csv", [f"k{i}" for i in range(n_series)]
    file.write_text("date,y,shop\n" + "".join(f"{day},{i % 7},{key}\n" for key in keys for i, day in enumerate(days)))
    columns = SeriesColumns("date", "y", "shop")
    model = SeriesModel(read_series([open_source(str(file))], columns), 3, revisions=250)
    file.write_text("date,y,shop\n" + "".join(f"{days[-230]},99,{key}\n" for key in keys))
    n = model.n_seen
    model.learn(model.read([open_source(str(file))]))
    assert model.n_seen == n
    assert [one.recent[-230] for one in model.forecasts(1)] == [99.0] * n_series


def test_a_column_must_not_have_the_name_of_an_output(tmp_path: Path) -> None:
    file = tmp_path / "named.csv"
    file.write_text("mean,y\n" + "".join(f"2024-01-{i:02d},{i}\n" for i in range(1, 20)))
    with pytest.raises(SchemaError) as caught:
        forecast(file, "mean", "y", horizon=3)
    assert caught.value.reason.code == "output_name"
