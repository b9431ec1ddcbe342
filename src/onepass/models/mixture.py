"""Mixtures: several models that learn the same rows and predict together, weighted by how well each predicts.

The rate of drift, the scale of the prior and a network's random initial weights are choices that one model can't make.
Several models make them differently, and the density that each predicted for a row before learning it measures how good
its choice is: the weights follow from predictions alone, without validation data. `Mixture` is one class for all of
these; `onepass.models.weighting` has the rules for the weights. `Mixture.over_drift` makes models of several rates of
drift, `onepass.models.committee` networks with different seeds and priors. Members may be mixtures themselves: their
`components` are the models at the bottom.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from onepass._cores import available_cores
from onepass._typing import FloatArray
from onepass._validation import as_count, as_fraction, as_generator, as_row_weights, one_of
from onepass.beliefs.choice import Covariance
from onepass.engine.one_row import RowMixture
from onepass.engine.threads import threads_for
from onepass.files.registry import savable
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.likelihoods.mixtures import mixture_mean, mixture_prediction
from onepass.models.ahead import RowsAhead, each_ahead_unchecked
from onepass.models.distribution import Family, Mixed, Prediction, no_label_interval
from onepass.models.network.network import OutputMoments
from onepass.models.online import AUTO, REFINEMENTS, Component, OnlineModel, check_unchanged
from onepass.models.prediction import LearnedRows, Parts, Posterior, PredictedMoments, RowScores
from onepass.models.weighting import (
    HYPOTHESES,
    MixtureScores,
    RowWeights,
    SwitchingWeights,
    Weighting,
    mixed_scores,
    restore_weighting,
)

__all__ = [
    "Mixture",
    "as_drift",
    "check_nothing_fades",
    "joined",
    "mixed_prediction",
    "stacked",
    "with_drift",
]

_WORTH_THREADS = 10_000_000
"""Numbers of all members' covariances times rows from which on learning (some milliseconds) is worth threads."""
_FARTHEST = 1e3  # standard deviations of the others' mixture that the mean of a component may be away from it
_Arguments = ParamSpec("_Arguments")
_Model = TypeVar("_Model")


def _of_members(name: str, words: str) -> Any:
    """A setting that all members share."""
    return property(lambda mixture: getattr(mixture.members[0], name), doc=words)


