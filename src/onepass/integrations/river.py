"""The perceptron as River models: rows are dictionaries, and features may come and go.

A feature never met before starts at the prior, one that is missing counts as zero. The perceptron behind has room for
more features than have come; when the room is used up it is doubled, so that growing costs little on the whole.
"""

from collections.abc import Hashable, Iterable, Mapping
from math import isfinite
from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import as_nonnegative
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.models.perceptron import BayesianPerceptron

try:
    from river import base, proba
    from river.utils import dataframe
except ImportError:
    raise ImportError("onepass.river needs River: pip install 'onepass[river]'") from None

__all__ = ["PerceptronClassifier", "PerceptronRegressor"]

_FIRST_ROOM = 8
_INTERCEPT = 100.0  # times the weights' standard deviation: where targets lie says little about how they vary
_FARTHEST = 1e150  # squares to something finite
_FILL = "leave it out, or fill gaps first (preprocessing.StatImputer, or fillna in a frame)"


class _Growing:
    """A perceptron over named features."""

    prior_scale: float
    covariance: str
    forgetting: float

    def _start(self) -> None:
        self._places: dict[Hashable, int] = {}
        self._core: BayesianPerceptron = self._perceptron(_FIRST_ROOM if self.forgetting == 1.0 else 1)

    def _perceptron(self, n_features: int) -> BayesianPerceptron:
        raise NotImplementedError

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self._core.n_seen

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows, each before it was learned."""
        return self._core.log_evidence

    @property
    def weights(self) -> dict[Any, float]:
        """Mean weight of each feature."""
        mean = self._core.mean
        return {name: float(mean[1 + place]) for name, place in self._places.items()}

    def _make_room(self, names: Iterable[Hashable]) -> None:
        for name in names:
            self._places.setdefault(name, len(self._places))
        room, needed = self._core.n_features, len(self._places)
        if needed > room:
            # Forgetting widens what is never seen too, so then there must be no spare room.
            self._core = _grown(
                self._core, self._perceptron(max(2 * room, needed) if self.forgetting == 1.0 else needed)
            )

    def _learn_row(self, x: Mapping[Any, Any], y: float) -> None:
        _check_row(x)  # before there is room for a feature that can't be learned
        self._make_room(x)
        row = np.zeros(self._core.n_features)
        for name, value in x.items():
            row[self._places[name]] = value
        self._core.learn(row, y)

    def _learn_rows(self, X: Any, y: Any) -> None:
        frame = dataframe.into_frame(X)
        _check_frame(frame)
        targets = np.asarray(dataframe.into_series(y).to_numpy(), dtype=np.float64)
        held = dict(self._places), self._core
        try:
            self._make_room(frame.columns)
            if len(targets):
                self._core.learn(self._placed(frame)[0], targets)
        except BaseException:  # rows that can't be learned leave no room behind
            self._places, self._core = held
            raise

    def _belief(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Mean and variance of the pre-activation; a feature never met adds its prior's variance."""
        _check_row(x)
        row, strange = np.zeros(self._core.n_features), np.float64(0.0)
        for name, value in x.items():
            place = self._places.get(name)
            if place is None:
                strange += np.square(min(abs(float(value)), _FARTHEST))
            else:
                row[place] = value
        seen = self._core.predict(row)
        return seen.pre_mean, float(seen.pre_var + self.prior_scale**2 * strange)

    def _beliefs(self, frame: Any) -> tuple[FloatArray, FloatArray]:
        _check_frame(frame)
        rows, strange = self._placed(frame)
        if not len(rows):
            return strange, strange
        seen = self._core.predict(rows)
        return seen.pre_mean, seen.pre_var + self.prior_scale**2 * strange

    def _placed(self, frame: Any) -> tuple[FloatArray, FloatArray]:
        """A frame's columns where the perceptron has them, and the squares of those that it has not."""
        values = np.asarray(dataframe.to_numpy(frame), dtype=np.float64)
        rows, strange = np.zeros((len(values), self._core.n_features)), np.zeros(len(values))
        for column, name in zip(values.T, frame.columns, strict=True):
            place = self._places.get(name)
            if place is None:
                strange += np.square(np.minimum(np.abs(column), _FARTHEST))
            else:
                rows[:, place] = column
        return rows, strange

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Give all that the model is, as parameters that JSON can hold and arrays: see `onepass.save`."""
        names = [_plain_name(name) for name in self._places]
        core, arrays = self._core.export_state()
        return {"arguments": self._arguments(), "core": core, "feature_names": names}, nested("core", arrays)

    def _arguments(self) -> Parameters:
        return {name: getattr(self, name) for name in ("prior_scale", "covariance", "forgetting")}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it goes on learning as that one would."""
        core = BayesianPerceptron.from_state(parameters["core"], under("core", arrays))
        model = cls(**parameters["arguments"])
        names = [_name(given) for given in parameters["feature_names"]]
        if len(set(names)) != len(names) or len(names) > core.n_features or core.bias != 1:
            raise ValueError("feature names and weights do not match")
        model._places = {name: place for place, name in enumerate(names)}
        model._core = core
        return model


