"""How numbers are written: `1234.5`, `1,234.5`, `1.234,5`, `1 234,5`, `$4,000`, `4.000 €`, `7.47%`, `(12)`.

One column has one way. Numbers as programs write them are parsed by Arrow alone; all others are checked by a pattern
and rewritten first, whole columns at a time.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass.files.state import Parameters
from onepass.tables.columns.missing import (
    MISSING_WORDS,
    missing_words_from_state,
    missing_words_state,
    with_placeholders,
    without_words,
)
from onepass.tables.columns.notation import Notation

__all__ = ["PLAIN", "NumberFormat", "has_leading_zeros", "likely_decimal", "likely_number_format"]

_SPACE = r"[\s\p{Z}]*"
_GAP = r"['\x{2019}\s\p{Z}]"  # between thousands
_MINUS = r"\x{2212}-"  # as typesetters and as keyboards have it
_CODES = "USD EUR GBP JPY CHF AUD CAD NZD CNY INR SEK NOK DKK PLN CZK HUF RON RUB TRY BRL MXN ZAR KRW SGD HKD THB ILS"
_UNIT = rf"(?:[A-Z]{{0,3}}\p{{Sc}}|{_CODES.replace(' ', '|')}|kr|zł|Kč|Fr\.|Rs\.?|%)"
_MOST_SIGNS = 8  # of a unit
_EVIDENCE = 500  # values that show the decimal sign of a table, and the unit of a column
_NEARLY_ALL = 0.98


@dataclass(frozen=True)
class NumberFormat:
    """The way in which the numbers of a column are written.

    Parameters
    ----------
    decimal : the decimal sign, "." or ","
    grouped : whether thousands may be set apart, by spaces, apostrophes or the other one of these signs
    unit : what may come before or after a number: a currency or "%"
    missing_words : what stands for a missing number
    unsure : whether the decimal sign might as well be the other one, as far as the first rows show

    Examples
    --------
    >>> NumberFormat(",", True, "€").numbers(pa.array(["1.234,50 €", "-3", "1.5"]))
    array([1234.5,   -3. ,    nan])
    """

    decimal: str = "."
    grouped: bool = False
    unit: str = ""
    missing_words: tuple[str, ...] = MISSING_WORDS
    unsure: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as programs write them."""
        return self.decimal == "." and not self.grouped and not self.unit

    def words(self) -> str:
        """Say how numbers are written, unless they are plain."""
        if self.is_plain:
            return ""
        example, other = ("1,234.5", "1.234,5") if self.decimal == "." else ("1.234,5", "1,234.5")
        doubt = f", though nothing rules out {other}" if self.unsure else ""
        return f" written {example}" + (f" in {self.unit}" if self.unit else "") + doubt

    def numbers(self, texts: Any) -> Any:
        """Numbers that texts without surrounding space stand for; NaN for other texts."""
        texts = pc.if_else(self.reads(texts), texts, pa.scalar(None, texts.type))
        if self.unit:
            texts = pc.utf8_trim_whitespace(pc.replace_substring(texts, pattern=self.unit, replacement=""))
        if pc.all(pc.match_substring_regex(texts, pattern="^-?[0-9.,]+$")).as_py():
            return self._cast(texts)
        negative = pc.match_substring_regex(texts, pattern=rf"^[^0-9]*[({_MINUS}]|[{_MINUS}][^0-9]*$").fill_null(False)
        junk = rf"^[^0-9{self.decimal}]+|[^0-9]+$|{_GAP}"
        values = self._cast(pc.replace_substring_regex(texts, pattern=junk, replacement=""))
        return np.where(negative.to_numpy(zero_copy_only=False), -values, values)

    def _cast(self, texts: Any) -> Any:
        """Numbers of nothing but digits and signs, between which thousands may still be set apart."""
        digits = pc.replace_substring(texts, pattern="," if self.decimal == "." else ".", replacement="")
        digits = pc.replace_substring(digits, pattern=",", replacement=".")
        return pc.cast(digits, pa.float64()).to_numpy(zero_copy_only=False)

    def reads(self, texts: Any) -> Any:
        """Which texts, without surrounding space, are numbers so written; an Arrow array of booleans."""
        return pc.match_substring_regex(texts, pattern=self.regex)

    @cached_property
    def regex(self) -> str:
        """Regular expression of texts, without surrounding space, that are numbers so written."""
        if self.is_plain:
            return r"^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$|^[-+]?(?i:nan|inf|infinity)$"
        point, comma = (r"\.", ",") if self.decimal == "." else (",", r"\.")
        # India has groups of two, between commas; a first group of 0 shows that the sign is not a separator.
        more = "{2,3}" if self.decimal == "." else "{3}"
        groups = rf"[1-9]\d{{0,2}}(?:{comma}\d{more})*{comma}\d{{3}}|[1-9]\d{{0,2}}(?:{_GAP}\d{{3}})+|\d+"
        groups = groups if self.grouped else r"\d+"
        body = rf"(?:(?:{groups})(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"
        unit = rf"{_SPACE}(?:{re.escape(self.unit)})?{_SPACE}" if self.unit else _SPACE
        ways = (
            rf"[+{_MINUS}]?{unit}{body}{unit}",
            rf"{unit}[+{_MINUS}]{_SPACE}{body}{unit}",
            rf"{unit}{body}{unit}[{_MINUS}]",
            rf"{unit}\({unit}{body}{unit}\){unit}",
        )
        return f"^(?:{'|'.join(ways)})$"

    def state(self) -> Parameters:
        """All of it as data that JSON can hold: entries of a column's state, none for plain numbers."""
        written = {"decimal": self.decimal, "grouped": self.grouped, "unit": self.unit, "unsure": self.unsure}
        return ({} if self.is_plain else {"written": written}) | missing_words_state(self.missing_words)

    @classmethod
    def from_state(cls, state: Parameters) -> "NumberFormat":
        """Take the format out of a column's state."""
        words = missing_words_from_state(state)
        written = state.pop("written", None)
        if written is None:
            return cls(missing_words=words)
        found = cls(**written, missing_words=words)
        flags = isinstance(found.grouped, bool) and isinstance(found.unsure, bool)
        unit = isinstance(found.unit, str) and len(found.unit) <= _MOST_SIGNS
        if found.decimal not in (".", ",") or not flags or not unit:
            raise ValueError(f"numbers are written in an unknown way: {str(written)[:80]}")
        return found


