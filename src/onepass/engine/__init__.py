"""The same steps as the reference, compiled and blocked.

Nothing here is needed to understand the method: a model hands over its rule in numbers (`encode`) and its belief, and
`learn` takes all rows in compiled loops, or for large covariances in matrix-matrix blocks. Importing this package
imports Numba.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from onepass._typing import FloatArray
from onepass.activations import (
    Activation,
    Exponential,
    Gelu,
    Moments,
    PaperSigmoid,
    PiecewiseLinear,
    Probit,
    Rescaled,
    Sigmoid,
    Softplus,
    Step,
)
from onepass.beliefs.base import Belief
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.engine import moments, tilts
from onepass.engine.blocks import block_size, learn_block
from onepass.engine.rows import CANCELLED, row_root, rows_dense, rows_diagonal, rows_root, rows_sparse
from onepass.engine.threads import threads_for
from onepass.likelihoods.univariate import Bernoulli, Gaussian, Observation

__all__ = ["CROSSOVER", "Plan", "encode", "learn", "learner_of_one", "outputs", "settle"]

# From so many weights on blocks are faster than rows: measured by `make bench`.
CROSSOVER = 150

_CODES: dict[type, int] = {
    Sigmoid: moments.SIGMOID,
    PaperSigmoid: moments.PAPER_SIGMOID,
    Probit: moments.PROBIT,
    Step: moments.STEP,
    Gelu: moments.GELU,
    Softplus: moments.SOFTPLUS,
    Exponential: moments.EXP,
    PiecewiseLinear: moments.PIECEWISE,
}
_LABEL_KINDS: dict[type, int] = {
    Sigmoid: tilts.ADF_SIGMOID,
    Probit: tilts.ADF_PROBIT,
    Step: tilts.ADF_STEP,
}
_FEW = 16  # rows for which a block is not worth its set-up
_NOTHING = np.empty((0, 0))
_FLOAT = np.dtype(np.float64)
_SCALARS = frozenset({float, int, bool, np.float64, np.bool_, np.int64})


@dataclass(frozen=True)
class Plan:
    """What a model's learning is made of, apart from its belief."""

    rule: FloatArray
    prior_variances: FloatArray  # (p,), or empty where nobody asks for them
    process_noise: FloatArray  # (p,), or empty
    kernel: str  # "auto", "rows" or "blocks"

    def uses_root(self, size: int) -> bool:
        """Whether a full covariance of this size stays a root from row to row."""
        return not len(self.process_noise) and (self.kernel == "rows" or (self.kernel == "auto" and size < CROSSOVER))


def encode(
    activation: Activation, observation: Observation, update: str, bias: int, forgetting: float, prior_trace: float
) -> FloatArray | None:
    """Put a rule of learning into numbers; None for what only the reference can do, such as one's own activation."""
    shape = (1.0, 1.0, 0.0)
    if isinstance(activation, Rescaled):
        shape = (activation.inner, activation.outer, activation.offset)
        activation = activation.base
    if type(activation) not in _CODES:
        return None
    if update == "kalman":
        label = tilts.KALMAN_LABEL if isinstance(observation, Bernoulli) else tilts.KALMAN_COUNT
        kind = tilts.KALMAN_NOISE if isinstance(observation, Gaussian) else label
    elif isinstance(observation, Gaussian):
        kind = tilts.ADF_NOISE
    else:
        kind = _LABEL_KINDS[type(activation)] if isinstance(observation, Bernoulli) else tilts.ADF_COUNT
    pieces = activation.pieces if isinstance(activation, PiecewiseLinear) else np.zeros((4, 1))
    return moments.make_rule(kind, _CODES[type(activation)], shape, pieces, bias, forgetting, prior_trace)


def settle(plan: Plan, posterior: Belief, n_rows: int) -> None:
    """Bring a belief into the form in which so many rows will be learned, before anyone keeps a copy of it."""
    if not isinstance(posterior, FullGaussian) or posterior.fragile:
        return
    if len(plan.process_noise) or _blocks_pay(plan, len(posterior.mean), n_rows):
        _ = posterior.dense


