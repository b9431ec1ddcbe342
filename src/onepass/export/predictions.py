"""What one perceptron or network predicts for a row, as a graph: `Parts` are those of `onepass.Prediction`."""

from itertools import combinations_with_replacement, pairwise
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Exponential
from onepass.beliefs.block import BlockGaussian
from onepass.beliefs.diagonal import DiagonalGaussian, IndependentWeights
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.kronecker import KroneckerGaussian
from onepass.beliefs.layered import LayeredGaussian
from onepass.beliefs.low_rank import LowRankGaussian
from onepass.export.classes import class_odds
from onepass.export.expressions import (
    Expression,
    above,
    call,
    concat,
    constant,
    exp,
    matmul,
    matmul_parameter,
    maximum,
    minimum,
    outer,
    parameter,
    part,
    quadratic,
    row_sum,
    where,
)
from onepass.export.formulas import activation_moments, sigmoid_function
from onepass.export.programs import NotExportableError
from onepass.likelihoods import Likelihood, encode_likelihood
from onepass.likelihoods.calibration import excess_factor
from onepass.likelihoods.counts import WIDEST
from onepass.models.network import BayesianNetwork
from onepass.models.network.network import ForwardPass
from onepass.models.perceptron import BayesianPerceptron

__all__ = ["Parts", "network_parts", "perceptron_parts", "perceptron_row"]

_LOG_NOISE_BOUNDS = (float(np.log(1e-6)), 30.0)  # where the engine cuts the log of a noise variance
_EXPORTABLE = (BlockGaussian, IndependentWeights, LowRankGaussian, LayeredGaussian)
Covariances = dict[tuple[int, int], Expression]  # of outputs k <= l; those that are left out are zero


class Parts(NamedTuple):
    """Mean and variance of the output, those of the pre-activation, and the variance of the noise; ``K`` numbers each.

    The noise variance of labels and classes is left out: it follows from their probabilities.
    """

    mean: Expression
    var: Expression
    pre_mean: Expression
    pre_var: Expression
    noise_var: Expression
    limits: tuple[Expression, Expression] | None = None
    """Mean and variance of the log odds that the interval of a probability comes from, where they are others."""


def _check_likelihood(likelihood: Likelihood) -> None:
    """Raise an error for one of the user's own."""
    try:
        encode_likelihood(likelihood)
    except TypeError:
        raise NotExportableError(
            f"the likelihood {type(likelihood).__name__} is not built in and can't be exported: use a named one, such "
            "as observation='gaussian'"
        ) from None


def perceptron_row(model: BayesianPerceptron, z: Expression) -> Expression:
    """A row as the weights meet it, the constant of the bias first."""
    return concat([constant([1.0]), z]).called("row") if model.bias else z


def perceptron_parts(model: BayesianPerceptron, z: Expression, z_var: Expression | None = None) -> Parts:
    """The forward pass of a perceptron for its next row, for inputs with these variances."""
    _check_likelihood(model.observation)
    model = model.ahead()
    belief, likelihood = model.belief, model.observation
    row = perceptron_row(model, z)
    mean = np.asarray(belief.mean, dtype=np.float64)
    pre_mean = matmul_parameter(row, mean[:, None], "mean").called("pre_mean")
    if isinstance(belief, DiagonalGaussian):
        pre_var = matmul(row * row, np.asarray(belief.variance, dtype=np.float64)[:, None], "variances")
    else:
        assert isinstance(belief, FullGaussian)
        coordinates = matmul_parameter(row, np.asarray(belief.to_root(), dtype=np.float64).T, "root").called("coords")
        pre_var = row_sum(coordinates * coordinates)
    if z_var is not None:
        own = mean**2 + np.asarray(belief.marginal_variances(), dtype=np.float64)
        pre_var = pre_var + matmul(z_var, own[model.bias :, None], "squares")
    pre_var = pre_var.called("pre_var")
    if likelihood.is_count and isinstance(model.activation, Exponential):
        output = activation_moments(model.activation, pre_mean, minimum(pre_var, WIDEST))
    else:
        output = activation_moments(model.activation, pre_mean, pre_var)
    noise = parameter(float(model.noise), "noise")
    if likelihood.is_gaussian:
        noise_var: Expression = noise
    elif likelihood.is_count:
        noise_var = output[0] + model.noise * (output[0] * output[0] + output[1])
    else:
        noise_var = constant(0.0)
    return Parts(output[0], output[1], pre_mean, pre_var, noise_var)


