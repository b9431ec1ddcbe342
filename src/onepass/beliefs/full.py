"""A Gaussian belief with a full covariance, stored as its square root or, if it is large, as the covariance itself."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsymm, ssymm
from scipy.linalg.lapack import dsytrd, dsytrd_lwork, dtrtri

from onepass._arrays import check_definite, sized, triangular
from onepass._typing import FloatArray
from onepass.beliefs.base import Natural, Projection
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import fade_root, fade_triangle, prior_gap, reciprocals
from onepass.beliefs.rows import RowPlan
from onepass.engine.blocks import CANCELLED, DIGITS_LOST, block_size, learn_block
from onepass.engine.outliers import Trust
from onepass.engine.rows import EXHAUSTED, DenseRowLearner, RowLearner, Rows, Wander, rescaled, rows_dense, rows_root
from onepass.engine.step import PerceptronProgress
from onepass.engine.threads import threads_for

__all__ = ["CROSSOVER", "FullGaussian", "covariance_root", "mirrored", "pack_root"]

# From so many weights on blocks are faster than rows: measured by `make bench`.
CROSSOVER = 150
_FEW = 16  # rows for which a block is not worth its set-up
_TINY = 1e-200  # a share of the variance that is none; beyond, quotients would overflow
_STILL = Wander(1.0, np.empty(0))  # weights that don't move
_FADED = 1e-6  # what is left of the covariance after as many rows of drift as a block may have
_BAND = 8192  # columns of a large product that are worked out together


_NOISE_NODES = np.linspace(-7.0, 7.0, 141)  # in standard deviations of the log noise


class FullGaussian:
    """A Gaussian with a full covariance, kept as a square root: ``C = R'R`` with ``R`` lower triangular.

    The root makes the covariance symmetric and positive semi-definite whatever the rounding, and keeps twice the
    digits: ``C`` itself loses them when a precise row follows a vague prior. A large covariance may for speed be kept
    as ``C`` instead (`use_covariance`), as long as its digits last.

    Parameters
    ----------
    mean : (p,) array
    cov : (p, p) symmetric positive semi-definite array, or (p,) variances

    Examples
    --------
    >>> belief = FullGaussian(np.zeros(2), np.eye(2))
    >>> seen = belief.project(np.array([1.0, 1.0]))
    >>> belief.rank_one_step(seen, score=0.5, information=0.25, variance_ratio=0.5)
    >>> belief.mean, belief.cov.round(12)
    (array([0.5, 0.5]), array([[ 0.75, -0.25],
           [-0.25,  0.75]]))
    """

    name: ClassVar[str] = "full"
    keeps_correlations: ClassVar[bool] = True
    keeps_sites: ClassVar[bool] = True
    takes_sparse_rows: ClassVar[bool] = False
    learns_in_blocks: ClassVar[bool] = True

    def __init__(self, mean: FloatArray, cov: FloatArray) -> None:
        root = np.diag(np.sqrt(cov)) if cov.ndim == 1 else _square_root(cov)
        self._assign(np.array(mean), np.ascontiguousarray(root), None, False)

    def _assign(
        self, mean: FloatArray, root: FloatArray | None, dense: FloatArray | None, needs_square_root: bool
    ) -> None:
        self.mean: FloatArray = mean
        # Exactly one of the two forms is current: R, or the lower triangle of C in Fortran order.
        self._root, self._dense = root, dense
        # Set once C itself would lose its digits, so that the root is kept from then on.
        self.needs_square_root: bool = needs_square_root

    @classmethod
    def from_arrays(
        cls,
        mean: FloatArray,
        *,
        root: FloatArray | None = None,
        dense: FloatArray | None = None,
        needs_square_root: bool = False,
    ) -> Self:
        """Make a belief in the form it was in: either ``root`` or ``dense``."""
        belief = object.__new__(cls)
        belief._assign(mean, root, dense, needs_square_root)
        return belief

    @property
    def is_dense(self) -> bool:
        """Whether ``C`` itself is what is kept now."""
        return self._dense is not None

    @property
    def cov(self) -> FloatArray:
        """The covariance ``C``, ``(p, p)``."""
        if self._dense is not None:
            return mirrored(self._dense)
        assert self._root is not None
        return _squared(self._root)

    def to_root(self) -> FloatArray:
        """``R``, as it is kept or worked out."""
        return _square_root(self.cov) if self._root is None else self._root

    def use_square_root(self) -> FloatArray:
        """Keep ``R`` from now on; returns it, to be changed in place."""
        if self._root is None:
            self._root, self._dense = _square_root(self.cov), None
        return self._root

    def use_covariance(self) -> FloatArray:
        """Keep ``C`` itself from now on; returns its lower triangle in Fortran order, to be changed in place."""
        if self._dense is None:
            self._dense, self._root = self.cov.T, None  # a symmetric matrix transposed is itself in the other order
        return self._dense

    def copy(self) -> Self:
        """Make an independent copy."""
        root = None if self._root is None else self._root.copy()
        dense = None if self._dense is None else self._dense.copy(order="F")
        return self.from_arrays(self.mean.copy(), root=root, dense=dense, needs_square_root=self.needs_square_root)

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        if self._dense is not None:
            return np.array(np.diag(self._dense))
        assert self._root is not None
        return np.asarray(np.square(self._root).sum(axis=0))

    def variances(self, rows: Any, bias: int = 0) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p - bias) -> (n,)``; a bias is a constant 1 before the row."""
        if bias:
            rows = np.hstack([np.ones((len(rows), 1)), rows])
        if self._dense is not None:
            symm = dsymm if self._dense.dtype == np.float64 else ssymm
            return np.asarray(np.maximum((symm(1.0, self._dense, rows.T, lower=1).T * rows).sum(axis=1), 0.0))
        assert self._root is not None
        return np.asarray(np.square(rows @ self._root.T).sum(axis=1))

    def gains(self, rows: FloatArray, bias: int = 0) -> FloatArray:
        """``c = C J`` for every row ``J``, ``(n, p - bias) -> (n, p)``; a bias is a constant 1 before the row."""
        if bias:
            rows = np.hstack([np.ones((len(rows), 1)), rows])
        return np.asarray(rows @ self.cov if self._root is None else (rows @ self._root.T) @ self._root)

    def project(self, jacobian: FloatArray) -> Projection:
        """Project the belief on ``J``, equation (7)."""
        root = self.to_root()
        coords = root @ jacobian
        return Projection(float(coords @ coords), coords @ root, coords)

    def rank_one_step(self, seen: Projection, score: float, information: float, variance_ratio: float) -> None:
        """Take the step ``m += score c``, ``C -= information c c'``, equation (22).

        Carlson's update of a triangular root: ``share`` climbs from ``variance_ratio`` to 1 as one coordinate after the
        other is taken in, each shrinking its row of ``R`` and mixing in the gain so far. For ``information > 0`` every
        term is bounded by the root it came from, and no digits are lost.
        """
        self.mean += score * seen.gain
        root, share, gain = self.use_square_root(), variance_ratio, np.zeros_like(self.mean)
        for j, coord in enumerate(seen.coords):
            grown = share + information * coord**2
            if coord == 0.0 or grown <= _TINY:
                continue
            row = root[j].copy()
            root[j] *= np.sqrt(share / grown)
            if share > _TINY:
                root[j] -= information * coord / np.sqrt(grown) * (gain / np.sqrt(share))
            gain += coord * row
            share = grown

    def prepare(self, plan: RowPlan, n_rows: int) -> None:
        """Keep ``C`` itself where blocks or weights that drift will be learned into it."""
        if not self.needs_square_root and (plan.drifts or self._blocks_pay(plan, n_rows)):
            self.use_covariance()

    def learn(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        """Learn rows in place: row by row into the root, or for large covariances in blocks into ``C``."""
        by_blocks = not len(rows.X_var) and not self.needs_square_root and self._blocks_pay(plan, len(rows))
        if not by_blocks and self.keeps_root(plan):
            return int(rows_root(rows, plan.rule, state, self.mean, self.use_square_root(), True))
        if not by_blocks and not plan.forgetting.period:
            return self._learn_rows(plan, state, rows)
        learn = self._learn_blocks if by_blocks else self._learn_rows
        with threads_for(len(self.mean)), np.errstate(over="ignore", invalid="ignore"):  # found by the kernels
            for start, stop, steps in plan.forgetting.segments(int(state.n_seen), len(rows)):
                if steps:
                    self.forget(plan.forgetting.keep**steps, plan.prior)
                learned = learn(plan, state, rows.part(start, stop))
                if learned < stop - start or state.trust.is_alarmed() or state.is_due(len(self.mean)):
                    return start + learned
        return len(rows)

    def keeps_root(self, plan: RowPlan) -> bool:
        """Whether rows learned one at a time are learned into the root, now and from now on."""
        return not self.is_dense and not plan.drifts and self.is_small(len(self.mean), plan.kernel)

    def row_learner(self, plan: RowPlan, state: PerceptronProgress) -> RowLearner | None:
        """What learns one row at a time into the arrays that are kept now, fast; None where nothing does."""
        if self.keeps_root(plan):
            return RowLearner(plan.rule, state, self.mean, self.use_square_root())
        drifts = plan.drifts and not _drifts_by_matrix(plan) and not plan.forgetting.period
        if self._dense is None or not drifts or not self.is_small(len(self.mean), plan.kernel):
            return None
        return DenseRowLearner(plan.rule, state, plan.wander, CANCELLED[self.mean.dtype], self.mean, self._dense)

    @staticmethod
    def is_small(size: int, kernel: str) -> bool:
        """Whether so many weights are learned row by row, into the root if nothing is against it."""
        return kernel == "rows" or (kernel == "auto" and size < CROSSOVER)

    def _blocks_pay(self, plan: RowPlan, n_rows: int) -> bool:
        return plan.kernel == "blocks" or (plan.kernel == "auto" and len(self.mean) >= CROSSOVER and n_rows >= _FEW)

    def _learn_rows(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        start = 0
        if not self.needs_square_root and (plan.drifts or self.is_dense) and not _drifts_by_matrix(plan):
            start = self._learn_dense(plan, state, rows, plan.wander)
            if not self.needs_square_root:
                return start
        # The root has twice the digits of the covariance: from here on the belief is learned in that form.
        rest = rows.part(start, len(rows))
        learn = self._learn_drifting if plan.drifts else self._learn_root
        return start + learn(plan, state, rest)

    def _learn_dense(self, plan: RowPlan, state: PerceptronProgress, rows: Rows, wander: Wander) -> int:
        """Learn rows into ``C`` itself, all or as many as its digits last for."""
        limit, cov = CANCELLED[self.mean.dtype], self.use_covariance()
        learned, lost = rows_dense(rows, plan.rule, state, wander, limit, self.mean, cov)
        self.needs_square_root = lost
        return int(learned)

    def _learn_root(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        return int(rows_root(rows, plan.rule, state, self.mean, self.use_square_root(), False))

    def _learn_drifting(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        """Drift on a root, or towards a prior with correlations, is a factorisation or a sum per row: rarely needed."""
        for i in range(len(rows)):
            before, row, learned = self.copy(), rows.part(i, i + 1), 0
            if plan.drift:
                self.drift(plan.drift, plan.prior)
            if len(plan.process_noise):
                self.diffuse(plan.process_noise)
            if not self.needs_square_root:
                learned = self._learn_dense(plan, state, row, _STILL)
            if self.needs_square_root and not learned:
                learned = self._learn_root(plan, state, row)
            if not learned:
                self._assign(before.mean, before._root, before._dense, before.needs_square_root)
                return i
            if state.trust.is_alarmed() or state.is_due(len(self.mean)):
                return i + 1
        return len(rows)

    def _learn_blocks(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        step, bias = block_size(len(self.mean)), plan.rule.bias
        with_bias = np.ones((step, len(self.mean)), dtype=self.mean.dtype)
        if plan.drift:
            step = min(step, int(np.log(_FADED) / np.log1p(-min(plan.drift, 0.999))))
            if step < _FEW:  # next to nothing is left of what the rows of a block would share
                return self._learn_rows(plan, state, rows)
        blocks = not _drifts_by_matrix(plan)
        for start in range(0, len(rows), step):
            part = rows.part(start, start + step)
            learned = -1
            if blocks and not self.needs_square_root:
                with_bias[: len(part), bias:] = part.X
                how = (plan.rule, state, plan.wander)
                learned = learn_block(part, with_bias[: len(part)], *how, self.mean, self.use_covariance())
                self.needs_square_root = learned == DIGITS_LOST
            if learned < 0:  # the rows find out how far they can be learned
                learned = self._learn_rows(plan, state, part)
            if learned < len(part) or state.trust.is_alarmed() or state.is_due(len(self.mean)):
                return start + learned
        return len(rows)

    def forget(self, keep: float, prior: "FullGaussian | DiagonalGaussian") -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        if isinstance(prior, DiagonalGaussian):
            towards, gap = prior_gap(self.mean, self.marginal_variances(), prior.mean, prior.variance)
            if self._dense is not None:
                self.mean += fade_triangle(self._dense, towards, gap, keep, lower=1)
                return
            prior_root = np.sqrt(towards)
        else:
            prior_root, gap = prior.to_root().astype(np.float64), prior.mean.astype(np.float64) - self.mean
        root, shift = fade_root(self.to_root().astype(np.float64), prior_root, gap, keep)
        self.mean += shift
        self._write(root)

    def reweigh(self, state: PerceptronProgress, prior: "FullGaussian | DiagonalGaussian") -> None:
        """Re-weigh all rows so far, now that more is known about their noise: see `onepass.engine.noise`."""
        keep = state.reweigh(*self._all_rows(prior))
        if keep != 1.0:
            self.forget(keep, prior)

    def rescale(self, trust: Trust, prior: "FullGaussian | DiagonalGaussian") -> None:
        """Move the scale of the weights as the share of wrong labels has moved: see `onepass.engine.rows`."""
        mean, root = self.mean.astype(np.float64), self.to_root().astype(np.float64)
        rescaled(pack_root(prior), trust, mean, root)
        self.mean[:] = mean
        self._write(root)

    def _write(self, root: FloatArray) -> None:
        """Take another root in place, in the form that is kept."""
        if self._dense is not None:
            self._dense[...] = _squared(root)
        else:
            self.use_square_root()[...] = root

    def asked(self, state: PerceptronProgress, prior: "FullGaussian | DiagonalGaussian") -> PerceptronProgress:
        """A copy of the state after all rows were asked about their noise: see `onepass.engine.noise`."""
        asked = state.copy()
        asked.reweigh(*self._all_rows(prior))
        return asked

    def averaged(
        self, state: PerceptronProgress, prior: "FullGaussian | DiagonalGaussian"
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance given all rows, averaged over what these say about their noise.

        Along the axes of `_axes`, at a noise ``z = u s`` the coordinates are ``b f`` and the variances ``ω u f`` with
        ``f = 1 / (1 - ω + ω u)``: see `onepass.engine.noise`.
        """
        ratios, coordinates, axes = self._axes(prior)
        asked = self.asked(state, prior)
        logs = np.log(asked.noise) + np.sqrt(2.0 / asked.noise_weight) * _NOISE_NODES
        times = np.exp(logs)[:, None] / state.reference
        factors = 1.0 / (1.0 - ratios + ratios * times)
        squares = state.squares + state.reference * ((times - 1.0) * coordinates**2 * factors).sum(axis=1)
        squares = np.maximum(squares, state.reference * (times * (coordinates * factors) ** 2).sum(axis=1))
        n_rows = asked.weight + asked.trusted_copies * asked.copies
        shares = -n_rows * logs + np.log(ratios * times * factors).sum(axis=1) - squares * np.exp(-logs)
        shares -= 0.5 * asked.start_weight * (logs - asked.log_start) ** 2
        shares = np.exp(0.5 * (shares - shares.max()))
        shares /= shares.sum()
        moved = coordinates * factors
        mean = shares @ moved
        scatter = (shares[:, None] * (moved - mean)).T @ (moved - mean)
        cov = axes.T @ (np.diag(shares @ (ratios * times * factors)) + scatter) @ axes
        return prior.mean + mean @ axes, cov

    def noise_responses(
        self, rows: FloatArray, variances: FloatArray, prior: "FullGaussian | DiagonalGaussian", steps: int
    ) -> FloatArray:
        """How rows ``(n, p)`` of these variances change with the noise, ``(n, 3, steps)``: see `onepass.engine.noise`.

        Lanczos's method for all rows at once; a row whose vectors are exhausted has zeros from there on.
        """
        found = np.zeros((len(rows), 3, steps))
        if not steps:
            return found
        gap, lengths = _whitened(self.mean - prior.mean, prior), np.sqrt(variances)
        lengths_inverse = reciprocals(lengths)[:, None]
        image = _whitened(lengths_inverse * self.gains(rows), prior)
        vector, before, below = np.empty(0), np.zeros(1), np.zeros(len(rows))
        root = self.to_root().astype(np.float64) if steps > 1 else np.empty(0)
        for i in range(steps):
            own = np.square(image).sum(axis=1)
            found[:, 0, i], found[:, 2, i] = np.minimum(own, 1.0), lengths * (image @ gap)
            if i + 1 == steps:
                break
            if not i:
                vector = lengths_inverse * (rows @ root.T)
            new = _unwhitened(image, prior) @ root.T - own[:, None] * vector - below[:, None] * before
            squares = np.square(new).sum(axis=1)
            below = np.where(squares > EXHAUSTED * own**2, np.sqrt(squares), 0.0)
            found[:, 1, i] = below
            before, vector = vector, new * reciprocals(below)[:, None]
            image = _whitened(vector @ root, prior)
        return found

    def _all_rows(self, prior: "FullGaussian | DiagonalGaussian") -> tuple[FloatArray, FloatArray, float, float, float]:
        """What all rows say about their noise: the numbers of `onepass.engine.noise.AllRows`."""
        root = self.to_root().astype(np.float64)
        if self._dense is not None and isinstance(prior, DiagonalGaussian):
            inverse = reciprocals(_prior_root(prior))
            omega, diagonal = inverse[:, None] * self._dense * inverse, np.diag(root) * inverse
        else:
            ratio = _whitened(root, prior)
            omega, diagonal = ratio.T @ ratio, np.diag(ratio)
        bordered = np.zeros((len(root) + 1, len(root) + 1), order="F")
        bordered[1:, 0], bordered[1:, 1:] = _whitened(self.mean - prior.mean, prior), omega
        room, _ = dsytrd_lwork(len(bordered), lower=1)
        _, main, below, _, _ = dsytrd(bordered, lower=1, lwork=int(room), overwrite_a=1)
        known = np.abs(diagonal[diagonal != 0.0])
        log_det, square = 2.0 * float(np.log(known).sum()), float(below[0] ** 2)
        return np.minimum(main[1:], 1.0), np.append(below[1:], 0.0), square, log_det, float(len(known))

    def _axes(self, prior: "FullGaussian | DiagonalGaussian") -> tuple[FloatArray, FloatArray, FloatArray]:
        """Axes ``(k, p)`` along which covariance and prior are diagonal; the ratios there, and the mean's coordinates.

        A coordinate is in units of the prior's standard deviation: ``mean = prior mean + coordinates @ axes``.
        """
        gap, whole = _whitened(self.mean - prior.mean, prior), _prior_root(prior)
        if self._dense is not None and isinstance(prior, DiagonalGaussian):
            inverse = reciprocals(whole)
            ratios, vectors = np.linalg.eigh(inverse[:, None] * self._dense * inverse, UPLO="L")
            ratios, vectors = ratios[::-1], vectors.T[::-1]
            known = ratios > 1e-13 * ratios[0]
        else:
            root = self.to_root().astype(np.float64)
            if isinstance(prior, DiagonalGaussian):
                ratio = root * reciprocals(whole)
            else:
                ratio = solve_triangular(_solid(whole), root.T, lower=True, trans=1).T
            _, values, vectors = np.linalg.svd(ratio)
            ratios, known = values**2, values > 1e-15 * values[0]
        axes = vectors * whole if isinstance(prior, DiagonalGaussian) else vectors @ whole
        ratios = np.ascontiguousarray(np.minimum(ratios[known], 1.0))  # more is rounding
        return ratios, (vectors @ gap)[known], axes[known]

    def scaled(self, factor: float) -> Self:
        """Make the same belief with a covariance that is larger by a factor."""
        return self.from_arrays(self.mean.copy(), root=np.ascontiguousarray(np.sqrt(factor) * self.to_root()))

    def drift(self, share: float, prior: "FullGaussian | DiagonalGaussian") -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""
        if self._dense is not None and not self.needs_square_root:
            self._dense *= 1.0 - share
            if isinstance(prior, DiagonalGaussian):
                self.diffuse(share * prior.variance)
            else:
                self._dense += share * prior.cov
            return
        prior_root = np.diag(np.sqrt(prior.variance)) if isinstance(prior, DiagonalGaussian) else prior.to_root()
        self._root = _stacked((1.0 - share) ** 0.5 * self.use_square_root(), share**0.5 * prior_root)

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        if self._dense is not None and not self.needs_square_root:
            self._dense[np.diag_indices(len(self.mean))] += process_noise
            return
        self._root = _stacked(self.use_square_root(), np.diag(np.sqrt(process_noise)))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) @ self.to_root())

    def natural(self, centre: FloatArray) -> Natural:
        """Restate the belief by its precision, with the mean seen from ``centre``."""
        root = np.asarray(self.to_root(), dtype=np.float64)
        # C = R'R makes the inverse of R the Cholesky factor of P, lower triangular too.
        factor, singular = dtrtri(root, lower=1)
        if singular or not np.isfinite(factor).all():
            raise ValueError("the covariance is singular, so it has no precision: some weights are known exactly")
        gap = factor.T @ (self.mean - centre)
        log_volume = float(0.5 * gap @ gap + np.log(np.abs(np.diag(root))).sum())
        return Natural(factor @ factor.T, factor @ gap, log_volume)

    @classmethod
    def from_natural(cls, precision: FloatArray, precision_mean: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose `natural` parameters these are; a ValueError where there is none."""
        root = covariance_root(precision)
        return cls.from_arrays(centre + root.T @ (root @ precision_mean), root=root)

    def export(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Give all that the belief is, in the very form that it is in."""
        kept = {"covariance": np.tril(self._dense)} if self._dense is not None else {"root": self.to_root().copy()}
        return {"form": self.name, "needs_square_root": self.needs_square_root}, {"mean": self.mean.copy(), **kept}

    @classmethod
    def decode(cls, data: dict[str, Any], arrays: Mapping[str, FloatArray], size: int, dtype: Any) -> Self:
        """Make the belief that `export` has given, of so many weights; a ValueError if it is none."""
        needs_square_root = data["needs_square_root"]
        if not isinstance(needs_square_root, bool):
            raise ValueError(f"needs_square_root must be true or false, got {needs_square_root!r}")
        mean = sized(arrays, "mean", (size,), dtype)
        if "root" in arrays:
            root = np.ascontiguousarray(triangular(arrays, "root", size, dtype))
            return cls.from_arrays(mean, root=root, needs_square_root=needs_square_root)
        lower = sized(arrays, "covariance", (size, size), dtype)
        check_definite(lower)
        return cls.from_arrays(mean, dense=np.asfortranarray(lower), needs_square_root=needs_square_root)

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        kept = [array for array in (self._root, self._dense) if array is not None]
        return all(bool(np.isfinite(array).all()) for array in (self.mean, *kept))


def _whitened(vectors: FloatArray, prior: FullGaussian | DiagonalGaussian) -> FloatArray:
    """Vectors in the space of the weights, ``(..., p)``, in units of the prior: ``R0'^-1`` times each."""
    whole = _prior_root(prior)
    if isinstance(prior, DiagonalGaussian):
        return np.asarray(vectors * reciprocals(whole))
    return np.asarray(solve_triangular(_solid(whole), vectors.T, lower=True, trans=1).T)


def _unwhitened(vectors: FloatArray, prior: FullGaussian | DiagonalGaussian) -> FloatArray:
    """``R0^-1`` times each of some vectors, ``(..., p)``."""
    whole = _prior_root(prior)
    if isinstance(prior, DiagonalGaussian):
        return np.asarray(vectors * reciprocals(whole))
    return np.asarray(solve_triangular(_solid(whole), vectors.T, lower=True).T)


def _prior_root(prior: FullGaussian | DiagonalGaussian) -> FloatArray:
    """The root of a prior's covariance in double precision, ``(p, p)``, or its diagonal, ``(p,)``."""
    if isinstance(prior, DiagonalGaussian):
        return np.sqrt(prior.variance.astype(np.float64))
    return prior.to_root().astype(np.float64)


def _solid(root: FloatArray) -> FloatArray:
    """A root that can be inverted: what the prior knows exactly counts as a unit."""
    return np.asarray(root + np.diag((np.diag(root) == 0.0).astype(np.float64)))


def pack_root(belief: FullGaussian | DiagonalGaussian) -> FloatArray:
    """Mean and lower triangle of the root of a belief in one vector, ``(p + p (p + 1)/2,)``, for the kernels."""
    root = np.diag(np.sqrt(belief.variance)) if isinstance(belief, DiagonalGaussian) else belief.to_root()
    return np.concatenate([belief.mean, root[np.tril_indices(len(root))]]).astype(np.float64)


def mirrored(lower: FloatArray) -> FloatArray:
    """The whole of a symmetric matrix whose lower triangle counts."""
    return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def covariance_root(precision: FloatArray) -> FloatArray:
    """``R``, lower triangular, with ``R'R`` the inverse of a precision; a ValueError where there is none."""
    try:
        factor = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        raise ValueError("the precision is not positive definite") from None
    # A pivot that is all rounding would make a variance out of nothing.
    if (np.diag(factor) ** 2 < 8.0 * len(factor) * np.finfo(np.float64).eps * np.diag(precision)).any():
        raise ValueError("the precision is not positive definite")
    return np.ascontiguousarray(np.tril(dtrtri(factor, lower=1)[0]))


def _drifts_by_matrix(plan: RowPlan) -> bool:
    """Whether weights drift towards a prior with correlations, which the kernels don't know."""
    return plan.drift > 0.0 and not isinstance(plan.prior, DiagonalGaussian)


def _stacked(root: FloatArray, added: FloatArray) -> FloatArray:
    """The root of the sum of two covariances: a QR factorisation of their roots, taken from the other end."""
    upper = np.asarray(np.linalg.qr(np.vstack([root, added.astype(root.dtype)])[:, ::-1], mode="r"))
    return np.ascontiguousarray(upper[::-1, ::-1])


def _squared(root: FloatArray) -> FloatArray:
    """``R'R`` of a lower triangular matrix."""
    p, own = len(root), root.diagonal()
    if np.count_nonzero(root) == np.count_nonzero(own):  # a prior's, as of most models before their first row
        return np.diag(own * own)
    if p <= _BAND:
        return np.asarray(root.T @ root)
    # In bands, each without the rows that are zero: for a matrix and its own transpose NumPy takes a short cut that
    # ends in a segmentation fault from some 16,000 columns on.
    out = np.empty_like(root)
    for j in range(0, p, _BAND):
        band = slice(j, j + _BAND)
        out[:, band] = root[j:].T @ root[j:, band]
    return out


def _square_root(cov: FloatArray) -> FloatArray:
    """``R``, lower triangular, with ``R'R = cov``."""
    try:
        # The Cholesky factor from the other end.
        return np.ascontiguousarray(np.linalg.cholesky(cov[::-1, ::-1])[::-1, ::-1].T)
    except np.linalg.LinAlgError:  # semi-definite: some combination of weights is known exactly
        return _semidefinite_root(cov)


def _semidefinite_root(cov: FloatArray) -> FloatArray:
    """Eliminate one variable after the other, from the last; one without variance of its own is passed over."""
    rest, root = np.array(cov), np.zeros_like(cov)
    for j in range(len(rest) - 1, -1, -1):
        if rest[j, j] > 500.0 * np.finfo(cov.dtype).eps * cov[j, j]:
            root[j, : j + 1] = rest[j, : j + 1] / np.sqrt(rest[j, j])
            rest[: j + 1, : j + 1] -= np.outer(root[j, : j + 1], root[j, : j + 1])
    return root
