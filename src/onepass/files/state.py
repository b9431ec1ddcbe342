"""Converts models to plain data and back: JSON-compatible parameters, and arrays.

Models implement ``export_state`` and ``from_state``; `onepass.files.checkpoint` writes that state to a file. What is
read from a file can't be trusted, so every number is validated here, and shapes before anything of their size is
allocated.
"""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import as_count, one_of
from onepass.activations import (
    Activation,
    Exponential,
    Gelu,
    PaperSigmoid,
    PiecewiseLinear,
    Probit,
    Rescaled,
    Sigmoid,
    Softplus,
    Step,
)
from onepass.beliefs.base import Belief
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.layout import Conv2D, Layout, as_image_shape, decode_layer
from onepass.beliefs.structures import count_numbers
from onepass.engine.outliers import GUARD_SIZE, TRUST_CALM, TRUST_SIGNED, TRUST_SIZE, Trust
from onepass.engine.step import NOISE_WINDOW, STATE_SIZE, LearningState
from onepass.likelihoods import Bernoulli, Gaussian, Likelihood, NegativeBinomial, Poisson
from onepass.likelihoods.outputs import choose_outputs

__all__ = [
    "Arrays",
    "Parameters",
    "as_number",
    "as_tally",
    "check_definite",
    "check_network",
    "checked_trusts",
    "decode_activation",
    "decode_belief",
    "decode_layout",
    "decode_learning_state",
    "decode_prior",
    "decode_trust",
    "encode_activation",
    "encode_likelihood",
    "nested",
    "sized",
    "sized_or_nan",
    "under",
]

Parameters: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, np.ndarray]

