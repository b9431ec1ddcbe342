"""What a target is, and how it is encoded as the numbers that models learn: numbers, counts, or classes.

The encoding is a part of what an estimator has learned: how many outputs there are, or which classes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import column_or_1d

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.estimators.scaling import Scaling
from onepass.estimators.transforms import TransformedUnits, transformed
from onepass.files.state import Parameters
from onepass.likelihoods import Likelihood
from onepass.models.distribution import Transform, Units
from onepass.models.prediction import PredictedMoments

__all__ = ["ClassTargets", "NumberTargets", "check_numbers", "has_columns"]

_SOME_CLASSES, _MOST_CLASSES = 100, 1000  # whole numbers that are nearly all different are suspicious, and too many
_REGRESSORS = "BayesianPerceptronRegressor, BayesianMLPRegressor"
_CLASSIFIERS = "BayesianPerceptronClassifier, BayesianMLPClassifier"
_NUMBER = (int, float)


@dataclass(frozen=True)
class NumberTargets:
    """Targets of one number, or of several, ``(n,)`` or ``(n, q)``; NaN where one of several was not observed."""

    likelihood: type[Likelihood]
    n_targets: int = 1
    many: bool = False  # whether predictions have a column per number
    transform: Transform | None = None  # what is learned in the place of a number

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes: there are none."""
        return False

    @classmethod
    def of(cls, likelihood: type[Likelihood], y: Any, transform: Transform | None = None) -> Self:
        """What the targets of the first rows are."""
        return cls(likelihood, int(np.shape(y)[1]) if np.ndim(y) == 2 else 1, np.ndim(y) == 2, transform)

    @classmethod
    def from_parameters(
        cls, likelihood: type[Likelihood], given: Parameters, transform: Transform | None = None
    ) -> Self:
        """Check and take what `parameters` gave."""
        return cls(likelihood, as_count(given["n_outputs"], "n_outputs"), bool(given["many"]), transform)

    @property
    def parameters(self) -> Parameters:
        """The targets as JSON has them."""
        return {"n_outputs": self.n_targets, "many": self.many}

    def encode(self, y: Any) -> FloatArray:
        """Targets as models learn them, ``(n, q)``."""
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), *(np.shape(y)[1:] or (1,)))
        self.likelihood().check(columns[:, 0] if columns.shape[1] == 1 else columns)
        if columns.shape[1] != self.n_targets:
            raise ValueError(f"y must have {self.n_targets} columns as before, got {columns.shape[1]}")
        return columns if self.transform is None else transformed(self.transform, columns)

    def encode_one(self, y: Any) -> float | None:
        """The single target of a row, as models learn it; None if that takes more than a look at it."""
        if self.transform is not None:
            return None
        if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind in "fiu":
            return float(y[0])
        return float(y[0]) if type(y) is list and len(y) == 1 and type(y[0]) in _NUMBER else None

    @property
    def prediction_shape(self) -> tuple[int, ...]:
        """The shape of what is predicted of a row."""
        return (self.n_targets,) if self.many else ()

    def decode(self, seen: list[PredictedMoments], scaling: Scaling) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise that the models predicted, in the targets' own units."""
        mean, var, noise = (
            np.column_stack([getattr(one, part) for one in seen]) for part in ("mean", "var", "noise_var")
        )
        squared = scaling.scale**2
        return self.shaped(scaling.undo(mean)), self.shaped(var * squared), self.shaped(noise * squared)

    def given_units(self, units: Units) -> Units:
        """The units of targets as they were given, from those of what is learned."""
        return units if self.transform is None else TransformedUnits(self.transform, units)

    def shaped(self, columns: FloatArray) -> FloatArray:
        """Columns ``(n, q)`` as they were given: ``(n,)`` for targets of one number."""
        return columns if self.many else columns[:, 0]


