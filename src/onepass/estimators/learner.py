"""What learns inside an estimator: an encoder of inputs, one of targets, the warm-up, and the models, with their state.

However calls divide the rows, they are learned in one pass and in order: the state after ``n`` rows depends on these
rows alone, so ``fit`` and any sequence of ``partial_fit`` agree, unless ``fit`` shuffles its rows or goes over them
several times. That holds for standardisation too: its statistics are those of the first ``warm_up`` rows. Until that
many rows have come, they are kept, and all of them are learned again with new statistics whenever more come. These rows
are not scored: the evidence counts only the rows after them.

A `Learner` takes rows that are encoded: numbers ``(n, d)``, dense or sparse, and targets as the models learn them. It
checks nothing, which saves a third of the time of `partial_fit`; estimators check what users give.
"""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.estimators.blueprints import Blueprint
from onepass.estimators.inputs import InputEncoder
from onepass.estimators.posterior import joint_belief
from onepass.estimators.refinement import (
    MOST_SITE_NUMBERS,
    PASSES,
    Schedule,
    best_passes,
    held_out_densities,
    trial_split,
)
from onepass.estimators.rows import PredictedRows, Rows, as_dense, is_sparse
from onepass.estimators.scaling import Scaling, warn_of_scales, zero_for_nan
from onepass.estimators.standardizer import Standardizer
from onepass.estimators.targets import ClassTargets
from onepass.models.adaptive import track
from onepass.models.calibration import CalibrationMap
from onepass.models.distribution import LinearUnits, Prediction
from onepass.models.missing import COLUMNS, Columns
from onepass.models.mixture import Mixture, joined
from onepass.models.prediction import PredictedMoments, RowScores
from onepass.models.tracking import QuantileTracker, TrackedPlaces

__all__ = ["Learner", "LearnerState", "member_predictions"]

_CHUNK = 4096  # sparse rows made dense at a time
_LARGEST = 1e150  # number in a row that goes the short way, or its target: squares stay finite


@dataclass
class LearnerState:
    """All that learning changes."""

    inputs: Scaling
    targets: Scaling
    columns: Columns | None  # for imputing missing inputs
    short_weights: FloatArray  # by how much all weights of rows together fall short of 1 each, per number of a target
    n_absurd: NDArray[np.int64]  # targets that the warm-up has set aside, likewise
    mixtures: list[Mixture]  # one per number of a target; none before the first row of a warm-up
    trackers: list[QuantileTracker]  # of adaptive intervals, likewise; none where intervals are the models'
    calibration: CalibrationMap | None = None  # where probabilities of classes are calibrated
    waiting: Rows | None = None  # rows of a warm-up that is not over
    n_entries: float | None = None  # of a sparse row that stays so, in the mean over the warm-up
    n_rows: int = 0
    n_passes: int = 1
    unscored_rows: int = 0  # rows that set the scale have no density that was fixed before they came
    unscored_evidence: float = 0.0


