"""Estimators as plain data and back: see `onepass.files.checkpoint`. The names in files are part of the format."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from onepass.activations import Activation
from onepass.estimators.categories import Categories
from onepass.estimators.inputs import InputEncoder
from onepass.estimators.learner import Learner, LearnerState
from onepass.estimators.rows import Rows, as_dense, is_sparse
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
from onepass.models.calibration import CalibrationMap
from onepass.models.missing import COLUMNS
from onepass.models.mixture import Mixture
from onepass.models.tracking import QuantileTracker

__all__ = [
    "argument_from_json",
    "argument_to_json",
    "export_learner",
    "feature_names",
    "restore_encoder",
    "restore_learner",
]

_COUNTS = ("n_rows", "n_passes", "unscored_rows")


def export_learner(learner: Learner) -> tuple[Parameters, Arrays]:
    """The whole state of a learner, as parameters for JSON and arrays."""
    state = learner.state
    parameters: Parameters = {
        **{name: getattr(state, name) for name in _COUNTS},
        "n_features": learner.n_features,
        "seed": learner.blueprint.seed,
        "unscored_evidence": state.unscored_evidence,
        "short_weights": state.short_weights.tolist(),
        "n_absurd": state.n_absurd.tolist(),
        "mixtures": [],
        **learner.targets.parameters,
    }
    if learner.encoder.categories is not None:
        parameters["categories"] = learner.encoder.categories.parameters
    arrays = {**nested("inputs", state.inputs.arrays), **nested("targets", state.targets.arrays)}
    if state.columns is not None:
        arrays |= nested("columns", state.columns.arrays)
    for i, mixture in enumerate(state.mixtures):
        own, numbers = mixture.export_state()
        parameters["mixtures"].append(own)
        arrays |= nested(f"mixture/{i}", numbers)
    for i, tracker in enumerate(state.trackers):
        arrays |= nested(f"tracker/{i}", tracker.to_arrays())
    if state.calibration is not None:
        parameters["calibration"], numbers = state.calibration.export_state()
        arrays |= nested("calibration", numbers)
    if (waiting := state.waiting) is not None:
        parameters["waiting_is_sparse"] = is_sparse(waiting.X)
        numbers = {"rows": as_dense(waiting.X), "targets": waiting.y, "weights": waiting.full_weights}
        arrays |= nested("waiting", numbers)
    return parameters, arrays


def restore_encoder(parameters: Parameters, missing: str, image_shape: Any) -> InputEncoder:
    """The encoder of a saved learner."""
    given = parameters.get("categories")
    return InputEncoder(missing, image_shape, None if given is None else Categories.from_parameters(given))


def restore_learner(learner: Learner, parameters: Parameters, arrays: Arrays) -> None:
    """Put into a new learner what another has exported; it continues to learn exactly as that one would."""
    n_inputs, q = learner.blueprint.n_inputs, learner.targets.n_targets
    if len(parameters["mixtures"]) != q or arrays["targets/centre"].shape != (q,):
        raise ValueError(f"the saved state is incomplete: it should have {q} outputs")
    kind = COLUMNS.get(learner.encoder.missing)
    state = LearnerState(
        inputs=Scaling.from_arrays(under("inputs", arrays), n_inputs),
        targets=Scaling.from_arrays(under("targets", arrays), q),
        columns=None if kind is None else kind.from_arrays(under("columns", arrays), n_inputs),
        short_weights=np.array([as_number(value, "short_weights") for value in parameters["short_weights"]]),
        n_absurd=np.array([as_tally(value, "n_absurd") for value in parameters["n_absurd"]], dtype=np.int64),
        mixtures=[
            _mixture(own, under(f"mixture/{i}", arrays), n_inputs) for i, own in enumerate(parameters["mixtures"])
        ],
        trackers=[
            QuantileTracker.from_arrays(under(f"tracker/{i}", arrays))
            for i in range(q if learner.blueprint.tracks_intervals else 0)
        ],
        unscored_evidence=as_number(parameters["unscored_evidence"], "unscored_evidence"),
    )
    if learner.blueprint.calibrates:
        state.calibration = CalibrationMap.from_state(parameters["calibration"], under("calibration", arrays))
        if state.calibration.n_classes != len(learner.targets.classes):
            raise ValueError("the saved calibration and classes do not match")
    for name in _COUNTS:
        setattr(state, name, as_tally(parameters[name], name))
    if "waiting/rows" in arrays:
        form = csr_array if parameters["waiting_is_sparse"] else np.asarray
        state.waiting = _waiting(under("waiting", arrays), form, (state.n_rows, n_inputs), kind is not None)
    learner.state = state
    learner.newly_set_aside()  # which was reported when it happened


def _mixture(state: Parameters, arrays: Arrays, n_inputs: int) -> Mixture:
    mixture = Mixture.from_state(state, arrays)
    if mixture.n_features != n_inputs:
        raise ValueError(f"a saved member must have {n_inputs} features, got {mixture.n_features}")
    return mixture


def _waiting(waiting: Arrays, form: Any, shape: tuple[int, int], may_miss: bool) -> Rows:
    rows = (sized_or_nan if may_miss else sized)(waiting, "rows", shape)
    columns = waiting["targets"].shape[1:]
    read = sized_or_nan if waiting["targets"].size > shape[0] else sized  # of several some may be unobserved
    targets = read(waiting, "targets", (shape[0], *columns)).reshape(shape[0], -1)
    weights = sized(waiting, "weights", shape[:1])
    return Rows(form(rows), targets, None if (weights == 1.0).all() else weights)


def argument_to_json(name: str, value: Any) -> Any:
    """An argument as a value that JSON has."""
    if isinstance(value, Activation):
        return encode_activation(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Layer):
        return encode_layer(value)
    if isinstance(value, (tuple, list)):
        return [argument_to_json(name, part) for part in value]
    if name == "class_weight" and isinstance(value, dict):
        return {"weights": [[argument_to_json(name, label), float(weight)] for label, weight in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"an estimator with {name}={value!r} can't be saved: use a string, a number or a list of them")


def argument_from_json(value: Any) -> Any:
    """An argument from what JSON had for it."""
    if isinstance(value, dict) and "weights" in value:
        return {label: as_number(weight, "class_weight") for label, weight in value["weights"]}
    if isinstance(value, dict):
        return decode_activation(value) if "kind" in value else decode_layer(value)
    return tuple(argument_from_json(part) for part in value) if isinstance(value, list) else value


def feature_names(given: Any, size: int) -> Any:
    """Check saved names of features."""
    if not isinstance(given, list) or len(given) != size or not all(isinstance(name, str) for name in given):
        raise ValueError(f"the saved feature names must be {size} strings")
    return np.array(given, dtype=object)
