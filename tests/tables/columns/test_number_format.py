from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.tables.columns.inference import infer, notation_of
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import NumberFormat, likely_decimal, likely_number_format
from onepass.tables.columns.values import as_numbers
from onepass.tables.reasons import Reason

# Thousands and decimal sign of each way to write a number.
STYLES = {
    "plain": ("", "."),
    "comma": ("", ","),
    "english": (",", "."),
    "german": (".", ","),
    "swiss": ("'", "."),
    "french": ("\u202f", ","),
    "si": ("\u00a0", "."),
    "spaced": (" ", ","),
}
UNITS = {
    "none": "{}",
    "dollar": "${}",
    "euro": "{} €",
    "code": "CHF {}",
    "real": "R${}",
    "percent": "{}%",
    "apart": "{}\u00a0%",
}
NEGATIVES = {"front": "-{}", "minus": "\u2212{}", "accounting": "({})", "behind": "{}-"}


def written(value: Decimal, style: str, unit: str, negative: str) -> str:
    """A number as people write it, put together digit by digit."""
    group, point = STYLES[style]
    whole, _, fraction = f"{abs(value):f}".partition(".")
    parts = []
    while len(whole) > 3:
        whole, part = whole[:-3], whole[-3:]
        parts.append(part)
    text = group.join([whole, *reversed(parts)]) + (point + fraction if fraction else "")
    text = UNITS[unit].format(text)
    return NEGATIVES[negative].format(text) if value < 0 else text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=1, max_size=30),
    st.sampled_from(sorted(STYLES)),
    st.sampled_from(sorted(UNITS)),
    st.sampled_from(sorted(NEGATIVES)),
)
def test_what_is_written_in_a_style_is_read_back(values: list[Decimal], style: str, unit: str, negative: str) -> None:
    texts = pa.array([written(value, style, unit, negative) for value in values])
    found, share = likely_number_format(texts, AS_WRITTEN)  # two decimals leave no doubt about the sign
    assert share == 1.0
    bad: dict[int, Reason] = {}
    np.testing.assert_array_equal(as_numbers(texts, "x", bad, found), [float(value) for value in values])
    assert not bad
    again = NumberFormat.from_state(found.state())
    assert again == found


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["45,06", "3,5"], [45.06, 3.5]),
        (["25,649", "1,234"], [25649, 1234]),  # nothing shows a decimal comma
        (["25,649", "3,5"], [25.649, 3.5]),
        (["0,649", "1,234"], [0.649, 1.234]),  # no thousands begin with 0
        (["1.234", "5.678"], [1.234, 5.678]),
        (["1.234", "1.234.567"], [1234, 1234567]),
        (["$4,000", "$12"], [4000, 12]),
        (["4.000 €", "12 €"], [4000, 12]),  # money has no three decimals
        (["25,649%", "7%"], [25.649, 7]),  # and a share no thousands
        (["7.47%", "12"], [7.47, 12]),
        (["1 234", "12"], [1234, 12]),
        (["12,34,567", "1,000"], [1234567, 1000]),  # India
        (["1,5e3", "-2"], [1500, -2]),
        (["($1,234)", "$5"], [-1234, 5]),
        (["?", "-", "3"], [np.nan, np.nan, 3]),
        ([" ", " 3", "NA"], [np.nan, 3, np.nan]),
    ],
)
def test_signs_mean_what_the_column_shows(texts: list[str], values: list[float]) -> None:
    array = pa.array(texts)
    found, share = likely_number_format(array, AS_WRITTEN)
    assert share == 1.0
    np.testing.assert_array_equal(as_numbers(array, "x", {}, found), values)


@pytest.mark.parametrize(
    "texts", [["3 kg", "4 kg"], ["A12", "B13"], ["1,2,3", "2,3"], ["$3", "€4"], ["1-2", "2-3"], ["192.168.10.101"]]
)
def test_what_is_no_number_stays_text(texts: list[str]) -> None:
    assert likely_number_format(pa.array(texts), AS_WRITTEN)[1] < 0.98


