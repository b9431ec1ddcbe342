"""What a model of a table predicts: a number in its own units, a count, or one of several labels.

An estimator learns numbers in units of their standard deviation, or the logarithms of positive ones. A target turns
them into what it learns, and its predictions back into the target's own units.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.estimators.transforms import Logarithm, TransformedUnits
from onepass.files.state import Parameters, as_number
from onepass.models.distribution import LinearUnits, Units
from onepass.models.prediction import PredictedMoments
from onepass.tables.columns.missing import MISSING_WORDS, missing_words_from_state, missing_words_state
from onepass.tables.columns.number import FARTHEST, note_far, scale_from_state
from onepass.tables.columns.number_format import PLAIN, NumberFormat
from onepass.tables.columns.values import Bad, as_numbers, as_texts, note_infinite, parse_numbers
from onepass.tables.columns.wording import number_text
from onepass.tables.reasons import Reason

__all__ = ["LARGEST_LOG", "ClassTarget", "CountTarget", "LogTarget", "NumberTarget", "Target", "target_from_state"]

LARGEST_LOG = 700.0  # whose exponential is finite
_UNSEEN = 3.0  # standard deviations above the centre that the largest target is expected at before any came
_BEYOND = float(np.log(2.0))  # how far above the largest target the log of a mean may be


@dataclass(frozen=True)
class NumberTarget:
    """A number, learned in units of the standard deviation that it had among the first rows."""

    name: str
    centre: float
    scale: float
    written: NumberFormat = PLAIN
    n_wild: int = field(default=0, compare=False)
    """How many of the first rows had a target far away from all others; not in files."""
    why_not_log: str = field(default="", compare=False)
    """Why its logarithm was tried but is not learned, as a clause; empty: it was not tried."""
    kind: ClassVar[str] = "number"
    n_outputs: ClassVar[int] = 1

    def encode(self, array: Any, bad: Bad) -> FloatArray:
        """Targets as the estimator learns them; values that are not numbers are noted in ``bad``."""
        values = parse_numbers(array, self.name, bad, self.written)
        with np.errstate(over="ignore"):
            scaled = self._scaled(values)
        if not (np.abs(scaled) <= FARTHEST).all():
            note_infinite(values, self.name, bad)
            for row in np.flatnonzero(np.isnan(values)).tolist():
                bad.setdefault(row, Reason("missing", self.name, role="target"))
            note_far(scaled, values, self.name, bad, "target")
        return np.asarray(scaled)

    def _scaled(self, values: FloatArray) -> FloatArray:
        return (values - self.centre) / self.scale

    @property
    def units(self) -> Units:
        """The target's own units, from those that the estimator learns."""
        return LinearUnits(self.centre, self.scale)

    def decode(self, scaled: FloatArray) -> FloatArray:
        """Targets and quantiles of the estimator in the target's own units."""
        return np.asarray(self.units.from_model(scaled))

    def moments(self, mean: FloatArray, std: FloatArray, noise_var: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of new targets, from those of the estimator and its share of noise in them."""
        return self.decode(mean), std * self.scale

    def log_density(self, scaled: FloatArray, log_density: FloatArray) -> FloatArray:
        """Log densities of targets in their own units, from those of what the estimator has learned."""
        return np.asarray(log_density + self.units.log_slope(self.decode(scaled)))

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        tried = {"why_not_log": self.why_not_log} if self.why_not_log else {}
        return {"name": self.name, "centre": self.centre, "scale": self.scale, **self.written.state(), **tried}


@dataclass(frozen=True)
class LogTarget(NumberTarget):
    """A positive number, learned as its logarithm, whose centre and scale these are.

    New targets are log-normal: half of them are below ``exp`` of the logarithm's mean, and their mean is larger, by
    half the variance of the noise. What is not yet known of the weights is left out there, and no variance counts for
    more than that of the first rows: before a model has learned something, the mean of all that it holds for possible
    is larger than any target. Nor is a mean more than twice the largest target so far: a logarithm that is extrapolated
    by a little more is a target many times as large. Quantiles, among them the median, have no such bound.

    Examples
    --------
    >>> target = LogTarget("price", 2.0, 0.5)
    >>> bad = {}
    >>> target.encode(pa.array([np.exp(2.5), 0.0]), bad)[:1], bad[1]
    (array([1.]), <no_logarithm: the target price is 0, but its logarithm is learned, which only a number above 0 has>)
    """

    why: str = ""
    """The reason for the logarithm, as a clause."""
    largest: float = field(default=_UNSEEN, compare=False)
    """The largest target so far, as the estimator learns it."""
    kind: ClassVar[str] = "log"

    def encode(self, array: Any, bad: Bad) -> FloatArray:
        """Logarithms of targets, scaled; values that have none are noted in ``bad``."""
        scaled = super().encode(array, bad)
        if not np.isfinite(scaled).all():
            values = parse_numbers(array, self.name, {}, self.written)
            for row in np.flatnonzero(values <= 0.0).tolist():
                if np.isfinite(values[row]):
                    bad[row] = Reason("no_logarithm", self.name, float(values[row]), "target")
        return scaled

    def _scaled(self, values: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.log(values) - self.centre) / self.scale

    @property
    def units(self) -> Units:
        """The target's own units, from those that the estimator learns."""
        return _LogUnits(Logarithm(), super().units, self)

    @property
    def largest_mean(self) -> float:
        """Log of the largest mean that is predicted."""
        return min(self.largest * self.scale + self.centre + _BEYOND, LARGEST_LOG)

    def having_seen(self, scaled: FloatArray) -> "LogTarget":
        """The same after more targets, as the estimator learns them."""
        largest = float(scaled.max(initial=self.largest))
        return replace(self, largest=largest) if largest > self.largest else self

    def moments(self, mean: FloatArray, std: FloatArray, noise_var: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of new targets; where the mean is bounded, their ratio stays."""
        log_mean = super().units.from_model(mean)
        noise, total = (np.minimum(var, 1.0) * self.scale**2 for var in (noise_var, std**2))
        bounded = np.minimum(log_mean, self.largest_mean - noise / 2.0)
        # The variance of a log-normal variable is its squared mean times exp(v) - 1, or exp(v) (1 - exp(-v)).
        log_std = bounded + total + 0.5 * np.log(-np.expm1(-np.maximum(total, 1e-300)))
        return np.exp(np.minimum(bounded + noise / 2.0, LARGEST_LOG)), np.exp(np.minimum(log_std, LARGEST_LOG / 2.0))

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        largest = {"largest": self.largest} if np.isfinite(self.largest) else {}
        return {**super().state(), "why": self.why, **largest}


@dataclass(frozen=True)
class _LogUnits(TransformedUnits):
    """The units of a target whose logarithm is learned, with its bounds of means."""

    target: LogTarget

    def moments(self, seen: PredictedMoments) -> tuple[Any, Any]:
        """Mean and variance of new targets."""
        mean, std = self.target.moments(seen.mean, np.sqrt(seen.var + seen.noise_var), seen.noise_var)
        return mean, np.square(std)


@dataclass(frozen=True)
class CountTarget(NumberTarget):
    """A count, learned as it is."""

    centre: float = 0.0
    scale: float = 1.0
    kind: ClassVar[str] = "count"

    def encode(self, array: Any, bad: Bad) -> FloatArray:
        """Counts; other values are noted in ``bad``."""
        values = super().encode(array, bad)
        for row in np.flatnonzero((values < 0.0) | (values != np.floor(values))).tolist():
            bad.setdefault(row, Reason("not_a_count", self.name, float(values[row]), "target"))
        return values

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return {"name": self.name, **self.written.state()}


@dataclass(frozen=True)
class ClassTarget:
    """One of several labels, all of them known beforehand."""

    name: str
    labels: tuple[str, ...]
    numeric: bool
    missing_words: tuple[str, ...] = MISSING_WORDS
    kind: ClassVar[str] = "class"

    @property
    def n_outputs(self) -> int:
        """Outputs of a model: one per label, and a single one for the log odds of two."""
        return len(self.labels) if len(self.labels) > 2 else 1

    def encode(self, array: Any, bad: Bad) -> FloatArray:
        """Indices of the labels; other values are noted in ``bad``."""
        if self.numeric:
            values = as_numbers(array, self.name, bad, NumberFormat(missing_words=self.missing_words))
            index, known = self._found(values)
        else:
            texts = as_texts(array, self.name)
            truths = {label.lower() for label in self.labels} == {"false", "true"}  # True of CSV is true of JSON
            labels = [label.lower() for label in self.labels] if truths else self.labels
            places = pc.index_in(pc.utf8_lower(texts) if truths else texts, value_set=pa.array(labels, pa.string()))
            known = places.is_valid().to_numpy(zero_copy_only=False)
            index = places.fill_null(0).to_numpy(zero_copy_only=False)
        if not known.all():
            for row in np.flatnonzero(~known).tolist():
                bad.setdefault(row, self._why_unknown(array[row].as_py()))
        return np.asarray(index, dtype=np.float64)

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        own = {"name": self.name, "labels": self.labels, "numeric": self.numeric}
        return own | missing_words_state(self.missing_words)

    def _found(self, values: FloatArray) -> tuple[Any, Any]:
        labels = np.array([float(label) for label in self.labels])
        if len(labels) == 2:  # no search is as quick
            second = values == labels[1]
            return second, second | (values == labels[0])
        order = np.argsort(labels)
        index = order[np.searchsorted(labels[order], values).clip(max=len(labels) - 1)]
        return index, labels[index] == values

    def _why_unknown(self, value: Any) -> Reason:
        if value is None or value != value:
            return Reason("missing", self.name, role="target")
        if str(value).strip() in self.missing_words:
            return Reason("missing_word", self.name, str(value).strip(), "target")
        shown = number_text(value) if isinstance(value, float) and np.isfinite(value) else str(value)
        return Reason("unknown_class", self.name, shown, "target", labels=self.labels)


Target = NumberTarget | ClassTarget  # a CountTarget and a LogTarget are NumberTargets


def target_from_state(state: Any) -> Target:
    """Make the target that ``{"kind": target.kind, **target.state()}`` described."""
    given = dict(state)
    kind = given.pop("kind")
    if kind == "number":
        centre = as_number(given["centre"], "centre")
        scale, written = scale_from_state(given, "the target"), NumberFormat.from_state(given)
        tried = str(given.get("why_not_log", ""))
        return NumberTarget(str(given["name"]), centre, scale, written, why_not_log=tried)
    if kind == "log":
        centre = as_number(given["centre"], "centre")
        scale, written = scale_from_state(given, "the target"), NumberFormat.from_state(given)
        largest = as_number(given["largest"], "largest") if "largest" in given else np.inf  # JSON has no infinity
        return LogTarget(str(given["name"]), centre, scale, written, why=str(given["why"]), largest=largest)
    if kind == "count":
        return CountTarget(str(given["name"]), written=NumberFormat.from_state(given))
    if kind != "class":
        raise ValueError(f"the target is of the unknown kind {str(kind)[:40]!r}")
    labels = tuple(str(label) for label in given["labels"])
    return ClassTarget(str(given["name"]), labels, bool(given["numeric"]), missing_words_from_state(given))
