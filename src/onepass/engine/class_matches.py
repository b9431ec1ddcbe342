"""Moment matches of one class among several, whose logits are the outputs of a network.

The probabilities of classes with uncertain logits have no closed form; what is exact are the odds of every two classes,
from which they are put together.
"""

import cython
from cython.cimports.libc.math import INFINITY, exp, log, sqrt
from cython.cimports.onepass.engine.matches import sigmoid_label
from cython.cimports.onepass.engine.small_matrices import apply, factorise, invert, is_positive
from cython.cimports.onepass.engine.special import sigmoid
from cython.cimports.onepass.engine.vector_matches import VectorLikelihood, VectorMatch, as_array

_PI_8 = cython.declare(cython.double, 0.39269908169872414)  # π/8: one probit for the sigmoid
_ODDS_STEPS = cython.declare(cython.int, 4)  # of Newton's method, on a function that is all but straight


def pair_odds(mean, var):
    """Log odds of an uncertain logit, and their derivative in its mean."""
    won = sigmoid_label(mean, var, 1.0)
    lost = sigmoid_label(mean, var, 0.0)
    return won.log_z - lost.log_z, won.score - lost.score


def normalise(n, log_p):
    """Make probabilities sum to 1."""
    k: cython.Py_ssize_t
    top = -INFINITY
    total = 0.0
    for k in range(n):
        top = max(top, log_p[k])
    for k in range(n):
        total += exp(log_p[k] - top)
    top += log(total)
    for k in range(n):
        log_p[k] -= top


