"""Columns of true and false, in the words that files use for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.files.state import Parameters
from onepass.tables.columns.column import Column
from onepass.tables.columns.missing import (
    MISSING_WORDS,
    missing_words_from_state,
    missing_words_state,
    notable_words,
    without_words,
)
from onepass.tables.columns.values import Bad, as_texts, is_member, plain
from onepass.tables.columns.wording import listed
from onepass.tables.reasons import Reason

if TYPE_CHECKING:
    from onepass.tables.columns.inference import FirstValues, InferenceOptions

__all__ = ["TRUTH_WORDS", "Boolean", "lower_texts", "truth_values"]

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
TRUTH_WORDS = (*_TRUE, *_FALSE)


def lower_texts(array: Any, name: str, missing_words: Sequence[str]) -> Any:
    """Values as texts without case and surrounding space, null where one is missing."""
    return pc.utf8_lower(without_words(as_texts(array, name), missing_words))


def truth_values(array: Any, name: str) -> Any:
    """Values as a boolean array, null where one is missing or neither true nor false."""
    array = plain(array)
    if pa.types.is_boolean(array.type):
        return array
    texts = lower_texts(array, name, MISSING_WORDS)
    true, false = (is_member(texts, values) for values in (_TRUE, _FALSE))
    return pa.array(true, mask=~(true | false))


@dataclass(frozen=True)
class Boolean(Column):
    """1 for true, 0 for false, one half for missing."""

    missing_words: tuple[str, ...] = MISSING_WORDS
    kind: ClassVar[str] = "boolean"
    shares_scale: ClassVar[bool] = True
    is_exportable: ClassVar[bool] = True
    step: ClassVar[str] = "true in place of false"

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [self.name]

    @property
    def arrow_type(self) -> Any:
        """The Arrow type in which to ask a reader for it."""
        return pa.bool_()

    @classmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> "Boolean":
        """The words for a missing answer among the values."""
        return cls(values.name, values.truth_missing_words)

    def words(self) -> str:
        """Say what is done with it."""
        words = notable_words(self.missing_words)
        return f"true or false, as 1 or 0; missing{f' ({listed(words, 6)})' if words else ''}: 0.5"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        array = plain(array)
        if pa.types.is_boolean(array.type):
            values = pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False)
            out[:, 0] = np.where(np.isnan(values), 0.5, values)
            return
        texts = lower_texts(array, self.name, self.missing_words)
        true, false = (is_member(texts, values) for values in (_TRUE, _FALSE))
        out[:, 0] = np.where(true, 1.0, np.where(false, 0.0, 0.5))
        odd = ~(true | false) & texts.is_valid().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(odd).tolist():
            bad.setdefault(row, Reason("not_boolean", self.name, str(array[row].as_py())))

    def fill_one(self, value: Any, out: list[float], at: int) -> bool:
        """Write the feature of a plain value; False if only whole columns of such values are read."""
        out[at] = 0.5 if value is None else float(value is True)
        return value is None or type(value) is bool

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return {"name": self.name, **missing_words_state(self.missing_words)}

    @classmethod
    def from_state(cls, state: Parameters) -> "Boolean":
        """Make the column that `state` described."""
        given = dict(state)
        words = missing_words_from_state(given)
        return cls(**given, missing_words=words)
