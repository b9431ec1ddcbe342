"""The record of the forward tests of a model: what was tested, what was chosen, and how far off it was.

It is data: the model keeps it, commands print it, and its words are made in `onepass.tables.description`.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from onepass.files.state import Parameters, as_number, as_tally

__all__ = [
    "CANDIDATES",
    "DRIFTING",
    "GAIN",
    "IN_ORDER",
    "LEVEL",
    "PERCEPTRON",
    "SHUFFLED",
    "Candidate",
    "ForwardTest",
    "widened",
]


class Candidate(NamedTuple):
    """A way to learn the rows."""

    name: str
    is_network: bool
    in_order: bool
    drift: bool = False
    level: bool = False


PERCEPTRON = Candidate("perceptron", is_network=False, in_order=False)
SHUFFLED = Candidate("network shuffled", is_network=True, in_order=False)
IN_ORDER = Candidate("network in order", is_network=True, in_order=True)
DRIFTING = Candidate("perceptron with drift", is_network=False, in_order=True, drift=True)
LEVEL = Candidate("perceptron with a level in time", is_network=False, in_order=True, level=True)
GAIN = 0.05
"""Nats per row by which a model that follows the order, or any without a level in time, has to be better."""
CANDIDATES = {one.name: one for one in (PERCEPTRON, SHUFFLED, IN_ORDER, DRIFTING, LEVEL)}


@dataclass(frozen=True)
class ForwardTest:
    """What the forward tests of a new model have found; saved with the model."""

    chosen: str
    """Name of the candidate with the best score, unless it had to be better by a margin and is not."""
    scores: dict[str, float]
    """Mean log density of the targets ahead in the worse of two tests, by candidate; of numbers in units of their
    standard deviation."""
    n_learned: int
    """Rows learned before the last test."""
    n_predicted: int
    """Rows predicted in the last test."""
    widening: float
    """Factor of the intervals, at least 1; with a level in time of what their variance gains with the distance."""
    coverage: float | None = None
    """Share of the targets ahead inside their 95 % intervals in the last test, these widened; None for classes."""
    plain_coverage: float | None = None
    """The share without widening."""
    row_by_row: float | None = None
    """The share when each of the same rows is predicted right before it is learned, without widening."""
    errors: dict[str, float] | None = None
    """Root mean squared errors of the last test: of the model, the mean, the last value, and gradient boosting."""

    @property
    def candidate(self) -> Candidate:
        """The one that was chosen."""
        return CANDIDATES[self.chosen]

    @property
    def order_matters(self) -> bool:
        """Whether the rows to come differ from those learned in a way that the model has to take into account."""
        return self.candidate.in_order or self.widening > 1.0

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Make the record that `state` described."""
        given = dict(state)
        if given["chosen"] not in CANDIDATES:
            raise ValueError(f"{str(given['chosen'])[:40]!r} is not a candidate of a forward test")
        widening = as_number(given["widening"], "widening")
        if widening < 1.0:
            raise ValueError(f"widening must be at least 1, got {widening:g}")
        coverage, plain, row_by_row = (
            None if given[name] is None else as_number(given[name], name) for name in _SHARES
        )
        errors = None if given["errors"] is None else _numbers(given["errors"], "errors")
        n_learned, n_predicted = (as_tally(given[name], name) for name in ("n_learned", "n_predicted"))
        scores = _numbers(given["scores"], "scores")
        return cls(str(given["chosen"]), scores, n_learned, n_predicted, widening, coverage, plain, row_by_row, errors)


def widened(widening: float, share: Any) -> Any:
    """Factors of the deviations of rows of whose variance a share is widened.

    Examples
    --------
    >>> float(widened(2.0, 1.0)), float(widened(2.0, 0.0))
    (2.0, 1.0)
    """
    return np.sqrt(1.0 + (widening**2 - 1.0) * share)


_SHARES = ("coverage", "plain_coverage", "row_by_row")


def _numbers(given: Any, name: str) -> dict[str, float]:
    return {str(key): as_number(value, f"{name}[{key}]") for key, value in dict(given).items()}
