"""Regressors for River: the perceptron, which is Bayesian linear regression by default, and the network."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from river import base
from river.utils import dataframe

from onepass._limits import INTERVALS
from onepass._typing import FloatArray
from onepass._validation import as_flag, one_of
from onepass.activations import Exponential, as_activation
from onepass.files.state import Parameters
from onepass.integrations.river.base import NamedModel, NetworkArguments
from onepass.integrations.river.cores import Networks, Perceptrons
from onepass.integrations.river.distributions import PredictedNumber
from onepass.integrations.river.features import as_target, as_weight
from onepass.integrations.river.targets import Units
from onepass.likelihoods import Gaussian, Likelihood, NegativeBinomial, likelihood_names, named
from onepass.models.adaptive import track
from onepass.models.distribution import LinearUnits
from onepass.models.tracking import QuantileTracker

__all__ = ["MLPRegressor", "PerceptronRegressor"]

# Prior standard deviations of the intercept. A linear output finds targets far from zero by it. One with a kink or with
# limits has no way back from where it is flat, and the exponential of a wide Gaussian has a mean beyond any target.
_LINEAR, _BENT, _EXPONENTIAL = 100.0, 4.0, 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class _Regressor(NamedModel, base.MiniBatchRegressor):
    """What regressors share: targets are learned as they are, or in `Units`."""

    observation: str = "auto"
    noise: float | str = "learn"
    intervals: str = "model"
    standardize: bool = False

    def __post_init__(self) -> None:
        as_flag(self.standardize, "standardize")
        one_of(self.intervals, INTERVALS, "intervals")
        self._tracker = QuantileTracker() if self.intervals == "adaptive" else None
        one_of(self.observation, ("auto", *likelihood_names(self._can_learn)), "observation")
        self._units = Units(self._centres)
        super().__post_init__()

    @staticmethod
    def _can_learn(kind: type[Likelihood]) -> bool:
        """Whether the cores can learn such targets."""
        return not kind.is_label

    @property
    def _kind(self) -> type[Likelihood]:
        """What a target is, chosen by the user or for the user."""
        return Gaussian if self.observation == "auto" else named(self.observation)

    @property
    def _centres(self) -> bool:
        """Whether targets are centred where they are standardised."""
        return True

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row and its target.

        ``w`` is the weight of the row: 2 counts as if it had come twice, 0.5 raises its likelihood to the power 0.5,
        and 0 leaves it out.
        """
        target, weight = as_target(y), as_weight(w)
        if weight == 0.0:
            return
        if not self.standardize:
            self._learn_row(x, target, weight)
            return
        for own in self._in_units(target, weight):
            self._learn_row(x, own, weight)

    def _batches(self, given: list[Any], weights: FloatArray) -> Iterator[tuple[Any, Any]]:
        numbers, targets = np.flatnonzero(weights), np.array([as_target(y) for y in given])
        if not self.standardize:
            yield numbers, targets[numbers]
            return
        for i in numbers:
            for own in self._in_units(float(targets[i]), float(weights[i])):
                yield i, own

    def _in_units(self, target: float, weight: float) -> Iterator[float]:
        """The target in its units, which move after it has been learned; not if it fails, nor if it is set aside."""
        units, before = self._units.with_target(target, weight), self.n_set_aside
        # What is set aside must not change the units, in which it would not even be far.
        used = self._units if self._units.is_far(target) else units
        yield (target - used.centre) / used.scale
        if self.n_set_aside == before:
            self._units = units

    def _learn_complete(self, rows: FloatArray, targets: Any, weights: Any, **options: Any) -> None:
        if self._tracker is None:
            super()._learn_complete(rows, targets, weights, **options)
            return
        seen, _ = self._core.predict_score_learn(rows, targets, sample_weight=weights, **options)
        track(self._tracker, seen, targets, None if weights is None else np.atleast_1d(weights))

    def _copied(self) -> dict[str, Any]:
        return {} if self._tracker is None else {"_tracker": self._tracker.copy()}

    def predict_one(self, x: Mapping[Any, Any], with_dist: bool = False) -> Any:
        """Expected target; with ``with_dist`` the `PredictedNumber` of a new target."""
        seen, units = self._predict_row(x), self._units
        if not with_dist:
            return float(seen.mean) * units.scale + units.centre
        if self.standardize:
            seen = seen.in_units(LinearUnits(units.centre, units.scale))
        return PredictedNumber(seen if self._tracker is None else seen.with_tracked(self._tracker.next))

    def predict_many(self, X: Any) -> Any:
        """Expected target of each row."""
        frame = dataframe.into_frame(X)
        means = self._predict_frame(frame).mean if len(frame) else np.empty(0)
        return dataframe.to_native_series(means * self._units.scale + self._units.centre, name=None, like=frame)

    def outlier_probability_one(self, x: Mapping[Any, Any], y: Any) -> float:
        """Probability that the target of a row can't be trusted, by the current belief; 0 with ``outliers=0``."""
        return self._distrust(x, (as_target(y) - self._units.centre) / self._units.scale)

    def _own_state(self) -> Parameters:
        tracked = {} if self._tracker is None else self._tracker.to_arrays()
        return {"units": list(self._units[1:]), "tracker": {name: own.tolist() for name, own in tracked.items()}}

    def _restore(self, parameters: Parameters) -> None:
        self._units = Units.from_plain(self._units.centres, parameters["units"])
        if self._tracker is not None:
            given = {name: np.array(own, dtype=np.float64) for name, own in parameters["tracker"].items()}
            self._tracker = QuantileTracker.from_arrays(given)


