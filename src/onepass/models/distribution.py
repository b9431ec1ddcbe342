"""`Prediction`: the predictive distribution of targets, the same object wherever something is predicted."""

from collections.abc import Callable, Sequence
from math import log
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator, as_share
from onepass.activations import Activation
from onepass.likelihoods import Likelihood
from onepass.likelihoods.mixtures import Components
from onepass.models.prediction import PredictedMoments

__all__ = ["Family", "LinearUnits", "Mixed", "Prediction", "Units", "before_each_row", "no_label_interval"]

_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(64)  # of a standard normal variable
_SHARES = _SHARES / _SHARES.sum()


class Family(NamedTuple):
    """What makes distributions of moments: the likelihood of targets, and the activation of outputs."""

    likelihood: Likelihood
    activation: Activation


class Mixed(NamedTuple):
    """The parts of a mixture: weights ``(k,)`` or ``(k, n)``, moments ``(k, ...)`` and variances of log noises."""

    weights: FloatArray
    moments: PredictedMoments
    log_noise_vars: FloatArray


class Units(Protocol):
    """Targets in units other than those a model has learned: an increasing function of theirs."""

    def to_model(self, y: Any) -> Any:
        """Targets as the model has learned them."""

    def from_model(self, y: Any) -> Any:
        """What a model predicts, in the targets' own units."""

    def log_slope(self, y: Any) -> Any:
        """Log of the derivative of `to_model`."""

    @property
    def scale(self) -> Any:
        """What a standard deviation is multiplied by; None where the function is not linear."""


class LinearUnits(NamedTuple):
    """Targets ``y`` that a model has learned as ``(y - centre) / scale``."""

    centre: float
    scale: float

    def to_model(self, y: Any) -> Any:
        """Targets as the model has learned them."""
        return (y - self.centre) / self.scale

    def from_model(self, y: Any) -> Any:
        """What a model predicts, in the targets' own units."""
        return y * self.scale + self.centre

    def log_slope(self, y: Any) -> Any:
        """Minus the log of the scale, whatever the target."""
        return -log(self.scale)


