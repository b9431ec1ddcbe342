"""Columns of categories: a feature per value, or a few features that many values share by a hash.

Features stay 0 or 1, so that a rare category starts with the same modest prior as a frequent one.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass._validation import as_flag
from onepass.files.state import Parameters, as_number
from onepass.tables.columns.column import Column
from onepass.tables.columns.missing import (
    MISSING_WORDS,
    missing_words_from_state,
    missing_words_state,
    values_note,
)
from onepass.tables.columns.number_format import has_leading_zeros
from onepass.tables.columns.values import Bad, as_texts
from onepass.tables.columns.wording import listed

if TYPE_CHECKING:
    from onepass.tables.columns.inference import FirstValues, InferenceOptions

__all__ = ["MOST_BUCKETS", "Category", "Hashed", "likely_mistake"]

_DATE = re.compile(r"\s*\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b.*").fullmatch
MOST_BUCKETS = 2**20
_STEP = "a category in place of the average"


@dataclass(frozen=True)
class Category(Column):
    """A feature for each known value, and one for all others."""

    levels: tuple[str, ...]
    shares: tuple[float, ...]  # of each among the first rows
    kind: ClassVar[str] = "category"
    is_exportable: ClassVar[bool] = True
    step: ClassVar[str] = _STEP

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [*(f"{self.name}={level}" for level in self.levels), f"{self.name}=(other)"]

    @property
    def exclusive(self) -> tuple[int, tuple[float, ...]]:  # type: ignore[override]
        """Features of which just one is on: where they begin, and how often each is."""
        return 0, self.shares

    def words(self) -> str:
        """Say what is done with it."""
        what = f"one of {len(self.levels)} categories ({listed(self.levels, 4)}), a feature each"
        notes = _codes_note(has_leading_zeros(pa.array(self.levels, pa.string()))) + values_note(self.levels)
        return f"{what}; anything else or missing: one more{notes}{likely_mistake(self.levels)}"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        places = pc.index_in(as_texts(array, self.name), value_set=pa.array(self.levels, pa.string()))
        index = places.fill_null(len(self.levels)).to_numpy(zero_copy_only=False)
        out[np.arange(len(index)), index] = 1.0

    def fill_one(self, value: Any, out: list[float], at: int) -> bool:
        """Write the features of a plain value; False if only whole columns of such values are read."""
        if value is not None and type(value) is not str:
            return False
        out[at + self._places.get(value, len(self.levels))] = 1.0
        return True

    @cached_property
    def _places(self) -> dict[str | None, int]:
        return {level: place for place, level in enumerate(self.levels)}

    @classmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> Column:
        """A feature for each value, or of very many the hashed ones."""
        if len(values.counts) > asked.one_hot:
            return Hashed.inferred(values, asked)
        n_rows = len(values.texts.drop_null())
        counted = sorted((level["values"], level["counts"] / n_rows) for level in values.counts.to_pylist())
        return cls(values.name, tuple(level for level, _ in counted), tuple(share for _, share in counted))

    @classmethod
    def from_state(cls, state: Parameters) -> "Category":
        """Make the column that `state` described."""
        levels = tuple(state["levels"])
        for level in levels:
            if not isinstance(level, str):
                raise ValueError(f"a text was expected, got {str(level)[:40]!r}")
        return cls(**{**state, "levels": levels, "shares": _shares(state, len(levels))})


def likely_mistake(texts: Sequence[str]) -> str:
    """Say so where texts are likely meant to be something else."""
    looks_so = bool(texts) and all(map(_DATE, texts))
    return "; looks like dates, but no one format reads them all" if looks_so else ""


def _codes_note(codes: bool) -> str:
    return "; digits with leading zeros are texts" if codes else ""


@dataclass(frozen=True)
class Hashed(Column):
    """Too many values for a feature each: they share a few, by a hash that is the same everywhere and always."""

    buckets: int
    shares: tuple[float, ...]  # of each among the first rows
    missing_words: tuple[str, ...] = MISSING_WORDS
    codes: bool = False  # digits that are texts for their leading zeros
    kind: ClassVar[str] = "hashed"
    is_exportable: ClassVar[bool] = True
    step: ClassVar[str] = _STEP

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [f"{self.name}#{bucket}" for bucket in range(self.buckets)]

    @property
    def exclusive(self) -> tuple[int, tuple[float, ...]]:  # type: ignore[override]
        """Features of which just one is on: where they begin, and how often each is."""
        return 0, self.shares

    def words(self) -> str:
        """Say what is done with it."""
        values = [word for word in MISSING_WORDS if word not in self.missing_words]
        notes = _codes_note(self.codes) + values_note(values)
        return f"many categories, hashed into {self.buckets} features; missing: none of them{notes}"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        coded = as_texts(array, self.name).dictionary_encode()
        missing = frozenset(self.missing_words)
        texts = coded.dictionary.to_pylist()
        places = np.array([-1 if text in missing else _bucket(text, self.buckets) for text in texts], dtype=np.int64)
        index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(index >= 0)
        rows = rows[places[index[rows]] >= 0] if len(rows) else rows
        out[rows, places[index[rows]] if len(rows) else []] = 1.0

    def fill_one(self, value: Any, out: list[float], at: int) -> bool:
        """Write the features of a plain value; False if only whole columns of such values are read."""
        if type(value) is str and value not in self.missing_words:
            out[at + _bucket(value, self.buckets)] = 1.0
            return True
        return value is None

    @classmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> "Hashed":
        """Shares of the buckets among the first rows."""
        levels, buckets = values.counts, asked.buckets
        places = [_bucket(text, buckets) for text in levels.field("values").to_pylist()]
        counts = np.bincount(places, levels.field("counts"), minlength=buckets)
        shares = tuple((counts / max(counts.sum(), 1)).tolist())
        return cls(values.name, buckets, shares, values.missing_words, has_leading_zeros(levels.field("values")))

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        own = {"name": self.name, "buckets": self.buckets, "shares": self.shares}
        return own | missing_words_state(self.missing_words) | ({"codes": True} if self.codes else {})

    @classmethod
    def from_state(cls, state: Parameters) -> "Hashed":
        """Make the column that `state` described."""
        buckets = state["buckets"]
        if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= MOST_BUCKETS:
            raise ValueError(f"buckets must be a whole number from 1 to {MOST_BUCKETS}, got {str(buckets)[:40]}")
        given = {**state, "shares": _shares(state, buckets)}
        words, codes = missing_words_from_state(given), as_flag(given.pop("codes", False), "codes")
        return cls(**given, missing_words=words, codes=codes)


def _bucket(text: str, buckets: int) -> int:
    """The feature that a value has a share in.

    Examples
    --------
    >>> _bucket("Ulm", 64)
    46
    """
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"onepass").digest()
    return int.from_bytes(digest, "little") % buckets


def _shares(state: Parameters, n_values: int) -> tuple[float, ...]:
    shares = tuple(as_number(share, "a share") for share in state["shares"])
    if len(shares) != n_values:
        raise ValueError(f"the column {state['name']!r} has {len(shares)} shares, not one for each value")
    return shares
