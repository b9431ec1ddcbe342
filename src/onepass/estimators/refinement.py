"""How often to go over a batch of rows: tried on a small sample, and decided by rows held out of it.

A network is linearised at the belief that a row meets. Later passes linearise each row anew, at a better belief: that
helps where the outputs are far from linear in the weights, and otherwise only takes time. To find out, a network learns
four fifths of a sample, and the predictions of the last fifth after one and after several passes are compared. The
density of a row given all other rows, a by-product of expectation propagation, would not do: it continues to grow with
the passes when the density of new rows does not.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.models.network import BayesianNetwork

__all__ = ["MOST_SITE_NUMBERS", "PASSES", "Schedule", "best_passes", "held_out_densities", "trial_split"]

PASSES = (1, 5)
"""Numbers of passes to choose from. From pass to pass predictions vary by more than a finer choice would gain."""
MOST_SITE_NUMBERS = 25_000_000
"""Numbers by which all rows' contributions may be described, 200 MB; more rows are learned in one pass."""
_MOST_ROWS, _FEWEST_ROWS = 2000, 50  # of the sample
_HELD_OUT = 0.2  # share of the sample


@dataclass(frozen=True)
class Schedule:
    """How `fit` goes over its rows."""

    passes: int | str = 1  # "auto": as many as are tried to be best
    refine: str = "auto"
    shuffle: bool = False
    merges_repeats: bool = False  # whether a row that repeats the one before it is added to its weight
    once: bool = False  # whether more passes than one would not help, so that none are tried

    arguments: ClassVar = frozenset({"passes", "refine", "shuffle"})
    """Arguments of estimators that only `fit` follows: they may change between two calls of `partial_fit`."""


def trial_split(rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows] | None:
    """Rows to learn, in their order, and rows held out, both from a random sample; None if there are too few."""
    if len(rows) < _FEWEST_ROWS:
        return None
    places = rng.permutation(len(rows))[:_MOST_ROWS]
    n_held_out = int(_HELD_OUT * len(places))
    return rows.at(np.sort(places[n_held_out:])), rows.at(places[:n_held_out])


def held_out_densities(network: BayesianNetwork, learned: Rows, held_out: Rows) -> FloatArray:
    """Sum of the log densities of the rows held out, after each of the `PASSES`, ``(len(PASSES),)``."""
    passes = network.learning(learned.X, learned.y, **learned.options, passes=max(PASSES), refine="ep")
    tested = held_out.X, held_out.y
    densities = [network.log_predictive(*tested) for number, _ in enumerate(passes, 1) if number in PASSES]
    return np.asarray(np.array(densities) @ held_out.full_weights)


def best_passes(densities: FloatArray) -> int:
    """The number of passes with the highest of the `held_out_densities`, the smallest of several; NaN is the lowest."""
    return PASSES[int(np.argmax(np.where(np.isnan(densities), -np.inf, densities)))]
