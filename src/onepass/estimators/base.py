"""What all estimators share: however calls divide the rows, they are learned in one pass and in order.

The state after ``n`` rows depends on these rows alone and not on how calls divided them, so ``fit`` and any sequence of
``partial_fit`` agree, unless ``fit`` shuffles its rows or goes over them several times. That holds for standardisation
too: its statistics are those of the first ``warm_up`` rows. Until that many rows have come, they are kept, and all of
them are learned again with new statistics whenever more come. These rows are not scored: the evidence counts only the
rows after them.

Everything that is learned goes through `OnePassEstimator.learn_encoded`, or `predict_then_learn_encoded` if rows are
predicted first. A subclass says what a target is (`_encoded`), which models learn it (`_new_member`) and how they
predict; `onepass.estimators.inputs` checks what users give, `onepass.estimators.files` saves and loads.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from onepass._typing import FloatArray
from onepass._validation import as_count, one_of
from onepass.beliefs.choice import Covariance, count_numbers
from onepass.engine.outliers import FAR
from onepass.estimators.batch import Batch, ModelRows, PredictedRows, as_dense, is_sparse
from onepass.estimators.files import SavableEstimator
from onepass.estimators.inputs import SCALES
from onepass.estimators.posterior import joint_belief
from onepass.estimators.scaling import Scaling, warn_of_scales, zero_for_nan
from onepass.layers.layout import Layout
from onepass.models.missing import ColumnMoments
from onepass.models.mixture import Mixture, as_drift, joined
from onepass.models.online import AUTO, REFINEMENTS
from onepass.models.prediction import Prediction, RowScores
from onepass.models.weighting import FadingWeights

__all__ = ["SCALES", "OnePassEstimator"]

_CHUNK = 4096  # sparse rows made dense at a time
_MOST_NUMBERS = 200_000_000  # of the covariances of an estimator
# Attributes that learning replaces.
_LEARNED = (
    "_input_scaling",
    "_target_scaling",
    "_mixtures",
    "_waiting",
    "_columns",
    "_n_rows",
    "_unscored_rows",
    "_unscored_evidence",
    "_short_weights",
    "_n_absurd",
)


class OnePassEstimator(SavableEstimator):
    """Fit, partial fit and prediction for all estimators; the module docstring says what a subclass adds."""

    passes: Any
    refine: str
    forgetting: float
    drift: float | str

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows, ``passes`` times in the order given; networks shuffle by default.

        A row that repeats the one before it is added to its weight, unless repeats are mere chance, ``forgetting`` or
        ``drift`` is a number, or targets change while their inputs stay.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) array
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; ``w`` need not be whole, and 0 leaves the row out.
        """
        return self._learn(X, y, sample_weight, restart=True)

    def start(self, n_features: int, classes: Any = None) -> Self:
        """Forget everything, and be ready to predict from the prior alone, before any row.

        ``n_features`` is the number of input columns; ``classes`` are needed by classifiers only.

        Examples
        --------
        >>> from onepass import BayesianPerceptronRegressor
        >>> model = BayesianPerceptronRegressor(standardize=False).start(2)
        >>> model.n_seen_, model.predict([[1.0, 2.0]])
        (0, array([0.]))
        """
        self._check_parameters()
        if self.standardize:
            raise ValueError(
                "start() needs standardize=False, got standardize=True, which takes its scales from the first rows; "
                "pass standardize=False, or call fit or partial_fit"
            )
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_: int = as_count(n_features, "n_features")
        self._categories = None
        self._encoded(np.empty(0), classes, restart=True)
        self._restart(np.zeros((1, self.n_features_in_)))  # which says nothing about scales
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, restart: bool, classes: Any = None) -> Self:
        self._check_parameters()
        learn = self.fit_encoded if restart else self.learn_encoded
        restart = restart or not self.__sklearn_is_fitted__()
        X, y = self._checked_pairs(X, y, restart=restart)
        weights = self._checked_weights(sample_weight, X)
        targets = self._encoded(y, classes, restart=restart)
        weights = self._with_class_weights(weights, targets)
        if restart:
            self._restart(X)
        if self._n_rows == 0:
            self._warn_of_targets(Batch(X, targets.reshape(len(targets), -1)))
        before = self._n_set_aside
        learn(X, targets, weights)
        self._warn_of_set_aside(before)
        return self

    def fit_encoded(self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None) -> None:
        """Learn all rows of a `fit`, by an estimator that has learned nothing; arguments as for `learn_encoded`."""
        batch = Batch(X, targets.reshape(len(targets), -1), sample_weight).without_zeros()
        # A rate that was given is one per row, also per row that repeats.
        self._fit_batch(batch.run_length_encoded() if self.forgetting == 1.0 and self.drift in (0.0, AUTO) else batch)

    def _fit_batch(self, batch: Batch) -> None:
        """Learn all rows of a `fit`."""
        self.learn_encoded(batch.rows, batch.targets, batch.weights, self.passes)

    def learn_encoded(
        self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None, passes: int = 1
    ) -> None:
        """Learn rows ``(n, d)`` whose targets are already encoded, ``(n,)`` or ``(n, q)``, without checking them.

        Weights ``(n,)`` must not be negative. The estimator must have been fitted before. This saves the checks of
        `partial_fit`, a third of its time.
        """
        given = Batch(X, targets.reshape(len(targets), -1), sample_weight).without_zeros()
        if not len(given):
            return
        with self._all_or_none():
            for batch, times in self._stages(given, passes):
                options = self._learning_options(times)
                for part in self._standardized(batch, len(batch) if times > 1 else _CHUNK):
                    for k, own in part.observed_columns():
                        self._mixtures[k].learn(own.rows, own.targets, **own.options, **options)
                    self._note_weights(part)
                self._n_rows += len(batch)

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        """Go back to the models and the warm-up from before if a row can't be learned; each model goes back itself."""
        before = {name: getattr(self, name) for name in _LEARNED}
        try:
            yield
        except BaseException:  # Ctrl-C too
            self.__dict__.update(before)
            raise

    def _stages(self, batch: Batch, passes: int) -> Iterator[tuple[Batch, int]]:
        """What is to be learned one after the other, and in how many passes: the rows of a warm-up on their own."""
        if not self._is_warming_up:
            yield batch, passes
            return
        batch = self._with_warm_up(batch)
        first, rest = batch.part(0, self.warm_up), batch.part(self.warm_up, len(batch))
        yield first, 1
        self._unscored_rows, self._unscored_evidence = len(first), self._evidence
        # So that `log_evidence_` takes no scale off for what was not observed in these rows.
        self._unscored_evidence += float(self._log_scales @ (len(first) - self._n_observed))
        if passes > 1:  # which take all rows together: the first stage has but shown the evidence of the warm-up
            self._mixtures = self._new_mixtures()
            self._start_counts()
            yield batch, passes
        elif len(rest):
            yield rest, passes

    def _predict_then_learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> PredictedRows:
        """Predict every row just before learning it."""
        self._check_parameters()
        restart = not self.__sklearn_is_fitted__()
        X, y = self._checked_pairs(X, y, restart=restart)
        weights = self._checked_weights(sample_weight, X)
        targets = self._encoded(y, classes, restart=restart)
        weights = self._with_class_weights(weights, targets)
        if restart:
            self._restart(X)
        before = self._n_set_aside
        found = self.predict_then_learn_encoded(X, targets, weights)
        self._warn_of_set_aside(before)
        return found

    @property
    def _n_set_aside(self) -> int:
        """Targets that were set aside, over all outputs."""
        return sum(mixture.n_set_aside for mixture in self._mixtures) + int(self._n_absurd.sum())

    def _warn_of_set_aside(self, before: int) -> None:
        """Warn of targets that were set aside in a call, before which there were so many."""
        if (n := self._n_set_aside - before) > 0:
            which = "1 target was set aside, since it is" if n == 1 else f"{n} targets were set aside, since each is"
            warnings.warn(
                f"{which} more than {FAR:.0f} standard deviations from its prediction; pass outliers=0.01 if wild "
                "targets are to be expected",
                stacklevel=4,
            )

    def predict_then_learn_encoded(
        self, X: Any, targets: FloatArray, sample_weight: FloatArray | None = None
    ) -> PredictedRows:
        """Predict rows, then learn them; the arguments are those of `learn_encoded`.

        A row of weight 0 is predicted, but neither scored nor learned. The first ``warm_up`` rows are not scored
        either: except for the first, which is not predicted, they are predicted with the scale of earlier rows.
        """
        targets = targets.reshape(len(targets), -1)
        if sample_weight is not None:  # a row without a target is passed over
            targets = np.where(sample_weight[:, None] > 0.0, targets, np.nan)
        batch, parts = Batch(X, targets, sample_weight), []
        while self._is_warming_up and len(batch):
            # As many rows at a time as there were before: all of them together are then learned but twice.
            size = max(1, min(self._n_rows, self.warm_up - self._n_rows))
            first, batch = batch.part(0, size), batch.part(size, len(batch))
            parts.append(self._predicted_before(first))
            self.learn_encoded(first.rows, first.targets, _weights_of_observed(first))
        if len(batch) or not parts:
            parts.append(self._predict_then_learn_warm(batch))
        return PredictedRows.joined(parts)

    def _predicted_before(self, batch: Batch) -> PredictedRows:
        """What is predicted of rows of a warm-up; nothing (NaN) before the first, and none is scored."""
        unknown = np.full(len(batch), np.nan)
        if not self._mixtures:
            nothing = np.full((len(batch), *self._prediction_shape), np.nan)
            return PredictedRows(nothing, nothing, nothing, unknown, 0.0 * unknown, 0.0 * unknown)
        parts = []
        for rows in self._model_rows(batch.rows):
            seen = [mixture.predict(rows.X, **rows.options) for mixture in self._mixtures]
            parts.append(self._predicted(seen))
        mean, var, noise_var = map(np.concatenate, zip(*parts, strict=True))
        return PredictedRows(mean, var, noise_var, unknown, np.zeros(len(batch)), np.zeros(len(batch)))

    def _predict_then_learn_warm(self, batch: Batch) -> PredictedRows:
        """Predict rows, then learn them, after the warm-up."""
        parts = []
        for part in self._standardized(batch, _CHUNK):
            pairs = zip(self._mixtures, part.targets.T, strict=True)
            seen = [_predict_score_learn(mixture, part.rows, column, part.options) for mixture, column in pairs]
            moments = self._predicted([prediction for prediction, _ in seen])
            densities, outliers, changes = (
                np.array(own) for own in zip(*(scores[:3] for _, scores in seen), strict=True)
            )
            log_density = densities.sum(axis=0) - ~np.isnan(part.targets) @ self._log_scales
            parts.append(PredictedRows(*moments, log_density, outliers.max(axis=0), changes.max(axis=0)))
            self._note_weights(part)
        self._n_rows += batch.n_counted
        return PredictedRows.joined(parts)

    def _note_weights(self, batch: Batch) -> None:
        """Note as how many rows those count that were learned."""
        if batch.weights is not None:
            self._short_weights = self._short_weights + (1.0 - batch.weights) @ ~np.isnan(batch.targets)

    def predict_and_score_encoded(self, X: Any, targets: FloatArray) -> PredictedRows:
        """Predict and score rows as `predict_then_learn_encoded`, without learning them; not during the warm-up."""
        parts = []
        for part in self._standardized(Batch(X, targets.reshape(len(targets), -1)), _CHUNK):
            pairs = list(zip(self._mixtures, part.targets.T, strict=True))
            moments = self._predicted([mixture.predict(part.rows, **part.options) for mixture, _ in pairs])
            scores = [mixture._scores(part.rows, column, **part.options) for mixture, column in pairs]
            densities, outliers = (np.array(own) for own in zip(*scores, strict=True))
            log_density = densities.sum(axis=0) - ~np.isnan(part.targets) @ self._log_scales
            parts.append(PredictedRows(*moments, log_density, outliers.max(axis=0), np.zeros(len(part))))
        return PredictedRows.joined(parts)

    def _outlier_probability(self, X: Any, y: Any) -> FloatArray:
        """Probability that each target is not to be trusted, ``(n,)``; of several numbers that of the worst."""
        check_is_fitted(self)
        X, y = self._checked_pairs(X, y, restart=False)
        targets = self._encoded(y, None, restart=False)
        columns, start = self._target_scaling(targets.reshape(len(targets), -1)), 0
        found = np.zeros(columns.shape)
        for rows in self._model_rows(X):
            stop = start + rows.X.shape[0]
            part = Batch(rows.X, columns[start:stop], None, rows.options.get("X_var"))
            for k, own in part.observed_columns():
                seen, model = ~np.isnan(part.targets[:, k]), self._mixtures[k]
                found[start:stop][seen, k] = model.outlier_probability(own.rows, own.targets, **own.options)
            start = stop
        return np.asarray(found.max(axis=1))

    def close_block(self) -> None:
        """Finish the block of rows that were learned one per call: see `onepass.BayesianNetwork.close_block`.

        After this call the rounding errors of later rows do not depend on whether the estimator was saved in between.
        """
        for mixture in self._mixtures:
            mixture.close_block()

    @property
    def _is_warming_up(self) -> bool:
        return self.standardize and self._n_rows < self.warm_up

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self.refine, REFINEMENTS, "refine")
        self._check_passes()

    def _check_passes(self) -> None:
        if as_count(self.passes, "passes") > 1 and isinstance(self.prior_scale, str):
            raise ValueError(
                f"prior_scale='auto' compares what one pass predicted and needs passes=1, got passes={self.passes}; "
                "pass prior_scale as a number, or passes=1"
            )
        if as_drift(self.drift) == AUTO and self.passes > 1:
            raise ValueError(
                f"drift='auto' compares what one pass predicted and needs passes=1, got passes={self.passes}; pass "
                "drift as a number, or passes=1"
            )

    def _learning_options(self, passes: int) -> dict[str, Any]:
        """Options of the models' ``learn``."""
        return {} if passes == 1 else {"passes": passes, "refine": self.refine}

    # The state before the first row, and during the warm-up.

    def _check_size(self) -> None:
        """Raise a ValueError where covariances would take too much memory, before anything of their size is made."""
        if isinstance(self._form, str) and self._form == "auto":
            return
        if not self._fits(self._form):
            numbers = count_numbers(self._form, self._layout) * len(self._scales)
            raise ValueError(
                f"covariance={self._form!r} of {self._layout.size} weights would take {8e-9 * numbers:.1f} GB for "
                f"{self._n_inputs} features; at most {8e-9 * _MOST_NUMBERS:.1f} GB are allowed: pass "
                "covariance='diagonal', or fewer features"
            )

    def _fits(self, form: Covariance) -> bool:
        """Whether covariances of this form are not too large for memory."""
        return count_numbers(form, self._layout) * len(self._scales) <= _MOST_NUMBERS

    @property
    def _form(self) -> Covariance:
        """The form of the models' covariance."""
        form: Covariance = self.covariance
        return form

    @property
    def _layout(self) -> Layout:
        """Sizes of the models' layers."""
        raise NotImplementedError

    def _restart(self, X: Any) -> None:
        self._check_size()
        if not self.standardize:
            names = self._input_names if hasattr(self, "feature_names_in_") else None
            warn_of_scales(self._scaled_columns(zero_for_nan(X)), names)
        self._input_scaling = Scaling.none(self._n_inputs)
        self._target_scaling = Scaling.none(self._n_targets)
        # Standardised models depend on the statistics of the first rows, so the warm-up makes them.
        self._mixtures = [] if self.standardize else self._new_mixtures()
        self._waiting = None
        self._start_counts()
        self._n_absurd = np.zeros(self._n_targets, dtype=np.int64)
        # Rows that set the scale have no density that was fixed before they came.
        self._unscored_rows, self._unscored_evidence = 0, 0.0

    def _start_counts(self) -> None:
        """Reset what is counted besides the models."""
        self._n_rows, self._short_weights = 0, np.zeros(self._n_targets)
        self._columns = ColumnMoments.start(self._n_inputs) if self.missing == "mean" else None

    def _with_warm_up(self, batch: Batch) -> Batch:
        """Start again from the statistics of all rows so far; what is to be learned are all of these rows."""
        batch = batch if self._waiting is None else batch.after(self._waiting)
        self._waiting = batch if len(batch) < self.warm_up else None
        absurd = self._absurd_targets(batch.part(0, self.warm_up))
        self._n_absurd = np.count_nonzero(absurd, axis=0)
        batch = batch.without(absurd) if absurd.any() else batch
        first = batch.part(0, self.warm_up)
        self._input_scaling = self._scaling_of_inputs(first)
        self._target_scaling = self._scaling_of_targets(first)
        self._mixtures = self._new_mixtures()
        self._start_counts()
        return batch

    def _scaling_of_inputs(self, batch: Batch) -> Scaling:
        """Statistics of rows of the warm-up; centring would fill sparse ones that could stay so."""
        if is_sparse(batch.rows) and self._keeps_sparse:
            return Scaling.of_entries(batch.rows, batch.weights)
        columns = self._scaled_columns(as_dense(batch.rows))
        weights = None if batch.weights is None else np.repeat(batch.weights, len(columns) // len(batch))
        return Scaling.of_near(columns, self.outliers, weights).repeated(self._n_inputs // columns.shape[1])

    def _new_mixtures(self) -> list[Mixture]:
        """Models that have learned nothing, a mixture per number of a target."""
        return [self._new_mixture(scale) for scale in self._target_scaling.scale]

    def _new_mixture(self, target_scale: float) -> Mixture:
        members = [self._new_member(scale, target_scale) for scale in self._scales]
        return Mixture(members, FadingWeights.start(len(members)))

    def _standardized(self, batch: Batch, size: int) -> Iterator[Batch]:
        """The batch as the models take it; sparse rows that have to be dense come in parts of ``size``."""
        targets, start = self._target_scaling(batch.targets), 0
        for rows in self._in_chunks(batch.rows, size):
            stop = start + rows.shape[0]
            weights = None if batch.weights is None else batch.weights[start:stop]
            variances = None
            if self._columns is not None and not is_sparse(rows):
                rows, variances, self._columns = self._columns.filled_in_order(rows, weights)
            yield Batch(rows, targets[start:stop], weights, variances if self._takes_variances else None)
            start = stop

    def _model_rows(self, X: Any) -> Iterator[ModelRows]:
        """Rows to predict, in chunks, with what is known now in the place of what is missing."""
        for rows in self._in_chunks(X, _CHUNK):
            variances = None
            if self._columns is not None and not is_sparse(rows):
                rows, variances = self._columns.filled(rows)
            yield ModelRows(rows, {} if variances is None or not self._takes_variances else {"X_var": variances})

    def _in_chunks(self, X: Any, size: int) -> Iterator[Any]:
        if not is_sparse(X):
            yield self._input_scaling(X)
        elif self._keeps_sparse and not self._input_scaling.centre.any():
            if self._columns is not None and np.isnan(X.data).any():
                raise ValueError(
                    "missing='mean' needs dense rows with covariance='diagonal', got a sparse X with NaN among its "
                    "entries; remove these entries, which makes them 0, or pass X.toarray()"
                )
            yield self._input_scaling.scale_entries(X)
        else:
            for start in range(0, X.shape[0], size):
                yield self._input_scaling(as_dense(X[start : start + size]))

    # What a subclass says.

    _takes_variances = False
    """Whether the models know what to do with inputs that are uncertain."""

    def _encoded(self, y: Any, classes: Any, *, restart: bool) -> FloatArray:
        """Targets as the models take them, ``(n,)`` or ``(n, q)``."""
        raise NotImplementedError

    def _with_class_weights(self, weights: FloatArray | None, targets: FloatArray) -> FloatArray | None:
        """Weights of rows, times those of their classes."""
        return weights

    def _new_member(self, scale: float, target_scale: float) -> Any:
        """Make a model that has learned nothing, with a prior of this scale, for targets divided by theirs."""
        raise NotImplementedError

    @property
    def _prediction_shape(self) -> tuple[int, ...]:
        """The shape of what is predicted of a row."""
        raise NotImplementedError

    def _predicted(self, predictions: list[Prediction]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise that the mixtures predicted, in the targets' own units."""
        raise NotImplementedError

    def _scaled_columns(self, X: Any) -> Any:
        """The numbers of rows ``(n, d)`` by the scale that they have, a column each."""
        return X

    def _scaling_of_targets(self, batch: Batch) -> Scaling:
        """Statistics of the targets in the warm-up, where these are numbers."""
        return self._target_scaling

    def _absurd_targets(self, batch: Batch) -> NDArray[np.bool_]:
        """Which targets ``(n, q)`` of the warm-up are set aside, since the others have shown what can't be."""
        return np.zeros(batch.targets.shape, dtype=bool)

    def _warn_of_targets(self, batch: Batch) -> None:
        """Warn of first targets that the prior can't explain."""

    @property
    def _n_targets(self) -> int:
        """How many numbers a target has."""
        return 1

    # What was learned.

    def __sklearn_is_fitted__(self) -> bool:
        return bool(getattr(self, "_mixtures", None))

    def _rows(self, X: Any) -> Iterator[ModelRows]:
        """Rows to predict, checked, standardised and in chunks."""
        check_is_fitted(self)
        return self._model_rows(self._checked_rows(X))

    def _member_predictions(self, mixture: Mixture, chunks: list[ModelRows]) -> Prediction:
        """What each component of a mixture predicts for rows in chunks, ``(components, n, ...)``."""
        return joined(mixture.member_predictions(rows.X, **rows.options) for rows in chunks)

    def _interval_parts(self, mixture: Mixture, chunks: list[ModelRows]) -> Prediction:
        """What the components take the quantiles of intervals from, ``(components, n, ...)``."""
        return joined(mixture.interval_predictions(rows.X, **rows.options) for rows in chunks)

    def linear_belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``(1 + d,)`` and covariance of the intercept and weights by which a perceptron predicts its next row.

        If inputs and targets are standardised, mean and covariance are in standardised units. With
        ``covariance="diagonal"`` the diagonal is returned, ``(1 + d,)``.
        """
        check_is_fitted(self)
        return joint_belief(self._mixtures[0])

    @property
    def n_seen_(self) -> int:
        """Rows learned, each counted once whatever its weight, and none of weight 0; `weight_sum_` sums the weights.

        Rows that `fit` takes for copies of the row before them are part of its weight.
        """
        check_is_fitted(self)
        return self._n_rows

    @property
    def covariance_(self) -> Covariance:
        """Which correlations between weights are kept; the choice made by ``covariance="auto"``."""
        check_is_fitted(self)
        chosen: Covariance = self._mixtures[0].members[0].covariance
        return chosen

    @property
    def prior_weights_(self) -> FloatArray:
        """Current weight of each prior scale, ``(k,)``, or ``(q, k)`` for several outputs."""
        check_is_fitted(self)
        weights = np.array([mixture.weights for mixture in self._mixtures])
        return np.asarray(weights[0] if len(weights) == 1 else weights)

    @property
    def outliers_(self) -> Any:
        """Estimated share of the targets that can't be trusted; ``(q,)`` for several outputs."""
        check_is_fitted(self)
        shares = [mixture.outliers_ for mixture in self._mixtures]
        return shares[0] if len(shares) == 1 else np.array(shares)

    @property
    def n_set_aside_(self) -> Any:
        """Targets that were counted but not learned, since they were absurdly far off; ``(q,)`` for several outputs."""
        check_is_fitted(self)
        counts = [int(n) + mixture.n_set_aside for n, mixture in zip(self._n_absurd, self._mixtures, strict=True)]
        return counts[0] if len(counts) == 1 else np.array(counts)

    @property
    def drift_(self) -> Any:
        """Current probability of each rate of drift; a list of such dictionaries for several outputs."""
        check_is_fitted(self)
        found = [mixture.drift_ for mixture in self._mixtures]
        return found[0] if len(found) == 1 else found

    @property
    def log_evidence_(self) -> float:
        """Sum of the log densities of all rows, each before it was learned, without the first ``warm_up`` rows.

        With ``prior_scale="auto"`` the densities are those of the mixture of all scales. Without ``standardize`` all
        rows count.
        """
        check_is_fitted(self)
        n_scored = self._n_observed - self._unscored_rows
        return float(self._evidence - self._unscored_evidence - self._log_scales @ n_scored)

    @property
    def weight_sum_(self) -> float:
        """Sum of the weights of all rows learned; without weights, the number of rows."""
        check_is_fitted(self)
        return float(np.max(self._n_observed))

    @property
    def _evidence(self) -> float:
        """Log evidence of all rows, standardised."""
        return float(sum(mixture.log_evidence for mixture in self._mixtures))

    @property
    def _log_scales(self) -> FloatArray:
        """By how much the log density of each standardised number of a target is larger than its own, ``(q,)``."""
        return np.log(self._target_scaling.scale)

    @property
    def _n_observed(self) -> FloatArray:
        """In how many rows each number of the targets was observed, ``(q,)``, by their weights."""
        seen = np.array([mixture.members[0].n_seen for mixture in self._mixtures], dtype=np.float64)
        return seen - self._short_weights


def _weights_of_observed(batch: Batch) -> FloatArray | None:
    """Weights of the rows, 0 for those of which the only number of the target was not observed."""
    unknown = np.isnan(batch.targets[:, 0]) if batch.targets.shape[1] == 1 else np.zeros(len(batch), dtype=bool)
    return np.where(unknown, 0.0, batch.full_weights) if unknown.any() else batch.weights


def _predict_score_learn(
    mixture: Mixture, rows: Any, column: FloatArray, options: dict[str, Any]
) -> tuple[Prediction, RowScores]:
    """Predict every row just before it is learned, or passed over because its target was not observed."""
    seen = ~np.isnan(column)
    if seen.all():
        return mixture._predict_then_learn(rows, column, **options)
    edges = [0, *(np.flatnonzero(np.diff(seen)) + 1).tolist(), len(seen)]
    predictions, scores = [], []
    for start, stop in pairwise(edges):
        part = slice(start, stop)
        if seen[start]:
            own_options = {name: values[part] for name, values in options.items()}
            prediction, own = mixture._predict_then_learn(rows[part], column[part], **own_options)
            scores.append(own[:3])
        else:
            own_options = {name: values[part] for name, values in options.items() if name != "sample_weight"}
            prediction = mixture.predict(rows[part], **own_options)
            scores.append((np.zeros(stop - start),) * 3)
        predictions.append(prediction)
    joined = Prediction(*map(np.concatenate, zip(*predictions, strict=True)))
    return joined, RowScores(*map(np.concatenate, zip(*scores, strict=True)))
