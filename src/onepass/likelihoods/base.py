"""What a likelihood is: how a target comes about around the output ``f(a)`` of an activation.

A likelihood turns the belief ``N(mean, var)`` about the pre-activation ``a`` and a target ``y`` into a `MomentMatch`:
the two scalars of the belief's step and the log predictive density of ``y``. Nothing here knows about weights or
inputs. Two rules:

- ``"adf"`` (assumed density filtering) takes the exact first two moments of ``p(y|a) N(a)``, where they have a closed
  form;
- ``"kalman"``, the paper's, treats ``y`` and ``a`` as jointly Gaussian and needs only the moments of the activation.

Both are compiled, see `onepass.engine.matches`; `Likelihood.compiled` chooses. A likelihood of one's own, in Python, is
a subclass with a ``moment_match``.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.activations import Activation, Moments, compiled_activation
from onepass.activations.base import broadcast
from onepass.engine.matches import CompiledLikelihood, PythonLikelihood

__all__ = ["Likelihood", "MomentMatch"]


class MomentMatch(NamedTuple):
    """``log Z``, ``score = dlogZ/dmean`` and ``information = -d²logZ/dmean²`` of the tilted density ``p(y|a) N(a)``.

    Its mean is ``mean + score var``, its variance ``var - information var²``: the two scalars of the belief's step.
    ``variance_ratio`` is the variance after over that before, ``1 - information var``, with the digits that this
    difference would lose when a precise target meets a vague belief.
    """

    log_z: Any
    score: Any
    information: Any
    variance_ratio: Any


class Likelihood:
    """How targets come about; see the module for what a subclass adds.

    Examples
    --------
    A likelihood of one's own: readings whose noise is 1, by its moment match around a linear output.

    >>> class Reading(Likelihood):
    ...     name = "reading"
    ...     def noise_var(self, output):
    ...         return np.ones_like(output.var)
    ...     def moment_match(self, activation, mean, var, y, update="auto"):
    ...         total = var + 1.0
    ...         log_z = -0.5 * (np.log(2.0 * np.pi * total) + (y - mean) ** 2 / total)
    ...         return MomentMatch(log_z, (y - mean) / total, 1.0 / total, 1.0 / total)
    >>> import onepass
    >>> model = onepass.BayesianPerceptron(1, "linear", observation=Reading()).learn([[1.0], [2.0]], [1.0, 2.0])
    >>> same = onepass.BayesianPerceptron(1, "linear", noise=1.0).learn([[1.0], [2.0]], [1.0, 2.0])
    >>> bool(np.allclose(model.mean, same.mean)), bool(np.isclose(model.log_evidence, same.log_evidence))
    (True, True)
    """

    name: ClassVar[str]
    kalman: ClassVar[type[CompiledLikelihood] | None] = None
    """The paper's rule, compiled; a likelihood in Python has none."""
    noise: float | FloatArray = 0.0
    """Variance of Gaussian noise, where there is one."""

    def check(self, y: FloatArray) -> None:
        """Raise a ValueError for targets that can't be; any finite number by default."""

    def check_activation(self, activation: Activation) -> None:
        """Raise a ValueError for an activation that this likelihood makes no sense around."""

    def with_noise(self, noise: float | FloatArray) -> "Likelihood":
        """The same likelihood with another noise variance, where it has one."""
        return self

    def noise_var(self, output: Moments) -> FloatArray:
        """Variance of ``y`` that knowing the weights would not take away."""
        raise NotImplementedError

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """What ``y`` stays below with probability ``level``; for labels their probability."""
        raise NotImplementedError

    def exact(self, activation: Activation) -> type[CompiledLikelihood] | None:
        """The compiled moment match that is exact around an activation, or None."""
        found: type[CompiledLikelihood] | None = getattr(activation, "exact", {}).get(self.name)
        return found

    def choose_update(self, update: str, activation: Activation) -> str:
        """Check and resolve a user's choice of rule: ``"auto"`` is the exact one where there is one."""
        one_of(update, ("auto", "adf", "kalman"), "update")
        exact = self.kalman is None or self.exact(activation) is not None
        if update == "auto":
            return "adf" if exact else "kalman"
        if update == "adf" and not exact:
            raise ValueError(
                f"update='adf' has no closed form for {type(self).__name__} targets around {activation!r}. "
                "Ways out: update='kalman' or 'auto'; observation='bernoulli' with 'sigmoid' (moments='exact'), "
                "'probit' or 'step'; observation='gaussian' with a piecewise linear activation; observation='poisson' "
                "with 'exp'"
            )
        if update == "kalman" and self.kalman is None:
            raise ValueError(f"update='kalman' is not for {type(self).__name__}, which has a moment match of its own")
        return update

    def compiled(self, activation: Activation, update: str) -> CompiledLikelihood:
        """What compiled loops call for this likelihood around an activation, by the rule ``"adf"`` or ``"kalman"``."""
        moments = compiled_activation(activation)
        exact = self.exact(activation) if update == "adf" else None
        kind = exact or self.kalman
        return PythonLikelihood(moments, self, activation) if kind is None else kind(moments)

    def moment_match(
        self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike, update: str = "auto"
    ) -> MomentMatch:
        """Match the moments of the density tilted by ``y``; all of one shape, or to be brought to one."""
        compiled = self.compiled(activation, self.choose_update(update, activation))
        mean, var, y, noise = broadcast(mean, var, y, self.noise)
        rows = compiled.match_rows(*(np.ravel(values) for values in (mean, var, y, noise)))
        return MomentMatch(*(part[()] for part in rows.reshape(4, *mean.shape)))
