"""Probabilities that hold whatever the stream does: a map from the probabilities of a model to those of its classes.

A model's own probabilities are calibrated as long as the model is right. `CalibrationMap` learns what they are worth:
each row that was predicted before it was learned says which class its probabilities came with. The map is a perceptron
per class, learned in closed form for several rates of drift side by side. Its inputs are the log odds of the class and
its probability, which together make maps that are steeper, flatter, or stay away from 0 and 1 because a share of the
labels is wrong. Its prior is the identity, so it changes little until rows disagree with the model.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.models.mixture import Mixture
from onepass.models.perceptron import BayesianPerceptron

__all__ = ["PROBABILITIES", "CalibrationMap"]

PROBABILITIES = ("model", "adaptive")
"""What probabilities of classes can be: those of the model, or calibrated by rows that it predicted before."""
# Prior standard deviations of the intercept, the weight of the log odds and that of the probability: chosen on streams
# other than those of the how-to page.
_PRIOR_STDS = (0.3, 0.3, 1.0)
_SMALLEST = 1e-10  # smaller probabilities count as this one
_TINY = 1e-300


class _ClassMap(NamedTuple):
    """The map of one class, or with ``is_mirrored`` that of all others together."""

    model: Mixture
    is_mirrored: bool = False

    @classmethod
    def identity(cls) -> "_ClassMap":
        """A map that has learned nothing."""
        prior_cov = np.square(_PRIOR_STDS)
        return cls(Mixture.over_drift(BayesianPerceptron, 2, "sigmoid", mean=[0.0, 1.0, 0.0], cov=prior_cov))

    def mirrored(self) -> "_ClassMap":
        """The map of the other of two classes."""
        return _ClassMap(self.model.snapshot(), not self.is_mirrored)

    def _inputs(self, probabilities: FloatArray) -> FloatArray:
        """Log odds and differences of both probabilities, ``(n, 2)``."""
        inside = np.clip(probabilities, _SMALLEST, 1.0 - _SMALLEST)
        given = np.column_stack([np.log(inside) - np.log1p(-inside), 2.0 * inside - 1.0])
        return np.asarray(-given if self.is_mirrored else given)

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """What probabilities ``(n,)`` of the class are worth."""
        return self._outputs(np.asarray(self.model.predict(self._inputs(probabilities)).mean))

    def learn(self, probabilities: FloatArray, is_class: NDArray[np.bool_], options: Any) -> None:
        """Learn whether rows were of the class."""
        self.model.learn(self._inputs(probabilities), self._labels(is_class), **options)

    def calibrate_then_learn(self, probabilities: FloatArray, is_class: NDArray[np.bool_], options: Any) -> FloatArray:
        """What the probability of each row is worth before the map learns whether it was the class."""
        seen, _ = self.model.predict_score_learn(self._inputs(probabilities), self._labels(is_class), **options)
        return self._outputs(np.asarray(seen.mean))

    def _labels(self, is_class: NDArray[np.bool_]) -> FloatArray:
        return np.asarray(is_class != self.is_mirrored, dtype=np.float64)

    def _outputs(self, means: FloatArray) -> FloatArray:
        return 1.0 - means if self.is_mirrored else means


class CalibrationMap:
    """A map from a model's probabilities of ``n_classes`` to calibrated ones.

    Two classes share one map; of more each has its own, against all others, and the results are divided by their sum.

    Examples
    --------
    A model that is far too sure:

    >>> import numpy as np
    >>> from onepass.models.calibration import CalibrationMap
    >>> rng = np.random.default_rng(0)
    >>> odds = rng.normal(size=4000)
    >>> labels = rng.random(4000) < 1 / (1 + np.exp(-odds))
    >>> sure = 1 / (1 + np.exp(-3 * odds))
    >>> calibration = CalibrationMap(2)
    >>> found = calibration.calibrate_then_learn(np.column_stack([1 - sure, sure]), 1.0 * labels)
    >>> for p in (sure, found[:, 1]):
    ...     print(f"{-np.log(np.where(labels, p, 1 - p)).mean():.2f}")
    0.77
    0.60
    """

    def __init__(self, n_classes: int) -> None:
        self.n_classes = as_count(n_classes, "n_classes")
        n_maps = {1: 0, 2: 1}.get(self.n_classes, self.n_classes)
        self._maps = [_ClassMap.identity() for _ in range(n_maps)]

    @property
    def n_seen(self) -> int:
        """Number of rows that the maps have learned: those of the class that is known longest."""
        return max((int(own.model.n_seen) for own in self._maps), default=0)

    def __call__(self, probabilities: FloatArray) -> FloatArray:
        """Calibrated probabilities ``(n, K)`` of a model's."""
        given = zip(self._maps, self._columns(probabilities), strict=True)
        return self._joined(probabilities, [own(column) for own, column in given])

    def learn(self, probabilities: FloatArray, places: FloatArray, weights: FloatArray | None = None) -> Self:
        """Learn of which class rows were; the arguments are those of `calibrate_then_learn`."""
        counted = _counted(places, weights)
        if not counted.all():
            probabilities, places = probabilities[counted], places[counted]
            weights = None if weights is None else weights[counted]
        if len(places):
            for own, *given in self._tasks(probabilities, places, weights):
                own.learn(*given)
        return self

    def calibrate_then_learn(
        self, probabilities: FloatArray, places: FloatArray, weights: FloatArray | None = None
    ) -> FloatArray:
        """Calibrate each row just before its class is learned; rows of weight 0, or of class NaN, are not learned.

        Parameters
        ----------
        probabilities : (n, K) array
            What the model predicted for each row before it learned it.
        places : (n,) array
            The class of each row.
        weights : (n,) array, optional
        """
        counted = _counted(places, weights)
        if not counted.all():
            parts = []
            for part in np.split(np.arange(len(places)), np.flatnonzero(np.diff(counted)) + 1):
                own = None if weights is None else weights[part]
                learns = len(part) and counted[part[0]]
                given = probabilities[part]
                parts.append(self.calibrate_then_learn(given, places[part], own) if learns else self(given))
            return np.concatenate(parts)
        tasks = self._tasks(probabilities, places, weights)
        return self._joined(probabilities, [own.calibrate_then_learn(*given) for own, *given in tasks])

    def _tasks(self, probabilities: FloatArray, places: FloatArray, weights: FloatArray | None) -> Iterator[Any]:
        """Each map, with the rows that it is to learn."""
        options = {} if weights is None else {"sample_weight": weights}
        columns = self._columns(probabilities)
        first = self.n_classes - len(columns)  # of two classes the second has the map
        for k, (own, column) in enumerate(zip(self._maps, columns, strict=True)):
            yield own, column, places == first + k, options

    def _columns(self, probabilities: FloatArray) -> FloatArray:
        """The probabilities that have a map, ``(maps, n)``."""
        return np.asarray(probabilities.T[self.n_classes - len(self._maps) :])

    def _joined(self, probabilities: FloatArray, columns: list[FloatArray]) -> FloatArray:
        if not columns:
            return probabilities
        if len(columns) == 1:
            return np.column_stack([1.0 - columns[0], columns[0]])
        found = np.maximum(np.column_stack(columns), _TINY)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def with_classes(self, n_classes: int) -> "CalibrationMap":
        """A map that keeps what this one has learned, of the same classes and some new ones after them."""
        new, kept = CalibrationMap(n_classes), self.copy()._maps
        if n_classes > self.n_classes == 2:
            kept = [kept[0].mirrored(), *kept]
        new._maps[: len(kept)] = kept
        return new

    def copy(self) -> "CalibrationMap":
        """Copy what learning changes."""
        new = CalibrationMap(self.n_classes)
        new._maps = [own._replace(model=own.model.snapshot()) for own in self._maps]
        return new

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Everything that has been learned, as parameters for JSON and arrays."""
        parameters: list[Parameters] = []
        arrays: Arrays = {}
        for k, own in enumerate(self._maps):
            state, numbers = own.model.export_state()
            parameters.append({"model": state, "is_mirrored": own.is_mirrored})
            arrays |= nested(str(k), numbers)
        return {"n_classes": self.n_classes, "maps": parameters}, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Check and restore what `export_state` returned."""
        new = cls(parameters["n_classes"])
        if len(parameters["maps"]) != len(new._maps):
            raise ValueError(f"the saved calibration should have {len(new._maps)} maps, got {len(parameters['maps'])}")
        new._maps = [
            _ClassMap(_map_model(own["model"], under(str(k), arrays)), bool(own["is_mirrored"]))
            for k, own in enumerate(parameters["maps"])
        ]
        return new


def _counted(places: FloatArray, weights: FloatArray | None) -> NDArray[np.bool_]:
    """Rows that are learned: of a known class, and not of weight 0."""
    known = ~np.isnan(places)
    return known if weights is None else known & (weights > 0.0)


def _map_model(parameters: Parameters, arrays: Arrays) -> Mixture:
    model = Mixture.from_state(parameters, arrays)
    if model.n_features != 2 or not model._likelihood.is_label:
        raise ValueError("a saved map of probabilities must have two inputs and predict a label")
    return model