def _check_row(x: Mapping[Any, Any]) -> None:
    for name, value in x.items():
        try:
            sound = isfinite(value)
        except (TypeError, OverflowError):
            sound = False
        if not sound:
            raise ValueError(f"feature {name!r} must be a finite number, got {value!r}; {_FILL}")


def _check_frame(frame: Any) -> None:
    values = np.asarray(dataframe.to_numpy(frame), dtype=np.float64)
    for i, k in np.argwhere(~np.isfinite(values))[:1]:
        raise ValueError(f"feature {frame.columns[k]!r} must be finite, got {values[i, k]} in row {i}; {_FILL}")


def _plain_name(name: Any) -> Any:
    """A feature's name as JSON can hold it: texts and whole numbers as they are, tuples of them as lists."""
    if isinstance(name, tuple):
        return [_plain_name(part) for part in name]
    if isinstance(name, str) or type(name) is int:
        return name
    raise TypeError(f"to be saved, features must be named by texts, whole numbers or tuples of these, got {name!r}")


def _name(given: Any) -> Any:
    if isinstance(given, list):
        return tuple(_name(part) for part in given)
    if isinstance(given, str) or type(given) is int:
        return given
    raise ValueError(f"features must be named by texts, whole numbers or lists of these, got {str(given)[:40]!r}")


def _grown(small: BayesianPerceptron, large: BayesianPerceptron) -> BayesianPerceptron:
    """Give ``large``, which has learned nothing, all that ``small`` has learned; new weights stay at their prior."""
    parameters, arrays = small.export_state()
    start, prior = large.export_state()
    if "covariance" in arrays:  # the form that the belief is held in now
        prior["covariance"] = np.tril(prior.pop("root") ** 2)
    for name, array in arrays.items():
        part = tuple(slice(extent) for extent in array.shape)
        prior[name][part] = array
    start["belief"] = parameters["belief"]
    return BayesianPerceptron.from_state(start, prior)


