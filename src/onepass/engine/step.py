"""The scalar part of learning a row: the moment match, the learned noise, the evidence and the number of rows."""

import cython
import numpy as np
from cython.cimports.libc.math import NAN, isfinite

NOISE_FLOOR = 1e-12
# Where each number stands in `LearningState.to_array`.
NOISE, NOISE_WEIGHT, NOISE_WINDOW, LOG_EVIDENCE, N_SEEN = range(5)
_NOISE_FLOOR = cython.declare(cython.double, NOISE_FLOOR)
START_ROWS = 10.0  # whose residuals bound the noise from below
_START_ROWS = cython.declare(cython.double, START_ROWS)
_RATE = cython.declare(cython.double, 3.0)


class LearningState:
    """All that learning changes besides the belief itself.

    Parameters
    ----------
    noise : the noise variance as it is now
    noise_weight : how many rows it rests on; 0 where it is fixed
    noise_window : how many rows it remembers
    log_evidence : sum of the log predictive densities of all rows
    n_seen : rows learned
    """

    def __init__(
        self,
        noise: float = 0.0,
        noise_weight: float = 0.0,
        noise_window: float = np.inf,
        log_evidence: float = 0.0,
        n_seen: float = 0.0,
    ):
        self.noise, self.noise_weight, self.noise_window = noise, noise_weight, noise_window
        self.log_evidence, self.n_seen = log_evidence, n_seen

    @property
    def learns_noise(self):
        """Whether the noise is learned."""
        return self.noise_weight > 0.0

    def copy(self):
        """Make an independent copy."""
        return LearningState(*self.to_array())

    def assign(self, other):
        """Take over another state's numbers."""
        self.noise, self.noise_weight, self.noise_window = other.noise, other.noise_weight, other.noise_window
        self.log_evidence, self.n_seen = other.log_evidence, other.n_seen

    def to_array(self):
        """All numbers, ``(5,)``, as they stand in files."""
        return np.array([self.noise, self.noise_weight, self.noise_window, self.log_evidence, self.n_seen])

    def __reduce__(self):
        return LearningState, tuple(self.to_array())


def learn_scalar(likelihood, state, mean, var, wide, input_var, y):
    """Learn all of a row but the weights; return the score, information and variance ratio of the belief's step.

    ``var`` is the variance of ``J'w``, ``wide`` that variance after forgetting in the row's own direction,
    ``input_var`` the variance that uncertain inputs add. A row that can't be learned gives NaN and changes nothing.

    The noise is learned by online expectation maximisation. A residual that the weights can explain has no information
    about the noise, so a row counts as much as the square of its variance ratio: the Fisher information of a residual
    about a part of its variance. The step is three times that of a running mean, so that the first rows, whose
    residuals come from unknown weights, fade. For the first rows the noise is at least the squared residual before the
    step: a noise that starts too high is soon corrected, but one too low makes the weights fit the first rows for good.
    """
    total = wide + input_var
    noise = state.noise
    residual = 0.0
    square = 0.0
    if state.noise_weight > 0.0 and state.n_seen < _START_ROWS:
        residual = likelihood.residual(mean, total, y)
        noise = max(noise, residual * residual)
    match = likelihood.match(mean, total, y, noise)
    score = match.score
    information = match.information
    ratio = match.variance_ratio + information * input_var
    if state.noise_weight > 0.0:
        square = likelihood.square_after(match, mean, total, y)
    if not (isfinite(wide) and isfinite(score * wide) and isfinite(score + information + ratio + match.log_z)):
        return NAN, NAN, NAN
    if not isfinite(residual + square):  # asked for on their own, an activation in Python may fail here alone
        return NAN, NAN, NAN
    if state.noise_weight > 0.0:
        share = min(match.variance_ratio, 1.0)
        state.noise_weight += share * share
        rate = max(min(_RATE / state.noise_weight, 1.0), 1.0 / state.noise_window)
        state.noise = max(noise + rate * (square - noise), _NOISE_FLOOR)
    state.log_evidence += match.log_z
    state.n_seen += 1.0
    if wide != var:
        growth = wide / var
        return score * growth, information * growth * growth - (growth - 1.0) / var, ratio * growth
    return score, information, ratio
