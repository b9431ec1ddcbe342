"""Likelihoods of networks: the probability of a target given several outputs.

A likelihood turns the belief ``N(mean, cov)`` about a network's outputs and a target into an `OutputMatch`, and the
outputs into predictions. Its formulas are compiled, see `onepass.engine.vector_matches`. Nothing here depends on
weights or layers. To add one, write its compiled class there and a subclass of `OutputLikelihood` here, with
`register`.
"""

from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri, softmax

from onepass._typing import FloatArray
from onepass._validation import NO_TARGET, as_floats, as_floats_or_nan, one_of
from onepass.activations import Exponential, Sigmoid
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.count_matches import DISPERSION_START, DISPERSION_START_WEIGHT
from onepass.engine.vector_matches import (
    BernoulliOutput,
    CountOutput,
    GaussianOutputs,
    HeteroscedasticOutputs,
    NoiseState,
    VectorLikelihood,
)
from onepass.likelihoods.counts import (
    NegativeBinomial,
    Poisson,
    check_counts,
    count_interval,
    rate_moments,
)

__all__ = [
    "BernoulliLabel",
    "CategoricalClasses",
    "GaussianNumbers",
    "HeteroscedasticNumbers",
    "LogNoise",
    "NegativeBinomialCounts",
    "OutputLikelihood",
    "OutputMatch",
    "PoissonCounts",
    "Predictive",
    "choose_outputs",
    "noise_models",
    "output_names",
    "register",
]

_SIGMOID = Sigmoid()
_EXPONENTIAL = Exponential()


class OutputMatch(NamedTuple):
    """The update of a belief ``N(mean, cov)`` about the outputs by a target.

    With ``c`` the covariance of the weights and the outputs, the step is ``c score`` and ``-c information c'``. A
    Gaussian site ``exp(h'o - o'precision o/2)`` on the outputs ``o``, with ``h = precision mean + shift``, makes the
    same step; refinement stores the site to remove it later.
    """

    log_density: float
    score: FloatArray  # (K,)
    information: FloatArray  # (K, K)
    precision: FloatArray  # (K, K)
    shift: FloatArray  # (K,)


class Predictive(NamedTuple):
    """Mean of a target, the variance that comes from uncertain weights, and the rest of it; each ``(n, K)``."""

    mean: FloatArray
    var: FloatArray
    rest: FloatArray


class LogNoise(NamedTuple):
    """Belief about the log of a noise variance before any data, for an input like those that are learned."""

    mean: float
    var: float


LOG_NOISE = LogNoise(float(np.log(0.02)), 3.25)
"""That of standardised targets."""


class OutputLikelihood:
    """How the targets of a network with ``n_outputs`` outputs come about; see the module for what a subclass adds."""

    name: ClassVar[str]
    """In the argument ``observation``, and in files."""
    noise_model: ClassVar[str | None] = None
    """The word for it in the argument ``noise``, where that chooses among likelihoods of one name."""
    compiled_class: ClassVar[type[VectorLikelihood]]
    is_numeric: ClassVar[bool] = False
    """Whether targets are numbers with noise, and not labels."""
    is_count: ClassVar[bool] = False
    """Whether targets are counts."""
    is_label: ClassVar[bool] = False
    """Whether targets are labels or classes, whose interval is that of a probability."""

    def __init__(self, n_outputs: int, log_noise: LogNoise = LOG_NOISE) -> None:
        self.check_outputs(n_outputs)
        self.n_outputs = n_outputs
        self.compiled: VectorLikelihood = self.make_compiled(log_noise)

    def make_compiled(self, log_noise: LogNoise) -> VectorLikelihood:
        """The object whose methods compiled loops call."""
        return self.compiled_class(self.n_outputs)

    @property
    def size(self) -> int:
        """How many outputs the network needs: those that predict, and any for the noise."""
        return int(self.compiled.size)

    def check_outputs(self, n_outputs: int) -> None:
        """Raise a ValueError where the number of outputs does not suit the targets."""

    def bias_std(self, intercept_scale: float | None) -> float | None:
        """Prior standard deviation of every output's bias for a user's ``intercept_scale``."""
        return intercept_scale

    def start_noise(self, noise: float | None, calibrate: bool, outliers: float) -> NoiseState:
        """State of the noise before the first row; a ``noise`` of None is learned."""
        return NoiseState.start(self.n_outputs, noise, calibrate, outliers)

    def check(self, targets: FloatArray) -> None:
        """Raise a ValueError for targets that are impossible; by default every finite number is allowed."""

    def as_targets(self, value: Any, n_rows: int, single: bool) -> FloatArray:
        """Check and shape a user's targets: ``(n_rows, columns)``, one column of labels.

        Of several columns some may be NaN: these were not observed.
        """
        columns = int(self.compiled.n_columns)
        targets = as_floats_or_nan(value, "y") if columns > 1 else as_floats(value, "y", NO_TARGET)
        allowed: list[tuple[int, ...]] = [(n_rows,)] if columns == 1 else []
        allowed += [(n_rows, columns), *([(columns,)] if single else []), *([()] if single and columns == 1 else [])]
        if targets.shape not in allowed:
            shapes = " or ".join(str(shape) for shape in dict.fromkeys(allowed))
            raise ValueError(f"y must have shape {shapes}, got shape {targets.shape}")
        targets = np.ascontiguousarray(targets.reshape(n_rows, columns))
        self.check(targets)
        return targets

    def moment_match(self, mean: FloatArray, cov: FloatArray, target: FloatArray, noise: NoiseState) -> OutputMatch:
        """Match one target, ``(columns,)``."""
        mean, cov, target = (np.ascontiguousarray(values, dtype=np.float64) for values in (mean, cov, target))
        return OutputMatch(*self.compiled.moment_match(mean, cov, target, noise))

    def score_rows(self, means: FloatArray, covs: FloatArray, targets: FloatArray, noise: NoiseState) -> FloatArray:
        """Log density (or probability) of each row's target, ``(n,)``."""
        return np.asarray(self.compiled.score_rows(means, covs, targets, noise))

    def predictive(self, mean: FloatArray, var: FloatArray, noise: FloatArray, scale: FloatArray) -> Predictive:
        """What is predicted from the compiled ``records``, each ``(n, K)``."""
        raise NotImplementedError

    def interval(self, prediction: Any, level: float) -> tuple[Any, Any]:
        """Central interval of a new target; for labels of their probability."""
        raise NotImplementedError

    def response(self, outputs: FloatArray) -> FloatArray:
        """What known outputs, ``(..., K)``, expect of a target; for labels their probabilities."""
        raise NotImplementedError


