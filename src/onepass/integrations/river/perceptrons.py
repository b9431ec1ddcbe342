"""The perceptron as River models.

A new feature starts at the prior; a feature that is missing from a row counts as zero. The perceptron may have more
weights than there are features so far; when they are used up their number is doubled, so growing costs little overall.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from river import base
from river.utils import dataframe

from onepass._typing import FloatArray
from onepass._validation import as_nonnegative, as_outliers, as_positive, one_of
from onepass.activations import Exponential, as_activation
from onepass.beliefs.prior import prior_variances
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.integrations.river.features import Columns, as_label, as_target, as_weight, gaussian
from onepass.integrations.river.targets import StandardizedTargets
from onepass.likelihoods import Gaussian, NegativeBinomial, likelihood_names, named
from onepass.models.mixture import Mixture, as_drift, mixed_prediction, stacked, with_drift
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.prediction import Prediction

__all__ = ["PerceptronClassifier", "PerceptronRegressor"]


# Prior standard deviations of the intercept. A linear output finds targets far from zero by it. One with a kink or with
# limits has no way back from where it is flat, and the exponential of a wide Gaussian has a mean beyond any target.
_LINEAR, _BENT, _EXPONENTIAL = 100.0, 4.0, 1.0
_OBSERVATIONS = likelihood_names(lambda kind: not (kind.is_label or kind.needs_network))


class _NamedFeatures:
    """A perceptron over named features, whose number grows."""

    prior_scale: float
    intercept_scale: float | None
    covariance: str
    forgetting: float
    drift: float | str
    outliers: float

    def _start(self) -> None:
        self._columns = Columns()
        self._perceptron: BayesianPerceptron | Mixture = self._new_perceptron(1)

    def _new_perceptron(self, n_features: int) -> BayesianPerceptron | Mixture:
        """Make a perceptron that has learned nothing."""
        raise NotImplementedError

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self._perceptron.n_seen

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift; with ``drift="auto"`` also of a return to the ``"prior"``."""
        return self._perceptron.drift_

    @property
    def n_set_aside(self) -> int:
        """Rows that were not learned because their target was absurdly far off."""
        return self._perceptron.n_set_aside

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted."""
        return self._perceptron.outliers_

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows, each before it was learned."""
        return self._perceptron.log_evidence

    @property
    def weights(self) -> dict[Any, float]:
        """Mean weight of each feature."""
        mean = self._perceptron.mean
        return dict(zip(self._columns, mean[1:].tolist(), strict=False))

    def _add_features(self, names: Iterable[Hashable]) -> None:
        self._columns.add(names)
        capacity, needed = self._perceptron.n_features, len(self._columns)
        if needed > capacity:
            self._perceptron = _grown(self._perceptron, self._new_perceptron(max(2 * capacity, needed)))

    def _learn_row(self, x: Mapping[Any, Any], y: float, weight: float) -> None:
        row, n_new, _ = self._columns.load(x, self._perceptron.n_features)
        if n_new:  # of which nothing could be refused any more
            self._add_features(x)
            row = self._columns.load(x, self._perceptron.n_features)[0]
        if weight == 1.0:
            self._perceptron.learn(row, y)
        else:
            self._perceptron.learn(row, y, sample_weight=weight)

    def _learn_rows(self, X: Any, y: Any) -> None:
        frame = dataframe.into_frame(X)
        Columns.check_frame(frame)
        targets = np.asarray(dataframe.into_series(y).to_numpy(), dtype=np.float64)
        before = Columns(self._columns), self._perceptron
        try:
            self._add_features(frame.columns)
            if len(targets):
                self._perceptron.learn(self._columns.load_frame(frame, self._perceptron.n_features)[0], targets)
        except BaseException:  # rows that can't be learned leave no columns behind
            self._columns, self._perceptron = before
            raise

    def _predict_row(self, x: Mapping[Any, Any]) -> Prediction:
        """What is predicted for a row; a feature that is new adds the variance of its prior."""
        row, _, new_squares = self._columns.load(x, self._perceptron.n_features)
        return self._widened(row, new_squares) if new_squares > 0.0 else self._perceptron.predict(row)

    def _predict_frame(self, frame: Any) -> FloatArray:
        """Expected output of the rows of a frame, ``(n,)``."""
        Columns.check_frame(frame)
        rows, new_squares = self._columns.load_frame(frame, self._perceptron.n_features)
        return np.asarray(self._widened(rows, new_squares).mean) if len(rows) else np.empty(0)

    def _widened(self, rows: FloatArray, new_squares: Any) -> Prediction:
        """What is predicted for rows with new features, under the mixture of the perceptron's hypotheses."""
        weights, parts = zip(*self._perceptron.components, strict=True)
        predictions = []
        for part in parts:
            seen = part.predict(rows)
            pre_var = np.asarray(seen.pre_var + self.prior_scale**2 * new_squares)
            output = part.observation.output_moments(part.activation, np.asarray(seen.pre_mean), pre_var)
            noise_var = part.observation.noise_var(output)
            predictions.append(Prediction(output.mean, output.var, seen.pre_mean, pre_var, noise_var))
        if len(parts) == 1:
            return predictions[0]
        return mixed_prediction(np.array(weights), stacked(predictions))

    def _distrust(self, x: Mapping[Any, Any], y: float) -> float:
        """Probability that the target of a row is not to be trusted; weights of new features are at their prior."""
        row, _, new_squares = self._columns.load(x, self._perceptron.n_features)
        perceptron, used = self._perceptron, len(self._columns)
        if new_squares > 0.0:  # one weight that no feature has can stand for all that are new
            if used == perceptron.n_features:
                perceptron = _grown(perceptron, self._new_perceptron(used + 1))
                row = np.append(row, 0.0)
            row[used] = np.sqrt(new_squares)
        return float(perceptron.outlier_probability(row, y))

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        names = self._columns.to_plain()
        state, arrays = self._perceptron.export_state()
        return {"arguments": self._arguments(), "core": state, "feature_names": names}, nested("core", arrays)

    def _arguments(self) -> Parameters:
        names = ("prior_scale", "intercept_scale", "covariance", "forgetting", "drift", "outliers")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = cls(**parameters["arguments"])
        perceptron = type(model._perceptron).from_state(parameters["core"], under("core", arrays))
        if perceptron.bias != 1:
            raise ValueError("feature names and weights do not match")
        model._columns = Columns.from_plain(parameters["feature_names"], perceptron.n_features)
        model._perceptron = perceptron
        return model


