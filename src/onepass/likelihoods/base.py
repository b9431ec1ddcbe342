"""What a likelihood is: the probability of a target, given the outputs of a model.

A likelihood turns the belief ``N(mean, var)`` about the pre-activation ``a`` of an output and a target ``y`` into a
`MomentMatch`: the two scalars of the belief's step and the log predictive density of ``y``. Nothing here knows about
weights or inputs. Two rules:

- ``"adf"`` (assumed density filtering) takes the exact first two moments of ``p(y|a) N(a)``, where they have a closed
  form;
- ``"kalman"``, the paper's, treats ``y`` and ``a`` as jointly Gaussian and needs only the moments of the activation.

Both are compiled, see `onepass.engine.matches`; `Likelihood.compiled` chooses. A likelihood can also be written in
Python: a subclass of `Likelihood` with ``moment_match`` and ``noise_var``, which compiled loops then call for each row.

A network has several outputs, linear ones, and each likelihood names the activation that they go through, its
``link``. `Likelihood.outputs` is the compiled match of all of them, see `onepass.engine.vector_matches`: by default
each output is matched as a perceptron's.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from onepass._typing import FloatArray
from onepass._validation import NO_TARGET, as_floats, as_floats_or_nan, one_of
from onepass.activations import Activation, Moments, activation_text, as_activation, compiled_activation
from onepass.activations.base import broadcast
from onepass.engine.matches import CompiledLikelihood, PythonLikelihood
from onepass.engine.vector_matches import NetworkProgress, OutputRecord, SeparateOutputs, VectorLikelihood
from onepass.likelihoods.mixtures import Components

__all__ = [
    "LOG_NOISE",
    "Likelihood",
    "LogNoise",
    "MomentMatch",
    "Predictive",
    "encode_likelihood",
    "likelihood_names",
    "named",
    "refuse_first",
    "register",
]


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


class Predictive(NamedTuple):
    """Mean of a target, the variance that comes from uncertain weights, and that of its noise; each ``(n, K)``."""

    mean: FloatArray
    var: FloatArray
    noise_var: FloatArray


class LogNoise(NamedTuple):
    """Belief about the log of a noise variance before any data, for an input like those that are learned."""

    mean: float
    var: float


LOG_NOISE = LogNoise(float(np.log(0.02)), 3.25)
"""That of standardised targets."""


class Likelihood:
    """The probability of a target, given the outputs of a model.

    A subclass in Python defines ``moment_match(activation, mean, var, y)``, which returns a `MomentMatch`, and
    ``noise_var``. If its targets are not close to Gaussian it defines ``quantile``, too. Perceptrons and networks then
    take an object of it as their ``observation``.

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
    words: ClassVar[str] = "numbers"
    """What targets are, in reports."""
    is_numeric: ClassVar[bool] = True
    """Whether targets are numbers, and neither counts nor labels."""
    is_count: ClassVar[bool] = False
    """Whether targets are counts."""
    is_label: ClassVar[bool] = False
    """Whether targets are labels or classes, whose interval is that of a probability."""
    is_class: ClassVar[bool] = False
    """Whether a target is one class among as many as there are outputs."""
    is_gaussian: ClassVar[bool] = False
    """Whether targets have Gaussian noise, of one variance for all inputs."""
    predicts_gaussians: ClassVar[bool] = True
    """Whether targets are predicted as Gaussian, or as mixtures of Gaussians; False where a subclass says otherwise."""
    can_calibrate: ClassVar[bool] = False
    """Whether a network can scale its predictive variance to the errors that it has made."""
    takes_noise: ClassVar[bool] = False
    """Whether the noise can be given, or learned as one number per output."""
    has_noise_outputs: ClassVar[bool] = False
    """Whether the noise depends on the input, by outputs of its own."""
    needs_network: ClassVar[bool] = False
    """Whether there are always several outputs, which a perceptron does not have."""
    link: Activation = as_activation("linear")
    """The activation that the linear outputs of a network go through."""
    kalman: ClassVar[type[CompiledLikelihood] | None] = None
    """The paper's rule, compiled; None for a likelihood in Python."""
    noise: float | FloatArray | None = None
    """Variance of the Gaussian noise, or the dispersion of counts; None if there is none, or none was given."""
    usual_noise: ClassVar[float | str] = 0.0
    """The noise of a perceptron if none is given; ``"learn"`` if no value suits all targets."""
    noise_start: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """Where a perceptron's learned noise starts, and how many rows that start counts as: see `onepass.engine.step`."""
    output_noise_start: ClassVar[tuple[float, float]] = (0.0, 0.0)
    """The same of the noise of a network's outputs."""

    def __init_subclass__(cls) -> None:
        places = ("normal_score", "tracking_score", "at_normal_score", "quantile")
        cls.predicts_gaussians = all(getattr(cls, name) is getattr(Likelihood, name) for name in places)

    def check(self, y: FloatArray) -> None:
        """Raise a ValueError for targets that are impossible; by default every finite number is allowed."""

    def impossible(self, y: FloatArray) -> Any:
        """Which targets are impossible; NaN means not observed, and is allowed."""
        return np.zeros(np.shape(y), dtype=bool)

    def log_outlier_density(self, y: float) -> float:
        """Log density of a target that can't be trusted, whatever the output.

        A subclass in Python defines it if it is used with ``outliers`` above 0.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method log_outlier_density(y) for outliers above 0")

    def choose_noise(self, noise: Any) -> Any:
        """The noise that a user chose, in the argument ``noise`` or in the likelihood itself; None for neither."""
        if noise is None or not self.takes_noise:
            if noise is not None:
                able = " or ".join(map(repr, likelihood_names(lambda kind: kind.takes_noise)))
                raise ValueError(
                    f"noise can be given only with observation={able}, got noise={noise!r} with observation="
                    f"{self.name or self!r}"
                )
            return self.noise
        if self.noise is not None:
            raise ValueError(f"noise can be given only once, got noise={noise!r} and observation={self!r}")
        return noise

    def check_outliers(self, outliers: float) -> None:
        """Raise a ValueError if ``outliers`` is positive and the likelihood has no density for outliers."""
        if outliers and self._in_python and type(self).log_outlier_density is Likelihood.log_outlier_density:
            raise ValueError(
                f"outliers={outliers:g} needs a method log_outlier_density(y) of {type(self).__name__}: the log "
                "density of a target that can't be trusted; or pass outliers=0"
            )

    def check_activation(self, activation: Activation) -> None:
        """Raise a ValueError for an activation that does not fit, such as one that is negative for counts."""

    def with_noise(self, noise: float | FloatArray | None) -> "Likelihood":
        """The same likelihood with another noise variance, where it has one."""
        return self

    def output_moments(self, activation: Activation, mean: FloatArray, var: FloatArray) -> Moments:
        """Moments of ``f(a)`` to predict with; by default the activation's own."""
        return activation.moments(mean, var)

    def noise_var(self, output: Moments) -> FloatArray:
        """Variance of ``y`` around ``f(a)`` that remains when the weights are known, for these moments of ``f(a)``."""
        raise NotImplementedError(f"{type(self).__name__} needs a method noise_var(output) to predict")

    # The predictive distribution of a target: see `onepass.PredictedMoments`.

    def normal_score(self, parts: Components, y: FloatArray) -> FloatArray:
        """Where targets ``(n,)`` lie in their predictive distributions ``F``, as normal numbers: ``Phi^-1(F(y))``."""
        return parts.gaussians().normal_score(y) if self._own_quantile(parts) is None else self._inverted(parts, y)

    def at_normal_score(self, parts: Components, z: FloatArray) -> FloatArray:
        """The targets that lie where normal numbers ``z``, ``(n,)`` or ``(1,)``, do: ``F^-1(Phi(z))``."""
        quantile = self._own_quantile(parts)
        if quantile is None:
            return parts.gaussians().at_normal_score(z)
        mean, var = parts.pre_mean[0], parts.pre_var[0]
        if z.size == 1:
            return np.asarray(quantile(parts.activation, mean, var, float(ndtr(z[0]))))
        levels = zip(mean[:, None], var[:, None], ndtr(z).tolist(), strict=True)
        return np.concatenate([quantile(parts.activation, *own) for own in levels])

    def log_density(self, parts: Components, y: FloatArray) -> FloatArray:
        """Log density of targets ``(n,)``, or log probability of counts and labels."""
        return parts.gaussians().log_density(y)

    def tracking_score(self, parts: Components, y: FloatArray) -> FloatArray:
        """`normal_score`; for whole numbers, of the middle of their step."""
        return self.normal_score(parts, y)

    def interval(self, parts: Components, level: float) -> tuple[FloatArray, FloatArray]:
        """Central interval of targets; for labels of their probability."""
        z = ndtri(np.array([0.5 + level / 2]))
        return self.at_normal_score(parts, -z), self.at_normal_score(parts, z)

    def draw(self, parts: Components, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` targets from each predictive distribution, ``(n, ...)``."""
        return np.asarray([self.at_normal_score(parts, z) for z in rng.normal(size=(n, parts.mean.shape[1]))])

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """Quantile of a target, given the belief ``N(mean, var)`` about the pre-activation.

        A subclass in Python defines it if its targets are not close to Gaussian. This one is that of a Gaussian with
        the predictive moments.
        """
        output = activation.moments(mean, var)
        return np.asarray(output.mean + ndtri(level) * np.sqrt(output.var + self.noise_var(output)))

    def _own_quantile(self, parts: Components) -> Callable[..., FloatArray] | None:
        """That of a subclass, which knows nothing of mixtures."""
        return self.quantile if type(self).quantile is not Likelihood.quantile and len(parts.mean) == 1 else None

    def _inverted(self, parts: Components, y: FloatArray) -> FloatArray:
        """`at_normal_score` inverted by bisection."""
        low, high = np.full(len(y), -38.0), np.full(len(y), 38.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = self.at_normal_score(parts, middle) < y
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

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
        if self.noise is None and self.takes_noise:
            raise ValueError(f"a target can be matched only with a known noise: use {type(self).__name__}(noise)")
        mean, var, y, noise = broadcast(mean, var, y, 0.0 if self.noise is None else self.noise)
        rows = compiled.match_rows(*(np.ravel(values) for values in (mean, var, y, noise)))
        return MomentMatch(*(part[()] for part in rows.reshape(4, *mean.shape)))

    # The outputs of a network.

    def outputs(self, n_outputs: int, log_noise: LogNoise = LOG_NOISE) -> VectorLikelihood:
        """The object whose methods the compiled loops of networks call; a ValueError where their number is wrong."""
        self.check_activation(self.link)
        return SeparateOutputs(n_outputs, self.compiled(self.link, self.choose_update("auto", self.link)))

    def bias_std(self, intercept_scale: float | None) -> float | None:
        """Prior standard deviation of every output's bias for a user's ``intercept_scale``."""
        return intercept_scale

    def start_noise(self, n_outputs: int, noise: float | None, calibrate: bool, outliers: float) -> NetworkProgress:
        """State of the noise of a network before the first row; a ``noise`` of None is learned, if there is any."""
        start, weight = self.output_noise_start if noise is None else (noise, 0.0)
        state = NetworkProgress.start(n_outputs, start, calibrate, outliers)
        state.noise_weight[:] = weight
        return state

    def as_targets(self, value: Any, n_rows: int, single: bool, outputs: VectorLikelihood) -> FloatArray:
        """Check and shape a user's targets of a network: ``(n_rows, columns)``, one column of classes.

        Of several columns some may be NaN: these were not observed.
        """
        columns = int(outputs.n_columns)
        targets = as_floats_or_nan(value, "y") if columns > 1 else as_floats(value, "y", NO_TARGET)
        allowed: list[tuple[int, ...]] = [(n_rows,)] if columns == 1 else []
        allowed += [(n_rows, columns), *([(columns,)] if single else []), *([()] if single and columns == 1 else [])]
        if targets.shape not in allowed:
            shapes = " or ".join(str(shape) for shape in dict.fromkeys(allowed))
            raise ValueError(f"y must have shape {shapes}, got shape {targets.shape}")
        targets = np.ascontiguousarray(targets.reshape(n_rows, columns))
        self.check(targets[:, 0] if columns == 1 else targets)
        return targets

    def predictive(self, given: OutputRecord, alone: bool) -> Predictive:
        """What is predicted from the outputs of a network, ``alone`` or in a mixture."""
        output = self.output_moments(self.link, given.mean, given.var + given.unknown_noise)
        return Predictive(output.mean, output.var, self.with_noise(given.noise).noise_var(output))

    def response(self, outputs: FloatArray) -> FloatArray:
        """What known outputs of a network, ``(..., K)``, expect of a target; for labels their probabilities."""
        return self.link(outputs)


Registered = TypeVar("Registered", bound=type[Likelihood])
_REGISTERED: dict[str, type[Likelihood]] = {}


def register(kind: Registered) -> Registered:
    """Let models choose a likelihood by its name, and files store it."""
    _REGISTERED[kind.name] = kind
    return kind


def likelihood_names(fits: Callable[[type[Likelihood]], bool] = lambda kind: True) -> tuple[str, ...]:
    """Names of all likelihoods that a model can have, or of those that fit."""
    return tuple(sorted(name for name, kind in _REGISTERED.items() if fits(kind)))


def named(name: str) -> type[Likelihood]:
    """The likelihood of a name."""
    return _REGISTERED[one_of(name, likelihood_names(), "observation")]


def encode_likelihood(likelihood: Likelihood) -> str:
    """Return the name of a likelihood; a TypeError if the name alone can't restore it."""
    kind = _REGISTERED.get(likelihood.name)
    if kind is not type(likelihood) or vars(likelihood.with_noise(None)) != vars(kind()):
        names = ", ".join(map(repr, _REGISTERED))
        raise TypeError(
            f"likelihood {likelihood!r} is not one that a file can name, so a model with it can't be saved; use one of "
            f"observation={names} in models that are to be saved"
        )
    return likelihood.name


def refuse_first(y: FloatArray, bad: Any, wanted: str) -> None:
    """Raise a ValueError that names the first bad target, if there is one."""
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"y must hold {wanted}, got {y[where]:g} at index {where[0] if y.ndim == 1 else where}")
