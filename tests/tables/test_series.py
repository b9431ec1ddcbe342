import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.notation import Notation
from onepass.tables.readers.registry import open_source
from onepass.tables.series import SeriesTable, read_series
from onepass.tables.series_rows import SeriesColumns

DAYS = [str(day) for day in np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")]
PLAIN = [f"{day},{i % 7 + 0.5}" for i, day in enumerate(DAYS)]


def read(folder: Path, lines: list[str], header: str = "date,y", **options: Any) -> SeriesTable:
    file = folder / "series.csv"
    file.write_text("\n".join([header, *lines]) + "\n")
    return read_series([open_source(str(file))], SeriesColumns("date", "y", **options))


def refused(folder: Path, lines: list[str], **options: Any) -> Any:
    with pytest.raises(SchemaError) as caught:
        read(folder, lines, **options)
    return caught.value


def test_a_plain_series_is_read_as_it_is(tmp_path: Path) -> None:
    table = read(tmp_path, PLAIN)
    (series,) = table.series
    assert series.values.tolist() == [i % 7 + 0.5 for i in range(len(DAYS))]
    assert (table.rhythm.words(), table.seasons) == ("daily", (7.0,))
    facts = dict(table.summary.facts())
    assert facts == {
        "series": "60 values from 2024-01-01 to 2024-02-29",
        "frequency": "daily",
        "seasons": "week (7 steps)",
    }


@given(st.permutations(range(12)), st.sets(st.integers(0, 11), max_size=4))
def test_neither_the_order_of_rows_nor_their_repetition_matters(order: list[int], again: set[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        lines = [PLAIN[i] for i in order] + [PLAIN[i] for i in again]
        table = read(Path(name), lines)
    (series,) = table.series
    assert series.values.tolist() == [i % 7 + 0.5 for i in range(12)]
    assert table.summary.repeated == len(again)


def test_gaps_and_empty_values_are_missing(tmp_path: Path) -> None:
    lines = PLAIN.copy()
    lines[5] = f"{DAYS[5]},"
    del lines[20:23]
    table = read(tmp_path, lines)
    assert np.flatnonzero(np.isnan(table.series[0].values)).tolist() == [5, 20, 21, 22]
    assert (table.summary.missing, table.summary.longest_gap) == (4, 3)


def test_different_values_of_one_time_are_a_question_to_the_user(tmp_path: Path) -> None:
    lines = [*PLAIN, f"{DAYS[3]},100"]
    error = refused(tmp_path, lines)
    assert (error.reason.code, error.reason.facts["lines"]) == ("several_values", [5, 62])
    assert "duplicates" in error.suggestions
    values = {how: read(tmp_path, lines, duplicates=how).series[0].values[3] for how in ("last", "mean", "sum")}
    assert values == {"last": 100.0, "mean": 51.75, "sum": 103.5}


def test_a_table_of_several_series_needs_a_key(tmp_path: Path) -> None:
    lines = [f"{day},{i + 10 * (key == 'b')},{key}" for i, day in enumerate(DAYS) for key in "ab"]
    assert list(refused(tmp_path, lines, header="date,y,shop").suggestions) == ["by"]
    table = read(tmp_path, lines, header="date,y,shop", by="shop")
    assert [series.key for series in table.series] == ["a", "b"]
    assert (table.series[1].values - table.series[0].values).tolist() == [10.0] * len(DAYS)


def test_a_time_between_the_others_is_refused_with_its_line(tmp_path: Path) -> None:
    reason = refused(tmp_path, [*PLAIN, "2024-01-05T06:00,1"]).reason
    assert (reason.code, reason.value, reason.facts["lines"]) == ("off_rhythm", 1, [62])


def test_several_frequencies_are_refused_with_their_lines(tmp_path: Path) -> None:
    weeks = [f"{day},1" for day in np.arange("2023-01-02", "2024-01-01", 7, dtype="datetime64[D]")]
    reason = refused(tmp_path, [*weeks, *PLAIN]).reason
    assert (reason.code, reason.value) == ("mixed_rhythm", "7")
    assert (reason.facts["first"], reason.facts["last"]) == (2, 54)
    ends = np.arange("2024-05", "2025-05", dtype="datetime64[M]").astype("datetime64[D]") - 1
    reason = refused(tmp_path, [*PLAIN, *(f"{day},1" for day in ends[ends > np.datetime64(PLAIN[-1][:10])])]).reason
    assert (reason.code, reason.value, reason.facts["rhythm"]) == ("mixed_rhythm", "28 to 31", "daily")


def test_a_time_between_months_is_named_and_not_all_the_others(tmp_path: Path) -> None:
    ends = np.arange("2020-02", "2024-02", dtype="datetime64[M]").astype("datetime64[D]") - 1
    lines = [f"{day},1" for day in ends]
    table = read(tmp_path, lines)
    assert table.rhythm.words() == "monthly, at the end of the month"
    lines[5] = "2020-06-12,1"
    error = refused(tmp_path, lines)
    assert (error.reason.code, error.reason.facts["lines"]) == ("off_rhythm", [7])
    assert (
        "1 of the times in 'date' doesn't fit the others, which are monthly, at the end of the month: 2020-06-12, "
        in str(error)
    )


def test_an_hour_that_comes_twice_on_a_local_clock_is_one_with_the_mean(tmp_path: Path) -> None:
    hours = [str(hour) for hour in np.arange("2024-10-26T00:00", "2024-10-29T00:00", 60, dtype="datetime64[m]")]
    lines = [f"{hour},{i}" for i, hour in enumerate(hours)]
    lines.insert(27, "2024-10-27T02:00,100")
    table = read(tmp_path, lines)
    assert table.summary.repeated_hours == 1
    assert table.series[0].values[26] == 63.0
    monday = [*lines, "2024-10-28T02:00,100"]
    assert refused(tmp_path, monday).reason.code == "several_values"


def test_an_hour_that_the_clock_left_out_is_counted(tmp_path: Path) -> None:
    hours = [str(hour) for hour in np.arange("2024-03-30T00:00", "2024-10-29T00:00", 60, dtype="datetime64[m]")]
    lines = [f"{hour},{i % 24}" for i, hour in enumerate(hours) if hour != "2024-03-31T02:00"]
    lines.insert(lines.index("2024-10-27T02:00,2") + 1, "2024-10-27T02:00,5")
    table = read(tmp_path, lines)
    assert (table.summary.repeated_hours, table.summary.skipped_hours) == (1, 1)


@pytest.mark.parametrize(
    ("offset", "first", "zone"),
    [("+01:00", "2024-01-01T00:00+01:00", "+01:00"), ("Z", "2024-01-01T00:00Z", "Z"), ("", "2024-01-01T00:00", "")],
)
def test_times_stay_on_the_clock_on_which_they_were_written(tmp_path: Path, offset: str, first: str, zone: str) -> None:
    hours = np.arange("2024-01-01T00:00", "2024-01-04T00:00", 60, dtype="datetime64[m]")
    table = read(tmp_path, [f"{hour}{offset},{i}" for i, hour in enumerate(hours)])
    assert (table.summary.first, table.zone) == (first, zone)


def test_hours_with_the_offsets_of_summer_and_winter_follow_each_other(tmp_path: Path) -> None:
    """At 2024-03-31T01:00Z Berlin goes from +01:00 to +02:00."""
    utc = np.arange("2024-03-30T00:00", "2024-04-02T00:00", 60, dtype="datetime64[m]")
    change = np.datetime64("2024-03-31T01:00")
    lines = [
        f"{hour + (60 if hour < change else 120)}{'+01:00' if hour < change else '+02:00'},{i}"
        for i, hour in enumerate(utc)
    ]
    table = read(tmp_path, lines)
    assert (table.summary.missing, table.zone) == (0, "Z")
    march = map(str, np.arange("2024-03-20", "2024-04-10", dtype="datetime64[D]"))
    days = [f"{day}T00:00+0{1 if day <= '2024-03-31' else 2}:00,1" for day in march]
    table = read(tmp_path, days)
    assert (table.rhythm.words(), table.summary.missing) == ("daily", 0)


def test_inputs_of_rows_without_a_target_are_known_ahead(tmp_path: Path) -> None:
    lines = [f"{line},{'yes' if i % 5 else 'no'},{i}" for i, line in enumerate(PLAIN)]
    lines += [f"2024-03-0{i + 1},,no,{100 + i}" for i in range(4)]
    (series,) = read(tmp_path, lines, header="date,y,promo,price", inputs=("promo", "price")).series
    assert series.inputs[:3].tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    assert series.ahead.tolist() == [[0.0, 100.0], [0.0, 101.0], [0.0, 102.0], [0.0, 103.0]]
    assert len(series.values) == len(PLAIN)


def test_rows_that_cannot_be_read_are_set_aside_with_the_reason(tmp_path: Path) -> None:
    lines = [*PLAIN, "soon,3", ",3", "2924-01-01,3", "2024-03-01,hot"]
    table = read(tmp_path, lines)
    found = [(reject.line, reject.reason.code, reject.reason.role) for _, reject in table.rejects]
    assert found == [
        (62, "not_an_iso_date", ""),
        (63, "missing", "time"),
        (64, "too_far", ""),
        (65, "not_a_number", "target"),
    ]
    assert table.series[0].n_known == len(PLAIN)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["2024-01-01,3"], "too_few_times"),
        (["2024-01-01,", "2024-01-02,"], "no_values"),
        (["monday,3", "tuesday,4"], "not_times"),
        ([",3", ",4"], "no_times"),
        (["2024-01-01,few", "2024-01-02,many"], "series_without_numbers"),
        (["2024-01-01,1", "2024-01-02,2", "2099-01-03,3"], "long_gap"),
    ],
)
def test_what_is_not_a_series_is_refused(tmp_path: Path, lines: list[str], code: str) -> None:
    assert refused(tmp_path, lines).reason.code == code


