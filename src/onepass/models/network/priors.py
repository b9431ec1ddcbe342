"""The prior of a network: the belief about its weights before the first row.

A network whose weights all have mean zero can't learn: by symmetry the expected derivatives vanish. So the means are
drawn at random, once, from the seed; the variances bound how far the data can move each weight from there. All numbers
are for inputs and targets of about unit scale, divided by the square root of the number of a layer's inputs.

The hidden biases vary more than the weights: a ReLU unit has its kink where its pre-activation is zero, and large
biases distribute these kinks over the whole range of the data instead of its centre.

With few inputs a function can only be rich by changing often along each of them, so networks for numbers start steeper
the fewer inputs there are, and with their kinks further apart: they fit better, and beyond the data, where kinks would
otherwise be missing, they know that the function may turn.

Networks for labels start with pairs of units whose outputs cancel: the derivatives stay large, but the initial
predictions are equal probabilities, so that no random prediction has to be corrected first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import as_count, as_flag, as_nonnegative, as_positive, as_share
from onepass.layers.layout import Layout
from onepass.likelihoods.base import LogNoise

__all__ = [
    "CLASSIFICATION",
    "DEEP_REGRESSION",
    "IMAGE_CLASSIFICATION",
    "REGRESSION",
    "UNIT",
    "WIDE_CLASSIFICATION",
    "WIDE_REGRESSION",
    "NetworkPrior",
    "PriorScales",
    "choose_count_prior",
    "choose_prior",
    "start_weights",
]

# Powers of the inputs that are missing to ``few_inputs``. Chosen on random functions of 1 to 8 inputs; the biases grow
# less, so that kinks lie within one and a half deviations of the data whatever the number of inputs.
_STEEPER_WEIGHTS, _STEEPER_BIASES = 0.75, 0.25


@dataclass(frozen=True)
class NetworkPrior:
    """Scale of the prior means (``..._means``) and prior standard deviations (``..._std``), before fan-in scaling."""

    weight_means: float = 1.2
    weight_std: float = 1.5
    bias_means: float = 5.0
    bias_std: float = 1.5
    deep_std: float = 0.7
    """Of weights between hidden layers; these share it, so that each has less the more there are."""
    deep_bias_std: float = 1.0
    output_means: float = 1.7
    output_std: float = 1.1
    output_bias_means: float = 0.0
    output_bias_std: float = 1.0
    """Never scaled by the fan-in."""
    most_inputs: int = 100
    """Features count as at most so many: very wide rows, such as images, are redundant and mostly zero."""
    few_inputs: int = 8
    """Below so many features the means of hidden weights and, less so, of hidden biases are larger; 1 for never."""
    fan_in: bool = True
    """Whether all else is divided by the square root of a layer's inputs."""
    noise: float = 0.02
    """Where the noise starts, if it depends on the input."""
    log_noise_std: float = 1.0
    """Of the weights into the log of that noise; their means are zero."""
    log_noise_bias_std: float = 1.5
    """Never scaled by the fan-in."""
    variance_share: float = 1.0
    """Share of the variance of its pre-activation that a hidden unit's mean and derivative are averaged over.

    All of it is right for a unit alone. In wide layers most of this variance lies in directions that the outputs hardly
    see and the data never reduce; averaged over all of it every unit would stay half open, and the network linear. The
    covariance of the outputs is not affected.
    """
    paired: bool = False
    """Whether units of the last hidden layer start with a twin whose output weights have the other sign."""

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any, str], Any]] = {
            "variance_share": as_share,
            "noise": as_positive,
            "most_inputs": as_count,
            "few_inputs": as_count,
            "fan_in": as_flag,
            "paired": as_flag,
        }
        for name, value in vars(self).items():
            check: Callable[[Any, str], Any] = checks.get(name, as_nonnegative)
            check(value, name)

    @property
    def log_noise(self) -> LogNoise:
        """Of a noise that depends on the input, where the hidden units are of unit scale."""
        return LogNoise(float(np.log(self.noise)), self.log_noise_std**2 + self.log_noise_bias_std**2)


@dataclass(frozen=True)
class PriorScales:
    """What a user says about the width of a prior."""

    weights: float | FloatArray
    """Multiplies all standard deviations; without hidden layers there may be one per feature."""
    output_biases: float | None
    """The standard deviation of the outputs' biases, in place of the prior's own times ``weights``."""