def test_other_columns_decide_where_both_signs_would_do() -> None:
    table = pa.RecordBatch.from_pydict({"km": ["3,5", "12,25"], "price": ["4.000", "12.500"]})
    (_, price) = infer(table, [], notation=notation_of(table, AS_WRITTEN)).columns
    assert isinstance(price, Number)
    assert price.centre == 8250.0
    assert likely_decimal({"a": pa.array(["3,5"]), "b": pa.array(["3.5"])}) is None  # they contradict each other
    assert likely_decimal({"a": pa.array(["3.25"]), "b": pa.array(["1,234.5"])}) == "."


@pytest.mark.parametrize(
    ("texts", "decimal", "values"),
    [
        (["25,649", "1,234"], ",", [25.649, 1.234]),
        (["1.234", "5.678"], ",", [1234, 5678]),
        (["4.000 €"], ".", [4.0]),
        (["3.5", "4.25"], ",", [3.5, 4.25]),  # can't be read with a comma
        (["3", "4"], ",", [3, 4]),
    ],
)
def test_the_user_may_say_the_sign(texts: list[str], decimal: str, values: list[float]) -> None:
    found, _ = likely_number_format(pa.array(texts), Notation(decimal))
    np.testing.assert_array_equal(as_numbers(pa.array(texts), "x", {}, found), values)


def test_what_is_not_written_so_costs_its_row_only_and_is_told() -> None:
    bad: dict[int, Reason] = {}
    values = as_numbers(pa.array(["1.234,5", "1.5", "NA", None, "x"]), "x", bad, NumberFormat(",", True))
    assert bad == {
        1: Reason("not_a_number", "x", "1.5", manner=" written 1.234,5"),
        4: Reason("not_a_number", "x", "x", manner=" written 1.234,5"),
    }
    np.testing.assert_array_equal(values, [1234.5, np.nan, np.nan, np.nan, np.nan])


def test_the_way_is_told() -> None:
    table = pa.RecordBatch.from_pydict({"a": ["1.000,5 €", "?"], "b": ["1", "-"], "c": ["1", None]})
    a, b, c = (column.words() for column in infer(table, []).columns)
    note = "its mean, and a feature that says so"
    assert a == f"number written 1.234,5 in €, (x - 1000) / 1; missing (?): {note}"
    assert b == f"number, (x - 1) / 1; missing (-): {note}"
    assert c == f"number, (x - 1) / 1; missing: {note}"
    for texts, doubt in ((["25,649"], True), (["1,234,567"], False), (["$4,000"], False), (["1.234"], False)):
        (column,) = infer(pa.RecordBatch.from_pydict({"a": texts}), []).columns
        assert ("though nothing rules out 1.234,5" in column.words()) == doubt
        assert Number.from_state(column.state()) == column


@pytest.mark.parametrize(
    "change", [{"decimal": ";"}, {"grouped": 1}, {"unit": 3}, {"unit": "x" * 99}, {"more": 1}, {"unsure": 0}]
)
def test_a_hostile_format_is_refused(change: dict[str, Any]) -> None:
    state = {"written": {"decimal": ",", "grouped": True, "unit": "€", "unsure": False} | change}
    with pytest.raises((ValueError, TypeError)):
        NumberFormat.from_state(state)
    with pytest.raises(ValueError, match="missing_words must be texts"):
        NumberFormat.from_state({"missing_words": "NA"})


def test_a_word_for_missing_that_is_a_number_is_missing_wherever_it_stands() -> None:
    written = NumberFormat(missing_words=("-999",))
    values = as_numbers(pa.array([*["1"] * 150, "-999", " -999 "]), "n", {}, written)
    assert values[0] == 1.0
    assert np.isnan(values[150:]).all()
