"""Why a row is rejected, a table refused or a file left out: a code with its facts, and the words for every code.

Code compares codes and columns; only this module turns them into sentences. To add a reason, add its code to `_WORDS`.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from onepass.tables.columns.wording import listed, number_text, quoted

__all__ = ["CODES", "Reason"]

_MOST_LINES = 5


class Reason:
    """One reason, as data; ``str`` gives its words.

    Parameters
    ----------
    code : which reason it is, one of `CODES`
    column : name of the column at fault; empty: the record, table or file as a whole
    value : what was found there
    role : "target", "weight" or "key"; empty: an input
    facts : what else the words say

    Examples
    --------
    >>> print(Reason("infinite", "km"))
    km is infinite
    >>> print(Reason("missing", "price", role="target"))
    the target price is missing
    """

    __slots__ = ("code", "column", "facts", "role", "value")

    def __init__(self, code: str, column: str = "", value: Any = None, role: str = "", **facts: Any) -> None:
        self.code = code
        self.column = column
        self.value = value
        self.role = role
        self.facts = facts

    def __str__(self) -> str:
        given = {"column": self.column, "value": self.value, "name": self._name, "shown": _shown(self.value)}
        return _WORDS[self.code].format_map(given | self.facts | _phrases(self.code, self.column, self.facts))

    def __repr__(self) -> str:
        return f"<{self.code}: {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reason) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.code, self.column))

    def _key(self) -> tuple[Any, ...]:
        return self.code, self.column, self.value, self.role, self.facts

    @property
    def _name(self) -> str:
        return f"the {self.role} {self.column}" if self.role else self.column


def _shown(value: Any) -> str:
    return number_text(value) if isinstance(value, float) else quoted(str(value))


def _phrases(code: str, column: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Parts of a sentence that depend on several facts."""
    found: dict[str, str] = {}
    if "when" in facts:
        alias = f" as {facts['alias']}" if facts["alias"] else ""
        found["learned"] = f"learned on {facts['when']}{alias}"
    if "labels" in facts:
        found["labels"] = listed(facts["labels"], 8)
    if "share" in facts:
        found["share"] = f"{100.0 * facts['share']:.{4 if code.startswith('leak') else 3}g} %"
    if code == "no_such_column":
        found |= _lacking(facts["missing"], facts["names"])
    if "lines" in facts:
        found["where"] = _lines(facts["lines"])
    if code == "wrong_field_count":
        found["fields"] = f"{facts['given']} field" + "s" * (facts["given"] != 1)
    if code == "texts_per_key":
        one = len(facts["names"]) == 1
        found |= {"are": f"{listed(facts['names'], 3)} {'is a text' if one else 'are texts'}"}
        found |= {"them": "it" if one else "them"}
    return found


def _lines(lines: Sequence[int]) -> str:
    """Which lines, the first of them if there are many."""
    shown = ", ".join(map(str, lines[:_MOST_LINES]))
    return f"line{'s' if len(lines) > 1 else ''} {shown}" + (", ..." if len(lines) > _MOST_LINES else "")


