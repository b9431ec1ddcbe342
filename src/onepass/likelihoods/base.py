"""What a likelihood is: the probability of a target, given the output ``f(a)`` of an activation.

A likelihood turns the belief ``N(mean, var)`` about the pre-activation ``a`` and a target ``y`` into a `MomentMatch`:
the two scalars of the belief's step and the log predictive density of ``y``. Nothing here knows about weights or
inputs. Two rules:

- ``"adf"`` (assumed density filtering) takes the exact first two moments of ``p(y|a) N(a)``, where they have a closed
  form;
- ``"kalman"``, the paper's, treats ``y`` and ``a`` as jointly Gaussian and needs only the moments of the activation.

Both are compiled, see `onepass.engine.matches`; `Likelihood.compiled` chooses. A likelihood can also be written in
Python: a subclass of `Likelihood` with ``moment_match`` and ``noise_var``, which compiled loops then call for each row.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.activations import Activation, Moments, activation_text, compiled_activation
from onepass.activations.base import broadcast
from onepass.engine.matches import CompiledLikelihood, PythonLikelihood
from onepass.engine.step import NOISE_START, NOISE_START_WEIGHT

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
    """The probability of a target, given the output of an activation.

    A subclass in Python defines ``moment_match(activation, mean, var, y)``, which returns a `MomentMatch`, and
    ``noise_var``. If its targets are not close to Gaussian it defines ``quantile``, too.

    Examples
    --------
    Readings whose noise has the variance 1, with the moment match around a linear output:

    >>> import numpy as np
    >>> from onepass.likelihoods import Likelihood, MomentMatch
    >>> class Reading(Likelihood):
    ...     def noise_var(self, output):
    ...         return np.ones_like(output.var)
    ...     def moment_match(self, activation, mean, var, y):
    ...         total = var + 1.0
    ...         log_z = -0.5 * (np.log(2.0 * np.pi * total) + (y - mean) ** 2 / total)
    ...         return MomentMatch(log_z, (y - mean) / total, 1.0 / total, 1.0 / total)
    >>> import onepass
    >>> model = onepass.BayesianPerceptron(1, "linear", observation=Reading()).learn([[1.0], [2.0]], [1.0, 2.0])
    >>> same = onepass.BayesianPerceptron(1, "linear", noise=1.0).learn([[1.0], [2.0]], [1.0, 2.0])
    >>> bool(np.allclose(model.mean, same.mean)), bool(np.isclose(model.log_evidence, same.log_evidence))
    (True, True)
    """

    name: ClassVar[str] = ""
    """In arguments and files, and in ``Activation.exact``; likelihoods in Python need none."""
    kalman: ClassVar[type[CompiledLikelihood] | None] = None
    """The paper's rule, compiled; None for a likelihood in Python."""
    noise: float | FloatArray = 0.0
    """Variance of the Gaussian noise, or the dispersion of counts; 0 for likelihoods without one."""

    noise_start: ClassVar[tuple[float, float]] = (NOISE_START, NOISE_START_WEIGHT)
    """Where a learned noise starts, and how many rows that rests on: its log has the variance 2 over this number."""

    def check(self, y: FloatArray) -> None:
        """Raise a ValueError for targets that are impossible; by default every finite number is allowed."""

    def log_outlier_density(self, y: float) -> float:
        """Log density of a target that can't be trusted, whatever the output.

        A subclass in Python defines it if it is used with ``outliers`` above 0.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method log_outlier_density(y) for outliers above 0")

    def check_outliers(self, outliers: float) -> None:
        """Raise a ValueError where it is not defined what a target is that is not to be trusted."""
        if outliers and self._in_python and type(self).log_outlier_density is Likelihood.log_outlier_density:
            raise ValueError(
                f"outliers={outliers:g} needs a method log_outlier_density(y) of {type(self).__name__}: the log "
                "density of a target that can't be trusted; or pass outliers=0"
            )

    def check_activation(self, activation: Activation) -> None:
        """Raise a ValueError for an activation that does not fit, such as one that is negative for counts."""

    def with_noise(self, noise: float | FloatArray, log_noise_var: float = 0.0) -> "Likelihood":
        """The same likelihood with another noise variance, where it has one, whose log has this variance itself."""
        return self

    def output_moments(self, activation: Activation, mean: FloatArray, var: FloatArray) -> Moments:
        """Moments of ``f(a)`` to predict with; by default the activation's own."""
        return activation.moments(mean, var)

    def noise_var(self, output: Moments) -> FloatArray:
        """Variance of ``y`` around ``f(a)`` that remains when the weights are known, for these moments of ``f(a)``."""
        raise NotImplementedError(f"{type(self).__name__} needs a method noise_var(output) to predict")

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """Quantile of ``y`` (of labels: of their probability); by default of a Gaussian with the predictive moments."""
        output = activation.moments(mean, var)
        return np.asarray(output.mean + ndtri(level) * np.sqrt(output.var + self.noise_var(output)))

    def exact(self, activation: Activation) -> type[CompiledLikelihood] | None:
        """The compiled moment match that is exact around an activation, or None."""
        found: type[CompiledLikelihood] | None = getattr(activation, "exact", {}).get(self.name)
        return found

    def choose_update(self, update: str, activation: Activation) -> str:
        """Check and resolve a user's choice of rule: ``"auto"`` is the exact one where there is one."""
        one_of(update, ("auto", "adf", "kalman"), "update")
        if self.kalman is None and not self._in_python:
            raise TypeError(
                f"{type(self).__name__} needs a method moment_match(activation, mean, var, y), or a compiled class in "
                "'kalman'"
            )
        exact = self._in_python or self.exact(activation) is not None
        if update == "auto":
            return "adf" if exact else "kalman"
        if update == "adf" and not exact:
            raise ValueError(
                f"update='adf' has no closed form for {type(self).__name__} targets around "
                f"{activation_text(activation)}. "
                "Use update='kalman' or 'auto'; or observation='bernoulli' with 'sigmoid' (moments='exact'), "
                "'probit' or 'step'; observation='gaussian' with a piecewise linear activation; observation='poisson' "
                "or 'negative_binomial' with 'exp'"
            )
        if update == "kalman" and self._in_python:
            raise ValueError(
                f"update='kalman' is not available for {type(self).__name__}, whose moment_match is written in Python; "
                "use update='auto'"
            )
        return update

    def compiled(self, activation: Activation, update: str) -> CompiledLikelihood:
        """The object whose methods compiled loops call, for an activation and the rule ``"adf"`` or ``"kalman"``."""
        moments = compiled_activation(activation)
        exact = self.exact(activation) if update == "adf" else None
        kind = exact or self.kalman
        return PythonLikelihood(moments, self, activation) if self._in_python or kind is None else kind(moments)

    @property
    def _in_python(self) -> bool:
        """Whether a subclass has a ``moment_match`` of its own."""
        return type(self).moment_match is not Likelihood.moment_match

    def moment_match(
        self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike, update: str = "auto"
    ) -> MomentMatch:
        """Match the moments of ``p(y|a) N(a)``; ``mean``, ``var`` and ``y`` are broadcast against each other.

        A subclass in Python is called with one number for each of them, and without ``update``.
        """
        compiled = self.compiled(activation, self.choose_update(update, activation))
        mean, var, y, noise = broadcast(mean, var, y, self.noise)
        rows = compiled.match_rows(*(np.ravel(values) for values in (mean, var, y, noise)))
        return MomentMatch(*(part[()] for part in rows.reshape(4, *mean.shape)))