Registered = TypeVar("Registered", bound=type[OutputLikelihood])
_REGISTERED: list[type[OutputLikelihood]] = []


def register(kind: Registered) -> Registered:
    """Let networks choose a likelihood by its name, and by its noise model where it has one."""
    _REGISTERED.append(kind)
    return kind


def output_names() -> tuple[str, ...]:
    """Names of all likelihoods that a network can have."""
    return tuple(dict.fromkeys(kind.name for kind in _REGISTERED))


def noise_models() -> tuple[str, ...]:
    """Words for a noise that is no fixed number: learned as one for all rows, or by a likelihood of its own."""
    return ("learn", *(kind.noise_model for kind in _REGISTERED if kind.noise_model is not None))


def choose_outputs(observation: str, noise: float | str) -> type[OutputLikelihood]:
    """Choose the likelihood of a name; some have several, by the model of their noise."""
    one_of(observation, output_names(), "observation")
    for kind in _REGISTERED:
        if kind.noise_model is not None and kind.noise_model == noise:
            if kind.name != observation:
                raise ValueError(f"noise={noise!r} needs observation={kind.name!r}, got observation={observation!r}")
            return kind
    return next(kind for kind in _REGISTERED if kind.name == observation and kind.noise_model is None)


@register
class GaussianNumbers(OutputLikelihood):
    """Numbers with independent Gaussian noise, the same for all rows."""

    name = "gaussian"
    compiled_class: ClassVar[type[VectorLikelihood]] = GaussianOutputs
    is_numeric = True

    def score_rows(self, means: FloatArray, covs: FloatArray, targets: FloatArray, noise: NoiseState) -> FloatArray:
        """Scores with all variances times the predictive scale."""
        scaled = noise.unscaled()
        scaled.noise[:] *= noise.scale
        root = np.sqrt(noise.scale)
        return np.asarray(self.compiled.score_rows(means, covs * np.outer(root, root), targets, scaled))

    def predictive(self, mean: FloatArray, var: FloatArray, noise: FloatArray, scale: FloatArray) -> Predictive:
        """The outputs' own moments, all variances times the predictive scale."""
        return Predictive(mean, scale * var, scale * noise)

    def interval(self, prediction: Any, level: float) -> tuple[Any, Any]:
        """Take the predictive distribution for Gaussian."""
        half_width = ndtri(0.5 + level / 2) * np.sqrt(prediction.var + prediction.noise_var)
        return prediction.mean - half_width, prediction.mean + half_width

    def response(self, outputs: FloatArray) -> FloatArray:
        """The outputs themselves."""
        return outputs


@register
class HeteroscedasticNumbers(GaussianNumbers):
    """Numbers whose noise depends on the input: every output has a second one, the log of its noise's variance."""

    noise_model: ClassVar[str | None] = "heteroscedastic"
    compiled_class: ClassVar[type[VectorLikelihood]] = HeteroscedasticOutputs

    def make_compiled(self, log_noise: LogNoise) -> VectorLikelihood:
        """With the prior of the log noise, which bounds what is predicted of it."""
        return HeteroscedasticOutputs(self.n_outputs, *log_noise)

    def score_rows(self, means: FloatArray, covs: FloatArray, targets: FloatArray, noise: NoiseState) -> FloatArray:
        """Scores with all variances times the predictive scale."""
        n = self.n_outputs
        root, shifted = np.ones(2 * n), means.copy()
        root[:n] = np.sqrt(noise.scale)
        shifted[:, n:] += np.log(noise.scale)
        return np.asarray(self.compiled.score_rows(shifted, covs * np.outer(root, root), targets, noise.unscaled()))


