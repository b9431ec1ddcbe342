from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.tables.columns.date import Date, likely_date_format
from onepass.tables.columns.date_format import DateFormat
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import infer
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.reasons import Reason

PATTERNS = (
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y %H:%M", "%Y%m%d", "%Y%m%d%H%M%S", "%b %d, %Y", "%d %B %Y", "%d-%b-%y"),
    *("%Y-%j", "%m/%d/%Y %I:%M:%S %p", "%Y/%m/%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S%z", "%a %d %b %Y", "%b %Y"),
)


def days(moment: datetime) -> float:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400.0


@settings(max_examples=150, deadline=None)
@given(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)), st.sampled_from(PATTERNS))
def test_dates_are_what_python_reads(moment: datetime, pattern: str) -> None:
    text = moment.replace(tzinfo=UTC).strftime(pattern)
    expected = days(datetime.strptime(text, pattern))
    np.testing.assert_allclose(DateFormat(pattern).days(pa.array([text, None, "x" + text])), [expected, np.nan, np.nan])


def test_days_that_no_calendar_has_are_none() -> None:
    texts = ["29.02.2024", "29.02.2023", "31.04.2024", "00.01.2024", "01.13.2024", "1.1.2024"]
    found = DateFormat("%d.%m.%Y").days(pa.array(texts))
    np.testing.assert_array_equal(np.isnan(found), [False, True, True, True, True, False])
    assert np.isnan(DateFormat("%Y-%j").days(pa.array(["2023-366"])))
    assert np.isnan(DateFormat("%Y-%m-%d %H:%M").days(pa.array(["2023-01-01 24:00"])))


@pytest.mark.parametrize(
    ("texts", "pattern", "unsure"),
    [
        (["2024-01-31", "2024-02-01"], "", False),
        (["31.01.2024", "01.02.2024"], "%d.%m.%Y", False),
        (["01/31/2024", "02/01/2024"], "%m/%d/%Y", False),
        (["01/02/2024", "31/01/2024"], "%d/%m/%Y", False),
        (["01/02/2024", "03/04/2024"], "%m/%d/%Y", True),
        (["1-2-2024", "3-4-2024"], "%d-%m-%Y", True),
        (["Jan 31, 2024", "May 1, 2024"], "%b %d, %Y", False),
        (["Jan 1 2000", "Feb 1 2000"], "%b %d %Y", False),
        (["May 1, 2024", "January 31, 2024"], "%B %d, %Y", False),
        (["2001/01/10 18:20", "2001/01/11 08:05"], "%Y/%m/%d %H:%M", False),
        (["1/31/2024 4:05 PM", "2/1/2024 11:00 am"], "%m/%d/%Y %I:%M %p", False),
        (["31.01.24", "01.02.24"], "%d.%m.%y", False),
    ],
)
def test_the_format_is_found_out(texts: list[str], pattern: str, unsure: bool) -> None:
    found, share = likely_date_format(pa.array([*texts, "NA"]), AS_WRITTEN)
    assert (found.pattern, found.unsure, share) == (pattern, unsure, 1.0)


def test_the_order_of_day_and_month_is_told_asked_for_and_kept() -> None:
    table = pa.RecordBatch.from_pydict({"a": ["01/02/2024", "03/04/2024", "?"]})
    (guessed,) = infer(table, []).columns
    assert "written %m/%d/%Y, though no day above 12 shows that the month comes first" in guessed.words()
    assert guessed.words().endswith("; missing (?) has a feature")
    (asked,) = infer(table, [], notation=Notation(date_formats=("%d/%m/%Y",))).columns
    assert isinstance(asked, Date)
    assert "though" not in asked.words()
    assert Date.from_state(asked.state()) == asked
    (european,) = infer(table, [], notation=Notation(likely_decimal=",")).columns
    assert isinstance(european, Date)
    assert european.written.pattern == "%d/%m/%Y"
    assert european.written.unsure
    (said,) = infer(table, [], notation=Notation(date_formats=("%m/%d/%Y",), likely_decimal=",")).columns
    assert isinstance(said, Date)
    assert (said.written.pattern, said.written.unsure) == ("%m/%d/%Y", False)


def test_digits_may_be_dates() -> None:
    texts = [f"202401{1 + i % 28:02}" for i in range(40)]
    for values in (pa.array(texts), pa.array([int(text) for text in texts])):
        table = pa.RecordBatch.from_pydict({"a": values})
        encoding = infer(table, [])
        (column,) = encoding.columns
        assert isinstance(column, Date)
        assert column.words().startswith("date written %Y%m%d, ")
        assert encoding.encode(table).X[0, 1] == 1.0  # a Monday
    few = pa.RecordBatch.from_pydict({"a": [20240131, 20240201]})
    assert [infer(few, [], kinds=kinds).columns[0].kind for kinds in ({}, {"a": "date"})] == ["number", "date"]
    assert infer(few, [], kinds={"a": "date"}).encode(few).X[1, 4] == 1.0  # a Thursday
    (number,) = infer(pa.RecordBatch.from_pydict({"a": [*texts, "20241301"]}), []).columns
    assert number.kind == "number"


def test_what_is_not_written_so_is_named() -> None:
    encoding = infer(pa.RecordBatch.from_pydict({"a": ["31.01.2024", "01.02.2024"]}), [])
    bad = encoding.encode(pa.RecordBatch.from_pydict({"a": ["30.02.2024", "31/01/2024", "NA"]})).bad
    assert bad == {
        0: Reason("not_a_date", "a", "30.02.2024", pattern="%d.%m.%Y"),
        1: Reason("not_a_date", "a", "31/01/2024", pattern="%d.%m.%Y"),
    }


@pytest.mark.parametrize(
    ("pattern", "reason"), [("%d.%q.%Y", "%q is unknown"), ("%d.%m", "it needs a year"), ("%Y %y", "it needs a year")]
)
def test_a_format_that_cannot_be_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(SchemaError) as refused:
        Notation(date_formats=(pattern,))
    assert refused.value.reason.code == "bad_date_format"
    assert reason in refused.value.reason.facts["why"]


@pytest.mark.parametrize("change", [{"pattern": 3}, {"pattern": "%q"}, {"unsure": 1}, {"more": 1}])
def test_a_hostile_format_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        DateFormat.from_state({"written": {"pattern": "%Y", "unsure": False} | change})


def test_dates_of_programs_are_read_whatever_the_files_notation() -> None:
    encoding = infer(pa.record_batch({"a": ["31/01/2024", "01/02/2024", "15/03/2024"] * 5}), [])
    (column,) = encoding.columns
    assert isinstance(column, Date)
    assert column.written.pattern == "%d/%m/%Y"
    texts = ["31/01/2024", "2024-01-31", "2024-01-31T00:00:00Z", "2024-02-31", "20240131"]
    both = encoding.encode(pa.record_batch({"a": texts}))
    np.testing.assert_array_equal(both.X[1], both.X[0])
    np.testing.assert_array_equal(both.X[2], both.X[0])
    assert [(row, reason.code) for row, reason in both.bad.items()] == [(3, "not_a_date"), (4, "not_a_date")]
    (column,) = infer(pa.record_batch({"a": [f"2024-01-{day:02}" for day in range(1, 30)]}), []).columns
    assert isinstance(column, Date)
    assert column.written.is_plain