PLAIN = NumberFormat()
"""Numbers as programs write them."""


def likely_number_format(texts: Any, notation: Notation) -> tuple[NumberFormat, float]:
    """The way in which most texts are numbers, and their share among those that are not missing."""
    words = with_placeholders(texts) if notation.missing is None else notation.missing
    known = without_words(texts, words).drop_null()
    plain = NumberFormat(missing_words=words)
    decimal = notation.decimal or notation.likely_decimal
    if _is_castable(known) and not (decimal == "," and pc.any(pc.match_substring(known, ".")).as_py()):
        return plain, float(len(known) > 0)
    shares = _shares(plain, known)
    best = max(shares.values(), default=0.0)
    if notation.decimal is not None:
        as_given = {one: share for one, share in shares.items() if one.decimal == notation.decimal}
        if (most := max(as_given.values(), default=0.0)) >= _NEARLY_ALL:
            shares, best = as_given, most
    tied = [one for one, share in shares.items() if share == best]
    return _preferred(tied, known, notation.likely_decimal), best


def _shares(plain: NumberFormat, known: Any) -> dict[NumberFormat, float]:
    """The share of the values that each way can read; the simplest first."""
    counted = pc.value_counts(known)
    values, counts = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)
    unit = _unit(values)
    ways = (plain, *(replace(plain, decimal=sign, grouped=True, unit=unit) for sign in ".,"))
    total = max(counts.sum(), 1)
    return {way: float(counts[way.reads(values).to_numpy(zero_copy_only=False)].sum() / total) for way in ways}


def _unit(values: Any) -> str:
    """The most frequent text next to the numbers."""
    nearby = pc.extract_regex(values[:_EVIDENCE], pattern=f"(?P<unit>{_UNIT})")
    units = pc.struct_field(nearby, "unit").drop_null().to_pylist()
    return max(sorted(set(units)), key=units.count, default="")


def _preferred(tied: list[NumberFormat], known: Any, likely: str | None) -> NumberFormat:
    """One of several ways that read the values equally well.

    ``25,649`` is either 25649 or 25.649: other columns decide, else the unit, as amounts of money have no three
    decimals and shares have no thousands.
    """
    by_sign = {one.decimal: one for one in reversed(tied)}
    if len(by_sign) == 1 or not pc.any(pc.match_substring_regex(known, "[.,]")).as_py():
        return tied[0]
    if likely is not None:
        return by_sign[likely]
    has_comma = pc.any(pc.match_substring(known, ",")).as_py()
    unit = by_sign[","].unit
    if unit == "%":
        return by_sign["," if has_comma else "."]
    if unit:
        return by_sign["." if has_comma else ","]
    return by_sign["."] if by_sign["."].is_plain else replace(by_sign["."], unsure=True)


def likely_decimal(columns: Mapping[str, Any]) -> str | None:
    """The decimal sign that the numbers of a table show; None if they show none, or both.

    Examples
    --------
    >>> likely_decimal({"km": pa.array(["3,5", "12"]), "price": pa.array(["4.000", "12.500"])})
    ','
    """
    heads = [_known(array[:_EVIDENCE]) for array in columns.values()]
    odd = [known for known in heads if not _is_castable(known)]
    signs = {sign for known in odd for sign in _signs_shown(known)}
    if signs == {","}:  # only then it matters whether the plain ones contradict
        signs |= {sign for known in heads if _is_castable(known) for sign in _signs_shown(known)}
    return signs.pop() if len(signs) == 1 else None


def _known(texts: Any) -> Any:
    return without_words(texts, with_placeholders(texts)).drop_null()


def _signs_shown(known: Any) -> Iterator[str]:
    """The decimal sign of numbers that could not be read with the other one."""
    _, point, comma = _shares(PLAIN, known).values()
    if max(point, comma) >= _NEARLY_ALL and point != comma:
        yield "." if point > comma else ","


def has_leading_zeros(texts: Any) -> bool:
    """Whether texts are digits whose zeros in front mean something, as in zip codes.

    Examples
    --------
    >>> has_leading_zeros(pa.array(["01067", "80331"])), has_leading_zeros(pa.array(["01", "12", "0.5"]))
    (True, False)
    """
    zeros = pc.match_substring_regex(texts, r"^0\d{2,}$")
    if not pc.any(zeros).as_py() or not pc.all(pc.match_substring_regex(texts, r"^\d+$")).as_py():
        return False
    same_length = len(pc.utf8_length(texts).unique()) == 1
    return bool(same_length or pc.mean(pc.cast(zeros, pa.float64())).as_py() > 1.0 - _NEARLY_ALL)


def _is_castable(texts: Any) -> bool:
    try:
        pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return False
    return True
