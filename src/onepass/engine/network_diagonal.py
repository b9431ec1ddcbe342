"""Learning of networks with independent weights: time and memory in proportion to their number.

The derivatives with respect to single weights are never stored. A layer's weights are ordered by input, those of all
units side by side, so that inner loops run over the units and an input that is zero, such as a dark pixel, is skipped.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite
from cython.cimports.onepass.engine.network_records import NetworkShape, Signals
from cython.cimports.onepass.engine.vector_matches import VectorMatch, as_array


class DiagonalWorkspace:
    """Memory for one row, for every unit: its variance by its own weights, and what the outputs' step is for it."""

    def __init__(self, shape: NetworkShape):
        layers: cython.Py_ssize_t = shape.n_layers * shape.widest
        self.memory = np.zeros(3 * layers + 2 * shape.widest + shape.n_outputs * shape.n_outputs)
        view: cython.double[::1] = self.memory
        start = cython.address(view[0])
        self.own_var, self.scores, self.informations = start, start + layers, start + 2 * layers
        start += 3 * layers
        self.pre_mean, self.pre_var, self.cov = start, start + shape.widest, start + 2 * shape.widest


def learn_diagonal(work, shape, rule, noise, mean, variance):
    """Learn a pass in place; returns the number of rows learned, fewer if one is not finite or raised an alarm."""
    space = DiagonalWorkspace(shape)
    signals = Signals(shape)
    match = VectorMatch(shape.n_outputs)
    with cython.nogil:
        learned = _learn_rows(
            work, shape, rule, noise, cython.address(mean[0]), cython.address(variance[0]), space, signals, match
        )
    rule.activation.raise_pending()
    return learned


def look_diagonal(row, shape, rule, mean, variance) -> tuple["FloatArray", "FloatArray"]:
    """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``."""
    space = DiagonalWorkspace(shape)
    signals = Signals(shape)
    m = cython.address(mean[0])
    with cython.nogil:
        _look(shape, rule.activation, cython.address(row[0]), m, cython.address(variance[0]), signals, space)
    rule.activation.raise_pending()
    n = shape.n_outputs
    return as_array(signals.mean, n), as_array(space.cov, n * n).reshape(n, n)


def _look(shape, activation, x, mean, variance, signals, space):
    """Send a row through the network and the derivatives back: the outputs and their covariance."""
    j: cython.Py_ssize_t
    for j in range(shape.width[0]):
        signals.inputs[1 + j] = x[j]
    _forward(shape, activation, mean, variance, signals, space)
    _backward(shape, mean, signals)
    _project(shape, signals, space)


def _learn_rows(work, shape, rule, noise, mean, variance, space, signals, match):
    t: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n_rows = work.order.shape[0]
    for t in range(n_rows):
        i = work.order[t]
        target = cython.address(work.targets[i, 0])
        x = cython.address(work.rows[i, 0])
        if rule.drift > 0.0:
            for j in range(shape.size):
                variance[j] += rule.drift * (rule.prior_var[j] - variance[j])
        _look(shape, rule.activation, x, mean, variance, signals, space)
        work.start_row(i, noise)
        density = _match(shape, rule.likelihood, signals, space, target, noise, match)
        total = density
        for j in range(shape.n_outputs):
            total += match.score[j]
        if not isfinite(total):
            return t
        work.write_down(i, density, rule, signals.mean, space.cov, noise, match)
        _gather(shape, signals, match, space)
        _step(shape, signals, space, mean, variance)
        work.finish_row(i, rule, signals.mean, space.cov, noise)
        if work.is_first and noise.trust.is_alarmed():
            return t + 1
    return n_rows


def _match(shape, likelihood, signals, space, target, noise, match):
    """Without hidden layers the outputs are independent, and each one's own information is all that is needed."""
    k: cython.Py_ssize_t
    n = shape.n_outputs
    if shape.n_layers > 1:
        return likelihood.match(signals.mean, space.cov, target, noise, match)
    density = likelihood.match_separate(signals.mean, space.cov, target, noise, match)
    for k in range(n):
        match.information[k * (n + 1)] = match.own_information[k]
    return density


