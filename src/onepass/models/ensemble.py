"""A committee of networks that starts from different seeds and priors and learns how much to trust each member.

One network's prior is a guess, and its random start a draw. Members that start elsewhere err elsewhere, and the density
each gave a row before learning it says online whose guess was good: weights follow from predictions alone, no
validation data are needed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from onepass._cores import available_cores
from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator, as_rows, as_share, one_of
from onepass.files.state import as_number, sized
from onepass.mathematics.mixtures import mixture_moments, mixture_quantile
from onepass.models.network import BayesianNetwork
from onepass.models.network.priors import NetworkPrior
from onepass.models.perceptron import Prediction

__all__ = ["WEIGHTINGS", "BayesianCommittee"]

WEIGHTINGS = ("stacked", "window", "evidence", "uniform")
# How a member's prior differs from the first one's: factors of the hidden weights' standard deviation, of the output
# weights' means, and of their standard deviation.
_VARIANTS = (
    (1.0, 1.0, 1.0),
    (1.0 / 1.5, 1.0, 1.0),
    (2.2 / 1.5, 1.0, 1.0),
    (1.0, 1.0 / 1.7, 0.7 / 1.1),
    (1.0, 2.5 / 1.7, 1.5 / 1.1),
)
_GAIN, _LARGEST_STEP, _WINDOW = 10.0, 0.5, 50
# Numbers of a member's covariance times rows from which on a pass (some milliseconds) is worth a thread's start.
_WORTH_THREADS = 10_000_000


class BayesianCommittee:
    """Networks with different seeds and prior scales that predict as a weighted mixture.

    Parameters
    ----------
    n_features, hidden, n_outputs, activation, **options
        As for `BayesianNetwork`; ``seed`` is the first member's, the others have the next ones.
    members : int
        Number of networks.
    weighting : {"stacked", "window", "evidence", "uniform"}
        ``"stacked"`` looks for the mixture that predicts best: each row moves the weights towards each member's share
        in the density the mixture gave it, early rows fading. ``"window"`` weighs by the evidence of the last 50 rows.
        ``"evidence"`` weighs by that of all rows, which Bayes' rule asks for and which soon leaves one member;
        ``"uniform"`` not at all.
    workers : int, optional
        Threads in which members learn side by side; by default one a core, and only where there are rows enough to be
        worth it. What is learned is the same, bit for bit.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> committee = BayesianCommittee(1, (10,), members=3).learn(X, np.abs(X[:, 0]))
    >>> bool(committee.weights.sum().round(12) == 1.0), committee.n_seen
    (True, 100)
    """

    def __init__(
        self,
        n_features: int,
        hidden: int | tuple[int, ...] = (50,),
        n_outputs: int = 1,
        activation: Any = "relu",
        *,
        members: int = 5,
        weighting: str = "stacked",
        workers: int | None = None,
        seed: int = 0,
        prior: NetworkPrior | None = None,
        **options: Any,
    ) -> None:
        count = as_count(members, "members")
        self.weighting = one_of(weighting, WEIGHTINGS, "weighting")
        self.workers = None if workers is None else as_count(workers, "workers")
        first = BayesianNetwork(n_features, hidden, n_outputs, activation, seed=seed, prior=prior, **options)
        self.members = [first]
        for k in range(1, count):
            own = _variant(first.prior, k)
            self.members.append(
                BayesianNetwork(n_features, hidden, n_outputs, activation, seed=first.seed + k, prior=own, **options)
            )
        self._weights, self._count = np.full(count, 1.0 / count), float(count)
        self._recent = np.zeros((count, 0))  # log densities of the last rows

    def __repr__(self) -> str:
        return f"BayesianCommittee({self.members[0]!r}, members={len(self.members)}, weighting={self.weighting!r})"

    @property
    def weights(self) -> FloatArray:
        """Weight of each member as it is now, ``(members,)``."""
        return self._weights.copy()

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return self.members[0].n_seen

    @property
    def log_evidence(self) -> float:
        """Log evidence of the members' uniform mixture: each row given all rows before it."""
        evidences = [member.log_evidence for member in self.members]
        return float(logsumexp(evidences) - np.log(len(evidences)))

    def learn(self, X: ArrayLike, y: ArrayLike, *, passes: int = 1, refine: str = "reuse", batch: int = 1) -> Self:
        """Let every member learn, in its own order after the first pass, and weigh them anew: all rows or none."""
        n_rows = len(as_rows(X, self.members[0].n_features)[0])
        with self._all_or_none():
            runs = [member.learning(X, y, passes=passes, refine=refine, batch=batch) for member in self.members]
            for number, densities in enumerate(self._side_by_side(runs, n_rows, batch)):
                if number:  # what was known before the pass is known better now
                    self._weights, self._count = np.full_like(self._weights, 1.0 / len(runs)), float(len(runs))
                self._weigh(np.array(densities))
        return self

    def predict_then_learn(self, X: ArrayLike, y: ArrayLike) -> Prediction:
        """Predict every row just before learning it; members count as they did before the first of them."""
        with self._all_or_none():
            parts, densities = zip(*(member._foretell(X, y) for member in self.members), strict=True)
            seen = self._together(list(parts))
            self._weigh(np.array(densities))
        return seen

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """Take back whatever was learned if something can't be."""
        before = [member._state.copy() for member in self.members]
        weighed = (self._weights.copy(), self._count, self._recent)
        try:
            yield
        except BaseException:  # Ctrl-C too leaves no member ahead of the others
            for member, state in zip(self.members, before, strict=True):
                member._state = state
            self._weights, self._count, self._recent = weighed
            raise

    def _side_by_side(
        self, runs: list[Iterator[FloatArray]], n_rows: int, batch: int
    ) -> Iterator[tuple[FloatArray, ...]]:
        """All members' passes, one pass at a time; members are independent, so that threads change nothing."""
        threads = min(self._cores(n_rows, batch), len(runs))
        if threads == 1:
            yield from zip(*runs, strict=True)
            return
        with ThreadPoolExecutor(threads) as pool:
            while True:
                densities = list(pool.map(lambda run: next(run, None), runs))
                if any(given is None for given in densities):
                    return
                yield tuple(given for given in densities if given is not None)

    def _cores(self, n_rows: int, batch: int) -> int:
        """Threads that learning so many rows is worth."""
        first = self.members[0]
        if first._learner.plan is None or batch > 1:  # NumPy holds the lock, and BLAS has threads of its own
            return 1
        if self.workers is not None:
            return self.workers
        numbers = sum(values.size for values in first._state.belief.arrays.values())
        return available_cores() if n_rows * numbers >= _WORTH_THREADS else 1

    def _weigh(self, densities: FloatArray) -> None:
        """Take the log densities ``(members, n)`` of new rows into the weights."""
        self._recent = np.hstack([self._recent, densities])[:, -_WINDOW:]
        if self.weighting == "stacked":
            for row in densities.T:
                share = np.log(self._weights) + row
                share = np.exp(share - logsumexp(share))
                self._count += 1.0
                self._weights += min(_GAIN / self._count, _LARGEST_STEP) * (share - self._weights)
        elif self.weighting != "uniform":
            windowed = self.weighting == "window"
            evidence = self._recent.sum(axis=1) if windowed else np.array([m.log_evidence for m in self.members])
            self._weights = np.exp(evidence - logsumexp(evidence))

    def predict(self, X: ArrayLike) -> Prediction:
        """Moments of the mixture; what the members disagree about counts as not knowing."""
        return self._together([member.predict(X) for member in self.members])

    def _together(self, parts: list[Prediction]) -> Prediction:
        mean, var = self._mix([p.mean for p in parts], [p.var for p in parts])
        pre_mean, pre_var = self._mix([p.pre_mean for p in parts], [p.pre_var for p in parts])
        if self.members[0].observation == "gaussian":
            rest = self._average([p.noise_var for p in parts])
        else:
            rest = np.maximum(mean * (1.0 - mean) - var, 0.0)
        return Prediction(mean, var, pre_mean, pre_var, rest)

    def interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Any, Any]:
        """Central interval of a new target: quantiles of the mixture."""
        as_share(level, "level", open_above=True)
        if self.members[0].observation != "gaussian":
            raise ValueError(
                f"a committee's interval is for numbers, got observation={self.members[0].observation!r}; use predict"
            )
        parts = [member.predict(X) for member in self.members]
        means = np.array([p.mean for p in parts])
        stds = np.sqrt([p.var + p.noise_var for p in parts])
        low, high = (mixture_quantile(self._weights, means, stds, 0.5 + side * level / 2)[()] for side in (-1, 1))
        return low, high

    def log_predictive(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Log density (or probability) of a target, one number a row."""
        logs = np.array([member.log_predictive(X, y) for member in self.members])
        weights = self._weights.reshape(-1, *[1] * (logs.ndim - 1))
        with np.errstate(divide="ignore"):  # a member may have lost all weight
            return logsumexp(logs + np.log(weights), axis=0)

    def sample_output(self, X: ArrayLike, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` networks, each from a member drawn by weight, and give their outputs."""
        generator = as_generator(rng)
        counts = generator.multinomial(as_count(n, "n"), self._weights / self._weights.sum())
        draws = [m.sample_output(X, int(k), generator) for m, k in zip(self.members, counts, strict=True) if k]
        return np.asarray(generator.permutation(np.concatenate(draws)))

    def export_state(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """All that makes this committee: parameters that JSON can hold, and arrays. See `from_state`."""
        exported = [member.export_state() for member in self.members]
        arrays = {f"{k}.{name}": values for k, (_, own) in enumerate(exported) for name, values in own.items()}
        arrays |= {"weights": self._weights.copy(), "recent": self._recent.copy()}
        parameters = {"weighting": self.weighting, "count": self._count, "members": [own for own, _ in exported]}
        return parameters, arrays

    @property
    def weighing(self) -> dict[str, FloatArray]:
        """What the weights follow from, as `of` takes it."""
        return {"weights": self.weights, "count": np.array([self._count]), "recent": self._recent.copy()}

    @classmethod
    def of(cls, members: list[BayesianNetwork], weighting: str, weighing: dict[str, FloatArray]) -> Self:
        """Make a committee of networks that have learned already."""
        committee = object.__new__(cls)
        committee.members = members
        committee.workers = None
        committee.weighting = one_of(weighting, WEIGHTINGS, "weighting")
        committee._weights = sized(weighing, "weights", (len(members),))
        if (committee._weights < 0.0).any() or abs(committee._weights.sum() - 1.0) > 1e-6:
            raise ValueError("the weights of a committee must be shares of 1")
        committee._count = float(sized(weighing, "count", (1,))[0])
        committee._recent = sized(weighing, "recent", (len(members), *weighing["recent"].shape[1:]))
        return committee

    @classmethod
    def from_state(cls, parameters: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Make the committee that `export_state` described; it goes on as the first would have."""
        count = np.array([as_number(parameters["count"], "count")])
        members = [
            BayesianNetwork.from_state(
                own, {name.split(".", 1)[1]: values for name, values in arrays.items() if name.startswith(f"{k}.")}
            )
            for k, own in enumerate(parameters["members"])
        ]
        return cls.of(members, parameters["weighting"], {**arrays, "count": count})

    def _average(self, parts: list[Any]) -> Any:
        return np.tensordot(self._weights, np.array(parts), axes=1)[()]

    def _mix(self, means: list[Any], variances: list[Any]) -> tuple[Any, Any]:
        """Mean and variance of the mixture."""
        mean, var = mixture_moments(self._weights, np.array(means), np.array(variances))
        return mean[()], var[()]


def _variant(prior: NetworkPrior, k: int) -> NetworkPrior:
    hidden, output_means, output = _VARIANTS[k % len(_VARIANTS)]
    return replace(
        prior,
        weight_std=prior.weight_std * hidden,
        output_means=prior.output_means * output_means,
        output_std=prior.output_std * output,
    )
