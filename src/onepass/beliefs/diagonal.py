"""A Gaussian belief with independent weights, of which only the variances are stored."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from onepass._arrays import not_negative, sized
from onepass._typing import FloatArray
from onepass.beliefs.base import Natural, Projection
from onepass.beliefs.forgetting import prior_gap, reciprocals
from onepass.beliefs.network import NetworkBelief, UnitVariances
from onepass.beliefs.rows import RowPlan
from onepass.engine.network_diagonal import learn_diagonal, look_diagonal
from onepass.engine.network_records import CompiledPass, NetworkRule, NetworkShape, Sites
from onepass.engine.outliers import Trust
from onepass.engine.rows import Rows, rows_diagonal, rows_sparse
from onepass.engine.step import PerceptronProgress
from onepass.engine.vector_matches import NetworkProgress
from onepass.layers.layout import Layout

__all__ = ["DiagonalGaussian", "IndependentWeights"]


class DiagonalGaussian:
    """A Gaussian with independent weights: memory and time in proportion to their number.

    Parameters
    ----------
    mean, variance : (p,) arrays

    Examples
    --------
    >>> belief = DiagonalGaussian(np.zeros(2), np.ones(2))
    >>> belief.rank_one_step(belief.project(np.array([1.0, 0.0])), score=0.5, information=0.25, variance_ratio=0.75)
    >>> belief.mean, belief.cov
    (array([0.5, 0. ]), array([0.75, 1.  ]))
    """

    name: ClassVar[str] = "diagonal"
    keeps_correlations: ClassVar[bool] = False
    keeps_sites: ClassVar[bool] = False
    takes_sparse_rows: ClassVar[bool] = True
    learns_in_blocks: ClassVar[bool] = False

    def __init__(self, mean: FloatArray, variance: FloatArray) -> None:
        self.mean: FloatArray = np.array(mean)
        self.variance: FloatArray = np.array(variance)

    @property
    def cov(self) -> FloatArray:
        """The variances of the weights, ``(p,)``."""
        return self.variance.copy()

    def copy(self) -> Self:
        """Make an independent copy."""
        return type(self)(self.mean, self.variance)

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        return self.variance.copy()

    def variances(self, rows: Any, bias: int = 0) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, which may be sparse; a bias is a constant 1 before the row."""
        squares = rows.multiply(rows) if isinstance(rows, csr_array) else np.square(rows)
        return np.asarray(squares @ self.variance[bias:] + self.variance[:bias].sum())

    def project(self, jacobian: FloatArray) -> Projection:
        """Project the belief on ``J``, equation (7)."""
        gain = self.variance * jacobian
        return Projection(float(jacobian @ gain), gain, jacobian)

    def rank_one_step(self, seen: Projection, score: float, information: float, variance_ratio: float) -> None:
        """Take the step ``m += score c`` and the diagonal of ``C -= information c c'``, see equation (22)."""
        self.mean += score * seen.gain
        # 1 - information c_i J_i, from the share that the whole row left: it can't be negative but by rounding.
        self.variance *= np.maximum(variance_ratio + information * (seen.var - seen.gain * seen.coords), 0.0)

    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for derivatives of K outputs, ``(..., K, p)``."""
        gain = jacobian * self.variance
        return gain, gain @ jacobian.swapaxes(-1, -2)

    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        """Take the step ``m += c score`` and the diagonal of ``C -= c information c'`` for K outputs."""
        self.mean += score @ gain
        # As a factor, so that rounding can't make a variance negative.
        self.variance *= np.maximum(1.0 - ((information @ gain) * jacobian).sum(axis=0), 0.0)

    def prepare(self, plan: RowPlan, n_rows: int) -> None:
        """There is only one form."""

    def learn(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        """Learn rows, dense or sparse, in place."""
        for start, stop, steps in plan.forgetting.segments(int(state.n_seen), len(rows)):
            if steps:
                self.forget(plan.forgetting.keep**steps, plan.prior)
            learned = self._learn_segment(plan, state, rows.part(start, stop))
            if learned < stop - start or state.trust.is_alarmed():
                return start + learned
        return len(rows)

    def _learn_segment(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        belief = (plan.rule, state, plan.wander, self.mean, self.variance)
        if isinstance(rows.X, csr_array):
            return int(rows_sparse(rows, rows.X.data, rows.X.indices, rows.X.indptr, *belief))
        return int(rows_diagonal(rows, *belief))

    def forget(self, keep: float, prior: "DiagonalGaussian") -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        towards, gap = prior_gap(self.mean, self.variance, prior.mean, prior.variance)
        ratio = self.variance * reciprocals(
            keep * towards + (1.0 - keep) * self.variance
        )  # new variance over the prior's
        self.mean += (1.0 - keep) * ratio * gap
        self.variance[:] = towards * ratio

    def rescale(self, trust: Trust, prior: "DiagonalGaussian") -> None:
        """Move the scale of the weights as the share of wrong labels has moved: see `onepass.engine.rows`."""
        gap, precision = self.mean - prior.mean, reciprocals(prior.variance)
        way = gap * (1.0 - np.minimum(self.variance * precision, 1.0))
        information = float(gap**2 @ reciprocals(self.variance))
        wider = max(trust.scale_var() - 1.0 / information, 0.0) if information > 0.0 else 0.0
        self.mean += np.expm1(trust.scale_shift) * way
        self.variance += wider * way**2
        trust.finish_shift(float(gap**2 @ precision))

    def scaled(self, factor: float) -> Self:
        """Make the same belief with a covariance that is larger by a factor."""
        return type(self)(self.mean.copy(), (factor * self.variance).astype(self.variance.dtype))

    def drift(self, share: float, prior: "DiagonalGaussian") -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""
        self.variance *= 1.0 - share
        self.variance += share * prior.variance

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        self.variance += process_noise

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) * np.sqrt(self.variance))

    def natural(self, centre: FloatArray) -> Natural:
        """Restate the belief by its precision, with the mean seen from ``centre``."""
        variance = self.variance.astype(np.float64)
        if (variance <= 0.0).any():
            raise ValueError("a variance is zero, so it has no precision: some weights are known exactly")
        gap = self.mean - centre
        log_volume = 0.5 * float((gap**2 / variance + np.log(variance)).sum())
        return Natural(1.0 / variance, gap / variance, log_volume)

    @classmethod
    def from_natural(cls, precision: FloatArray, precision_mean: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose `natural` parameters these are; a ValueError where there is none."""
        if not (precision > 0.0).all():
            raise ValueError("the precision is not positive definite")
        return cls(centre + precision_mean / precision, 1.0 / precision)

    def export(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Give all that the belief is."""
        return {"form": self.name}, {"mean": self.mean.copy(), "variance": self.variance.copy()}

    @classmethod
    def decode(cls, data: dict[str, Any], arrays: Mapping[str, FloatArray], size: int, dtype: Any) -> Self:
        """Make the belief that `export` has given, of so many weights; a ValueError if it is none."""
        variance = sized(arrays, "variance", (size,), dtype)
        return cls(sized(arrays, "mean", (size,), dtype), not_negative(variance, "variance"))

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self.variance).all())


