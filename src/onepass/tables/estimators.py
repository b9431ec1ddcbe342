"""scikit-learn estimators of raw data frames: a `TabularModel` behind ``fit`` and ``predict``.

They take frames as they come from a file (texts, dates, gaps, categories that were never seen) and choose as ``onepass
fit`` does, by the same code: a frame is a source of rows like any file. `model_` is that model; it can be saved alone,
and learn on from files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from onepass._typing import FloatArray
from onepass._validation import as_count, as_row_weights, as_share
from onepass.estimators.files import argument_from_json, argument_to_json, feature_names
from onepass.estimators.rows import Rows, stacked
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.models.distribution import Prediction
from onepass.tables.fitting import FitOptions
from onepass.tables.frames import arrow_table
from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch, row_blocks, rows_after
from onepass.tables.readers.source import TableFile
from onepass.tables.schema import SchemaOptions, check_known
from onepass.tables.training import learn_steps, refine_if_few

__all__ = ["BayesianTabularClassifier", "BayesianTabularRegressor"]

_ROWS = 8192  # of a frame at a time


class _Names(NamedTuple):
    """What targets and weights are called among the columns of a frame, none of which has such a name."""

    target: str
    weight: str

    @staticmethod
    def among(columns: Sequence[str]) -> "_Names":
        """Names that depend on the columns alone, and are the same at every call."""
        taken, names = set(columns), ["y", "sample_weight"]
        for i in range(len(names)):
            while names[i] in taken:
                names[i] += "_"
        return _Names(*names)


class _Frame(TableFile):
    """A table in memory, read as a file is."""

    name = "the data frame"

    def __init__(self, table: Any) -> None:
        self.content = table.unify_dictionaries().combine_chunks()

    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.content.column_names)

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``."""
        names = [name for name in self.columns() if types is None or name in types]
        table, n, start = self.content.select(names), self.content.num_rows, 0
        for found in table.to_batches(max_chunksize=_ROWS):
            end = start + found.num_rows
            numbers = range(start + 1, end + 1)
            batch = RowBatch(found, start, lambda numbers=numbers: numbers, share_before=start / n, share=end / n)
            yield from rows_after(skip, batch)
            start = end


