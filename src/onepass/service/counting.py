"""What is counted of one model for monitoring, from 0 when this process has loaded it.

A counter must never go down, but what it is read from does: a rollback brings earlier scores back, and after a failure
the model is made from its events again. So changes are added up here, and numbers of another object begin anew.
"""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from onepass.service.model_state import ModelState

__all__ = ["SECONDS", "Counts", "Durations", "UpAndDown"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Bounds for what should not take long: a request, a transaction."""
_HOUR, _DAY = 3600.0, 86400.0
_LAG = (1.0, 10.0, 60.0, 600.0, _HOUR, 6 * _HOUR, _DAY, 3 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY, 90 * _DAY)


class UpAndDown(NamedTuple):
    """How far a sum has gone up, and down: both never fall, as counters must."""

    up: float
    down: float


class Counts:
    """Counters of one model.

    Attributes
    ----------
    predicted : rows that were answered with a prediction
    label_lag : from predictions to their labels, from decisions to their rewards
    """

    def __init__(self) -> None:
        self.predicted = 0
        self.label_lag = Durations(_LAG)
        self._model, self._shadow = _Changes(), _Changes()
        self._scores, self._shadow_scores = _Changes(), _Changes()

    def look(self, state: "ModelState") -> None:
        """Add what has changed since the last look; by the one who changes the state, after each group."""
        champion, scores, shadow = state.champion, state.scores, state.candidate_scores
        numbers = {"learned": champion.n_seen, "refused": state.n_refused, **scores.counted()}
        numbers["set_aside"] = champion.n_set_aside
        if champion.n_decisions is not None:
            numbers["decisions"] = champion.n_decisions
        self._model.look(scores, numbers)
        self._scores.look(scores, scores.sums())
        if shadow is not None:
            self._shadow.look(shadow, shadow.counted())
            self._shadow_scores.look(shadow, shadow.sums())

    def numbers(self, *, with_shadow: bool) -> dict[str, float]:
        """All counters by name."""
        found = {"predicted": float(self.predicted), **self._model.up()}
        if with_shadow:
            found |= {f"shadow_{name}": value for name, value in self._shadow.up().items()}
        return found

    def score_sums(self, *, of_shadow: bool) -> dict[str, UpAndDown]:
        """What has been added to the sum of each metric, and what has been taken away, of the model or its shadow."""
        changes = self._shadow_scores if of_shadow else self._scores
        down = changes.down()
        return {name: UpAndDown(up, down.get(name, 0.0)) for name, up in changes.up().items()}


class _Changes:
    """How far numbers have gone up, and down, while they belonged to the same object."""

    def __init__(self) -> None:
        self._owner: object = None
        self._last: Mapping[str, float] = {}
        self._up: dict[str, float] = {}
        self._down: dict[str, float] = {}

    def look(self, owner: object, numbers: Mapping[str, float]) -> None:
        last = self._last if owner is self._owner else numbers
        for name, value in numbers.items():
            change = value - last[name]
            self._up[name] = self._up.get(name, 0.0) + max(change, 0.0)
            self._down[name] = self._down.get(name, 0.0) + max(-change, 0.0)
        self._owner, self._last = owner, numbers

    def up(self) -> dict[str, float]:
        return dict(self._up)  # of another thread

    def down(self) -> dict[str, float]:
        return dict(self._down)


class Durations:
    """A histogram of seconds.

    Parameters
    ----------
    bounds : upper bounds of its buckets, ascending

    Examples
    --------
    >>> durations = Durations((1.0, 10.0))
    >>> for seconds in (0.5, 1.0, 20.0):
    ...     durations.add(seconds)
    >>> durations.cumulative(), durations.sum
    ([(1.0, 2), (10.0, 2), (inf, 3)], 21.5)
    """

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts = (*bounds, float("inf")), [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    def cumulative(self) -> list[tuple[float, int]]:
        """Each bound, the last one infinite, and how many durations were no longer."""
        return list(zip(self._bounds, accumulate(self._counts), strict=True))