_PLAIN: dict[str, type] = {
    kind.__name__: kind for kind in (Exponential, Gelu, PaperSigmoid, Probit, Sigmoid, Softplus, Step)
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
    if _PLAIN.get(name) is type(activation):
        return {"kind": name}
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
    if kind not in _PLAIN:
        raise ValueError(f"activation is of the unknown kind {kind!r}")
    made: Activation = _PLAIN[kind]()
    return made


def encode_likelihood(likelihood: Likelihood) -> str:
    """Return the name of a likelihood; a TypeError for a class of the user's own, which can't be in a file."""
    if type(likelihood) not in (Bernoulli, Gaussian, NegativeBinomial, Poisson):
        raise TypeError(
            f"likelihood {likelihood!r} is not built in, so a model with it can't be saved; "
            "use observation='gaussian', 'bernoulli', 'poisson' or 'negative_binomial' in models that are to be saved"
        )
    return likelihood.name


def decode_belief(data: Any, arrays: Mapping[str, np.ndarray], size: int) -> Belief:
    """Make a belief over ``size`` weights again, if it is one."""
    form = _table(data, "belief")["form"]
    mean = arrays["mean"]
    if mean.dtype not in (np.float64, np.float32):
        raise ValueError(f"mean has dtype {mean.dtype}, which must be float64 or float32")
    dtype = mean.dtype
    mean = sized(arrays, "mean", (size,), dtype)
    if form == "diagonal":
        return DiagonalGaussian(mean, _not_negative(sized(arrays, "variance", (size,), dtype), "variance"))
    if form != "full":
        raise ValueError(f"belief has the unknown form {form!r}")
    if not isinstance(data["fragile"], bool):
        raise ValueError(f"fragile must be true or false, got {data['fragile']!r}")
    if "root" in arrays:
        root = _triangular(arrays, "root", size, dtype)
        return FullGaussian.from_arrays(mean, root=np.ascontiguousarray(root), needs_square_root=data["fragile"])
    lower = sized(arrays, "covariance", (size, size), dtype)
    check_definite(lower)
    return FullGaussian.from_arrays(mean, dense=np.asfortranarray(lower), needs_square_root=data["fragile"])


def decode_prior(arrays: Mapping[str, np.ndarray], size: int, dtype: Any) -> FullGaussian | DiagonalGaussian:
    """Make the prior of a perceptron again: independent weights unless there is a root, zero means unless given."""
    variances = _not_negative(sized(arrays, "prior_variances", (size,), dtype), "prior_variances")
    mean = sized(arrays, "prior_mean", (size,), dtype) if "prior_mean" in arrays else np.zeros(size, dtype=dtype)
    if "prior_root" not in arrays:
        return DiagonalGaussian(mean, variances)
    root = _triangular(arrays, "prior_root", size, dtype)
    return FullGaussian.from_arrays(mean, root=np.ascontiguousarray(root))


def _triangular(arrays: Mapping[str, np.ndarray], name: str, size: int, dtype: Any) -> np.ndarray:
    """A lower triangular root of a covariance, which it can be multiplied to."""
    root = sized(arrays, name, (size, size), dtype)
    if np.triu(root, 1).any():
        raise ValueError(f"{name} has entries above its diagonal")
    most = np.sqrt(np.finfo(dtype).max / size)
    if np.abs(root).max(initial=0.0) > most:
        raise ValueError(f"{name} has entries above {most:.3g}, whose squares are beyond {np.dtype(dtype)}")
    return root


def check_definite(lower: FloatArray) -> None:
    """Raise a ValueError for a covariance, given by its lower triangle, that is not positive semi-definite."""
    variances = _not_negative(np.diag(lower), "the diagonal of the covariance")
    # A learned covariance may be indefinite by rounding, so a multiple of the rounding error is added first.
    lift = 1e3 * len(lower) * np.finfo(lower.dtype).eps * variances.max()
    scale = 1.0 / np.sqrt(variances + lift + np.finfo(lower.dtype).tiny)
    scaled = scale[:, None] * (lower + np.diag(np.full(len(lower), lift, dtype=lower.dtype))) * scale
    try:
        np.linalg.cholesky(scaled)  # reads the lower triangle only
    except np.linalg.LinAlgError:
        raise ValueError("covariance is not positive semi-definite") from None


def check_network(parameters: Parameters, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise a ValueError if a network's arrays don't fit its layers, before anything of their size is allocated."""
    n_outputs = as_count(parameters["n_outputs"], "n_outputs")
    layout = decode_layout(parameters, choose_outputs(parameters["observation"], parameters["noise"])(n_outputs).size)
    size = sum(rows * cols for rows, cols in layout.shapes)
    dtype = np.dtype(one_of(parameters["dtype"], ("float64", "float32"), "dtype"))
    sized(arrays, "mean", (size,), dtype)
    sized(arrays, "covariance", (count_numbers(parameters["covariance"], layout),), dtype)
    _not_negative(sized(arrays, "scales", (5, n_outputs)), "scales")
    if "prior_mean" in arrays:
        sized(arrays, "prior_mean", (size,), dtype)
        _not_negative(sized(arrays, "prior_variances", (size,), dtype), "prior_variances")


def decode_layout(parameters: Parameters, n_outputs: int) -> Layout:
    """The layers of a network, from data that JSON held."""
    entering, layers = parameters["n_features"], parameters["hidden"]
    if not isinstance(layers, (list, tuple)):
        raise ValueError(f"hidden must be a list of layers, got {str(layers)[:40]!r}")
    hidden = [decode_layer(layer) for layer in layers]
    images = isinstance(entering, (list, tuple))
    inputs = as_image_shape(entering) if images else as_count(entering, "n_features")
    for width in hidden:
        if not isinstance(width, Conv2D):
            as_count(width, "the width of a layer")
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
    signed, endless = (np.isin(np.arange(size), at) & bool(outliers) for at in (TRUST_SIGNED, [TRUST_CALM]))
    possible = ((numbers >= 0.0) | signed) & (np.isfinite(numbers) | endless)
    if not (possible.all() and (not outliers or numbers[:, :1].all())):
        raise ValueError("trust holds numbers that are not finite, or negative")
    return np.array(numbers)


def decode_learning_state(running: np.ndarray, outliers: float = 0.0) -> LearningState:
    """Make the state of learning again, if it is one."""
    if running.dtype != np.float64 or running.ndim != 1 or len(running) < STATE_SIZE:
        raise ValueError(f"running has shape {running.shape} where ({STATE_SIZE},) was expected")
    trust = decode_trust(running[STATE_SIZE:], outliers)
    state = LearningState.from_array(np.concatenate([running[:STATE_SIZE], trust.to_array()]))
    if not np.isfinite(np.delete(running[:STATE_SIZE], NOISE_WINDOW)).all() or np.isnan(state.noise_window):
        raise ValueError("running holds numbers that are not finite")
    counted = ("noise", "noise_weight", "noise_window", "n_seen", "largest", "reference", "squares", "weight")
    for name in (*counted, "start_weight"):
        if getattr(state, name) < 0.0:
            raise ValueError(f"running has the {name} {getattr(state, name):g}, which must not be negative")
    return state


def sized(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> FloatArray:
    """Copy an array that must be finite and have exactly this shape and dtype."""
    array = _shaped(arrays, name, shape, dtype)
    if name != "running" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return np.array(array)


def sized_or_nan(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> FloatArray:
    """Copy an array of targets, of which some may be NaN."""
    array = _shaped(arrays, name, shape, np.float64)
    if np.isinf(array).any():
        raise ValueError(f"{name} holds numbers that are not finite")
    return np.array(array)


def _shaped(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    array = arrays[name]
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape} where {shape} was expected")
    if array.dtype != dtype:
        raise ValueError(f"{name} has dtype {array.dtype} where {np.dtype(dtype)} was expected")
    return array


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


def as_tally(value: Any, name: str) -> int:
    """Validate a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(f"{name} must be a whole number that is not negative, got {str(value)[:40]!r}")
    return int(value)


def _table(data: Any, name: str) -> Parameters:
    if not isinstance(data, dict):
        raise ValueError(f"{name} must be a table, got {str(data)[:40]!r}")
    return data


def _not_negative(array: FloatArray, name: str) -> FloatArray:
    if (array < 0.0).any():
        raise ValueError(f"{name} has the entry {array.min():g}, which must not be negative")
    return array