class Prediction:
    """The predictive distribution of one target, or of ``n``: numbers for one row, arrays ``(n,)`` for many.

    With several outputs or classes, arrays are ``(n, K)``.

    Densities are those that models score: with ``outliers`` above 0 they include targets that can't be trusted, which
    may be anywhere. Moments, quantiles, intervals and draws are those of targets that can be trusted.

    Attributes
    ----------
    mean : float or array
        Expected target; for labels the probability of a 1, for classes that of each.
    epistemic : float or array
        Variance that comes from not knowing the weights, which more data would reduce: the paper's ``sigma_y²``.
    aleatoric : float or array
        Variance of the noise, which no data can reduce: the paper's ``epsilon``.
    pre_mean, pre_var : float or array
        Moments of the pre-activation ``a = x'w``, the weighted sum that enters the activation.

    Examples
    --------
    >>> from onepass import BayesianPerceptron
    >>> model = BayesianPerceptron(1, "linear", noise=0.25).learn([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> found = model.predict([3.0])
    >>> print(f"{found.mean:.2f}; the weights leave {found.epistemic:.2f}, the noise {found.aleatoric:.2f}")
    6.70; the weights leave 0.51, the noise 0.25
    >>> low, high = found.interval(0.9)
    >>> print(f"{low:.2f} to {high:.2f}; P(y <= 6) = {found.cdf(6.0):.2f}; median {found.ppf(0.5):.2f}")
    5.26 to 8.13; P(y <= 6) = 0.21; median 6.70
    """

    __slots__ = ("_density", "_family", "_interval_mixed", "_log_noise_var", "_mixed", "_units", "moments")

    def __init__(
        self,
        family: Family,
        moments: PredictedMoments,
        log_noise_var: Any = 0.0,
        density: Callable[[Any], Any] | None = None,
        *,
        mixed: Mixed | None = None,
        interval_mixed: Callable[[], Mixed] | None = None,
        units: Units | None = None,
    ) -> None:
        self._family = family
        self.moments = moments
        self._log_noise_var = log_noise_var
        self._density = density
        self._mixed = mixed
        self._interval_mixed = interval_mixed
        self._units = units

    # Moments.

    @property
    def mean(self) -> Any:
        """Expected target."""
        mean, units = self.moments.mean, self._units
        if units is None:
            return mean
        return units.from_model(mean) if units.scale is not None else self._expected(lambda y: y)

    @property
    def epistemic(self) -> Any:
        """The part of the variance that comes from not knowing the weights."""
        return self._part(self.moments.var)

    @property
    def aleatoric(self) -> Any:
        """The part of the variance that no data can reduce: the noise."""
        return self._part(self.moments.noise_var)

    @property
    def var(self) -> Any:
        """Variance of the target."""
        if self._units is None or self._units.scale is not None:
            return self._part(self.moments.var + self.moments.noise_var)
        mean = self.mean
        return self._expected(lambda y: np.square(y - mean))

    @property
    def std(self) -> Any:
        """Standard deviation of the target."""
        return np.sqrt(self.var)[()]

    @property
    def pre_mean(self) -> Any:
        """Mean of the pre-activation, equation (6)."""
        return self.moments.pre_mean

    @property
    def pre_var(self) -> Any:
        """Variance of the pre-activation, equation (7)."""
        return self.moments.pre_var

    @property
    def probabilities(self) -> FloatArray:
        """Probability of each class, ``(n, K)``; of labels, of a 0 and of a 1."""
        if not self._family.likelihood.is_label:
            raise AttributeError("only labels and classes have probabilities; these are numbers: use mean, ppf or cdf")
        mean = np.asarray(self.moments.mean)
        return mean if self._family.likelihood.is_class else np.stack([1.0 - mean, mean], axis=-1)

    def _part(self, var: Any) -> Any:
        """A variance in the targets' units; where these are not linear, the same share of the total."""
        units = self._units
        if units is None:
            return var
        if units.scale is not None:
            return var * np.square(units.scale)
        return self.var * var / (self.moments.var + self.moments.noise_var)

    def _expected(self, function: Callable[[Any], Any]) -> Any:
        """Expectation of a function of the target, by quadrature over where it may lie in its distribution."""
        return sum(share * function(self.at_normal_score(z)) for z, share in zip(_NODES, _SHARES, strict=True))

    # The distribution.

    def logpdf(self, y: ArrayLike) -> Any:
        """Log density of targets, or log probability of counts and labels, as learning them would be scored."""
        if self._density is None:
            raise ValueError(
                "this prediction has no densities: it was made just before its rows were learned, by a fleet, or by a "
                "part of a mixture; use `predict` or `log_predictive` of a model"
            )
        if self._units is None:
            return self._density(y)
        given = np.asarray(y, dtype=np.float64)
        return self._density(self._units.to_model(given)) + self._units.log_slope(given)

    def pdf(self, y: ArrayLike) -> Any:
        """Density of targets, or probability of counts and labels."""
        return np.exp(self.logpdf(y))[()]

    def cdf(self, y: ArrayLike) -> Any:
        """Probability that targets are at most ``y``."""
        return ndtr(self.normal_score(y))[()]

    def ppf(self, q: ArrayLike) -> Any:
        """Quantiles: the inverse of `cdf`."""
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(f"q must be probabilities between 0 and 1, got {q!r}")
        return self.at_normal_score(ndtri(levels))

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Central interval: lower and upper limits with probability ``level`` between them.

        For labels and classes it is the interval of their probability.
        """
        as_share(level, "level", open_above=True)
        low, high = self._family.likelihood.interval(self._flat(self._interval_parts()), level)
        return self._shaped(self._in_units(low)), self._shaped(self._in_units(high))

    def normal_score(self, y: ArrayLike) -> Any:
        """Where targets lie in their distributions, as standard normal numbers: ``Phi^-1(F(y))``."""
        return self._scored(self._family.likelihood.normal_score, y)

    def tracking_score(self, y: ArrayLike) -> Any:
        """`normal_score`; of counts that of the middle of their step, by which intervals are tracked."""
        return self._scored(self._family.likelihood.tracking_score, y)

    def _scored(self, score: Callable[[Components, FloatArray], FloatArray], y: ArrayLike) -> Any:
        given = np.asarray(y, dtype=np.float64)
        if self._units is not None:
            given = np.asarray(self._units.to_model(given))
        parts = self._number_parts()
        return self._each(lambda own: score(parts, own), given)

    def at_normal_score(self, z: ArrayLike) -> Any:
        """The targets that lie where standard normal numbers do: the inverse of `normal_score`."""
        likelihood, parts = self._family.likelihood, self._number_parts()
        return self._each(
            lambda own: self._in_units(likelihood.at_normal_score(parts, own)), np.asarray(z, dtype=np.float64)
        )

    def sample(self, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` targets of each row, ``(n, ...)``; rows are drawn independently, as are classes."""
        generator, likelihood = as_generator(rng), self._family.likelihood
        if likelihood.is_class:
            sums = np.cumsum(self.probabilities, axis=-1)
            draws = generator.random((as_count(n, "n"), *sums.shape[:-1], 1))
            return np.asarray((draws > sums[..., :-1]).sum(axis=-1), dtype=np.float64)
        drawn = likelihood.draw(self._number_parts(), as_count(n, "n"), generator)
        return np.asarray(self._in_units(drawn)).reshape(n, *np.shape(self.moments.mean))

    @property
    def components(self) -> list[tuple[Any, "Prediction"]]:
        """The parts of a mixture, each with its weight; what a single model predicts is its only part."""
        mixed = self._own_parts()
        own = zip(*mixed.moments, strict=True)
        return [
            (weight, Prediction(self._family, PredictedMoments(*moments), log_noise_var, units=self._units))
            for weight, moments, log_noise_var in zip(mixed.weights, own, mixed.log_noise_vars, strict=True)
        ]

    def in_units(self, units: Units) -> "Prediction":
        """The same distribution of targets in other units."""
        return Prediction(
            self._family,
            self.moments,
            self._log_noise_var,
            self._density,
            mixed=self._mixed,
            interval_mixed=self._interval_mixed,
            units=units,
        )

    @classmethod
    def joined(cls, chunks: Sequence["Prediction"]) -> "Prediction":
        """Put what one model predicts for chunks of rows together."""
        first = chunks[0]
        if len(chunks) == 1:
            return first

        def density(y: Any) -> Any:
            targets = np.split(np.asarray(y), np.cumsum([len(chunk) for chunk in chunks])[:-1])
            pairs = zip(chunks, targets, strict=True)
            return np.concatenate([chunk._density(own) for chunk, own in pairs if chunk._density is not None])

        return cls(
            first._family,
            _concatenated([chunk.moments for chunk in chunks], axis=0),
            density=density if first._density is not None else None,
            units=first._units,
            mixed=_joined([chunk._own_parts() for chunk in chunks]),
            interval_mixed=None
            if first._interval_mixed is None
            else lambda: _joined([chunk._interval_parts() for chunk in chunks]),
        )

    def __reduce__(self) -> Any:
        # Without the model, which densities need and which goes on learning.
        interval = None if self._interval_mixed is None else self._interval_mixed()
        return _unpickled, (self._family, self.moments, self._log_noise_var, self._mixed, interval, self._units)

    def __len__(self) -> int:
        return len(self.moments.mean)

    def __repr__(self) -> str:
        kind = self._family.likelihood.words
        if np.ndim(self.moments.mean) == 0:
            return f"Prediction({kind}: mean={self.mean:.6g}, std={self.std:.6g})"
        return f"Prediction({kind}: shape={np.shape(self.moments.mean)})"

    # Parts, as likelihoods take them.

    def _own_parts(self) -> Mixed:
        if self._mixed is not None:
            return self._mixed
        moments = PredictedMoments(*(np.asarray(part)[None] for part in self.moments))
        return Mixed(np.ones(1), moments, np.asarray(self._log_noise_var)[None])

    def _interval_parts(self) -> Mixed:
        return self._own_parts() if self._interval_mixed is None else self._interval_mixed()

    def _number_parts(self) -> Components:
        if self._family.likelihood.is_class:
            raise TypeError("classes are not numbers: they have probabilities, but no quantiles")
        return self._flat(self._own_parts())

    def _flat(self, mixed: Mixed) -> Components:
        """The parts of all numbers in a row, ``(k, N)``."""
        shape = mixed.moments.mean.shape
        weights = mixed.weights.reshape(len(mixed.weights), -1)
        log_noise_vars = mixed.log_noise_vars.reshape(len(mixed.log_noise_vars), -1)
        wide = [part if part.shape[1] == 1 else _per_number(part, shape) for part in (weights, log_noise_vars)]
        flat = (np.ascontiguousarray(part, dtype=np.float64).reshape(shape[0], -1) for part in mixed.moments)
        mean, var, pre_mean, pre_var, noise_var = flat
        return Components(self._family.activation, wide[0], mean, var, pre_mean, pre_var, noise_var, wide[1])

    def _in_units(self, y: Any) -> Any:
        if self._units is None:
            return y
        return self._units.from_model(np.reshape(y, (*np.shape(y)[:-1], *(np.shape(self.moments.mean) or (1,)))))

    def _shaped(self, numbers: Any) -> Any:
        shape = np.shape(self.moments.mean)
        return np.reshape(numbers, shape) if shape else float(numbers[0])

    def _each(self, function: Callable[[FloatArray], FloatArray], given: FloatArray) -> Any:
        """A function of the numbers of all rows, for each set of numbers that was given."""
        shape = np.shape(self.moments.mean)
        whole = np.broadcast_shapes(given.shape, shape)
        rows = np.broadcast_to(given, whole).reshape(-1, int(np.prod(shape, dtype=np.int64)))
        found = [np.asarray(function(np.ascontiguousarray(own))).ravel() for own in rows]
        return np.reshape(found, whole)[()]


