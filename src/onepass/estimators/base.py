"""What all estimators share: rows that come in any split become one pass of learning, in their order.

The state after ``n`` rows depends on these rows alone and not on how calls divided them, so ``fit`` and any sequence of
``partial_fit`` agree. That holds for standardisation too: its statistics are those of the first ``warm_up`` rows. Until
these have been seen the rows are kept, and learned anew with the statistics of all of them whenever more come.

An estimator says what a target is (`_encoded`), what models learn it (`_committees_for`) and how it predicts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.activations import Activation
from onepass.estimators.scales import Committee, Foretold
from onepass.estimators.scaling import Scaling, warn_of_scales
from onepass.files.state import Arrays, Parameters, as_tally, decode_activation, encode_activation, nested, sized, under

__all__ = ["SCALES", "OnePassEstimator"]

SCALES = (0.3, 1.0, 3.0, 10.0)  # of the priors that prior_scale="auto" weighs against each other
_MOST_REPEATED = 10_000_000  # rows that whole weights may stand for
_CHUNK = 4096  # sparse rows made dense at a time
_MODELS = {"BayesianPerceptron": "onepass.models.perceptron", "BayesianNetwork": "onepass.models.network.network"}


@dataclass(frozen=True)
class Lesson:
    """Rows to learn in their order, their targets, their weights where these aren't all 1, and in how many passes."""

    rows: Any
    targets: FloatArray
    weights: FloatArray | None = None
    passes: int = 1

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @property
    def full_weights(self) -> FloatArray:
        """The weights, written out."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def part(self, start: int, stop: int) -> "Lesson":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[start:stop]
        return Lesson(self.rows[start:stop], self.targets[start:stop], weights, self.passes)

    def after(self, earlier: "Lesson") -> "Lesson":
        """Join rows that came before with these."""
        weights = None
        if self.weights is not None or earlier.weights is not None:
            weights = np.concatenate([earlier.full_weights, self.full_weights])
        rows = np.concatenate([_dense(earlier.rows), _dense(self.rows)])
        return Lesson(rows, np.concatenate([earlier.targets, self.targets]), weights, self.passes)


class OnePassEstimator(BaseEstimator):  # type: ignore[misc]
    """Fit, partial fit and files; see the module for what a subclass adds."""

    prior_scale: float | str
    covariance: str
    standardize: bool
    warm_up: int

    _auto_scales: tuple[float, ...] = SCALES

    # Learning.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in their order, in one pass.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) array
        sample_weight : (n,) array, optional
            A whole weight ``w`` stands for the row learned ``w`` times in its place.
        """
        return self._learn(X, y, sample_weight, afresh=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, afresh: bool, classes: Any = None, passes: int = 1) -> Self:
        self._check_parameters()
        afresh = afresh or not self.__sklearn_is_fitted__()
        X, y = self._validated(X, y, afresh)
        weights = None if sample_weight is None else _as_weights(sample_weight, X)
        targets = self._encoded(y, classes, afresh=afresh)
        if afresh:
            self._restart(X)
        lesson = Lesson(*self._weighted(X, targets, weights), passes)
        if len(lesson):
            self._absorb(lesson)
        return self

    def _foretell(self, X: Any, y: Any, classes: Any = None) -> Foretold:
        """Predict every row just before learning it."""
        self._check_parameters()
        afresh = not self.__sklearn_is_fitted__()
        self._check_warm()
        X, y = self._validated(X, y, afresh)
        targets = self._encoded(y, classes, afresh=afresh)
        if afresh:
            self._restart(X)
        parts, start = [], 0
        for rows in self._in_chunks(X, _CHUNK):
            parts.append(self._foretell_rows(rows, targets[start : start + rows.shape[0]]))
            start += rows.shape[0]
        self._n_rows += start
        return parts[0] if len(parts) == 1 else Foretold(*map(np.concatenate, zip(*parts, strict=True)))

    def _foretell_rows(self, rows: Any, targets: FloatArray) -> Foretold:
        """Predict and teach one chunk of standardised rows."""
        raise NotImplementedError

    def learn_encoded(self, X: FloatArray, targets: FloatArray) -> None:
        """Learn dense rows ``(n, d)`` and targets ``(n,)`` as the models take them, which the caller has checked.

        For a fitted estimator; what `partial_fit` looks at again costs a third of the time.
        """
        check_is_fitted(self)
        self._absorb(Lesson(X, self._shaped_targets(targets)))

    def foretell_encoded(self, X: FloatArray, targets: FloatArray) -> Foretold:
        """Predict rows, then learn them, under the same terms."""
        check_is_fitted(self)
        self._check_warm()
        foretold = self._foretell_rows(self._inputs(X) if self.standardize else X, self._shaped_targets(targets))
        self._n_rows += len(X)
        return foretold

    def _shaped_targets(self, targets: FloatArray) -> FloatArray:
        return targets

    def _check_warm(self) -> None:
        if self.standardize and (not self.__sklearn_is_fitted__() or self._n_rows < self.warm_up):
            raise ValueError(
                f"predict_then_learn needs standardize=False, or the {self.warm_up} rows of the warm-up learned "
                "before: their scale is known only after the last of them"
            )

    def _restart(self, X: Any) -> None:
        if not self.standardize:
            warn_of_scales(X, getattr(self, "feature_names_in_", None))
        self._inputs = Scaling.none(X.shape[1])
        self._targets = Scaling.none(self._target_size)
        self._committees: list[Any] = self._committees_for(X.shape[1])
        self._waiting: Lesson | None = None
        self._n_rows = 0

    def _absorb(self, lesson: Lesson) -> None:
        if self.standardize and self._n_rows < self.warm_up:
            # Rows of the warm-up are learned anew with those before them, by the statistics of all of them.
            lesson = lesson if self._waiting is None else lesson.after(self._waiting)
            seen = lesson.part(0, self.warm_up)
            self._inputs = Scaling.of(_dense(seen.rows))
            self._targets = self._target_scaling(seen.targets)
            self._committees = self._committees_for(self.n_features_in_)
            self._waiting = lesson if len(lesson) < self.warm_up else None
            self._n_rows = 0
        self._teach(lesson)
        self._n_rows += len(lesson)

    def _teach(self, lesson: Lesson) -> None:
        start = 0
        for rows in self._in_chunks(lesson.rows, len(lesson) if lesson.passes > 1 else _CHUNK):
            part = lesson.part(start, start + rows.shape[0])
            self._teach_part(replace(part, rows=rows))
            start += len(part)

    def _teach_part(self, lesson: Lesson) -> None:
        """Teach standardised rows."""
        for committee in self._committees:
            self._instruct(committee, lesson.rows, lesson.targets, lesson.passes)

    def _instruct(self, committee: Any, rows: Any, targets: FloatArray, passes: int) -> None:
        committee.learn(rows, targets)

    def _weighted(self, X: Any, targets: FloatArray, weights: FloatArray | None) -> tuple[Any, Any, Any]:
        """Turn whole weights into repeated rows."""
        if weights is None:
            return X, targets, None
        if (weights != np.floor(weights)).any():
            odd = weights[weights != np.floor(weights)][0]
            raise ValueError(
                f"sample_weight must hold whole numbers, got {odd:g}: a row can be learned again, but no part of it"
                f"{self._fractions_hint}"
            )
        total = weights.sum()
        if total > max(_MOST_REPEATED, 100 * len(weights)):
            raise ValueError(
                f"sample_weight adds up to {total:.3g} rows, each learned as often as its weight says; at most "
                f"{_MOST_REPEATED:.0e} or 100 a row on average are taken: divide the weights"
            )
        index = np.repeat(np.arange(X.shape[0]), weights.astype(int))
        return X[index], targets[index], None

    _fractions_hint = ""  # where fractions could be had

    # What a subclass says.

    def _encoded(self, y: Any, classes: Any, *, afresh: bool) -> FloatArray:
        """Targets as the models take them."""
        raise NotImplementedError

    def _committees_for(self, n_features: int) -> list[Any]:
        """Models that have learned nothing, a committee each output."""
        raise NotImplementedError

    def _target_scaling(self, targets: FloatArray) -> Scaling:
        """Statistics of the targets in the warm-up, where these are numbers."""
        return self._targets

    @property
    def _target_size(self) -> int:
        """How many numbers a target has."""
        return 1

    def _densities(self) -> Any:
        raise NotImplementedError

    # What comes in.

    def _check_parameters(self) -> None:
        scale = self.prior_scale
        known = isinstance(scale, Real) and not isinstance(scale, bool) and 0.0 < float(scale) < np.inf
        if not known and not (isinstance(scale, str) and scale == "auto"):
            raise ValueError(f"prior_scale must be a positive number or 'auto', got {scale!r}")
        if self.standardize:
            as_count(self.warm_up, "warm_up")

    @property
    def _scales(self) -> tuple[float, ...]:
        return self._auto_scales if isinstance(self.prior_scale, str) else (float(self.prior_scale),)

    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
        X, y = validate_data(self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, **self._target_checks)
        self._check_sparse(X)
        return X, y

    _target_checks: dict[str, Any] = {}  # noqa: RUF012 (what scikit-learn is told of the targets)

    def _rows(self, X: Any) -> Iterator[Any]:
        """Rows to predict, checked, standardised and in chunks."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        self._check_sparse(X)
        return self._in_chunks(X, _CHUNK)

    def _check_sparse(self, X: Any) -> None:
        if _is_sparse(X) and self._fills_sparse:
            raise ValueError(
                "standardize=True would fill sparse rows by centring them; scale them without centring "
                "(MaxAbsScaler) and pass standardize=False"
            )

    _sparse_models = True  # whether the models can take sparse rows

    @property
    def _keeps_sparse(self) -> bool:
        """Whether sparse rows reach the models as they are."""
        return self._sparse_models and self.covariance == "diagonal"

    @property
    def _fills_sparse(self) -> bool:
        return self.standardize and self._sparse_models and self.covariance == "diagonal"

    def _in_chunks(self, X: Any, size: int) -> Iterator[Any]:
        if not _is_sparse(X):
            yield self._inputs(X) if self.standardize else X
        elif self._keeps_sparse:
            yield csr_array(X)
        else:
            for start in range(0, X.shape[0], size):
                rows = _dense(X[start : start + size])
                yield self._inputs(rows) if self.standardize else rows

    # What was learned.

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_committees")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._fills_sparse
        return tags

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        check_is_fitted(self)
        return int(self._n_rows)

    @property
    def prior_weights_(self) -> FloatArray:
        """The weight of each prior scale now, ``(k,)``, or ``(q, k)`` for several outputs."""
        check_is_fitted(self)
        weights = np.array([committee.weights for committee in self._committees])
        return np.asarray(weights[0] if len(weights) == 1 else weights)

    @property
    def log_evidence_(self) -> float:
        """Log evidence of all rows; with ``prior_scale="auto"`` that of the best scale."""
        check_is_fitted(self)
        # A density of standardised targets is so many times that of the targets themselves.
        stretch = float(np.log(self._targets.spread).sum()) * self._n_rows
        return float(sum(committee.log_evidence for committee in self._committees)) - stretch

    def _linear(self, committee: Committee, spread: float = 1.0, centre: float = 0.0) -> tuple[Any, Any, Any]:
        """Mean weights, bias and covariance (or variances) of a committee of perceptrons, in the inputs' own units."""
        shares, bias = committee.weights, committee.members[0].bias
        means = np.array([member.mean for member in committee.members])
        mean = shares @ means
        covs = np.array([member.cov for member in committee.members])
        gaps = means - mean
        if covs.ndim == 2:
            cov = shares @ (covs + gaps**2)
        else:
            cov = np.tensordot(shares, covs + gaps[:, :, None] * gaps[:, None, :], 1)
        stretch = spread / self._inputs.spread
        coef = mean[bias:] * stretch
        intercept = spread * mean[:bias].sum() + centre - coef @ self._inputs.centre
        if covs.ndim == 2:
            return coef, intercept, cov[bias:] * stretch**2
        return coef, intercept, cov[bias:, bias:] * np.outer(stretch, stretch)

    def _drawn(self, X: Any, n_samples: int, random_state: Any) -> list[FloatArray]:
        """Outputs of functions drawn from the posterior, ``(n_samples, n, ...)`` for each committee."""
        as_count(n_samples, "n_samples")
        rows = list(self._rows(X))
        random = check_random_state(random_state)
        drawn = []
        for committee in self._committees:
            counts = random.multinomial(n_samples, committee.weights)
            seeds = random.randint(2**31 - 1, size=len(counts))
            members = zip(committee.members, counts, seeds, strict=True)
            parts = [
                np.concatenate([member.sample_output(part, int(count), int(seed)) for part in rows], axis=1)
                for member, count, seed in members
                if count
            ]
            drawn.append(random.permutation(np.concatenate(parts)))
        return drawn

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Give all that the estimator is, as parameters that JSON can hold and arrays: see `onepass.save`."""
        check_is_fitted(self)
        parameters: Parameters = {
            "arguments": {name: _plain(name, value) for name, value in self.get_params(deep=False).items()},
            "n_features": self.n_features_in_,
            "n_rows": self._n_rows,
            "committees": [],
        }
        if hasattr(self, "feature_names_in_"):
            parameters["feature_names"] = self.feature_names_in_.tolist()
        arrays = {**nested("inputs", self._inputs.arrays), **nested("targets", self._targets.arrays)}
        for i, committee in enumerate(self._committees):
            arrays |= {f"{name}/{i}": values for name, values in committee.weighing.items()}
            members = []
            for k, member in enumerate(committee.members):
                state, numbers = member.export_state()
                members.append({"class": type(member).__name__, "state": state})
                arrays |= nested(f"member/{i}/{k}", numbers)
            parameters["committees"].append(members)
        if (lesson := self._waiting) is not None:
            waiting = {"rows": _dense(lesson.rows), "targets": lesson.targets, "weights": lesson.full_weights}
            arrays |= nested("waiting", waiting)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the estimator that `export_state` described; it goes on learning as that one would."""
        arguments = {name: _object(value) for name, value in parameters["arguments"].items()}
        estimator = cls(**arguments)
        estimator._check_parameters()
        estimator.n_features_in_ = as_count(parameters["n_features"], "n_features")
        if "feature_names" in parameters:
            estimator.feature_names_in_ = _names(parameters["feature_names"], estimator.n_features_in_)
        estimator._inputs = Scaling.from_arrays(under("inputs", arrays), estimator.n_features_in_)
        estimator._n_rows = as_tally(parameters["n_rows"], "n_rows")
        estimator._restore(parameters, arrays)
        estimator._targets = Scaling.from_arrays(under("targets", arrays), len(arrays["targets/centre"]))
        estimator._committees = [
            estimator._restored_committee(i, members, arrays) for i, members in enumerate(parameters["committees"])
        ]
        estimator._waiting = None
        if "waiting/rows" in arrays:
            waiting = under("waiting", arrays)
            shape = (estimator._n_rows, estimator.n_features_in_)
            rows = sized(waiting, "rows", shape)
            targets = sized(waiting, "targets", (shape[0], *waiting["targets"].shape[1:]))
            weights = sized(waiting, "weights", shape[:1])
            estimator._waiting = Lesson(rows, targets, None if (weights == 1.0).all() else weights)
        return estimator

    def _restore(self, parameters: Parameters, arrays: Arrays) -> None:
        """Take up what a subclass added to the state."""

    def _restored_committee(self, number: int, members: Any, arrays: Arrays) -> Any:
        if not members:
            raise ValueError("committees must have members")
        models = []
        for k, entry in enumerate(members):
            model = getattr(import_module(_MODELS[entry["class"]]), entry["class"])
            models.append(model.from_state(entry["state"], under(f"member/{number}/{k}", arrays)))
            if models[-1].n_features != self.n_features_in_:
                raise ValueError(f"a member has {models[-1].n_features} features, not {self.n_features_in_}")
        return self._assembled(models, number, arrays)

    def _assembled(self, models: list[Any], number: int, arrays: Arrays) -> Any:
        """Make a committee of models that have learned already."""
        return Committee(models, self._densities(), sized(arrays, f"evidence/{number}", (len(models),)))


def _as_weights(sample_weight: Any, X: Any) -> FloatArray:
    weights = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    if not np.isfinite(weights).all():
        raise ValueError("sample_weight must be finite")
    return weights


def _dense(rows: Any) -> FloatArray:
    return np.ascontiguousarray(rows.toarray() if _is_sparse(rows) else rows)


def _is_sparse(rows: Any) -> bool:
    return bool(issparse(rows))


def _plain(name: str, value: Any) -> Any:
    """An argument as JSON can hold it."""
    if isinstance(value, Activation):
        return encode_activation(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return list(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{name}={value!r} can't be held by a file")


def _object(value: Any) -> Any:
    if isinstance(value, dict):
        return decode_activation(value)
    return tuple(value) if isinstance(value, list) else value


def _names(given: Any, size: int) -> Any:
    if not isinstance(given, list) or len(given) != size or not all(isinstance(name, str) for name in given):
        raise ValueError(f"feature names must be {size} texts")
    return np.array(given, dtype=object)
