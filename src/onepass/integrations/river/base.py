"""What River's models share: named columns, and a core model that grows with them.

What is made for a row that can't be learned is dropped again, so such a row leaves nothing behind.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from river import base
from river.utils import dataframe

from onepass._typing import FloatArray
from onepass.beliefs.choice import Covariance
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.integrations.river.cores import Networks, Perceptrons
from onepass.integrations.river.features import Columns, as_weights
from onepass.models.distribution import Prediction

__all__ = ["NamedModel", "NetworkArguments"]


@dataclass(eq=False, repr=False, kw_only=True)
class NamedModel(base.Estimator):
    """A core model over named features; there is none before the first row."""

    prior_scale: float = 1.0
    outliers: float = 0.0
    forgetting: float = 1.0
    drift: float | str = 0.0
    missing: str = "error"

    def __post_init__(self) -> None:
        self._family = self._new_family()
        self._columns = Columns(self.missing)
        self._core: Any = None
        self._smallest_core()  # so that wrong arguments are refused now, and not at the first row

    def _new_family(self) -> Perceptrons | Networks:
        """How cores are made, by the arguments."""
        raise NotImplementedError

    def _outputs(self) -> Parameters:
        """What the outputs of a new core are, apart from the options that the family has."""
        return {}

    def _smallest_core(self) -> Any:
        return self._family.smallest(1, **self._outputs())

    def _some_core(self) -> Any:
        return self._smallest_core() if self._core is None else self._core

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return 0 if self._core is None else int(self._core.n_seen)

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows, each before it was learned."""
        return 0.0 if self._core is None else float(self._core.log_evidence)

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift; with ``drift="auto"`` also of a return to the ``"prior"``."""
        return dict(self._some_core().drift_)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted."""
        return float(self._some_core().outliers_)

    @property
    def n_set_aside(self) -> int:
        """Rows that were not learned because their target was absurdly far off."""
        return 0 if self._core is None else self._core.n_set_aside

    @property
    def features(self) -> tuple[Any, ...]:
        """Names of the features so far."""
        return tuple(self._columns)

    def _weights(self, unit: float) -> dict[Any, float]:
        """Mean weight of each feature of a perceptron, times a unit."""
        if self._core is None:
            return {}
        return dict(zip(self._columns, (unit * self._core.mean[self._core.bias :]).tolist(), strict=False))

    # Learning.

    def _learn_row(self, x: Mapping[Any, Any], target: float, weight: float) -> None:
        if self._core is not None:
            row, n_new, _ = self._columns.load(x, self._core.n_features)
            if not n_new:
                self._learn(row, target, None if weight == 1.0 else weight)
                return
        with self._all_or_none(self._core):
            self._add_features(x)
            row = self._columns.load(x, self._core.n_features)[0]
            self._learn(row, target, None if weight == 1.0 else weight)

    def _learn(self, rows: FloatArray, targets: Any, weights: Any) -> None:
        """Learn a row ``(d,)`` or many ``(n, d)``, in which gaps are filled in place."""
        columns = self._columns
        if columns.moments is None:
            self._learn_complete(rows, targets, weights)
            return
        counts = None if weights is None else np.atleast_1d(weights)
        variances, after = columns.fill_in_order(np.atleast_2d(rows), counts)
        self._learn_complete(rows, targets, weights, **self._uncertain(rows, variances))
        columns.moments = after

    def _learn_complete(self, rows: FloatArray, targets: Any, weights: Any, **options: Any) -> None:
        """Learn rows without gaps."""
        self._core.learn(rows, targets, sample_weight=weights, **options)

    def _uncertain(self, rows: FloatArray, variances: FloatArray | None) -> Parameters:
        """Options of the core by which it knows of the variances of rows, if it can."""
        if variances is None or not self._family.takes_variances:
            return {}
        return {"X_var": variances.reshape(rows.shape)}

    def _add_features(self, names: Iterable[Any]) -> None:
        self._columns.add(names)
        if self._core is None:
            self._core = self._family.new(len(self._columns), **self._outputs())
        else:
            self._core = self._family.larger(self._core, len(self._columns))

    @contextmanager
    def _all_or_none(self, core: Any) -> Iterator[None]:
        """Go back to what was before, and to this core, whatever goes wrong."""
        before, columns = {**self.__dict__, "_core": core, **self._copied()}, self._columns.state
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            self._columns.go_back(columns)
            raise

    def _copied(self) -> dict[str, Any]:
        """Copies of what learning changes in place, besides the core and the columns."""
        return {}

    def learn_many(self, X: Any, y: Any, w: Any = 1.0) -> None:
        """Learn the rows of a data frame, in the order given: all of them or, if one is invalid, none.

        ``w`` is the weight of every row, or a series of their weights.
        """
        frame, given = dataframe.into_frame(X), dataframe.into_series(y).to_list()
        if len(frame) != len(given):
            raise ValueError(f"X and y must have the same number of rows, got {len(frame)} and {len(given)}")
        weights = as_weights(w, len(given))
        rows: FloatArray | None = None
        with self._all_or_none(self._core and self._core.snapshot()):
            for part, targets in self._batches(given, np.ones(len(given)) if weights is None else weights):
                if not np.size(targets):
                    continue
                if rows is None:
                    self._add_features(frame.columns)
                    rows = self._columns.load_frame(frame, self._core.n_features)[0]
                self._learn(rows[part], targets, None if weights is None else weights[part])

    def _batches(self, given: list[Any], weights: FloatArray) -> Iterator[tuple[Any, Any]]:
        """Numbers of rows that are learned together, or of one, and their targets as the core has them.

        The rows before have been learned when the next are asked for. Rows of weight 0 are left out.
        """
        raise NotImplementedError

    # Predicting.

    def _known(self, names: Iterable[Any]) -> Self:
        """The model itself or, before the first row, another that has columns for these names."""
        if self._core is not None:
            return self
        twin = copy.copy(self)
        twin._columns = Columns(self.missing)
        twin._add_features(names)
        return twin

    def _predict_row(self, x: Mapping[Any, Any]) -> Prediction:
        core, columns = self._core, self._columns
        if core is None:
            twin = self._known(x)
            return self._family.before_all_rows(twin._predict_row(x), twin._core)
        row, _, new_squares = columns.load(x, core.n_features)
        if not new_squares and columns.moments is None:
            return core.predict(row)  # type: ignore[no-any-return]
        core, row, options = self._complete(row, new_squares)
        return core.predict(row, **options)  # type: ignore[no-any-return]

    def _predict_frame(self, frame: Any) -> Prediction:
        model = self._known(frame.columns)
        core, rows, options = model._complete(*model._columns.load_frame(frame, model._core.n_features))
        seen = core.predict(rows, **options)
        return seen if model is self else self._family.before_all_rows(seen, core)

    def _complete(self, rows: FloatArray, new_squares: Any) -> tuple[Any, FloatArray, Parameters]:
        """Complete a row ``(d,)`` or many ``(n, d)`` that are to be predicted.

        Gaps are filled, and the weights of all features that were never learned, of which the sums of squares are
        given, are one weight at its prior. Returns the core, which then has that weight, the rows, and options.
        """
        core, used = self._core, len(self._columns)
        options = self._uncertain(rows, self._columns.fill(np.atleast_2d(rows)))
        if self._family.widens and np.any(new_squares):
            core = self._family.larger(core, used + 1)
            more = [(0, 0)] * (rows.ndim - 1) + [(0, core.n_features - rows.shape[-1])]
            rows, options = np.pad(rows, more), {name: np.pad(given, more) for name, given in options.items()}
            rows[..., used] = np.sqrt(new_squares)
        return core, rows, options

    def _distrust(self, x: Mapping[Any, Any], target: float) -> float:
        """Probability that the target of a row can't be trusted."""
        model = self._known(x)
        row, _, new_squares = model._columns.load(x, model._core.n_features)
        core, row, options = model._complete(row, new_squares)
        return float(core.outlier_probability(row, target, **options))

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        names, arrays = self._columns.export_state()
        core, core_arrays = (None, {}) if self._core is None else self._core.export_state()
        arguments = {name: _plain(value) for name, value in self._get_params().items()}
        parameters = {"arguments": arguments, "core": core, "feature_names": names, **self._own_state()}
        return parameters, {**arrays, **nested("core", core_arrays)}

    def _own_state(self) -> Parameters:
        """What a subclass adds."""
        raise NotImplementedError

    def _restore(self, parameters: Parameters) -> None:
        """Check and take what `_own_state` gave; the core is there already."""
        raise NotImplementedError

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = cls(**{name: _from_plain(value) for name, value in parameters["arguments"].items()})
        if parameters["core"] is not None:
            expected = model._smallest_core()
            model._core = type(expected).from_state(parameters["core"], under("core", arrays))
            if getattr(model._core, "bias", None) != getattr(expected, "bias", None):
                raise ValueError("the saved feature names and weights do not match")
        n_columns = 0 if model._core is None else model._core.n_features
        model._columns.restore(parameters["feature_names"], arrays, n_columns)
        model._restore(parameters)
        return model


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _from_plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(eq=False, repr=False)
class NetworkArguments:
    """Arguments that models of networks with hidden layers share."""

    hidden_layer_sizes: int | tuple[int, ...] = (20,)
    activation: str = "relu"
    _: KW_ONLY
    covariance: Covariance = "auto"
    members: int = 1
    random_state: int | None = 0

    def _networks(self, **options: Any) -> Networks:
        layers = (self.hidden_layer_sizes, self.members, self.random_state)
        return Networks(self, *layers, activation=self.activation, **options)

    @classmethod
    def _unit_test_params(cls) -> Iterator[Parameters]:
        yield {"hidden_layer_sizes": (4,)}
        yield {"hidden_layer_sizes": 3, "members": 2}
