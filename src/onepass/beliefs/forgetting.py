"""When the past is forgotten, and what is left of a covariance then.

Forgetting with the share ``f`` makes a row of age ``n`` count ``f^n``, while the prior always counts in full: the
precision ``P`` and ``h = P m`` become ``f P + (1 - f) P0`` and ``f h + (1 - f) h0`` before each row. No direction then
becomes less certain than it was before the first row, and a weight that no row informs stays at its prior. Since such
a step takes a factorisation it is taken once in a `Forgetting.period` of rows, for all of these rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrf, dpotri

from onepass._typing import FloatArray

__all__ = ["Forgetting", "Segment", "fade_blocks", "fade_root", "fade_triangle", "prior_gap", "reciprocals"]

# Share of the window 1 / (1 - f) that passes between two steps, and weights whose factorisation one row pays for.
# Smaller shares were not better: flips and slow walks of a boundary were learned equally well from 0.001 to 0.5.
_STAIR, _WEIGHTS_PER_ROW = 0.25, 3
_SMALL = 64  # weights of blocks that are worth inverting together


class Segment(NamedTuple):
    """Rows between two steps of forgetting."""

    start: int
    stop: int
    steps: int
    """How many steps there are before the first of these rows."""


@dataclass(frozen=True)
class Forgetting:
    """How fast the past fades, the same for every form of the belief."""

    share: float
    """What is left of a row's weight after another row, in (0, 1]."""
    size: int
    """Weights of the largest block of the covariance, whose factorisation is to be paid for."""

    @property
    def period(self) -> int:
        """Rows between two steps; 0 where nothing is forgotten."""
        if self.share == 1.0:
            return 0
        return max(ceil(_STAIR / (1.0 - self.share) - 1e-9), self.size // _WEIGHTS_PER_ROW)

    @property
    def keep(self) -> float:
        """Share of the rows' precision that one step keeps."""
        return self.share**self.period

    def is_due(self, seen: float) -> bool:
        """Whether a step comes before the next row, after so many."""
        return self.share < 1.0 and seen > 0 and seen % self.period == 0

    def steps(self, seen: int, n_rows: int) -> int:
        """How many steps come before the last of so many rows."""
        return sum(segment.steps for segment in self.segments(seen, n_rows))

    def segments(self, seen: int, n_rows: int, batch: int = 1) -> Iterator[Segment]:
        """Divide rows that follow after ``seen`` ones; the steps of a batch all come before its first row."""
        if self.share == 1.0:
            yield Segment(0, n_rows, 0)
            return
        steps = {0: 0}
        for row in range(-(-max(seen, 1) // self.period) * self.period, seen + n_rows, self.period):
            first = (row - seen) // batch * batch
            steps[first] = steps.get(first, 0) + 1
        for start, stop in pairwise([*steps, n_rows]):
            yield Segment(start, stop, steps[start])


def prior_gap(
    mean: FloatArray, variances: FloatArray, prior_mean: FloatArray, prior_variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Prior variances to forget towards, and the way from the mean to the prior's, in float64.

    A weight that the prior knows exactly stays where it is.
    """
    known = prior_variances == 0.0
    towards = np.where(known, variances, prior_variances).astype(np.float64)
    return towards, np.where(known, 0.0, prior_mean.astype(np.float64) - mean)


def reciprocals(values: FloatArray) -> FloatArray:
    """Inverses, 0 of a 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)


def fade_triangle(cov: FloatArray, towards: FloatArray, gap: FloatArray, keep: float, lower: int) -> FloatArray:
    """Fade one triangle of ``C`` (Fortran order) towards variances ``C0``, in place; returns the way of the mean.

    With ``B`` the covariance in units of the prior's ``(k C^-1 + (1 - k) C0^-1)^-1`` is ``B (k I + (1 - k) B)^-1``, or
    ``(I - k (k I + (1 - k) B)^-1) / (1 - k)``: the inverse always exists, and as a step keeps little more than 3/4 the
    difference loses no more digits than ``C`` itself, which started from the prior, has lost.
    """
    unit = np.sqrt(towards)
    inverse_unit = reciprocals(unit)
    # In place, and row after row of the transpose: each further matrix would cost as much as a factorisation.
    mixed = cov.T.astype(np.float64, copy=False)
    mixed *= inverse_unit
    mixed *= ((1.0 - keep) * inverse_unit)[:, None]
    diagonal = np.diag_indices(len(mixed))
    mixed[diagonal] += keep
    factor, failed = dpotrf(mixed.T, lower=lower, overwrite_a=1)
    if failed:  # not finite: answered by the check of what was learned
        cov[...] = np.nan
        return np.full_like(gap, np.nan)
    faded = dpotri(factor, lower=lower, overwrite_c=1)[0]
    faded *= -keep / (1.0 - keep)
    faded[diagonal] += 1.0 / (1.0 - keep)
    shift = unit * dsymv(1.0 - keep, faded, inverse_unit * gap, lower=lower)
    rows = faded.T
    rows *= unit
    rows *= unit[:, None]
    if not np.may_share_memory(rows, cov):
        cov.T[...] = rows
    return np.asarray(shift)


def fade_blocks(blocks: FloatArray, towards: FloatArray, gaps: FloatArray, keep: float) -> FloatArray:
    """The same for many small blocks ``(n, w, w)`` of which the lower triangles count; returns ``(n, w)``."""
    size = blocks.shape[1]
    if size >= _SMALL:
        given = zip(blocks, towards, gaps, strict=True)
        return np.stack([fade_triangle(block.T, own, gap, keep, lower=0) for block, own, gap in given])
    unit = np.sqrt(towards)
    inverse_unit = reciprocals(unit)
    whole = np.tril(blocks) + np.tril(blocks, -1).swapaxes(1, 2)
    scaled = inverse_unit[:, :, None] * whole.astype(np.float64) * inverse_unit[:, None, :]
    eye = np.eye(size)
    try:
        inverse = np.linalg.inv((1.0 - keep) * scaled + keep * eye)
    except np.linalg.LinAlgError:  # not finite
        inverse = np.full_like(scaled, np.nan)
    faded = (eye - keep * inverse) / (1.0 - keep)
    blocks[...] = unit[:, :, None] * faded * unit[:, None, :]
    return np.asarray((1.0 - keep) * unit * (faded @ (inverse_unit * gaps)[:, :, None])[:, :, 0])


def fade_root(root: FloatArray, prior_root: FloatArray, gap: FloatArray, keep: float) -> tuple[FloatArray, FloatArray]:
    """The root of the faded covariance, and the way of the mean; ``prior_root`` is triangular, or its diagonal.

    With ``S = R R0^-1`` and ``k I + (1 - k) S S' = L L'`` the new root is ``L^-1 R``: nothing is subtracted.
    """
    if prior_root.ndim == 1:
        inverse = reciprocals(prior_root)
        ratio, pull = root * inverse, inverse * gap
    else:
        solid = prior_root + np.diag((np.diag(prior_root) == 0.0).astype(np.float64))
        ratio = np.tril(solve_triangular(solid, root.T, lower=True, trans=1, check_finite=False).T)
        pull = solve_triangular(solid, gap, lower=True, trans=1, check_finite=False)
    mixed = (1.0 - keep) * (ratio @ ratio.T) + keep * np.eye(len(root))
    factor, failed = dpotrf(mixed, lower=1)
    if failed:  # not finite: answered by the check of what was learned
        return np.full_like(root, np.nan), np.full_like(gap, np.nan)
    faded = np.tril(solve_triangular(factor, root, lower=True, check_finite=False))
    return faded, (1.0 - keep) * (solve_triangular(factor, ratio @ pull, lower=True, check_finite=False) @ faded)