class _TabularEstimator(BaseEstimator):  # type: ignore[misc]
    """What both share; a subclass says what targets are, and reads what is predicted."""

    model_kind: str
    hidden: Sequence[int]
    n_features_in_: int
    feature_names_in_: Any
    model_: TabularModel
    """The model of the table."""

    _task: str

    def __init__(
        self,
        *,
        model_kind: str = "auto",
        hidden: Sequence[int] = (),
        kinds: Any = None,
        ignore: str | Sequence[str] = (),
        activation: str | None = None,
        covariance: str = "auto",
        prior_scale: float | str = "sample",
        outliers: float = 0.0,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        passes: int | str = "auto",
        shuffle: str = "auto",
        random_state: int = 0,
    ) -> None:
        self.model_kind = model_kind
        self.hidden = hidden
        self.kinds = kinds
        self.ignore = ignore
        self.activation = activation
        self.covariance = covariance
        self.prior_scale = prior_scale
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows as ``onepass fit`` does.

        Parameters
        ----------
        X : data frame of pandas or polars, Arrow table, or (n, d) array
            Columns may hold numbers, texts, dates, booleans or categories; values may be missing.
        y : (n,) array
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; rows of weight 0 are left out.
        """
        table, names, weights = self._table(X, y, sample_weight, reset=True, classes=None)
        wanted = self._wanted(names, weighted=weights is not None)
        inputs = Inputs((_Frame.name,), wanted.turns)
        source = _Frame(table)
        model, _, inputs = wanted.new_model(inputs, [source])
        self._check_rows(model, source)
        for _ in learn_steps(model, inputs, [source]):
            pass
        if wanted.refines(inputs, model):
            refine_if_few(model, inputs, [source], None)
        self.model_ = model
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> Self:
        first = not self.__sklearn_is_fitted__()
        table, names, weights = self._table(X, y, sample_weight, reset=first, classes=classes)
        if weights is not None:
            table = table.drop_columns([names.weight])
        if not first and self.model_.weight is not None:  # as in `fit`, where there were some
            table = table.append_column(names.weight, pa.array(np.ones(table.num_rows)))
        source = _Frame(table)
        if first:
            wanted = replace(self._wanted(names, weighted=False), shuffle="off")
            model = wanted.new_model(Inputs((_Frame.name,)), [source]).model
        else:
            model = self.model_
        for rows in self._check_rows(model, source):
            model.learn(_weighted(rows, weights))
        self.model_ = model
        return self

    def _wanted(self, names: _Names, *, weighted: bool) -> FitOptions:
        options = {
            "model_kind": self.model_kind,
            "hidden": tuple(self.hidden),
            "kinds": dict(self.kinds or {}),
            "ignore": self._ignored(),
            "activation": self.activation,
            "covariance": self.covariance,
            "prior_scale": self.prior_scale,
            "outliers": self.outliers,
            "forgetting": self.forgetting,
            "drift": self.drift,
            "seed": self.random_state,
            "weight": names.weight if weighted else None,
            **self._target_options(),
        }
        schema = SchemaOptions.of(names.target, **options)
        return FitOptions(schema, self.passes, self.shuffle)

    def _ignored(self) -> tuple[str, ...]:
        return (self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore)

    def _target_options(self) -> dict[str, Any]:
        return {"task": self._task}

    def _targets(self, y: Any, classes: Any, *, reset: bool) -> Any:
        """Targets as an Arrow array."""
        raise NotImplementedError

    def _check_rows(self, model: TabularModel, source: _Frame) -> list[Rows]:
        """All rows encoded, once it is known that each can be learned."""
        blocks = row_blocks(source.batches(model.types(target=True), 0), model.rows_per_block)
        found = [model.rows(block.batches) for block in blocks]
        _refuse([reject for rows in found for reject in rows.rejects])
        return found

    def _table(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, classes: Any
    ) -> tuple[Any, _Names, FloatArray | None]:
        """Rows, targets and weights as one Arrow table, what these are called there, and the weights."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        table = self._rows(X, reset=reset)
        columns = table.column_names
        check_known("ignore", self._ignored(), columns, _Frame.name)
        check_known("kinds", tuple(self.kinds or ()), columns, _Frame.name)
        names = _Names.among(columns)
        targets = self._targets(y, classes, reset=reset)
        if len(targets) != table.num_rows:
            sizes = [table.num_rows, len(targets)]
            raise ValueError(f"X and y must have as many rows, got inconsistent numbers of samples: {sizes}")
        table = table.append_column(names.target, targets)
        if sample_weight is None:
            return table, names, None
        if isinstance(sample_weight, Real):
            sample_weight = np.full(table.num_rows, float(sample_weight))
        weights = as_row_weights(sample_weight, table.num_rows, zero_allowed=True)
        if reset and not np.any(weights):
            raise ValueError("sample_weight must contain at least one number above 0, got only zeros")
        return table.append_column(names.weight, pa.array(weights)), names, weights

    def _rows(self, X: Any, *, reset: bool = False) -> Any:
        """Rows as an Arrow table with the columns that `fit` has seen."""
        if (table := arrow_table(X)) is None:
            X = check_array(X, dtype=None, ensure_all_finite="allow-nan", estimator=self)
            if X.dtype.kind == "O":
                X = np.array([[None if value is None or value != value else value for value in row] for row in X])
            elif X.dtype.kind == "c":
                raise ValueError("Complex data not supported")
        elif not table.num_rows or not table.num_columns:
            raise ValueError(f"X must have rows and columns, got shape {table.shape}")
        validate_data(self, X if table is None or hasattr(X, "shape") else table, reset=reset, skip_check_array=True)
        if table is not None:
            return table
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return pa.table({str(name): _column(values) for name, values in zip(names, X.T, strict=True)})

    # What was learned.

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags

    def _encoded(self, X: Any) -> Any:
        """Rows to predict, encoded; an error if one can't be."""
        check_is_fitted(self)
        table, parts, start = self._rows(X), [], 0
        for batch in _Frame(table).batches(self.model_.types(target=False), 0):
            encoded = self.model_.encode(batch)
            if encoded.bad:
                row = min(encoded.bad)
                raise ValueError(f"row {start + row} of X, counted from 0, can't be predicted: {encoded.bad[row]}")
            start += len(batch)
            parts.append(encoded.X)
        return stacked(parts)

    def predict_dist(self, X: Any) -> Prediction:
        """Predictive distributions of new targets, in their own units; of classes, by their places in ``classes_``."""
        rows = self._encoded(X)  # which checks that there is a model
        return self.model_.distribution(rows)

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        return self.model_.n_rows

    @property
    def advice_(self) -> tuple[str, ...]:
        """What to ask about the table, such as whether a column is a leak."""
        return tuple(map(str, self.model_.advice))

    # Files: see onepass.files.checkpoint.

    def _export_state(self) -> tuple[Parameters, Arrays]:
        check_is_fitted(self)
        given = {name: value for name, value in self.get_params(deep=False).items() if name != "kinds"}
        own, arrays = self.model_.export_state()
        parameters: Parameters = {
            "arguments": {name: argument_to_json(name, value) for name, value in given.items()},
            "kinds": None if self.kinds is None else dict(self.kinds),
            "n_features": self.n_features_in_,
            "model": own,
        }
        if hasattr(self, "feature_names_in_"):
            parameters["feature_names"] = self.feature_names_in_.tolist()
        return parameters, nested("model", arrays)

    @classmethod
    def _from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        arguments = {name: argument_from_json(value) for name, value in parameters["arguments"].items()}
        estimator = cls(**arguments, kinds=parameters["kinds"])
        estimator.n_features_in_ = as_count(parameters["n_features"], "n_features")
        if "feature_names" in parameters:
            estimator.feature_names_in_ = feature_names(parameters["feature_names"], estimator.n_features_in_)
        estimator.model_ = TabularModel.from_state(parameters["model"], under("model", arrays))
        return estimator