def _lacking(missing: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Which columns a table lacks, what may have been meant, and what it has."""
    by_lower = {name.casefold(): name for name in names}
    close = [by_lower[one] for one in get_close_matches(missing[0].casefold(), list(by_lower), 1)]
    return {
        "lacking": ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else ""),
        "hint": f" (did you mean {close[0]!r}?)" if close else "",
        "known": ", ".join(names[:12]) + (", ..." if len(names) > 12 else ""),
    }


_WORDS = {
    # Records that can't be read as rows.
    "wrong_field_count": "has {fields} where the first line has {expected}",
    "not_in_encoding": "has bytes that are not in the encoding of the file",
    "stray_quote": "has a quote that is never closed, or one inside a field",
    "long_field": "has a field of more than {most:,} characters",
    "long_record": "has {size:,} bytes, more than the {most:,} that a row may have",
    "not_json": "can't be read as JSON",
    "not_an_object": "is not a JSON object",
    "unreadable": "{why}",
    # Values that don't fit their column.
    "not_a_number": "{name} is {shown}, not a number{manner}",
    "decimal_comma": "{name} is {shown}, not a number{manner}: a decimal point is expected, not a comma",
    "boolean_for_number": "{name} is {value}, not a number",
    "infinite": "{name} is infinite",
    "too_far": "{name} is {shown}, far outside anything seen",
    "not_boolean": "{name} is {shown}, neither true nor false",
    "not_an_iso_date": "{name} is {shown}, not a date such as 2024-12-31 or 2024-12-31T23:59:59",
    "not_a_date": "{name} is {shown}, not a date written {pattern}",
    "not_of_kind": "{name} is {shown}, not {expected}",
    "missing": "{name} is missing",
    "negative": "{name} is {shown}, which is negative",
    "zero_weight": "{column} is 0, a row that does not count: leave it out",
    "no_logarithm": "{name} is {shown}, but its logarithm is learned, which only a number above 0 has",
    "not_a_count": "{name} is {shown}, not a count 0, 1, 2, ...",
    "missing_word": "{name} is {shown}, taken for missing and not for a class",
    "unknown_class": "{name} is {shown}, none of the known classes {labels}",
    # Why a target has its task.
    "as_asked": "as asked",
    "classes_declared": "classes were declared",
    "booleans": "true or false",
    "texts": "texts",
    "leading_zeros": "digits with leading zeros",
    "two_whole_numbers": "two whole numbers",
    "whole_numbers": "whole numbers from 0 on",
    "numbers": "numbers",
    # Tables that don't fit what is asked of them.
    "no_such_column": "{file} has no column {lacking}{hint}; it has {known}",
    "is_target": "{column!r} is the target",
    "no_rows": "{file} has no rows{why}",
    "no_columns": "{file} has no column to learn from{why}",
    "wrong_type": "column {column!r} holds {value} where {expected} were expected",
    "unlearnable_type": "column {column!r} holds {value}, which can't be learned from; leave it out",
    "bad_decimal": "the decimal sign must be '.' or ',', got {value!r}",
    "bad_date_format": "the date format {shown} can't be read: {why}; its parts may be {known}",
    "no_weight": "no row would count: {why}",
    "all_weights_zero": "the weights in {column!r} are all 0",
    "target_without_values": "the target {column!r} has no values among the first rows; is it the right column?",
    "target_without_numbers": "the target {column!r} has no numbers among the first rows (the first is {shown}); is "
    "it the right column?",
    "target_without_counts": "the target {column!r} does not hold counts 0, 1, 2, ...{example}; is it the right "
    "column?",
    "one_class": "the target {column!r} has only one class, {shown}, and at least two are needed; give all classes "
    "that can occur{or_number}",
    "too_many_classes": "the target {column!r} has more than {most} classes; is it the right column{or_number}?",
    "log_of_classes": "the target {column!r} has classes, so its logarithm can't be learned",
    "log_of_counts": "counts are always learned by the logarithm of their rate; leave this option out",
    "log_of_negative": "the target {column!r} has values such as {value:g} among the first rows; only numbers above 0 "
    "have a logarithm",
    "intervals_of_classes": "intervals={value!r} can't calibrate the classes of {column!r} in a model per key; leave "
    "out one of the two options",
    "compared_with_number": "column {column!r} has dates, not numbers; compare it with a date in quotes, such as "
    "{examples}",
    "compared_with_text": "{shown} is not a date, but column {column!r} has dates: compare it with one such as "
    "{examples}, or compare text({written}) with any text; for missing values use {written} is None",
    # Models that don't fit the table.
    "row_too_slow": "learning one row would take about {seconds:,.0f} s, with {outputs:,} outputs, {weights:,} weights "
    "and covariance={value!r}; at most {most:g} s is allowed: use a cheaper covariance, smaller hidden layers or none, "
    "or fewer classes",
    "covariance_needs_units": "covariance={value!r} keeps correlations within each class or hidden unit, so it needs "
    "classes or hidden layers",
    "covariance_needs_one_output": "covariance={value!r} needs one output or two classes, got {classes} classes",
    "covariance_too_large": "a full covariance of {features:,} features would be too slow (at most {most:,} are "
    "allowed); choose another covariance, or hash into fewer buckets",
    "not_per_key": "a model per key must be linear, for numbers, or sigmoid, for two classes; it can't be used with "
    "{value}",
    "features_per_key": "a model per key can have at most {most} features, got {features:,}; leave out columns, or "
    "hash them into fewer buckets",
    "no_time": "column {column!r} can't be the time of the rows, because {why}; it must hold dates or numbers",
    "not_in_order": "the rows are not in the order of {column!r}: row {value:,} is earlier than the one before it; "
    "sort them by it, the oldest first",
    "one_time": "all of the first rows have the same time in {column!r}",
    "not_in_time": "a model of a table in time learns numbers by a linear model, each row once and in order; it can't "
    "be used with {value}",
    "features_in_time": "a model in time can have at most {most} features, got {features:,}; leave out columns, or "
    "hash them into fewer buckets",
    "texts_per_key": "{are}, and a model per key can have at most {most} features, too few for words; leave {them} out",
    # Advice on a table; the option that follows it is put in place of {{option}}.
    "leak": "{column!r} alone explains {share} of {target!r}: is it a leak, known only after the target? {{option}} "
    "leaves it out",
    "leak_by_presence": "whether {column!r} has a value explains {share} of {target!r}: is it a leak, filled in only "
    "after the target is known? {{option}} leaves it out",
    "identifier": "{column!r} is named like an identifier but is learned as a number; {{option}} takes its values for "
    "categories",
    "identifier_ignored": "{column!r} is named like an identifier and differs in every row, so it is ignored; "
    "{{option}} takes it for a number",
    "class_codes": "the target {column!r} has only the whole numbers {value}: if they are codes of classes, {{option}} "
    "learns classes",
    "codes": "{column!r} has only {value} different whole numbers, and taken as categories they explain "
    "{groups:.0%} of the target, as a number {line:.0%}; are they codes? {{option}} takes them for categories",
    "nearly_numbers": "{column!r}: {share} of its values are numbers, but not {others}; {{option}} takes it for a "
    "number and rejects rows with others",
    "network_skipped": "no network was tried; {{option}} learns one all the same",
    # Series that can't be forecast.
    "two_roles": "column {column!r} is given twice; time, target, key and inputs must be different columns",
    "series_without_numbers": "{name} is {shown}, and most of its values are not numbers either",
    "no_times": "the time column {column!r} is empty",
    "not_times": "the time column {column!r} holds {shown}, which is neither a date nor a number; give the way "
    "in which dates are written, such as %d/%m/%Y",
    "other_times": "the time column {column!r} must hold {expected}, as it did when the model was made",
    "other_clock": "the times in {column!r} must have {expected}, as they did when the model was made",
    "too_few_times": "no series has two different times in {column!r}, so the time between values is unknown; a "
    "forecast needs at least 2 values",
    "too_few_values": "a forecast of {column!r} needs at least 2 values, got {value}",
    "no_values": "the target {column!r} has no values, all are missing",
    "several_values": "{value:,} of the times have several values of {column!r}, which differ: see {where}; keep one "
    "row for each time, or say what counts",
    "off_rhythm": "{value:,} of the times in {column!r} {fits} the others, which are {rhythm}: {time}, see "
    "{where}; keep one frequency, such as the sum of each day",
    "mixed_rhythm": "the times in {column!r} have several frequencies: they are {rhythm}, but from line {first} to "
    "line {last} they are {value} steps apart; keep one frequency, or forecast the parts on their own",
    "long_gap": "{value:,} steps are missing in {column!r} before {time}, see {where}, and at most {most:,} may be; is "
    "the date right?",
    "old_times": "{key}{value:,} of the times in {column!r} are older than what can still be corrected: the last one "
    "learned is {last}, and corrections go back {window:,} steps",
    "scored_times": "{key}{value:,} of the times in {column!r} are not after the last one learned, {last}: values are "
    "scored once, as they come; keep only the later ones",
    "late_times": "{key}the times in {column!r} go on {value:,} steps after the last one learned, {last}: begin a new "
    "model",
    "output_name": "column {column!r} has the name of a column of the {outputs}; rename it in the file",
    # Files that the model knows already.
    "same_content": "has the same content as {value}",
    "learned": "was {learned}",
    "version_unknown": "was {learned}; its server does not tell whether it has changed: learned whole",
    "changed": "has changed since it was {learned}; learned whole, with all rows that it had then",
    "other_content": "has another content than what was {learned} under this name; learned whole, with all rows it had "
    "then",
    "rows_twice": "was {learned}, with {part}; rows that were learned then and are read now as well count twice",
    "grown": "has grown since it was {learned}; learned from row {row:,} on",
    "grown_open_line": "has grown since it was {learned}; learned from its last line then on",
    "grown_not_lines": "begins with the {size:,} bytes that were {learned}, and such a file can't be learned from "
    "there on",
    "grown_other_part": "begins with the {size:,} bytes that were {learned}, with all rows, so that it is unknown "
    "which of the rows that a condition keeps are new",
    "grown_half_line": "begins with the {size:,} bytes that were {learned}, when its last line was not whole, so that "
    "one row would be learned twice",
}
CODES = frozenset(_WORDS)
"""All codes."""
