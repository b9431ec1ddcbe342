"""What all perceptrons of a fleet have in common, and the conversion between a perceptron and its record.

A record contains only what differs between keys: the belief and the running quantities. The rest, settings and shared
arrays, is a `Template`.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.full import FullGaussian
from onepass.engine.outliers import TRUST_WAYS, Trust
from onepass.engine.step import NOISE, NOISE_WEIGHT, NOISE_WINDOW, PerceptronProgress
from onepass.files.state import Arrays, Parameters, encode_activation
from onepass.likelihoods import encode_likelihood
from onepass.models.fleet.records import (
    AT_NOISE,
    AT_NOISE_WEIGHT,
    make_record,
    means_of,
    roots_of,
    running_of,
)
from onepass.models.perceptron import BayesianPerceptron

__all__ = ["Template", "fresh_state", "pack", "restore_prior"]

_SHARED_SETTINGS = ("n_features", "activation", "bias", "observation", "update", "outliers", "forgetting", "drift")


@dataclass(frozen=True)
class Template:
    """Settings and arrays of a perceptron, to which a record adds the belief."""

    settings: Parameters
    arrays: Arrays
    size: int
    """Number of weights, with the bias."""

    @classmethod
    def of(cls, prior: BayesianPerceptron) -> Self:
        """Make the template of a fleet whose keys start from ``prior``."""
        try:
            encode_activation(prior.activation)
        except TypeError:
            raise TypeError(
                f"a fleet takes named activations and PiecewiseLinear only, got {prior.activation!r}; for another "
                "activation use one BayesianPerceptron per key"
            ) from None
        try:
            encode_likelihood(prior.observation)
        except TypeError:
            raise TypeError(
                f"a fleet takes likelihoods that have a name, as its records are stored with it, got "
                f"observation={prior.observation!r}; register its class with onepass.likelihoods.register, or use one "
                "BayesianPerceptron per key"
            ) from None
        return cls(*prior.export_state(), prior.n_features + prior.bias)

    @property
    def noise_window(self) -> float:
        """Rows that a learned noise is averaged over; infinity for all of them."""
        return float(self.arrays["running"][NOISE_WINDOW])

    @property
    def forgetting(self) -> Forgetting:
        """When the past is forgotten."""
        return Forgetting(self.settings["forgetting"], self.size)

    @property
    def outliers(self) -> float:
        """Share of the targets that are not to be trusted, before the first of them."""
        return float(self.settings["outliers"])

    def unpack(self, record: FloatArray, prior: FloatArray) -> BayesianPerceptron:
        """Make the perceptron of a record that started as the record ``prior``."""
        running = running_of(record, self.size, self.noise_window)
        belief = {"mean": means_of(record[None], self.size)[0], "root": roots_of(record[None], self.size)[0]}
        belief |= _prior_arrays(prior, self.size)
        return BayesianPerceptron.from_state(self.settings, {**self.arrays, **belief, "running": running})

    def check_prior(self, prior: Any, current: FloatArray) -> None:
        """Raise an error for a prior that can't replace the one in the record ``current``."""
        if not isinstance(prior, BayesianPerceptron):
            raise TypeError(f"prior must be a BayesianPerceptron, got {type(prior).__name__}")
        settings, arrays = prior.export_state()
        for name in _SHARED_SETTINGS:
            if settings[name] != self.settings[name]:
                raise ValueError(f"prior has {name}={settings[name]!r} where the fleet has {self.settings[name]!r}")
        if not prior._state.belief.keeps_correlations or prior.mean.dtype != np.float64:
            raise ValueError("prior must be a perceptron with covariance='full' and dtype='float64'")
        noise, weight, window = arrays["running"][[NOISE, NOISE_WEIGHT, NOISE_WINDOW]].tolist()
        own_noise, own_weight = current[[AT_NOISE, AT_NOISE_WEIGHT]].tolist()
        if (weight > 0.0) != (own_weight > 0.0):
            given, wanted = ("'learn'" if w > 0.0 else f"{v:g}" for v, w in ((noise, weight), (own_noise, own_weight)))
            raise ValueError(f"prior has noise={given} where the fleet has noise={wanted}")
        if window != self.noise_window:
            given, wanted = (f"{rows:g}" if np.isfinite(rows) else "None" for rows in (window, self.noise_window))
            raise ValueError(f"prior has noise_window={given} where the fleet has {wanted}")


def _prior_arrays(prior: FloatArray, size: int) -> Arrays:
    """What a perceptron's state says of its prior, from the prior's record."""
    root = roots_of(prior[None], size)[0]
    arrays = {"prior_mean": means_of(prior[None], size)[0], "prior_variances": np.square(root).sum(axis=0)}
    return {**arrays, "prior_root": root} if np.tril(root, -1).any() else arrays


def pack(model: BayesianPerceptron) -> FloatArray:
    """Make a record with a perceptron's belief, as one that has learned nothing yet."""
    arrays = model.export_state()[1]
    root = arrays["root"] if "root" in arrays else FullGaussian(model.mean, model.cov).to_root()
    return make_record(model.mean, root, fresh_state(PerceptronProgress.from_array(arrays["running"])))


def fresh_state(state: PerceptronProgress) -> PerceptronProgress:
    """The state of a key that has learned nothing yet, with the noise and the shares of outliers of another."""
    fresh = PerceptronProgress(state.noise, state.noise_weight, state.noise_window)
    fresh.largest = state.largest
    fresh.trust = Trust.after(state.trust.to_array()[:TRUST_WAYS]) if state.trust.active else Trust()
    if state.reference:
        fresh.start_reweighing()
    return fresh


def restore_prior(settings: Parameters, arrays: Arrays, record: FloatArray, size: int) -> BayesianPerceptron:
    """Make the perceptron that a saved fleet started from."""
    running = running_of(record, size, arrays["window"][0])
    numbers = {
        "mean": means_of(record[None], size)[0],
        "root": roots_of(record[None], size)[0],
        "running": running,
        "process_noise": np.zeros(size),
        **_prior_arrays(record, size),
    }
    return BayesianPerceptron.from_state({**settings, "belief": {"form": "full", "needs_square_root": False}}, numbers)