class Mixture(OnlineModel):
    """Models of one kind that learn the same rows and predict as a weighted mixture.

    It is asked as each of its members is.

    Parameters
    ----------
    members : perceptrons, networks or mixtures of these
    weighting : Weighting
    workers : int, optional
        Number of threads in which members learn in parallel; by default one per core if there are enough rows to be
        worth it. The result is the same, bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianPerceptron, Mixture
    >>> X = np.random.default_rng(0).normal(size=(400, 1))
    >>> y = np.where(np.arange(400) < 200, 1.0, -1.0) * X[:, 0]
    >>> model = Mixture.over_drift(BayesianPerceptron, 1, "linear", noise="learn").learn(X, y)
    >>> bool(abs(model.predict([2.0]).mean + 2.0) < 0.1)
    True
    """

    n_features = _of_members("n_features", "Length of an input row.")
    n_outputs = _of_members("n_outputs", "Number of outputs.")
    activation = _of_members("activation", "Activation of the members.")
    bias = _of_members("bias", "Whether perceptrons have a bias.")
    covariance = _of_members("covariance", "Between which weights correlations are kept.")
    kernel = _of_members("kernel", "How rows are learned.")
    n_seen = _of_members("n_seen", "Number of rows learned.")
    observation = _of_members("observation", "What a target is.")
    _likelihood = _of_members("_likelihood", "The same, without the current noise.")
    outliers = _of_members("outliers", "Share of the targets that can't be trusted, as it was at first.")

    def __init__(self, members: Iterable[Any], weighting: Weighting, workers: int | None = None) -> None:
        self.members: list[Any] = list(members)
        self._weighting = weighting
        self.workers: int | None = None if workers is None else as_count(workers, "workers")
        self._has_warned = False

    @classmethod
    def over_drift(
        cls, model: Callable[_Arguments, Any], *args: _Arguments.args, **options: _Arguments.kwargs
    ) -> "Mixture":
        """Make models of several rates of drift: ``model(*args, **options)`` with each of them.

        There are six hypotheses: the rates 0, 1e-5, 1e-3, 1e-2 and 0.1, and ``forgetting=0.8``, a quick return to the
        prior. They are weighted row by row by how well each predicts, and another may take over at any time.

        Parameters
        ----------
        model : BayesianPerceptron or BayesianNetwork
        *args, **options : its arguments, without ``drift`` and ``forgetting``

        Examples
        --------
        >>> from onepass import BayesianNetwork, Mixture
        >>> Mixture.over_drift(BayesianNetwork, 3, (10,), observation="bernoulli").drift_[0.01]
        0.16666666666666666
        """
        name_of_model = getattr(model, "__name__", repr(model))
        wrong = TypeError(
            "Mixture.over_drift needs the class BayesianPerceptron or BayesianNetwork, then its arguments, got "
            f"{name_of_model}; BayesianCommittee takes drift={AUTO!r} itself"
        )
        if not callable(model) or (isinstance(model, type) and not issubclass(model, Component)):
            raise wrong
        given: dict[str, Any] = dict(options)
        for name, still in (("drift", None), ("forgetting", 1.0)):
            value = given.pop(name, still)
            if value != still:
                raise ValueError(
                    f"Mixture.over_drift finds out by itself how fast old rows lose weight, got {name}={value!r}; "
                    f"leave it out, or make a single {name_of_model} with {name} as a number"
                )
        make: Callable[..., Any] = model
        members = [make(*args, **given, **own) for own in HYPOTHESES.values()]
        if not all(isinstance(member, Component) for member in members):
            raise wrong
        return Mixture(members, SwitchingWeights.start())

    def __repr__(self) -> str:
        return f"Mixture({self.members[0]!r}, members={len(self.members)}, weighting={self.weighting!r})"

    def __getstate__(self) -> dict[str, Any]:
        # The fast path for one row refers to these very members, which those of a copy are not.
        return {name: value for name, value in self.__dict__.items() if name != "_one_row"}

    # What it is made of.

    @property
    def weighting(self) -> str:
        """Name of the rule by which members are weighted."""
        return self._weighting.rule

    @property
    def weights(self) -> FloatArray:
        """Current weight of each member, ``(members,)``."""
        return self._weighting.weights.copy()

    @property
    def components(self) -> list[tuple[float, Any]]:
        """The models that the mixture is made of, with their weights: members, or the components of these."""
        pairs = zip(self._weighting.weights.tolist(), self.members, strict=True)
        return [(weight * own, part) for weight, member in pairs for own, part in member.components]

    @property
    def component_weights(self) -> FloatArray:
        """Weight of each of the `components`, ``(components,)``."""
        return np.array([weight for weight, _ in self.components])

    @property
    def noise_scale(self) -> FloatArray | None:
        """What the members' noise is multiplied by, ``(K,)``; None where they predict as they would alone."""
        return None if len(self.members) == 1 else self._weighting.noise_scale

    def with_members(self, members: list[Any]) -> "Mixture":
        """Make a mixture of other models, weighted as these are."""
        return Mixture(members, self._weighting.copy(), self.workers)

    @property
    def keeps_sites(self) -> bool:
        """Whether members can remove what a row contributed, as ``refine="ep"`` does."""
        return all(member.keeps_sites for member in self.members)

    def snapshot(self) -> "Mixture":
        """Copy what learning changes; a copy shares everything else with its original."""
        return self.with_members([member.snapshot() for member in self.members])

    def later(self, rows: int) -> "Mixture":
        """Return the mixture with the weights that its `components` have so many rows after the next."""
        if rows <= 0:
            return self
        return Mixture([member.later(rows) for member in self.members], self._weighting.later(rows), self.workers)

    def ahead(self, rows: int = 1) -> "Mixture":
        """Return the mixture as it predicts so many rows ahead: see `BayesianPerceptron.ahead`."""
        members = [member.ahead(rows) for member in self.members]
        return Mixture(members, self._weighting.later(rows - 1).copy(), self.workers)

    # What was learned.

    @property
    def log_evidence(self) -> float:
        """Log evidence of all rows, each given all rows before it."""
        return self._weighting.log_evidence([member.log_evidence for member in self.members])

    @property
    def n_set_aside(self) -> int:
        """Number of rows set aside by every member, since their target was absurdly far off."""
        return min(int(member.n_set_aside) for member in self.members)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted; 0 with ``outliers=0``."""
        return float(self._average("outliers_"))

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift, and with several also of a quick return to the ``"prior"``."""
        return self._weighting.drift([member.drift_ for member in self.members])

    @property
    def belief_size(self) -> int:
        """How many numbers all covariances have; the cost of learning a row grows with it."""
        return sum(member.belief_size for member in self.members)

    @property
    def mean(self) -> FloatArray:
        """Mean of the weights, ``(p,)``."""
        return np.asarray(self._average("mean"))

    @property
    def cov(self) -> Any:
        """Covariance of the weights: of the likely perceptrons together, or of the most probable network."""
        parts = [part for _, part in self.components]
        return parts[0]._mixture_cov(self.component_weights, parts)

    def posterior(self) -> Posterior:
        """Return mean and covariance of the mixture of all perceptrons."""
        return Posterior(self.mean, self.cov)

    @property
    def noise(self) -> float:
        """Current variance of perceptrons' Gaussian noise, or dispersion of counts."""
        return float(self._average("noise"))

    @property
    def noise_var(self) -> FloatArray:
        """Current variance of the noise of each output of networks, ``(K,)``; of counts their dispersion."""
        scale = self.noise_scale
        return np.asarray(self._average("noise_var") * (1.0 if scale is None else scale))

    def _average(self, name: str) -> Any:
        pairs = zip(self._weighting.weights, self.members, strict=True)
        return sum(weight * getattr(member, name) for weight, member in pairs)

    # Learning.

    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        passes: int = 1,
        refine: str = "auto",
        **options: Any,
    ) -> Self:
        """Let every member learn the rows, and weigh them row by row: all rows or none.

        The arguments are those of the members' ``learn``. Mixtures over drift or over priors learn in one pass: their
        weights rest on predictions of rows that have not been learned yet.
        """
        if sample_weight is None and passes == 1 and not options and type(X) is np.ndarray and X.ndim == 1:
            one_row = self._one_row
            if one_row is not None and one_row(X, y):
                return self
        options |= {"sample_weight": sample_weight, "passes": passes, "refine": refine}
        if len(self.members) == 1:
            self.members[0].learn(X, y, **options)
        else:
            for _ in self.learning(X, y, **options):
                pass
        return self

    @cached_property
    def _one_row(self) -> RowMixture | None:
        """The fast path for one row; None where there is none."""
        return self._weighting.row_learner(self.members)

    def learning(self, X: Any, y: ArrayLike, *, records: bool = False, **options: Any) -> Iterator[LearnedRows]:
        """Learn as `learn` does, and yield after each pass what rows were predicted from: see `BayesianNetwork`."""
        rule, how = self._weighting, {**options, "records": records or self._weighting.scores_alone}
        if rule.only_one_pass:
            one_of(how.pop("refine", "auto"), REFINEMENTS, "refine")
            if (passes := as_count(how.pop("passes", 1), "passes")) > 1:
                raise ValueError(f"{rule.only_one_pass} and needs passes=1, got passes={passes}")
        n_rows = len(np.atleast_1d(y))
        with self._all_or_none():
            evidences = np.array([member.log_evidence for member in self.members]) if rule.needs_evidence else None
            runs = [member.learning(X, y, **how) for member in self.members]
            for number, rows in enumerate(self._side_by_side(runs, n_rows, options.get("batch", 1))):
                if number:  # rows predicted by what was learned from them before say nothing about this pass
                    self._weighting = self._weighting.restarted()
                scores = [own.scores(rule.scores_alone) for own in rows]
                counts = as_row_weights(options.get("sample_weight"), len(scores[0].log_densities))
                row_weights, self._weighting = self._weighting.over_rows(scores, counts, evidences)
                yield _LearnedRows(self, rows, scores, row_weights)

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """Go back to the members and weights from before if something can't be learned."""
        before, weighting = [member.snapshot() for member in self.members], self._weighting
        try:
            yield
        except BaseException:  # Ctrl-C too leaves no member ahead of the others
            self.members, self._weighting = before, weighting
            raise
        finally:
            self.__dict__.pop("_one_row", None)  # it refers to the beliefs from before

    def _side_by_side(
        self, runs: list[Iterator[LearnedRows]], n_rows: int, batch: int
    ) -> Iterator[tuple[LearnedRows, ...]]:
        """All members' passes, one pass at a time; members are independent, so that threads change nothing."""
        threads = min(self._cores(n_rows, batch), len(runs))
        if threads == 1:
            yield from zip(*runs, strict=True)
            return
        with ThreadPoolExecutor(threads) as pool:
            while True:
                with threads_for(0):
                    seen = list(pool.map(next, runs, repeat(None)))
                if any(rows is None for rows in seen):
                    return
                yield tuple(rows for rows in seen if rows is not None)

    def _cores(self, n_rows: int, batch: int) -> int:
        """Number of threads worth starting for this many rows."""
        if self.kernel == "reference" or batch > 1:  # NumPy holds the lock, and BLAS has threads of its own
            return 1
        if self.workers is not None:
            return self.workers
        return available_cores() if n_rows * self.belief_size >= _WORTH_THREADS else 1

    def predict_score_learn(self, X: Any, y: ArrayLike, **options: Any) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well the mixture did."""
        if len(self.members) == 1:
            found: tuple[Prediction, RowScores] = self.members[0].predict_score_learn(X, y, **options)
            return found
        (rows,) = self.learning(X, y, records=True, **options)
        parts = rows.parts(alone=True)
        moments = stacked(parts.predictions)
        mixed = Mixed(parts.weights, self._plausible(parts.weights, moments), parts.log_noise_vars)
        whole = self._mixed(parts.weights, moments)
        refused = no_label_interval if self._likelihood.is_label and self.components[0][1]._curves_labels else None
        return Prediction(self._family, whole, mixed=mixed, interval_mixed=refused), rows.scores(alone=True)

    def close_block(self) -> None:
        """Close the blocks of all members: see `BayesianNetwork.close_block`."""
        for member in self.members:
            member.close_block()

    # Predicting.

    def predict(self, X: Any, *, rows_ahead: RowsAhead = 1, **options: Any) -> Prediction:
        """Predict the mixture of what the members predict; their disagreement counts as uncertainty about the weights.

        The arguments are those of the members' ``predict``.
        """
        n_seen, X = self.n_seen, X.copy() if type(X) is np.ndarray else X  # callers may use its memory again

        def density(y: Any) -> Any:
            return self._density(n_seen, X, y, rows_ahead=rows_ahead, **options)

        label_parts = self._label_parts(X, rows_ahead, options) if self._likelihood.is_label else None
        if not options and type(X) is np.ndarray and X.ndim == 1 and type(rows_ahead) is int and rows_ahead == 1:
            one_row = self._one_row
            seen = None if one_row is None else one_row.predict(X)
            if seen is not None:
                pairs = zip(self.members, seen, strict=True)
                parts = np.array([member._prediction_of_one(own) for member, own in pairs]).swapaxes(0, 1)
                moments = PredictedMoments(*mixture_prediction(self._weighting.weights, parts))
                mixed = Mixed(self._weighting.weights, PredictedMoments(*parts), self._log_noise_vars)
                return Prediction(self._family, moments, 0.0, density, mixed=mixed, interval_mixed=label_parts)
        mixed = self._parts("_predict_component", X, rows_ahead, options)
        moments = self._mixed_moments(mixed.weights, mixed.moments)
        return Prediction(self._family, moments, 0.0, density, mixed=mixed, interval_mixed=label_parts)

    def _parts(self, method: str, X: Any, rows_ahead: RowsAhead, options: dict[str, Any]) -> Mixed:
        """What the components predict of rows, with the weights that they have when these rows come."""

        def ask(later: Mixture, rows: Any, _: Any, **own: Any) -> Sequence[Any]:
            weights, parts = later._of_components(method, rows, own)
            shape = (len(weights), *np.shape(parts.mean)[1:2])
            wide = np.broadcast_to(weights.reshape(-1, *[1] * (len(shape) - 1)), shape)
            return [np.moveaxis(part, 0, -1) for part in (wide, *later._plausible(weights, parts))]

        weights, *moments = (np.moveaxis(part, -1, 0) for part in self._asked(ask, rows_ahead, X, **options))
        return Mixed(weights, PredictedMoments(*moments), self._log_noise_vars)

    def _label_parts(self, X: Any, rows_ahead: RowsAhead, options: dict[str, Any]) -> Callable[[], Mixed]:
        """What intervals of labels are taken from, when they are asked for."""
        seen = self.n_seen

        def parts() -> Mixed:
            check_unchanged(self, seen)
            return self._parts("_interval_prediction", X, rows_ahead, options)

        return parts

    @property
    def _log_noise_vars(self) -> FloatArray:
        """How uncertain the log of each component's noise is, ``(components,)``."""
        return np.array([part.log_noise_var for _, part in self.components])

    @property
    def _family(self) -> Family:
        family: Family = self.members[0]._family
        return family

    def member_predictions(self, X: Any, **options: Any) -> PredictedMoments:
        """What each of the `components` contributes to the mixture, along a first axis: ``(components, ...)``."""
        return self._plausible(*self._of_components("_predict_component", X, options))

    def _of_components(self, method: str, X: Any, options: dict[str, Any]) -> tuple[FloatArray, PredictedMoments]:
        """Weights ``(components,)`` of the components, and what a method of each predicts, ``(components, ...)``."""
        pairs, own = self.components, self._in_mixture(options)
        parts = stacked([getattr(part, method)(X, **own) for _, part in pairs])
        return np.array([weight for weight, _ in pairs]), parts

    def _scores(self, X: Any, y: ArrayLike, *, rows_ahead: RowsAhead = 1, **options: Any) -> tuple[Any, Any]:
        """Log density of each target, and the probability that it can't be trusted."""

        def score(later: Mixture, rows: Any, targets: Any, **own: Any) -> tuple[Any, Any]:
            own = self._in_mixture(own)
            seen = [member._scores(rows, targets, **own) for member in self.members]
            mixed = mixed_scores(later._weighting.weights, *np.moveaxis(np.array(seen), 1, 0))
            return mixed.log_densities[()], mixed.outliers[()]

        log_densities, outliers = self._asked(score, rows_ahead, X, y, **options)
        return log_densities, outliers

    def sample_weights(self, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` weight vectors, ``(n, p)``: a member by its weight each time, then weights from its belief."""
        return self._drawn(
            n, rng, rows_ahead, lambda member, *drawn: member.sample_weights(*drawn, rows_ahead=rows_ahead)
        )

    def sample_output(self, X: Any, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` functions as `sample_weights` draws weights, and return their outputs, ``(n, ...)``."""
        return self._sample_component(X, n, rng, rows_ahead=rows_ahead)

    def _sample_component(self, X: Any, n: int, rng: Any, *, rows_ahead: int = 1, **options: Any) -> FloatArray:
        own = self._in_mixture(options)
        return self._drawn(
            n, rng, rows_ahead, lambda member, *drawn: member._sample_component(X, *drawn, rows_ahead=rows_ahead, **own)
        )

    def sample_part(self, part: Any, X: Any, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw functions from one of the `components`, with the variance that it has in the mixture."""
        return np.asarray(part._sample_component(X, n, rng, **self._in_mixture({})))

    def _drawn(self, n: int, rng: Any, rows_ahead: int, draw: Callable[[Any, int, Any], FloatArray]) -> FloatArray:
        generator, weights = as_generator(rng), self._weighting.later(rows_ahead - 1).weights
        counts = generator.multinomial(as_count(n, "n"), weights / weights.sum()).tolist()
        pairs = zip(self.members, counts, strict=True)
        draws = [draw(member, count, generator) for member, count in pairs if count]
        return np.asarray(generator.permutation(np.concatenate(draws)))

    def _in_mixture(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options of components, with the noise that they have in the mixture."""
        scale = self.noise_scale
        return options if scale is None else {**options, "noise_scale": scale}

    def _asked(
        self, ask: Callable[..., Sequence[Any]], rows_ahead: RowsAhead, X: Any, y: Any = None, **options: Any
    ) -> Sequence[Any]:
        """Ask about rows, with the weights that the components have when these rows come."""

        def asked(ahead: int, rows: Any, targets: Any, row_vars: Any) -> Sequence[Any]:
            own = options if row_vars is None else {**options, "X_var": row_vars}
            return ask(self.later(ahead - 1), rows, targets, rows_ahead=ahead, **own)

        return each_ahead_unchecked(rows_ahead, X, y, options.get("X_var"), asked)

    def _mixed(self, weights: FloatArray, parts: PredictedMoments) -> PredictedMoments:
        """Moments of the mixture of predictions ``(h, ...)``, with weights ``(h,)`` or ``(h, n)``."""
        return self._mixed_moments(weights, self._plausible(weights, parts))

    def _mixed_moments(self, weights: FloatArray, parts: PredictedMoments) -> PredictedMoments:
        found = mixed_prediction(weights, parts)
        if not self._likelihood.is_label:
            return found
        return found._replace(noise_var=self._weighting.label_noise(found.mean, found.var, found.noise_var))

    def _plausible(self, weights: FloatArray, parts: PredictedMoments) -> PredictedMoments:
        """In rows in which a component can't be right, put the mixture of the others in its place, and warn once.

        So moments and intervals are those of the others. (The log density keeps the component, which counts there by
        its weight and no more.) A component can't be right if it has less weight than the others together
        and its mean is more than a thousand of their standard deviations away, and of the targets' scale, which is
        about 1: without noise the others may be certain to many digits.
        """
        means = parts.mean
        if not self._weighting.expects_unit_scale or np.ptp(means) <= _FARTHEST or not self._likelihood.is_numeric:
            return parts
        if means.ndim < weights.ndim:  # of one row
            weights = weights[:, 0]
        wide = np.broadcast_to(weights.reshape(*weights.shape, *[1] * (means.ndim - weights.ndim)), means.shape)
        found = parts
        for k in range(len(means)):
            rest = np.arange(len(means)) != k
            total = wide[rest].sum(axis=0)
            own_weights = wide[rest] / np.maximum(total, 0.5)
            others = mixed_prediction(own_weights, PredictedMoments(*(part[rest] for part in parts)))
            near = np.abs(means[k] - others.mean) <= _FARTHEST * np.sqrt(1.0 + others.var + others.noise_var)
            far = ~near & (total > 0.5)
            if far.any():
                self._warn_of(k)
                place = np.arange(len(means)).reshape(-1, *[1] * far.ndim) == k
                pairs = zip(others, found, strict=True)
                found = PredictedMoments(*(np.where(place & far, other, own) for other, own in pairs))
        return found

    def _warn_of(self, number: int) -> None:
        if not self._has_warned:
            self._has_warned = True
            owners = [k for k, member in enumerate(self.members) for _ in member.components]
            warnings.warn(
                f"member {owners[number]} of the mixture predicts numbers more than {_FARTHEST:g} standard deviations "
                "away from what the other members predict; where it does, its predictions are left out",
                stacklevel=5,
            )

    # What only networks have.

    def output_moments(self, X: ArrayLike, *, rows_ahead: RowsAhead = 1) -> OutputMoments:
        """Moments of the mixture of what all networks believe of the outputs: see `BayesianNetwork`."""

        def moments(later: Mixture, rows: Any, _: Any, **own: Any) -> OutputMoments:
            parts = [part._component_moments(rows, **later._in_mixture(own)) for _, part in later.components]
            means, covs = (np.array(column) for column in zip(*parts, strict=True))
            gaps = means - (mean := mixture_mean(later.component_weights, means))
            return OutputMoments(
                mean, mixture_mean(later.component_weights, covs + gaps[..., None] * gaps[..., None, :])
            )

        return OutputMoments(*self._asked(moments, rows_ahead, X))

    def input_jacobian(self, X: ArrayLike, *, rows_ahead: int = 1) -> FloatArray:
        """Expected derivative of every output in every input, over all networks: see `BayesianNetwork`."""
        pairs = zip(self._weighting.later(rows_ahead - 1).weights, self.members, strict=True)
        return np.asarray(sum(weight * member.input_jacobian(X, rows_ahead=rows_ahead) for weight, member in pairs))

    def with_outputs(self, n_outputs: int, covariance: Covariance | None = None) -> "Mixture":
        """Make networks with more outputs that keep what these have learned: see `BayesianNetwork`."""
        members = [member.with_outputs(n_outputs, covariance) for member in self.members]
        return Mixture(members, self._weighting.copy().with_outputs(n_outputs), self.workers)

    def weigh_as(self, fewer: "Mixture") -> None:
        """Weigh the members as another mixture does, whose models have fewer outputs."""
        self._weighting = fewer._weighting.copy().with_outputs(self.members[0].n_outputs)

    def with_inputs(self, n_features: int, covariance: Covariance | None = None) -> "Mixture":
        """Make networks with more inputs that keep what these have learned: see `BayesianNetwork`."""
        return self.with_members([member.with_inputs(n_features, covariance) for member in self.members])

    # Files.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters: Parameters = {"weighting": self.weighting, "members": []}
        arrays = self._weighting.arrays
        for k, member in enumerate(self.members):
            state, numbers = member.export_state()
            parameters["members"].append({"class": type(member).__name__, "state": state})
            arrays |= nested(str(k), numbers)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the mixture that `export_state` described; it continues to learn exactly as that one would."""
        members: list[Any] = []
        entries = parameters["members"]
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ValueError(f"members must be a list of tables, got {str(entries)[:40]!r}")
        for k, entry in enumerate(entries):
            kind: Any = savable(entry["class"])
            if not issubclass(kind, OnlineModel):
                raise ValueError(f"a saved member must be a perceptron, a network or a mixture, got a {kind.__name__}")
            members.append(kind.from_state(entry["state"], under(str(k), arrays)))
        kinds = {(type(member), member.n_features, _n_outputs(member), member._likelihood.name) for member in members}
        if len(kinds) != 1:
            raise ValueError("a saved mixture must have members, of one kind and for the same features and targets")
        n_outputs = _n_outputs(members[0])
        weighting = restore_weighting(parameters["weighting"], arrays, len(members), n_outputs)
        weighting.check_members(members)
        return cls(members, weighting)


@dataclass(frozen=True)
class _LearnedRows:
    """Rows that a mixture has learned, with what its members predicted them from."""

    mixture: Mixture
    rows: tuple[LearnedRows, ...]
    member_scores: list[RowScores]
    weights: RowWeights

    def parts(self, alone: bool) -> Parts:
        """What the components predicted, with the mixture's noise."""
        rule, before = self.mixture._weighting, self.weights.before
        parts = [own.parts(alone and rule.scores_alone) for own in self.rows]
        weights = np.concatenate([one * own.weights for one, own in zip(before, parts, strict=True)])
        predictions = [self._with_noise(one) for own in parts for one in own.predictions]
        return Parts(weights, predictions, np.concatenate([own.log_noise_vars for own in parts]))

    def _with_noise(self, prediction: PredictedMoments) -> PredictedMoments:
        scale, noise = self.weights.noise_scale, np.asarray(prediction.noise_var)
        if scale is None:
            return prediction
        return prediction._replace(
            noise_var=noise * (scale.reshape(noise.shape) if scale.size == noise.size else scale)
        )

    def densities(self, noise_scale: FloatArray | None) -> FloatArray:
        """Log density of each target, and how far it was distrusted, ``(2, n)``."""
        return np.stack(self._mixed(noise_scale)[:2])

    def scores(self, alone: bool) -> RowScores:
        """How well the mixture predicted."""
        mixed = self._mixed(None)
        changes = self.mixture._weighting.mixed_changes(self.weights, self.member_scores, mixed.after)
        return RowScores(mixed.log_densities, mixed.outliers, changes, gains=self.weights.gains)

    def _mixed(self, noise_scale: FloatArray | None) -> MixtureScores:
        scale = self.weights.noise_scale if noise_scale is None else noise_scale
        if scale is None:  # members predict as they would alone, and were scored so
            parts = np.array([own[:2] for own in self.member_scores])
        else:
            parts = np.array([rows.densities(scale) for rows in self.rows])
        return mixed_scores(self.weights.before, parts[:, 0], parts[:, 1])


def _n_outputs(member: Any) -> int:
    return int(getattr(member, "n_outputs", 1))


def stacked(predictions: Sequence[PredictedMoments]) -> PredictedMoments:
    """Put what several models predict along a first axis."""
    return PredictedMoments(*(np.array(parts) for parts in zip(*predictions, strict=True)))


def joined(chunks: Iterable[PredictedMoments]) -> PredictedMoments:
    """Put what several models predict for chunks of rows, ``(h, n, ...)``, together."""
    return PredictedMoments(*(np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True)))


def mixed_prediction(weights: FloatArray, parts: PredictedMoments) -> PredictedMoments:
    """Moments of the mixture of predictions ``(h, ...)``, with weights ``(h,)``, or ``(h, n)`` of each row."""
    return PredictedMoments(*mixture_prediction(weights, np.array(parts)))


# For callers that take ``drift="auto"`` as an argument.


def as_drift(drift: Any) -> float | str:
    """Check a rate of drift, in [0, 1], or ``"auto"``."""
    return AUTO if isinstance(drift, str) and drift == AUTO else as_fraction(drift, "drift", f"or {AUTO!r}")


def check_nothing_fades(forgetting: Any) -> None:
    """Raise a ValueError where the past is to fade at a given rate, and ``drift="auto"`` would find one out."""
    if forgetting != 1.0:
        raise ValueError(
            f"drift={AUTO!r} finds out by itself how fast old rows lose their weight and needs forgetting=1, got "
            f"forgetting={forgetting!r}; give one of the two"
        )


def with_drift(model: Callable[..., _Model], *args: Any, drift: Any = 0.0, **options: Any) -> _Model | Mixture:
    """Make ``model(*args, **options)`` with a rate of drift or, for ``"auto"``, a mixture of several rates."""
    if as_drift(drift) == AUTO:
        check_nothing_fades(options.get("forgetting", 1.0))
        return Mixture.over_drift(model, *args, **options)
    return model(*args, drift=drift, **options)
