import json

import numpy as np
import pytest

from onepass.forecasting.times import Clock
from onepass.tables.rhythm import DAY, Rhythm, find_rhythm


def dates(first: str, last: str, step: int, unit: str) -> np.ndarray:
    return np.arange(first, last, step, dtype=f"datetime64[{unit}]").astype("datetime64[ns]").astype(np.int64)


def month_ends() -> np.ndarray:
    months = np.arange("2020-01", "2023-01", dtype="datetime64[M]") + 1
    return (months.astype("datetime64[D]") - 1).astype("datetime64[ns]").astype(np.int64)


def working_days() -> np.ndarray:
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    return days[np.is_busday(days)].astype("datetime64[ns]").astype(np.int64)


RHYTHMS = {
    "monthly": (dates("2020-01", "2023-01", 1, "M"), (12.0,)),
    "quarterly": (dates("2010-01", "2020-01", 3, "M"), (4.0,)),
    "yearly": (dates("1990", "2020", 1, "Y"), ()),
    "monthly, at the end of the month": (month_ends(), (12.0,)),
    "working days, Monday to Friday": (working_days(), (5.0, 261.0)),
    "daily": (dates("2024-02-01", "2024-06-01", 1, "D"), (7.0, 365.25)),
    "weekly, Thursdays": (dates("2024-02-01", "2025-06-01", 7, "D"), (52.18,)),
    "every 4 weeks, Thursdays": (dates("2024-02-01", "2025-06-01", 28, "D"), ()),
    "hourly": (dates("2024-02-01", "2024-02-08", 1, "h"), (24.0, 168.0)),
    "every 15 minutes": (dates("2024-02-01T00:00", "2024-02-03T00:00", 15, "m"), (96.0, 672.0)),
    "every 2.5": (np.arange(40) * 2.5, ()),
}


@pytest.mark.parametrize(("words", "times", "seasons"), [(name, *found) for name, found in RHYTHMS.items()])
def test_steps_and_times_are_each_others_inverse(words: str, times: np.ndarray, seasons: tuple[float, ...]) -> None:
    rhythm = find_rhythm([times])
    assert rhythm is not None
    assert (rhythm.words(), rhythm.seasons) == (words, seasons)
    steps, fits = rhythm.steps(times)
    assert fits.all()
    assert steps.tolist() == list(range(len(times)))
    assert rhythm.times(steps).tolist() == times.tolist()
    assert Rhythm.from_data(rhythm.to_data()) == rhythm


@pytest.mark.parametrize("words", list(RHYTHMS))
def test_steps_ahead_go_on_in_the_rhythm(words: str) -> None:
    times, _ = RHYTHMS[words]
    known = find_rhythm([times[:-6]])
    assert known is not None
    assert known.times(np.arange(len(times) - 6, len(times))).tolist() == times[-6:].tolist()


def test_gaps_do_not_change_the_rhythm() -> None:
    times = dates("2020-01", "2023-01", 1, "M")
    rhythm = find_rhythm([np.delete(times, [1, 2, 10])])
    assert rhythm is not None
    assert rhythm.months == 1


def test_a_time_between_two_steps_does_not_fit() -> None:
    times = dates("2024-02-01", "2024-06-01", 1, "D")
    rhythm = find_rhythm([times])
    assert rhythm is not None
    assert rhythm.steps(times[:3] + DAY // 2)[1].tolist() == [False] * 3
    week = Rhythm(True, int(working_days()[0]), DAY, working_days=True)
    assert not week.steps(dates("2024-01-06", "2024-01-08", 1, "D"))[1].any()


def test_a_month_end_is_not_any_day_of_the_month() -> None:
    rhythm = find_rhythm([month_ends()])
    assert rhythm is not None
    others = np.array(["2023-03-31", "2023-03-05", "2023-04-28", "2023-04-20"], dtype="datetime64[ns]").astype(np.int64)
    steps, fits = rhythm.steps(others)
    assert fits.tolist() == [True, False, True, False]
    assert (steps[[0, 2]] - rhythm.steps(month_ends()[-1:])[0]).tolist() == [3, 4]
    middle = find_rhythm([dates("2024-01", "2024-09", 1, "M") + 14 * DAY])
    assert middle is not None
    assert middle.steps(dates("2024-10", "2024-12", 1, "M") + np.array([14, 15]) * DAY)[1].tolist() == [True, False]


def test_dates_are_saved_to_the_nanosecond() -> None:
    start = int(np.datetime64("2024-01-01T00:00:00.123456789", "ns").astype(np.int64))
    rhythm = Rhythm(True, start, 1_000_000_001)
    assert Rhythm.from_data(json.loads(json.dumps(rhythm.to_data()))) == rhythm


def test_one_time_alone_shows_no_rhythm() -> None:
    assert find_rhythm([np.array([1.0]), np.array([2.0])]) is None


def test_times_are_drawn_as_dates_or_numbers() -> None:
    days = Rhythm(True, int(dates("2024-02-01", "2024-02-02", 1, "D")[0]), DAY)
    assert (
        days.drawn_times(28, 2).tolist()
        == dates("2024-02-29", "2024-03-02", 1, "D").astype("M8[ns]").astype("M8[ms]").tolist()
    )
    assert Rhythm(False, 0.5, 0.25).drawn_times(2, 2).tolist() == [1.0, 1.25]


def test_times_are_written_as_short_as_they_can_be() -> None:
    hours = Rhythm(True, int(dates("2024-02-01", "2024-02-02", 1, "D")[0]), DAY / 24)
    assert hours.time_texts(hours.times(np.array([1])), "+01:00") == ["2024-02-01T01:00+01:00"]
    days = Rhythm(True, int(dates("2024-02-01", "2024-02-02", 1, "D")[0]), DAY)
    assert days.time_texts(days.times(np.array([28, 29]))) == ["2024-02-29", "2024-03-01"]
    assert Rhythm(False, 0.0, 0.1).time_texts(np.arange(3) * 0.1) == ["0", "0.1", "0.2"]


@pytest.mark.parametrize("day", ["2023-12-31", "2024-01-15", "2024-01-30"])
@pytest.mark.parametrize("months", [1, 3])
def test_months_are_counted_as_by_a_forecaster(day: str, months: int) -> None:
    start = int(np.datetime64(day, "ns").astype(np.int64))
    clock, steps = Clock(True, start, months=months), np.arange(30)
    rhythm = Rhythm(True, start, months=months, at_end=clock.at_end)
    np.testing.assert_array_equal(rhythm.times(steps), clock.times_of(steps).astype(np.int64))
    np.testing.assert_array_equal(rhythm.steps(rhythm.times(steps))[0], steps)


def test_last_working_days_are_ends_though_the_first_of_them_is_not() -> None:
    days = np.array(["2024-03-29", "2024-04-30", "2024-05-31", "2024-06-28", "2024-07-31"], dtype="datetime64[ns]")
    found = find_rhythm([days.astype(np.int64)])
    assert found is not None
    assert found.at_end
    ahead = found.times(np.arange(1, 3)).astype("datetime64[ns]").astype("datetime64[D]").astype(str)
    assert ahead.tolist() == ["2024-04-30", "2024-05-31"]


def test_one_date_between_months_does_not_hide_them() -> None:
    months = np.arange("2022-01", "2024-01", dtype="datetime64[M]").astype("datetime64[D]")
    months[7] = np.datetime64("2022-08-13")
    times = months.astype("datetime64[ns]").astype(np.int64)
    found = find_rhythm([times])
    assert found is not None
    assert (found.months, found.words()) == (1, "monthly")
    assert np.flatnonzero(~found.steps(times)[1]).tolist() == [7]
