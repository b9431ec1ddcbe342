"""`AdaptiveIntervals`: a model whose intervals hold when the stream changes in ways that it did not foresee."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_row_weights
from onepass.files.registry import exported, restored, savable
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.models.ahead import RowsAhead
from onepass.models.distribution import Prediction
from onepass.models.online import OnlineModel
from onepass.models.tracking import LEVELS, QuantileTracker, TrackedPlaces, TrackedQuantiles

__all__ = ["AdaptiveIntervals", "given_quantiles", "track"]


def track(
    tracker: QuantileTracker,
    prediction: Prediction,
    y: FloatArray,
    sample_weight: FloatArray | None = None,
    limits: FloatArray | None = None,
) -> TrackedPlaces:
    """Track targets ``(n,)`` of rows, and return where they fell among the limits that these were given or now get.

    Targets are NaN where they were not observed. ``limits`` ``(n, q)`` are targets at the quantiles that rows were
    given when they were predicted earlier; NaN for rows that were not.
    """
    scores = np.atleast_1d(prediction.tracking_score(np.reshape(y, np.shape(prediction.moments.mean))))
    return TrackedPlaces(
        scores, tracker.update(scores, sample_weight, given_quantiles(tracker.normal, prediction, limits))
    )


def given_quantiles(normal: FloatArray, prediction: Prediction, limits: FloatArray | None) -> TrackedQuantiles | None:
    """The quantiles that rows were given: those of the prediction, or the normal scores of limits ``(n, q)``."""
    if limits is None or np.isnan(limits).all():
        return prediction.tracked
    scores = np.array(prediction.tracking_score(np.where(np.isnan(limits), 0.0, limits).T)).T
    return TrackedQuantiles(normal, np.ascontiguousarray(np.where(np.isnan(limits), np.nan, scores)))


class AdaptiveIntervals:
    """A model with intervals that are tracked as targets arrive.

    The limits of an interval are quantiles of the predictive distribution, in its own units. Each target moves them:
    out if it was beyond a limit, in if it was not. So in the long run the share of targets inside is the level, however
    the stream changes, as long as errors stay bounded in units of the model's standard deviation and of their own
    running size. Each row still has a wide or a narrow interval according to what the model knows. Predictions
    themselves don't change. While the model is right, intervals are wider by a few per cent.

    Parameters
    ----------
    model : BayesianPerceptron, BayesianNetwork or Mixture
        Of numbers or counts, with one output.
    levels : sequence of float
        Levels to track. Limits of levels in between are interpolated, and those beyond the largest extrapolated, which
        guarantees nothing. Limits of different levels never cross.

    Examples
    --------
    The noise is ten times as large from the middle of the stream on:

    >>> import numpy as np
    >>> from onepass import AdaptiveIntervals, BayesianPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> y = X.sum(axis=1) + np.repeat([0.3, 3.0], 2000) * rng.normal(size=4000)
    >>> plain = BayesianPerceptron(3, "linear", noise="learn").predict_then_learn(X, y).interval(0.95)
    >>> rows = AdaptiveIntervals(BayesianPerceptron(3, "linear", noise="learn")).predict_then_learn(X, y)
    >>> for low, high in (plain, rows.interval(0.95)):
    ...     inside = (low <= y) & (y <= high)
    ...     print(f"{inside[:2000].mean():.3f}, then {inside[2000:2500].mean():.3f}, {inside[2500:].mean():.3f}")
    0.947, then 0.448, 0.767
    0.950, then 0.948, 0.950
    """

    def __init__(self, model: OnlineModel, levels: Iterable[float] = LEVELS) -> None:
        if not isinstance(model, OnlineModel):
            raise TypeError(
                f"model must be a BayesianPerceptron, a BayesianNetwork or a Mixture, got {type(model).__name__}"
            )
        likelihood = model._likelihood
        if likelihood.is_label or getattr(model, "n_outputs", 1) > 1:
            raise ValueError(
                "intervals can be tracked for numbers and counts with one output; for labels and classes the interval "
                "is that of a probability, which is never observed"
            )
        self.model = model
        self.tracker = QuantileTracker(levels)

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return int(self.model.n_seen)

    def learn(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, **options: Any) -> Self:
        """Learn rows in their order, and track where their targets fall; the arguments are those of the model."""
        self.predict_then_learn(X, y, sample_weight=sample_weight, **options)
        return self

    def predict_then_learn(
        self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, **options: Any
    ) -> Prediction:
        """Predict every row just before learning it, with the intervals that hold then."""
        seen, _ = self.model.predict_score_learn(X, y, sample_weight=sample_weight, **options)
        return self.observe(seen, y, sample_weight)

    def observe(self, prediction: Prediction, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Prediction:
        """Track targets of rows that were predicted before and are not learned, such as targets that come late.

        They are scored with the limits that `predict` gave. Returns the prediction, with the limits that counted.
        """
        mean = prediction.moments.mean
        if isinstance(mean, float) or mean.ndim == 0:
            return self._observe_one(prediction, y, sample_weight)
        targets, shape = np.asarray(y, dtype=np.float64), mean.shape
        if targets.shape != shape and targets.size != int(np.prod(shape)):
            raise ValueError(
                f"y must have one target for each row of the prediction, shape {shape}, got {targets.shape}"
            )
        weights = as_row_weights(sample_weight, targets.size)
        return prediction.with_tracked(track(self.tracker, prediction, targets, weights).tracked)

    def _observe_one(self, prediction: Prediction, y: ArrayLike, sample_weight: ArrayLike | None) -> Prediction:
        if not isinstance(y, float):
            targets = np.asarray(y, dtype=np.float64)
            if targets.size != 1:
                raise ValueError(f"y must be the one target of the row that was predicted, got shape {targets.shape}")
            y = targets.item()
        weights = as_row_weights(sample_weight, 1)
        weight = 1.0 if weights is None else float(weights[0])
        score = prediction.tracking_score(y)
        return prediction.with_tracked(self.tracker.update_one(score, weight, prediction.tracked))

    def predict(self, X: Any, *, rows_ahead: RowsAhead = 1, **options: Any) -> Prediction:
        """Predict as the model does, with the intervals that hold now."""
        return self.model.predict(X, rows_ahead=rows_ahead, **options).with_tracked(self.tracker.next)

    def interval(self, X: Any, level: float = 0.95, **options: Any) -> tuple[Any, Any]:
        """Lower and upper limits for new targets, by the tracked quantiles as they are now."""
        return self.predict(X, **options).interval(level)

    def __repr__(self) -> str:
        return f"AdaptiveIntervals({self.model!r}, levels={self.tracker.levels})"

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = exported(self.model)
        own = nested("tracker", self.tracker.to_arrays())
        return {"class": type(self.model).__name__, "model": parameters}, {**nested("model", arrays), **own}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the object that `export_state` described."""
        new = cls(restored(savable(parameters["class"]), parameters["model"], under("model", arrays)))
        new.tracker = QuantileTracker.from_arrays(under("tracker", arrays))
        return new