def network_parts(model: BayesianNetwork, z: Expression, noise_scale: FloatArray | None) -> Parts:
    """The forward pass of a network for its next row.

    ``noise_scale`` multiplies its noise in a mixture; it is None where the network is alone.
    """
    if type(model) is not BayesianNetwork:
        raise NotExportableError(
            f"a {type(model).__name__} can't be exported: learn the rows with a BayesianNetwork, which can be"
        )
    forward = model.forward_pass(noise_scale)
    if forward.layout.shares_weights:
        raise NotExportableError(
            "convolutions can't be exported, only dense layers can: learn the images with dense hidden layers"
        )
    if not isinstance(forward.belief, _EXPORTABLE):
        raise NotExportableError(
            f"a model with covariance={model.covariance!r} can't be exported: learn with another one"
        )
    _check_likelihood(model.observation)
    means, covs, curvature = _outputs(forward, z)
    curved = {pair: cov + curvature[pair] for pair, cov in covs.items() if pair in curvature}
    n, likelihood, noise = model.n_outputs, model.observation, forward.noise
    own = part(means, 0, n)
    variances = concat([maximum(covs[k, k], 0.0) for k in range(n)])
    if likelihood.is_class:
        p, odds_mean, odds_var = class_odds([part(means, k, k + 1) for k in range(n)], covs)
        found = call(sigmoid_function(), odds_mean, odds_var)
        limits = class_odds([part(means, k, k + 1) for k in range(n)], curved)[1:] if curved else None
        return Parts(p, found[1], odds_mean, odds_var, constant(0.0), limits)
    if likelihood.is_label:
        found = call(sigmoid_function(), own, variances)
        limits = (own, concat([maximum(curved[k, k], 0.0) for k in range(n)])) if curved else None
        return Parts(found[0], found[1], own, variances, constant(0.0), limits)
    if likelihood.is_count:
        rate, rate_var, _ = activation_moments(Exponential(), own, minimum(variances, WIDEST))
        noise_var = rate + float(noise.noise[0]) * (rate * rate + rate_var)
        return Parts(rate, rate_var, own, variances, noise_var)
    scale = constant(noise.scale, "scale")
    factor = constant(excess_factor(noise.scale, noise.usual_var, alone=noise_scale is None))
    excess = factor * maximum(variances - constant(noise.usual_var), 0.0)
    if likelihood.has_noise_outputs:
        log_vars = concat([covs[n + k, n + k] for k in range(n)])
        known, unknown = _input_noise(forward.outputs, part(means, n, 2 * n), log_vars)
        return Parts(own, scale * (variances + unknown) + excess, own, variances, scale * known)
    return Parts(own, scale * variances + excess, own, variances, scale * constant(noise.noise, "noise"))


def _input_noise(outputs: Any, mean: Expression, var: Expression) -> tuple[Expression, Expression]:
    """A noise that depends on the input, and what is not known of it: see `HeteroscedasticOutputs.describe`."""
    prior_mean, prior_var = outputs.log_noise, outputs.log_noise_var
    vague = above(var, prior_var)
    centre = where(vague, prior_mean + (mean - prior_mean) * (prior_var / var), mean)
    low, high = _LOG_NOISE_BOUNDS
    known, expected = (
        exp(minimum(maximum(log, low), high)) for log in (centre, centre + 0.5 * minimum(var, prior_var))
    )
    return known, expected - known


def _outputs(forward: ForwardPass, z: Expression) -> tuple[Expression, Covariances, Covariances]:
    """Means of all outputs, their covariances and what hidden units add to them by not being linear, if there are any.

    These are `onepass.models.network.propagation`, term by term.
    """
    belief, layout = forward.belief, forward.layout
    weights = [np.asarray(own, dtype=np.float64) for own in layout.layers(belief.mean)]
    weight_vars = [np.asarray(own, dtype=np.float64) for own in layout.layers(belief.marginal_variances())]
    inputs, derivatives, residuals = [], [], []
    z, z_var = _with_one(z), constant(0.0)
    for layer, weight in enumerate(weights):
        inputs.append(z.called(f"inputs_{layer}"))
        if layer == len(weights) - 1:
            break
        pre_var = _own_variances(belief, layer, inputs[-1])
        if layer:
            pre_var = pre_var + matmul(z_var, (weight**2 + weight_vars[layer])[:, 1:].T, f"squares_{layer}")
        pre_mean = matmul(inputs[-1], weight.T, f"weights_{layer}")
        mean, z_var, slope = activation_moments(forward.units, pre_mean, maximum(pre_var, 0.0))
        residuals.append(maximum(z_var - slope * slope * maximum(pre_var, 0.0), 0.0))
        derivatives.append(slope if slope.width > 1 or weight.shape[0] == 1 else slope * np.ones(weight.shape[0]))
        z = _with_one(mean)
    n_outputs = weights[-1].shape[0]
    mean = matmul(inputs[-1], weights[-1].T, f"weights_{len(weights) - 1}")
    joint = belief.covariance_with_outgoing()
    if joint is not None:
        moved = [row_sum(derivatives[-1] * matmul(inputs[-2], np.asarray(own, np.float64).T)) for own in joint]
        mean = mean + concat(moved)
    jacobians = [_jacobian(weights, derivatives, k) for k in range(n_outputs)]
    covs = _covariances(belief, inputs, jacobians)
    through = [_through_weights(weights, own, k) for k, own in enumerate(jacobians)]
    curvature = {
        (k, m): sum(
            (row_sum(a * b * r) for a, b, r in zip(through[k], through[m], residuals, strict=True)), constant(0.0)
        )
        for k, m in covs
        if residuals
    }
    return mean.called("output_mean"), covs, curvature


