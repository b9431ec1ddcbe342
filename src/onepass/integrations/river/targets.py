"""What is learned of numbers: targets in running units.

The prior is made for targets of about unit scale, and a stream does not tell its scale. The units are the mean and the
standard deviation of all targets so far, as those of River's `TargetStandardScaler`, and move as the features behind a
`StandardScaler` do. Here a prediction comes with its distribution, and one target, or some that are all the same, have
a scale too: their size.
"""

from math import sqrt
from typing import Any, NamedTuple, Self

from onepass.integrations.river.features import as_target

__all__ = ["Units"]

_FAR = 10.0  # standard deviations from the mean of all targets so far


class Units(NamedTuple):
    """A target ``y`` is learned as ``(y - centre) / scale``."""

    centres: bool
    """Whether targets are centred, or only divided by their root mean square."""
    centre: float = 0.0
    scale: float = 1.0
    total: float = 0.0
    """Sum of the weights of the targets so far."""
    squares: float = 0.0
    """Sum of the squared distances of the targets from the centre, by weight."""

    def with_target(self, target: float, weight: float) -> "Units":
        """The units with one target more, by Welford's recursion."""
        _, centre, _, total, squares = self
        total += weight
        if not self.centres:
            squares += weight * target * target
            return Units(False, 0.0, sqrt(squares / total) or 1.0, total, squares)
        distance = target - centre
        centre += distance * weight / total
        squares += weight * distance * (target - centre)
        return Units(True, centre, sqrt(squares / max(total - 1.0, 1.0)) or abs(centre) or 1.0, total, squares)

    def is_far(self, target: float) -> bool:
        """Whether a target is so far off that it may have to be set aside."""
        return self.total > 0.0 and abs(target - self.centre) > _FAR * self.scale

    @classmethod
    def from_plain(cls, centres: bool, given: Any) -> Self:
        """Check and take the numbers after the first, which a file had."""
        units = cls(centres, *(as_target(number) for number in given))
        if not (units.scale > 0.0 and units.squares >= 0.0 and units.total >= 0.0):
            raise ValueError("the units of targets must have a positive scale")
        return units
