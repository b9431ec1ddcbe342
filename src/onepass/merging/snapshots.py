"""The numbers of a belief that merging needs, and what rows changed in them.

A `Snapshot` is what an adapter reads from a model: the Gaussian, block by block, and the quantities that learning
updates next to it. A `Change` is the difference of two snapshots in parameters that add up: precision ``P`` and ``P m``
of each block, counts, and running means as weighted sums.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.base import MergeablePart
from onepass.engine.outliers import TRUST_COUNTS, Trust

__all__ = [
    "N_SUMS",
    "Change",
    "Snapshot",
    "apply_change",
    "change_between",
    "diverged_without_rows",
    "jumped_between",
    "pool_means",
]

N_SUMS = 4


@dataclass(frozen=True)
class Snapshot:
    """A belief and its running quantities at one moment."""

    blocks: tuple[MergeablePart, ...]
    """Independent Gaussians that make up the belief over all weights."""
    evidence: float
    """Log evidence of the rows so far."""
    rows: float
    """Number of rows learned."""
    means: FloatArray
    """Running means besides the belief, such as a learned noise, ``(t,)``."""
    weights: FloatArray
    """Total weight of the rows behind each running mean, ``(t,)``; 0 for one that is fixed."""
    trust: Trust
    """Which targets are to be trusted, and whether the truth has jumped."""
    sums: FloatArray = field(default_factory=lambda: np.zeros(N_SUMS))
    """Of rows that are re-weighed as their noise becomes known: squares about the prior mean, weights,
    copies, and the evidence of rows that were not scored."""


@dataclass(frozen=True)
class Change:
    """What rows changed in one belief; every field adds up over disjoint rows."""

    precisions: tuple[FloatArray, ...]
    """Change of the precision ``P`` of each block, or of its partial traces."""
    precision_means: tuple[FloatArray, ...]
    """Change of ``P m`` of each block, with the mean relative to the block's centre."""
    evidence: FloatArray
    """Log of the constant factor of the site, ``()``."""
    rows: FloatArray
    """Number of rows, ``()``."""
    weights: FloatArray
    """Weight added to each running mean, ``(t,)``."""
    weighted_means: FloatArray
    """The running means times these weights, ``(t,)``."""
    trusted: FloatArray
    """Number of rows by whether, and in which way not, they were trusted, ``(6,)``; or ``(1,)`` that were set aside."""
    sums: FloatArray
    """Change of the sums over rows, ``(4,)``."""

    def numbers(self) -> Iterator[FloatArray]:
        """Go through all arrays in a fixed order."""
        yield from self.precisions
        yield from self.precision_means
        yield from (self.evidence, self.rows, self.weights, self.weighted_means, self.trusted, self.sums)

    def with_numbers(self, numbers: Sequence[Any]) -> "Change":
        """Make a change of the same shapes from arrays in the order of `numbers`."""
        n = len(self.precisions)
        return Change(tuple(numbers[:n]), tuple(numbers[n : 2 * n]), *numbers[2 * n :])


def change_between(before: Snapshot, after: Snapshot, centres: Sequence[FloatArray]) -> Change:
    """Subtract two snapshots of one belief; ``centres`` are the origins of the blocks' means."""
    pairs = [
        (a.natural(centre), b.natural(centre))
        for a, b, centre in zip(before.blocks, after.blocks, centres, strict=True)
    ]
    log_normaliser = sum(b.log_volume - a.log_volume for a, b in pairs)
    weights = np.maximum(after.weights - before.weights, 0.0)
    return Change(
        tuple(b.precision - a.precision for a, b in pairs),
        tuple(b.precision_mean - a.precision_mean for a, b in pairs),
        np.asarray(after.evidence - before.evidence - log_normaliser),
        np.asarray(after.rows - before.rows),
        weights,
        weights * after.means,
        _counts(after.trust) - _counts(before.trust),
        after.sums - before.sums,
    )


def apply_change(prior: Snapshot, change: Change, centres: Sequence[FloatArray]) -> Snapshot:
    """Add a change to a snapshot; a ValueError if the sum is not a Gaussian."""
    blocks, log_normaliser = [], 0.0
    parts = zip(prior.blocks, change.precisions, change.precision_means, centres, strict=True)
    for block, precision, precision_mean, centre in parts:
        before = block.natural(centre)
        blocks.append(
            type(block).from_natural(before.precision + precision, before.precision_mean + precision_mean, centre)
        )
        log_normaliser += blocks[-1].natural(centre).log_volume - before.log_volume
    evidence = prior.evidence + float(change.evidence) + log_normaliser
    return replace(pool_means(prior, change), blocks=tuple(blocks), evidence=evidence)


def pool_means(prior: Snapshot, change: Change) -> Snapshot:
    """Add the rows and running means of a change to a snapshot, and leave its Gaussian as it is.

    Whether the truth may have jumped just before the last row is nothing that changes have in common: that begins anew.
    """
    some = change.weights > 0.0
    means = np.where(some, change.weighted_means / np.where(some, change.weights, 1.0), prior.means)
    rows, weights = prior.rows + float(change.rows), prior.weights + change.weights
    trust = Trust.after(_counts(prior.trust) + change.trusted)
    return replace(prior, rows=rows, means=means, weights=weights, trust=trust, sums=prior.sums + change.sums)


def jumped_between(before: Snapshot, after: Snapshot) -> bool:
    """Whether an alarm was raised between the snapshots, and led or will lead back to the prior's covariance."""
    if not after.trust.active:
        return after.trust.has_jumped()
    expected = before.trust.rows_since_alarm + (after.rows - before.rows)
    return after.trust.has_jumped() or bool(after.trust.rows_since_alarm != expected)


def _counts(trust: Trust) -> FloatArray:
    return trust.to_array()[: TRUST_COUNTS if trust.active else 1]


def diverged_without_rows(before: Snapshot, after: Snapshot) -> bool:
    """Whether the beliefs differ although no row was learned between the snapshots."""
    pairs = zip(before.blocks, after.blocks, strict=True)
    return after.rows == before.rows and not all(np.array_equal(a.mean, b.mean) for a, b in pairs)
