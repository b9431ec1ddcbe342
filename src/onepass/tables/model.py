"""A model of a table: what the columns mean, what is predicted, and the estimator that learns it, in one file.

`TabularModel` takes rows as they are in files and answers in the target's own units and labels. Everything that the
meaning of a row depends on is part of it, so the file is all that is needed to continue to learn or predict.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from onepass._typing import FloatArray
from onepass.beliefs.choice import Covariance, belief_type, choose_covariance
from onepass.beliefs.network import NetworkBelief
from onepass.beliefs.prior import takes_sparse_rows
from onepass.estimators import FleetEstimator, learner_of, start_learner
from onepass.estimators.rows import PredictedRows, Rows
from onepass.files.registry import exported, restored
from onepass.files.state import Arrays, Parameters, as_tally, nested, under
from onepass.layers.layout import Layout
from onepass.models.distribution import Prediction
from onepass.tables import description
from onepass.tables.advice import Advice
from onepass.tables.better_of_two import BetterOfTwo, estimator_class
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.roles import read_keys, read_weights
from onepass.tables.forward_record import ForwardTest, widened
from onepass.tables.history import TrainingHistory
from onepass.tables.prediction import as_given_levels, limit_names, predict_distributions, predict_rows
from onepass.tables.readers.batches import RowBatch
from onepass.tables.reasons import Reason
from onepass.tables.rejects import rejects_of
from onepass.tables.row_cost import LONGEST_ROW, RowCost
from onepass.tables.settings import Settings, make_estimator
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget, Target, target_from_state
from onepass.tables.timeline import Timeline
from onepass.tables.weights import Weight, feature_weights

__all__ = ["TabularModel"]

_BLOCK = 2**23  # numbers in a block of rows
_COMPARED = 256  # rows that two estimators learn at once
_BUFFER = 2**14  # rows that are shuffled together
_LONGEST_PASS = 25.0  # seconds of a slow core, of which a batch takes several
_WORDS = 4096  # of a text, in which sparse rows have room; one that is longer takes more


class TabularModel:
    """An estimator together with what its inputs and targets mean.

    Parameters
    ----------
    encoding : Encoding
    target : NumberTarget or ClassTarget
    settings : Settings
    """

    def __init__(self, encoding: Encoding, target: Target, settings: Settings | None = None) -> None:
        self.encoding = encoding
        self.target = target
        settings = settings or Settings()
        self.estimator: Any = make_estimator(len(encoding.features), target, settings)
        self.weight: str | None = settings.weight
        self.by: str | None = settings.by
        self.time: Timeline | None = settings.time if isinstance(settings.time, Timeline) else None
        self._check_cost()
        self.n_rows: int = 0
        self.n_rejected: int = 0
        self.history: TrainingHistory = TrainingHistory()
        """The runs in which it has learned, and their files."""
        self.kind_reason: str = ""
        """Why no network was tried, where that was left open."""
        self.advice: tuple[Advice, ...] = ()
        """What to ask about the table it was made for; not in files."""
        self.forward_test: ForwardTest | None = None
        """How it predicted rows ahead of those that it had learned, where that was tested."""

    @classmethod
    def around(cls, estimator: Any, encoding: Encoding, target: Target) -> Self:
        """The model of a table whose estimator has learned elsewhere, from rows encoded in this way."""
        model = cls.__new__(cls)
        model.encoding, model.target, model.estimator = encoding, target, estimator
        model.weight = model.by = model.time = None
        model.n_rows, model.n_rejected = int(estimator.n_seen_), 0
        model.history, model.kind_reason, model.advice = TrainingHistory(), "", ()
        model.forward_test = None
        return model

    def __repr__(self) -> str:
        return (
            f"TabularModel(target={self.target.name!r}, model={type(self._answering).__name__}, n_rows={self.n_rows})"
        )

    def _check_cost(self) -> None:
        """Refuse a model whose rows take so long that it is of no use."""
        if self.cost.to_learn <= LONGEST_ROW:
            return
        sizes: dict[str, Any] = {"outputs": self.layers[-1], "weights": self.n_weights, "most": LONGEST_ROW}
        raise SchemaError(
            Reason("row_too_slow", value=self.covariance, seconds=self.cost.to_learn, **sizes),
            suggestions={"covariance": "auto", "hidden": "", "classes": ""},
        )

    @property
    def is_network(self) -> bool:
        """Whether there are hidden layers."""
        return bool(getattr(self.estimator, "hidden_layer_sizes", ()))

    @property
    def may_be_network(self) -> bool:
        """Whether it is a network, or has one among the estimators that it chooses from."""
        return self.is_network or isinstance(self.estimator, BetterOfTwo)

    @property
    def n_passes(self) -> int:
        """How often it went over its rows when it last learned all of them as a batch."""
        return int(getattr(self._answering, "n_passes_", 1))

    @property
    def rows_per_block(self) -> int:
        """Rows that are learned at once: fewer where a row takes long, and for many features, which take room."""
        # The same during a comparison and after it, as a run that is resumed needs.
        return _COMPARED if isinstance(self.estimator, BetterOfTwo) else self.cost.rows_to_learn(self._most_rows)

    @property
    def rows_per_buffer(self) -> int:
        """Rows that are shuffled together: fewer for many features, which take room."""
        return max(min(_BUFFER, _BLOCK // self._numbers_per_row), 64)

    @property
    def rows_per_prediction(self) -> int:
        """Rows that are predicted at once."""
        return self.cost.rows_to_predict(self._most_rows)

    @property
    def _most_rows(self) -> int:
        return max(min(1024 if self.is_network else 8192, _BLOCK // self._numbers_per_row), 64)

    @property
    def cost(self) -> RowCost:
        """What a row costs in time."""
        several = "auto" in (self.estimator.drift, self.estimator.prior_scale)
        return RowCost(self.covariance, self.layers, several)

    @property
    def _numbers_per_row(self) -> int:
        """Numbers that a row takes in memory while it is learned."""
        encoding = self.encoding
        keeps_sparse = not self.is_network and takes_sparse_rows(self.estimator.covariance) and len(self.labels) <= 2
        return encoding.n_dense + _WORDS * len(encoding.texts) if keeps_sparse else len(encoding.features)

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, or none."""
        return self.target.labels if isinstance(self.target, ClassTarget) else ()

    # Rows.

    def types(self, *, target: bool, more: Iterable[str] = ()) -> dict[str, Any]:
        """Names and Arrow types of the columns to read, of which some are only shown."""
        types = dict.fromkeys(more, pa.string()) | self.encoding.types()
        if self.by is not None:
            types[self.by] = pa.string()
        if target and self.weight is not None:
            types[self.weight] = pa.float64()
        if target:
            own = self.target
            numeric = own.written.is_plain if isinstance(own, NumberTarget) else own.numeric
            types[own.name] = pa.float64() if numeric else pa.string()
        return types

    def unused_columns(self, names: Iterable[str] | None) -> list[str]:
        """Those columns of a table that are not learned from, in its order; ``None`` if its columns are unknown."""
        unused = self.encoding.unused
        return sorted(unused) if names is None else [name for name in names if name in unused]

    def rows(self, batches: Sequence[RowBatch]) -> Rows:
        """Make rows ready for learning; those that can't be learned are left out and named."""
        return Rows.joined([self._rows_of(batch) for batch in batches])

    def needed_columns(self, *, target: bool) -> list[str]:
        """Names of the columns that a table must have, to be predicted or, with ``target``, to be learned."""
        learning = [self.target.name, *([] if self.weight is None else [self.weight])]
        own = [] if self.by is None else [self.by]
        return [*(column.name for column in self.encoding.columns), *own, *(learning if target else [])]

    def encode(self, batch: RowBatch) -> Rows:
        """Rows as the estimator takes them, without their targets; those that can't be predicted are named."""
        rows = self.encoding.encode(batch.record_batch)
        if self.time is not None:
            self.time.note_missing(rows)
        if self.by is None:
            return rows
        return replace(rows, keys=read_keys(_column_of(batch, self.by), self.by, rows.bad))

    def _rows_of(self, batch: RowBatch) -> Rows:
        rows = self.encode(batch)
        bad = rows.bad
        y = self.target.encode(_column_of(batch, self.target.name), bad)
        weights = None if self.weight is None else read_weights(_column_of(batch, self.weight), self.weight, bad)
        rows = Rows(rows.X, y, weights, rows.keys, ids=lambda: batch.lines)
        if bad or not (weights is None or weights.all()):
            out = list(bad) if weights is None else [*bad, *np.flatnonzero(weights == 0.0)]
            rows = rows.at(np.setdiff1d(np.arange(len(batch)), out))
        return replace(rows, rejects=rejects_of(batch, bad), n_left_out=len(batch) - len(bad) - len(rows))

    # Learning and predicting.

    def start(self) -> Self:
        """Be ready to predict by the prior alone, and to be saved, before the first row."""
        n_features, classes = len(self.encoding.features), np.arange(len(self.labels)) if self.labels else None
        if isinstance(self.estimator, BetterOfTwo):
            self.estimator.start(n_features, classes)
        elif not isinstance(self.estimator, FleetEstimator):  # which can predict as soon as it is made
            start_learner(self.estimator, n_features, classes, scaled_targets=True)  # see onepass.tables.targets
        return self

    def _learner(self) -> Any:
        """What learns encoded rows; before the first rows it is started."""
        if not self.n_rows and not hasattr(self.estimator, "n_features_in_"):
            self.start()
        return learner_of(self.estimator)

    def learn(self, rows: Rows) -> None:
        """Learn rows, in their order."""
        if len(rows.y):
            self._learner().learn(rows)
        self._count(rows)

    @property
    def can_refine(self) -> bool:
        """Whether all rows learned are few enough to be learned again as a batch; only networks gain by that."""
        fits = self.n_rows <= self.rows_per_buffer and self.n_rows * self.cost.to_learn <= _LONGEST_PASS
        return self.is_network and fits

    def refine(self, rows: Rows) -> None:
        """Learn all rows anew as a batch, see `onepass.BayesianMLPRegressor`: shuffled, and several times if it helps.

        What was learned before is forgotten; which estimator answers is not decided anew.
        """
        refined = clone(self._answering)
        classes = np.arange(len(self.labels)) if self.labels else None
        learner = start_learner(refined, len(self.encoding.features), classes, scaled_targets=True)
        learner.fit(rows)
        if isinstance(self.estimator, BetterOfTwo):
            self.estimator.replace_leader(refined)
        else:
            self.estimator = refined

    @property
    def _answering(self) -> Any:
        """The estimator that predicts."""
        return self.estimator.leader if isinstance(self.estimator, BetterOfTwo) else self.estimator

    def predict_then_learn(self, rows: Rows) -> Any:
        """Predict every row just before learning it; None if there is no row."""
        predicted = self._learner().predict_then_learn(rows) if len(rows.y) else None
        self._count(rows)
        return predicted

    def predict_and_score(self, rows: Rows) -> Any:
        """Predict rows of which none is learned, with the intervals of `predictions`; None if there is no row."""
        if not len(rows.y):
            return None
        learner = learner_of(self.estimator)
        predicted: PredictedRows = learner.score(rows)
        if self.widening == 1.0:
            return predicted
        widening = widened(self.widening, self.share_ahead(rows.X))
        # The density of a distribution made wider, at y, is that of the own one at a point nearer to its mean.
        nearer = learner.score(replace(rows, y=predicted.mean + (rows.y - predicted.mean) / widening))
        return predicted._replace(
            epistemic=widening**2 * predicted.var - predicted.aleatoric,
            log_density=nearer.log_density - np.log(widening),
        )

    @property
    def tracks_intervals(self) -> bool:
        """Whether intervals follow where the targets of rows that it learns really fall."""
        return bool(getattr(self.estimator, "intervals", "model") == "adaptive")

    @property
    def widening(self) -> float:
        """Factor by which deviations and intervals of predictions are wider than the estimator's: at least 1."""
        return 1.0 if self.forward_test is None else self.forward_test.widening

    @property
    def has_level(self) -> bool:
        """Whether it predicts by a level that moves with time."""
        return bool(getattr(self._answering, "has_level", False))

    def share_ahead(self, X: Any) -> FloatArray:
        """Of the variance of each row, what `widening` widens: all, or what it gains with the distance in time."""
        own = getattr(self._answering, "share_ahead", None)
        return np.ones(X.shape[0]) if own is None else np.asarray(own(X))

    @property
    def needs_order(self) -> bool:
        """Whether it learns rows in their own order: those in time, unless forward tests have chosen otherwise."""
        return self.time is not None if self.forward_test is None else self.forward_test.candidate.in_order

    def close_block(self) -> None:
        """Let rows that were learned wait for no others: see `onepass.BayesianNetwork`."""
        learner_of(self.estimator).close_block()

    def decide_comparison(self) -> None:
        """End a comparison of estimators, if there is one: rows that come again don't test what was learned."""
        if isinstance(self.estimator, BetterOfTwo):
            self.estimator.decide()

    def end_comparison(self) -> None:
        """Go on with the leader of a comparison alone, if there is one: a comparison needs rows in one order."""
        if isinstance(self.estimator, BetterOfTwo):
            self.estimator = self.estimator.leader
            self.kind_reason = "a network is not tried on a cluster, whose rows have no common order"

    def _count(self, rows: Rows) -> None:
        self.n_rows += len(rows.y)
        self.n_rejected += sum(not one.has_no_target for one in rows.rejects)
        if isinstance(self.target, LogTarget):
            self.target = self.target.having_seen(rows.y)

    def prediction_names(self, levels: Sequence[float]) -> tuple[str, ...]:
        """Columns of a table of predictions, with intervals of these levels."""
        if self.labels:
            return ("label", *(f"p_{label}" for label in self.labels))
        return ("mean", "std", *limit_names(levels))

    def predict(self, rows: Any, *, level: float | Sequence[float] = 0.95) -> Any:
        """Predict rows of a table; returns an Arrow table of what ``onepass predict`` writes.

        For numbers its columns are ``mean``, ``std``, ``lower`` and ``upper``, or with several levels ``lower_50``,
        ``upper_50`` and so on; for classes ``label`` and a probability ``p_...`` for each class. A row that can't be
        predicted is empty, and a warning says why.

        Parameters
        ----------
        rows : a data frame of pandas or polars, an Arrow table, or a list of mappings from columns to values
            Values may be raw texts, as in the files that were learned. Other columns than the model's are ignored.
        level : float or several, default=0.95
            Probability with which a new target lies between ``lower`` and ``upper``.

        Examples
        --------
        >>> from onepass.tables.columns.inference import infer
        >>> trips = [{"km": 1.0, "car": "van"}, {"km": 3.0, "car": "bike"}]
        >>> encoding = infer(pa.RecordBatch.from_pylist(trips), [])
        >>> model = TabularModel(encoding, NumberTarget("price", 20.0, 10.0)).start()  # or: onepass.load("a.onepass")
        >>> model.predict([{"km": 2.5, "car": "van"}]).column_names
        ['mean', 'std', 'lower', 'upper']
        """
        return predict_rows(self, rows, level)

    def predict_dist(self, rows: Any) -> Prediction:
        """Predict rows of a table; returns their distributions, in the target's own units: see `onepass.Prediction`.

        Classes are counted by their places in ``labels``. Every row must be one that can be predicted.

        Parameters
        ----------
        rows : as for `predict`

        Examples
        --------
        >>> from onepass.tables.columns.inference import infer
        >>> trips = [{"km": 1.0, "car": "van"}, {"km": 3.0, "car": "bike"}]
        >>> encoding = infer(pa.RecordBatch.from_pylist(trips), [])
        >>> model = TabularModel(encoding, NumberTarget("price", 20.0, 10.0)).start()
        >>> found = model.predict_dist([{"km": 2.5, "car": "van"}])
        >>> low, high = found.interval(0.8)
        >>> bool(low[0] < found.mean[0] < high[0]), found.cdf(found.ppf(0.9)).round(6)
        (True, array([0.9]))
        """
        return predict_distributions(self, rows)

    def distribution(self, X: FloatArray, keys: Sequence[str] | None = None) -> Prediction:
        """What is predicted for encoded rows, in the target's own units and as wide as forward tests have found.

        A model per key needs ``keys``.
        """
        given = {} if keys is None else {"keys": keys}
        found: Prediction = self.estimator.predict_dist(X, **given)
        if not isinstance(self.target, NumberTarget):
            return found
        if self.widening != 1.0:
            found = found.widened(widened(self.widening, self.share_ahead(X)))
        return found.in_units(self.target.units)

    def probabilities(self, X: FloatArray, keys: Sequence[str] | None = None) -> FloatArray:
        """Probabilities of all classes for encoded rows, ``(n, K)``."""
        return np.asarray(self.estimator.predict_proba(X, **({} if keys is None else {"keys": keys})))

    def predictions(
        self, X: FloatArray, level: float | Sequence[float], keys: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Columns of a table of predictions for encoded rows, in their order; ``keys`` in a model per key."""
        levels = as_given_levels(level)
        names = self.prediction_names(levels)
        if isinstance(self.target, ClassTarget):
            probabilities = self.probabilities(X, keys)
            best = probabilities.argmax(axis=1)
            return dict(zip(names, (np.array(self.labels, dtype=object)[best], *probabilities.T), strict=True))
        found = self.distribution(X, keys)
        limits = (end for level in levels for end in found.interval(level))
        return dict(zip(names, (found.mean, found.std, *limits), strict=True))

    # What it has learned.

    @property
    def noise(self) -> float | None:
        """Standard deviation of the target's noise, in its own units, or of its logarithm's; None for other targets."""
        if not isinstance(self.target, NumberTarget) or isinstance(self.target, CountTarget):
            return None
        return float(np.sqrt(self.estimator.noise_) * self.target.scale)

    @property
    def layers(self) -> tuple[int, ...]:
        """Widths of all layers, from the features to the outputs."""
        hidden = getattr(self.estimator, "hidden_layer_sizes", ())
        return (len(self.encoding.features), *hidden, self.target.n_outputs)

    @property
    def n_weights(self) -> int:
        """Number of weights, biases included."""
        return Layout(self.layers).size

    @property
    def covariance(self) -> Covariance:
        """Which correlations between weights are kept."""
        covariance: Covariance = self.estimator.covariance
        return choose_covariance(Layout(self.layers)) if covariance == "auto" else covariance

    @property
    def belief_type(self) -> type[NetworkBelief]:
        """What beliefs with this covariance can do."""
        return belief_type(self.covariance, Layout(self.layers))

    def weights(self) -> dict[str, list[Weight]]:
        """What each feature does, for the target or for each class, the largest first.

        For numbers the change of the target, or of its logarithm if that is learned, for counts of the log rate, for
        classes of the log odds, that one standard deviation of a number, a category in place of an average row's, or a
        word in a text of average length brings about; in a network, and for more than two classes, for a row in the
        middle of the first rows, and of very many features for the foremost.
        """
        return feature_weights(self)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Names and words of what it has learned so far."""
        return description.facts(self)

    def numbers(self) -> dict[str, dict[str, Any]]:
        """Numbers of facts, for programs, by the name of the fact."""
        return description.numbers(self)

    @property
    def n_set_aside(self) -> int:
        """Rows that were counted but not learned, since their target was absurdly far from what was predicted."""
        return int(self.estimator.n_set_aside_) if self.n_rows else 0

    @property
    def verdict(self) -> str:
        """Which of several estimators answers and why, in words; empty if there is but one."""
        return description.verdict(self)

    def choices(self, most_columns: int | None = None) -> Iterator[tuple[str, str]]:
        """Names and words of all that was chosen for it; columns are counted if they are more than so many."""
        return description.choices(self, most_columns)

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Give all that the model is, as parameters that JSON can hold and arrays: see `onepass.save`."""
        state, arrays = exported(self.estimator)
        parameters: Parameters = {
            "encoding": self.encoding.state(),
            "target": {"kind": self.target.kind, **self.target.state()},
            "estimator": {"class": type(self.estimator).__name__, "state": state},
            "n_rows": self.n_rows,
            "n_rejected": self.n_rejected,
            "kind_reason": self.kind_reason,
            "forward_test": None if self.forward_test is None else self.forward_test.state(),
            "weight": self.weight,
            "by": self.by,
            "time": None if self.time is None else list(self.time),
            "progress": None,  # a run keeps its own here: see onepass.tables.progress
            "history": self.history.state(),
        }
        return parameters, nested("estimator", arrays)

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn as that one would."""
        model = cls.__new__(cls)
        model.encoding = Encoding.from_state(parameters["encoding"])
        model.target = target_from_state(parameters["target"])
        kind = estimator_class(parameters["estimator"]["class"])
        model.estimator = restored(kind, parameters["estimator"]["state"], under("estimator", arrays))
        model.weight, model.by = (_name_or_none(parameters[name], name) for name in ("weight", "by"))
        model.time = None if parameters["time"] is None else Timeline.from_state(parameters["time"])
        if (model.by is None) == isinstance(model.estimator, FleetEstimator):
            raise ValueError("a model per key, and only such a one, names the column of the keys")
        if model.estimator.n_features_in_ != len(model.encoding.features):
            raise ValueError("the encoding does not make the features that the model has learned from")
        if len(getattr(model.estimator, "classes_", ())) != len(model.labels):
            raise ValueError("the model has not learned the classes of the target")
        model.n_rows = as_tally(parameters["n_rows"], "n_rows")
        model.n_rejected = as_tally(parameters["n_rejected"], "n_rejected")
        model.kind_reason, model.advice = str(parameters["kind_reason"]), ()
        tested = parameters["forward_test"]
        model.forward_test = None if tested is None else ForwardTest.from_state(tested)
        if (progress := parameters["progress"]) is not None:
            _check_files(progress["input"], "progress")
        model.history = TrainingHistory.from_state(parameters["history"])
        return model


def _column_of(batch: RowBatch, name: str) -> Any:
    column = batch.column(name)
    return pa.nulls(len(batch)) if column is None else column


def _name_or_none(value: Any, name: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{name} must be the name of a column, got {str(value)[:40]!r}")
    return value


def _check_files(identity: Any, name: str) -> None:
    """Refuse what does not name the files of a run; no number of the model depends on it."""
    files = identity["files"]
    if not isinstance(files, list) or not all(isinstance(file, dict) and "name" in file for file in files):
        raise ValueError(f"{name} is not a record of a run")