def _forward(shape, activation, mean, variance, signals, space):
    """Fill each layer's inputs ``z``, the variance ``own_var`` of each unit by its weights, and the outputs' means."""
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    pre_mean = space.pre_mean
    pre_var = space.pre_var
    for layer in range(shape.n_layers):
        n_in = shape.width[layer] + 1
        n_out = shape.width[layer + 1]
        z = signals.layer_inputs(layer)
        z_var = signals.input_var + layer * signals.widest
        own_var = space.own_var + layer * signals.widest
        for u in range(n_out):
            pre_mean[u] = 0.0
            pre_var[u] = 0.0
            own_var[u] = 0.0
        for i in range(n_in):
            value = z[i]
            var = z_var[i]
            if value == 0.0 and var == 0.0:
                continue
            square = value * value
            w = mean + shape.start[layer] + i * n_out
            v = variance + shape.start[layer] + i * n_out
            for u in range(n_out):
                pre_mean[u] += value * w[u]
                own_var[u] += square * v[u]
            if var > 0.0:
                for u in range(n_out):
                    pre_var[u] += var * (w[u] * w[u] + v[u])
        if layer == shape.n_layers - 1:
            for u in range(n_out):
                signals.mean[u] = pre_mean[u]
        else:
            for u in range(n_out):
                z_mean, var, derivative = activation.at(pre_mean[u], own_var[u] + pre_var[u])
                z[signals.widest + 1 + u] = z_mean
                z_var[signals.widest + 1 + u] = var
                signals.expected_derivative[layer * signals.widest + u] = derivative


def _backward(shape, mean, signals):
    """Chain the expected derivatives: ``D_{l-1} = (D_l W_l) A_{l-1}``; of the last layer ``D`` is the identity."""
    layer: cython.Py_ssize_t
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    last = shape.n_layers - 1
    for layer in range(last, 0, -1):
        n_out = shape.width[layer + 1]
        derivative = signals.expected_derivative + (layer - 1) * signals.widest
        for h in range(shape.width[layer]):
            w = mean + shape.start[layer] + (1 + h) * n_out
            for k in range(shape.n_outputs):
                total = 0.0
                if layer == last:
                    total += w[k]
                else:
                    after = signals.layer_jacobian(layer, k)
                    for u in range(n_out):
                        total += after[u] * w[u]
                signals.layer_jacobian(layer - 1, k)[h] = total * derivative[h]


def _project(shape, signals, space):
    """The outputs' covariance: a unit's weights add ``D' D`` times the variance that they give it."""
    layer: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    u: cython.Py_ssize_t
    n = shape.n_outputs
    last = shape.n_layers - 1
    for k in range(n):
        for m in range(k + 1):
            cov = space.own_var[last * signals.widest + k] if k == m else 0.0
            for layer in range(last):
                own_var = space.own_var + layer * signals.widest
                first = signals.layer_jacobian(layer, k)
                second = signals.layer_jacobian(layer, m)
                total = 0.0
                for u in range(shape.width[layer + 1]):
                    total += first[u] * second[u] * own_var[u]
                cov += total
            space.cov[k * n + m] = cov
            space.cov[m * n + k] = cov


def _gather(shape, signals, match, space):
    """What the outputs' step is for each unit: ``D'score`` and the diagonal of ``D'information D``."""
    layer: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    u: cython.Py_ssize_t
    n = shape.n_outputs
    last = shape.n_layers - 1
    mixed = space.pre_mean
    for k in range(n):
        space.scores[last * signals.widest + k] = match.score[k]
        space.informations[last * signals.widest + k] = match.information[k * n + k]
    for layer in range(last):
        n_out = shape.width[layer + 1]
        scores = space.scores + layer * signals.widest
        informations = space.informations + layer * signals.widest
        for u in range(n_out):
            scores[u] = 0.0
            informations[u] = 0.0
        for k in range(n):
            jacobian = signals.layer_jacobian(layer, k)
            score = match.score[k]
            own = match.information[k * n + k]
            for u in range(n_out):
                scores[u] += jacobian[u] * score
                mixed[u] = own * jacobian[u]
            for m in range(k):
                other = signals.layer_jacobian(layer, m)
                factor = 2.0 * match.information[k * n + m]
                for u in range(n_out):
                    mixed[u] += factor * other[u]
            for u in range(n_out):
                informations[u] += jacobian[u] * mixed[u]


def _step(shape, signals, space, mean, variance):
    """Move every weight that the row touches; as a factor, so that rounding can't make a variance negative."""
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    for layer in range(shape.n_layers):
        n_out = shape.width[layer + 1]
        z = signals.layer_inputs(layer)
        scores = space.scores + layer * signals.widest
        informations = space.informations + layer * signals.widest
        for i in range(shape.width[layer] + 1):
            value = z[i]
            if value == 0.0:
                continue
            square = value * value
            w = mean + shape.start[layer] + i * n_out
            v = variance + shape.start[layer] + i * n_out
            for u in range(n_out):
                w[u] += value * v[u] * scores[u]
                v[u] *= max(1.0 - square * v[u] * informations[u], 0.0)
