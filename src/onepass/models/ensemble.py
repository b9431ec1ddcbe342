"""Ensembles: several models that learn the same rows and predict as a mixture, weighted by how well each predicts.

The prior of a single model may be wrong, and a network's initial weights are random. Models with different starts make
different errors, and the density that each predicted for a row before learning it measures how good it is: the weights
follow from predictions alone, without validation data. `Ensemble` is what all of them share; `onepass.models.weighting`
has the rules for the weights; `BayesianCommittee` makes an ensemble of networks with different seeds and priors.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from operator import methodcaller
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onepass._cores import available_cores
from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator, as_share
from onepass.beliefs.layout import ImageShape, LayerSize
from onepass.files.registry import savable
from onepass.files.state import Arrays, Parameters, as_number
from onepass.likelihoods.counts import COUNT_NAMES, count_interval
from onepass.likelihoods.mixtures import likely_weights, mixture_moments, mixture_quantile
from onepass.models.mixing import WORTH_THREADS, log_mixture, mixed_prediction, mixed_scores, snapshot, stacked
from onepass.models.network import BayesianNetwork
from onepass.models.network.priors import NetworkPrior
from onepass.models.perceptron import Prediction, RowScores
from onepass.models.weighting import WEIGHTINGS, RuleWeights, Weighting

__all__ = ["WEIGHTINGS", "BayesianCommittee", "Ensemble"]

# How a member's prior differs from the first one's: factors of the hidden weights' standard deviation, of the hidden
# biases' means, of the output weights' means, and of their standard deviation; and whether its units start as twins.
_VARIANTS = (
    (1.0, 1.0, 1.0, 1.0, False),
    (1.0, 2.0, 1.0, 1.0, True),
    (1.5, 1.0, 1.0, 1.0, False),
    (1.0, 1.0, 0.6, 0.6, False),
    (1.0, 1.0, 1.5, 2.0, False),
)


class Ensemble:
    """Models of one kind that learn the same rows and predict as a weighted mixture.

    Parameters
    ----------
    members : models with ``learn``, ``predict`` and ``predict_then_learn``
    weighting : Weighting
    """

    def __init__(self, members: Sequence[Any], weighting: Weighting) -> None:
        self.members: list[Any] = list(members)
        self._weighting = weighting

    @property
    def weights(self) -> FloatArray:
        """Current weight of each member, ``(members,)``."""
        return self._weighting.weights.copy()

    @property
    def components(self) -> list[tuple[float, Any]]:
        """The models that the mixture is made of, with their weights: members, or the hypotheses that these weigh."""
        pairs = zip(self._weighting.weights.tolist(), self.members, strict=True)
        return [(weight * own, part) for weight, member in pairs for own, part in member.hypotheses]

    @property
    def component_weights(self) -> FloatArray:
        """Weight of each of the `components`, ``(components,)``."""
        return np.array([weight for weight, _ in self.components])

    @property
    def likely_weights(self) -> FloatArray:
        """The same for variances, without members and hypotheses that are unlikely."""
        pairs = zip(self._weighting.likely, self.members, strict=True)
        return np.concatenate(
            [weight * likely_weights(np.array([own for own, _ in member.hypotheses])) for weight, member in pairs]
        )

    @property
    def weighting_arrays(self) -> Arrays:
        """What the weights follow from, by the names that files have for it."""
        return self._weighting.arrays

    @property
    def log_evidence(self) -> float:
        """Log evidence of all rows, each given all rows before it: see the weighting."""
        return self._weighting.log_evidence(self._evidences)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted."""
        return float(self._weighting.weights @ [member.outliers_ for member in self.members])

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift."""
        shares = [member.drift_ for member in self.members]
        return {name: float(self._weighting.weights @ [own[name] for own in shares]) for name in shares[0]}

    def learn(self, X: Any, y: FloatArray, **options: Any) -> Self:
        """Let every member learn the rows, and update the weights: all rows or none.

        With a single member ``options`` are those of its ``learn``, such as more passes; with several, those of
        ``predict_then_learn``.
        """
        if len(self.members) == 1:
            self.members[0].learn(X, y, **options)
            return self
        with self._all_or_none():
            _, scores = zip(*map(methodcaller("_predict_then_learn", X, y, **options), self.members), strict=True)
            self._weigh(np.array([own.log_densities for own in scores]) * _powers(options))
        return self

    def predict_then_learn(self, X: Any, y: Any, *, return_outlier_probability: bool = False) -> Any:
        """Predict every row just before learning it; the weighting says how members count in each row.

        Returns the `Prediction` or, with ``return_outlier_probability``, a pair: the prediction, and for each row the
        probability that its target can't be trusted, ``(n,)``.
        """
        prediction, scores = self.predict_score_learn(X, y)
        return (prediction, scores.outliers) if return_outlier_probability else prediction

    def predict_score_learn(self, X: Any, y: Any, **options: Any) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well the mixture did.

        The ``options`` are those of the members' ``predict_then_learn``.
        """
        with self._all_or_none() if len(self.members) > 1 else nullcontext():
            seen = map(methodcaller("_predict_then_learn", X, y, **options), self.members)
            predictions, scores = zip(*seen, strict=True)
            if len(self.members) == 1:
                return predictions[0], scores[0]
            log_densities = np.array([own.log_densities for own in scores])
            evident = log_densities * _powers(options)
            weights = self._weighting.before_rows(evident)
            mixture = mixed_prediction(weights, stacked(predictions))
            mixed = _mixed_scores(weights, scores, log_densities)
            self._weigh(evident)
        return mixture, mixed

    def predict(self, X: Any, **options: Any) -> Prediction:
        """Mean and variance of the mixture; disagreement between members counts as uncertainty about the weights.

        The ``options`` are those of the members' ``predict``.
        """
        return self._mixture(self.component_weights, self.member_predictions(X, **options), self.likely_weights)

    def close_block(self) -> None:
        """Close the blocks of all members: see `onepass.BayesianNetwork`."""
        for member in self.members:
            member.close_block()

    def outlier_probability(self, X: Any, y: Any, **options: Any) -> Any:
        """Probability that each target can't be trusted, by the current belief."""
        return self._scores(X, y, **options)[1]

    def _scores(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """Log density of each target, and the probability that it is not to be trusted."""
        return mixed_scores(self._weighting.weights, [member._scores(X, y, **options) for member in self.members])

    def member_predictions(self, X: Any, **options: Any) -> Prediction:
        """What each of the `components` predicts, along a first axis: ``(components, ...)``."""
        return stacked([part.predict(X, **options) for _, part in self.components])

    @property
    def _evidences(self) -> list[float]:
        return [member.log_evidence for member in self.members]

    def _weigh(self, log_densities: FloatArray) -> None:
        """Update the weights by the log densities ``(members, n)`` of new rows."""
        self._weighting = self._weighting.updated(log_densities, self._evidences)

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """Go back to the members and weights from before if something can't be learned."""
        before, weighting = [snapshot(member) for member in self.members], self._weighting
        try:
            yield
        except BaseException:  # Ctrl-C too leaves no member ahead of the others
            self.members, self._weighting = before, weighting
            raise

    def _mixture(self, weights: FloatArray, parts: Prediction, likely: FloatArray | None = None) -> Prediction:
        """Moments of the mixture of predictions, ``(k, ...)``, of these weights."""
        mean, var = mixture_moments(weights, parts.mean, parts.var, likely)
        pre_mean, pre_var = mixture_moments(weights, parts.pre_mean, parts.pre_var, likely)
        noise_var = self._mixture_noise(weights, parts, mean, var)
        return Prediction(*(column[()] for column in (mean, var, pre_mean, pre_var, noise_var)))

    def _mixture_noise(self, weights: FloatArray, parts: Prediction, mean: FloatArray, var: FloatArray) -> FloatArray:
        """Variance of the noise, given the mixture's mean and variance."""
        return np.asarray(np.tensordot(weights, parts.noise_var, axes=1))


class BayesianCommittee(Ensemble):
    """Networks with different seeds and prior scales that predict as a weighted mixture.

    Parameters
    ----------
    n_features, hidden, n_outputs, activation, **options
        As for `BayesianNetwork`; ``seed`` is that of the first member, the others count up from it.
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

    members: list[BayesianNetwork]
    _weighting: RuleWeights

    def __init__(
        self,
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
    ) -> None:
        as_count(members, "members")
        self.workers: int | None = None if workers is None else as_count(workers, "workers")
        first = BayesianNetwork(n_features, hidden, n_outputs, activation, seed=seed, prior=prior, **options)
        self._weighting = RuleWeights.start(members, weighting, first.n_outputs)
        self.members = [first]
        for k in range(1, members):
            own = _variant(first.prior, k)
            self.members.append(
                BayesianNetwork(n_features, hidden, n_outputs, activation, seed=first.seed + k, prior=own, **options)
            )

    def __repr__(self) -> str:
        return f"BayesianCommittee({self.members[0]!r}, members={len(self.members)}, weighting={self.weighting!r})"

    @property
    def weighting(self) -> str:
        """Name of the rule by which members are weighted."""
        return self._weighting.rule

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return self.members[0].n_seen

    def learn(  # type: ignore[override] # the options that all its members have
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        passes: int = 1,
        refine: str = "reuse",
        batch: int = 1,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Let every member learn, in its own order after the first pass, and update the weights: all rows or none."""
        n_rows = len(self.members[0]._rows(X)[0])
        with self._all_or_none():
            how: dict[str, Any] = {"passes": passes, "refine": refine, "batch": batch, "sample_weight": sample_weight}
            runs = [member.learning(X, y, **how) for member in self.members]
            for number, scores in enumerate(self._side_by_side(runs, n_rows, batch)):
                if number:  # rows predicted by what was learned from them before say nothing about this pass
                    self._weighting = self._weighting.restarted()
                self._weigh_by_scores(scores, _powers(how))
        return self

    def predict_score_learn(self, X: Any, y: Any, **options: Any) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well the mixture did."""
        if len(self.members) == 1:
            return self.members[0]._predict_then_learn(X, y, **options)
        with self._all_or_none():
            seen = [member._predict_score_learn(X, y, 1.0, **options) for member in self.members]
            predictions, scores = zip(*seen, strict=True)
            parts = self._with_noise(stacked(predictions))
            mixture = self._mixture(self._weighting.weights, parts)
            each = [Prediction(*columns) for columns in zip(*parts, strict=True)]
            logs = [
                member._densities_of(part, y, own) for member, part, own in zip(self.members, each, scores, strict=True)
            ]
            mixed = _mixed_scores(self._weighting.before_rows(np.array(logs)), scores, np.array(logs))
            self._weigh_by_scores(scores, _powers(options))
        return mixture, mixed

    def member_predictions(self, X: Any, **options: Any) -> Prediction:
        """What each of the `components` contributes to the mixture, along a first axis: ``(components, ...)``."""
        return stacked([part._predict_with(self._noise_scale, X) for _, part in self.components])

    @property
    def _noise_scale(self) -> FloatArray | None:
        """What the members' noise is multiplied by; members whose scales differ say how uncertain these are."""
        return None if len(self.members) == 1 else self._weighting.noise_scale

    def _weigh_by_scores(self, scores: Sequence[RowScores], powers: Any) -> None:
        """Update the weights, and the mixture's noise where the members learn theirs."""
        log_densities = np.array([own.log_densities for own in scores]) * powers
        errors = None
        if len(scores) > 1 and all(own.ratios is not None for own in scores):  # one member knows its own noise
            errors = (np.array([own.ratios for own in scores]), np.array([own.noise_shares for own in scores]))
        self._weighting = self._weighting.updated(log_densities, self._evidences, errors)

    def _side_by_side(
        self, runs: list[Iterator[RowScores]], n_rows: int, batch: int
    ) -> Iterator[tuple[RowScores, ...]]:
        """All members' passes, one pass at a time; members are independent, so that threads change nothing."""
        threads = min(self._cores(n_rows, batch), len(runs))
        if threads == 1:
            yield from zip(*runs, strict=True)
            return
        with ThreadPoolExecutor(threads) as pool:
            while True:
                scores = list(pool.map(lambda run: next(run, None), runs))
                if any(given is None for given in scores):
                    return
                yield tuple(given for given in scores if given is not None)

    def _cores(self, n_rows: int, batch: int) -> int:
        """Number of threads worth starting for this many rows."""
        first = self.members[0]
        if first.kernel == "reference" or batch > 1:  # NumPy holds the lock, and BLAS has threads of its own
            return 1
        if self.workers is not None:
            return self.workers
        return available_cores() if n_rows * len(self.members) * first.belief_size >= WORTH_THREADS else 1

    def interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Any, Any]:
        """Lower and upper limits that contain a new target with probability ``level``: quantiles of the mixture."""
        as_share(level, "level", open_above=True)
        if self.members[0].observation not in ("gaussian", *COUNT_NAMES):
            raise ValueError(
                f"a committee has intervals for numbers and counts only, got observation="
                f"{self.members[0].observation!r}; use predict, which returns probabilities"
            )
        parts = self.member_predictions(X)
        weights = self.component_weights
        if self.members[0].observation in COUNT_NAMES:
            return count_interval(weights, parts, level)
        stds = np.sqrt(parts.var + parts.noise_var)
        low, high = (mixture_quantile(weights, parts.mean, stds, 0.5 + side * level / 2)[()] for side in (-1, 1))
        return low, high

    def log_predictive(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Log density (or probability) of each row's target."""
        return self._scores(X, y)[0]

    def _scores(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Any, Any]:
        scores = [member._scores(X, y, noise_scale=self._noise_scale) for member in self.members]
        return mixed_scores(self._weighting.weights, scores)

    def sample_output(self, X: ArrayLike, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` networks, each from a member drawn by its weight, and return their outputs."""
        generator = as_generator(rng)
        counts = generator.multinomial(as_count(n, "n"), self._weighting.weights / self._weighting.weights.sum())
        draws = [m.sample_output(X, int(k), generator) for m, k in zip(self.members, counts, strict=True) if k]
        return np.asarray(generator.permutation(np.concatenate(draws)))

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        exported = [member.export_state() for member in self.members]
        arrays = {f"{k}.{name}": values for k, (_, own) in enumerate(exported) for name, values in own.items()}
        weighting = self.weighting_arrays
        count = float(weighting.pop("count")[0])  # a number among the parameters, where files have it
        parameters = {"weighting": self.weighting, "count": count, "members": [own for own, _ in exported]}
        return parameters, arrays | weighting

    @classmethod
    def of(cls, members: list[BayesianNetwork], weighting: RuleWeights) -> Self:
        """Make a committee of networks that have learned already."""
        committee = object.__new__(cls)
        committee.members, committee.workers, committee._weighting = members, None, weighting
        return committee

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the committee that `export_state` described; it continues exactly as that one would."""
        count = np.array([as_number(parameters["count"], "count")])
        members = [
            _kind_of(own).from_state(
                own, {name.split(".", 1)[1]: values for name, values in arrays.items() if name.startswith(f"{k}.")}
            )
            for k, own in enumerate(parameters["members"])
        ]
        sizes = (len(members), members[0].n_outputs)
        weighting = RuleWeights.from_arrays(parameters["weighting"], *sizes, {**arrays, "count": count})
        return cls.of(members, weighting)

    def _with_noise(self, parts: Prediction) -> Prediction:
        """What the members predict, with the mixture's noise."""
        factor = self._weighting.noise_scale
        return parts._replace(noise_var=parts.noise_var * (factor if factor.size > 1 else factor[0]))

    def _mixture_noise(self, weights: FloatArray, parts: Prediction, mean: FloatArray, var: FloatArray) -> FloatArray:
        """Variance of the noise; of labels and classes it is what their own variance leaves."""
        if self.members[0].observation in ("gaussian", *COUNT_NAMES):
            return super()._mixture_noise(weights, parts, mean, var)
        return np.maximum(mean * (1.0 - mean) - var, 0.0)


def _mixed_scores(weights: FloatArray, scores: Sequence[RowScores], log_densities: FloatArray) -> RowScores:
    """A mixture's scores from those of its members, their weights ``(k, n)`` and the log densities that they had."""
    mixture = log_mixture(weights, log_densities)
    after = np.exp(log_densities - mixture) * weights  # weights given each row
    outliers = (after * [own.outliers for own in scores]).sum(axis=0)
    return RowScores(mixture, outliers, (after * [own.changes for own in scores]).sum(axis=0))


def _powers(options: Any) -> Any:
    """To which power the likelihood of each row is taken, ``(n,)``, or 1 for all."""
    weights = options.get("sample_weight")
    return 1.0 if weights is None else np.asarray(weights)


def _kind_of(parameters: Parameters) -> type[BayesianNetwork]:
    """The class of a member, which a network of one rate of drift does not name."""
    kind = savable(parameters.get("class", BayesianNetwork.__name__))
    if not issubclass(kind, BayesianNetwork):
        raise ValueError(f"a saved member must be a network, got a {kind.__name__}")
    return kind


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
