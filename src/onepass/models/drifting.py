"""Models for ``drift="auto"``: several rates of drift compete, and predictions are those of their mixture.

Each hypothesis is a whole model with a rate of drift of its own, from weights that never move on; one more returns to
the prior within a few rows. They learn the same rows and are weighed by the density that each predicted for a row
before it learned it. Before each row any of them may take over (`onepass.engine.switching`), so that the mixture
follows a stream that changes the pace of its changes, and its evidence is a proper one: the product of its predictive
densities.

`Drifting` is all that does not depend on the kind of model; `DriftingPerceptron` and `DriftingNetwork` are what
``BayesianPerceptron(..., drift="auto")`` and ``BayesianNetwork(..., drift="auto")`` make.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from onepass._cores import available_cores
from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator, as_row_weights, as_share
from onepass.beliefs.structures import Covariance
from onepass.engine.rows import RowMixture
from onepass.engine.step import RECORD_SIZE, SITE_SIZE
from onepass.engine.switching import Switching
from onepass.engine.threads import threads_for
from onepass.files.state import Arrays, Parameters, as_number, nested, sized, under
from onepass.likelihoods import Bernoulli, Counts
from onepass.likelihoods.counts import count_interval, log_normal
from onepass.likelihoods.mixtures import likely_weights, mixture_moments, mixture_quantile, noise_mixture
from onepass.models.ahead import RowsAhead, each_ahead_unchecked
from onepass.models.drift import AUTO, check_nothing_fades
from onepass.models.mixing import (
    WORTH_THREADS,
    log_mixture,
    mixed_prediction,
    mixed_scores,
    snapshot,
    stacked,
    sum_in_order,
)
from onepass.models.network import BayesianNetwork
from onepass.models.network.network import OutputMoments
from onepass.models.perceptron import BayesianPerceptron, Inputs, Posterior, Prediction, RowScores, row_scores

__all__ = ["HYPOTHESES", "Drifting", "DriftingNetwork", "DriftingPerceptron", "Hypotheses"]

HYPOTHESES: dict[float | str, dict[str, float]] = {
    **{rate: {"drift": rate} for rate in (0.0, 1e-5, 1e-3, 1e-2, 1e-1)},
    "prior": {"forgetting": 0.8},
}
"""What competes, by its name in `drift_`: rates of drift, and a quick return to the prior, its mean too."""
# Probability that each takes over before a row; that everything changes at once is far rarer than that it moves.
_ENTRIES = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.01])
_ENTRIES *= 0.002 / _ENTRIES.sum()
_FAST = np.array([name in (0.01, 0.1, "prior") for name in HYPOTHESES])  # under which little of the past counts


@dataclass
class Hypotheses:
    """All that learning changes: the models, their weights, and the evidence of their mixture."""

    members: list[Any]
    switching: Switching

    @classmethod
    def start(cls, members: list[Any]) -> "Hypotheses":
        """Weigh all models the same."""
        return cls(members, Switching(np.full(len(members), 1.0 / len(members)), _ENTRIES))

    @classmethod
    def of(cls, members: list[Any], weights: FloatArray, log_evidence: float) -> "Hypotheses":
        """Models that have learned already, with their weights and the evidence of their mixture."""
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError("the saved weights of the hypotheses must not be negative and must sum to 1")
        return cls(members, Switching(weights, _ENTRIES, log_evidence))

    @property
    def weights(self) -> FloatArray:
        """Weight of each model when the next row is predicted, ``(K,)``."""
        return self.switching.weights

    def weights_later(self, rows: int) -> FloatArray:
        """Weight of each model so many rows after the next, if nothing is learned until then, ``(K,)``."""
        stays = (1.0 - _ENTRIES.sum()) ** rows
        return np.asarray(stays * self.weights + (1.0 - stays) * _ENTRIES / _ENTRIES.sum())

    def copy(self) -> "Hypotheses":
        """Make an independent copy."""
        return Hypotheses([snapshot(member) for member in self.members], self.switching.copy())


class Drifting:
    """What models of several rates of drift share; a subclass names the model of one rate."""

    _plain: ClassVar[Any]
    _state: Any
    n_features: int

    def __init__(self, *args: Any, drift: str = AUTO, **options: Any) -> None:
        super().__init__(*args, **options)  # for the settings; what is learned is in the hypotheses
        self.drift = drift
        check_nothing_fades(options.get("forgetting", 1.0))
        self._state = Hypotheses.start([self._plain(*args, **{**options, **own}) for own in HYPOTHESES.values()])

    def __repr__(self) -> str:
        return super().__repr__().replace(", n_seen=", f", drift={AUTO!r}, n_seen=")

    @property
    def hypotheses(self) -> list[tuple[float, Any]]:
        """The models of one rate each, with the weights with which the next row is predicted."""
        return list(zip(self._state.weights.tolist(), self._state.members, strict=True))

    @property
    def drift_(self) -> dict[float | str, float]:
        """The probability of each rate of drift, and of a quick return to the ``"prior"``, now."""
        return dict(zip(HYPOTHESES, self._state.weights.tolist(), strict=True))

    @property
    def belief_size(self) -> int:
        """Numbers of all covariances, which say what learning a row costs."""
        return sum(member.belief_size for member in self._state.members)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted; 0 with ``outliers=0``."""
        return float(self._average(member.outliers_ for member in self._state.members))

    @property
    def n_set_aside(self) -> int:
        """Number of rows set aside by every hypothesis, since their target was absurdly far off."""
        return int(min(member.n_set_aside for member in self._state.members))

    @property
    def mean(self) -> FloatArray:
        """Mean of the weights, ``(p,)``."""
        return np.asarray(self._average(member.mean for member in self._state.members))

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows learned, each before it was learned."""
        return float(self._state.switching.log_evidence)

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return int(self._state.members[0].n_seen)

    def predict(self, X: Any, *, rows_ahead: RowsAhead = 1, **options: Any) -> Prediction:
        """Moments of the mixture; what the hypotheses disagree about counts as not knowing."""

        def predict(weights: FloatArray, rows: Any, _: Any, **own: Any) -> Prediction:
            return mixed_prediction(weights, self._predictions(rows, **own))

        return Prediction(*self._weighed(predict, rows_ahead, X, **options))

    def ahead(self, rows: int = 1) -> Self:
        """Return the model as it predicts so many rows ahead: see the model of one rate."""
        members = [member.ahead(rows) for member in self._state.members]
        return self.switched(rows - 1).with_members(members)

    def switched(self, rows: int) -> Self:
        """Return the model with the weights of its `hypotheses` so many rows later; they are those of the next row."""
        if rows <= 0:
            return self
        return self.of(self._state.members, self._state.weights_later(rows), self.log_evidence)

    def learn(self, X: Any, y: ArrayLike, *, passes: int = 1, refine: str = "reuse", **options: Any) -> Self:
        """Let every hypothesis learn the rows, and weigh them row by row: all rows or none.

        The arguments are those of a model of one rate, but rows are learned in one pass: the weights rest on
        predictions of rows that have not been learned yet.
        """
        self._check_passes(passes)
        given = options.get("sample_weight")
        self._together(y, lambda member: (None, self._learned(member, X, y, **options)), given)
        return self

    def predict_then_learn(
        self, X: Any, y: ArrayLike, *, return_outlier_probability: bool = False, **options: Any
    ) -> Any:
        """Predict every row just before learning it: see the model of one rate."""
        prediction, scores = self._predict_then_learn(X, y, **options)
        return (prediction, scores.outliers) if return_outlier_probability else prediction

    def interval(self, X: Any, level: float = 0.95, *, rows_ahead: RowsAhead = 1, **options: Any) -> tuple[Any, Any]:
        """Central interval that holds with probability ``level``: quantiles of the mixture.

        Of a new target, or for labels of their probability.
        """
        as_share(level, "level", open_above=True)

        def limits(weights: FloatArray, rows: Any, _: Any, **own: Any) -> tuple[Any, Any]:
            return self._interval_of(weights, self._interval_prediction(rows, **own), level)

        low, high = self._weighed(limits, rows_ahead, X, **options)
        return low, high

    def log_predictive(self, X: Any, y: ArrayLike, **options: Any) -> Any:
        """Log density (or probability) of each target under the mixture, before it is learned."""
        return self._scores(X, y, **options)[0]

    def outlier_probability(self, X: Any, y: ArrayLike, **options: Any) -> Any:
        """Probability that each target can't be trusted, before it is learned; 0 with ``outliers=0``."""
        return self._scores(X, y, **options)[1]

    def _scores(self, X: Any, y: ArrayLike, *, rows_ahead: RowsAhead = 1, **options: Any) -> Any:
        """Log density of each target, and the probability that it is not to be trusted."""

        def score(weights: FloatArray, rows: Any, targets: Any, **own: Any) -> tuple[Any, Any]:
            return mixed_scores(weights, [part._scores(rows, targets, **own) for part in self._state.members])

        return self._weighed(score, rows_ahead, X, y, **options)

    def sample_weights(self, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` weight vectors, ``(n, p)``: a hypothesis by its weight each time, then weights from its belief."""
        return self.switched(rows_ahead - 1)._drawn_by_weight(
            n, rng, lambda member, count, own: member.sample_weights(count, own, rows_ahead=rows_ahead)
        )

    def sample_output(self, X: Any, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` functions as `sample_weights` draws weights, and give their outputs: ``(n,)`` or ``(n, rows)``."""
        return self.switched(rows_ahead - 1)._drawn_by_weight(
            n, rng, lambda member, count, own: member.sample_output(X, count, own, rows_ahead=rows_ahead)
        )

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        exported = [member.export_state() for member in self._state.members]
        parameters = {
            "class": type(self).__name__,
            "log_evidence": self._state.switching.log_evidence,
            "hypotheses": list(HYPOTHESES),
            "members": [own for own, _ in exported],
        }
        arrays: Arrays = {"weights": self._state.weights}
        for k, (_, numbers) in enumerate(exported):
            arrays |= nested(str(k), numbers)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it goes on learning bit for bit as that one would."""
        names = list(HYPOTHESES)
        if list(parameters["hypotheses"]) != names or len(parameters["members"]) != len(names):
            raise ValueError(f"the hypotheses of drift must be {names}, got {str(parameters['hypotheses'])[:80]}")
        members = [cls._plain.from_state(own, under(str(k), arrays)) for k, own in enumerate(parameters["members"])]
        pairs = zip(members, HYPOTHESES.values(), strict=True)
        if any(getattr(member, name) != value for member, own in pairs for name, value in own.items()):
            raise ValueError("each hypothesis must have its own rate of drift")
        weights = np.array(sized(arrays, "weights", (len(names),)))
        return cls.of(members, weights, as_number(parameters["log_evidence"], "log_evidence"))

    @classmethod
    def of(cls, members: list[Any], weights: FloatArray, log_evidence: float) -> Self:
        """Make a model of hypotheses that have learned already."""
        model = object.__new__(cls)
        model.__dict__.update(members[0].__dict__)  # the settings that all of them have
        model.__dict__.pop("_one_row", None)
        model.drift, model._state = AUTO, Hypotheses.of(members, weights, log_evidence)
        return model

    def with_members(self, members: list[Any]) -> Self:
        """Make a model of other hypotheses, with the weights and the evidence of this one."""
        return self.of(members, self._state.weights, self.log_evidence)

    def close_block(self) -> None:
        """Close the blocks of all hypotheses: see `BayesianNetwork`."""
        for member in self._state.members:
            member.close_block()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)  # each member sees to its own arrays

    # What depends on the kind of model.

    _learned: Any
    """``(member, X, y)``: let a member learn; the scores by which it is weighed."""
    _predict_then_learn: Any
    """``(X, y)``: predict every row just before learning it, and say how well."""

    def _interval_of(self, weights: FloatArray, parts: Prediction, level: float) -> tuple[Any, Any]:
        raise NotImplementedError

    # What does not.

    def _check_passes(self, passes: int) -> None:
        if as_count(passes, "passes") > 1:
            raise ValueError(
                f"drift='auto' compares rates of drift by what one pass predicted and needs passes=1, got "
                f"passes={passes}; for more passes pass drift as a number, and refine='reuse'"
            )

    def _together(
        self,
        y: ArrayLike,
        learned: Callable[[Any], tuple[Any, RowScores]],
        sample_weight: ArrayLike | None,
    ) -> tuple[FloatArray, list[Any], RowScores]:
        """Let all members learn, or none; they are weighed by the density of each row, as often as the row counts.

        That is the density before the row was learned, for all of its copies: weights that move fast follow the first
        copy, and would be rewarded for predicting the others. Returned are the weights before each row, ``(K, n)``,
        what each member gave beside its scores, and the scores of the mixture.
        """
        before = self._state.copy()
        try:
            given, scores = zip(*self._side_by_side(len(np.atleast_1d(y)), learned), strict=True)
            densities = np.array([own.log_densities for own in scores])
            powers = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            weights, gains = self._state.switching.learn(powers * densities)
            mixture = gains if sample_weight is None else log_mixture(weights.T, densities)
        except BaseException:  # Ctrl-C too leaves no hypothesis ahead of the others
            self._state = before
            raise
        finally:
            self.__dict__.pop("_one_row", None)  # it refers to the beliefs from before
        after = self._state.switching.posterior.T
        outliers = sum_in_order(after * np.array([own.outliers for own in scores]))
        # A change is a fast rate, or an alarm of any hypothesis: slow ones raise it when they have lost their weight.
        jumps = np.max([own.changes for own in scores], axis=0)
        changes = np.maximum(jumps, after[_FAST].sum(axis=0))
        return weights.T, list(given), RowScores(mixture, outliers, changes, gains=gains)

    def _side_by_side(
        self, n_rows: int, learned: Callable[[Any], tuple[Any, RowScores]]
    ) -> list[tuple[Any, RowScores]]:
        """What members give as they learn; they are independent, so that threads change nothing."""
        members = self._state.members
        if n_rows * self.belief_size < WORTH_THREADS or members[0].kernel == "reference":
            return [learned(member) for member in members]
        with threads_for(0), ThreadPoolExecutor(available_cores()) as pool:
            return list(pool.map(learned, members))

    def _predicting(
        self,
        y: ArrayLike,
        learned: Callable[[Any], tuple[Prediction, RowScores]],
        sample_weight: ArrayLike | None,
    ) -> tuple[Prediction, RowScores]:
        """The same where members predict: what the mixture predicted, and its scores."""
        weights, predictions, scores = self._together(y, learned, sample_weight)
        return _mixture_before(weights, predictions), scores

    def _weighed(
        self, ask: Callable[..., Sequence[Any]], rows_ahead: RowsAhead, X: Any, y: Any = None, **options: Any
    ) -> Sequence[Any]:
        """Ask about rows, with the weights that the hypotheses have when these rows come."""

        def asked(ahead: int, rows: Any, targets: Any, row_vars: Any) -> Sequence[Any]:
            own = options if row_vars is None else {**options, "X_var": row_vars}
            return ask(self.switched(ahead - 1)._state.weights, rows, targets, rows_ahead=ahead, **own)

        return each_ahead_unchecked(rows_ahead, X, y, options.get("X_var"), asked)

    def _interval_prediction(self, X: Any, **options: Any) -> Prediction:
        """What each hypothesis takes quantiles from, along a first axis: ``(K, ...)``."""
        return stacked([member._interval_prediction(X, **options) for member in self._state.members])

    def _predictions(self, X: Any, **options: Any) -> Prediction:
        """What each hypothesis predicts, along a first axis: ``(K, ...)``."""
        return stacked([member.predict(X, **options) for member in self._state.members])

    def _average(self, values: Any) -> Any:
        """Mean over the hypotheses."""
        return sum(weight * value for weight, value in zip(self._state.weights, values, strict=True))

    def _drawn_by_weight(self, n: int, rng: Any, draw: Callable[[Any, int, Any], FloatArray]) -> FloatArray:
        generator = as_generator(rng)
        weights = self._state.weights
        counts = generator.multinomial(as_count(n, "n"), weights / weights.sum())
        pairs = zip(self._state.members, counts, strict=True)
        draws = [draw(member, int(count), generator) for member, count in pairs if count]
        return np.asarray(generator.permutation(np.concatenate(draws)))


