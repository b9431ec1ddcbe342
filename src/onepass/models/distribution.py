"""`Prediction`: the predictive distribution of targets, the same object wherever something is predicted."""

from collections.abc import Callable, Sequence
from math import log, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator, as_share
from onepass.activations import Activation, as_activation
from onepass.likelihoods import Gaussian, Likelihood
from onepass.likelihoods.mixtures import KNOWN, Components
from onepass.models.prediction import PredictedMoments
from onepass.models.tracking import TrackedQuantiles

__all__ = ["Family", "LinearUnits", "Mixed", "Prediction", "Transform", "Units", "no_label_interval"]

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


class Transform(Protocol):
    """An increasing function of targets that is learned in their place."""

    def to_model(self, y: Any) -> Any:
        """Targets as the model has learned them."""

    def from_model(self, y: Any) -> Any:
        """What a model predicts, in the targets' own units."""

    def log_slope(self, y: Any) -> Any:
        """Log of the derivative of `to_model`."""


class Units(Transform, Protocol):
    """Targets in units other than those a model has learned."""

    @property
    def scale(self) -> Any:
        """What a standard deviation is multiplied by; None where the function is not linear."""

    def moments(self, seen: PredictedMoments) -> tuple[Any, Any] | None:
        """Mean and variance of targets, where units that are not linear define them; None: they are integrals."""


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

    def moments(self, seen: PredictedMoments) -> None:
        """None: they follow from the scale."""


