"""Estimators as plain data and back: see `onepass.files.checkpoint`. The names in files are part of the format."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.activations import Activation
from onepass.beliefs.layout import Conv2D, decode_layer, encode_layer
from onepass.estimators.batch import Batch, as_dense, is_sparse
from onepass.estimators.categories import Categories
from onepass.estimators.inputs import CheckedInputs
from onepass.estimators.missing import ColumnMoments
from onepass.estimators.scaling import Scaling
from onepass.files.registry import savable
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
from onepass.models.ensemble import Ensemble
from onepass.models.network import BayesianNetwork
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.weighting import FadingWeights

__all__ = ["SavableEstimator"]


class SavableEstimator(CheckedInputs):
    """What an estimator has learned, and how that is saved and loaded; a subclass adds what its targets are."""

    n_features_in_: int
    feature_names_in_: Any

    _former_arguments: ClassVar[dict[str, Any]] = {
        "intercept_scale": None,
        "outliers": 0.0,
        "drift": 0.0,
        "missing": "error",
    }
    """What older files don't name, as it was when they were written."""

    _input_scaling: Scaling
    _target_scaling: Scaling
    _columns: ColumnMoments | None  # what stands in the place of inputs that are missing
    _ensembles: list[Ensemble]  # one per number of a target
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
            "committees": [],
        }
        if self._categories is not None:
            parameters["categories"] = self._categories.parameters
        if hasattr(self, "feature_names_in_"):
            parameters["feature_names"] = self.feature_names_in_.tolist()
        arrays = {**nested("inputs", self._input_scaling.arrays), **nested("targets", self._target_scaling.arrays)}
        if self._columns is not None:
            arrays |= nested("columns", self._columns.arrays)
        for i, ensemble in enumerate(self._ensembles):
            arrays |= {f"{name}/{i}": values for name, values in ensemble.weighting_arrays.items()}
            members = []
            for k, member in enumerate(ensemble.members):
                state, numbers = member.export_state()
                members.append({"class": type(member).__name__, "state": state})
                arrays |= nested(f"member/{i}/{k}", numbers)
            parameters["committees"].append(members)
        if (batch := self._waiting) is not None:
            parameters["waiting_is_sparse"] = is_sparse(batch.rows)
            waiting = {"rows": as_dense(batch.rows), "targets": batch.targets, "weights": batch.full_weights}
            arrays |= nested("waiting", waiting)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the estimator that `export_state` described; it continues to learn exactly as that one would."""
        arguments = {**cls._former_arguments, **parameters["arguments"]}
        estimator = cls(**{name: _object(value) for name, value in arguments.items()})
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
        # Older files scored all rows.
        estimator._unscored_rows = as_tally(parameters.get("unscored_rows", 0), "unscored_rows")
        estimator._unscored_evidence = as_number(parameters.get("unscored_evidence", 0.0), "unscored_evidence")
        estimator._restore(parameters, arrays)
        estimator._target_scaling = Scaling.from_arrays(under("targets", arrays), len(arrays["targets/centre"]))
        short = parameters.get("short_weights", [0.0] * len(parameters["committees"]))  # which older files don't have
        estimator._short_weights = np.array([as_number(value, "short_weights") for value in short])
        absurd = parameters.get("n_absurd", [0] * len(parameters["committees"]))
        estimator._n_absurd = np.array([as_tally(value, "n_absurd") for value in absurd], dtype=np.int64)
        estimator._ensembles = [
            estimator._restored_ensemble(i, estimator._restored_members(i, entries, arrays), arrays)
            for i, entries in enumerate(parameters["committees"])
        ]
        if "waiting/rows" in arrays:
            # Files of earlier versions had no warm-up with sparse rows.
            form = csr_array if parameters.get("waiting_is_sparse", False) else np.asarray
            estimator._waiting = estimator._restored_batch(under("waiting", arrays), form)
        else:
            estimator._waiting = None
        # Files of earlier versions counted a row as often as its whole weight.
        estimator._n_rows -= as_tally(parameters.get("n_repeated", 0), "n_repeated")
        return estimator

    def _restore(self, parameters: Parameters, arrays: Arrays) -> None:
        """Take from a file what a subclass added to the state."""
        raise NotImplementedError

    def _restored_members(self, number: int, entries: Any, arrays: Arrays) -> list[Any]:
        if not entries:
            raise ValueError("a saved committee must have at least one member")
        members = []
        for k, entry in enumerate(entries):
            model: Any = savable(entry["class"])
            if not issubclass(model, BayesianPerceptron | BayesianNetwork):
                raise ValueError(f"a saved member must be a perceptron or network, got a {model.__name__}")
            members.append(model.from_state(entry["state"], under(f"member/{number}/{k}", arrays)))
            if members[-1].n_features != self._n_inputs:
                raise ValueError(f"a saved member must have {self._n_inputs} features, got {members[-1].n_features}")
        return members

    def _restored_ensemble(self, number: int, members: list[Any], arrays: Arrays) -> Ensemble:
        """Make an ensemble of models that have learned already."""
        evidence = sized(arrays, f"evidence/{number}", (len(members),))
        return self._ensemble_of(members, FadingWeights(evidence))

    def _ensemble_of(self, members: list[Any], weighting: FadingWeights) -> Ensemble:
        return Ensemble(members, weighting)

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
    if isinstance(value, Conv2D):
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