def test_a_column_has_one_role() -> None:
    with pytest.raises(SchemaError) as caught:
        SeriesColumns("date", "y", inputs=("y",))
    assert caught.value.reason.code == "two_roles"


def test_dates_and_numbers_may_be_written_in_other_ways(tmp_path: Path) -> None:
    file = tmp_path / "series.csv"
    days = [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in DAYS]
    file.write_text(
        "date;y\n" + "".join(f"{day};{1000 + i}.{i:03d},5\n".replace(".", ".") for i, day in enumerate(days))
    )
    file.write_text("date;y\n" + "".join(f"{day};{i},5\n" for i, day in enumerate(days)))
    table = read_series([open_source(str(file))], SeriesColumns("date", "y"), Notation(decimal=","))
    assert table.series[0].values[:2].tolist() == [0.5, 1.5]
    compact = read(tmp_path, [f"{day.replace('-', '')},1" for day in DAYS])
    assert compact.rhythm.words() == "daily"


def test_the_season_of_times_that_are_numbers_is_found(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=100)
    seasonal = [f"{i},{5 * np.sin(2 * np.pi * i / 12) + noise[i]}" for i in range(100)]
    assert read(tmp_path, seasonal).seasons == (12.0,)
    assert read(tmp_path, [f"{i},{one}" for i, one in enumerate(noise)]).seasons == ()


