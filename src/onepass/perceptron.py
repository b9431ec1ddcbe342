"""The Bayesian perceptron: Algorithms 1 and 2 of the paper, to be read beside it.

M. F. Huber, "Bayesian Perceptron: Towards fully Bayesian Neural Networks", 2020. The equations are named as in the
paper's source. This is the reference for everything faster: one row at a time, in NumPy.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import nbinom

from onepass.activations import Activation, Tilt, as_activation
from onepass.gaussian import FloatArray
from onepass.observations import (
    Bernoulli,
    Gaussian,
    NoiseEstimate,
    Observation,
    Poisson,
    default_observation,
    gamma_shape,
    kalman,
)
from onepass.posterior import Diagonal, Full, Posterior
from onepass.validation import (
    as_count,
    as_covariance,
    as_floats,
    as_generator,
    as_nonnegative,
    as_rows,
    as_share,
    as_targets,
    as_variances,
    one_of,
)

__all__ = ["BayesianPerceptron", "Prediction"]


class Prediction(NamedTuple):
    """The predictive distribution: numbers for one row, arrays ``(n,)`` for many."""

    mean: Any
    """``mu_y``, the expected output; for labels the probability of a 1."""
    var: Any
    """``sigma_y²``, the variance of ``f(a)`` that comes from not knowing the weights."""
    pre_mean: Any
    """``mu_a``, the mean of the pre-activation."""
    pre_var: Any
    """``sigma_a²``, its variance."""
    noise_var: Any
    """``epsilon``, the variance of the observation noise; ``var + noise_var`` is the variance of ``y``."""

    @property
    def epistemic(self) -> Any:
        """The part of the variance of ``y`` that more data would take away."""
        return self.var

    @property
    def aleatoric(self) -> Any:
        """The part that no data will."""
        return self.noise_var


@dataclass
class _State:
    """All that learning changes."""

    posterior: Posterior
    noise: NoiseEstimate | None
    log_evidence: float = 0.0
    n_seen: int = 0

    def copy(self) -> "_State":
        return replace(self, posterior=self.posterior.copy(), noise=copy(self.noise))


class BayesianPerceptron:
    """A perceptron ``y = f(x'w) + noise`` whose weights are a Gaussian belief.

    Parameters
    ----------
    n_features : int
        Length of an input row, without the bias.
    activation : str or Activation
        ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"linear"``, ``"hard_tanh"``, ``"hard_sigmoid"``,
        ``"relu6"``, ``"step"``, ``"probit"``, ``"erf"``, ``"gelu"``, ``"softplus"``, ``"exp"``, or an object with
        ``moments``: a `PiecewiseLinear`, a `Quadrature` of any function, your own.
    bias : bool
        Put a constant 1 before every row; weight 0 is then the bias.
    mean : (p,) array, optional
        Prior mean of the weights, ``p = n_features + bias``; zeros by default.
    cov : number, (p,) or (p, p) array, optional
        Prior covariance of the weights: one variance for all, one for each, or a matrix; the identity by default.
    observation : {"auto", "gaussian", "bernoulli", "poisson"}
        How a target comes about: Gaussian noise around the output, a label 0/1 whose probability the output is, or a
        count whose rate it is. By default labels for sigmoid, probit and step, counts for ``"exp"``, else Gaussian; and
        Gaussian wherever a ``noise`` is given.
    noise : float or "learn", optional
        Variance of the Gaussian noise, the paper's epsilon; 0.01 by default. ``"learn"`` estimates it on the way.
    noise_window : int, optional
        With ``noise="learn"``: how many rows back the estimate remembers; all by default.
    update : {"auto", "adf", "kalman"}
        ``"adf"`` takes the exact posterior moments of the pre-activation, which need a closed form; ``"kalman"`` is the
        paper's rule. By default the exact one wherever there is one.
    moments : {"exact", "paper"}
        The moments of sigmoid and tanh: near-exact, or as the paper approximates them.
    covariance : {"full", "diagonal"}
        Keep all correlations between weights, or only their variances.
    forgetting : float
        In (0, 1]. Below 1 the past fades, for weights that drift: before a row a full covariance is divided by it,
        unless its trace would pass the prior's; a diagonal one is widened in the row's own direction only.
    process_noise : float or (p,) array
        Variance added to every weight before each row, for weights that wander.

    Attributes
    ----------
    n_seen : int
        Rows learned.
    log_evidence : float
        Sum of the log predictive densities of all rows, each before it was learned: the higher, the better prior,
        activation and features suit the data.

    Examples
    --------
    >>> bp = BayesianPerceptron(n_features=1, activation="relu", noise=0.01)
    >>> bp = bp.learn([[1.0], [2.0], [3.0]], [2.1, 3.9, 6.0])
    >>> prediction = bp.predict([2.5])
    >>> print(f"{prediction.mean:.2f} +- {prediction.var ** 0.5:.2f}")
    4.97 +- 0.07
    """

    def __init__(
        self,
        n_features: int,
        activation: str | Activation = "sigmoid",
        *,
        bias: bool = True,
        mean: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        observation: str = "auto",
        noise: float | Literal["learn"] | None = None,
        noise_window: int | None = None,
        update: str = "auto",
        moments: str = "exact",
        covariance: str = "full",
        forgetting: float = 1.0,
        process_noise: ArrayLike = 0.0,
    ) -> None:
        self.n_features = as_count(n_features, "n_features")
        self.bias = bool(bias)
        self.activation = as_activation(activation, moments)
        self._observation, learned_noise = _as_observation(observation, noise, noise_window, self.activation)
        self.update = _as_update(update, self.activation, self._observation)
        self.forgetting = as_share(forgetting, "forgetting")
        size = self.n_features + self.bias
        self.process_noise = as_variances(process_noise, size, "process_noise")
        self._prior = _as_prior(mean, cov, size, one_of(covariance, ("full", "diagonal"), "covariance"))
        self._state = _State(self._prior.copy(), learned_noise)

    @property
    def mean(self) -> FloatArray:
        """Mean of the weights, ``(p,)``; the bias first."""
        return self._state.posterior.mean.copy()

    @property
    def cov(self) -> FloatArray:
        """Covariance of the weights, ``(p, p)``; with ``covariance="diagonal"`` its diagonal, ``(p,)``."""
        return self._state.posterior.cov

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows learned, each before it was learned."""
        return self._state.log_evidence

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return self._state.n_seen

    @property
    def observation(self) -> Observation:
        """The observation model, with its noise as it is now."""
        return _observation_now(self._observation, self._state.noise)

    def predict(self, X: ArrayLike, *, X_var: ArrayLike | None = None) -> Prediction:
        """Forward pass (Algorithm 1) for one row ``(d,)`` or many ``(n, d)``.

        Parameters
        ----------
        X : (d,) or (n, d) array
        X_var : array of the same shape, optional
            Variances of inputs that are themselves uncertain, such as readings of a noisy sensor.
        """
        rows, row_vars, single = self._inputs(X, X_var)
        pre_mean, pre_var = self._pre_activation(rows, row_vars)
        output = self.activation.moments(pre_mean, pre_var)
        columns = (output.mean, output.var, pre_mean, pre_var, self.observation.noise_var(output))
        return Prediction(*(_one_or_many(column, single) for column in columns))

    def learn(self, X: ArrayLike, y: ArrayLike, *, X_var: ArrayLike | None = None) -> Self:
        """Backward pass (Algorithm 2) for one row and its target, or for many in their order.

        All rows are learned or, if anything is wrong with one of them, none.
        """
        rows, row_vars, single = self._inputs(X, X_var)
        targets = as_targets(y, len(rows), single)
        self._observation.check(targets)
        state = self._state.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # answered by the check below
            for i, (x, target) in enumerate(zip(rows, targets, strict=True)):
                self._learn_row(state, x, target, None if row_vars is None else row_vars[i])
        if not (state.posterior.is_finite() and np.isfinite(state.log_evidence)):
            raise ValueError(
                f"X and y overflow float64: their largest magnitudes are {np.abs(rows).max():.3g} and "
                f"{np.abs(targets).max():.3g}; rescale them. Nothing was learned."
            )
        self._state = state
        return self

    def interval(self, X: ArrayLike, level: float = 0.95, *, X_var: ArrayLike | None = None) -> tuple[Any, Any]:
        """Central interval that holds with probability ``level``: of a new target, or for labels of their probability.

        For Gaussian noise the predictive distribution is taken as Gaussian, as in the paper; for labels the limits are
        the exact quantiles of ``f(a)``.
        """
        as_share(level, "level", open_above=True)
        rows, row_vars, single = self._inputs(X, X_var)
        pre_mean, pre_var = self._pre_activation(rows, row_vars)
        output = self.activation.moments(pre_mean, pre_var)
        observation = self.observation

        def quantile(q: float) -> FloatArray:
            if isinstance(observation, Bernoulli):
                return self.activation(pre_mean + ndtri(q) * np.sqrt(pre_var))
            if isinstance(observation, Poisson):
                shape = gamma_shape(output.mean, output.var)
                return np.asarray(nbinom.ppf(q, shape, shape / (shape + output.mean)))
            return np.asarray(output.mean + ndtri(q) * np.sqrt(output.var + observation.noise_var(output)))

        low, high = quantile(0.5 - level / 2), quantile(0.5 + level / 2)
        return _one_or_many(low, single), _one_or_many(high, single)

    def log_predictive(self, X: ArrayLike, y: ArrayLike, *, X_var: ArrayLike | None = None) -> Any:
        """Log density (or probability) of a target before it is learned, one number a row: the surprise, negated."""
        rows, row_vars, single = self._inputs(X, X_var)
        targets = as_targets(y, len(rows), single)
        self._observation.check(targets)
        return _one_or_many(self._tilt(self.observation, *self._pre_activation(rows, row_vars), targets).log_z, single)

    def sample_weights(self, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` weight vectors from the posterior, ``(n, p)``."""
        return self._state.posterior.sample(as_count(n, "n"), as_generator(rng))

    def sample_output(self, X: ArrayLike, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` functions from the posterior and give their outputs ``f(x'w)``: ``(n,)`` or ``(n, rows)``.

        All rows of a draw share its weights, as Thompson sampling wants it.
        """
        rows, _, single = self._inputs(X, None)
        outputs = self.activation(self.sample_weights(n, rng) @ rows.T)
        return outputs[:, 0] if single else outputs

    def _learn_row(self, state: _State, x: FloatArray, y: float, x_var: FloatArray | None) -> None:
        posterior, observation = state.posterior, _observation_now(self._observation, state.noise)
        if self.process_noise.any():
            posterior.diffuse(self.process_noise)
        if self.forgetting < 1.0 and isinstance(posterior, Full):
            _forget(posterior, self.forgetting, self._prior)
        seen = posterior.project(x)  # sigma_a² and sigma_wa of (backward_sigmawa)
        pre_mean = float(x @ posterior.mean)  # (mua)
        input_var = 0.0 if x_var is None else _input_variance(posterior, x_var[None])[0]
        wide = seen.var
        if self.forgetting < 1.0 and isinstance(posterior, Diagonal):
            wide = max(wide, min(wide / self.forgetting, self._prior.project(x).var))
        tilt = self._tilt(observation, pre_mean, wide + input_var, y)
        # Of the variance only the weights' own part can be learned away.
        step = _narrowed(tilt._replace(left=tilt.left + tilt.kappa * input_var), wide, seen.var)
        posterior.rank_one_step(seen, float(step.alpha), float(step.kappa), float(step.left))  # (backward_weightupdate)
        if state.noise is not None:
            state.noise.add(self._noise_sample(observation, pre_mean, seen.var + input_var, y, tilt))
        state.log_evidence += float(tilt.log_z)
        state.n_seen += 1

    def _tilt(self, observation: Observation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
        if self.update == "adf":
            return observation.adf(self.activation, mean, var, y)
        return kalman(self.activation, observation, mean, var, y)

    def _noise_sample(self, observation: Observation, mean: float, var: float, y: float, tilt: Tilt) -> float:
        """``E[(y - f(a))²]`` under the belief that the row left behind."""
        assert isinstance(observation, Gaussian)
        if self.update == "adf":
            return float(observation.expected_square(self.activation, mean, var, y))
        after = self.activation.moments(mean + tilt.alpha * var, max(var - float(tilt.kappa) * var**2, 0.0))
        return float((y - after.mean) ** 2 + after.var)

    def _inputs(self, X: ArrayLike, X_var: ArrayLike | None) -> tuple[FloatArray, FloatArray | None, bool]:
        """Rows and their variances, with the bias's constant 1 in front."""
        rows, single = as_rows(X, self.n_features)
        row_vars = None
        if X_var is not None:
            row_vars, _ = as_rows(X_var, self.n_features, "X_var")
            if row_vars.shape != rows.shape:
                raise ValueError(f"X_var must have the shape of X, got {np.shape(X_var)} and {np.shape(X)}")
            if (row_vars < 0).any():
                raise ValueError(f"X_var must not be negative, got {row_vars.min():g}")
        if self.bias:
            rows = np.hstack([np.ones((len(rows), 1)), rows])
            row_vars = row_vars if row_vars is None else np.hstack([np.zeros((len(rows), 1)), row_vars])
        return rows, row_vars, single

    def _pre_activation(self, rows: FloatArray, row_vars: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        posterior = self._state.posterior
        pre_mean = rows @ posterior.mean  # (mua)
        pre_var = posterior.variances(rows)  # (sigmaa)
        return pre_mean, pre_var if row_vars is None else pre_var + _input_variance(posterior, row_vars)


def _input_variance(posterior: Posterior, row_vars: FloatArray) -> FloatArray:
    """What uncertain inputs add to the variance of ``x'w``: ``Σ (m² + Var w) Var x``."""
    return np.asarray(row_vars @ (posterior.mean**2 + posterior.marginal_variances()))


def _forget(posterior: Full, forgetting: float, prior: Posterior) -> None:
    """Divide the covariance by ``forgetting``, unless its trace would pass the prior's."""
    assert isinstance(prior, Full)
    if posterior.trace() <= forgetting * prior.trace():
        posterior.inflate(1.0 / forgetting)


def _narrowed(tilt: Tilt, wide: float, var: float) -> Tilt:
    """Restate a tilt of the belief widened to ``wide`` along the row as a step from the belief as it is, ``var``.

    Widening adds ``(wide - var)/var² c c'`` to the covariance, so gain and step stay multiples of ``c``.
    """
    if wide == var:
        return tilt
    ratio = wide / var
    kappa = tilt.kappa * ratio**2 - (ratio - 1.0) / var
    return Tilt(tilt.log_z, tilt.alpha * ratio, kappa, tilt.left * ratio)


def _one_or_many(column: FloatArray, single: bool) -> Any:
    return float(column[0]) if single else column


def _as_prior(mean: ArrayLike | None, cov: ArrayLike | None, size: int, covariance: str) -> Posterior:
    prior_mean = np.zeros(size) if mean is None else as_floats(mean, "mean")
    if prior_mean.shape != (size,):
        raise ValueError(f"mean must have shape ({size},), got shape {prior_mean.shape}")
    if cov is None or np.ndim(cov) < 2:
        variances = as_variances(1.0 if cov is None else cov, size, "cov")
        return Full(prior_mean, np.diag(variances)) if covariance == "full" else Diagonal(prior_mean, variances)
    matrix = as_covariance(cov, size)
    if covariance == "full":
        return Full(prior_mean, matrix)
    if np.count_nonzero(matrix - np.diag(np.diag(matrix))):
        raise ValueError(
            "cov must be diagonal for covariance='diagonal', got a matrix with entries beside the diagonal"
        )
    return Diagonal(prior_mean, np.diag(matrix))


_NOISE = 0.01
_NOISE_START = 0.1
_NOISE_START_ROWS = 20.0


def _as_observation(
    observation: str, noise: Any, noise_window: int | None, activation: Activation
) -> tuple[Observation, NoiseEstimate | None]:
    one_of(observation, ("auto", "gaussian", "bernoulli", "poisson"), "observation")
    if observation == "auto":
        observation = default_observation(activation) if noise is None else "gaussian"
    if noise_window is not None and noise != "learn":
        raise ValueError(f"noise_window is for noise='learn', got noise={noise!r}")
    if observation == "gaussian":
        if noise == "learn":
            window = np.inf if noise_window is None else float(as_count(noise_window, "noise_window"))
            return Gaussian(_NOISE_START), NoiseEstimate(_NOISE_START, _NOISE_START_ROWS, window)
        if isinstance(noise, str):
            raise ValueError(f"noise must be a number that is not negative, or 'learn', got {noise!r}")
        return Gaussian(_NOISE if noise is None else as_nonnegative(noise, "noise")), None
    if noise is not None:
        raise ValueError(f"noise is for observation='gaussian', got noise={noise!r} with observation={observation!r}")
    if observation == "poisson":
        if not (activation([-1e3, 0.0, 1e3]) >= 0.0).all():
            raise ValueError(
                "observation='poisson' needs an activation that is never negative, such as 'exp' or 'softplus', "
                f"got {activation!r}"
            )
        return Poisson(), None
    values = activation([-1e3, 0.0, 1e3])
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise ValueError(
            "observation='bernoulli' needs an activation between 0 and 1, such as 'sigmoid', 'probit' or 'step', "
            f"got {activation!r}"
        )
    return Bernoulli(), None


def _as_update(update: str, activation: Activation, observation: Observation) -> str:
    one_of(update, ("auto", "adf", "kalman"), "update")
    closed = observation.has_closed_form(activation)
    if update == "auto":
        return "adf" if closed else "kalman"
    if update == "adf" and not closed:
        raise ValueError(
            f"update='adf' has no closed form for {type(observation).__name__} targets around {activation!r}. "
            "Ways out: update='kalman' or 'auto'; observation='bernoulli' with 'sigmoid' (moments='exact'), 'probit' "
            "or 'step'; observation='gaussian' with a piecewise linear activation; observation='poisson' with 'exp'"
        )
    return update


def _observation_now(observation: Observation, noise: NoiseEstimate | None) -> Observation:
    return observation if noise is None else Gaussian(noise.value)
