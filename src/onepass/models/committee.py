"""Committees: networks that start differently and predict as a weighted mixture.

A single network depends on the random weights that it started with. Several, with different seeds and priors, disagree
where the data leave room, and `Mixture` counts that as uncertainty.
"""

from dataclasses import replace
from typing import Any

from onepass._validation import as_count
from onepass.layers import ImageShape, LayerSize
from onepass.models.mixture import Mixture, with_drift
from onepass.models.network import BayesianNetwork
from onepass.models.network.priors import NetworkPrior
from onepass.models.weighting import CommitteeWeights

__all__ = ["BayesianCommittee"]

# How a member's prior differs from the first one's: factors of the hidden weights' standard deviation, of the hidden
# biases' means, of the output weights' means, and of their standard deviation; and whether its units start as twins.
_VARIANTS = (
    (1.0, 1.0, 1.0, 1.0, False),
    (1.0, 2.0, 1.0, 1.0, True),
    (1.5, 1.0, 1.0, 1.0, False),
    (1.0, 1.0, 0.6, 0.6, False),
    (1.0, 1.0, 1.5, 2.0, False),
)


def BayesianCommittee(  # noqa: N802 # it makes an object, as the classes do
    n_features: int | ImageShape,
    hidden: LayerSize | tuple[LayerSize, ...] = (50,),
    n_outputs: int = 1,
    activation: Any = "relu",
    *,
    members: int = 5,
    weighting: str = "stacked",
    workers: int | None = None,
    seed: int = 0,
    prior: NetworkPrior | None = None,
    **options: Any,
) -> Mixture:
    """Make networks with different seeds and prior scales that predict as a weighted `Mixture`.

    Parameters
    ----------
    n_features, hidden, n_outputs, activation, **options
        As for `BayesianNetwork`; ``seed`` is that of the first member, the others count up from it. With
        ``drift="auto"`` each member is a mixture of several rates of drift.
    members : int
        Number of networks.
    weighting : {"stacked", "window", "evidence", "uniform"}
        How members are weighted. ``"stacked"`` looks for the mixture that predicts best: each row moves a member's
        weight towards its share of the density that the mixture gave the row, and early rows fade. ``"window"`` uses
        the evidence of the last 50 rows. ``"evidence"`` uses that of all rows, as in Bayes' rule, and soon gives one
        member all the weight. ``"uniform"`` weights all members equally.
    workers : int, optional
        Number of threads in which members learn in parallel; by default one per core if there are enough rows to be
        worth it. The result is the same, bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianCommittee
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> committee = BayesianCommittee(1, (10,), members=3).learn(X, np.abs(X[:, 0]))
    >>> bool(committee.weights.sum().round(12) == 1.0), committee.n_seen
    (True, 100)
    """
    sizes = (n_features, hidden, n_outputs, activation)
    networks = [with_drift(BayesianNetwork, *sizes, seed=seed, prior=prior, **options)]
    (_, first), *_ = networks[0].components
    for k in range(1, as_count(members, "members")):
        own = _variant(first.prior, k)
        networks.append(with_drift(BayesianNetwork, *sizes, seed=first.seed + k, prior=own, **options))
    return Mixture(networks, CommitteeWeights.start(members, weighting, first.n_outputs), workers)


def _variant(prior: NetworkPrior, k: int) -> NetworkPrior:
    hidden, biases, output_means, output, twins = _VARIANTS[k % len(_VARIANTS)]
    return replace(
        prior,
        weight_std=prior.weight_std * hidden,
        bias_means=prior.bias_means * biases,
        output_means=prior.output_means * output_means,
        output_std=prior.output_std * output,
        paired=prior.paired or twins,
    )
