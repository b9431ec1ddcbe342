"""Expectation propagation over shards: merging repeated until it agrees with learning all rows in one model.

A row's contribution to a non-linear model depends on the belief it is learned under, so shards that each start from
the prior are not quite one model that learned everything. In every further round a shard learns again from the merged
belief without its own site (the *cavity*) and replaces the site by what it changed this time.
"""

import copy
from collections.abc import Sequence
from typing import Any

from onepass._validation import as_count
from onepass.merging.merging import Merging

__all__ = ["Rounds"]


class Rounds:
    """Expectation propagation over shards, independent of where they are.

    In every round each shard learns its rows from the merged belief without its own contribution. One round is `merge`;
    after two the result is usually as close to sequential learning as another order of the rows would be. A shard whose
    contribution can't be removed, because what remains is not a Gaussian, keeps its site for that round. Networks other
    than those with a full covariance go ``2 / n_shards`` of the way in each round after the first, and so need more.

    Parameters
    ----------
    prior : model
        As for `onepass.merge`.
    n_shards : int
        Number of shards.

    Examples
    --------
    >>> import numpy as np, onepass
    >>> from onepass.merging import Rounds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = (X @ [2.0, -1.0] + rng.logistic(size=3000) > 0).astype(float)
    >>> shards = [(X[k::10], y[k::10]) for k in range(10)]
    >>> prior = onepass.BayesianPerceptron(2)
    >>> rounds = Rounds(prior, n_shards=10)
    >>> whole = onepass.BayesianPerceptron(2).learn(X, y)
    >>> for _ in range(2):
    ...     learned = [start and start.learn(*shard) for start, shard in zip(rounds.starts(), shards)]
    ...     model = rounds.take(learned)
    ...     gaps = (model.mean - whole.mean) / np.sqrt(np.diag(whole.cov))
    ...     print(f"{np.sqrt(np.mean(gaps**2)):.2f}")
    0.29
    0.02
    """

    def __init__(self, prior: Any, n_shards: int) -> None:
        self._merging = Merging(prior)
        self._sites = [self._merging.nothing()] * as_count(n_shards, "n_shards")
        self._total = self._merging.nothing()
        self._starts: list[Any | None] | None = None

    def starts(self) -> list[Any | None]:
        """Return the model from which each shard learns its rows this round; None for one that keeps its site."""
        self._starts = [self._merging.cavity(self._total, site) for site in self._sites]
        return copy.deepcopy(self._starts)

    def take(self, learned: Sequence[Any | None]) -> Any:
        """Replace the sites by what the models of `starts`, in that order, have learned; returns the merged model."""
        if self._starts is None:
            raise RuntimeError("take needs the models that starts returned: call that first")
        if len(learned) != len(self._sites):
            raise ValueError(
                f"learned must contain one model for each of {len(self._sites)} shards, got {len(learned)}"
            )
        sites = [
            site if start is None or model is None else self._merging.site(start, model, f"the model of shard {k}")
            for k, (site, start, model) in enumerate(zip(self._sites, self._starts, learned, strict=True))
        ]
        total = sum(sites[1:], sites[0])
        share = self._merging.step_size(self._total, total, len(sites))
        self._sites = [old.toward(new, share) for old, new in zip(self._sites, sites, strict=True)]
        self._total, self._starts = self._total.toward(total, share), None
        return self.merged()

    def merged(self) -> Any:
        """Make the model of the prior and the sites of all shards as they are now."""
        return self._merging.merged(self._total)