@dataclass(frozen=True)
class ClassTargets:
    """Labels ``(n,)``, each encoded as its place among the classes."""

    classes: NDArray[Any]  # (K,)
    declared: bool = False  # whether no others can occur
    n_targets = 1
    transform = None

    @classmethod
    def of(cls, y: Any, classes: Any = None) -> Self:
        """The classes that the first rows have, or those that were given."""
        y = column_or_1d(y, warn=True)
        _check_labels(y, are_all=classes is None)
        known = np.unique(y) if classes is None else unique_labels(np.asarray(classes))
        _check_number(len(known))
        if len(known) < 2:
            got = f"only one class, {known.tolist()[0]!r}" if len(known) else "none"
            raise ValueError(
                f"y must have at least two classes, got {got}; to partial_fit pass all classes that can occur, as "
                "classes=[...]"
            )
        return cls(known, classes is not None)

    @classmethod
    def from_parameters(cls, given: Parameters) -> Self:
        """Check and take what `parameters` gave."""
        labels, dtype = given["classes"], np.dtype(given["classes_dtype"])
        if dtype.kind not in "biufUO" or not isinstance(labels, list):
            raise ValueError(f"the saved classes must be numbers or strings, got {str(labels)[:40]}")
        classes = np.array(labels, dtype=np.str_ if dtype.kind == "U" else dtype)
        if classes.ndim != 1 or len(np.unique(classes)) != len(labels) or len(labels) < 2:
            raise ValueError(f"the saved classes must be at least two different ones, got {str(labels)[:40]}")
        return cls(classes, bool(given["classes_declared"]))

    @property
    def parameters(self) -> Parameters:
        """The classes as JSON has them."""
        labels = self.classes.tolist()
        if not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise TypeError(f"classes must be numbers or strings to be saved, got {labels!r}")
        return {"classes": labels, "classes_dtype": self.classes.dtype.str, "classes_declared": self.declared}

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, which one output tells apart."""
        return len(self.classes) == 2

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: place for place, label in enumerate(self.classes.tolist())}

    def check_classes(self, classes: Any) -> None:
        """Raise a ValueError if a later call names other classes."""
        if classes is not None and not np.array_equal(unique_labels(np.asarray(classes)), np.sort(self.classes)):
            raise ValueError(f"classes must be those of the first call, {self.classes.tolist()}, got {classes!r}")

    def with_classes_of(self, y: Any) -> "ClassTargets":
        """The same with the classes of more rows, new ones last, in the order of their appearance."""
        y = column_or_1d(y, warn=True)
        labels, places = np.unique(y, return_index=True)
        new = labels[np.argsort(places)]
        new = new[~np.isin(new, self.classes)]
        if self.declared or not len(new):
            return self
        _check_labels(y, are_all=False)
        if (new.dtype.kind in "UO") != (self.classes.dtype.kind in "UO"):
            raise ValueError(
                f"y has the class {new.tolist()[0]!r} besides {self.classes.tolist()}: labels must be alike"
            )
        _check_number(len(self.classes) + len(new))
        return ClassTargets(np.concatenate([self.classes, new]))

    def encode(self, y: Any) -> FloatArray:
        """Labels as their places, ``(n,)``."""
        y = column_or_1d(y, warn=True)
        _check_labels(y, are_all=False)
        unseen = y[~np.isin(y, self.classes)]
        if len(unseen):
            raise ValueError(
                f"y has the class {unseen.tolist()[0]!r}, which is not among the classes {self.classes.tolist()}; pass "
                "all classes that can occur to the first call of partial_fit, as classes=[...]"
            )
        order = np.argsort(self.classes, kind="stable")
        return np.asarray(order[np.searchsorted(self.classes, y, sorter=order)], dtype=np.float64)

    def encode_one(self, y: Any) -> float | None:
        """The place of the single label of a row; None if that takes more than a look at it."""
        if type(y) is np.ndarray and y.shape == (1,) and y.dtype.kind in "biufU":
            return self._places.get(y.item())
        return self._places.get(y[0]) if type(y) is list and len(y) == 1 and type(y[0]) in (int, str, bool) else None

    @property
    def prediction_shape(self) -> tuple[int, ...]:
        """The shape of what is predicted of a row."""
        return (len(self.classes),)

    def decode(self, seen: list[PredictedMoments], scaling: Scaling) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise of the probability of each class."""
        (one,) = seen
        mean, var, noise = one.mean, one.var, one.noise_var
        if not self.is_binary:
            return mean, var, noise
        mean = np.column_stack([1.0 - mean, mean])
        return mean, np.column_stack([var, var]), np.column_stack([noise, noise])


def has_columns(y: Any) -> bool:
    """Whether targets have several numbers each."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


def check_numbers(y: Any) -> None:
    """Raise a ValueError where targets are strings or dates, and not numbers."""
    values = np.asarray(y).ravel()
    are_others = values.dtype.kind in "USmM"
    wrong = values if are_others else [one for one in values if isinstance(one, str)] if values.dtype == object else []
    if len(wrong):
        raise ValueError(
            f"y must have numbers, got {str(wrong[0])!r}: turn them into numbers, or use a classifier "
            f"({_CLASSIFIERS}) if they are classes"
        )


def _check_labels(y: Any, *, are_all: bool) -> None:
    """Raise a ValueError where labels are numbers and not classes; ``are_all`` where no other classes will come."""
    if y.dtype.kind == "f" and np.isfinite(y).all() and (fractions := y[y != np.floor(y)]).size:
        raise ValueError(
            f"Unknown label type: continuous. A classifier needs classes, got numbers such as {fractions[0]:g} in y: "
            f"use a regressor ({_REGRESSORS}), or turn the numbers into classes, such as y > {np.median(y):.3g}"
        )
    if are_all and y.dtype.kind in "iuf" and (count := len(np.unique(y))) > _SOME_CLASSES and 2 * count > len(y):
        fewer = f"merge rare ones, as at most {_MOST_CLASSES} are allowed, and " if count > _MOST_CLASSES else ""
        raise ValueError(
            f"y has {count} different numbers in {len(y)} rows, so they are probably not classes: use a regressor "
            f"({_REGRESSORS}); if they are classes, {fewer}pass them as strings"
        )
    check_classification_targets(y)


def _check_number(count: int) -> None:
    """Raise a ValueError where there are too many classes."""
    if count > _MOST_CLASSES:
        raise ValueError(
            f"y has {count} classes, and every row would update the weights of all of them: at most {_MOST_CLASSES} "
            f"are allowed; merge rare classes, or use a regressor ({_REGRESSORS}) if they are numbers"
        )