def _grown(small: Any, large: Any) -> Any:
    """The model ``large``, so far at its prior, with all that ``small`` has learned about the first weights."""
    return small.with_members([_grown_member(*pair) for pair in zip(small.members, large.members, strict=True)])


def _grown_member(small: BayesianPerceptron, large: BayesianPerceptron) -> BayesianPerceptron:
    small_parameters, small_arrays = small.export_state()
    parameters, arrays = large.export_state()
    if "covariance" in small_arrays:  # and not its root: a prior's root is diagonal
        arrays["covariance"] = np.tril(arrays.pop("root") ** 2)
    for name, array in small_arrays.items():
        first = tuple(slice(extent) for extent in array.shape)
        arrays[name][first] = array
    parameters["belief"] = small_parameters["belief"]
    return BayesianPerceptron.from_state(parameters, arrays)


class PerceptronClassifier(_NamedFeatures, base.MiniBatchClassifier):
    """Bayesian perceptron for the labels True and False; for other labels and more classes use `SoftmaxClassifier`.

    A value must be a finite number: None and NaN raise an error. A feature that a row leaves out counts as zero. A
    feature that was never learned adds the uncertainty about its weight to the variance of a prediction.

    Parameters
    ----------
    prior_scale
        Standard deviation of a weight before the first row.
    covariance
        `"full"` keeps all correlations between weights, `"diagonal"` none, for very many features.
    forgetting
        In (0, 1]. Below 1 older rows count less, for labels that change.
    intercept_scale
        Standard deviation of the intercept before the first row; the default is wide enough for rare labels.
    drift
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. `"auto"` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted row
        by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs `forgetting=1`.
    outliers
        Share of the labels that are wrong, in [0, 0.5). Above 0 it is learned, starting from this value, and each row
        is weighted by the probability that its label is right.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import PerceptronClassifier
    >>> model = preprocessing.StandardScaler() | PerceptronClassifier()
    >>> loss = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.26
    """

    def __init__(
        self,
        prior_scale: float = 1.0,
        covariance: str = "full",
        forgetting: float = 1.0,
        intercept_scale: float = 4.0,
        drift: float | str = 0.0,
        outliers: float = 0.0,
    ) -> None:
        self.prior_scale: float = as_nonnegative(prior_scale, "prior_scale")
        self.intercept_scale: float = as_positive(intercept_scale, "intercept_scale")
        self.covariance = covariance
        self.forgetting = forgetting
        self.drift: float | str = as_drift(drift)
        self.outliers: float = as_outliers(outliers)
        self._start()

    def _new_perceptron(self, n_features: int) -> BayesianPerceptron | Mixture:
        variances = prior_variances(n_features, 1, self.prior_scale, self.intercept_scale)
        return with_drift(
            BayesianPerceptron,
            n_features,
            cov=variances,
            covariance=self.covariance,
            forgetting=self.forgetting,
            drift=self.drift,
            outliers=self.outliers,
        )

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row and its label.

        ``w`` is the weight of the row: 2 counts as if it had come twice, 0.5 raises its likelihood to the power 0.5,
        and 0 leaves it out.
        """
        label, weight = as_label(y), as_weight(w)
        if weight:
            self._learn_row(x, label, weight)

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in the order given."""
        self._learn_rows(X, y)

    def outlier_probability_one(self, x: Mapping[Any, Any], y: Any) -> float:
        """Probability that the label of a row is wrong, by the current belief; 0 with ``outliers=0``."""
        return self._distrust(x, as_label(y))

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of False and True."""
        p = float(self._predict_row(x).mean)
        return {False: 1.0 - p, True: p}

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities of False and True, one column each."""
        frame = dataframe.into_frame(X)
        p = self._predict_frame(frame)
        return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=frame)

    def predict_many(self, X: Any) -> Any:
        """The more probable label of each row."""
        frame = dataframe.into_frame(X)
        return dataframe.to_native_series(self._predict_frame(frame) > 0.5, name=None, like=frame)