class CategoricalOutputs(VectorLikelihood):
    """One of K classes, whose logits are the outputs."""

    def __init__(self, n_outputs: int):
        self.n_outputs = self.size = n_outputs
        self.n_columns = 1

    def match(self, mean, cov, target, state, out):
        """The joint step on all logits: the one that the probabilities' expected derivatives make, as Kalman's does.

        With ``q`` the gradients of the log probabilities in the logits' means, one row per class, that is
        ``score = q[label]`` and ``information = Σ p q q'``, the expected information of the label.

        ``-(log p)''`` is at most 1/2 in any direction, so no label leaves less than ``(cov⁻¹ + 1/2)⁻¹``. Three odds
        that contradict each other may; their information is then taken for the precision of a site, which leaves
        something in any case.
        """
        n = self.n_outputs
        label = cython.cast(cython.Py_ssize_t, target[0])
        c: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        self.class_gradients(mean, cov, out)
        fisher = out.first
        for i in range(n * n):
            fisher[i] = 0.0
        for c in range(n):
            p = exp(out.log_p[c])
            for i in range(n):
                weight = p * out.gradients[c * n + i]
                for k in range(n):
                    fisher[i * n + k] += weight * out.gradients[c * n + k]
        enough = self.leaves_enough(fisher, cov, out)
        sign = -1.0 if enough else 1.0
        for i in range(n):
            for k in range(n):
                out.second[i * n + k] = 1.0 if i == k else 0.0
            for j in range(n):
                weight = sign * fisher[i * n + j]
                for k in range(n):
                    out.second[i * n + k] += weight * cov[j * n + k]
        invert(n, out.second, out.third)
        gradient = out.gradients + label * n
        score = out.score if enough else out.shift
        information = out.information if enough else out.precision
        for k in range(n):
            score[k] = gradient[k]
        for i in range(n * n):
            information[i] = fisher[i]
        if enough:
            apply(n, out.third, fisher, gradient, out.precision, out.shift)
        else:
            apply(n, out.third, fisher, gradient, out.information, out.score)
        return out.log_p[label]

    def leaves_enough(self, information, cov, out):
        """Whether a step leaves as much of the covariance as any label must."""
        n = self.n_outputs
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        wide = out.second
        root = out.third
        half = out.fourth
        for i in range(n * n):
            wide[i] = cov[i]
            half[i] = 0.0
        for k in range(n):
            wide[k * n + k] += 2.0
        factorise(n, wide, root)
        for i in range(n):
            for j in range(n):
                weight = information[i * n + j]
                for k in range(j + 1):
                    half[i * n + k] += weight * root[j * n + k]
        inner = out.second
        for i in range(n):
            for k in range(n):
                inner[i * n + k] = 1.0 if i == k else 0.0
        for j in range(n):
            for i in range(j + 1):
                weight = root[j * n + i]
                for k in range(n):
                    inner[i * n + k] -= weight * half[j * n + k]
        return is_positive(n, inner)

    def class_gradients(self, mean, cov, out):
        """Fill the log probabilities and, one row per class, their gradients in the logits' means.

        Two classes alone are one label, whose odds are known exactly. For known logits ``1/p_k`` is the sum of all odds
        against ``k``. For uncertain ones that is a start (Daunizeau 2017); what it lacks to be right to second order, a
        common factor aside, is ``Σ_j v_kj p_j p_k / (p_j + p_k)``, with the variance ``v`` of the difference of two
        logits flattened, as one probit would, so that it serves where much is uncertain.
        """
        n = self.n_outputs
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        odds = out.odds
        derivative = out.odds_derivative
        flat_var = out.flat_var
        log_p = out.log_p
        q = out.gradients
        for k in range(n):
            odds[k * n + k] = 0.0
            derivative[k * n + k] = 0.0
            flat_var[k * n + k] = 0.0
            for m in range(k + 1, n):
                var = max(cov[k * n + k] + cov[m * n + m] - 2.0 * cov[k * n + m], 0.0)
                log_odds, slope = pair_odds(mean[k] - mean[m], var)
                odds[k * n + m] = log_odds
                odds[m * n + k] = -log_odds
                derivative[k * n + m] = slope
                derivative[m * n + k] = slope
                flat = var / (1.0 + _PI_8 * var)
                flat_var[k * n + m] = flat
                flat_var[m * n + k] = flat
        for k in range(n):
            top = 0.0
            total = 0.0
            for m in range(n):
                top = max(top, -odds[k * n + m])
            for m in range(n):
                q[k * n + m] = exp(-odds[k * n + m] - top)
                total += q[k * n + m]
            log_p[k] = -top - log(total)
            own = 0.0
            for m in range(n):
                q[k * n + m] *= -derivative[k * n + m] / total
                own -= q[k * n + m]
            q[k * n + k] = own
        normalise(n, log_p)
        p = out.vector
        for k in range(n):
            p[k] = exp(log_p[k])
        for k in range(n):
            for m in range(n):
                log_p[k] += flat_var[k * n + m] * sigmoid(odds[k * n + m]) * p[m]
        normalise(n, log_p)
        for m in range(n):
            p[m] = 0.0
        for k in range(n):
            weight = exp(log_p[k])
            for m in range(n):
                p[m] += weight * q[k * n + m]
        for k in range(n):
            for m in range(n):
                q[k * n + m] -= p[m]

    def marginals(self, mean, cov, centre, var, out):
        """Means and variances of the log odds of each class against all others.

        They are taken for Gaussian, with the variance of their first order and the mean that gives the class its
        probability.
        """
        n = self.n_outputs
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        j: cython.Py_ssize_t
        self.class_gradients(mean, cov, out)
        log_p = out.log_p
        gradient = out.vector
        for k in range(n):
            top = -INFINITY
            total = 0.0
            for m in range(n):
                if m != k:
                    top = max(top, log_p[m])
            for m in range(n):
                gradient[m] = -exp(log_p[m] - top) if m != k else 0.0
                total -= gradient[m]
            for m in range(n):
                gradient[m] = gradient[m] / total if m != k else 1.0
            odds_var = 0.0
            for j in range(n):
                entry = 0.0
                for m in range(n):
                    entry += cov[j * n + m] * gradient[m]
                odds_var += gradient[j] * entry
            odds_var = max(odds_var, 0.0)
            wanted = log_p[k] - top - log(total)
            at = wanted * sqrt(1.0 + _PI_8 * odds_var)
            for _ in range(_ODDS_STEPS):
                log_odds, slope = pair_odds(at, odds_var)
                at -= (log_odds - wanted) / slope
            centre[k] = at
            var[k] = odds_var

    def gradients(self, mean: cython.const[cython.double][::1], cov: cython.const[cython.double][:, ::1]):
        """Log probabilities of the classes, ``(K,)``, and their gradients in the logits' means, ``(K, K)``."""
        n = self.n_outputs
        out = VectorMatch(n)
        self.class_gradients(cython.address(mean[0]), cython.address(cov[0, 0]), out)
        return as_array(out.log_p, n), as_array(out.gradients, n * n).reshape(n, n)