class PerceptronClassifier(_Growing, base.MiniBatchClassifier):
    """Bayesian perceptron for labels True and False.

    Parameters
    ----------
    prior_scale
        Standard deviation of a weight before the first row.
    covariance
        `"full"` keeps all correlations between weights, `"diagonal"` none: for very many features.
    forgetting
        In (0, 1]. Below 1 the past fades, for labels that drift.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import PerceptronClassifier
    >>> model = preprocessing.StandardScaler() | PerceptronClassifier()
    >>> loss = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.26
    """

    def __init__(self, prior_scale: float = 1.0, covariance: str = "full", forgetting: float = 1.0) -> None:
        self.prior_scale = as_nonnegative(prior_scale, "prior_scale")
        self.covariance = covariance
        self.forgetting = forgetting
        self._start()

    def _perceptron(self, n_features: int) -> BayesianPerceptron:
        return BayesianPerceptron(
            n_features, cov=self.prior_scale**2, covariance=self.covariance, forgetting=self.forgetting
        )

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn one row and its label."""
        if y not in (False, True):
            raise ValueError(
                f"y must be True or False, got {y!r}; for more classes wrap the model in multiclass.OneVsRestClassifier"
            )
        self._learn_row(x, float(y))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in their order."""
        self._learn_rows(X, y)

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of False and True."""
        mean, var = self._belief(x)
        p = float(self._core.activation.moments(mean, var).mean)
        return {False: 1.0 - p, True: p}

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities of False and True, a column each."""
        frame = dataframe.into_frame(X)
        p = self._core.activation.moments(*self._beliefs(frame)).mean
        return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=frame)

    def predict_many(self, X: Any) -> Any:
        """More probable labels."""
        frame = dataframe.into_frame(X)
        return dataframe.to_native_series(self._beliefs(frame)[0] > 0.0, name=None, like=frame)


class PerceptronRegressor(_Growing, base.MiniBatchRegressor):
    """Bayesian linear regression, or a perceptron with another activation, that learns its noise on the way.

    Features and targets should vary by about 1: scale both, the targets by River's `TargetStandardScaler` as below.
    Where targets lie matters less: the intercept's prior is a hundred times as wide as that of a weight.

    Parameters
    ----------
    prior_scale
        Standard deviation of a weight before the first row.
    noise
        Variance of the targets' noise, or `"learn"`.
    activation
        As for `onepass.BayesianPerceptron`.
    covariance
        `"full"` keeps all correlations between weights, `"diagonal"` none: for very many features.
    forgetting
        In (0, 1]. Below 1 the past fades, for relations that drift.

    Examples
    --------
    >>> from onepass.river import PerceptronRegressor
    >>> model = PerceptronRegressor(noise=0.01)
    >>> for x in range(1, 6):
    ...     model.learn_one({"x": x}, 2.0 * x + 1.0)
    >>> model.predict_one({"x": 7}, with_dist=True)
    𝒩(μ=14.992, σ=0.167)

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> scaled = preprocessing.TargetStandardScaler(PerceptronRegressor())
    >>> model = preprocessing.StandardScaler() | scaled
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.663581
    """

    def __init__(
        self,
        prior_scale: float = 1.0,
        noise: Any = "learn",
        activation: str = "linear",
        covariance: str = "full",
        forgetting: float = 1.0,
    ) -> None:
        self.prior_scale = as_nonnegative(prior_scale, "prior_scale")
        self.noise = noise
        self.activation = activation
        self.covariance = covariance
        self.forgetting = forgetting
        self._start()

    def _perceptron(self, n_features: int) -> BayesianPerceptron:
        variances = np.full(1 + n_features, self.prior_scale**2)
        variances[0] *= _INTERCEPT**2
        return BayesianPerceptron(
            n_features,
            self.activation,
            cov=variances,
            observation="gaussian",
            noise=self.noise,
            covariance=self.covariance,
            forgetting=self.forgetting,
        )

    def _arguments(self) -> Parameters:
        return {**super()._arguments(), "noise": self.noise, "activation": self.activation}

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learn one row and its target."""
        self._learn_row(x, float(y))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in their order."""
        self._learn_rows(X, y)

    def predict_one(self, x: Mapping[Any, Any], with_dist: bool = False) -> Any:
        """Expected target, or with ``with_dist`` the distribution of a new one."""
        output = self._core.activation.moments(*self._belief(x))
        if not with_dist:
            return float(output.mean)
        made: Any = proba.Gaussian
        return made._from_state(n=1, m=float(output.mean), var=float(output.var) + self._core.noise, ddof=0)

    def predict_many(self, X: Any) -> Any:
        """Expected targets."""
        frame = dataframe.into_frame(X)
        mean = self._core.activation.moments(*self._beliefs(frame)).mean
        return dataframe.to_native_series(mean, name=None, like=frame)
