"""Classifiers for River: a perceptron for two classes, the softmax perceptron and the network for any number."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from river import base
from river.utils import dataframe

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.beliefs.choice import Covariance
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.integrations.river.base import NamedModel, NetworkArguments
from onepass.integrations.river.cores import Networks, Perceptrons
from onepass.integrations.river.distributions import PredictedLabel
from onepass.integrations.river.features import NO_TARGET, as_weight
from onepass.models.calibration import PROBABILITIES, CalibrationMap

__all__ = ["MLPClassifier", "PerceptronClassifier", "SoftmaxClassifier"]

_LINKS = ("sigmoid", "probit", "step")


@dataclass(eq=False, repr=False, kw_only=True)
class _Classifier(NamedModel, base.MiniBatchClassifier):
    """What classifiers share: the classes.

    A model of more than two classes has one output more than there are classes. It stands for any class that has not
    come yet, and learns from every row that none came. The next new class takes it over, so it is just as if that class
    had been known from the start.
    """

    intercept_scale: float | None = 4.0
    probabilities: str = "model"

    def __post_init__(self) -> None:
        one_of(self.probabilities, PROBABILITIES, "probabilities")
        self._calibration = CalibrationMap(1) if self.probabilities == "adaptive" else None
        self._set_classes(())
        super().__post_init__()

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes so far, in the order in which they came; ``(False, True)`` for boolean labels."""
        return self._classes

    def _set_classes(self, classes: tuple[Any, ...]) -> None:
        self._classes, self._places = classes, {name: place for place, name in enumerate(classes)}
        # False and True are known from the start, and need one output for both.
        self._is_binary = classes == (False, True) and isinstance(classes[0], bool)
        if self._calibration is not None and classes:
            self._calibration = self._calibration.with_classes(len(classes))

    def _outputs(self) -> Parameters:
        if self._is_binary:
            return {"n_outputs": 1, "observation": "bernoulli"}
        return {"n_outputs": max(len(self._classes), 1) + 1, "observation": "categorical"}

    def _place(self, y: Any) -> int:
        """The output of a class, or of any that has not come yet."""
        if y is None or y != y:
            raise ValueError(f"y must be a label, got {y!r}; {NO_TARGET}")
        if self._is_binary and not isinstance(y, (bool, np.bool_)):
            raise ValueError(
                f"y must be True or False, as the first label was, got {y!r}; don't mix booleans with other labels"
            )
        return self._places.get(y, len(self._classes)) if self._classes else 0

    def _add_class(self, y: Any) -> None:
        if not self._classes and isinstance(y, (bool, np.bool_)):
            self._set_classes((False, True))
            return
        self._set_classes((*self._classes, y))
        if self._core is not None:
            assert isinstance(self._family, Networks)
            self._core = self._family.with_outputs(self._core, len(self._classes) + 1)

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row and its label; a new label becomes a class.

        ``w`` is the weight of the row: 2 counts as if it had come twice, 0.5 raises its likelihood to the power 0.5,
        and 0 leaves it out.
        """
        place, weight = self._place(y), as_weight(w)
        if weight == 0.0:
            return
        if place < len(self._classes):
            self._learn_row(x, place, weight)
            return
        with self._all_or_none(self._core):  # a row that can't be learned leaves no class behind
            self._add_class(y)
            self._learn_row(x, self._place(y), weight)

    def _learn_complete(self, rows: FloatArray, targets: Any, weights: Any, **options: Any) -> None:
        if self._calibration is None:
            super()._learn_complete(rows, targets, weights, **options)
            return
        seen, _ = self._core.predict_score_learn(rows, targets, sample_weight=weights, **options)
        counts = None if weights is None else np.atleast_1d(weights)
        self._calibration.learn(self._of_classes(seen.moments.mean), np.atleast_1d(np.float64(targets)), counts)

    def _copied(self) -> dict[str, Any]:
        return {} if self._calibration is None else {"_calibration": self._calibration.copy()}

    def _batches(self, given: list[Any], weights: FloatArray) -> Iterator[tuple[Any, Any]]:
        numbers: list[int] = []
        places: list[int] = []
        for i in np.flatnonzero(weights).tolist():
            if self._place(given[i]) == len(self._classes):
                yield numbers, np.array(places)
                numbers, places = [], []
                self._add_class(given[i])
            numbers.append(i)
            places.append(self._place(given[i]))
        yield numbers, np.array(places)

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of the classes so far."""
        if not self._classes:
            self._columns.load(x, 0)  # what is not a number is refused from the start
            return {}
        return self._by_label(self._predict_row(x).moments.mean)

    def _by_label(self, mean: Any) -> dict[Any, float]:
        """Probabilities of the classes so far, from those of the outputs."""
        return dict(zip(self._classes, self._calibrated(mean)[0].tolist(), strict=True))

    def _of_classes(self, mean: Any) -> FloatArray:
        """Probabilities ``(n, K)`` by the core of the classes so far, from those of its outputs for a row or many."""
        if self._is_binary:
            return np.column_stack([1.0 - np.atleast_1d(mean), np.atleast_1d(mean)])
        return self._of_known(np.atleast_2d(mean))

    def _calibrated(self, mean: Any) -> FloatArray:
        """The same probabilities, calibrated if they are adaptive."""
        known = self._of_classes(mean)
        return known if self._calibration is None else self._calibration(known)

    def predict_one(self, x: Mapping[Any, Any], with_dist: bool = False, **kwargs: Any) -> Any:
        """The most probable label, None before the first row; with ``with_dist`` the `PredictedLabel`."""
        if not with_dist or not self._classes:
            probabilities = self.predict_proba_one(x, **kwargs)
            return max(probabilities, key=probabilities.__getitem__) if probabilities else None
        seen = self._predict_row(x)
        return PredictedLabel(self._by_label(seen.moments.mean), seen)

    def _of_known(self, mean: FloatArray) -> FloatArray:
        """Probabilities of the classes so far, without what is left to those that have not come yet: ``(..., K)``."""
        known = mean[..., :-1]
        total = known.sum(axis=-1, keepdims=True)
        alike = np.full_like(known, 1.0 / known.shape[-1])  # where it is sure of none of them
        return np.asarray(np.divide(known, total, out=alike, where=total > 0.0))

    def _probabilities(self, frame: Any) -> FloatArray:
        """Probabilities of the classes so far in the rows of a frame, ``(n, K)``."""
        if not (self._classes and len(frame)):
            return np.empty((len(frame), len(self._classes)))
        return self._calibrated(self._predict_frame(frame).moments.mean)

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities of the classes so far, a column each."""
        frame = dataframe.into_frame(X)
        columns = dict(zip(self._classes, self._probabilities(frame).T, strict=True))
        return dataframe.to_native_frame(columns, like=frame)

    def predict_many(self, X: Any) -> Any:
        """The most probable label of each row; None before the first row."""
        frame = dataframe.into_frame(X)
        best = self._probabilities(frame).argmax(axis=1) if self._classes else []
        labels = [self._classes[k] for k in best] or [None] * len(frame)
        return dataframe.to_native_series(labels, name=None, like=frame)

    def outlier_probability_one(self, x: Mapping[Any, Any], y: Any) -> float:
        """Probability that the label of a row is wrong, by the current belief; 0 with ``outliers=0``."""
        place = self._place(y)
        if not self._classes:
            raise ValueError("outlier_probability_one needs a model that has learned at least one row; learn one first")
        return self._distrust(x, place)

    def _own_state(self) -> Parameters:
        labels = [label.item() if isinstance(label, np.generic) else label for label in self._classes]
        if not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise TypeError(f"to be saved, classes must be numbers or strings, got {labels!r}")
        return {"classes": labels}

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        if self._calibration is None:
            return parameters, arrays
        own, numbers = self._calibration.export_state()
        return {**parameters, "calibration": own}, {**arrays, **nested("calibration", numbers)}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = super().from_state(parameters, arrays)
        if model._calibration is not None:
            saved = CalibrationMap.from_state(parameters["calibration"], under("calibration", arrays))
            if saved.n_classes != model._calibration.n_classes:
                raise ValueError("the saved calibration and classes do not match")
            model._calibration = saved
        return model

    def _restore(self, parameters: Parameters) -> None:
        labels = parameters["classes"]
        if not isinstance(labels, list) or not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise ValueError("the saved classes must be numbers or strings")
        known, core = self._classes, self._core
        self._set_classes(tuple(labels))
        match = len(self._places) == len(labels) and (self._is_binary if known else (core is None) == (not labels))
        if core is not None and not known:
            match = match and self._outputs() == {"n_outputs": core.n_outputs, "observation": core.observation.name}
        if not match:
            raise ValueError("the saved classes and outputs do not match")


@dataclass(eq=False, repr=False)
class PerceptronClassifier(_Classifier):
    """Bayesian perceptron for the labels True and False; for other labels and more classes use `SoftmaxClassifier`.

    The arguments are those of `onepass.BayesianPerceptronClassifier`. Features should have a scale of about 1: put
    `preprocessing.StandardScaler` before the model. A feature that was never learned adds the uncertainty about its
    weight to that of a prediction.

    Parameters
    ----------
    activation
        `"sigmoid"`, `"probit"` or `"step"`: what turns the weighted sum of the features into the probability of True.
    intercept_scale
        Standard deviation of the intercept before the first row; the default is wide enough for rare labels, None is
        `prior_scale`.
    outliers
        Share of the labels that are wrong, in [0, 0.5). Above 0 it is learned, starting from this value.
    probabilities
        `"adaptive"` calibrates probabilities: a map learns in closed form what those of the model were worth, from each
        row before it is learned, and follows streams that change. `predict_one(x, with_dist=True).prediction` has the
        model's own.
    prior_scale, fit_intercept, covariance, forgetting, drift, missing
        As for `PerceptronRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import PerceptronClassifier
    >>> model = preprocessing.StandardScaler() | PerceptronClassifier()
    >>> loss = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.26
    """

    activation: str = "sigmoid"
    _: KW_ONLY
    fit_intercept: bool = True
    covariance: str = "full"

    def __post_init__(self) -> None:
        one_of(self.activation, _LINKS, "activation")
        super().__post_init__()
        self._set_classes((False, True))

    def _new_family(self) -> Perceptrons:
        return Perceptrons(self)

    @property
    def _multiclass(self) -> bool:
        return False

    @property
    def weights(self) -> dict[Any, float]:
        """Mean weight of each feature."""
        return self._weights(1.0)

    def _outputs(self) -> Parameters:
        return {}

    def _place(self, y: Any) -> int:
        place = self._places.get(y)
        if place is None:
            hint = NO_TARGET if y is None else "for more classes use onepass.river.SoftmaxClassifier"
            raise ValueError(f"y must be True or False, got {y!r}; {hint}")
        return place


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxClassifier(_Classifier):
    """Bayesian softmax perceptron for any number of classes, all learned jointly.

    New classes may come at any time. The labels True and False are two classes from the start; for these
    `PerceptronClassifier` predicts the same, and is faster. Other labels become classes when they first come. In
    predictions a feature that was never learned counts as zero.

    Parameters
    ----------
    intercept_scale
        Standard deviation of the log odds between any two classes before the first row, for a row of zeros; the default
        is wide enough for rare classes, None is `prior_scale`.
    covariance
        Between which weights correlations are kept: `"full"` (all), `"neuron"` (those of each class) or `"diagonal"`
        (none). `"auto"` keeps all while that is fast, and fewer when there are many features or classes.
    missing
        As for `PerceptronRegressor`, but the mean of a feature counts as if it had been observed.
    prior_scale, outliers, probabilities, forgetting, drift
        As for `PerceptronClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import SoftmaxClassifier
    >>> model = preprocessing.StandardScaler() | SoftmaxClassifier()
    >>> loss = evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.CrossEntropy())
    >>> print(f"{loss.get():.2f}")
    0.28
    """

    covariance: Covariance = "auto"

    def _new_family(self) -> Networks:
        return Networks(self, (), 1, 0)


@dataclass(eq=False, repr=False)
class MLPClassifier(NetworkArguments, _Classifier):
    """Network of Bayesian perceptrons for any number of classes; there is no learning rate and no optimiser to choose.

    The arguments are those of `onepass.BayesianMLPClassifier`. Features should have a scale of about 1: put
    `preprocessing.StandardScaler` before the model. New features and classes may come at any time, as in
    `SoftmaxClassifier`.

    Parameters
    ----------
    hidden_layer_sizes
        Number of units of each hidden layer.
    activation
        Activation of the hidden units, as for `onepass.BayesianPerceptron`.
    prior_scale
        Multiplies the standard deviations of the weights before the first row.
    intercept_scale
        Standard deviation of the output's bias before the first row; with more than two classes, of the log odds
        between any two. None uses the network's prior, times `prior_scale`.
    covariance
        Between which weights correlations are kept: see `onepass.BayesianNetwork`. `"auto"` keeps all while the network
        is small, and fewer when more features or classes make it too large.
    members
        Number of networks, which start from different seeds and priors, learn the same rows and predict as a mixture:
        better, and that many times the work. See `onepass.BayesianCommittee`.
    random_state
        Seed of the random means of the weights before the first row; None is 0.
    outliers, probabilities, forgetting, drift, missing
        As for `SoftmaxClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import MLPClassifier
    >>> model = preprocessing.StandardScaler() | MLPClassifier(hidden_layer_sizes=(20,))
    >>> loss = evaluate.progressive_val_score(datasets.Bananas(), model, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.27
    """

    def _new_family(self) -> Networks:
        return self._networks()