class BayesianTabularRegressor(RegressorMixin, _TabularEstimator):  # type: ignore[misc]
    """Regression on a raw data frame: columns are understood, and the model chosen, as ``onepass fit`` does.

    Parameters
    ----------
    model_kind : {"auto", "perceptron", "network"}
        ``"auto"`` keeps whichever predicts the first 2,000 rows better.
    hidden : sequence of int
        Widths of hidden layers, for a network.
    kinds : dict, optional
        What columns hold, by their names, such as ``{"zip": "category"}``; found out for all others.
    ignore : str or sequence of str
        Name or names of columns that are not learned from.
    activation, covariance, prior_scale, outliers, forgetting, drift :
        As the options of ``onepass fit``.
    passes : int or "auto"
        How often the rows are learned.
    shuffle : {"auto", "on", "off"}
        Whether they are learned in a random order.
    random_state : int
        Seed of the random numbers.
    counts : bool
        Whether targets are counts 0, 1, 2, ...
    log_target : bool, optional
        Whether the logarithm of the target is learned; by default if the first rows are predicted better so.
    time : str, optional
        Name of the column with the time of each row, dates or numbers, the oldest row first: predictions start from
        where the last rows have left the level of the target, and intervals widen with the distance from them.

    Attributes
    ----------
    model_ : TabularModel
        What was learned; `onepass.save` writes it as ``onepass fit`` does.

    Examples
    --------
    >>> import pandas as pd
    >>> from onepass import BayesianTabularRegressor
    >>> X = pd.DataFrame({"km": [float(i % 17) for i in range(300)], "car": ["van", "bike", None] * 100})
    >>> y = 3.0 + 2.0 * X["km"] + (X["car"] == "van")
    >>> model = BayesianTabularRegressor().fit(X, y)
    >>> mean, std = model.predict(pd.DataFrame({"km": [10.0], "car": ["boat"]}), return_std=True)
    >>> bool(abs(mean[0] - 23.3) < 1.0)
    True
    """

    def __init__(
        self,
        *,
        model_kind: str = "auto",
        hidden: Sequence[int] = (),
        kinds: Any = None,
        ignore: str | Sequence[str] = (),
        activation: str | None = None,
        covariance: str = "auto",
        prior_scale: float | str = "sample",
        outliers: float = 0.0,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        passes: int | str = "auto",
        shuffle: str = "auto",
        random_state: int = 0,
        counts: bool = False,
        log_target: bool | None = None,
        time: str | None = None,
    ) -> None:
        super().__init__(
            model_kind=model_kind,
            hidden=hidden,
            kinds=kinds,
            ignore=ignore,
            activation=activation,
            covariance=covariance,
            prior_scale=prior_scale,
            outliers=outliers,
            forgetting=forgetting,
            drift=drift,
            passes=passes,
            shuffle=shuffle,
            random_state=random_state,
        )
        self.counts = counts
        self.log_target = log_target
        self.time = time

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows, in the order given; the first call decides what the columns hold."""
        return self._partial_fit(X, y, sample_weight)

    def predict(self, X: Any, return_std: bool = False, *, return_dist: bool = False) -> Any:
        """Expected targets, ``(n,)``; with ``return_std`` also their standard deviations, of new targets."""
        if return_dist:
            return self.predict_dist(X)
        rows = self._encoded(X)  # which checks that there is a model
        columns = self.model_.predictions(rows, 0.95)
        return (columns["mean"], columns["std"]) if return_std else columns["mean"]

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits between which a new target lies with probability ``level``."""
        as_share(level, "level", open_above=True)
        rows = self._encoded(X)
        columns = self.model_.predictions(rows, level)
        return columns["lower"], columns["upper"]

    def _target_options(self) -> dict[str, Any]:
        task = "counts" if self.counts else "regression"
        return {"task": task, "log_target": self.log_target, "time": self.time}

    def _targets(self, y: Any, classes: Any, *, reset: bool) -> Any:
        y = column_or_1d(_plain_targets(y), warn=True)
        values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        return pa.array(values)


