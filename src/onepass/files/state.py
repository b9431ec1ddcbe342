"""Converts models to plain data and back: JSON-compatible parameters, and arrays.

Models implement ``export_state`` and ``from_state``; `onepass.files.checkpoint` writes that state to a file. What is
read from a file can't be trusted, so every number is validated here, and shapes before anything of their size is
allocated.
"""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from onepass._arrays import not_negative, sized, sized_or_nan, triangular
from onepass._typing import FloatArray
from onepass._validation import as_count, one_of
from onepass.activations import NAMES, Activation, PiecewiseLinear, Rescaled, as_activation
from onepass.beliefs.base import PerceptronBelief
from onepass.beliefs.choice import count_numbers
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.prior import perceptron_belief
from onepass.engine.outliers import GUARD_SIZE, TRUST_SIGNED, TRUST_SINCE_ALARM, TRUST_SIZE, Trust
from onepass.engine.step import NOISE_WINDOW, STATE_SIZE, PerceptronProgress
from onepass.layers import as_image_shape, decode_layer
from onepass.layers.layout import Layout
from onepass.likelihoods import named

__all__ = [
    "Arrays",
    "Parameters",
    "as_exact_number",
    "as_number",
    "as_tally",
    "check_network",
    "checked_trusts",
    "decode_activation",
    "decode_belief",
    "decode_layout",
    "decode_prior",
    "decode_progress",
    "decode_trust",
    "encode_activation",
    "nested",
    "sized",
    "sized_or_nan",
    "under",
]

Parameters: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, np.ndarray]

_ACTIVATIONS: dict[str, type] = {
    type(own).__name__: type(own)
    for moments in ("exact", "paper")
    for own in (as_activation(n, moments) for n in NAMES)
}


def encode_activation(activation: Activation) -> Parameters:
    """Convert an activation to data; a TypeError for a function of the user's own.

    Examples
    --------
    >>> encode_activation(PiecewiseLinear([0, 1], [0]))
    {'kind': 'PiecewiseLinear', 'slopes': [0.0, 1.0], 'knots': [0.0], 'value_at_zero': 0.0}
    """
    if isinstance(activation, PiecewiseLinear):
        return {
            "kind": "PiecewiseLinear",
            "slopes": activation.slopes.tolist(),
            "knots": activation.knots.tolist(),
            "value_at_zero": activation.value_at_zero,
        }
    if isinstance(activation, Rescaled):
        scales = {name: float(getattr(activation, name)) for name in ("inner", "outer", "offset")}
        return {"kind": "Rescaled", "base": encode_activation(activation.base), **scales}
    name = type(activation).__name__
    if _ACTIVATIONS.get(name) is type(activation):
        return {"kind": name, **vars(activation)}
    raise TypeError(
        f"activation {activation!r} is not built in, so a model with it can't be saved; "
        "use a named activation or a PiecewiseLinear in models that are to be saved"
    )


def decode_activation(data: Any) -> Activation:
    """Restore an activation from its data."""
    kind = _table(data, "activation")["kind"]
    if kind == "PiecewiseLinear":
        return PiecewiseLinear(data["slopes"], data["knots"], data["value_at_zero"])
    if kind == "Rescaled":
        scales = [float(data[name]) for name in ("inner", "outer", "offset")]
        if not np.isfinite(scales).all():
            raise ValueError(f"activation has the scales {scales}, which must be finite")
        return Rescaled(decode_activation(data["base"]), *scales)
    if kind not in _ACTIVATIONS:
        raise ValueError(f"activation is of the unknown kind {kind!r}")
    made: Activation = _ACTIVATIONS[kind](**{name: data[name] for name in data if name != "kind"})
    return made


def decode_belief(data: Any, arrays: Mapping[str, np.ndarray], size: int) -> PerceptronBelief:
    """Make a perceptron's belief over ``size`` weights again, if it is one."""
    form = _table(data, "belief")["form"]
    mean = arrays["mean"]
    if mean.dtype not in (np.float64, np.float32):
        raise ValueError(f"mean has dtype {mean.dtype}, which must be float64 or float32")
    kind = perceptron_belief(form)
    if kind is None:
        raise ValueError(f"belief has the unknown form {form!r}")
    return kind.decode(data, arrays, size, mean.dtype)


def decode_prior(arrays: Mapping[str, np.ndarray], size: int, dtype: Any) -> FullGaussian | DiagonalGaussian:
    """Make the prior of a perceptron again: independent weights unless there is a root, zero means unless given."""
    variances = not_negative(sized(arrays, "prior_variances", (size,), dtype), "prior_variances")
    mean = sized(arrays, "prior_mean", (size,), dtype) if "prior_mean" in arrays else np.zeros(size, dtype=dtype)
    if "prior_root" not in arrays:
        return DiagonalGaussian(mean, variances)
    root = triangular(arrays, "prior_root", size, dtype)
    return FullGaussian.from_arrays(mean, root=np.ascontiguousarray(root))


