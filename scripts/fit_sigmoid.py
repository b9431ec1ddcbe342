"""Fit the logistic sigmoid by a mixture of K probits, s(a) ~ sum_k p_k Phi(lambda_k a).

Minimax fit of the weighted error |s(a) - mixture(a)| e^{0.4 |a|}: the tail identity s(a) = e^a s(-a) lets the
posterior moments lean on the mixture only where a > -v/2, but there a label against the belief is amplified by
up to e^{0.4 |a|}; hence the weight.  By symmetry only a >= 0 is needed, where the error is
sum_k p_k Q(lambda_k a) - s(-a) with Q(z) = Phi(-z): no cancellation, since both terms are small in the tail.

Method: the logistic distribution is a scale mixture of normals, so the weights are positive; the scales cover about
a decade.  Least squares from log-spaced scales gives an error with 2K - 1 sign changes; the Remez exchange (solve for
all 2K extrema equal, find the extrema again) then makes it the minimax fit.  Deterministic.

    python scripts/fit_sigmoid.py
"""

import argparse
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import expit, ndtr

Array = NDArray[np.float64]

RATE = 0.4  # of the weight e^{RATE |a|}
LM: dict[str, Any] = {"method": "lm", "xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 20_000}


def unpack(theta: Array) -> tuple[Array, Array]:
    """Weights (softmax, so positive and summing to one) and scales (exp) from 2K - 1 free numbers."""
    k = (theta.size + 1) // 2
    logits = np.append(theta[: k - 1], 0.0)
    p = np.exp(logits - logits.max())
    return p / p.sum(), np.exp(theta[k - 1 :])


def weighted_error(theta: Array, a: Array, rate: float) -> Array:
    p, lam = unpack(theta)
    return (ndtr(-np.outer(a, lam)) @ p - expit(-a)) * np.exp(rate * a)


def jacobian(theta: Array, a: Array, rate: float) -> Array:
    p, lam = unpack(theta)
    z = np.outer(a, lam)
    tail = ndtr(-z)
    by_logit = p * (tail - (tail @ p)[:, None])
    by_log_scale = -p * z * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.hstack([by_logit[:, :-1], by_log_scale]) * np.exp(rate * a)[:, None]


def least_squares_start(k: int, a: Array, rate: float) -> Array:
    """Log-spaced scales, logistic-looking weights, then plain least squares of the weighted error."""
    log_scale = np.linspace(np.log(0.2), np.log(1.2), k)
    logits = -0.5 * ((log_scale - np.log(0.6)) / 0.4) ** 2
    theta = np.concatenate([logits[:-1] - logits[-1], log_scale])
    return np.asarray(least_squares(weighted_error, theta, jac=jacobian, args=(a, rate), **LM).x)


def extrema(err: Array) -> NDArray[np.intp]:
    """Index of the largest |error| between consecutive changes of sign."""
    cuts = np.flatnonzero(np.sign(err[1:-1]) * np.sign(err[2:]) < 0) + 2
    edges = np.concatenate([[1], cuts, [err.size]])
    return np.array([lo + np.abs(err[lo:hi]).argmax() for lo, hi in itertools.pairwise(edges)])


def remez(theta: Array, a: Array, rate: float) -> Array:
    """Make the error equioscillate: solve e(a_i) = +-level at its 2K extrema, find the new extrema, and again.

    The unknowns are theta and the level.  The system's valley is narrow and curved, where plain Newton steps must be
    cut to nothing; Levenberg-Marquardt walks along it.
    """
    for _ in range(20):
        err = weighted_error(theta, a, rate)
        at = extrema(err)
        if at.size != theta.size + 1:
            raise RuntimeError(f"{at.size} extrema instead of {theta.size + 1}: the Remez exchange did not converge")
        peaks, sign, points = np.abs(err[at]), np.sign(err[at]), a[at]
        if peaks.max() < (1.0 + 1e-6) * peaks.min():
            break
        unit = float(peaks.mean())

        def residual(x: Array, points: Array = points, sign: Array = sign, unit: float = unit) -> Array:
            return np.asarray(weighted_error(x[:-1], points, rate) / unit - sign * x[-1])

        def slope(x: Array, points: Array = points, sign: Array = sign, unit: float = unit) -> Array:
            return np.hstack([jacobian(x[:-1], points, rate) / unit, -sign[:, None]])

        solution = least_squares(residual, np.append(theta, 1.0), jac=slope, **LM)
        theta = np.asarray(solution.x[:-1])
    return theta


def fit(k: int, rate: float = RATE) -> tuple[Array, Array]:
    a = np.linspace(0.0, 30.0, 6001)
    p, lam = unpack(remez(least_squares_start(k, a, rate), a, rate))
    order = np.argsort(lam)
    return p[order], lam[order]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("k", type=int, nargs="?", default=8, help="number of probits")
    parser.add_argument("--rate", type=float, default=RATE, help="the weight is e^{rate |a|} (default: %(default)s)")
    arguments = parser.parse_args()
    k, rate = arguments.k, arguments.rate
    p, lam = fit(k, rate)
    a = np.linspace(0.0, 60.0, 600001)
    err = ndtr(-np.outer(a, lam)) @ p - expit(-a)
    weighted = err * np.exp(rate * a)
    local = np.abs(weighted)
    peaks = np.flatnonzero((local[1:-1] >= local[:-2]) & (local[1:-1] > local[2:]) & (local[1:-1] > 0.5 * local.max()))
    print(f"# K = {k}: sup |error| = {np.abs(err).max():.3e} at a = {a[np.abs(err).argmax()]:.2f}")
    print(f"# sup |error| e^({rate} |a|) = {local.max():.3e} at a = {a[local.argmax()]:.2f}")
    print(f"# {peaks.size} near-equal peaks, lowest {local[peaks + 1].min():.3e}")
    print("WEIGHTS = (" + ", ".join(repr(float(x)) for x in p) + ")")
    print("SCALES = (" + ", ".join(repr(float(x)) for x in lam) + ")")


if __name__ == "__main__":
    main()
