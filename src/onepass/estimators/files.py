"""Estimators as plain data and back: see `onepass.files.checkpoint`. The names in files are part of the format."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.activations import Activation
from onepass.estimators.batch import Batch, as_dense, is_sparse
from onepass.estimators.categories import Categories
from onepass.estimators.inputs import CheckedInputs
from onepass.estimators.scaling import Scaling
from onepass.files.state import (
    Arrays,
    Parameters,
    as_number,
    as_tally,
    decode_activation,
    encode_activation,
    nested,
    sized,
    sized_or_nan,
    under,
)
from onepass.layers import Layer, decode_layer, encode_layer
from onepass.models.missing import ColumnMoments
from onepass.models.mixture import Mixture

__all__ = ["SavableEstimator"]


class SavableEstimator(CheckedInputs):
    """What an estimator has learned, and how that is saved and loaded; a subclass adds what its targets are."""

    n_features_in_: int
    feature_names_in_: Any

    _input_scaling: Scaling
    _target_scaling: Scaling
    _columns: ColumnMoments | None  # for imputing missing inputs
    _mixtures: list[Mixture]  # one per number of a target
    _waiting: Batch | None  # rows of a warm-up that is not over
    _n_rows: int
    _unscored_rows: int
    _unscored_evidence: float
    _short_weights: FloatArray  # by how much all weights of rows together fall short of 1 each, per number of a target
    _n_absurd: NDArray[np.int64]  # targets that the warm-up has set aside, likewise

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the whole state of the estimator, as parameters for JSON and arrays: see `onepass.save`."""
        check_is_fitted(self)
        parameters: Parameters = {
            "arguments": {name: _plain(name, value) for name, value in self.get_params(deep=False).items()},
            "n_features": self.n_features_in_,
            "n_rows": self._n_rows,
            "unscored_rows": self._unscored_rows,
            "unscored_evidence": self._unscored_evidence,
            "short_weights": self._short_weights.tolist(),
            "n_absurd": self._n_absurd.tolist(),
            "mixtures": [],
        }
        if self._categories is not None:
            parameters["categories"] = self._categories.parameters
        if hasattr(self, "feature_names_in_"):
            parameters["feature_names"] = self.feature_names_in_.tolist()
        arrays = {**nested("inputs", self._input_scaling.arrays), **nested("targets", self._target_scaling.arrays)}
        if self._columns is not None:
            arrays |= nested("columns", self._columns.arrays)
        for i, mixture in enumerate(self._mixtures):
            state, numbers = mixture.export_state()
            parameters["mixtures"].append(state)
            arrays |= nested(f"mixture/{i}", numbers)
        if (batch := self._waiting) is not None:
            parameters["waiting_is_sparse"] = is_sparse(batch.rows)
            waiting = {"rows": as_dense(batch.rows), "targets": batch.targets, "weights": batch.full_weights}
            arrays |= nested("waiting", waiting)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the estimator that `export_state` described; it continues to learn exactly as that one would."""
        estimator = cls(**{name: _object(value) for name, value in parameters["arguments"].items()})
        estimator._check_parameters()
        estimator.n_features_in_ = as_count(parameters["n_features"], "n_features")
        if "feature_names" in parameters:
            estimator.feature_names_in_ = _names(parameters["feature_names"], estimator.n_features_in_)
        given = parameters.get("categories")
        estimator._categories = None if given is None else Categories.from_parameters(given)
        estimator._input_scaling = Scaling.from_arrays(under("inputs", arrays), estimator._n_inputs)
        estimator._columns = None
        if "columns/count" in arrays:
            estimator._columns = ColumnMoments.from_arrays(under("columns", arrays), estimator._n_inputs)
        estimator._n_rows = as_tally(parameters["n_rows"], "n_rows")
        estimator._unscored_rows = as_tally(parameters["unscored_rows"], "unscored_rows")
        estimator._unscored_evidence = as_number(parameters["unscored_evidence"], "unscored_evidence")
        estimator._restore(parameters, arrays)
        estimator._target_scaling = Scaling.from_arrays(under("targets", arrays), len(arrays["targets/centre"]))
        short, absurd = parameters["short_weights"], parameters["n_absurd"]
        estimator._short_weights = np.array([as_number(value, "short_weights") for value in short])
        estimator._n_absurd = np.array([as_tally(value, "n_absurd") for value in absurd], dtype=np.int64)
        estimator._mixtures = [
            estimator._restored_mixture(state, under(f"mixture/{i}", arrays))
            for i, state in enumerate(parameters["mixtures"])
        ]
        if "waiting/rows" in arrays:
            form = csr_array if parameters["waiting_is_sparse"] else np.asarray
            estimator._waiting = estimator._restored_batch(under("waiting", arrays), form)
        else:
            estimator._waiting = None
        return estimator

    def _restore(self, parameters: Parameters, arrays: Arrays) -> None:
        """Take from a file what a subclass added to the state."""
        raise NotImplementedError

    def _restored_mixture(self, state: Parameters, arrays: Arrays) -> Mixture:
        mixture = Mixture.from_state(state, arrays)
        if mixture.n_features != self._n_inputs:
            raise ValueError(f"a saved member must have {self._n_inputs} features, got {mixture.n_features}")
        return mixture

    def _restored_batch(self, waiting: Arrays, form: Any) -> Batch:
        shape = (self._n_rows, self._n_inputs)
        rows = (sized if self._columns is None else sized_or_nan)(waiting, "rows", shape)
        columns = waiting["targets"].shape[1:]
        read = sized_or_nan if waiting["targets"].size > shape[0] else sized  # of several some may be unobserved
        targets = read(waiting, "targets", (shape[0], *columns)).reshape(shape[0], -1)
        weights = sized(waiting, "weights", shape[:1])
        return Batch(form(rows), targets, None if (weights == 1.0).all() else weights)


def _plain(name: str, value: Any) -> Any:
    """An argument as a value that JSON has."""
    if isinstance(value, Activation):
        return encode_activation(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Layer):
        return encode_layer(value)
    if isinstance(value, (tuple, list)):
        return [_plain(name, part) for part in value]
    if name == "class_weight" and isinstance(value, dict):
        return {"weights": [[_plain(name, label), float(weight)] for label, weight in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"an estimator with {name}={value!r} can't be saved: use a string, a number or a list of them")


def _object(value: Any) -> Any:
    """An argument from what JSON had for it."""
    if isinstance(value, dict) and "weights" in value:
        return {label: as_number(weight, "class_weight") for label, weight in value["weights"]}
    if isinstance(value, dict):
        return decode_activation(value) if "kind" in value else decode_layer(value)
    return tuple(_object(part) for part in value) if isinstance(value, list) else value


def _names(given: Any, size: int) -> Any:
    if not isinstance(given, list) or len(given) != size or not all(isinstance(name, str) for name in given):
        raise ValueError(f"the saved feature names must be {size} strings")
    return np.array(given, dtype=object)
