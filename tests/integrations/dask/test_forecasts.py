"""Series in parts on every scheduler: learned as by parts in one process, continued, saved, collected."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed

from onepass import distributed
from onepass.distributed import DistributedForecastingFleet
from onepass.forecasting import ForecastingFleet, Member, sampled
from onepass.forecasting.population import sharing_steps
from onepass.forecasting.times import Clock
from onepass.models.fleet.keys import as_keys, parts_of

MEMBERS = [Member((1, 2)), Member((1, 2), difference=1, logarithm=True)]
N_SERIES, N = 24, 60


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    with dask.config.set(scheduler="threads"):
        yield


def fleet(inputs: tuple[str, ...] = ()) -> ForecastingFleet:
    return ForecastingFleet(1, 4, members=MEMBERS, inputs=inputs)


def table(first: int = 0, stop: int = N) -> pd.DataFrame:
    """Daily autoregressions with the same weights; every third series begins ten days later."""
    rng, y = np.random.default_rng(0), np.zeros((N_SERIES, N))
    price = rng.normal(size=(N_SERIES, N))
    for t in range(2, N):
        y[:, t] = 1.2 * y[:, t - 1] - 0.7 * y[:, t - 2] + rng.normal(size=N_SERIES)
    names, steps = np.divmod(np.arange(N_SERIES * N), N)
    days = pd.Timestamp("2026-01-01") + pd.to_timedelta(steps, unit="D")
    rows = pd.DataFrame({"unique_id": [f"shop {name}" for name in names], "ds": days, "y": 50.0 + (y + price).ravel()})
    rows["price"] = price.ravel()
    return rows[(steps >= np.where(names % 3, first, max(first, 10))) & (steps < stop)].reset_index(drop=True)


def dask_frame(rows: pd.DataFrame, n: int = 5, seed: int = 0) -> Any:
    """Partitions with rows of any series and times, the first without rows."""
    mixed = rows.sample(frac=1.0, random_state=seed)
    pieces = [mixed.iloc[:0], *(mixed.iloc[at::n] for at in range(n))]
    return dd.from_delayed([delayed(piece) for piece in pieces], meta=mixed.iloc[:0])


def in_one_process(n_parts: int, rows: pd.DataFrame) -> ForecastingFleet:
    """What parts learn when they share wherever one fleet would."""
    parts, part_of = fleet().split(n_parts), parts_of(as_keys(rows["unique_id"], len(rows)), n_parts)
    days, counts = np.unique(rows["ds"], return_counts=True)
    shared = sharing_steps(0, counts)
    for day in range(len(days)):
        for number, part in enumerate(parts):
            own = rows[(part_of == number) & (rows["ds"] == days[day])]
            if day == 0:
                part.set_rhythm(Clock.of(days[:2].astype("datetime64[ns]").astype(np.int64)))
            if len(own):
                part.learn_frame(own)
        if day in shared or day == len(days) - 1:
            asked: Any = sampled([len(part) for part in parts]) if day in shared else [()] * n_parts
            given = [part.contribution(own) for part, own in zip(parts, asked, strict=True)]
            parts = [part.share(given) for part in parts]
    return parts[0].join(parts[1:])


def by_series(forecasts: Any) -> Any:
    found = forecasts.compute() if isinstance(forecasts, dd.DataFrame) else forecasts
    return found.sort_values(["unique_id", "ds"]).reset_index(drop=True)


def test_parts_learn_what_they_would_in_one_process() -> None:
    found = distributed.fit_forecasts(fleet(), dask_frame(table()[["unique_id", "ds", "y"]]), parts=3)
    expected = in_one_process(3, table())
    assert (len(found), found.n_seen) == (N_SERIES, expected.n_seen)
    assert expected.export_state()[1]["priors"].any()
    pd.testing.assert_frame_equal(by_series(found.forecast_frame(6)), by_series(expected.forecast_frame(6)), rtol=1e-9)
    for name, array in expected.export_state()[1].items():
        np.testing.assert_allclose(found.collect().export_state()[1][name], array, rtol=1e-9, err_msg=name)


def test_means_depend_neither_on_partitions_nor_parts_nor_the_scheduler(client: Any) -> None:
    whole = by_series(distributed.fit_forecasts(fleet(), dask_frame(table(), 1), parts=1).forecast_frame(6))
    every = []
    for scheduler in ("synchronous", "threads", client):
        with dask.config.set(scheduler=scheduler):
            learned = distributed.fit_forecasts(fleet(), dask_frame(table(), 4, seed=1), parts=3)
            found = by_series(learned.forecast_frame(6))
        np.testing.assert_allclose(found["onepass"], whole["onepass"], rtol=1e-9)
        widths = [own["onepass-hi-95"] - own["onepass-lo-95"] for own in (found, whole)]
        assert abs(np.log(widths[0] / widths[1])).max() < 0.2
        every.append(found)
    for found in every[1:]:
        pd.testing.assert_frame_equal(found, every[0])


def test_tonights_values_are_learned_and_a_saved_fleet_goes_on(tmp_path: Path) -> None:
    learned = distributed.fit_forecasts(fleet(), dask_frame(table(0, 40)), parts=2)
    learned.save(tmp_path / "monday")
    loaded = distributed.load_forecasts(tmp_path / "monday")
    whole = distributed.fit_forecasts(fleet(), dask_frame(table(0, 40)), parts=2)
    for day in range(40, 44):
        learned.learn_frame(dask_frame(table(day, day + 1), 2))
        loaded.learn_frame(dask_frame(table(day, day + 1), 3))
    whole.learn_frame(dask_frame(table(40, 44)))
    assert (
        repr(learned) == repr(loaded) == f"DistributedForecastingFleet(n_series=24, n_seen={learned.n_seen}, n_parts=2)"
    )
    found = by_series(learned.forecast_frame(3))
    assert found["ds"].min() == pd.Timestamp("2026-02-14")
    pd.testing.assert_frame_equal(by_series(loaded.forecast_frame(3)), found)
    np.testing.assert_allclose(by_series(whole.forecast_frame(3))["onepass"], found["onepass"], rtol=1e-9)
    collected = learned.collect().learn_frame(table(44, 45))
    assert collected.forecast(3, key="shop 1").mean[0] == pytest.approx(
        learned.learn_frame(dask_frame(table(44, 45))).forecast(3, key="shop 1").mean[0], rel=1e-9
    )
    with pytest.raises(ValueError, match="monday exists: give a new folder"):
        learned.save(tmp_path / "monday")
    (tmp_path / "monday" / "part-1-of-2.onepass").unlink()
    with pytest.raises(ValueError, match="must have all parts of a fleet, got part-2-of-2"):
        distributed.load_forecasts(tmp_path / "monday")


def test_inputs_are_learned_and_given_for_steps_ahead() -> None:
    learned = distributed.fit_forecasts(fleet(("price",)), dask_frame(table(0, 50)), parts=3)
    ahead = table(50, 54)[["unique_id", "ds", "price"]]
    collected = learned.collect()
    expected = by_series(collected.forecast_frame(4, X_df=ahead))
    found = by_series(learned.forecast_frame(4, X_df=dask_frame(ahead)))
    pd.testing.assert_frame_equal(found, expected)
    assert np.abs(expected["onepass"] - by_series(collected.forecast_frame(4))["onepass"]).max() > 0.5


@pytest.mark.parametrize("step", [1, 2, 0.5])
def test_numbers_as_keys_and_times_keep_their_kind(step: float) -> None:
    rows = table()
    rows["unique_id"] = rows["unique_id"].str.removeprefix("shop ").astype(int)
    rows["ds"] = (rows["ds"] - pd.Timestamp("2026-01-01")).dt.days * step
    frame = distributed.fit_forecasts(fleet(), dask_frame(rows), parts=2).forecast_frame(2, levels=[90])
    assert list(frame.columns) == ["unique_id", "ds", "onepass", "onepass-lo-90", "onepass-hi-90"]
    found = frame.compute()
    assert list(found.dtypes) == list(frame.dtypes)
    assert found["ds"].dtype == (np.float64 if step == 0.5 else np.int64)
    assert found["unique_id"].dtype == np.int64
    assert found["ds"].min() == N * step


def unchanged(learned: DistributedForecastingFleet, before: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(learned.forecast_frame(2).compute(), before)


def test_bad_rows_are_refused_and_nothing_is_learned() -> None:
    learned = distributed.fit_forecasts(fleet(("price",)), dask_frame(table(0, 40)), parts=3)
    before, more = learned.forecast_frame(2).compute(), table(40, 50)
    twice = pd.concat([more, more.iloc[[7]].assign(y=1.0)])
    with pytest.raises(ValueError, match=r"series shop 0 has several values at 2026-02-17.*: keep one"):
        learned.learn_frame(dask_frame(twice))
    off = more.assign(ds=more["ds"].where(more.index != 100, more["ds"] + pd.Timedelta(hours=7)))
    with pytest.raises(ValueError, match=r"one rhythm, .*2026-01-01.* and .*2026-01-02.*T07:00.* is not: resample"):
        learned.learn_frame(dask_frame(off))
    with pytest.raises(ValueError, match="no column 'price'"):
        learned.learn_frame(dask_frame(more.drop(columns="price")))
    with pytest.raises(ValueError, match="have been learned"):  # was learned before
        learned.learn_frame(dask_frame(table(30, 50)))
    with pytest.raises(ValueError, match="y must not be beyond"):
        learned.learn_frame(dask_frame(more.assign(y=more["y"].where(more.index != 200, 1e300))))
    with pytest.raises(TypeError, match="all integers or all strings"):
        learned.learn_frame(dask_frame(more.assign(unique_id=more["unique_id"].where(more.index != 5, np.nan))))
    with pytest.raises(ValueError, match="no rows"):
        learned.learn_frame(dask_frame(more.iloc[:0]))
    with pytest.raises(TypeError, match="ds must be all dates or all numbers"):
        learned.learn_frame(dask_frame(more.assign(ds=np.arange(float(len(more))))))
    with pytest.raises(TypeError, match="must be a Dask data frame, got DataFrame"):
        learned.learn_frame(more)
    unchanged(learned, before)


def test_what_is_asked_for_wrongly_is_refused() -> None:
    data = dask_frame(table(0, 20))
    with pytest.raises(TypeError, match="fleet must be a ForecastingFleet"):
        distributed.fit_forecasts(MEMBERS, data)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="revisions can't be split"):
        distributed.fit_forecasts(ForecastingFleet(1, revisions=3), data)
    with pytest.raises(ValueError, match="at least two different times"):
        distributed.fit_forecasts(fleet(), dask_frame(table(15, 16)))
    learned = distributed.fit_forecasts(fleet(), data)
    assert learned.n_parts == data.npartitions
    with pytest.raises(ValueError, match="the fleet has no inputs"):
        learned.forecast_frame(2, X_df=data)
    with pytest.raises(ValueError, match="levels must be percentages"):
        learned.forecast_frame(2, levels=[0.95])
    with pytest.raises(KeyError, match="shop 99"):
        learned.forecast(2, key="shop 99")
