"""Matrix-normal beliefs by brute force: dense covariances, and numerical minimisation of the divergence."""

from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar

Pair = tuple[np.ndarray, np.ndarray]


def random_covariance(rng: np.random.Generator, n: int) -> np.ndarray:
    root = rng.normal(size=(n, n + 2))
    return np.asarray(root @ root.T / n)


def kron(outer: Any, inner: Any) -> np.ndarray:
    return np.asarray(np.kron(outer, inner))


def inverse(matrix: Any) -> np.ndarray:
    return np.asarray(np.linalg.inv(matrix))


def posterior(cov: np.ndarray, jacobian: np.ndarray, information: np.ndarray) -> np.ndarray:
    """Of the joint step, for derivatives ``(K, p)``."""
    gain = cov @ jacobian.T
    return np.asarray(cov - gain @ information @ gain.T)


def divergence(first: np.ndarray, second: np.ndarray) -> float:
    """KL divergence of two Gaussians with the same mean, from the first to the second."""
    ratio = np.linalg.solve(second, first)
    return float(0.5 * (np.trace(ratio) - len(first) - np.linalg.slogdet(ratio)[1]))


def partial_traces(cov: np.ndarray, units: Pair) -> Pair:
    """Means of the blocks of a dense covariance over inputs and over outputs, in units of ``B`` and ``A``."""
    outer, inner = units
    blocks = cov.reshape(len(outer), len(inner), len(outer), len(inner))
    over_inputs = np.einsum("uivj,ij->uv", blocks, np.linalg.inv(inner)) / len(inner)
    over_outputs = np.einsum("uivj,uv->ij", blocks, np.linalg.inv(outer)) / len(outer)
    return over_inputs, over_outputs


def best_scale(cov: np.ndarray, product: np.ndarray) -> float:
    """The factor of a product that makes it nearest to a covariance."""
    found = minimize_scalar(
        lambda log: divergence(cov, np.exp(log) * product), bounds=(-3.0, 3.0), options={"xatol": 1e-10}
    )
    return float(np.exp(found.x))


def one_step(belief: Pair, jacobian: np.ndarray, information: np.ndarray) -> np.ndarray:
    """``B ⊗ A`` after the step: partial traces of the joint posterior, with the scale at its optimum."""
    exact = posterior(np.kron(*belief), jacobian, information)
    product = np.kron(*partial_traces(exact, belief))
    return np.asarray(best_scale(exact, product) * product)


def nearest_product(cov: np.ndarray, n_out: int) -> np.ndarray:
    """The ``B ⊗ A`` of the least divergence from a covariance, over all triangular roots of both."""
    n_in = len(cov) // n_out
    sizes = [n_out * (n_out + 1) // 2, n_in * (n_in + 1) // 2]

    def product(numbers: np.ndarray) -> np.ndarray:
        factors = []
        for n, part in zip((n_out, n_in), np.split(numbers, sizes[:1]), strict=True):
            root = np.zeros((n, n))
            root[np.tril_indices(n)] = part
            root[np.diag_indices(n)] = np.exp(np.diag(root))
            factors.append(root @ root.T)
        return np.kron(*factors)

    start = np.zeros(sum(sizes))
    found: Any = minimize(lambda numbers: divergence(cov, product(numbers)), start, options={"gtol": 1e-9})  # type: ignore[call-overload]
    return product(found.x)