def check_network(parameters: Parameters, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise a ValueError if a network's arrays don't fit its layers, before anything of their size is allocated."""
    n_outputs = as_count(parameters["n_outputs"], "n_outputs")
    likelihood = named(parameters["observation"])()
    layout = decode_layout(parameters, likelihood.outputs(n_outputs).size)
    size = sum(rows * cols for rows, cols in layout.shapes)
    dtype = np.dtype(one_of(parameters["dtype"], ("float64", "float32"), "dtype"))
    sized(arrays, "mean", (size,), dtype)
    sized(arrays, "covariance", (count_numbers(parameters["covariance"], layout),), dtype)
    scales = not_negative(sized(arrays, "scales", (6, n_outputs)), "scales")
    if (scales[2] <= 0.0).any() or (likelihood.takes_noise and (scales[0] <= 0.0).any()):
        raise ValueError("scales has a noise or a predictive scale of 0, which must be above 0")
    if "prior_mean" in arrays:
        sized(arrays, "prior_mean", (size,), dtype)
        not_negative(sized(arrays, "prior_variances", (size,), dtype), "prior_variances")


def decode_layout(parameters: Parameters, n_outputs: int) -> Layout:
    """The layers of a network, from data that JSON held."""
    entering, layers = parameters["n_features"], parameters["hidden"]
    if not isinstance(layers, (list, tuple)):
        raise ValueError(f"hidden must be a list of layers, got {str(layers)[:40]!r}")
    hidden = [decode_layer(layer) for layer in layers]
    images = isinstance(entering, (list, tuple))
    inputs = as_image_shape(entering) if images else as_count(entering, "n_features")
    return Layout((inputs, *hidden, n_outputs))


def decode_trust(numbers: np.ndarray, outliers: float) -> Trust:
    """Make the trust in targets again, of which this share were outliers at first, if it is one."""
    return Trust(checked_trusts(np.asarray(numbers)[None], 1, outliers)[0])


def checked_trusts(numbers: np.ndarray, n: int, outliers: float) -> FloatArray:
    """Copy the numbers of ``n`` trusts in targets, of which this share were outliers at first, if they are such."""
    size = TRUST_SIZE if outliers else GUARD_SIZE
    if numbers.shape != (n, size):
        raise ValueError(f"trust has shape {numbers.shape[1:]} where ({size},) was expected")
    if numbers.dtype != np.float64:
        raise ValueError(f"trust has dtype {numbers.dtype} where float64 was expected")
    # Only the rows since the last alarm may be infinite; and some rows were trusted, if before the first.
    signed, endless = (np.isin(np.arange(size), at) & bool(outliers) for at in (TRUST_SIGNED, [TRUST_SINCE_ALARM]))
    possible = ((numbers >= 0.0) | signed) & (np.isfinite(numbers) | endless)
    if not (possible.all() and (not outliers or numbers[:, :1].all())):
        raise ValueError("trust holds numbers that are not finite, or negative")
    return np.array(numbers)


def decode_progress(running: np.ndarray, outliers: float = 0.0) -> PerceptronProgress:
    """Make the state of learning again, if it is one."""
    if running.dtype != np.float64 or running.ndim != 1 or len(running) < STATE_SIZE:
        raise ValueError(f"running has shape {running.shape} where ({STATE_SIZE},) was expected")
    trust = decode_trust(running[STATE_SIZE:], outliers)
    state = PerceptronProgress.from_array(np.concatenate([running[:STATE_SIZE], trust.to_array()]))
    if not np.isfinite(np.delete(running[:STATE_SIZE], NOISE_WINDOW)).all() or np.isnan(state.noise_window):
        raise ValueError("running holds numbers that are not finite")
    counted = ("noise", "noise_weight", "noise_window", "n_seen", "largest", "reference", "squares", "weight")
    for name in (*counted, "start_weight"):
        if getattr(state, name) < 0.0:
            raise ValueError(f"running has the {name} {getattr(state, name):g}, which must not be negative")
    return state


def nested(name: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Prefix the arrays of a model inside another with the inner model's name."""
    return {f"{name}/{key}": array for key, array in arrays.items()}


def under(name: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Select the arrays of a model inside another, without the prefix of `nested`."""
    return {key.removeprefix(f"{name}/"): array for key, array in arrays.items() if key.startswith(f"{name}/")}


def as_number(value: Any, name: str) -> float:
    """Validate a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number, got {str(value)[:40]!r}")
    return float(value)


def as_exact_number(value: Any, name: str) -> float:
    """Validate a finite number; a whole one is not rounded, however large it is."""
    number = as_number(value, name)
    return int(value) if isinstance(value, Integral) else number


def as_tally(value: Any, name: str) -> int:
    """Validate a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(f"{name} must be a whole number that is not negative, got {str(value)[:40]!r}")
    return int(value)


def _table(data: Any, name: str) -> Parameters:
    if not isinstance(data, dict):
        raise ValueError(f"{name} must be a table, got {str(data)[:40]!r}")
    return data