class Prediction:
    """The predictive distribution of one target, or of ``n``: numbers for one row, arrays ``(n,)`` for many.

    With several outputs or classes, arrays are ``(n, K)``.

    Densities are those that models score: with ``outliers`` above 0 they include targets that can't be trusted, which
    may be anywhere. Moments, quantiles, intervals and draws are those of targets that can be trusted.

    A model whose intervals are adaptive (see `onepass.AdaptiveIntervals`) passes on where its targets have really been:
    `interval` then has the limits that were tracked. All else remains as the model predicts it, ``ppf`` as well.

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
    tracked : TrackedQuantiles or None
        The quantiles from which `interval` takes its limits where they are adaptive.

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

    __slots__ = ("_density", "_family", "_interval_mixed", "_log_noise_var", "_mixed", "_units", "moments", "tracked")

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
        tracked: TrackedQuantiles | None = None,
    ) -> None:
        self._family = family
        self.moments = moments
        self._log_noise_var = log_noise_var
        self._density = density
        self._mixed = mixed
        self._interval_mixed = interval_mixed
        self._units = units
        self.tracked = tracked

    @classmethod
    def gaussian(cls, mean: Any, epistemic: Any, aleatoric: Any = 0.0) -> "Prediction":
        """Gaussian distributions with this mean and these two parts of the variance, from whatever model.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import Prediction
        >>> low, high = Prediction.gaussian(np.array([1.0, 2.0]), 0.16, 0.09).interval(0.95)
        >>> low.round(2), high.round(2)
        (array([0.02, 1.02]), array([1.98, 2.98]))
        """
        mean, var, noise_var = (one.copy()[()] for one in np.broadcast_arrays(mean, epistemic, aleatoric))
        return cls(Family(Gaussian(), as_activation("linear")), PredictedMoments(mean, var, mean, var, noise_var))

    # Moments.

    @property
    def mean(self) -> Any:
        """Expected target."""
        mean, units = self.moments.mean, self._units
        if units is None:
            return mean
        if units.scale is not None:
            return units.from_model(mean)
        known = units.moments(self.moments)
        return self._expected(lambda y: y) if known is None else known[0]

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
        if (known := self._units.moments(self.moments)) is not None:
            return known[1]
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
        """Log density of targets, or log probability of counts and labels, as learning them would be scored.

        A model scores what it predicts as long as it has not learned more. A prediction without its model has the
        density of `cdf`: one of rows that were then learned, of a fleet, of a part of a mixture, or one that was
        pickled. The two differ where targets may be outliers, and a little while a learned noise is uncertain.
        """
        given = np.asarray(y, dtype=np.float64)
        if self._units is None:
            return self._log_density(given)
        learned, outside = self._as_learned(given)
        with np.errstate(all="ignore"):
            found = self._log_density(learned) + self._units.log_slope(given)
        return np.where(outside, -np.inf, found)[()]

    def _as_learned(self, y: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Targets as models learn them, and which of them can't be, such as a price below 0 whose log is learned."""
        if self._units is None:
            return y, np.zeros(y.shape, dtype=bool)
        with np.errstate(all="ignore"):
            learned = np.asarray(self._units.to_model(y), dtype=np.float64)
        outside = ~np.isfinite(learned) & ~np.isnan(y)
        return np.where(outside, 0.0, learned), outside

    def _log_density(self, y: FloatArray) -> Any:
        """`logpdf` of targets as models learn them."""
        mean, likelihood, scored = np.asarray(self.moments.mean), self._family.likelihood, self._density
        if likelihood.is_class and scored is None:
            places = np.broadcast_to(y, mean.shape[:-1]).astype(np.int64)
            return np.log(np.take_along_axis(mean, places[..., None], axis=-1)[..., 0])[()]
        if likelihood.is_class or mean.ndim > 1:  # one density of several numbers
            if scored is None:
                raise ValueError("a prediction of several outputs has densities only as long as it has its model")
            return scored(y)
        if scored is not None:
            return self._each(lambda own: scored(own if mean.ndim else own[0]), y)
        parts = self._number_parts()
        return self._each(lambda own: likelihood.log_density(parts, own), y)

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

        For labels and classes it is the interval of their probability. Limits that were tracked contain that share of
        the targets in the long run.
        """
        as_share(level, "level", open_above=True)
        if self.tracked is not None:
            low, high = (self.at_normal_score(z) for z in self.tracked.limits(level))
            return (low, high) if np.ndim(self.moments.mean) else (float(low), float(high))
        low, high = self._family.likelihood.interval(self._flat(self._interval_parts()), level)
        return self._shaped(self._in_units(low)), self._shaped(self._in_units(high))

    def normal_score(self, y: ArrayLike) -> Any:
        """Where targets lie in their distributions, as standard normal numbers: ``Phi^-1(F(y))``."""
        return self._scored(self._family.likelihood.normal_score, y)

    def tracking_score(self, y: ArrayLike) -> Any:
        """`normal_score`; of counts that of the middle of their step, by which intervals are tracked."""
        return self._scored(self._family.likelihood.tracking_score, y)

    def _scored(self, score: Callable[[Components, FloatArray], FloatArray], y: ArrayLike) -> Any:
        if (gaussian := self._gaussian()) is not None:
            mean, std = gaussian
            if isinstance(y, float) and isinstance(std, float) and std > 0.0:  # of one row without NumPy
                return ((y if self._units is None else self._units.to_model(y)) - mean) / std
            numbers = np.asarray(y, dtype=np.float64)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                return ((numbers if self._units is None else self._units.to_model(numbers)) - mean) / std
        given = np.asarray(y, dtype=np.float64)
        learned, outside = self._as_learned(given)
        parts = self._number_parts()
        found = self._each(lambda own: score(parts, own), learned)
        if not outside.any():
            return found
        return np.where(outside, np.where(given < self.at_normal_score(0.0), -np.inf, np.inf), found)[()]

    def at_normal_score(self, z: ArrayLike) -> Any:
        """The targets that lie where standard normal numbers do: the inverse of `normal_score`."""
        if (gaussian := self._gaussian()) is not None:
            mean, std = gaussian
            found = mean + (z if isinstance(z, float) else np.asarray(z, dtype=np.float64)) * std
            return found if self._units is None else self._units.from_model(found)
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
        return self._with("_units", units)

    def widened(self, factor: Any) -> "Prediction":
        """The same distribution, ``factor`` times as wide around its mean; what that adds to the variance is epistemic.

        The factor is a number, or one per row, ``(n,)``. It is for predictions of numbers in the model's own units,
        with a linear activation.
        """
        if np.all(np.equal(factor, 1.0)):
            return self
        seen, scored, interval = self.moments, self._density, self._interval_mixed
        total = factor**2 * (seen.var + seen.noise_var)

        def wider(parts: Mixed) -> Mixed:
            own = parts.moments
            mean, pre_mean = (seen.mean + factor * (one - seen.mean) for one in (own.mean, own.pre_mean))
            var, pre_var, noise_var = (factor**2 * one for one in (own.var, own.pre_var, own.noise_var))
            return parts._replace(moments=PredictedMoments(mean, var, pre_mean, pre_var, noise_var))

        new = Prediction(
            self._family,
            seen._replace(var=total - seen.noise_var),
            self._log_noise_var,
            None if scored is None else lambda y: scored(seen.mean + (y - seen.mean) / factor) - np.log(factor),
            mixed=wider(self._own_parts()),
            interval_mixed=None if interval is None else lambda: wider(interval()),
            tracked=self.tracked,
        )
        return new if self._units is None else new.in_units(self._units)

    def without_model(self) -> "Prediction":
        """The same distribution after the model has learned more: densities are those of `cdf`, see `logpdf`."""
        return self._with("_density", None)

    def centred(self) -> "Prediction":
        """The Gaussian around 0 with the mean square of this distribution, for models that may as well say -mean."""
        seen = self.moments
        moments = seen._replace(mean=np.zeros_like(seen.mean)[()], var=seen.var + np.square(seen.mean))
        total = moments.var + moments.noise_var
        return Prediction(self._family, moments, density=lambda y: -0.5 * (np.log(2.0 * np.pi * total) + y * y / total))

    @property
    def is_count(self) -> bool:
        """Whether targets are counts."""
        return self._family.likelihood.is_count

    def with_tracked(self, tracked: TrackedQuantiles | None) -> "Prediction":
        """The same distribution with the limits of intervals that were tracked, or with its own."""
        return self._with("tracked", tracked)

    def with_probabilities(self, probabilities: FloatArray) -> "Prediction":
        """The same rows with other probabilities of their classes, ``(n, K)``; intervals stay those of the model."""
        mean = probabilities if self._family.likelihood.is_class else probabilities[:, 1]
        moments = self.moments._replace(mean=mean)
        return Prediction(self._family, moments, interval_mixed=self._interval_parts, units=self._units)

    def _with(self, name: str, value: Any) -> "Prediction":
        new = object.__new__(Prediction)
        for slot in self.__slots__:
            setattr(new, slot, value if slot == name else getattr(self, slot))
        return new

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
            tracked=_joined_quantiles(chunks),
            mixed=_joined([chunk._own_parts() for chunk in chunks]),
            interval_mixed=None
            if first._interval_mixed is None
            else lambda: _joined([chunk._interval_parts() for chunk in chunks]),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "Prediction":
        return self  # nothing changes a prediction

    def __reduce__(self) -> Any:
        # Without the model, which densities need and which goes on learning.
        interval = None if self._interval_mixed is None else self._interval_mixed()
        kept = (self._family, self.moments, self._log_noise_var, self._mixed, interval, self._units, self.tracked)
        return _unpickled, kept

    def __len__(self) -> int:
        return len(self.moments.mean)

    def __repr__(self) -> str:
        kind = self._family.likelihood.words
        if np.ndim(self.moments.mean) == 0:
            return f"Prediction({kind}: mean={self.mean:.6g}, std={self.std:.6g})"
        return f"Prediction({kind}: shape={np.shape(self.moments.mean)})"

    # Parts, as likelihoods take them.

    def _gaussian(self) -> tuple[Any, Any] | None:
        """Mean and standard deviation in the model's units, where the distribution is Gaussian; else None."""
        units, unknown = self._units, self._log_noise_var
        if self._mixed is not None or not self._family.likelihood.predicts_gaussians:
            return None
        if not (unknown < KNOWN if isinstance(unknown, float) else np.less(unknown, KNOWN).all()):
            return None
        if not (units is None or isinstance(units, LinearUnits)):
            return None
        total = self.moments.var + self.moments.noise_var
        return self.moments.mean, sqrt(total) if isinstance(total, float) and total >= 0.0 else np.sqrt(total)

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
    family: Family,
    moments: PredictedMoments,
    log_noise_var: Any,
    mixed: Mixed | None,
    interval: Any,
    units: Any,
    tracked: TrackedQuantiles | None,
) -> Prediction:
    parts = None if interval is None else lambda: interval
    return Prediction(family, moments, log_noise_var, mixed=mixed, interval_mixed=parts, units=units, tracked=tracked)


def _joined_quantiles(chunks: Sequence[Prediction]) -> TrackedQuantiles | None:
    """The tracked quantiles of chunks of rows."""
    pairs = [(chunk.tracked, len(chunk)) for chunk in chunks if chunk.tracked is not None]
    if not pairs:
        return None
    return TrackedQuantiles(pairs[0][0].normal, np.concatenate([tracked.of_rows(n) for tracked, n in pairs]))


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