def _through_weights(weights: list[FloatArray], jacobian: list[Expression], k: int) -> list[Expression]:
    """Expected derivative of output ``k`` in the outputs of each hidden layer."""
    entering = [weight[:, 1:] for weight in weights[1:]]
    return [matmul(own, weight) for own, weight in zip(jacobian[1:], entering[:-1], strict=True)] + [
        constant(weight[k]) for weight in entering[-1:]
    ]


def _with_one(z: Expression) -> Expression:
    return concat([constant([1.0]), z])


def _jacobian(weights: list[FloatArray], derivatives: list[Expression], k: int) -> list[Expression]:
    """Expected derivative of output ``k`` in the pre-activations of each layer; of the last it is 1, and left out."""
    found: list[Expression] = []
    for layer in range(len(weights) - 1, 0, -1):
        weight = weights[layer][:, 1:]
        through = matmul(found[0], weight) if found else constant(weight[k])
        found.insert(0, (through * derivatives[layer - 1]).called(f"jacobian_{k}_{layer - 1}"))
    return found


def _own_variances(belief: Any, layer: int, z: Expression) -> Expression:
    """The variance that inputs give the units of a layer by their weights."""
    if isinstance(belief, BlockGaussian):
        return quadratic(z, np.asarray(belief.unit_blocks()[layer], np.float64), f"unit_covariances_{layer}")
    if isinstance(belief, IndependentWeights):
        return matmul(z * z, belief.layout.layers(belief.variance)[layer].T.astype(np.float64), f"variances_{layer}")
    if isinstance(belief, LowRankGaussian):
        units = zip(*belief.unit_variances()[layer], strict=True)
        return concat([_squared(_projected(*own, z)) for own in units])
    own = belief.layers[layer]
    if isinstance(own, KroneckerGaussian):
        scale = constant(np.square(np.asarray(own.output_root, np.float64)).sum(axis=1))
        variances = _squared(matmul(z, np.asarray(own.input_root, np.float64))) * scale
        if not own.idle.any():
            return variances
        return variances + _weighted_square(z, own.idle) * constant(np.asarray(own.prior_outputs, np.float64))
    roots = np.asarray(own.root, np.float64).reshape(*belief.layout.shapes[layer], -1)
    return quadratic(z, roots @ roots.swapaxes(1, 2), f"unit_covariances_{layer}")


def _covariances(belief: Any, inputs: list[Expression], jacobians: list[list[Expression]]) -> Covariances:
    """``J'C J`` for all pairs of outputs."""
    pairs = list(combinations_with_replacement(range(len(jacobians)), 2))
    if belief.separate_units:
        return _by_units(belief, inputs, jacobians, pairs)
    if isinstance(belief, LayeredGaussian):
        return _by_layers(belief, inputs, jacobians, pairs)
    flat = [_in_all_weights(belief.layout, inputs, own, k) for k, own in enumerate(jacobians)]
    if isinstance(belief, LowRankGaussian):
        return _by_columns(belief, flat, pairs)
    blocks = [np.asarray(own, np.float64) for own in belief.cov]
    gains = []
    for own in flat:
        cuts = pairwise(belief.cuts.tolist())
        gains.append(concat([matmul(part(own, *cut), block) for cut, block in zip(cuts, blocks, strict=True)]))
    return {(k, m): row_sum(gains[k] * flat[m]) for k, m in pairs}


def _in_all_weights(layout: Any, inputs: list[Expression], jacobian: list[Expression], k: int) -> Expression:
    """Derivatives of output ``k`` in all weights: zero in those of the other outputs."""
    parts = [outer(own, z) for own, z in zip(jacobian, inputs, strict=False)]
    return concat([*parts, _placed(inputs[-1], k, layout.shapes[-1][0])]).called(f"slope_{k}")