class Learner:
    """Models that learn encoded rows, with all that rows and targets pass through on their way.

    Parameters
    ----------
    encoder : InputEncoder
    blueprint : Blueprint
        It makes the models, and knows the encoding of targets.
    schedule : Schedule
        How `fit` goes over its rows.
    n_features : int
        Columns of a row before it is encoded.
    """

    def __init__(self, encoder: InputEncoder, blueprint: Blueprint, schedule: Schedule, n_features: int) -> None:
        self.encoder, self.blueprint, self.schedule = encoder, blueprint, schedule
        self.targets = blueprint.targets
        self.n_features = n_features
        given = blueprint.given
        self.arguments = tuple((name, own) for name, own in vars(given).items() if name not in schedule.arguments)
        is_plain = encoder.categories is None and encoder.image_shape is None
        self.row_shape = (1, n_features) if is_plain else None  # of a row that is encoded as it is
        self._columns = COLUMNS.get(encoder.missing)
        # Values change what stands in for missing ones; else a row without gaps needs nothing of it.
        self._learns_columns = self._columns is not None and self._columns.learns
        self._n_told = 0  # targets that were set aside and have been asked for
        self.standardizer = Standardizer(
            given.warm_up if given.standardize else 0,
            given.outliers,
            blueprint.targets_by,
            blueprint.keeps_sparse,
            encoder.n_channels,
        )

    state: LearnerState

    def start(self) -> Self:
        """Forget everything; without a warm-up the models then predict by their priors."""
        self.blueprint.check_size()
        q = self.targets.n_targets
        self.state = LearnerState(
            Scaling.none(self.blueprint.n_inputs),
            Scaling.none(q),
            None,
            np.zeros(q),
            np.zeros(q, dtype=np.int64),
            mixtures=[],
            trackers=[],
        )
        self._start_counts()
        if not self.standardizer.warm_up:  # else the models depend on the statistics of the first rows
            self.state.mixtures = self._new_mixtures()
        return self

    def warn_of_scales(self, X: Any, names: list[str] | None) -> None:
        """Warn of inputs whose scales differ too much for one prior, where they are not standardised."""
        if not self.standardizer.warm_up:
            warn_of_scales(self.standardizer.columns(zero_for_nan(X)), names)

    # Learning.

    def fit(self, rows: Rows) -> None:
        """Learn all rows of a batch as the schedule says, by a learner that has learned nothing."""
        batch = rows.in_columns.without_zeros()
        schedule = self.schedule
        if schedule.merges_repeats:
            batch = batch.run_length_encoded()
        rng = np.random.default_rng([self.blueprint.seed, len(batch)])
        if schedule.shuffle:
            batch = batch.at(rng.permutation(len(batch)))
        passes = self._choose_passes(batch, rng) if isinstance(schedule.passes, str) else int(schedule.passes)
        self.learn(batch, passes)
        self.state.n_passes = passes

    def learn(self, rows: Rows, passes: int = 1) -> None:
        """Learn rows in their order."""
        given = rows.in_columns.without_zeros()
        if not len(given):
            return
        with self._all_or_none(given):
            for batch, times in self._stages(given, passes):
                options: dict[str, Any] = {} if times == 1 else {"passes": times, "refine": self.schedule.refine}
                for part in self._standardized(batch, len(batch) if times > 1 else _CHUNK):
                    for k, own in part.observed_columns():
                        if follows := bool(self.state.trackers or self.state.calibration):
                            self._follow(k, own, times)
                        if times > 1 or not follows:
                            self.state.mixtures[k].learn(own.X, own.y, **own.options, **options)
                    self._note_weights(part)
                self.state.n_rows += len(batch)

    def _follow(self, k: int, batch: Rows, passes: int) -> None:
        """Learn one number of the targets in one pass, and follow where it falls in what was predicted.

        Of several passes only the first predicts what it has not learned: then it is a copy that learns.
        """
        mixture = self.state.mixtures[k]
        model = mixture if passes == 1 else mixture.snapshot()
        seen, _ = model.predict_score_learn(batch.X, batch.y, **batch.options)
        if self.state.calibration is None:
            track(self.state.trackers[k], seen, batch.y, batch.weights)
        else:
            self.state.calibration.learn(seen.probabilities, batch.y, batch.weights)

    def learn_row(self, row: FloatArray, target: float) -> bool:
        """Learn one dense row ``(d,)`` of float64; False, and nothing learned, if that takes more than this."""
        state = self.state
        takes_more = self._learns_columns or len(state.mixtures) != 1 or state.trackers or state.calibration
        if state.n_rows < self.standardizer.warm_up or takes_more:
            return False
        if (scaled := self.scaled(row)) is None or not abs(target) < _LARGEST:
            return False
        if not state.targets.is_identity:
            target = (target - state.targets.centre.item()) / state.targets.scale.item()
        try:
            state.mixtures[0].learn(scaled, target)
        except ValueError:  # no count, or a sum that overflows: the long way says so
            return False
        state.n_rows += 1
        return True

    def scaled(self, row: FloatArray) -> FloatArray | None:
        """A row ``(d,)`` as the models take it; None if it is not finite or so large that something may overflow.

        This is the only check of a single row: it takes no function of Python, as `numpy.errstate` would.
        """
        if not np.maximum.reduce(np.abs(row)) < _LARGEST:
            return None
        scaling = self.state.inputs
        return row if scaling.is_identity else (row - scaling.centre) / scaling.scale

    @contextmanager
    def _all_or_none(self, rows: Rows) -> Iterator[None]:
        """Go back to the models and the warm-up from before if a row can't be learned.

        A model goes back itself, but not over several batches, as there are around rows without a target, nor does it
        know of the models of other outputs.
        """
        before, X = copy.copy(self.state), rows.X
        in_parts = (is_sparse(X) and len(rows) > _CHUNK) or np.isnan(rows.y).any()
        if len(before.mixtures) > 1 or in_parts:
            before.mixtures = [mixture.snapshot() for mixture in before.mixtures]
        before.trackers = [tracker.copy() for tracker in before.trackers]
        if before.calibration is not None and len(rows) > 1:  # of one row it learns only what the models have learned
            before.calibration = before.calibration.copy()
        try:
            yield
        except BaseException:  # Ctrl-C too
            self.state = before
            raise

    def _stages(self, batch: Rows, passes: int) -> Iterator[tuple[Rows, int]]:
        """What is to be learned one after the other, and in how many passes: the rows of a warm-up on their own."""
        if not self.is_warming_up:
            yield batch, passes
            return
        state, warm_up = self.state, self.standardizer.warm_up
        batch = self._with_warm_up(batch)
        first, rest = batch.at(slice(0, warm_up)), batch.at(slice(warm_up, None))
        yield first, 1
        if state.waiting is None:  # else the next row changes the evidence, which takes long with many features
            state.unscored_rows, state.unscored_evidence = len(first), self._evidence
            # So that `log_evidence` takes no scale off for what was not observed in these rows.
            state.unscored_evidence += float(self._log_scales @ (len(first) - self._n_observed))
        if passes > 1:  # which take all rows together: the first stage has but shown the evidence of the warm-up
            state.mixtures = self._new_mixtures()
            self._start_counts()
            yield batch, passes
        elif len(rest):
            yield rest, passes

    def _choose_passes(self, batch: Rows, rng: np.random.Generator) -> int:
        """How often to go over a batch; of several members the first one is asked."""
        split, widths = trial_split(batch, rng), self.blueprint.layout.widths
        site_numbers = sum(widths) * (1 + widths[-1]) * self.blueprint.given.members * len(batch)  # or fewer
        if split is None or self.schedule.once or site_numbers > MOST_SITE_NUMBERS:
            return 1
        learned, held_out = split
        trial = copy.copy(self)
        trial.state = copy.copy(self.state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with the rows is said when they are learned
            learned = trial._with_warm_up(learned) if self.standardizer.warm_up else learned
        mixtures = trial._new_mixtures()
        if not mixtures[0].keeps_sites:
            return 1
        (learned,) = trial._standardized(learned, len(learned))
        (held_out,) = trial._standardized(held_out, len(held_out))
        tested, densities = dict(held_out.observed_columns()), np.zeros(len(PASSES))
        for k, own in learned.observed_columns():
            if k in tested:
                densities += held_out_densities(mixtures[k].members[0], own, tested[k])
        return best_passes(densities)

    def predict_then_learn(self, rows: Rows) -> PredictedRows:
        """Predict rows, then learn them.

        Their ``limits`` are those that they were given when they were predicted earlier: see
        `onepass.models.adaptive.track`.

        A row of weight 0 is predicted, but neither scored nor learned. The first ``warm_up`` rows are not scored
        either: except for the first, which is not predicted, they are predicted with the scale of earlier rows.
        """
        batch, parts = rows.in_columns, []
        if batch.weights is not None:  # a row without a target is passed over
            batch = replace(batch, y=np.where(batch.weights[:, None] > 0.0, batch.y, np.nan))
        with self._all_or_none(batch):
            while self.is_warming_up and len(batch):
                # As many rows at a time as there were before: all of them together are then learned but twice.
                n_rows = self.state.n_rows
                size = max(1, min(n_rows, self.standardizer.warm_up - n_rows))
                first, batch = batch.at(slice(0, size)), batch.at(slice(size, None))
                parts.append(self._predicted_before(first))
                self.learn(replace(first, weights=_weights_of_observed(first)))
            for part in self._standardized(batch, _CHUNK) if len(batch) or not parts else ():
                parts.append(self._predict_then_learn_warm(part))
            self.state.n_rows += batch.n_counted
        return PredictedRows.joined(parts)

    def _predict_then_learn_warm(self, part: Rows) -> PredictedRows:
        """Predict standardised rows, then learn them."""
        predictions, scores, places = [], [], []
        for k, mixture in enumerate(self.state.mixtures):
            own = replace(part, y=part.y[:, k])
            if np.isnan(own.y).any():
                seen, found = _learned_around_gaps(mixture, own)
            else:
                seen, found = mixture.predict_score_learn(own.X, own.y, **own.options)
            predictions.append(seen)
            scores.append(found[:3])
            if self.state.trackers:
                places.append(track(self.state.trackers[k], seen, own.y, own.weights, own.limits))
        self._note_weights(part)
        moments = self._decoded(predictions)
        predicted = self._scored(part, moments, scores)
        if (calibration := self.state.calibration) is not None:
            calibrated = calibration.calibrate_then_learn(moments[0], part.y[:, 0], part.weights)
            predicted = predicted.with_probabilities(calibrated, part.y[:, 0])
        return predicted._replace(places=places[0]) if len(places) == 1 else predicted

    def _predicted_before(self, batch: Rows) -> PredictedRows:
        """What is predicted of rows of a warm-up; nothing (NaN) before the first, and none is scored."""
        unknown = np.full(len(batch), np.nan)
        if not self.state.mixtures:
            nothing = np.full((len(batch), *self.targets.prediction_shape), np.nan)
            return PredictedRows(nothing, nothing, nothing, unknown, 0.0 * unknown, 0.0 * unknown)
        mean, var, noise_var = self.predict(batch.X)
        return PredictedRows(mean, var, noise_var, unknown, np.zeros(len(batch)), np.zeros(len(batch)))

    def score(self, rows: Rows) -> PredictedRows:
        """Predict and score rows as `predict_then_learn`, without learning them; not during the warm-up."""
        parts = []
        for part in self._standardized(replace(rows.in_columns, weights=None), _CHUNK):
            pairs = list(zip(self.state.mixtures, part.y.T, strict=True))
            seen = [mixture.predict(part.X, **part.options) for mixture, _ in pairs]
            scores = [mixture._scores(part.X, column, **part.options) for mixture, column in pairs]
            found = self._scored(part, self._decoded(seen), [(*own, np.zeros(len(part))) for own in scores])
            if len(self.state.trackers) == 1:  # limits stay while nothing is learned
                held = self.state.trackers[0].next
                limits = held._replace(quantiles=held.of_rows(len(part)))
                found = found._replace(places=TrackedPlaces(seen[0].tracking_score(part.y[:, 0]), limits))
            if (calibration := self.state.calibration) is not None:
                found = found.with_probabilities(calibration(found.mean), part.y[:, 0])
            parts.append(found)
        return PredictedRows.joined(parts)

    def _scored(self, part: Rows, moments: Any, scores: list[Any]) -> PredictedRows:
        """Moments of predictions with the scores of all mixtures: log densities, outliers and changes."""
        densities, outliers, changes = (np.array(own) for own in zip(*scores, strict=True))
        observed, transform = ~np.isnan(part.y), self.targets.transform
        log_density = densities.sum(axis=0) - observed @ self._log_scales
        if transform is not None:
            given = transform.from_model(self.state.targets.undo(part.y))
            log_density += np.where(observed, transform.log_slope(given), 0.0).sum(axis=1)
        mean, var, noise_var = moments
        return PredictedRows(mean, var, noise_var, log_density, outliers.max(axis=0), changes.max(axis=0))

    def _note_weights(self, batch: Rows) -> None:
        """Note as how many rows those count that were learned."""
        if batch.weights is not None:
            short = (1.0 - batch.weights) @ ~np.isnan(batch.y)
            self.state.short_weights = self.state.short_weights + short

    def with_classes(self, targets: ClassTargets) -> "Learner":
        """A learner that keeps what this one has learned, of the same classes and some new ones after them."""
        more = Learner(self.encoder, replace(self.blueprint, targets=targets), self.schedule, self.n_features)
        state = more.state = copy.copy(self.state)
        if (waiting := state.waiting) is not None:
            state.waiting, state.n_rows, state.mixtures = None, 0, []
            more.learn(waiting)
            return more
        if state.calibration is not None:
            state.calibration = state.calibration.with_classes(len(targets.classes))
        if self.targets.is_binary:
            state.mixtures = more._new_mixtures()
            for mixture, two in zip(state.mixtures, self.state.mixtures, strict=True):
                more.blueprint.continue_from_two_classes(mixture, two)
        else:
            form = self.blueprint.given.covariance
            state.mixtures = [mixture.with_outputs(len(targets.classes), form) for mixture in state.mixtures]
        return more

    def close_block(self) -> None:
        """Finish the block of rows that were learned one per call: see `onepass.BayesianNetwork.close_block`.

        After this call the rounding errors of later rows do not depend on whether the learner was saved in between.
        """
        for mixture in self.state.mixtures:
            mixture.close_block()

    # The warm-up.

    @property
    def is_warming_up(self) -> bool:
        """Whether more rows are needed to standardise by."""
        return self.state.n_rows < self.standardizer.warm_up

    def _start_counts(self) -> None:
        """Reset what is counted besides the models."""
        state = self.state
        q = self.targets.n_targets
        state.n_rows, state.short_weights, state.n_passes = 0, np.zeros(q), 1
        state.trackers = [QuantileTracker() for _ in range(q)] if self.blueprint.tracks_intervals else []
        state.calibration = CalibrationMap(len(self.targets.classes)) if self.blueprint.calibrates else None
        state.columns = None if self._columns is None else self._columns.start(self.blueprint.n_inputs)

    def _new_mixtures(self) -> list[Mixture]:
        """Models that have learned nothing, a mixture per number of a target."""
        return [self.blueprint.mixture(scale, self.state.n_entries) for scale in self.state.targets.scale]

    def _with_warm_up(self, batch: Rows) -> Rows:
        """Start again from the statistics of all rows so far; what is to be learned are all of these rows."""
        state, standardizer = self.state, self.standardizer
        batch = batch if state.waiting is None else Rows.joined([state.waiting, batch])
        state.waiting = batch if len(batch) < standardizer.warm_up else None
        absurd = standardizer.absurd(batch.at(slice(0, standardizer.warm_up)))
        state.n_absurd = np.count_nonzero(absurd, axis=0)
        batch = batch.without(absurd) if absurd.any() else batch
        first = batch.at(slice(0, standardizer.warm_up))
        stays_sparse = is_sparse(first.X) and standardizer.keeps_sparse
        state.n_entries = first.X.count_nonzero() / len(first) if stays_sparse else None
        state.inputs, state.targets = standardizer.of_inputs(first), standardizer.of_targets(first)
        state.mixtures = self._new_mixtures()
        self._start_counts()
        return batch

    # Rows as the models take them.

    def _standardized(self, batch: Rows, size: int) -> Iterator[Rows]:
        """The batch as the models take it; sparse rows that have to be dense come in parts of ``size``."""
        targets, start = self.state.targets(batch.y), 0
        for rows in self._in_chunks(batch.X, size):
            stop = start + rows.shape[0]
            weights = None if batch.weights is None else batch.weights[start:stop]
            variances, columns = None, self.state.columns
            if columns is not None and not is_sparse(rows):
                rows, variances, self.state.columns = columns.filled_in_order(rows, weights)
            if not self.blueprint.takes_variances:
                variances = None
            limits = None
            if batch.limits is not None:
                limits = self.state.targets(batch.limits[start:stop].reshape(-1, 1)).reshape(rows.shape[0], -1)
            yield Rows(rows, targets[start:stop], weights, variances=variances, limits=limits)
            start = stop

    def rows(self, X: Any) -> Iterator[Rows]:
        """Rows to predict, in chunks, with what is known now in the place of what is missing."""
        columns = self.state.columns
        for rows in self._in_chunks(X, _CHUNK):
            variances = None
            if columns is not None and not is_sparse(rows):
                rows, variances = columns.filled(rows)
            yield Rows(rows, variances=variances if self.blueprint.takes_variances else None)

    def _in_chunks(self, X: Any, size: int) -> Iterator[Any]:
        scaling = self.state.inputs
        if not is_sparse(X):
            yield scaling(X)
        elif self.standardizer.keeps_sparse and not scaling.centre.any():
            if self.state.columns is not None and np.isnan(X.data).any():
                raise ValueError(
                    f"missing={self.encoder.missing!r} needs dense rows with covariance='diagonal', got a sparse X "
                    "with NaN among its entries; remove these entries, which makes them 0, or pass X.toarray()"
                )
            yield scaling.scale_entries(X)
        else:
            for start in range(0, X.shape[0], size):
                yield scaling(as_dense(X[start : start + size]))

    # Predicting.

    def predict(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise of each target, in its own units; of classes those of their probabilities."""
        parts = [
            self._decoded([mixture.predict(rows.X, **rows.options) for mixture in self.state.mixtures])
            for rows in self.rows(X)
        ]
        mean, var, noise_var = map(np.concatenate, zip(*parts, strict=True))
        return self.calibrated(mean), var, noise_var

    def calibrated(self, probabilities: FloatArray) -> FloatArray:
        """What probabilities of the models ``(n, K)`` are worth, where they are calibrated; else they themselves."""
        calibration = self.state.calibration
        return probabilities if calibration is None else calibration(probabilities)

    def predict_row(self, row: FloatArray) -> Prediction | None:
        """What the only model predicts for one dense row ``(d,)`` of float64; None if that takes more than this."""
        state = self.state
        if self._learns_columns or len(state.mixtures) != 1:
            return None
        member, *others = state.mixtures[0].members
        if others or (scaled := self.scaled(row)) is None:
            return None
        found: Prediction = member.predict(scaled)
        return found

    def _decoded(self, predictions: list[Prediction]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance and noise of each target, in its own units."""
        if self.targets.transform is None:
            found: tuple[FloatArray, FloatArray, FloatArray] = self.targets.decode(
                [seen.moments for seen in predictions], self.state.targets
            )
            return found
        given = [self._as_given(k, seen) for k, seen in enumerate(predictions)]
        mean, var, noise = (
            self.targets.shaped(np.column_stack([getattr(seen, name) for seen in given]))
            for name in ("mean", "epistemic", "aleatoric")
        )
        return mean, var, noise

    def outlier_probability(self, given: Rows) -> FloatArray:
        """Probability that each target is not to be trusted, ``(n,)``; of several numbers that of the worst."""
        columns, start = self.state.targets(given.in_columns.y), 0
        found = np.zeros(columns.shape)
        for rows in self.rows(given.X):
            stop = start + len(rows)
            part = replace(rows, y=columns[start:stop])
            for k, own in part.observed_columns():
                seen, model = ~np.isnan(part.y[:, k]), self.state.mixtures[k]
                found[start:stop][seen, k] = model.outlier_probability(own.X, own.y, **own.options)
            start = stop
        return np.asarray(found.max(axis=1))

    def parts(self, X: Any) -> list[tuple[Mixture, PredictedMoments]]:
        """Every mixture with what each of its components predicts, ``(components, n, ...)``."""
        chunks = list(self.rows(X))
        return [(mixture, member_predictions(mixture, chunks)) for mixture in self.state.mixtures]

    def distributions(self, X: Any) -> list[Prediction]:
        """Predictive distributions of each output, in the targets' own units; of classes by their places."""
        chunks, calibration = list(self.rows(X)), self.state.calibration
        found = [
            self._as_given(k, Prediction.joined([mixture.predict(rows.X, **rows.options) for rows in chunks]))
            for k, mixture in enumerate(self.state.mixtures)
        ]
        if calibration is None:
            return found
        return [seen.with_probabilities(calibration(seen.probabilities)) for seen in found]

    def _as_given(self, k: int, seen: Prediction) -> Prediction:
        """What was predicted of one number of the targets in its own units, with the limits that are tracked."""
        state = self.state
        if self.targets.transform is not None or not state.targets.is_identity:
            units = LinearUnits(state.targets.centre[k].item(), state.targets.scale[k].item())
            seen = seen.in_units(self.targets.given_units(units))
        return seen.with_tracked(state.trackers[k].next) if state.trackers else seen

    def interval(self, X: Any, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the central interval of each output, ``(n, q)``; of classes those of their probabilities."""
        if isinstance(X, np.ndarray) and len(X) == 1 and (seen := self.predict_row(X[0])) is not None:
            low, high = (np.atleast_2d(side) for side in self._as_given(0, seen).interval(level))
            return low, high
        sides = [seen.interval(level) for seen in self.distributions(X)]
        low, high = (np.column_stack(side) for side in zip(*sides, strict=True))
        return low, high

    # What was learned.

    def linear_belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``(1 + d,)`` and covariance of the intercept and weights by which a perceptron predicts its next row.

        If inputs and targets are standardised, mean and covariance are in standardised units. With
        ``covariance="diagonal"`` the diagonal is returned, ``(1 + d,)``.
        """
        return joint_belief(self.state.mixtures[0])

    @property
    def n_set_aside(self) -> NDArray[np.int64]:
        """Targets that were counted but not learned, since they were absurdly far off, ``(q,)``."""
        found = [mixture.n_set_aside for mixture in self.state.mixtures]
        return self.state.n_absurd + np.array(found, dtype=np.int64)

    def newly_set_aside(self) -> int:
        """How many more targets have been set aside since this was asked the last time."""
        count: int = sum(self.state.n_absurd.tolist())
        for mixture in self.state.mixtures:
            first, *others = mixture.members
            count += mixture.n_set_aside if others else first.n_set_aside
        before, self._n_told = self._n_told, count
        return count - before

    @property
    def log_evidence(self) -> float:
        """Sum of the log densities of all rows after the warm-up, each before it was learned."""
        if self.is_warming_up:
            return 0.0
        n_scored = self._n_observed - self.state.unscored_rows
        return float(self._evidence - self.state.unscored_evidence - self._log_scales @ n_scored)

    @property
    def weight_sum(self) -> float:
        """Sum of the weights of all rows learned."""
        return float(np.max(self._n_observed))

    @property
    def _evidence(self) -> float:
        """Log evidence of all rows, standardised."""
        return float(sum(mixture.log_evidence for mixture in self.state.mixtures))

    @property
    def _log_scales(self) -> FloatArray:
        """By how much the log density of each standardised number of a target is larger than its own, ``(q,)``."""
        return np.log(self.state.targets.scale)

    @property
    def _n_observed(self) -> FloatArray:
        """In how many rows each number of the targets was observed, ``(q,)``, by their weights."""
        seen = np.array([mixture.members[0].n_seen for mixture in self.state.mixtures], dtype=np.float64)
        return seen - self.state.short_weights


def member_predictions(mixture: Mixture, chunks: list[Rows]) -> PredictedMoments:
    """What each component of a mixture predicts for rows in chunks, ``(components, n, ...)``."""
    return joined(mixture.member_predictions(rows.X, **rows.options) for rows in chunks)


def _weights_of_observed(batch: Rows) -> FloatArray | None:
    """Weights of the rows, 0 for those of which the only number of the target was not observed."""
    unknown = np.isnan(batch.y[:, 0]) if batch.y.shape[1] == 1 else np.zeros(len(batch), dtype=bool)
    return np.where(unknown, 0.0, batch.full_weights) if unknown.any() else batch.weights


def _learned_around_gaps(mixture: Mixture, rows: Rows) -> tuple[Prediction, RowScores]:
    """Predict every row just before it is learned, or passed over because its target was not observed."""
    seen = ~np.isnan(rows.y)
    edges = [0, *(np.flatnonzero(np.diff(seen)) + 1).tolist(), len(seen)]
    predictions, scores = [], []
    for start, stop in pairwise(edges):
        part = rows.at(slice(start, stop))
        if seen[start]:
            prediction, own = mixture.predict_score_learn(part.X, part.y, **part.options)
            scores.append(own[:3])
        else:
            prediction = mixture.predict(part.X, **replace(part, weights=None).options)
            scores.append((np.zeros(stop - start),) * 3)
        predictions.append(prediction)
    return Prediction.joined(predictions), RowScores(*map(np.concatenate, zip(*scores, strict=True)))
