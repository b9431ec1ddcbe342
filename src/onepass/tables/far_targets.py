"""Targets that are absurdly far from what a model predicts: one such row would move every prediction.

Each row is compared with the model's prediction before it is learned. Rows that are replayed from a log of events are
not: they were accepted before.
"""

from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from onepass._limits import ROWS_BEFORE_JUDGING
from onepass.tables.columns.wording import number_text
from onepass.tables.model import TabularModel
from onepass.tables.rows import Reject, Rows
from onepass.tables.targets import ClassTarget

__all__ = ["OWN", "FarTarget", "Units", "far_targets", "without_far_targets"]

_LEAST_STD = 0.01  # of the target's scale: what was exact or constant so far may still change


class Units(NamedTuple):
    """Where the targets of an estimator lie."""

    centre: float = 0.0
    scale: float = 1.0


OWN = Units()
"""Those of the model of a table, which scales its targets itself."""


class FarTarget(NamedTuple):
    """A target in its own units, and the prediction that it is far from."""

    target: float
    mean: float
    std: float
    deviations: float
    limit: float

    @property
    def words(self) -> str:
        """What is wrong with the target, as the end of a sentence that begins with its name."""
        numbers = f"the predicted {self.mean:.4g} ± {self.std:.2g}"
        return (
            f"{number_text(self.target)}, {self.deviations:.2g} standard deviations from {numbers}; at most "
            f"{self.limit:,.10g} are accepted"
        )


def far_targets(
    model: TabularModel, ready: Rows, n_seen: int, limit: float, units: Units = OWN
) -> dict[int, FarTarget]:
    """The rows whose target is further from its prediction than ``limit`` standard deviations, noise included.

    Classes can't be far, a model that has hardly learned anything or expects outliers does not judge, and what is near
    the centre of the targets is never far, however wrong the prediction is.

    Parameters
    ----------
    model : the model before it learns any of the rows
    ready : rows and targets as its estimator takes them
    n_seen : rows that it has learned
    limit : inf to accept all
    units : centre and scale of the targets, as the estimator takes them
    """
    target, keys = model.target, ready.keys
    if isinstance(target, ClassTarget) or n_seen < ROWS_BEFORE_JUDGING or limit == inf:
        return {}
    if model.estimator.outliers:  # it learns hardly anything from such a row, and raises an alarm
        return {}
    least_std = _LEAST_STD * units.scale
    places = np.flatnonzero(np.abs(ready.y - units.centre) > limit * least_std)  # hardly any: predictions take time
    if keys is not None:
        places = places[[model.estimator.n_seen_of(keys[int(place)]) >= ROWS_BEFORE_JUDGING for place in places]]
    if not len(places):
        return {}
    given = {} if keys is None else {"keys": [keys[int(place)] for place in places]}
    mean, std = model.estimator.predict(ready.X[places], return_std=True, **given)
    with np.errstate(all="ignore"):
        deviations = np.abs(ready.y[places] - mean) / np.maximum(std, least_std)
    means, stds = target.moments(mean, std, model.estimator.noise_)
    columns = (target.decode(ready.y[places]), means, stds, deviations)
    judged = [FarTarget(*map(float, numbers)) for numbers in zip(*columns, np.full(len(places), limit), strict=True)]
    return {place: one for place, one in zip(places.tolist(), judged, strict=True) if one.deviations > limit}


def without_far_targets(model: TabularModel, rows: Rows, limit: float) -> Rows:
    """Rows that a model is about to learn, of which those with a far target are rejected."""
    found = far_targets(model, rows, model.n_rows, limit)
    if not found:
        return rows
    kept, lines = np.setdiff1d(np.arange(len(rows.y)), list(found)), rows.line_numbers()
    more = [
        Reject(lines[row], f"the target {model.target.name} is {far.words}", rows.record(row))
        for row, far in found.items()
    ]
    return replace(rows.at(kept), rejects=tuple(sorted((*rows.rejects, *more))), lines=rows.lines)
