"""Columns of numbers: centred and scaled by the first rows, so that one prior suits all weights."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from onepass._typing import FloatArray
from onepass._validation import as_flag
from onepass.estimators.scaling import near
from onepass.files.state import Parameters, as_number
from onepass.tables.columns.column import Column
from onepass.tables.columns.missing import notable_words
from onepass.tables.columns.number_format import PLAIN, NumberFormat
from onepass.tables.columns.values import Bad, as_numbers
from onepass.tables.columns.wording import listed, standardised
from onepass.tables.reasons import Reason

if TYPE_CHECKING:
    from onepass.tables.columns.inference import FirstValues, InferenceOptions

__all__ = ["FARTHEST", "Number", "centre_and_scale", "note_far", "scale_from_state"]

# Scales from the centre up to which a number is taken: its powers, and products with others, stay finite. Nothing that
# was measured is farther away; what is comes from a fault.
FARTHEST = 1e50
_WHOLE = 2**53  # above, a whole number is not a float of the same value


@dataclass(frozen=True)
class Number(Column):
    """Centred and scaled; a missing value is NaN, and has a feature if some were missing among the first rows."""

    centre: float
    scale: float
    missing: bool
    written: NumberFormat = PLAIN
    kind: ClassVar[str] = "number"
    shares_scale: ClassVar[bool] = True
    is_exportable: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    step: ClassVar[str] = "one standard deviation more of a number"

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [self.name, *([f"{self.name} is missing"] if self.missing else [])]

    @property
    def arrow_type(self) -> Any:
        """The Arrow type in which to ask a reader for it."""
        return pa.float64() if self.written.is_plain else pa.string()

    def words(self) -> str:
        """Say what is done with it."""
        words = notable_words(self.written.missing_words)
        missing = f"missing ({listed(words, 6)})" if words else "missing"
        note = f"; {missing}: its mean, and a feature that says so" if self.missing else ""
        return f"number{self.written.words()}, {standardised('x', self.centre, self.scale)}{note}"

    @classmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> "Number":
        """Centre and scale by the values of some rows; with ``outliers`` those that are wild don't count."""
        bad: Bad = {}
        written = values.as_numbers[0]
        found = as_numbers(values.array, values.name, bad, written)
        missing = bool(np.isnan(np.delete(found, list(bad))).any())
        return cls(values.name, *centre_and_scale(found[np.isfinite(found)], asked.outliers), missing, written)

    def scaled(self, values: FloatArray, out: FloatArray) -> FloatArray:
        """Write values, once centred and scaled, into an array."""
        np.subtract(values, self.centre, out=out)
        out *= 1.0 / self.scale
        return out

    def fill_one(self, value: Any, out: list[float], at: int) -> bool:
        """Write the features of a plain value; False if only whole columns of such values are read."""
        if value is None:
            out[at] = math.nan
            if self.missing:
                out[at + 1] = 1.0
            return True
        if type(value) is not float and (type(value) is not int or abs(value) > _WHOLE):
            return False
        out[at] = scaled = (value - self.centre) * (1.0 / self.scale)
        return abs(scaled) <= FARTHEST

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        scaling = {"centre": self.centre, "scale": self.scale, "missing": self.missing}
        return {"name": self.name, **scaling, **self.written.state()}

    @classmethod
    def from_state(cls, state: Parameters) -> "Number":
        """Make the column that `state` described."""
        given = dict(state)
        given["centre"] = as_number(given["centre"], "centre")
        given["missing"] = as_flag(given["missing"], "missing")
        given["scale"] = scale_from_state(given, f"the column {given['name']!r}")
        written = NumberFormat.from_state(given)
        return cls(**given, written=written)


def scale_from_state(state: Parameters, whose: str) -> float:
    """Take the scale out of a state."""
    scale = as_number(state.pop("scale"), "scale")
    if scale <= 0.0:
        raise ValueError(f"{whose} has the scale {scale}, which must be positive")
    return scale


def centre_and_scale(values: FloatArray, outliers: float = 0.0) -> tuple[float, float]:
    """Mean and standard deviation of all values that are not far outside; a scale of 1 where all are equal.

    With ``outliers`` those more than ten standard deviations away count as far outside.

    Examples
    --------
    >>> centre_and_scale(np.array([1.0, 3.0, 1e308, 1.0, 3.0]))
    (2.0, 1.0)
    """
    if not len(values):
        return 0.0, 1.0
    with np.errstate(over="ignore"):
        middle = _middle(values)
        distances = np.abs(values - middle)
        kept = values[distances <= FARTHEST * (_middle(distances) or abs(middle) or 1.0)]
    kept = kept[near(kept, outliers)]
    # A power of two: the same digits, but no square is too large.
    largest = float(np.abs(kept).max())
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(kept, -exponent)
    scale = math.ldexp(float(scaled.std()), exponent)
    return math.ldexp(float(scaled.mean()), exponent), 1.0 if scale <= 1e-12 * largest else scale


def _middle(values: FloatArray) -> float:
    """One of the values, with as many below as above it."""
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def note_far(scaled: FloatArray, values: FloatArray, name: str, bad: Bad, role: str = "") -> None:
    """Note the rows whose value, once scaled, is too far away to be taken."""
    for row in np.flatnonzero(np.abs(scaled) > FARTHEST).tolist():
        bad.setdefault(row, Reason("too_far", name, float(values[row]), role))
