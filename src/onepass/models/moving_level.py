"""Linear regression around a level that moves: what rows have in common beyond their features, and for how long.

The target of a row at time ``t`` is ``x'w + r(t) + u(t) + noise``. The weights ``w`` (the intercept is the first) stay;
``r`` is a random walk, and ``u`` returns to 0 within its time scale (an Ornstein-Uhlenbeck process). Given the speed of
the walk and the size and time scale of ``u``, everything else has a closed form: weights and level are jointly
Gaussian, and each row moves them by one step of a Kalman filter, over gaps of any length and with several rows at one
time. The variance of the noise is learned too: all variances are multiples of it, whose inverse has a gamma density.

Nothing of the level is known in advance, so a grid of hypotheses learns side by side. One has no level at all, and so
is plain Bayesian linear regression. Between it and the others the evidence decides. Among the others it counts a
twentieth: they are approximations, and evidence is about the next row. Over hundreds of rows it selects the one that
predicts the next row best, with a level that returns too soon for the rows far ahead.

A prediction adds the level as far as it is known at that time. So predictions right after the last row have its error
in them, and further ahead the level fades and intervals widen, by the exact variance of what may have happened since.
"""

from dataclasses import dataclass, fields, replace
from math import lgamma, log, pi
from typing import NamedTuple, Self

import numpy as np
from scipy.special import logsumexp, softmax

from onepass._typing import FloatArray
from onepass.engine.outliers import FAR
from onepass.files.state import Arrays, sized

__all__ = ["LevelPrediction", "MovingLevels", "ScoredRow"]

# Chosen on generated levels and the development half of benchmarks/future. Variances are multiples of the noise's.
_WALKS = (0.0, 1e-4, 1e-2, 1.0, 10.0, 100.0)  # that a random walk gains per step
_RETURNING = ((1.0, 0.0), (2.0, 1.0), (2.0, 9.0), (8.0, 1.0), (8.0, 9.0))  # steps to return, and variance
_HYPOTHESES = tuple((walk, *own) for walk in _WALKS for own in _RETURNING)  # the first: no level
_NO_LEVEL = 0.5  # its probability before the first row
_TEMPER = 0.05  # what the evidence counts among hypotheses with a level
_FIRM = 2.0  # rows that the first guess of the noise counts as, times two
_MOST_IN_A_ROW = 20  # rows set aside in succession; after these the targets have changed
_LOG_2PI = log(2.0 * pi)


