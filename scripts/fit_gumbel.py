"""Fit a Gumbel variable plus N(0, V) by a mixture of K Gaussians, for the moment match of classes.

The match of a class needs ``F(x, v) = E exp(-e^a)`` under ``a ~ N(x, v)``, the distribution function of a Gumbel
variable plus Gaussian noise. With ``F(x, V) ~ sum_k w_k Phi((c_k - x)/s_k)``, that of any ``v >= V`` has
``s_k^2 + v - V`` in the place of ``s_k^2``. A Gumbel variable alone has an edge that takes many Gaussians; with noise
it has none.

Least squares of the error over ``sqrt(F) (1 - F)^(1/4)``: products of many F lean on both tails. Deterministic.

``TAIL`` are the coefficients of ``P`` in ``Phi(-z) e^(z^2/2) ~ t P(t)`` with ``t = 1/(1 + z/4)``, for ``z >= 0``: with
one exponential for ``Phi`` and its density, and no branches, a loop over the Gaussians runs in vector registers.

    python scripts/fit_gumbel.py
"""

import argparse

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import erfcx, ndtr

Array = NDArray[np.float64]

X = np.linspace(-18.0, 5.0, 461)
Z = np.linspace(-10.0, 10.0, 2001)


def both_sides(var: float) -> tuple[Array, Array]:
    """``F`` and ``1 - F`` on the grid, by the trapezoidal rule, which converges as fast as any here."""
    weights = np.exp(-0.5 * Z**2) / np.exp(-0.5 * Z**2).sum()
    power = np.exp(np.minimum(X[:, None] + np.sqrt(var) * Z, 700.0))
    return np.exp(-power) @ weights, -np.expm1(-power) @ weights


def unpack(theta: Array) -> tuple[Array, Array, Array]:
    """Weights (softmax), centres and variances (exp) from 3K - 1 free numbers."""
    k = (theta.size + 1) // 3
    logits = np.append(theta[: k - 1], 0.0)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum(), theta[k - 1 : 2 * k - 1], np.exp(theta[2 * k - 1 :])


def mixture(theta: Array) -> tuple[Array, Array]:
    """The mixture's two sides on the grid."""
    weights, centres, variances = unpack(theta)
    z = (centres - X[:, None]) / np.sqrt(variances)
    return ndtr(z) @ weights, ndtr(-z) @ weights


def fit(k: int, var: float) -> tuple[Array, Array, Array]:
    """Weights, centres and variances, from the widest Gaussian to the narrowest."""
    below, above = both_sides(var)
    scale = 1e4 * below**-0.5 * above**-0.25

    def error(theta: Array) -> Array:
        ours = mixture(theta)
        return np.asarray(np.where(X < 0.0, above - ours[1], ours[0] - below) * scale)

    centres = np.linspace(0.9, -3.5 - 0.3 * k, k)
    logits = -0.5 * ((centres + 0.4) / 1.3) ** 2
    start = np.concatenate(
        [logits[:-1] - logits[-1], centres, np.log(var + 0.25 + 0.25 * np.maximum(0.5 - centres, 0.0))]
    )
    found = least_squares(error, start, max_nfev=3000, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    weights, centres, variances = unpack(np.asarray(found.x))
    order = np.argsort(centres)
    return weights[order], centres[order], variances[order]


def fit_tail(degree: int = 10) -> Array:
    """Coefficients of ``P``, from the constant on; relative error 2.6e-8."""
    x = chebyshev.chebpts1(400)
    t = np.clip(0.5 * (x + 1.0), 1e-9, 1.0)
    ratio = 0.5 * erfcx(4.0 * (1.0 / t - 1.0) / np.sqrt(2.0)) / t
    fitted = chebyshev.Chebyshev(chebyshev.chebfit(x, ratio, degree, w=1.0 / ratio), domain=[0.0, 1.0])
    return np.asarray(fitted.convert(kind=np.polynomial.Polynomial).coef)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("k", type=int, nargs="?", default=8, help="number of Gaussians (default: %(default)s)")
    parser.add_argument("--var", type=float, default=1.0, help="of the Gaussian noise (default: %(default)s)")
    arguments = parser.parse_args()
    weights, centres, variances = fit(arguments.k, arguments.var)
    theta = np.concatenate([np.log(weights[:-1] / weights[-1]), centres, np.log(variances)])
    print(f"# sup |error| = {np.abs(mixture(theta)[0] - both_sides(arguments.var)[0]).max():.1e}")
    for name, values in (("WEIGHTS", weights), ("CENTRES", centres), ("VARIANCES", variances), ("TAIL", fit_tail())):
        print(f"{name} = (" + ", ".join(repr(float(x)) for x in values) + ")")


if __name__ == "__main__":
    main()