def learn(
    plan: Plan,
    posterior: Belief,
    running: FloatArray,
    X: FloatArray | csr_array,
    y: FloatArray,
    X_var: FloatArray | None,
    out: FloatArray,
) -> int:
    """Learn rows in order into the belief, in place; the number learned, fewer than all if one is not finite."""
    row_vars = _NOTHING if X_var is None else X_var
    if isinstance(posterior, DiagonalGaussian):
        shared = (plan.rule, running, plan.prior_variances, plan.process_noise, posterior.mean, posterior.variance, out)
        if isinstance(X, csr_array):
            return int(rows_sparse(X.data, X.indices, X.indptr, y, *shared))
        return int(rows_diagonal(X, row_vars, y, *shared))
    assert isinstance(posterior, FullGaussian)
    assert not isinstance(X, csr_array)
    if X_var is None and not posterior.fragile and _blocks_pay(plan, len(posterior.mean), len(X)):
        with threads_for(len(posterior.mean)):
            return _learn_blocks(plan, posterior, running, X, y, out)
    return _learn_rows(plan, posterior, running, X, y, row_vars, out)


def outputs(plan: Plan, pre_mean: FloatArray, pre_var: FloatArray) -> Moments:
    """Moments of the activation, as `Activation.moments` gives them, at the speed of learning."""
    out = np.empty((3, len(pre_mean)))
    moments.moments_of_rows(plan.rule, pre_mean, pre_var, out)
    return Moments(*out)


def learner_of_one(plan: Plan, posterior: FullGaussian, running: FloatArray) -> Callable[[FloatArray, Any], bool]:
    """Make a function that learns one row with next to no overhead.

    It answers False, with nothing changed, to anything out of the ordinary.
    """
    rule, space, root = plan.rule, posterior.space, posterior.root

    def learn_one(x: FloatArray, y: Any) -> bool:
        # What compiled code would be compiled anew for goes the long way.
        if x.dtype is not _FLOAT or type(y) not in _SCALARS or not x.flags.c_contiguous:
            return False
        try:
            return row_root(x, float(y), rule, running, space, root)
        except OverflowError:  # an integer beyond float64
            return False

    return learn_one


def _blocks_pay(plan: Plan, size: int, n_rows: int) -> bool:
    return plan.kernel == "blocks" or (plan.kernel == "auto" and size >= CROSSOVER and n_rows >= _FEW)


def _learn_rows(
    plan: Plan,
    posterior: FullGaussian,
    running: FloatArray,
    X: FloatArray,
    y: FloatArray,
    row_vars: FloatArray,
    out: FloatArray,
) -> int:
    start = 0
    if not posterior.fragile and (len(plan.process_noise) or posterior.is_dense):
        limit = CANCELLED[posterior.mean.dtype]
        belief = (plan.process_noise, limit, posterior.space, posterior.dense, out)
        start, posterior.fragile = rows_dense(X, row_vars, y, plan.rule, running, *belief)
        if not posterior.fragile:
            return int(start)
    # What the covariance itself can't hold, its root can: from here on the belief is learned in that form.
    rest = (X[start:], row_vars[start:], y[start:], out[start:])
    if len(plan.process_noise):
        return start + _learn_drifting_root(plan, posterior, running, *rest)
    return start + int(rows_root(*rest[:3], plan.rule, running, posterior.space, posterior.root, rest[3]))


def _learn_drifting_root(
    plan: Plan,
    posterior: FullGaussian,
    running: FloatArray,
    X: FloatArray,
    row_vars: FloatArray,
    y: FloatArray,
    out: FloatArray,
) -> int:
    """Process noise on a root is a factorisation a row: slow, and rarely needed."""
    for i in range(len(X)):
        row = slice(i, i + 1)
        held = posterior.copy()
        posterior.diffuse(plan.process_noise)
        belief = (plan.rule, running, posterior.space, posterior.root)
        if not rows_root(X[row], row_vars[row], y[row], *belief, out[row]):
            posterior.hold(held)
            return i
    return len(X)


def _learn_blocks(
    plan: Plan, posterior: FullGaussian, running: FloatArray, X: FloatArray, y: FloatArray, out: FloatArray
) -> int:
    step = block_size(len(posterior.mean))
    rows = np.ones((step, len(posterior.mean)), dtype=posterior.mean.dtype)
    bias, forgetting = int(plan.rule[2, 0]), plan.rule[3, 0]
    blocks = not (forgetting < 1.0 and len(plan.process_noise))  # growth and noise together would need a third product
    for start in range(0, len(X), step):
        end = min(start + step, len(X))
        learned, seen = -1, out[start:end]
        if blocks and not posterior.fragile:
            rows[: end - start, bias:] = X[start:end]
            block = (rows[: end - start], y[start:end], plan.rule, running, plan.process_noise)
            learned = learn_block(*block, posterior.mean, posterior.dense, seen)
            posterior.fragile = learned < 0
        if learned < 0:
            learned = _learn_rows(plan, posterior, running, X[start:end], y[start:end], _NOTHING, seen)
        if learned < end - start:
            return start + learned
    return len(X)