def _unpickled(
    family: Family, moments: PredictedMoments, log_noise_var: Any, mixed: Mixed | None, interval: Any, units: Any
) -> Prediction:
    parts = None if interval is None else lambda: interval
    return Prediction(family, moments, log_noise_var, mixed=mixed, interval_mixed=parts, units=units)


def _joined(chunks: list[Mixed]) -> Mixed:
    """The parts of mixtures for chunks of rows."""

    def wide(numbers: FloatArray, chunk: Mixed) -> FloatArray:
        return np.broadcast_to(numbers.reshape(len(numbers), -1), chunk.moments.mean.shape[:2])

    return Mixed(
        np.concatenate([wide(chunk.weights, chunk) for chunk in chunks], axis=1),
        _concatenated([chunk.moments for chunk in chunks], axis=1),
        np.concatenate([wide(chunk.log_noise_vars, chunk) for chunk in chunks], axis=1),
    )


def _concatenated(chunks: list[PredictedMoments], axis: int) -> PredictedMoments:
    return PredictedMoments(*(np.concatenate(parts, axis=axis) for parts in zip(*chunks, strict=True)))


def _per_number(part: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """What each row has, ``(k, n)``, for each of its numbers."""
    wide = part.reshape(*part.shape, *[1] * (len(shape) - 2))
    return np.broadcast_to(wide, shape).reshape(shape[0], -1)


def no_label_interval() -> Mixed:
    """Refuse the interval of labels that a network predicted just before it learned them."""
    raise ValueError(
        "labels that a network predicted just before it learned them have no intervals: these need the network as it "
        "was; ask for `interval` before learning"
    )


def before_each_row(before: float, after: float, n_rows: int) -> FloatArray:
    """Variances of a log noise before each of ``n_rows``, given those before the first and after the last.

    They are 2 over the number of rows that the noise rests on, which grows evenly. 0 stands for a noise that is known.
    """
    if not (before > 0.0 and after > 0.0):
        return np.zeros(n_rows)
    return 1.0 / np.linspace(1.0 / before, 1.0 / after, n_rows, endpoint=False)