class LevelPrediction(NamedTuple):
    """What every hypothesis predicts of ``n`` rows."""

    weights: FloatArray  # (k,)
    mean: FloatArray  # (k, n)
    var: FloatArray  # (k, n), of what is not known of weights and level
    noise_var: FloatArray  # (k,)

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise of the mixture, ``(n,)`` each."""
        mean = self.weights @ self.mean
        var = self.weights @ (self.var + np.square(self.mean - mean))
        return mean, var, np.full(len(mean), self.weights @ self.noise_var)


class ScoredRow(NamedTuple):
    """What was predicted of a row right before it was learned."""

    mean: float
    epistemic: float
    aleatoric: float
    log_density: float
    set_aside: bool


@dataclass
class _State:
    """All that learning changes."""

    mean: FloatArray  # (k, 1 + d + 2): intercept, weights, what returns, and the walk
    cov: FloatArray  # (k, 1 + d + 2, 1 + d + 2), as a multiple of the noise variance
    spread: FloatArray  # (k,): the noise's inverse has a gamma density of this rate
    evidence: FloatArray  # (k,)
    counts: FloatArray  # shape of that density, last time, rows in succession set aside, and all set aside

    def copy(self) -> "_State":
        return _State(*(getattr(self, one.name).copy() for one in fields(self)))


class MovingLevels:
    """Bayesian linear regression whose level moves with time, over all hypotheses of how it does.

    Parameters
    ----------
    prior_var : (1 + d,) array
        Variances of the intercept and the weights before the first row.
    noise : float
        A first guess of the noise variance.
    step : float
        The usual time between rows, in which the time scales of the hypotheses are counted.

    Examples
    --------
    >>> level = MovingLevels(np.array([16.0]), 0.1, step=1.0)
    >>> walk, ones = np.cumsum(np.random.default_rng(0).normal(size=200)), np.ones((200, 1))
    >>> _ = level.learn(np.arange(200.0), ones, walk)
    >>> seen = level.predict(np.array([200.0, 300.0]), ones[:2])
    >>> near, far = seen.weights @ seen.mean
    >>> bool(abs(near - walk[-1]) < 1.0), bool((seen.weights @ seen.var)[1] > 30.0)
    (True, True)
    """

    def __init__(self, prior_var: FloatArray, noise: float, step: float) -> None:
        walks, steps, returning = np.array(_HYPOTHESES).T
        self._walk, self._scale, self._returning = walks / step, steps * step, returning
        k, p = len(walks), len(prior_var) + 2
        cov = np.zeros((k, p, p))
        cov[:, np.arange(p - 2), np.arange(p - 2)] = prior_var / noise
        cov[:, -2, -2] = returning
        # What returns is part of what the guess takes for noise.
        spread = _FIRM * noise / (1.0 + returning)
        self.state = _State(np.zeros((k, p)), cov, spread, np.zeros(k), np.array([_FIRM, np.nan, 0.0, 0.0]))

    @property
    def weights(self) -> FloatArray:
        """How probable each hypothesis is, ``(k,)``; the first has no level."""
        evidence = self.state.evidence
        moving = evidence[1:]
        log_odds = logsumexp(moving) - log(len(moving)) - evidence[0] + log(1.0 / _NO_LEVEL - 1.0)
        share = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -700.0, 700.0)))
        return np.concatenate([[1.0 - share], share * softmax(_TEMPER * moving)])

    @property
    def level_probability(self) -> float:
        """The probability that there is a level that moves."""
        return float(self.weights[1:].sum())

    @property
    def last_time(self) -> float:
        """The time of the latest row; NaN before the first."""
        return float(self.state.counts[1])

    @property
    def n_set_aside(self) -> int:
        """Targets that were counted but not learned, since they were absurdly far off."""
        return int(self.state.counts[3])

    @property
    def noise(self) -> float:
        """The variance of the noise, on average over the hypotheses."""
        return float(self.weights @ self._noise_vars())

    def belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``(1 + d,)`` and covariance of intercept and weights, on average over the hypotheses."""
        means, shares = self.state.mean[:, :-2], self.weights
        mean = shares @ means
        own = np.einsum("k,kij->ij", shares * self._noise_vars(), self.state.cov[:, :-2, :-2])
        return mean, own + np.einsum("k,ki,kj->ij", shares, means - mean, means - mean)

    def predict(self, times: FloatArray, rows: FloatArray) -> LevelPrediction:
        """Predict rows ``(n, 1 + d)``, the first feature of which is 1, at times ``(n,)``.

        What is known of the level is what the rows up to the last one have shown; of an earlier time it tells as much
        as of one equally far ahead.
        """
        state, noise_var = self.state, self._noise_vars()
        mean, var = np.empty((len(noise_var), len(rows))), np.empty((len(noise_var), len(rows)))
        z = np.column_stack([rows, np.zeros(len(rows)), np.ones(len(rows))])
        kept, added = self._moved(times)
        for k in range(len(noise_var)):
            z[:, -2] = kept[k]
            mean[k] = z @ state.mean[k]
            var[k] = np.einsum("ij,ij->i", z @ state.cov[k], z) + added[k]
        return LevelPrediction(self.weights, mean, noise_var[:, None] * np.maximum(var, 0.0), noise_var)

    def learn(
        self, times: FloatArray, rows: FloatArray, targets: FloatArray, weights: FloatArray | None = None
    ) -> list[ScoredRow]:
        """Learn rows ``(n, 1 + d)`` in their order; returns what was predicted of each right before.

        A row that is older than one before it tells of the level as much as can be known at that distance.
        """
        before = self.state
        self.state = before.copy()
        counted = np.ones(len(rows)) if weights is None else weights
        try:
            return [self._learn_row(*one) for one in zip(times.tolist(), rows, targets, counted.tolist(), strict=True)]
        except BaseException:  # Ctrl-C too
            self.state = before
            raise

    def _learn_row(self, time: float, row: FloatArray, target: float, weight: float) -> ScoredRow:
        state = self.state
        shape = state.counts[0]
        kept, added = (one[:, 0] for one in self._moved(np.array([time])))
        if time >= self.last_time:
            state.mean[:, -2] *= kept
            state.cov[:, -2, :] *= kept[:, None]
            state.cov[:, :, -2] *= kept[:, None]
            state.cov[:, -2, -2] += self._returning * (1.0 - kept**2)
            state.cov[:, -1, -1] += added - self._returning * (1.0 - kept**2)
            kept, added = np.ones_like(kept), np.zeros_like(added)
        if not time < self.last_time:
            state.counts[1] = time
        z = np.column_stack([np.broadcast_to(row, (len(kept), len(row))), kept, np.ones(len(kept))])
        along = np.einsum("kij,kj->ki", state.cov, z)
        known = np.maximum(np.einsum("ki,ki->k", along, z), 0.0) + added
        error = target - np.einsum("ki,ki->k", state.mean, z)
        found = self._scored(target, error, known)
        if found.set_aside or weight == 0.0:
            return found
        var = known + 1.0 / weight
        surprise = 0.5 * error**2 / var
        later = shape + 0.5 * weight
        state.evidence += (
            lgamma(later)
            - lgamma(shape)
            + shape * np.log(state.spread)
            - later * np.log(state.spread + surprise)
            - 0.5 * (weight * _LOG_2PI + np.log(weight * var))
        )
        state.evidence -= state.evidence.max()
        gain = along / np.sqrt(var)[:, None]
        state.mean += gain * (error / np.sqrt(var))[:, None]
        state.cov -= gain[:, :, None] * gain[:, None, :]
        state.spread += surprise
        state.counts[0] = later
        return found

    def _scored(self, target: float, error: FloatArray, known: FloatArray) -> ScoredRow:
        """What was predicted of a row, and whether its target is so far off that it is set aside."""
        shares, noise_var, counts = self.weights, self._noise_vars(), self.state.counts
        var = noise_var * known
        gaps = target - error
        mean = float(shares @ gaps)
        epistemic, aleatoric = float(shares @ (var + (gaps - mean) ** 2)), float(shares @ noise_var)
        distance = abs(target - mean) / np.sqrt(epistemic + aleatoric)
        total = var + noise_var
        near = error * min(1.0, FAR / distance) if distance else error
        densities = -0.5 * (_LOG_2PI + np.log(total) + near**2 / total)
        log_density = float(logsumexp(densities, b=shares)) - 2.0 * log(max(distance / FAR, 1.0))
        is_far = bool(distance > FAR) and counts[2] < _MOST_IN_A_ROW
        counts[2] = counts[2] + 1.0 if is_far else 0.0
        counts[3] += is_far
        return ScoredRow(mean, epistemic, aleatoric, log_density, is_far)

    def _moved(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is left at some times of what returns, ``(k, n)``, and the variance that the level has gained."""
        apart = np.abs(times - self.last_time)
        apart = np.where(np.isnan(apart), 0.0, apart)
        kept = np.exp(-apart / self._scale[:, None])
        return kept, self._returning[:, None] * (1.0 - kept**2) + self._walk[:, None] * apart

    def _noise_vars(self) -> FloatArray:
        return np.asarray(self.state.spread / (self.state.counts[0] - 1.0))

    # Files.

    def to_arrays(self) -> Arrays:
        """All that was learned."""
        return {one.name: getattr(self.state, one.name).copy() for one in fields(_State)}

    def with_arrays(self, arrays: Arrays) -> Self:
        """Continue from what `to_arrays` gave."""
        shapes = {one.name: getattr(self.state, one.name).shape for one in fields(_State)}
        self.state = replace(self.state, **{name: sized(arrays, name, shape) for name, shape in shapes.items()})
        return self
