"""How dates are written: ISO 8601, or a format in the manner of ``strptime`` such as ``%d/%m/%Y``.

A format becomes one regular expression, by which Arrow takes whole columns apart. ISO 8601 has a parser of its own in
`date`.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.files.state import Parameters
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.missing import (
    MISSING_WORDS,
    missing_words_from_state,
    missing_words_state,
)
from onepass.tables.reasons import Reason

__all__ = ["ISO", "DateFormat", "formats_of"]

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_SHORT_MONTHS = tuple(month[:3] for month in _MONTHS)
_DIRECTIVES = {
    "Y": r"\d{4}",
    "y": r"\d{2}",
    "m": r"\d{1,2}",
    "d": r"\d{1,2}",
    "j": r"\d{1,3}",
    "H": r"\d{1,2}",
    "I": r"\d{1,2}",
    "M": r"\d{1,2}",
    "S": r"\d{1,2}",
    "f": r"\d{1,9}",
    "b": f"(?i:{'|'.join(_SHORT_MONTHS)})",
    "B": f"(?i:{'|'.join(_MONTHS)})",
    "p": r"(?i:[ap]\.?m\.?)",
    "z": r"Z|[-+]\d{2}:?\d{2}",
    "A": f"(?i:{_WEEKDAYS})",
    "a": f"(?i:{'|'.join(day[:3] for day in _WEEKDAYS.split('|'))})",
}
_RANGES = {"m": (1, 12), "d": (1, 31), "j": (1, 366), "H": (0, 23), "I": (1, 12), "M": (0, 59), "S": (0, 59)}
_TIME = re.compile(
    r"^(?P<date>.*?\d)(?P<gap>[T,\s]+)\d{1,2}:\d{2}(?P<s>:\d{2}(?P<f>\.\d+)?)?(?P<p>\s*[aApP]\.?[mM]\.?)?$"
)
# In the order of preference where both the day and the month may come first.
_DATES = (
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d. %B %Y"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y", "%d %b %y", "%b %Y", "%B %Y", "%b-%Y", "%Y-%m"),
)


@dataclass(frozen=True)
class DateFormat:
    """The way in which the dates of a column are written.

    Parameters
    ----------
    pattern : in the manner of ``strptime``; "" is ISO 8601
    missing_words : what stands for a missing date
    unsure : whether day and month might as well be the other way round, as far as the first rows show

    Examples
    --------
    >>> DateFormat("%d.%m.%Y %H:%M").days(pa.array(["02.01.1970 12:00", "30.02.2024 12:00"]))
    array([1.5, nan])
    """

    pattern: str = ""
    missing_words: tuple[str, ...] = MISSING_WORDS
    unsure: bool = False

    def __post_init__(self) -> None:
        if self.pattern:
            self._check()

    def _check(self) -> None:
        found = re.findall("%(.?)", self.pattern)
        unknown = [one for one in found if one not in _DIRECTIVES]
        year_known = ("Y" in found) != ("y" in found)
        if unknown or len(set(found)) != len(found) or not year_known:
            why = f"%{unknown[0]} is unknown" if unknown else "it needs a year, %Y or %y, and each part once"
            known = " ".join(f"%{one}" for one in _DIRECTIVES)
            reason = Reason("bad_date_format", value=self.pattern, why=why, known=known)
            raise SchemaError(reason, setting="date_format")

    @property
    def is_plain(self) -> bool:
        """Whether dates are written as in ISO 8601."""
        return not self.pattern

    def words(self) -> str:
        """Say how dates are written, unless they are as in ISO 8601."""
        if not self.pattern:
            return ""
        doubt = ", though no day above 12 shows that the month comes "
        return f" written {self.pattern}" + (f"{doubt}{'second' if self.day_first else 'first'}" if self.unsure else "")

    @property
    def day_first(self) -> bool:
        """Whether the day comes before the month."""
        return "%m" in self.pattern and self.pattern.find("%d") < self.pattern.find("%m")

    def days(self, texts: Any) -> FloatArray:
        """Days since 1970, in UTC, of texts without surrounding space; NaN for those that are not dates."""
        found = pc.extract_regex(texts, pattern=self.regex)
        good = found.is_valid().to_numpy(zero_copy_only=False)
        texts_of = {name: pc.struct_field(found, name) for name in self._parts}
        parts = {name: _whole(part, name) for name, part in texts_of.items() if name not in "aAzp"}
        for name, (low, high) in _RANGES.items():
            if name in parts:
                good &= (parts[name] >= low) & (parts[name] <= high)
        days, within = _day_number(parts, len(good))
        seconds = _seconds(parts, texts_of)
        return np.where(good & within, days + seconds / 86400.0, np.nan)

    @cached_property
    def _parts(self) -> list[str]:
        return re.findall("%(.)", self.pattern)

    @cached_property
    def regex(self) -> str:
        """Regular expression of texts, without surrounding space, with a group for each part of the date."""
        # Without a sign in between only a fixed number of digits tells parts from each other.
        runs_on = re.search("%.%.", self.pattern) is not None
        whole = ""
        for piece in re.split("(%.)", self.pattern):
            if piece.startswith("%"):
                digits = _DIRECTIVES[piece[1]]
                whole += f"(?P<{piece[1]}>{digits.replace('{1,', '{') if runs_on else digits})"
            else:
                whole += r"\s+" if piece.isspace() else re.escape(piece)
        return f"^{whole}$"

    def state(self) -> Parameters:
        """All of it as data that JSON can hold: entries of a column's state, none for ISO 8601."""
        written = {"pattern": self.pattern, "unsure": self.unsure}
        return ({"written": written} if self.pattern else {}) | missing_words_state(self.missing_words)

    @classmethod
    def from_state(cls, state: Parameters) -> "DateFormat":
        """Take the format out of a column's state."""
        words = missing_words_from_state(state)
        written = state.pop("written", None)
        if written is None:
            return cls(missing_words=words)
        if not isinstance(written["pattern"], str) or not isinstance(written["unsure"], bool):
            raise ValueError(f"dates are written in an unknown way: {str(written)[:80]}")
        return cls(**written, missing_words=words)


