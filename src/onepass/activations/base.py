"""What an activation is: a function, and its moments (mean, variance, expected slope) for a Gaussian input.

Predictions and the paper's update need the moments. An activation with compiled moments refers to them in ``compiled``,
so the loops of `onepass.engine` run without Python. ``exact`` has, by the name of the likelihood, the compiled exact
updates that exist for this activation.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.moments import CompiledActivation, NarrowedMoments, PythonMoments, RescaledMoments

__all__ = ["Activation", "ClosedForm", "Moments", "Narrowed", "Rescaled", "broadcast", "compiled_activation"]


class Moments(NamedTuple):
    """Mean and variance of ``f(a)``, and the expected slope ``E[f'(a)]``, for a Gaussian ``a``.

    By Stein's lemma the slope times the variance of ``a`` is the covariance of ``a`` and ``f(a)``.

    Examples
    --------
    >>> from onepass import max_linear
    >>> found = max_linear(0.0, 1.0).moments(0.0, 1.0)  # of a ReLU
    >>> print(f"{found.mean:.4f} {found.var:.4f} {found.slope:.4f}")
    0.3989 0.3408 0.5000
    """

    mean: FloatArray
    var: FloatArray
    slope: FloatArray


@runtime_checkable
class Activation(Protocol):
    """The two methods that every activation has; a class of your own needs no base class.

    ``moments`` must broadcast its arguments, return ``(f(mean), 0, f'(mean))`` at ``var = 0``, and never return a
    negative variance.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import Activation, Moments
    >>> class Square:
    ...     def __call__(self, a):
    ...         return np.asarray(a) ** 2
    ...     def moments(self, mean, var):
    ...         mean, var = np.broadcast_arrays(mean, var)
    ...         return Moments(mean**2 + var, 2 * var**2 + 4 * mean**2 * var, 2 * mean)
    >>> isinstance(Square(), Activation)
    True
    >>> print(Square().moments(1.0, 0.5).mean)
    1.5
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``f(a)``."""
        ...

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments of ``f(a)`` under ``a ~ N(mean, var)``."""
        ...


class ClosedForm:
    """An activation whose moments are compiled: a subclass gives ``compiled`` and the function itself."""

    compiled: CompiledActivation
    exact: ClassVar[dict[str, type[CompiledLikelihood]]] = {}

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments of ``f(a)`` under ``a ~ N(mean, var)``."""
        if type(mean) is float and type(var) is float:  # of one row, ten times as fast without NumPy
            return Moments(*self.compiled.one(mean, var))
        mean, var = broadcast(mean, var)
        both = self.compiled.moments(np.ravel(mean), np.ravel(var)).reshape(3, *mean.shape)
        return Moments(both[0][()], both[1][()], both[2][()])


@dataclass(frozen=True)
class Rescaled(ClosedForm):
    """The activation ``offset + outer * base(inner * a)``.

    Examples
    --------
    The paper prints ``tanh(a) = 2 s(a) + 1``; what holds is ``2 s(2a) - 1``.

    >>> import numpy as np
    >>> from onepass.activations import Rescaled, Sigmoid
    >>> tanh = Rescaled(Sigmoid(), inner=2.0, outer=2.0, offset=-1.0)
    >>> bool(np.isclose(tanh(0.7), np.tanh(0.7)))
    True
    """

    base: Activation
    inner: float
    outer: float
    offset: float

    @property
    def compiled(self) -> CompiledActivation:  # type: ignore[override]
        """The moments of the base, rescaled."""
        return RescaledMoments(compiled_activation(self.base), self.inner, self.outer, self.offset)

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        return self.offset + self.outer * self.base(self.inner * np.asarray(a, dtype=np.float64))


@dataclass(frozen=True)
class Narrowed(ClosedForm):
    """An activation whose moments are those of a narrower argument: of a share of its variance.

    Examples
    --------
    >>> from onepass.activations import Narrowed, PiecewiseLinear
    >>> relu = PiecewiseLinear([0, 1], [0])
    >>> bool(Narrowed(relu, 0.25).moments(1.0, 4.0).mean == relu.moments(1.0, 1.0).mean)
    True
    """

    base: Activation
    share: float

    @property
    def compiled(self) -> CompiledActivation:  # type: ignore[override]
        """The moments of the base."""
        return NarrowedMoments(compiled_activation(self.base), self.share)

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        return self.base(a)


def compiled_activation(activation: Activation) -> CompiledActivation:
    """The object whose methods compiled loops call: the activation's compiled moments, or a wrapper of its Python."""
    own: CompiledActivation | None = getattr(activation, "compiled", None)
    return PythonMoments(activation) if own is None else own


def broadcast(*values: ArrayLike) -> tuple[FloatArray, ...]:
    """Bring numbers and arrays to one shape, as float64."""
    return tuple(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in values)))
