"""Times become steps in the rhythm of the series."""

import json

import numpy as np
import pytest

from onepass.forecasting.times import Clock, as_times


def clock(times: np.ndarray) -> Clock:
    own = Clock(times.dtype == np.int64, times[0].item(), last=-1)
    own.learn_step(times[1].item())
    return own


@pytest.mark.parametrize(
    ("dates", "seasons"),
    [
        (np.arange("2023-01", "2025-01", dtype="datetime64[M]"), (12.0,)),
        (np.arange("2023-01", "2025-01", 3, dtype="datetime64[M]"), (4.0,)),
        (np.arange("2000", "2020", dtype="datetime64[Y]"), ()),
        (np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]"), (7.0, 365.25)),
        (np.arange("2024-01-01", "2024-12-01", 7, dtype="datetime64[D]"), (52.18,)),
        (np.arange("2024-01-01", "2024-01-09", dtype="datetime64[h]"), (24.0, 168.0)),
    ],
)
def test_dates_have_a_rhythm_and_its_seasons(dates: np.ndarray, seasons: tuple[float, ...]) -> None:
    times = as_times(dates, len(dates))
    own = clock(times)
    np.testing.assert_array_equal(own.positions(times), np.arange(len(dates)))
    assert own.seasons == seasons


def test_gaps_are_steps_left_out() -> None:
    times = as_times([0.5, 1.0, 2.5, 3.0], 4)
    np.testing.assert_array_equal(clock(times).positions(times), [0, 1, 4, 5])


def test_missing_times_are_refused() -> None:
    with pytest.raises(ValueError, match="NaT"):
        as_times(np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"), 2)
    with pytest.raises(TypeError, match="numbers or dates"):
        as_times(["soon", "later"], 2)


@pytest.mark.parametrize(
    "dates",
    [
        np.arange("2023-01", "2025-01", dtype="datetime64[M]").astype("datetime64[D]"),
        (np.arange("2023-02", "2025-02", dtype="datetime64[M]")).astype("datetime64[D]") - 1,
        np.arange("2024-01", "2030-01", 3, dtype="datetime64[M]").astype("datetime64[D]"),
        np.arange("2023-01-02", "2030-01-02", 28, dtype="datetime64[D]"),
        np.arange("2024-01-01T06", "2024-01-03", dtype="datetime64[h]"),
        np.arange(3.0, 9.0, 0.5),
        np.arange(4, 40, 4),
    ],
)
def test_steps_have_the_times_that_set_the_rhythm(dates: np.ndarray) -> None:
    found = clock(as_times(dates, len(dates))).times_of(np.arange(len(dates)))
    np.testing.assert_array_equal(found, dates)
    assert found.dtype.kind == ("M" if dates.dtype.kind == "M" else dates.dtype.kind)


@pytest.mark.parametrize(
    ("known", "other"),
    [
        (("2024-01-31", "2024-02-29"), "2024-03-05"),
        (("2024-01-01", "2024-02-01"), "2024-03-28"),
        (("2024-01-01", "2024-02-01"), "2024-03-05"),
        (("2024-01-15", "2024-02-15"), "2024-03-14"),
        (("2024-03-31", "2024-06-30"), "2024-09-20"),
        (("2023-05-10", "2024-05-10"), "2025-05-20"),
    ],
)
def test_a_rhythm_of_months_has_its_day(known: tuple[str, str], other: str) -> None:
    times = as_times(np.array([*known, other], dtype="datetime64[D]"), 3)
    with pytest.raises(ValueError, match="index 2 does not fit"):
        clock(times).positions(times)


@pytest.mark.parametrize(
    "dates",
    [
        ("2024-03-29", "2024-04-30", "2024-05-31", "2024-06-28"),  # last working days
        ("2025-05-30", "2025-06-30", "2025-07-31", "2025-08-29"),
        ("2024-01-01", "2024-02-01", "2024-03-01", "2024-06-03"),  # first ones
        ("2023-01-30", "2023-02-28", "2023-03-30", "2023-04-30"),
        ("2023-02-28", "2023-03-30", "2023-04-30", "2023-05-30"),
        ("2023-12-14T23", "2024-01-14T23", "2024-02-14T23", "2024-04-14T22"),  # midnight at one place
    ],
)
def test_a_rhythm_of_months_goes_with_the_ends_of_months_and_clock_changes(dates: tuple[str, ...]) -> None:
    times = as_times(np.array(dates, dtype="datetime64[ns]"), 4)
    own = Clock(True, times[0].item(), months=1, last=-1)
    months = np.array(dates, dtype="datetime64[M]").astype(int)
    np.testing.assert_array_equal(own.positions(times), months - months[0])


def test_days_apart_that_no_month_has_are_a_fixed_time() -> None:
    own = clock(as_times(np.array(["2024-01-15", "2024-02-14"], dtype="datetime64[D]"), 2))
    assert own.months == 0
    assert own.times_of(np.array([2])).astype("datetime64[D]").astype(str).tolist() == ["2024-03-15"]


def test_dates_are_saved_to_the_nanosecond() -> None:
    own = clock(as_times(np.array(["2024-01-01T00:00:00.123456789", "2024-01-01T00:00:01.123456790"], "M8[ns]"), 2))
    again = Clock.from_data(json.loads(json.dumps(own.to_data())))
    np.testing.assert_array_equal(again.times_of(np.arange(5)), own.times_of(np.arange(5)))
    assert again.to_data() == own.to_data()


def test_months_without_the_day_of_the_first_one_end_before_it() -> None:
    own = Clock(True, as_times(np.array(["2024-01-30"], dtype="datetime64[D]"), 1)[0].item(), months=1)
    found = own.times_of(np.arange(3)).astype("datetime64[D]").astype(str).tolist()
    assert found == ["2024-01-30", "2024-02-29", "2024-03-30"]
