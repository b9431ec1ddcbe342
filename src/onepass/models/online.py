"""The interface of all models: perceptrons, networks and mixtures learn and predict by the same calls.

`OnlineModel` is what each of them offers. A `Component` is a perceptron or a network, which answers alone as a mixture
of one does; see `onepass.models.mixture` for several.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_count, as_fraction, one_of
from onepass.engine.outliers import Trust
from onepass.likelihoods import Likelihood
from onepass.models.ahead import RowsAhead
from onepass.models.distribution import Family, Prediction
from onepass.models.prediction import PredictedMoments, RowScores

__all__ = [
    "AUTO",
    "REFINEMENTS",
    "Component",
    "OnlineModel",
    "as_rate",
    "check_unchanged",
    "set_aside_once",
    "with_shared_arguments",
]

AUTO = "auto"
"""The ``drift`` for which several rates compete."""
REFINEMENTS = ("auto", "ep", "reuse")
"""What passes after the first can do."""


def as_rate(drift: Any) -> float:
    """Check the rate of drift of a single model, in [0, 1]."""
    if isinstance(drift, str) and drift == AUTO:
        raise ValueError(
            f"drift={AUTO!r} needs several models that learn side by side: make them with "
            "onepass.Mixture.over_drift, for BayesianPerceptron or BayesianNetwork, or pass drift as a number in [0, 1]"
        )
    return as_fraction(drift, "drift")


def set_aside_once(trust: Trust, n_far: float) -> Trust:
    """Make the trust of a model that has seen rows again, of which it has set so many aside the first time."""
    return Trust([n_far, *trust.to_array()[1:]])


_SHARED_ARGUMENTS = """sample_weight : number or (n,) array, optional
            Weights above 0: a row of weight 3 counts as three copies of it, and one of weight 0.5 as half a copy, whose
            likelihood is its square root. Around a linear output that equals dividing the noise by the weight; for
            other targets a fraction is the power of the Gaussian by which the row multiplies the belief.
        passes : int
            1 is online learning: each row is learned with what was known when it came. With more passes these rows are
            learned again, knowing what came after them; networks take them in a random order, set by the seed.
        refine : {"auto", "ep", "reuse"}
            What the later passes do. ``"ep"`` (expectation propagation) removes a row's contribution before learning it
            again, so each row counts once; this corrects intervals that one pass over few rows leaves too narrow. It
            needs ``covariance="full"``, and weights and noise that don't drift. ``"reuse"`` counts the rows again,
            which makes the belief overconfident. The default is ``"ep"`` where that is possible. Neither adds to
            ``n_seen``, ``n_set_aside`` or ``log_evidence``."""
_Method = TypeVar("_Method", bound=Callable[..., Any])


def with_shared_arguments(method: _Method) -> _Method:
    """Describe the arguments that ``learn`` has in every model, where the docstring says ``<shared arguments>``."""
    if method.__doc__:  # python -OO has none
        method.__doc__ = method.__doc__.replace("<shared arguments>", _SHARED_ARGUMENTS)
    return method


class OnlineModel(ABC):
    """A model that learns rows as they come and predicts the rows to come."""

    outliers: Any
    _likelihood: Any
    n_seen: Any
    """Number of rows learned."""

    @abstractmethod
    @with_shared_arguments
    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        passes: int = 1,
        refine: str = "auto",
    ) -> Self:
        """Learn one row and its target, or many in the order given: all of them or, if one is invalid, none.

        Parameters
        ----------
        X : (d,) or (n, d) array
        y : number or (n,) array
        <shared arguments>
        """

    @abstractmethod
    def predict(self, X: Any, *, rows_ahead: RowsAhead = 1) -> Prediction:
        """Predictive distribution for one row ``(d,)`` or many ``(n, d)``.

        Parameters
        ----------
        X : (d,) or (n, d) array
        rows_ahead : int or (n,) array
            Which row is predicted, counted from the last one learned: 1 for the next row, 2 for the one after it.
            Before each row weights move, and predictions become less certain. 0 predicts with the belief as it is.
        """

    def predict_then_learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        return_outlier_probability: bool = False,
        **options: Any,
    ) -> Any:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning alone.

        Returns the `Prediction` or, with ``return_outlier_probability``, a pair: the prediction, and for each row the
        probability that its target can't be trusted, ``(n,)``. The other arguments are those of `learn`.
        """
        prediction, scores = self.predict_score_learn(X, y, sample_weight=sample_weight, **options)
        return (prediction, scores.outliers) if return_outlier_probability else prediction

    @abstractmethod
    def predict_score_learn(self, X: Any, y: ArrayLike, **options: Any) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well."""

    def interval(self, X: Any, level: float = 0.95, *, rows_ahead: RowsAhead = 1, **options: Any) -> tuple[Any, Any]:
        """Lower and upper limits that contain a new target with probability ``level``; for labels, their probability.

        The interval is central: as much probability lies below it as above it. For Gaussian noise the predictive
        distribution is taken to be Gaussian, as in the paper, with heavier tails the more uncertain a learned noise is;
        that of a mixture is the mixture of its members'. For labels the limits are quantiles of their probability, for
        classes of the probability of each class, ``(n, K)``. In networks that interval is wider than the ``pre_var`` of
        `predict` says: it includes the variance that hidden units add by not being linear, which a new label, learned
        or scored, can't distinguish from chance. The other arguments are those of `predict`.
        """
        return self.predict(X, rows_ahead=rows_ahead, **options).interval(level)

    def log_predictive(self, X: Any, y: ArrayLike, *, rows_ahead: RowsAhead = 1, **options: Any) -> Any:
        """Log density of each target, or log probability of labels and counts, before it is learned.

        The lower it is, the more surprising is the target; with several outputs, those that are not NaN. The other
        arguments are those of `predict`.
        """
        return self._scores(X, y, rows_ahead=rows_ahead, **options)[0]

    def outlier_probability(self, X: Any, y: ArrayLike, *, rows_ahead: RowsAhead = 1, **options: Any) -> Any:
        """Probability that each target can't be trusted, before it is learned; 0 with ``outliers=0``.

        For labels and classes it is the probability that the label is wrong. The other arguments are those of
        `predict`. To score the anomalies of a time series use `onepass.forecasting.AnomalyScorer`.
        """
        return self._scores(X, y, rows_ahead=rows_ahead, **options)[1]

    @abstractmethod
    def _scores(self, X: Any, y: ArrayLike, *, rows_ahead: RowsAhead = 1) -> tuple[Any, Any]:
        """Log density of each target, and the probability that it can't be trusted."""

    def _density(self, seen: float, X: Any, y: Any, **options: Any) -> Any:
        """Log density of targets under a prediction that was made when ``seen`` rows had been learned."""
        check_unchanged(self, seen)
        return self._scores(X, y, **options)[0]

    @abstractmethod
    def sample_weights(self, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` weight vectors from the posterior, ``(n, p)``; ``rows_ahead`` is as for `predict`."""

    @abstractmethod
    def sample_output(self, X: Any, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` functions from the posterior and return their outputs, without noise: ``(n,)`` or ``(n, rows)``.

        Each draw has one weight vector for all rows, as Thompson sampling needs. ``rows_ahead`` is as for `predict`.
        """

    @abstractmethod
    def ahead(self, rows: int = 1) -> Any:
        """Return the model as it predicts so many rows ahead: itself, or a copy in which the weights have moved.

        Before each row weights drift and the past fades, so the next row is predicted one row ahead. It is meant for
        reading the belief behind a prediction; learn with the model itself.
        """

    @property
    @abstractmethod
    def keeps_sites(self) -> bool:
        """Whether what a row contributed can be removed again, as ``refine="ep"`` does."""

    @property
    @abstractmethod
    def n_set_aside(self) -> int:
        """Number of rows set aside, that is counted but not learned, since their target was absurdly far off."""

    @property
    @abstractmethod
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted; 0 with ``outliers=0``."""


class Component(OnlineModel):
    """A model that answers, alone, as a mixture of one does."""

    drift: float
    forgetting: float
    covariance: Any
    _state: Any

    @property
    def belief(self) -> Any:
        """The Gaussian belief about the weights, in the form in which it is stored; not to be changed."""
        return self._state.belief

    _likelihood: Likelihood
    _family: Family
    _curves_labels: bool = False  # whether intervals of labels need more than the moments of predictions
    _one_row: Any = None  # the compiled path for one row, where there is one

    @property
    def members(self) -> list[Any]:
        """The models that it is made of: itself."""
        return [self]

    def with_members(self, members: list[Any]) -> Any:
        """Make the model of other members, of which there must be one."""
        (only,) = members
        return only

    @property
    def components(self) -> list[tuple[float, Any]]:
        """The models that predict as a mixture, each with its weight: this one alone."""
        return [(1.0, self)]

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift; a fixed rate has the probability 1."""
        return {self.drift: 1.0}

    @property
    def log_noise_var(self) -> float:
        """How uncertain a learned noise is where predictions leave that out: the variance of its logarithm."""
        return 0.0

    def later(self, rows: int) -> Self:
        """Return the model with the weights of its `components` so many rows later: itself, as it has but one."""
        return self

    @property
    def n_set_aside(self) -> int:
        """Number of rows set aside, that is counted but not learned, since their target was absurdly far off."""
        return int(self._state.trust.n_far)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted; 0 with ``outliers=0``."""
        return 1.0 - float(self._state.trust.shares[0]) if self.outliers else 0.0

    @property
    def keeps_sites(self) -> bool:
        """Whether what a row contributed can be removed again, as ``refine="ep"`` does."""
        return bool(self._state.belief.keeps_sites) and not self._fading

    @property
    def _fading(self) -> list[str]:
        """The settings by which what a row contributed fades with later rows."""
        fades = {"forgetting": self.forgetting < 1.0, "drift": self.drift > 0.0}
        return [name for name, given in fades.items() if given]

    def _removes_sites(self, passes: int, refine: str) -> bool:
        """Whether passes after the first remove what a row contributed; a ValueError if they should and can't."""
        one_of(refine, REFINEMENTS, "refine")
        if as_count(passes, "passes") == 1 or refine == "reuse":
            return False
        if refine == "ep":
            self._check_sites()
        return self.keeps_sites

    def _check_sites(self) -> None:
        """Raise a ValueError where what a row contributed can't be removed again."""
        belief, fading = self._state.belief, self._fading
        if not belief.keeps_sites:
            raise ValueError(
                f"refine='ep' needs covariance='full', got covariance={self.covariance!r}, which stores only a part of "
                "what a row contributed, so it can't be removed again; use refine='reuse', or passes=1"
            )
        if fading:
            raise ValueError(
                f"refine='ep' needs weights and a noise that don't drift, got {' and '.join(fading)}: what a row "
                "contributed fades with later rows, so it can't be removed exactly; use refine='reuse', or passes=1"
            )

    def snapshot(self) -> Self:
        """Copy what learning changes; a copy shares everything else with its original."""
        twin: Any = copy.copy(self)
        twin._state = twin._state.copy()
        return twin  # type: ignore[no-any-return]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if not self._state.belief.mean.flags.writeable:  # from shared memory, as clusters pass models on
            self._state = self._state.copy()

    def _prediction_of_one(self, seen: Any) -> PredictedMoments:
        """What the model alone predicts for one row, from what `_one_row` has seen of it."""
        raise NotImplementedError

    def _sample_component(self, X: Any, n: int, rng: Any, *, rows_ahead: int = 1) -> FloatArray:
        """What `sample_output` of a mixture draws from this model, with the noise that it has there."""
        return self.sample_output(X, n, rng, rows_ahead=rows_ahead)

    def close_block(self) -> None:
        """Do nothing; only networks collect rows into blocks: see `BayesianNetwork.close_block`."""


def check_unchanged(model: Any, seen: float) -> None:
    """Raise a RuntimeError where a model has learned since it predicted."""
    if model.n_seen != seen:
        raise RuntimeError(
            f"the model has learned {model.n_seen - seen:g} rows since this prediction, so it no longer knows its "
            "densities; ask for logpdf before learning, or predict again"
        )
