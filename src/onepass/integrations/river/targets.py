"""Targets in running units: the prior is made for targets of about unit scale, and a stream does not tell its scale.

The units are the mean and the standard deviation of all targets so far, as those of River's `TargetStandardScaler`,
and move as the features behind a `StandardScaler` do. Here a prediction comes with its distribution, and one target, or
some that are all the same, have a scale too: their size.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, Self

import numpy as np

from onepass.files.state import Parameters
from onepass.integrations.river.features import as_target
from onepass.models.prediction import Prediction

__all__ = ["StandardizedTargets", "Units"]

_WILD = 10.0  # standard deviations from the mean of all targets so far


@dataclass(frozen=True)
class Units:
    """A target ``y`` is learned as ``(y - centre) / scale``."""

    centre: float = 0.0
    scale: float = 1.0
    n_seen: int = 0
    squares: float = 0.0
    """Sum of the squared distances of the targets from the centre."""

    def centred_with(self, target: float) -> "Units":
        """The mean and standard deviation with one target more, by Welford's recursion."""
        n = self.n_seen + 1
        distance = target - self.centre
        centre = self.centre + distance / n
        squares = self.squares + distance * (target - centre)
        return Units(centre, sqrt(squares / max(n - 1, 1)) or abs(centre) or 1.0, n, squares)

    def scaled_with(self, target: float) -> "Units":
        """The root mean square with one target more, and no centre."""
        n, squares = self.n_seen + 1, self.squares + target * target
        return Units(0.0, sqrt(squares / n) or 1.0, n, squares)

    def standardized(self, target: float) -> float:
        """A target in these units."""
        return (target - self.centre) / self.scale

    def undo(self, seen: Prediction) -> Prediction:
        """A prediction in the units of the targets."""
        square = self.scale * self.scale
        mean = seen.mean * self.scale + self.centre
        return seen._replace(mean=mean, var=seen.var * square, noise_var=seen.noise_var * square)


class StandardizedTargets:
    """A regressor that may learn its targets in `Units`; a model over named features is to be its base too."""

    _learn_row: Callable[[Mapping[Any, Any], float, float], None]
    n_set_aside: int

    def _start_units(self, standardize: bool) -> None:
        if not isinstance(standardize, (bool, np.bool_)):
            raise TypeError(f"standardize must be True or False, got {standardize!r}")
        self.standardize: bool = bool(standardize)
        self._units = Units()

    @property
    def _centres_targets(self) -> bool:
        return True

    def _learn_target(self, x: Mapping[Any, Any], target: float, weight: float) -> None:
        if weight == 0.0:
            return
        if not self.standardize:
            self._learn_row(x, target, weight)
            return
        units = self._units.centred_with(target) if self._centres_targets else self._units.scaled_with(target)
        # A target that is set aside must not change the units, in which it would not even be far.
        is_wild = abs(self._units.standardized(target)) > _WILD and self._units.n_seen > 0
        before = self.n_set_aside
        self._learn_row(x, (self._units if is_wild else units).standardized(target), weight)
        if self.n_set_aside == before:
            self._units = units  # only now: a row that can't be learned leaves nothing behind

    # Files: what `export_state` adds.

    def _units_to_plain(self) -> Parameters:
        return {name: getattr(self._units, name) for name in ("centre", "scale", "n_seen", "squares")}

    def _take_units(self, given: Parameters) -> Self:
        centre, scale, squares = (as_target(given[name]) for name in ("centre", "scale", "squares"))
        if not (scale > 0.0 and squares >= 0.0 and type(given["n_seen"]) is int and given["n_seen"] >= 0):
            raise ValueError("the units of targets must have a positive scale")
        self._units = Units(centre, scale, given["n_seen"], squares)
        return self
