"""Converts models to plain data and back: JSON-compatible parameters, and arrays.

Models implement ``export_state`` and ``from_state``; `onepass.files.checkpoint` writes that state to a file. What is
read from a file can't be trusted, so every number is validated here, and shapes before anything of their size is
allocated.
"""

from collections.abc import Mapping
from itertools import pairwise
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
from onepass.likelihoods.univariate import NOISE, NOISE_WEIGHT, NOISE_WINDOW, SEEN, Bernoulli, Gaussian, Observation

__all__ = [
    "Arrays",
    "Parameters",
    "as_number",
    "as_tally",
    "check_definite",
    "check_network",
    "decode_activation",
    "decode_posterior",
    "encode_activation",
    "encode_observation",
    "encode_posterior",
    "nested",
    "sized",
    "under",
    "valid_running",
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
        f"activation {activation!r} is a function of its own, which a file can't hold; "
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


def encode_observation(observation: Observation) -> str:
    """Return the name that a model's ``observation`` argument has for this likelihood."""
    if isinstance(observation, Gaussian):
        return "gaussian"
    return "bernoulli" if isinstance(observation, Bernoulli) else "poisson"


def encode_posterior(posterior: Belief) -> tuple[Parameters, Arrays]:
    """Convert a belief to data in its current form, so that a restored one continues to learn bit for bit."""
    if isinstance(posterior, DiagonalGaussian):
        return {"form": "diagonal"}, {"mean": posterior.mean.copy(), "variance": posterior.variance.copy()}
    assert isinstance(posterior, FullGaussian)
    numbers = {"covariance": np.tril(posterior.dense)} if posterior.is_dense else {"root": posterior.root.copy()}
    return {"form": "full", "fragile": posterior.fragile}, {"mean": posterior.mean.copy(), **numbers}


def decode_posterior(data: Any, arrays: Mapping[str, np.ndarray], size: int) -> Belief:
    """Restore a belief over ``size`` weights; a ValueError if the numbers are not those of a belief."""
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
        root = sized(arrays, "root", (size, size), dtype)
        if np.triu(root, 1).any():
            raise ValueError("root has entries above its diagonal")
        return FullGaussian.held(mean, root=np.ascontiguousarray(root), fragile=data["fragile"])
    lower = sized(arrays, "covariance", (size, size), dtype)
    check_definite(lower)
    return FullGaussian.held(mean, dense=np.asfortranarray(lower), fragile=data["fragile"])


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
    layers = [parameters["n_features"], *parameters["hidden"], parameters["n_outputs"]]
    widths = [as_count(width, "the width of a layer") for width in layers]
    n_outputs = widths[-1]
    if parameters["noise"] == "heteroscedastic":
        widths[-1] *= 2  # each output is followed by that of its noise
    fans = [(n_in + 1, n_out) for n_in, n_out in pairwise(widths)]
    size = sum(n_in * n_out for n_in, n_out in fans)
    sizes = {
        "full": size**2,
        "layer": sum((n_in * n_out) ** 2 for n_in, n_out in fans),
        "neuron": sum(n_in**2 * n_out for n_in, n_out in fans),
        "diagonal": size,
    }
    dtype = np.dtype(one_of(parameters["dtype"], ("float64", "float32"), "dtype"))
    structure = one_of(parameters["covariance"], tuple(sizes), "covariance")
    sized(arrays, "mean", (size,), dtype)
    covariance = sized(arrays, "covariance", (sizes[structure],), dtype)
    if structure == "diagonal":
        _not_negative(covariance, "covariance")
    _not_negative(sized(arrays, "scales", (4, n_outputs)), "scales")


def valid_running(running: np.ndarray) -> FloatArray:
    """Check and copy the running quantities of a perceptron: noise, evidence and number of rows."""
    finite = np.delete(running, NOISE_WINDOW)
    if running[NOISE_WINDOW] != np.inf:
        finite = running
    if not np.isfinite(finite).all():
        raise ValueError("running holds numbers that are not finite")
    for index, name in ((NOISE, "noise"), (NOISE_WEIGHT, "noise weight"), (NOISE_WINDOW, "noise window"), (SEEN, "n")):
        if running[index] < 0.0:
            raise ValueError(f"running has the {name} {running[index]:g}, which must not be negative")
    return np.array(running, dtype=np.float64)


def sized(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> FloatArray:
    """Copy an array that must be finite and have exactly this shape and dtype."""
    array = arrays[name]
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape} where {shape} was expected")
    if array.dtype != dtype:
        raise ValueError(f"{name} has dtype {array.dtype} where {np.dtype(dtype)} was expected")
    if name != "running" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return np.array(array)


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
