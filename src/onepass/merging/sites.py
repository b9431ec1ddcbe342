"""Sites: what the rows of a shard contribute to a belief, in parameters that add up.

The word is that of expectation propagation. A site contains no rows, so it is what travels between workers; sites form
a commutative group, so they can be added in any grouping and subtracted again.
"""

from dataclasses import dataclass, replace

import numpy as np

from onepass.merging.snapshots import Change

__all__ = ["Site"]


@dataclass(frozen=True)
class Site:
    """What a shard's rows changed. Sites add and subtract.

    Examples
    --------
    >>> import onepass
    >>> from onepass.merging import Merging
    >>> prior = onepass.BayesianPerceptron(1, "linear", noise=1.0)
    >>> merging = Merging(prior)
    >>> site = merging.site(prior, onepass.BayesianPerceptron(1, "linear", noise=1.0).learn([[2.0]], [1.0]))
    >>> merging.merged(site + site - site).n_seen
    1
    """

    changes: tuple[Change, ...]
    """One per belief; estimators may have several."""

    def __add__(self, other: "Site") -> "Site":
        return self._combined(other, 1.0)

    def __sub__(self, other: "Site") -> "Site":
        return self._combined(other, -1.0)

    def toward(self, new: "Site", share: float) -> "Site":
        """Interpolate between this site and a new one: a damped step of expectation propagation.

        The number of rows and the weights of the running means are those of the new site, whatever the share.
        """
        if share == 1.0:
            return new
        mixed = []
        for old, change in zip(self.changes, new.changes, strict=True):
            pairs = zip(old.numbers(), change.numbers(), strict=True)
            part = change.with_numbers([(1.0 - share) * a + share * b for a, b in pairs])
            mixed.append(replace(part, rows=change.rows, weights=change.weights, weighted_means=change.weighted_means))
        return Site(tuple(mixed))

    def _combined(self, other: "Site", sign: float) -> "Site":
        pairs = zip(self.changes, other.changes, strict=True)
        changes = tuple(
            mine.with_numbers([a + sign * b for a, b in zip(mine.numbers(), theirs.numbers(), strict=True)])
            for mine, theirs in pairs
        )
        return Site(changes)

    @property
    def rows(self) -> int:
        """Number of rows that the site represents."""
        return round(float(self.changes[0].rows))

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays: what is sent from worker to worker."""
        return sum(np.asarray(numbers).nbytes for change in self.changes for numbers in change.numbers())
