"""The words of every reason, in one place; all other tests compare codes."""

import ast
import pickle
from pathlib import Path
from typing import Any

import pytest

import onepass
from onepass.tables.columns.errors import SchemaError
from onepass.tables.readers.options import Part
from onepass.tables.reasons import CODES, Reason

BEFORE: dict[str, Any] = {"when": "2026-01-31T20:00:00Z", "alias": "", "part": Part(table="a", where="km > 0")}
WORDS: list[tuple[Reason, str]] = [
    (Reason("wrong_field_count", given=2, expected=3), "has 2 fields where the first line has 3"),
    (Reason("wrong_field_count", given=1, expected=3), "has 1 field where the first line has 3"),
    (Reason("not_in_encoding"), "has bytes that are not in the encoding of the file"),
    (Reason("stray_quote"), "has a quote that is never closed, or one inside a field"),
    (Reason("long_field", most=2**23), "has a field of more than 8,388,608 characters"),
    (
        Reason("long_record", size=10**7, most=2**23),
        "has 10,000,000 bytes, more than the 8,388,608 that a row may have",
    ),
    (Reason("not_json"), "can't be read as JSON"),
    (Reason("not_an_object"), "is not a JSON object"),
    (Reason("unreadable", why="has no pairs"), "has no pairs"),
    (Reason("not_a_number", "km", "far", manner=""), "km is 'far', not a number"),
    (Reason("not_a_number", "km", "x" * 50, manner=" written 1.234,5"), f"km is '{'x' * 40}...', not a number written"),
    (Reason("decimal_comma", "km", "1,5", manner=""), "not a number: a decimal point is expected, not a comma"),
    (Reason("boolean_for_number", "km", "true"), "km is true, not a number"),
    (Reason("infinite", "km"), "km is infinite"),
    (Reason("infinite", "w", role="weight"), "the weight w is infinite"),
    (Reason("too_far", "km", 1e60), "km is 1e+60, far outside anything seen"),
    (Reason("not_boolean", "new", "maybe"), "new is 'maybe', neither true nor false"),
    (Reason("not_an_iso_date", "sold", "soon"), "sold is 'soon', not a date such as 2024-12-31"),
    (Reason("not_a_date", "sold", "soon", pattern="%d.%m.%Y"), "sold is 'soon', not a date written %d.%m.%Y"),
    (Reason("not_of_kind", "road", "x", expected="a road number"), "road is 'x', not a road number"),
    (Reason("missing", "shop", role="key"), "the key shop is missing"),
    (Reason("negative", "w", -1.0, "weight"), "the weight w is -1, which is negative"),
    (Reason("zero_weight", "w", role="weight"), "w is 0, a row that does not count: leave it out"),
    (
        Reason("no_logarithm", "y", 0.0, "target"),
        "the target y is 0, but its logarithm is learned, which only a number",
    ),
    (Reason("not_a_count", "y", 1.5, "target"), "the target y is 1.5, not a count 0, 1, 2, ..."),
    (Reason("missing_word", "y", "NA", "target"), "the target y is 'NA', taken for missing and not for a class"),
    (Reason("unknown_class", "y", "x", "target", labels=("a", "b")), "is 'x', none of the known classes a, b"),
    (
        Reason("leak_by_presence", "closed", share=1.0, target="sold"),
        "whether 'closed' has a value explains 100 % of 'sold': is it a leak",
    ),
    (Reason("leak", "paid", share=0.998, target="price"), "'paid' alone explains 99.8 % of 'price': is it a leak"),
    (Reason("identifier", "user_id"), "'user_id' is named like an identifier but is learned as a number; {option}"),
    (Reason("identifier_ignored", "id"), "'id' is named like an identifier and differs in every row, so it is ignored"),
    (Reason("class_codes", "kind", "1 to 3", "target"), "the target 'kind' has only the whole numbers 1 to 3"),
    (Reason("codes", "region", 4, groups=0.43, line=0.0), "explain 43% of the target, as a number 0%; are they codes?"),
    (Reason("nearly_numbers", "km", share=0.975, others="'far'"), "'km': 97.5 % of its values are numbers, but not"),
    (Reason("network_skipped", value="too slow"), "no network was tried; {option} learns one all the same"),
    (Reason("as_asked"), "as asked"),
    (Reason("classes_declared"), "classes were declared"),
    (Reason("booleans"), "true or false"),
    (Reason("texts"), "texts"),
    (Reason("leading_zeros"), "digits with leading zeros"),
    (Reason("two_whole_numbers"), "two whole numbers"),
    (Reason("whole_numbers"), "whole numbers from 0 on"),
    (Reason("numbers"), "numbers"),
    (
        Reason("no_such_column", "prize", file="trips.csv", missing=["prize"], names=["km", "price"]),
        "trips.csv has no column 'prize' (did you mean 'price'?); it has km, price",
    ),
    (
        Reason("no_such_column", "Date", file="trips.csv", missing=["Date"], names=["late", "date"]),
        "trips.csv has no column 'Date' (did you mean 'date'?); it has late, date",
    ),
    (
        Reason("no_such_column", "a", file="t", missing=list("abcdefg"), names=[f"x{i}" for i in range(20)]),
        "t has no column 'a', 'b', 'c', 'd', 'e', ...; it has x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, ...",
    ),
    (Reason("is_target", "y"), "'y' is the target"),
    (Reason("no_rows", file="t.csv", why=""), "t.csv has no rows"),
    (Reason("no_columns", file="t.csv", why=""), "t.csv has no column to learn from"),
    (Reason("wrong_type", "a", "dates", expected="numbers"), "column 'a' holds dates where numbers were expected"),
    (
        Reason("unlearnable_type", "a", "lists or tables"),
        "holds lists or tables, which can't be learned from; leave it",
    ),
    (Reason("bad_decimal", value="x"), "the decimal sign must be '.' or ',', got 'x'"),
    (Reason("bad_date_format", value="%q", why="%q is unknown", known="%Y"), "'%q' can't be read: %q is unknown; its"),
    (Reason("no_weight", "w", why=Reason("all_weights_zero", "w")), "no row would count: the weights in 'w' are all 0"),
    (
        Reason("target_without_values", "y"),
        "the target 'y' has no values among the first rows; is it the right column?",
    ),
    (
        Reason("target_without_numbers", "y", "abc"),
        "has no numbers among the first rows (the first is 'abc'); is it the",
    ),
    (Reason("target_without_counts", "y", example=""), "the target 'y' does not hold counts 0, 1, 2, ...; is it the"),
    (Reason("one_class", "y", "3", or_number=", or is it a number?"), "has only one class, '3', and at least two are"),
    (
        Reason("too_many_classes", "y", most=1000, or_number=", or a number"),
        "the target 'y' has more than 1000 classes; is it the right column, or a number?",
    ),
    (
        Reason("intervals_of_classes", "y", "adaptive"),
        "intervals='adaptive' can't calibrate the classes of 'y' in a model per key; leave out one of the two options",
    ),
    (Reason("log_of_classes", "y"), "the target 'y' has classes, so its logarithm can't be learned"),
    (Reason("log_of_counts", "y"), "counts are always learned by the logarithm of their rate"),
    (Reason("log_of_negative", "y", -2.5), "the target 'y' has values such as -2.5 among the first rows; only numbers"),
    (
        Reason("compared_with_number", "sold", examples="'2024-01-31'"),
        "column 'sold' has dates, not numbers; compare it",
    ),
    (Reason("compared_with_text", "sold", "soon", examples="'x'", written="sold"), "compare text(sold) with any text"),
    (Reason("row_too_slow", value="full", seconds=7.0, outputs=9, weights=9, most=1.0), "would take about 7 s, with 9"),
    (Reason("covariance_needs_units", value="neuron"), "covariance='neuron' keeps correlations within each class or"),
    (Reason("covariance_needs_one_output", value="full", classes=3), "needs one output or two classes, got 3 classes"),
    (
        Reason("covariance_too_large", features=20_000, most=10_000),
        "of 20,000 features would be too slow (at most 10,000",
    ),
    (Reason("not_per_key", value="hidden layers"), "it can't be used with hidden layers"),
    (
        Reason("features_per_key", features=1000, most=200),
        "can have at most 200 features, got 1,000; leave out columns",
    ),
    (Reason("no_time", "a", why="it is a category"), "can't be the time of the rows, because it is a category"),
    (Reason("not_in_order", "a", value=7), "row 7 is earlier than the one before it; sort them by it"),
    (Reason("one_time", "a"), "all of the first rows have the same time in 'a'"),
    (Reason("not_in_time", value="counts"), "each row once and in order; it can't be used with counts"),
    (Reason("features_in_time", features=1000, most=200), "can have at most 200 features, got 1,000"),
    (Reason("texts_per_key", "a", names=["a"], most=200), "a is a text, and a model per key can have at most 200"),
    (Reason("texts_per_key", "a", names=["a", "b"], most=200), "a, b are texts, and"),
    (Reason("same_content", value="b.csv"), "has the same content as b.csv"),
    (Reason("learned", **BEFORE), "was learned on 2026-01-31T20:00:00Z"),
    (Reason("learned", **{**BEFORE, "alias": "old.csv"}), "was learned on 2026-01-31T20:00:00Z as old.csv"),
    (Reason("version_unknown", **BEFORE), "its server does not tell whether it has changed: learned whole"),
    (Reason("changed", **BEFORE), "has changed since it was learned on"),
    (Reason("other_content", **BEFORE), "has another content than what was learned on"),
    (
        Reason("rows_twice", **BEFORE),
        "with table a, where km > 0; rows that were learned then and are read now as well",
    ),
    (
        Reason("grown", **BEFORE, row=1001),
        "has grown since it was learned on 2026-01-31T20:00:00Z; learned from row 1,001",
    ),
    (Reason("grown_open_line", **BEFORE), "learned from its last line then on"),
    (Reason("grown_not_lines", **BEFORE, size=5000), "begins with the 5,000 bytes that were learned on"),
    (Reason("grown_other_part", **BEFORE, size=5000), "so that it is unknown which of the rows that a condition keeps"),
    (
        Reason("grown_half_line", **BEFORE, size=5000),
        "when its last line was not whole, so that one row would be learned",
    ),
    (Reason("two_roles", "y"), "'y' is given twice"),
    (Reason("series_without_numbers", "y", "few", "target"), "the target y is 'few', and most"),
    (Reason("no_times", "day"), "the time column 'day' is empty"),
    (Reason("not_times", "day", "soon"), "'day' holds 'soon', which is neither a date nor a number"),
    (Reason("other_times", "day", expected="dates"), "must hold dates, as it did when the model was made"),
    (Reason("other_clock", "day", expected="no offsets from UTC"), "must have no offsets from UTC, as they did"),
    (Reason("too_few_times", "day"), "no series has two different times in 'day'"),
    (Reason("too_few_values", "y", 1), "needs at least 2 values, got 1"),
    (Reason("no_values", "y"), "has no values, all are missing"),
    (
        Reason("several_values", "y", 2, lines=[3, 9]),
        "have several values of 'y', which differ: see lines 3, 9;",
    ),
    (
        Reason("off_rhythm", "day", 7, rhythm="daily", fits="don't fit", time="2024-01-05T06:00:00", lines=[*range(7)]),
        "don't fit the others, which are daily: 2024-01-05T06:00:00, see lines 0, 1, 2, 3, 4, ...;",
    ),
    (Reason("mixed_rhythm", "day", "7", rhythm="daily", first=2, last=54), "to line 54 they are 7 steps apart"),
    (
        Reason("long_gap", "day", 10**5, time="2924", lines=[4], most=10**4),
        "are missing in 'day' before 2924, see line 4",
    ),
    (Reason("old_times", "day", 3, key="a: ", last="2024-01-05", window=30), "a: 3 of the times in 'day' are older"),
    (
        Reason("scored_times", "day", 3, key="a: ", last="2024-01-05"),
        "a: 3 of the times in 'day' are not after the last one learned, 2024-01-05: values are scored once",
    ),
    (
        Reason("late_times", "day", 20_000, key="", last="2024-01-05"),
        "the times in 'day' go on 20,000 steps after the last one learned, 2024-01-05",
    ),
    (Reason("output_name", "mean", outputs="forecasts"), "'mean' has the name of a column of the forecasts"),
]


@pytest.mark.parametrize(("reason", "words"), WORDS, ids=lambda one: getattr(one, "code", ""))
def test_a_reason_says(reason: Reason, words: str) -> None:
    assert words in str(reason)
    assert str(pickle.loads(pickle.dumps(reason))) == str(reason)  # from a worker of a cluster


def test_every_code_has_words_that_are_tested_and_every_reason_a_known_code() -> None:
    nested = {one.code for reason, _ in WORDS for one in reason.facts.values() if isinstance(one, Reason)}
    assert {reason.code for reason, _ in WORDS} | nested == CODES
    given = set()
    for file in Path(onepass.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason" and node.args:
                texts = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
                given |= {text for text in texts if isinstance(text, str)}
    assert given <= CODES


def test_reasons_are_compared_by_what_they_say_not_by_their_words() -> None:
    assert Reason("infinite", "km") == Reason("infinite", "km")
    assert Reason("infinite", "km") != Reason("infinite", "kmh")
    assert len({Reason("infinite", "km"), Reason("infinite", "km")}) == 1
    assert str(SchemaError(Reason("is_target", "y"))) == "'y' is the target"