REGRESSION = NetworkPrior()
# A kink of a deep network is made by all its layers; the first of them must be free to move, and those between too.
DEEP_REGRESSION = NetworkPrior(weight_std=2.2, deep_std=1.5, deep_bias_std=1.5, few_inputs=1)
# A label says less than a reading, so more of what is learned must come from the prior's width, and a random opinion of
# several logits would take many labels to unlearn.
CLASSIFICATION = NetworkPrior(
    weight_std=3.0, bias_means=3.0, output_means=5.0, output_std=4.0, output_bias_std=3.0, few_inputs=1, paired=True
)
# For labels and wide layers, whose belief is a product of inputs' and outputs'. All of it was chosen on images that are
# not in the reported test set, on smaller digits, on random classes, and on splits of regression sets that are not
# reported.
WIDE_CLASSIFICATION = replace(CLASSIFICATION, weight_std=4.0, bias_std=2.0, output_std=6.0, deep_std=1.5)
# The outputs of a convolution's filters at neighbouring positions are alike, and add up in the layer behind.
IMAGE_CLASSIFICATION = replace(WIDE_CLASSIFICATION, deep_std=3.0)
WIDE_REGRESSION = replace(REGRESSION, weight_std=2.2)
# So many units, divided by a layer's, are the share of the variance that its units are averaged over.
_AVERAGED_FOR_LABELS, _AVERAGED_FOR_NUMBERS = 10, 25
# Standard normal means and unit variances for every weight: the published prior of the Kalman Bayesian neural network.
UNIT = NetworkPrior(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, few_inputs=1, fan_in=False)


def choose_count_prior(layout: Layout) -> NetworkPrior:
    """The prior of a network for counts: that of standardised numbers, but for the mean, which a log rate has too.

    The first rate that is predicted is the same everywhere: a random log rate would make some counts very unlikely.
    """
    return replace(choose_prior(True, layout), output_bias_std=4.0, paired=True)


def choose_prior(numbers: bool, layout: Layout, wide: bool = False) -> NetworkPrior:
    """The prior of a network for numbers or for labels; its belief may be one for wide layers."""
    deep = layout.n_layers > 2
    if not wide or layout.n_layers == 1:
        return CLASSIFICATION if not numbers else DEEP_REGRESSION if deep else REGRESSION
    if numbers:
        chosen, averaged = DEEP_REGRESSION if deep else WIDE_REGRESSION, _AVERAGED_FOR_NUMBERS
    else:
        chosen = IMAGE_CLASSIFICATION if layout.shares_weights else WIDE_CLASSIFICATION
        averaged = _AVERAGED_FOR_LABELS
    return replace(chosen, variance_share=min(1.0, averaged / min(layout.widths[1:-1])))


def start_weights(
    layout: Layout, prior: NetworkPrior, scales: PriorScales, n_noise: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Prior mean and variance of every weight, ``(p,)`` each.

    Without hidden layers there is no symmetry to break: means are zero and all standard deviations the scale, as in a
    perceptron. The last ``n_noise`` outputs are logs of noise variances, which ``scales`` do not affect.
    """
    mean, std = np.zeros(layout.size), np.ones(layout.size)
    steeper = max(prior.few_inputs / min(layout.widths[0], prior.most_inputs), 1.0)
    if layout.n_layers > 1:
        for layer, (means, stds) in enumerate(zip(layout.layers(mean), layout.layers(std), strict=True)):
            n_out, n_in = means.shape[0], means.shape[1] - 1
            last, counted = layer == layout.n_layers - 1, n_in if layer else min(n_in, prior.most_inputs)
            root = np.sqrt(counted) if prior.fan_in else 1.0
            mean_std = prior.output_means if last else prior.weight_means
            means[:, 1:] = rng.standard_normal((n_out, n_in)) * mean_std / root
            if last:
                means[:, 0] = rng.standard_normal(n_out) * prior.output_bias_means
                stds[:, 1:], stds[:, 0] = prior.output_std / root, prior.output_bias_std
                continue
            means[:, 0] = rng.standard_normal(n_out) * prior.bias_means / root
            if layer == 0:
                means[:, 1:] *= steeper**_STEEPER_WEIGHTS
                means[:, 0] *= steeper**_STEEPER_BIASES
            among = np.sqrt(max(layout.n_layers - 2, 1))
            stds[:, 1:] = (prior.deep_std / among if layer else prior.weight_std) / root
            stds[:, 0] = (prior.deep_bias_std / among if layer else prior.bias_std) / root
        if prior.paired:
            *_, hidden, output = layout.layers(mean)
            half = len(hidden) // 2
            hidden[half : 2 * half] = hidden[:half]
            for outgoing in output[:, 1:].swapaxes(0, 1).reshape(-1, len(hidden), len(output)):  # one per position
                outgoing[half : 2 * half] = -outgoing[:half]
                outgoing[2 * half :] = 0.0  # of an odd number the last one has no twin
    if np.ndim(scales.weights):
        layout.layers(std)[0][:, 1:] *= scales.weights
    else:
        std *= scales.weights
    if scales.output_biases is not None:
        layout.layers(std)[-1][:, 0] = scales.output_biases
    if n_noise:
        means, stds = layout.layers(mean)[-1][-n_noise:], layout.layers(std)[-1][-n_noise:]
        means[:, 1:], means[:, 0] = 0.0, np.log(prior.noise)
        # Steeper units are larger too, which must not make the noise vary more.
        stds[:, 1:] = prior.log_noise_std / np.sqrt(layout.widths[-2]) / steeper**_STEEPER_WEIGHTS
        stds[:, 0] = prior.log_noise_bias_std
    return mean, np.square(std)
