"""A measured figure, and the bound that it has to keep: what the modules of the trust page return."""

import re
from dataclasses import dataclass

__all__ = ["Cell", "reached"]

_NUMBER = r"[+-]?\d+(?:\.\d+)?"
_BOUND = re.compile(rf"(<=|>=)\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})\s*-\s*({_NUMBER})")


@dataclass(frozen=True)
class Cell:
    """One figure, and its bound.

    A bound is ``"<= 0.1"``, ``">= 90"``, a range ``"93.5-96.5"``, or nothing. It is checked when the figure is
    measured, so that a change for the worse is noticed; pages show the figure alone.
    """

    section: str
    name: str
    value: float
    bound: str = ""

    @property
    def line(self) -> str:
        """What a command prints."""
        verdict = "" if reached(self.value, self.bound) in (True, None) else f"   MISSED {self.bound}"
        return f"{self.name:85} {self.value:10.4g}{verdict}"


def reached(value: float, target: str) -> bool | None:
    """Whether a value meets its target, compared as precisely as the target is written; None for targets in words.

    Examples
    --------
    >>> reached(0.104, "<= 0.10"), reached(92.9, "93.5-96.5"), reached(1.0, "as the process")
    (True, False, None)
    """
    target = target.strip()
    if bound := _BOUND.fullmatch(target):
        sign, limit = bound.groups()
        rounded = round(value, _decimals(limit))
        return rounded <= float(limit) if sign == "<=" else rounded >= float(limit)
    if span := _RANGE.fullmatch(target):
        low, high = span.groups()
        return float(low) <= round(value, _decimals(low, high)) <= float(high)
    return None


def _decimals(*numbers: str) -> int:
    return max(len(number.partition(".")[2]) for number in numbers)
