"""What an activation is: a function, and the integrals of it under a Gaussian.

The moments serve prediction and the paper's update. An activation that can also integrate a likelihood against the
Gaussian, ``Z = ∫ p(y|a) N(a; mean, var) da``, makes the exact update possible: the posterior's first two moments follow
from the slopes of ``log Z``.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray

__all__ = ["Activation", "Moments", "Rescaled", "Tilt", "TiltsByCount", "TiltsByLabel", "TiltsByNoise", "broadcast"]


class Moments(NamedTuple):
    """Mean and variance of ``f(a)``, and the expected slope ``E[f'(a)]``, under a Gaussian ``a``.

    By Stein's lemma the slope times the variance of ``a`` is the covariance of ``a`` and ``f(a)``.
    """

    mean: FloatArray
    var: FloatArray
    slope: FloatArray


class Tilt(NamedTuple):
    """``log Z``, ``alpha = dlogZ/dmean`` and ``kappa = -d²logZ/dmean²`` of the tilted density ``p(y|a) N(a)``.

    Its mean is ``mean + alpha var``, its variance ``var - kappa var²``: the two scalars of the posterior's step.
    ``left`` is the share of the variance that is left, ``1 - kappa var``, with the digits that this difference would
    lose when a precise reading meets a vague belief.
    """

    log_z: FloatArray
    alpha: FloatArray
    kappa: FloatArray
    left: FloatArray


@runtime_checkable
class Activation(Protocol):
    """What a perceptron asks of an activation; any object with these two methods will do.

    ``moments`` must broadcast, have the limit ``(f(mean), 0, f'(mean))`` at ``var = 0`` and never return a negative
    variance.
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``f(a)``."""
        ...

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments of ``f(a)`` under ``a ~ N(mean, var)``."""
        ...


@runtime_checkable
class TiltsByLabel(Protocol):
    """An activation that can learn exactly from a label: ``p(1|a) = f(a)``, ``p(0|a) = 1 - f(a)``."""

    def tilt_by_label(self, mean: ArrayLike, var: ArrayLike, label: ArrayLike, /) -> Tilt:
        """Tilt ``N(mean, var)`` by the likelihood of a 0/1 label."""
        ...


@runtime_checkable
class TiltsByNoise(Protocol):
    """An activation that can learn exactly from ``y = f(a) + N(0, noise)``."""

    def tilt_by_noise(self, mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: float, /) -> Tilt:
        """Tilt ``N(mean, var)`` by ``N(y; f(a), noise)``."""
        ...

    def expected_square(self, mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: float, /) -> FloatArray:
        """``E[(y - f(a))²]`` under that tilted density: what one row says about the noise."""
        ...


@runtime_checkable
class TiltsByCount(Protocol):
    """An activation that can learn exactly from a Poisson count with the rate ``f(a)``."""

    def tilt_by_count(self, mean: ArrayLike, var: ArrayLike, count: ArrayLike, /) -> Tilt:
        """Tilt ``N(mean, var)`` by the probability of a count."""
        ...


@dataclass(frozen=True)
class Rescaled:
    """The activation ``offset + outer * base(inner * a)``.

    Examples
    --------
    The paper prints ``tanh(a) = 2 s(a) + 1``; what holds is ``2 s(2a) - 1``.

    >>> from onepass.activations import Sigmoid
    >>> tanh = Rescaled(Sigmoid(), inner=2.0, outer=2.0, offset=-1.0)
    >>> bool(np.isclose(tanh(0.7), np.tanh(0.7)))
    True
    """

    base: Activation
    inner: float
    outer: float
    offset: float

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        return self.offset + self.outer * self.base(self.inner * np.asarray(a, dtype=np.float64))

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments of the base, rescaled."""
        mean, var = broadcast(mean, var)
        base = self.base.moments(self.inner * mean, self.inner**2 * var)
        return Moments(
            self.offset + self.outer * base.mean,
            self.outer**2 * base.var,
            self.outer * self.inner * base.slope,
        )


def broadcast(*values: ArrayLike) -> tuple[FloatArray, ...]:
    """Bring numbers and arrays to one shape, as float64."""
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))