class BayesianTabularClassifier(ClassifierMixin, _TabularEstimator):  # type: ignore[misc]
    """Classification of a raw data frame: columns are understood, and the model chosen, as ``onepass fit`` does.

    Parameters
    ----------
    model_kind, hidden, kinds, ignore, activation, covariance, prior_scale, outliers, forgetting, drift :
        As for `BayesianTabularRegressor`.
    passes, shuffle, random_state :
        As for `BayesianTabularRegressor`.

    Attributes
    ----------
    classes_ : (K,) array
    model_ : TabularModel
        What was learned; its classes are the places in ``classes_``.

    Examples
    --------
    >>> import pandas as pd
    >>> from onepass import BayesianTabularClassifier
    >>> X = pd.DataFrame({"km": [float(i % 17) for i in range(300)], "day": pd.date_range("2024-01-01", periods=300)})
    >>> model = BayesianTabularClassifier().fit(X, ["far" if km > 8 else "near" for km in X["km"]])
    >>> model.predict(X[:3]).tolist(), model.classes_.tolist()
    (['near', 'near', 'near'], ['far', 'near'])
    """

    _task = "classification"
    classes_: Any

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in the order given; the first call decides what the columns hold.

        ``classes`` are all that will ever come; without it those of the first call.
        """
        return self._partial_fit(X, y, sample_weight, classes)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, ``(n, K)``, in the order of ``classes_``."""
        rows = self._encoded(X)
        probabilities: FloatArray = self.model_.estimator.predict_proba(rows)
        return probabilities

    def predict(self, X: Any) -> Any:
        """The most probable classes, ``(n,)``."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _target_options(self) -> dict[str, Any]:
        return {"task": self._task, "classes": tuple(map(str, range(len(self.classes_))))}

    def _targets(self, y: Any, classes: Any, *, reset: bool) -> Any:
        y = column_or_1d(_plain_targets(y), warn=True)
        if y.dtype.kind == "f":
            check_array(y, ensure_2d=False, input_name="y")
        elif y.dtype.kind == "O" and any(value is None or value != value for value in y):
            raise ValueError("Input y contains NaN.")
        check_classification_targets(y)
        if reset:
            known = np.unique(y if classes is None else column_or_1d(np.asarray(classes)))
            if len(known) < 2:
                raise ValueError(f"y has only one class, {known.tolist()}, and at least two are needed")
            self.classes_ = known
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes were {self.classes_.tolist()} in the first call, got {np.unique(classes).tolist()}"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(
                f"y has the unknown class {unknown.tolist()[0]!r}: pass all classes in the first call of partial_fit"
            )
        return pa.array([str(place) for place in np.searchsorted(self.classes_, y)])

    def _export_state(self) -> tuple[Parameters, Arrays]:
        parameters, arrays = super()._export_state()
        return parameters | {"classes": self.classes_.tolist()}, arrays

    @classmethod
    def _from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        estimator = super()._from_state(parameters, arrays)
        estimator.classes_ = np.unique(np.array(parameters["classes"]))
        if len(estimator.classes_) != len(estimator.model_.labels):
            raise ValueError("the saved classes are not those of the model")
        return estimator


def _plain_targets(y: Any) -> Any:
    if isinstance(y, pa.Array | pa.ChunkedArray):
        return y.to_numpy(zero_copy_only=False)
    return y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)


def _column(values: Any) -> Any:
    """A column of an array, whose values may be of several types: then texts."""
    if values.dtype.kind != "O":
        return pa.array(np.ascontiguousarray(values))
    found = values.tolist()
    try:
        return pa.array(found)
    except pa.ArrowException:
        return pa.array([None if value is None else str(value) for value in found], pa.string())


def _weighted(rows: Rows, weights: FloatArray | None) -> Rows:
    """Rows with their weights, without those that don't count."""
    if weights is None:
        return rows
    own = weights[np.asarray(rows.ids(), dtype=np.intp) - 1]
    kept = rows.at(np.flatnonzero(own > 0.0))
    return replace(kept, weights=own[own > 0.0])


def _refuse(rejects: Sequence[Any]) -> None:
    if rejects:
        first = rejects[0]
        more = f", and {len(rejects) - 1:,} more" if len(rejects) > 1 else ""
        raise ValueError(f"row {first.line - 1}, counted from 0, can't be learned: {first.reason}{more}")
