"""Times become steps in the rhythm of the series."""

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


def test_months_without_the_day_of_the_first_one_end_before_it() -> None:
    own = Clock(True, as_times(np.array(["2024-01-30"], dtype="datetime64[D]"), 1)[0].item(), months=1)
    found = own.times_of(np.arange(3)).astype("datetime64[D]").astype(str).tolist()
    assert found == ["2024-01-30", "2024-02-29", "2024-03-30"]
