"""Ensembles: several models that learn the same rows and predict as a mixture, weighted by how well each predicts.

The prior of a single model may be wrong, and a network's initial weights are random. Models with different starts make
different errors, and the density that each predicted for a row before learning it measures how good it is: the weights
follow from predictions alone, without validation data. `Ensemble` is what all of them share; `onepass.models.weighting`
has the rules for the weights; `BayesianCommittee` makes an ensemble of networks with different seeds and priors.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from onepass.likelihoods.mixtures import likely_weights, mixture_moments, mixture_quantile, mixture_variance
from onepass.models.ahead import RowsAhead, each_ahead_unchecked
from onepass.models.mixing import WORTH_THREADS, log_mixture, mixed_scores, snapshot, stacked
from onepass.models.network import BayesianNetwork
from onepass.models.network.priors import NetworkPrior
from onepass.models.perceptron import Prediction, RowScores
from onepass.models.weighting import WEIGHTINGS, Errors, RowWeights, RuleWeights, Weighting

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
        pairs = zip(self._weighting.likely_of(self._weighting.weights), self.members, strict=True)
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
    def n_set_aside(self) -> int:
        """Number of rows set aside by every member, since their target was absurdly far off."""
        return min(int(member.n_set_aside) for member in self.members)

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
            evidences = np.array(self._evidences)
            _, _, scores = zip(*map(methodcaller("_parts_then_learn", X, y, **options), self.members), strict=True)
            _, self._weighting = self._weighed(scores, evidences, options)
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
        if len(self.members) == 1:
            prediction, scores = self.members[0]._predict_then_learn(X, y, **options)
            return prediction, scores
        with self._all_or_none():
            evidences = np.array(self._evidences)
            seen = map(methodcaller("_parts_then_learn", X, y, **options), self.members)
            own_weights, predictions, scores = zip(*seen, strict=True)
            rows, after = self._weighed(scores, evidences, options)
            parts = _with_noise(stacked([one for own in predictions for one in own]), rows.noise_scale)
            mixture = self._mixture_before(rows.weights, own_weights, parts)
            mixed = _mixed_scores(rows.weights, scores, self._log_densities(own_weights, parts, y, scores))
            self._weighting = after
        return mixture, mixed

    def _weighed(
        self, scores: Sequence[RowScores], evidences: FloatArray, options: dict[str, Any]
    ) -> tuple[RowWeights, Weighting]:
        """How members count in each row that they have scored, and the weighting after the last."""
        return self._weighting.over_rows(*_counted(scores, evidences, options))

    def _mixture_before(self, weights: FloatArray, own_weights: Sequence[FloatArray], parts: Prediction) -> Prediction:
        """The mixture of what all `components` predicted, with weights ``(k, n)`` and ``(h, n)`` before each row."""
        joint = np.concatenate([one * own for one, own in zip(weights, own_weights, strict=True)])
        pairs = zip(self._weighting.likely_of(weights), own_weights, strict=True)
        likely = np.concatenate([one * likely_weights(own) for one, own in pairs])
        if parts.mean.ndim == 1:  # of one row
            joint, likely = joint[:, 0], likely[:, 0]
        return self._mixture(joint, parts, likely)

    def _log_densities(
        self, own_weights: Sequence[FloatArray], parts: Prediction, y: Any, scores: Sequence[RowScores]
    ) -> FloatArray:
        """Log densities that the members gave each row in the mixture, ``(k, n)``."""
        return np.array([own.log_densities for own in scores])

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

    def interval_predictions(self, X: Any, **options: Any) -> Prediction:
        """What each component takes the quantiles of its intervals from, ``(components, n, ...)``."""
        return stacked([part._interval_prediction(X, **options) for _, part in self.components])

    @property
    def _evidences(self) -> list[float]:
        return [member.log_evidence for member in self.members]

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
        return mixture_variance(weights, parts.noise_var)


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
            runs, evidences = [member.learning(X, y, **how) for member in self.members], np.array(self._evidences)
            for number, scores in enumerate(self._side_by_side(runs, n_rows, batch)):
                if number:  # rows predicted by what was learned from them before say nothing about this pass
                    self._weighting = self._weighting.restarted()
                self._weighting = self._weighed(scores, evidences, how)[1]
        return self

    def _weighed(
        self, scores: Sequence[RowScores], evidences: FloatArray, options: dict[str, Any]
    ) -> tuple[RowWeights, RuleWeights]:
        return self._weighting.over_rows(*_counted(scores, evidences, options), _errors(scores))

    def _log_densities(
        self, own_weights: Sequence[FloatArray], parts: Prediction, y: Any, scores: Sequence[RowScores]
    ) -> FloatArray:
        """With the mixture's noise, where that is one of Gaussian numbers."""
        found, each = [], iter([Prediction(*columns) for columns in zip(*parts, strict=True)])
        for member, weights, own in zip(self.members, own_weights, scores, strict=True):
            logs = [member._densities_of(next(each), y, own.log_densities, own.outliers) for _ in weights]
            found.append(log_mixture(weights, np.array(logs)))
        return np.array(found)

    def predict(self, X: Any, *, rows_ahead: RowsAhead = 1) -> Prediction:  # type: ignore[override]
        """Mean and variance of the mixture; disagreement between members counts as uncertainty about the weights.

        ``rows_ahead`` is as for `BayesianNetwork.predict`.
        """

        def predict(ahead: int, rows: Any, *_: Any) -> Prediction:
            later = self._switched(ahead - 1)
            parts = later.member_predictions(rows, rows_ahead=ahead)
            return later._mixture(later.component_weights, parts, later.likely_weights)

        return Prediction(*each_ahead_unchecked(rows_ahead, X, None, None, predict))

    def member_predictions(self, X: Any, *, rows_ahead: RowsAhead = 1) -> Prediction:  # type: ignore[override]
        """What each of the `components` contributes to the mixture, along a first axis: ``(components, ...)``."""
        return stacked([part._predict_with(self._noise_scale, X, rows_ahead) for _, part in self.components])

    def ahead(self, rows: int = 1) -> Self:
        """Return the committee as it predicts so many rows ahead: see `BayesianNetwork.ahead`."""
        return self.of([member.ahead(rows) for member in self.members], self._weighting)

    def _switched(self, rows: int) -> Self:
        """The committee with the weights of its members' hypotheses so many rows later."""
        return self if rows <= 0 else self.of([member.switched(rows) for member in self.members], self._weighting)

    @property
    def _noise_scale(self) -> FloatArray | None:
        """What the members' noise is multiplied by; members whose scales differ say how uncertain these are."""
        return None if len(self.members) == 1 else self._weighting.noise_scale

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

    def interval(self, X: ArrayLike, level: float = 0.95, *, rows_ahead: RowsAhead = 1) -> tuple[Any, Any]:
        """Lower and upper limits that contain a new target with probability ``level``: quantiles of the mixture.

        ``rows_ahead`` is as for `BayesianNetwork.predict`.
        """
        as_share(level, "level", open_above=True)
        if self.members[0].observation not in ("gaussian", *COUNT_NAMES):
            raise ValueError(
                f"a committee has intervals for numbers and counts only, got observation="
                f"{self.members[0].observation!r}; use predict, which returns probabilities"
            )

        def limits(ahead: int, rows: Any, *_: Any) -> tuple[Any, Any]:
            weights, parts = (
                self._switched(ahead - 1).component_weights,
                self.member_predictions(rows, rows_ahead=ahead),
            )
            if self.members[0].observation in COUNT_NAMES:
                return count_interval(weights, parts, level)
            stds = np.sqrt(parts.var + parts.noise_var)
            sides = (0.5 - level / 2, 0.5 + level / 2)
            low, high = (mixture_quantile(weights, parts.mean, stds, side)[()] for side in sides)
            return low, high

        low, high = each_ahead_unchecked(rows_ahead, X, None, None, limits)
        return low, high

    def log_predictive(self, X: ArrayLike, y: ArrayLike, *, rows_ahead: RowsAhead = 1) -> Any:
        """Log density (or probability) of each row's target; ``rows_ahead`` is as for `BayesianNetwork.predict`."""
        return self._scores(X, y, rows_ahead=rows_ahead)[0]

    def _scores(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Any, Any]:
        scores = [member._scores(X, y, noise_scale=self._noise_scale, **options) for member in self.members]
        return mixed_scores(self._weighting.weights, scores)

    def sample_output(self, X: ArrayLike, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` networks, each from a member drawn by its weight, and return their outputs.

        ``rows_ahead`` is as for `BayesianNetwork.predict`.
        """
        generator, weights = as_generator(rng), self._weighting.weights
        counts = generator.multinomial(as_count(n, "n"), weights / weights.sum()).tolist()
        pairs = zip(self.members, counts, strict=True)
        draws = [one.sample_output(X, count, generator, rows_ahead=rows_ahead) for one, count in pairs if count]
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

    def _mixture_noise(self, weights: FloatArray, parts: Prediction, mean: FloatArray, var: FloatArray) -> FloatArray:
        """Variance of the noise; of labels and classes it is what their own variance leaves."""
        if self.members[0].observation in ("gaussian", *COUNT_NAMES):
            return super()._mixture_noise(weights, parts, mean, var)
        return np.maximum(mean * (1.0 - mean) - var, 0.0)


def _with_noise(parts: Prediction, scale: FloatArray) -> Prediction:
    """What members predict of one row or many, ``(k, ...)``, with the mixture's noise: ``scale`` is ``(n, 1 or K)``."""
    noise = np.asarray(parts.noise_var)
    if scale.size == noise[0].size:
        scale = scale.reshape(noise.shape[1:])
    return parts._replace(noise_var=noise * scale)


def _errors(scores: Sequence[RowScores]) -> Errors | None:
    """The errors by which a mixture learns its noise, where the members learn theirs; one member knows its own."""
    if len(scores) == 1 or any(own.ratios is None for own in scores):
        return None
    return np.array([own.ratios for own in scores]), np.array([own.noise_shares for own in scores])


def _mixed_scores(weights: FloatArray, scores: Sequence[RowScores], log_densities: FloatArray) -> RowScores:
    """A mixture's scores from those of its members, their weights ``(k, n)`` and the log densities that they had."""
    mixture = log_mixture(weights, log_densities)
    with np.errstate(divide="ignore"):  # of a member of no weight, whose density may be any number
        after = np.exp(log_densities - mixture + np.log(weights))  # weights given each row
    outliers = (after * [own.outliers for own in scores]).sum(axis=0)
    return RowScores(mixture, outliers, (after * [own.changes for own in scores]).sum(axis=0))


def _counted(
    scores: Sequence[RowScores], evidences: FloatArray, options: dict[str, Any]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What a weighting is asked with: see `onepass.models.weighting.Weighting.over_rows`."""
    log_densities, weights = np.array([own.log_densities for own in scores]), options.get("sample_weight")
    counts = np.broadcast_to(1.0 if weights is None else np.asarray(weights, np.float64), log_densities.shape[1])
    return log_densities, evidences, np.array([own.row_gains for own in scores]), counts


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