@dataclass(eq=False, repr=False)
class PerceptronRegressor(_Regressor):
    """Bayesian linear regression, or a perceptron with another activation; the noise is learned too.

    The arguments are those of `onepass.BayesianPerceptronRegressor`, apart from `standardize`. Features and targets
    should have a standard deviation of about 1: put `preprocessing.StandardScaler` before the model, and use
    `standardize=True` for the targets. Their mean matters less, because the intercept has a wide prior. A feature that
    was never learned adds the uncertainty about its weight to the variance of a prediction.

    Parameters
    ----------
    activation
        As for `onepass.BayesianPerceptron`; `"exp"` for counts. Do not centre the targets unless it is `"linear"`.
    observation
        `"gaussian"` for numbers; with `activation="exp"` also `"poisson"` for counts, or `"negative_binomial"` for
        counts that vary more than a Poisson distribution allows. `"auto"` is `"negative_binomial"` with
        `activation="exp"` and `noise="learn"`, and `"gaussian"` otherwise. Counts are not scaled.
    noise
        Variance of the targets' noise, or `"learn"`. For negative binomial counts their dispersion.
    noise_start
        First estimate of a learned variance; by default a tenth of the weights' prior variance.
    prior_scale
        Standard deviation of a weight before the first row.
    intercept_scale
        That of the intercept; None is `prior_scale`. `"auto"` is 100 for the linear perceptron, 4 for other activations
        and for the log rate of counts, and 1 for `"exp"` with Gaussian noise.
    fit_intercept
        Whether there is an intercept.
    covariance
        `"full"` keeps all correlations between weights, `"diagonal"` none, for very many features.
    outliers
        Share of the targets that can't be trusted, in [0, 0.5). Above 0 it is learned, starting from this value, and
        each row is weighted by the probability that its target can be trusted.
    forgetting
        In (0, 1]. Below 1 older rows count less, for relations that change.
    drift
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. `"auto"` learns six hypotheses side by side, weighted row by row by how well they predict. It takes
        seven to ten times as long as a fixed rate, and needs `forgetting=1`.
    intervals
        `"adaptive"` tracks where targets really fall, and lets the intervals of `with_dist` hold however the stream
        changes; with `"model"` they are those of the model.
    standardize
        Subtract the mean of the targets so far and divide by their standard deviation so far, for targets in any units;
        features are left to `preprocessing.StandardScaler`. River's `TargetStandardScaler` does the same, but has no
        `with_dist`. The scales of the prior, `noise` and `log_evidence` are those of standardised targets. With
        `"relu"` and `"leaky_relu"` targets are only divided by their size; with other activations, and for counts, they
        can't be standardised.
    missing
        `"error"` refuses None and NaN, and a feature that a row leaves out counts as zero. With `"mean"` all of these
        are unknown, and replaced by the mean of the feature so far, as uncertain as the feature varies.

    Examples
    --------
    >>> from onepass.river import PerceptronRegressor
    >>> model = PerceptronRegressor(noise=0.01)
    >>> for x in range(1, 6):
    ...     model.learn_one({"x": x}, 2.0 * x + 1.0)
    >>> model.predict_one({"x": 7}, with_dist=True)
    PredictedNumber(mu=14.992, sigma=0.167)

    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | PerceptronRegressor(standardize=True)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.586719
    """

    activation: str = "linear"
    _: KW_ONLY
    noise_start: float | None = None
    intercept_scale: float | str | None = "auto"
    fit_intercept: bool = True
    covariance: str = "full"

    def _new_family(self) -> Perceptrons:
        kind = self._kind
        if self.standardize and not (kind.is_gaussian and self._activation_is("linear", "relu", "leaky_relu")):
            raise ValueError(
                "standardize=True needs observation='gaussian' and activation='linear', 'relu' or 'leaky_relu', got "
                f"{kind.name!r} and {self.activation!r}; pass standardize=False"
            )
        noise = None if not kind.takes_noise and self.noise == "learn" else self.noise
        options = {"observation": kind.name, "noise": noise, "noise_start": self.noise_start}
        own = self._usual_intercept if self.intercept_scale == "auto" else self.intercept_scale
        return Perceptrons(self, intercept_scale=own, **options)

    @staticmethod
    def _can_learn(kind: type[Likelihood]) -> bool:
        return not (kind.is_label or kind.needs_network)

    @property
    def _kind(self) -> type[Likelihood]:
        counts = self.observation == "auto" and self.noise == "learn" and self._is_exponential
        return NegativeBinomial if counts else super()._kind

    @property
    def _centres(self) -> bool:
        return self._activation_is("linear")

    @property
    def _usual_intercept(self) -> float:
        """Standard deviation that the intercept has before the first row, if the user names none."""
        if self._kind.is_gaussian and self._is_exponential:
            return _EXPONENTIAL
        return _LINEAR if self._centres else _BENT

    @property
    def _is_exponential(self) -> bool:
        return as_activation(self.activation) == Exponential()

    def _activation_is(self, *names: str) -> bool:
        return as_activation(self.activation) in [as_activation(name) for name in names]

    @property
    def weights(self) -> dict[Any, float]:
        """Mean weight of each feature, in the units of the targets."""
        return self._weights(self._units.scale)