class DriftingPerceptron(Drifting, BayesianPerceptron):
    """A perceptron whose rate of drift is learned: what ``drift="auto"`` makes of `BayesianPerceptron`."""

    _plain = BayesianPerceptron

    @property
    def cov(self) -> FloatArray:
        """Covariance of the weights under the likely hypotheses; with ``covariance="diagonal"`` its diagonal."""
        weights, members = likely_weights(self._state.weights), self._state.members
        mean = sum(weight * member.mean for weight, member in zip(weights, members, strict=True))
        spread = np.square if members[0].cov.ndim == 1 else _outer
        pairs = zip(weights, members, strict=True)
        return np.asarray(sum(weight * (one.cov + spread(one.mean - mean)) for weight, one in pairs if weight))

    def posterior(self) -> Posterior:
        """Return mean and covariance of the mixture of all hypotheses."""
        return Posterior(self.mean, self.cov)

    @property
    def covariance(self) -> str:
        """``"full"`` or ``"diagonal"``."""
        return str(self._state.members[0].covariance)

    @property
    def noise(self) -> float:
        """Variance of the Gaussian noise, or dispersion of counts, as it is now; a fixed variance may be set anew."""
        return float(self._average(member.noise for member in self._state.members))

    @noise.setter
    def noise(self, value: float) -> None:
        for member in self._state.members:
            member.noise = value

    @property
    def log_noise_var(self) -> float:
        """Variance of the belief about the log of a learned noise; else 0."""
        members = self._state.members
        if not any(member.log_noise_var for member in members):
            return 0.0
        logs = np.log([member.noise for member in members])
        own = np.array([member.log_noise_var for member in members])
        return float(mixture_moments(self._state.weights, logs, own)[1])

    def learn(self, X: Inputs, y: ArrayLike, **options: Any) -> Self:
        """Let every hypothesis learn the rows as `BayesianPerceptron.learn` does, but in one pass: all rows or none."""
        if not options and type(X) is np.ndarray and X.ndim == 1 and self._one_row is not None and self._one_row(X, y):
            for member in self._state.members:
                member._reweigh_if_due(member._state)
            return self
        return super().learn(X, y, **options)

    @cached_property
    def _one_row(self) -> RowMixture | None:  # type: ignore[override]
        """The fast path for one row; None where there is none."""
        learners = [member._one_row for member in self._state.members]
        return None if None in learners else RowMixture(learners, self._state.switching)

    def _learned(
        self,
        member: Any,
        X: Inputs,
        y: ArrayLike,
        X_var: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> RowScores:
        rows, row_vars, targets, _ = member._pairs(X, y, X_var)
        record, weights = np.empty((len(targets), RECORD_SIZE)), as_row_weights(sample_weight, len(targets))
        member._learn(rows, row_vars, targets, record, np.empty((0, SITE_SIZE)), weights)
        return row_scores(record)

    def _predict_then_learn(
        self, X: Inputs, y: ArrayLike, X_var: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        return self._predicting(y, lambda member: member._predict_then_learn(X, y, X_var, sample_weight), sample_weight)

    def _parts_then_learn(self, X: Any, y: Any, **options: Any) -> tuple[FloatArray, list[Any], RowScores]:
        given = options.get("sample_weight")
        return self._together(y, lambda member: member._predict_then_learn(X, y, **options), given)

    def _interval_of(self, weights: FloatArray, parts: Prediction, level: float) -> tuple[Any, Any]:
        flat = Prediction(*(part.reshape(len(weights), -1) for part in parts))
        low, high = (side.reshape(parts.mean.shape[1:])[()] for side in self._limits(weights, flat, level))
        return low, high

    def _limits(self, weights: FloatArray, parts: Prediction, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the interval, ``(n,)`` each, from predictions ``(K, n)``."""
        if isinstance(self._likelihood, Counts):
            log_rates = parts
            if self._likelihood.exact(self.activation) is None:
                pre_mean, pre_var = log_normal(parts.mean, parts.var)
                log_rates = parts._replace(pre_mean=pre_mean, pre_var=pre_var)
            return count_interval(weights, log_rates, level)
        if isinstance(self._likelihood, Bernoulli):
            low, high = _central(weights, parts.pre_mean, np.sqrt(parts.pre_var), level)
            return self.activation(low), self.activation(high)
        uncertain = np.array([member.log_noise_var for member in self._state.members])
        return _central(*noise_mixture(weights, parts.mean, parts.var, parts.noise_var, uncertain), level)


class DriftingNetwork(Drifting, BayesianNetwork):
    """A network whose rate of drift is learned: what ``drift="auto"`` makes of `BayesianNetwork`."""

    _plain = BayesianNetwork

    @property
    def cov(self) -> Any:
        """Covariance of the weights under the most probable rate: its blocks, or the variances ``(p,)``."""
        return self._state.members[int(np.argmax(self._state.weights))].cov

    @property
    def weights(self) -> list[FloatArray]:
        """Mean weights of each layer, ``(n_out, n_in + 1)``, the bias last."""
        return [layer.copy() for layer in self._structure.layout.layers(self.mean)]

    @property
    def weight_variances(self) -> list[FloatArray]:
        """Variances of the weights of each layer, in the shape of `weights`."""
        layers = zip(*(member.weights for member in self._state.members), strict=True)
        variances = zip(*(member.weight_variances for member in self._state.members), strict=True)
        weights = likely_weights(self._state.weights)
        pairs = zip(layers, variances, strict=True)
        return [mixture_moments(weights, np.array(mean), np.array(var))[1] for mean, var in pairs]

    @property
    def noise_var(self) -> FloatArray:
        """Variance of the noise of each output as it is now, ``(K,)``; of negative binomial counts their dispersion."""
        return np.asarray(self._average(member.noise_var for member in self._state.members))

    def learning(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        passes: int = 1,
        refine: str = "reuse",
        batch: int = 1,
        sample_weight: ArrayLike | None = None,
    ) -> Iterator[RowScores]:
        """Learn as `learn` does, and yield how well each row was predicted before it was learned."""
        self._check_passes(passes)
        options: dict[str, Any] = {"batch": batch, "sample_weight": sample_weight}
        yield self._together(y, lambda member: (None, self._learned(member, X, y, **options)), sample_weight)[2]

    def output_moments(self, X: ArrayLike, *, rows_ahead: RowsAhead = 1) -> OutputMoments:
        """Moments of the mixture of what all hypotheses believe of the outputs: see `BayesianNetwork`."""

        def moments(weights: FloatArray, rows: Any, _: Any, **own: Any) -> OutputMoments:
            parts = [member.output_moments(rows, **own) for member in self._state.members]
            mean = sum(weight * part.mean for weight, part in zip(weights, parts, strict=True))
            gaps = [part.mean - mean for part in parts]
            covs = [part.cov + gap[..., None] * gap[..., None, :] for part, gap in zip(parts, gaps, strict=True)]
            return OutputMoments(mean, sum(own * cov for own, cov in zip(likely_weights(weights), covs, strict=True)))

        return OutputMoments(*self._weighed(moments, rows_ahead, X))

    def input_jacobian(self, X: ArrayLike, *, rows_ahead: int = 1) -> FloatArray:
        """Expected derivative of every output in every input, over all hypotheses: see `BayesianNetwork`."""
        parts = (member.input_jacobian(X, rows_ahead=rows_ahead) for member in self._state.members)
        return np.asarray(self.switched(rows_ahead - 1)._average(parts))

    def _learned(self, member: Any, X: ArrayLike, y: ArrayLike, **options: Any) -> RowScores:
        return member._scores_of(member._learn_recorded(X, y, **options))  # type: ignore[no-any-return]

    def with_outputs(self, n_outputs: int, covariance: Covariance | None = None) -> Self:
        """Make a network with more outputs that knows what this one has learned: see `BayesianNetwork`."""
        return self.with_members([member.with_outputs(n_outputs, covariance) for member in self._state.members])

    def with_inputs(self, n_features: int, covariance: Covariance | None = None) -> Self:
        """Make a network with more inputs that knows what this one has learned: see `BayesianNetwork`."""
        return self.with_members([member.with_inputs(n_features, covariance) for member in self._state.members])

    def _predict_then_learn(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Prediction, RowScores]:
        return self._predicting(y, lambda member: member._predict_then_learn(X, y, sample_weight), sample_weight)

    def _parts_then_learn(self, X: Any, y: Any, **options: Any) -> tuple[FloatArray, list[Any], RowScores]:
        single = self._rows(X)[1]

        def learned(member: Any) -> tuple[Prediction, RowScores]:
            work = member._learn_recorded(X, y, **options)
            return member._predicted(work, alone=False, single=single), member._scores_of(work)

        return self._together(y, learned, options.get("sample_weight"))

    def _interval_of(self, weights: FloatArray, parts: Prediction, level: float) -> tuple[Any, Any]:
        if self._likelihood.is_count:
            return count_interval(weights, parts, level)
        if self._likelihood.is_numeric:
            return _central(weights, parts.mean, np.sqrt(parts.var + parts.noise_var), level)
        low, high = _central(weights, parts.pre_mean, np.sqrt(parts.pre_var), level)
        return expit(low), expit(high)


def _central(weights: FloatArray, means: FloatArray, stds: FloatArray, level: float) -> tuple[Any, Any]:
    """Limits of the central interval of mixtures of Gaussians."""
    low, high = (mixture_quantile(weights, means, stds, 0.5 + side * level / 2)[()] for side in (-1, 1))
    return low, high


def _outer(gap: FloatArray) -> FloatArray:
    return np.outer(gap, gap)


def _mixture_before(weights: FloatArray, predictions: list[Prediction]) -> Prediction:
    """The mixture of predictions with the weights before each row, ``(K, n)``; of one row, if that is what they are."""
    parts = stacked(predictions)
    return mixed_prediction(weights if parts.mean.ndim > 1 else weights[:, 0], parts)
