"""The Kalman Bayesian neural network, for comparison: Wagner, Wu and Huber (AAAI 2023).

Its neurons and layers are independent, and a target is propagated backward layer by layer: the update of a unit's
output updates its pre-activation, and that its weights and its inputs, which are the outputs of the layer before.
`BayesianNetwork` propagates expected derivatives instead and takes one joint step, which learns faster. The equations
are those of that publication as far as it states them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation, as_activation
from onepass.beliefs.block import NeuronBlocks
from onepass.models.network import BayesianNetwork
from onepass.models.network.learning import Learner, Pass
from onepass.models.network.priors import UNIT, NetworkPrior
from onepass.models.network.propagation import evaluate
from onepass.models.network.state import State

__all__ = ["KalmanNetwork"]


class KalmanNetwork(BayesianNetwork):
    """A network with the classic prior and update: neuron blocks, moments for innovations, standard normal weights.

    Parameters
    ----------
    n_features, hidden, n_outputs, activation, seed
        As for `BayesianNetwork`.
    noise : float
        Variance added to the output of every unit of every layer.
    prior : NetworkPrior
        The published one by default.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.paper.kalman_network import KalmanNetwork
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> network = KalmanNetwork(1, (10,)).learn(X, np.abs(X[:, 0]))
    >>> network.predict(X).mean.shape
    (50,)
    """

    def __init__(
        self,
        n_features: int,
        hidden: tuple[int, ...] = (50,),
        n_outputs: int = 1,
        activation: Any = "relu",
        *,
        noise: float = 0.01,
        prior: NetworkPrior = UNIT,
        seed: int = 0,
    ) -> None:
        super().__init__(
            n_features,
            hidden,
            n_outputs,
            activation,
            observation="gaussian",
            noise=noise,
            covariance="neuron",
            prior=prior,
            seed=seed,
            calibrate=False,
            kernel="reference",
        )

    @classmethod
    def _arguments_from(cls, given: dict[str, Any]) -> dict[str, Any]:
        own = ("n_features", "hidden", "n_outputs", "activation", "noise", "prior", "seed")
        arguments = super()._arguments_from(given)
        return {name: arguments[name] for name in own}

    def _output_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Moments through all layers instead of slopes."""
        layers = forward(self._neurons, self.activation, rows, float(self.noise))
        var = layers[-1].pre_var
        return layers[-1].pre_mean, var[:, :, None] * np.eye(var.shape[1])

    def _drawn(self, rows: FloatArray, weights: FloatArray, noise_scale: FloatArray | None) -> FloatArray:
        """Nothing is linearised here, so draws are not either."""
        layers = self._layout.layers(weights)
        return np.stack([evaluate([layer[i] for layer in layers], self.activation, rows) for i in range(len(weights))])

    @cached_property
    def _learner(self) -> Learner:
        return KalmanLearner(**self._learner_settings, compiled=False)

    @property
    def _neurons(self) -> NeuronBlocks:
        assert isinstance(self._state.belief, NeuronBlocks)
        return self._state.belief


@dataclass(frozen=True)
class KalmanLearner(Learner):
    """Learns a pass layer by layer, instead of by one joint step."""

    def run(self, state: State, work: Pass) -> int:
        """Learn a pass into the state, in place; return the number of rows learned."""
        assert isinstance(state.belief, NeuronBlocks)
        noise = float(state.noise.noise[0])
        for i in work.order:
            mean, var = backward(state.belief, self.activation, work.rows[i], work.targets[i], noise)
            total, error = var + noise, work.targets[i] - mean
            logs = -0.5 * (np.log(2.0 * np.pi * total) + error**2 / total)
            work.densities[i] = logs.sum(where=~np.isnan(work.targets[i]))
            if work.record is not None:
                none = np.zeros_like(mean)
                work.record[i] = mean, var, none + noise, none + 1.0, none, none, none
        return len(work.rows)


class Layer:
    """Moments of one layer on the way forward, for rows ``(n, ...)``."""

    def __init__(self, z: FloatArray, z_var: FloatArray, weight: FloatArray, blocks: FloatArray) -> None:
        self.z, self.z_var = z, z_var  # what comes in, (n, n_in + 1)
        self.weight, self.blocks = weight, blocks
        self.gain: FloatArray = np.einsum("uij,nj->nui", blocks, z)  # C z
        self.pre_mean: FloatArray = z @ weight.T
        variances = np.diagonal(blocks, axis1=1, axis2=2)
        self.pre_var: FloatArray = np.einsum("nui,ni->nu", self.gain, z) + z_var @ (weight**2 + variances).T

    def activate(self, activation: Activation, noise: float) -> None:
        """What goes out: mean, variance and covariance with the pre-activation, ``(n, n_out)``."""
        output = activation.moments(self.pre_mean, self.pre_var)
        self.mean, self.var, self.cross = output.mean, output.var + noise, output.slope * self.pre_var


_LINEAR = as_activation("linear")


def forward(belief: NeuronBlocks, activation: Activation, rows: FloatArray, noise: float) -> list[Layer]:
    """Moments of all layers; the last one is linear."""
    z, z_var, layers = rows, np.zeros_like(rows), []
    parts = list(zip(belief.layout.layers(belief.mean), belief.unit_blocks(), strict=True))
    for number, (weight, blocks) in enumerate(parts):
        one = np.ones((len(rows), 1))
        layer = Layer(np.hstack([one, z]), np.hstack([0.0 * one, z_var]), weight.copy(), blocks)
        layer.activate(_LINEAR if number == len(parts) - 1 else activation, noise)
        z, z_var = layer.mean, layer.var
        layers.append(layer)
    return layers


def backward(
    belief: NeuronBlocks,
    activation: Activation,
    x: FloatArray,
    y: FloatArray,
    noise: float,
) -> tuple[FloatArray, FloatArray]:
    """Learn one row into neuron blocks, in place; mean and variance of the outputs from before, ``(K,)``."""
    layers = forward(belief, activation, x[None], noise)
    blocks = [block for _, block in belief.blocks()]
    means = belief.layout.layers(belief.mean)
    # An output that was not observed is as it was predicted to be.
    target, target_var = np.where(np.isnan(y), [layers[-1].mean[0], layers[-1].var[0]], [y, np.zeros_like(y)])
    end = len(blocks)
    for layer, mean in zip(layers[::-1], means[::-1], strict=True):
        pre_var = np.maximum(layer.pre_var[0], 1e-300)
        k = layer.cross[0] / layer.var[0]
        move, shrink = k * (target - layer.mean[0]), k**2 * (target_var - layer.var[0])
        gain = layer.gain[0] / pre_var[:, None]
        input_gain = layer.z_var[0] * layer.weight / pre_var[:, None]
        target = (layer.z[0] + move @ input_gain)[1:]
        target_var = (layer.z_var[0] + shrink @ input_gain**2)[1:]
        mean += move[:, None] * gain
        begin = end - len(mean)
        for unit in range(len(mean)):
            blocks[begin + unit] += shrink[unit] * np.outer(gain[unit], gain[unit])
        end = begin
    return layers[-1].pre_mean[0], layers[-1].pre_var[0]
