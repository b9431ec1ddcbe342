"""Functions of targets that are learned in their place, such as logarithms; what is predicted is in targets' own units.

A transform is an increasing function with its inverse and the log of its slope, by which densities change.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onepass._typing import FloatArray
from onepass.models.distribution import Transform, Units
from onepass.models.prediction import PredictedMoments

__all__ = ["Logarithm", "TransformedUnits", "as_transform", "transformed"]

_LARGEST_LOG = 700.0  # whose exponential is finite
_STEP = 1e-6  # of a numerical derivative, relative to the target


@dataclass(frozen=True)
class Logarithm:
    """The logarithm of targets above 0."""

    def to_model(self, y: Any) -> Any:
        """Logarithms; minus infinity and NaN of what has none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(y)

    def from_model(self, y: Any) -> Any:
        """What has these logarithms."""
        return np.exp(np.minimum(y, _LARGEST_LOG))

    def log_slope(self, y: Any) -> Any:
        """Log of 1 / y."""
        return -self.to_model(y)


@dataclass(frozen=True)
class _Pair:
    """An increasing function and its inverse, as a user gave them; its slope is a difference."""

    function: Callable[[Any], Any]
    inverse: Callable[[Any], Any]

    def to_model(self, y: Any) -> Any:
        """Values of the function."""
        with np.errstate(all="ignore"):
            return self.function(y)

    def from_model(self, y: Any) -> Any:
        """Values of the inverse."""
        return self.inverse(y)

    def log_slope(self, y: Any) -> Any:
        """Log of the slope between two targets next to this one."""
        step = _STEP * np.maximum(np.abs(y), _STEP)
        with np.errstate(all="ignore"):
            return np.log((self.function(y + step) - self.function(y - step)) / (2.0 * step))


@dataclass(frozen=True)
class TransformedUnits:
    """Targets whose transforms are learned in units of their own."""

    transform: Transform
    units: Units
    scale: ClassVar[None] = None

    def to_model(self, y: Any) -> Any:
        """Targets as the model has learned them."""
        return self.units.to_model(self.transform.to_model(y))

    def from_model(self, y: Any) -> Any:
        """What a model predicts, in the targets' own units."""
        return self.transform.from_model(self.units.from_model(y))

    def log_slope(self, y: Any) -> Any:
        """Log of the derivative of `to_model`."""
        return self.transform.log_slope(y) + self.units.log_slope(self.transform.to_model(y))

    def moments(self, seen: PredictedMoments) -> tuple[Any, Any] | None:
        """None: they are integrals."""
        return None


_NAMED: dict[str, Transform] = {"log": Logarithm()}


def as_transform(given: Any) -> Transform | None:
    """Check a transform that a user gave: a name, a function and its inverse, an object with both, or None.

    Examples
    --------
    >>> as_transform("log"), as_transform((np.cbrt, lambda z: z**3)).from_model(3.0)
    (Logarithm(), 27.0)
    """
    if given is None:
        return None
    if isinstance(given, str) and given in _NAMED:
        return _NAMED[given]
    if isinstance(given, tuple) and len(given) == 2 and all(map(callable, given)):
        return _Pair(*given)
    if all(callable(getattr(given, name, None)) for name in ("to_model", "from_model", "log_slope")):
        found: Transform = given
        return found
    raise ValueError(
        f"target_transform must be None, {' or '.join(map(repr, _NAMED))}, an increasing function and its inverse, "
        f"such as (numpy.cbrt, lambda z: z**3), or an object with to_model, from_model and log_slope, got {given!r}"
    )


def transformed(transform: Transform, y: FloatArray) -> FloatArray:
    """Transforms of targets, NaN where these are; a ValueError for a target that has none."""
    found = np.asarray(transform.to_model(y), dtype=np.float64)
    bad = ~np.isfinite(found) & ~np.isnan(y)
    if bad.any():
        raise ValueError(
            f"y must have numbers that target_transform={transform!r} is defined for, got {float(y[bad][0]):g}; leave "
            "such rows out, or shift the targets"
        )
    return found