def test_equal_values_and_series_that_have_ended_are_said(tmp_path: Path) -> None:
    lines = [f"{day},3,a" for day in DAYS[:20]] + [f"{day},{i},b" for i, day in enumerate(DAYS)]
    summary = read(tmp_path, lines, header="date,y,shop", by="shop").summary
    assert (summary.constant, summary.ended) == (("a",), 1)
    assert dict(summary.facts())["constant"] == "all values are equal in 1 series: a"


def hours_at(first: str, n: int, offset: str) -> list[str]:
    hours = np.arange(np.datetime64(first, "m"), np.datetime64(first, "m") + 60 * n, 60)
    return [f"{hour}{offset},{i}" for i, hour in enumerate(hours)]


def further(folder: Path, known: SeriesTable, lines: list[str]) -> SeriesTable:
    file = folder / "further.csv"
    file.write_text("\n".join(["date,y", *lines]) + "\n")
    return read_series([open_source(str(file))], known.columns, rhythm=known.rhythm, zone=known.zone)


@pytest.mark.parametrize("offset", ["+01:00", "-03:30", "Z"])
@pytest.mark.parametrize(
    "written", [("00:00", "Z"), ("02:00", "+02:00"), ("20:30", "-03:30")], ids=["utc", "summer", "far"]
)
def test_a_further_file_with_another_offset_goes_on_with_the_next_instant(
    tmp_path: Path, offset: str, written: tuple[str, str]
) -> None:
    shift = {"+01:00": 60, "-03:30": -210, "Z": 0}[offset]
    known = read(tmp_path, hours_at(str(np.datetime64("2024-03-29T00:00") + shift), 24, offset))
    day = "2024-03-29" if written[1] == "-03:30" else "2024-03-30"
    table = further(tmp_path, known, hours_at(f"{day}T{written[0]}", 3, written[1]))
    assert table.series[0].first == known.series[0].end
    assert table.zone == known.zone == offset
    assert table.summary.first == f"{np.datetime64('2024-03-30T00:00') + shift}{offset}"