def _placed(z: Expression, k: int, n: int) -> Expression:
    """Inputs in the place of the ``k``-th of ``n`` outputs, zeros in those of all others."""
    parts = [constant(np.zeros(k * z.width)), z, constant(np.zeros((n - k - 1) * z.width))]
    return concat([own for own in parts if own.width])


def _by_units(belief: Any, inputs: list[Expression], jacobians: list[list[Expression]], pairs: Any) -> Covariances:
    """Where units are independent each adds ``D D'`` times its weights' variance."""
    own = [_own_variances(belief, layer, z).called(f"own_var_{layer}") for layer, z in enumerate(inputs)]
    found: Covariances = {}
    for k, m in pairs:
        terms = [row_sum(a * b * v) for a, b, v in zip(jacobians[k], jacobians[m], own, strict=False)]
        terms += [part(own[-1], k, k + 1)] if k == m else []
        if terms:
            found[k, m] = sum(terms[1:], start=terms[0])
    return found


def _by_layers(belief: Any, inputs: list[Expression], jacobians: list[list[Expression]], pairs: Any) -> Covariances:
    """Independent layers, each ``D B D' z'A z``, or ``J'C J`` with all of its covariance."""
    n, totals = len(jacobians), dict.fromkeys(pairs, constant(0.0))
    for number, (layer, z) in enumerate(zip(belief.layers, inputs, strict=True)):
        is_last = number == len(inputs) - 1
        slopes = [constant(np.eye(n)[k]) if is_last else jacobians[k][number] for k in range(n)]
        if isinstance(layer, KroneckerGaussian):
            root = np.asarray(layer.output_root, np.float64)
            scale = _squared(matmul(z, np.asarray(layer.input_root, np.float64)))
            # A constant row times a constant matrix is known beforehand.
            projected = [constant(own.value @ root) if own.op == "constant" else matmul(own, root) for own in slopes]
            own_terms = {(k, m): scale * _dot(projected[k], projected[m]) for k, m in pairs}
            if layer.idle.any():
                outputs, scale = constant(np.asarray(layer.prior_outputs, np.float64)), _weighted_square(z, layer.idle)
                for k, m in pairs:
                    own_terms[k, m] += scale * _dot(slopes[k] * outputs, slopes[m])
        else:
            root = np.asarray(layer.root, np.float64)
            gradients = [_placed(z, k, n) if is_last else outer(own, z) for k, own in enumerate(slopes)]
            projected = [matmul(own, root) for own in gradients]
            own_terms = {(k, m): row_sum(projected[k] * projected[m]) for k, m in pairs}
        totals = {pair: totals[pair] + own_terms[pair] for pair in pairs}
    return totals


def _squared(values: Expression) -> Expression:
    """The squared length of a row."""
    return row_sum(values * values)


def _weighted_square(values: Expression, weights: Any) -> Expression:
    """The sum of the squares of a row, with weights."""
    return row_sum(values * values * constant(np.asarray(weights, np.float64)))


def _dot(left: Expression, right: Expression) -> Expression:
    if left.op == right.op == "constant":
        return constant(float(left.value @ right.value))
    return row_sum(left * right)


def _by_columns(belief: Any, flat: list[Expression], pairs: Any) -> Covariances:
    """A diagonal less the squares of some columns, with what rounding hides of it."""
    seen = [_projected(belief.variance, belief.cov_root[:, : belief.n_columns], own) for own in flat]
    found: Covariances = {}
    for k, m in pairs:
        found[k, m] = row_sum(seen[k] * seen[m])
        if k == m:
            found[k, m] = found[k, m] + float(belief.rounding) * row_sum(flat[k] * belief.variance * flat[k])
    return found


def _projected(variance: FloatArray, columns: FloatArray, values: Expression) -> Expression:
    """``R'v`` with a root ``R R' = D - U U'``: squares of it lose no digits, as the difference would."""
    scale = np.sqrt(np.asarray(variance, np.float64))
    directions, sizes, _ = np.linalg.svd(np.asarray(columns, np.float64) / scale[:, None], full_matrices=False)
    shrink = 1.0 - np.sqrt(np.maximum(1.0 - sizes * sizes, 0.0))
    if len(scale) <= 2 * len(sizes):
        return matmul(values, scale[:, None] * (np.eye(len(scale)) - (directions * shrink) @ directions.T))
    scaled = values * scale
    return scaled - matmul(matmul(scaled, directions * shrink), directions.T)