@dataclass(eq=False, repr=False)
class MLPRegressor(NetworkArguments, _Regressor):
    """Network of Bayesian perceptrons for numbers or counts; there is no learning rate and no optimiser to choose.

    The arguments are those of `onepass.BayesianMLPRegressor`, apart from `standardize`. Features and targets should
    have a scale of about 1: put `preprocessing.StandardScaler` before the model, and use `standardize=True` for the
    targets; do not scale counts. New features may come at any time; in predictions those never learned count as zero.

    Parameters
    ----------
    observation
        `"gaussian"` for numbers, which is what `"auto"` stands for, or `"heteroscedastic"` where their noise depends on
        the features; `"poisson"` or `"negative_binomial"` for counts, whose rate is the exponential of the output.
    noise
        Variance of the targets' noise, or the dispersion of negative binomial counts; `"learn"` estimates it from the
        rows.
    intercept_scale
        Standard deviation of the output's bias before the first row. None uses the network's prior, which is made for
        scaled targets, times `prior_scale`.
    hidden_layer_sizes, activation, prior_scale, covariance, members, random_state, missing
        As for `MLPClassifier`.
    outliers, forgetting, drift, intervals, standardize
        As for `PerceptronRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import MLPRegressor
    >>> model = preprocessing.StandardScaler() | MLPRegressor(hidden_layer_sizes=(20,), standardize=True)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> print(f"{error.get():.2f}")
    0.37
    """

    intercept_scale: float | None = field(default=None, kw_only=True)

    def _new_family(self) -> Networks:
        kind = self._kind
        if self.standardize and not kind.is_numeric:
            raise ValueError(
                f"standardize=True needs observation='gaussian', got {kind.name!r}; pass standardize=False for counts"
            )
        return self._networks(observation=kind.name, noise=self.noise)