@pytest.mark.parametrize(("first", "second"), [("+01:00", ""), ("", "+01:00"), ("", "Z")])
def test_times_with_and_without_offsets_do_not_go_on_with_each_other(tmp_path: Path, first: str, second: str) -> None:
    known = read(tmp_path, hours_at("2024-03-29T00:00", 24, first))
    with pytest.raises(SchemaError) as caught:
        further(tmp_path, known, hours_at("2024-03-30T00:00", 3, second))
    assert caught.value.reason.code == "other_clock"


def test_days_are_the_same_days_in_summer(tmp_path: Path) -> None:
    known = read(tmp_path, [f"{day}T00:00+01:00,1" for day in DAYS])
    table = further(tmp_path, known, ["2024-03-01T00:00+02:00,1", "2024-03-02T00:00+02:00,1"])
    assert (table.series[0].first, table.summary.last) == (known.series[0].end, "2024-03-02")


@pytest.mark.parametrize(
    ("values", "how", "expected"),
    [
        ((1, 2, 1), "last", 1.0),
        ((1, 1, 2), "last", 2.0),
        ((2, "", 1, ""), "last", 1.0),
        ((5, 5, 3), "sum", 13.0),
        ((5, 5), "sum", 10.0),
        ((5, 5, "", 2), "mean", 4.0),
        (("", ""), "sum", np.nan),
        ((5, 5), "error", 5.0),
    ],
)
def test_what_counts_of_several_values_of_a_time(
    tmp_path: Path, values: tuple[Any, ...], how: str, expected: float
) -> None:
    table = read(
        tmp_path, [*(f"2024-01-03,{value}" for value in values), "2024-01-04,9", "2024-01-02,8"], duplicates=how
    )
    np.testing.assert_equal(table.series[0].values, [8.0, expected, 9.0])


def test_each_row_is_counted_once(tmp_path: Path) -> None:
    table = read(tmp_path, [*PLAIN, "2024-03-01,bad", "2024-03-02,1,2,3", "soon,1"])
    assert (table.summary.rows, table.summary.rejected) == (len(PLAIN) + 3, 3)


def test_columns_can_be_kept_as_data() -> None:
    columns = SeriesColumns("date", "y", "shop", ("price", "promo"), "last", written={"date": {"dates": True}})
    data = json.loads(json.dumps(columns.to_data()))
    assert SeriesColumns.from_data(data) == columns


def test_values_that_are_not_counts_are_rejected_and_means_of_counts_are_rounded(tmp_path: Path) -> None:
    lines = ["2024-01-01,3", "2024-01-02,-1", "2024-01-03,1", "2024-01-03,4", "2024-01-04,0.5", "2024-01-05,"]
    table = read(tmp_path, [*lines, "2024-01-06,2", "2024-01-07,5"], counts=True, duplicates="mean")
    assert [reject.line for _, reject in table.rejects] == [3, 6]
    assert all("not a count" in str(reject.reason) for _, reject in table.rejects)
    np.testing.assert_equal(table.series[0].values, [3.0, np.nan, 2.0, np.nan, np.nan, 2.0, 5.0])