class _Labels(OutputLikelihood):
    """What labels and classes have in common: whole numbers, and probabilities that are sigmoids of log odds."""

    is_label = True
    largest: int

    def check(self, targets: FloatArray) -> None:
        """Take whole numbers from 0 to the largest label."""
        bad = (targets < 0) | (targets > self.largest) | ((targets != np.floor(targets)) & ~np.isnan(targets))
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            place = row if targets.shape[1] == 1 else (row, column)
            raise ValueError(f"y must hold labels 0 to {self.largest}, got {targets[row, column]:g} at index {place}")

    def predictive(self, mean: FloatArray, var: FloatArray, noise: FloatArray, scale: FloatArray) -> Predictive:
        """Probabilities, from the log odds' moments."""
        output = _SIGMOID.moments(mean, var)
        p = self.normalised(output.mean)
        return Predictive(p, output.var, np.maximum(p * (1.0 - p) - output.var, 0.0))

    def normalised(self, probabilities: FloatArray) -> FloatArray:
        """Probabilities that sum to 1 where they are of all classes."""
        return probabilities

    def interval(self, prediction: Any, level: float) -> tuple[Any, Any]:
        """The exact quantiles of the sigmoid, since it rises."""
        half_width = ndtri(0.5 + level / 2) * np.sqrt(prediction.pre_var)
        low, high = (_SIGMOID(prediction.pre_mean + side * half_width)[()] for side in (-1.0, 1.0))
        return low, high


@register
class BernoulliLabel(_Labels):
    """A label 0 or 1; with several outputs one for each, independent given the outputs."""

    name = "bernoulli"
    compiled_class: ClassVar[type[VectorLikelihood]] = BernoulliOutput
    largest = 1

    def response(self, outputs: FloatArray) -> FloatArray:
        """The probabilities of a 1."""
        return _SIGMOID(outputs)


@register
class CategoricalClasses(_Labels):
    """One of as many classes as there are outputs."""

    name = "categorical"
    compiled_class: ClassVar[type[VectorLikelihood]] = CategoricalOutputs

    @property
    def largest(self) -> int:  # type: ignore[override]
        """The last class."""
        return self.n_outputs - 1

    def check_outputs(self, n_outputs: int) -> None:
        """Take at least two classes."""
        if n_outputs < 2:
            raise ValueError(f"n_outputs must be the number of classes, at least 2, got {n_outputs}")

    def bias_std(self, intercept_scale: float | None) -> float | None:
        """By this the log odds between two classes, a difference of two outputs, have the deviation asked for."""
        return None if intercept_scale is None else intercept_scale / np.sqrt(2.0)

    def normalised(self, probabilities: FloatArray) -> FloatArray:
        """Probabilities of all classes."""
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))

    def response(self, outputs: FloatArray) -> FloatArray:
        """The probabilities of the classes."""
        return np.asarray(softmax(outputs, axis=-1))


@register
class NegativeBinomialCounts(OutputLikelihood):
    """A count whose rate is the exponential of the only output; its dispersion is learned, or fixed as the noise."""

    name: ClassVar[str] = NegativeBinomial.name
    compiled_class: ClassVar[type[VectorLikelihood]] = CountOutput
    is_count = True

    def check_outputs(self, n_outputs: int) -> None:
        """Take one output."""
        if n_outputs != 1:
            raise ValueError(f"n_outputs must be 1 for observation={self.name!r}, got {n_outputs}")

    def start_noise(self, noise: float | None, calibrate: bool, outliers: float) -> NoiseState:
        """The dispersion, of which little is known before the first row."""
        state = NoiseState.start(1, DISPERSION_START if noise is None else noise, calibrate, outliers)
        state.noise_weight[:] = DISPERSION_START_WEIGHT if noise is None else 0.0
        return state

    def check(self, targets: FloatArray) -> None:
        """Take whole numbers from 0 on."""
        check_counts(targets, self.name)

    def predictive(self, mean: FloatArray, var: FloatArray, noise: FloatArray, scale: FloatArray) -> Predictive:
        """Moments of the rate, and of a count around it."""
        rate = rate_moments(mean, var)
        return Predictive(rate.mean, rate.var, NegativeBinomial(noise).noise_var(rate))

    def interval(self, prediction: Any, level: float) -> tuple[Any, Any]:
        """Quantiles of the count mixed over the rate."""
        alone = type(prediction)(*(np.asarray(part)[None] for part in prediction))
        return count_interval(np.ones(1), alone, level)

    def response(self, outputs: FloatArray) -> FloatArray:
        """The rate."""
        return _EXPONENTIAL(outputs)


@register
class PoissonCounts(NegativeBinomialCounts):
    """The same without dispersion."""

    name: ClassVar[str] = Poisson.name

    def start_noise(self, noise: float | None, calibrate: bool, outliers: float) -> NoiseState:
        """No dispersion, and none to be learned."""
        if noise is not None:
            raise ValueError(
                f"noise can be given only with observation='gaussian' or {NegativeBinomial.name!r}, got noise="
                f"{noise!r} with observation={self.name!r}"
            )
        return super().start_noise(0.0, calibrate, outliers)