class IndependentWeights(DiagonalGaussian, NetworkBelief):
    """A network's belief without correlations; derivatives in the weights are never computed one by one."""

    name = "diagonal"
    meaning = "no correlations between weights are kept"
    input_major = True
    learns_batches = False
    separate_units = True
    per_millisecond = 2.5e5  # those few wait for memory

    def __init__(self, layout: Layout, mean: FloatArray, variance: FloatArray) -> None:
        NetworkBelief.__init__(self, layout, mean, variance)

    def copy(self) -> Self:
        """Make an independent copy."""
        return NetworkBelief.copy(self)

    @classmethod
    def n_numbers(cls, layout: Layout) -> int:
        """As many as there are weights."""
        return layout.size

    @classmethod
    def multiply_adds(cls, layout: Layout) -> int:
        """A few per weight."""
        return 4 * layout.size

    def _prepare(self, layout: Layout) -> None:
        super()._prepare(layout)
        self._shape = NetworkShape(layout.widths, layout.starts)

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        super()._bind(mean, values)
        self.variance = values

    def _start(self, variance: FloatArray) -> None:
        self.variance[:] = variance

    @property
    def widest(self) -> int:
        """There are no matrices."""
        return 1

    def check(self) -> None:
        """Raise a ValueError for a negative variance."""
        not_negative(self.variance, "covariance")

    def take_over(self, fewer: Self, positions: NDArray[np.int64]) -> None:
        """Take what a belief about the weights at some ``positions`` has learned; the others stay as they are."""
        self.mean[positions], self.variance[positions] = fewer.mean, fewer.variance

    def parts(self) -> tuple[DiagonalGaussian, ...]:
        """One, of all weights, in double precision."""
        return (DiagonalGaussian(self.mean.astype(np.float64), self.variance.astype(np.float64)),)

    def join(self, parts: Sequence[DiagonalGaussian]) -> Self:
        """Take the numbers of the only part."""
        (belief,) = parts
        return type(self)(self.layout, belief.mean, belief.variance)

    def own_variances(self) -> list[UnitVariances]:
        """``Σ z² Var w``."""

        def quadratic(variance: FloatArray) -> UnitVariances:
            return lambda z: z**2 @ variance.T

        return [quadratic(variance) for variance in self.layout.layers(self.variance)]

    def learn_pass(
        self, noise: NetworkProgress, rule: NetworkRule, work: CompiledPass, batch: int, sites: Sites | None
    ) -> int:
        """Learn row by row."""
        return int(learn_diagonal(work, self._shape, rule, noise, self.mean, self.variance))

    def look(self, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As the kernel does before it learns a row."""
        return look_diagonal(row, self._shape, rule, self.mean, self.variance)