class PerceptronRegressor(StandardizedTargets, _NamedFeatures, base.MiniBatchRegressor):
    """Bayesian linear regression, or a perceptron with another activation; the noise is learned too.

    Features and targets should have a standard deviation of about 1: scale the features, and use `standardize=True` for
    the targets. The mean of the targets matters less, because the intercept has a wide prior.

    A value must be a finite number: None and NaN raise an error. A feature that a row leaves out counts as zero. A
    feature that was never learned adds the uncertainty about its weight to the variance of a prediction.

    Parameters
    ----------
    prior_scale
        Standard deviation of a weight before the first row.
    noise
        Variance of the targets' noise, or `"learn"`. For negative binomial counts their dispersion.
    activation
        As for `onepass.BayesianPerceptron`; `"exp"` for counts. Do not centre the targets unless it is `"linear"`.
    covariance
        `"full"` keeps all correlations between weights, `"diagonal"` none, for very many features.
    forgetting
        In (0, 1]. Below 1 older rows count less, for relations that change.
    intercept_scale
        Standard deviation of the intercept before the first row. By default 100 for the linear perceptron, 4 for other
        activations and for the log rate of counts, and 1 for `"exp"` with Gaussian noise.
    drift
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. `"auto"` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted row
        by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs `forgetting=1`.
    outliers
        Share of the targets that can't be trusted, in [0, 0.5). Above 0 it is learned, starting from this value, and
        each row is weighted by the probability that its target can be trusted.
    observation
        `"gaussian"` for numbers; with `activation="exp"` also `"poisson"` for counts, or `"negative_binomial"` for
        counts that vary more than a Poisson distribution allows. `"auto"` is `"negative_binomial"` with
        `activation="exp"` and `noise="learn"`, and `"gaussian"` otherwise. Counts are not scaled.
    standardize
        Subtract the mean of the targets so far and divide by their standard deviation so far, for targets in any units.
        River's `TargetStandardScaler` does the same, but has no `with_dist`. Predictions are in the targets' own units;
        the scales of the prior, `noise` and `log_evidence` are those of standardised targets. With `"relu"` and
        `"leaky_relu"` targets are only divided by their size; with other activations, and for counts, they can't be
        standardised.

    Examples
    --------
    >>> from onepass.river import PerceptronRegressor
    >>> model = PerceptronRegressor(noise=0.01)
    >>> for x in range(1, 6):
    ...     model.learn_one({"x": x}, 2.0 * x + 1.0)
    >>> model.predict_one({"x": 7}, with_dist=True)
    𝒩(μ=14.992, σ=0.167)

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | PerceptronRegressor(standardize=True)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.586719
    """

    def __init__(
        self,
        prior_scale: float = 1.0,
        noise: Any = "learn",
        activation: str = "linear",
        covariance: str = "full",
        forgetting: float = 1.0,
        intercept_scale: float | None = None,
        drift: float | str = 0.0,
        outliers: float = 0.0,
        observation: str = "auto",
        standardize: bool = False,
    ) -> None:
        self.prior_scale: float = as_nonnegative(prior_scale, "prior_scale")
        self.intercept_scale: float | None = (
            None if intercept_scale is None else as_positive(intercept_scale, "intercept_scale")
        )
        self.observation: str = one_of(observation, ("auto", *_OBSERVATIONS), "observation")
        self.noise = noise
        self.activation = activation
        self.covariance = covariance
        self.forgetting = forgetting
        self.drift: float | str = as_drift(drift)
        self.outliers: float = as_outliers(outliers)
        self._start_units(standardize)
        if standardize and not self._can_standardize:
            raise ValueError(
                "standardize=True needs observation='gaussian' and activation='linear', 'relu' or 'leaky_relu', got "
                f"{self._observation!r} and {activation!r}; pass standardize=False"
            )
        self._start()

    def _new_perceptron(self, n_features: int) -> BayesianPerceptron | Mixture:
        observation = self._observation
        variances = prior_variances(n_features, 1, self.prior_scale, self.intercept_scale or self._usual_intercept)
        return with_drift(
            BayesianPerceptron,
            n_features,
            self.activation,
            cov=variances,
            observation=observation,
            noise=None if not named(observation).takes_noise and self.noise == "learn" else self.noise,
            covariance=self.covariance,
            forgetting=self.forgetting,
            drift=self.drift,
            outliers=self.outliers,
        )

    @property
    def _observation(self) -> str:
        if self.observation != "auto":
            return self.observation
        return NegativeBinomial.name if self._is_exponential and self.noise == "learn" else Gaussian.name

    @property
    def _is_exponential(self) -> bool:
        return as_activation(self.activation) == Exponential()

    @property
    def _usual_intercept(self) -> float:
        """Standard deviation that the intercept has before the first row, if the user names none."""
        if named(self._observation).is_gaussian and self._is_exponential:
            return _EXPONENTIAL
        return _LINEAR if self._centres_targets else _BENT

    @property
    def _centres_targets(self) -> bool:
        return as_activation(self.activation) == as_activation("linear")

    @property
    def _can_standardize(self) -> bool:
        scaled = [as_activation(name) for name in ("linear", "relu", "leaky_relu")]
        return named(self._observation).is_gaussian and as_activation(self.activation) in scaled

    @property
    def weights(self) -> dict[Any, float]:
        """Mean weight of each feature, in the units of the targets."""
        return {name: weight * self._units.scale for name, weight in super().weights.items()}

    def _arguments(self) -> Parameters:
        own = {"noise": self.noise, "activation": self.activation, "observation": self.observation}
        return {**super()._arguments(), **own, "standardize": self.standardize}

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        return ({**parameters, "units": self._units_to_plain()} if self.standardize else parameters), arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = super().from_state(parameters, arrays)
        return model._take_units(parameters["units"]) if model.standardize else model

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row and its target.

        ``w`` is the weight of the row: 2 counts as if it had come twice, 0.5 raises its likelihood to the power 0.5,
        and 0 leaves it out.
        """
        self._learn_target(x, as_target(y), as_weight(w))

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in the order given."""
        if not self.standardize:
            self._learn_rows(X, y)
            return
        frame = dataframe.into_frame(X)
        Columns.check_frame(frame)
        targets = [as_target(target) for target in dataframe.into_series(y).to_numpy()]
        for row, target in zip(dataframe.to_numpy(frame).tolist(), targets, strict=True):
            self._learn_target(dict(zip(frame.columns, row, strict=True)), target, 1.0)

    def outlier_probability_one(self, x: Mapping[Any, Any], y: Any) -> float:
        """Probability that the target of a row can't be trusted, by the current belief; 0 with ``outliers=0``."""
        return self._distrust(x, self._units.standardized(as_target(y)))

    def predict_one(self, x: Mapping[Any, Any], with_dist: bool = False) -> Any:
        """Expected target; with ``with_dist`` a Gaussian with the mean and variance of a new target."""
        seen = self._units.undo(self._predict_row(x))
        return gaussian(seen) if with_dist else float(seen.mean)

    def predict_many(self, X: Any) -> Any:
        """Expected target of each row."""
        frame = dataframe.into_frame(X)
        mean = self._predict_frame(frame) * self._units.scale + self._units.centre
        return dataframe.to_native_series(mean, name=None, like=frame)