ISO = DateFormat()
"""Dates as in 2024-12-31 or 2024-12-31T23:59:59."""


def formats_of(text: str) -> list[DateFormat]:
    """All common formats in which a text is a date, the likeliest first.

    Examples
    --------
    >>> [one.pattern for one in formats_of("Jan 31, 2024 4:05 pm")]
    ['%b %d, %Y %I:%M %p']
    >>> [one.pattern for one in formats_of("1/2/2024")]
    ['%m/%d/%Y', '%d/%m/%Y']
    """
    found = _TIME.match(text)
    time = ""
    if found is not None:
        text = found["date"]
        gap = found["gap"] if found["gap"].strip() else " "
        seconds = ("" if found["s"] is None else ":%S") + ("" if found["f"] is None else ".%f")
        half = "" if found["p"] is None else " %p" if found["p"][0].isspace() else "%p"
        time = f"{gap}{'%I' if half else '%H'}:%M{seconds}{half}"
    return [DateFormat(date + time) for date in _DATES if re.match(DateFormat(date).regex, text)]


def _whole(part: Any, name: str) -> Any:
    """A part of dates as whole numbers, anything where there is none; of a second as its billionths."""
    if name in "bB":
        months = pc.index_in(pc.utf8_lower(pc.utf8_slice_codeunits(part, 0, 3)), pa.array(_SHORT_MONTHS))
        part = pc.add(months, 1)
    elif name == "f":
        part = pc.utf8_rpad(part, 9, "0")
    return pc.cast(part, pa.int64()).fill_null(1).to_numpy(zero_copy_only=False)


def _day_number(parts: dict[str, Any], n: int) -> tuple[Any, Any]:
    """Days since 1970, and which of them the calendar has."""
    ones = np.ones(n, dtype=np.int64)
    # Two digits are years from 1969 to 2068, as POSIX has it.
    year = parts["Y"] if "Y" in parts else parts["y"] + np.where(parts["y"] < 69, 2000, 1900)
    by_month = "j" not in parts
    month = next((parts[name] for name in "mbB" if name in parts), ones) if by_month else ones
    day = parts.get("d", ones) if by_month else parts["j"]
    first = (year - 1970) * 12 + month - 1
    begin, end = (_days_at(first), _days_at(first + (1 if by_month else 12)))
    return begin + day - 1, day <= end - begin


def _days_at(months: Any) -> Any:
    """Days since 1970 at the beginning of months that are counted from there."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _seconds(parts: dict[str, Any], texts_of: dict[str, Any]) -> Any:
    """Seconds since midnight in UTC."""
    hours = parts.get("H", 0)
    if "I" in parts:
        afternoon = pc.match_substring_regex(texts_of["p"], "^[pP]") if "p" in texts_of else None
        hours = parts["I"] % 12
        if afternoon is not None:
            hours = hours + 12 * afternoon.fill_null(False).to_numpy(zero_copy_only=False)
    seconds = 3600.0 * hours + 60.0 * parts.get("M", 0) + parts.get("S", 0) + 1e-9 * parts.get("f", 0)
    if "z" in texts_of:
        digits = pc.replace_substring_regex(texts_of["z"], "Z|:", "").fill_null("")
        ahead = pc.cast(pc.if_else(pc.equal(digits, ""), "0", digits), pa.float64()).to_numpy(zero_copy_only=False)
        seconds = seconds - np.sign(ahead) * (np.abs(ahead) // 100 * 3600 + np.abs(ahead) % 100 * 60)
    return seconds
