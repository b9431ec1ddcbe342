"""Does a posterior know how sure it may be? True weights from the prior, labels from the model, and where they lie.

    python -m benchmarks.calibration

With the right posterior the true weights lie one standard deviation from their means, by root mean square, and the
95 % intervals hold 95 % of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from onepass import BayesianPerceptron
from onepass.activations import Probit
from onepass.likelihoods import Bernoulli, MomentMatch

__all__ = ["RULES", "Calibration", "study"]

_SCALE = np.sqrt(np.pi / 8.0)


class OneProbit(Bernoulli):
    """Labels by a single probit ``Φ(λ a)``, ``λ² = π/8``, matched exactly: the step between the paper and us."""

    kalman: ClassVar[Any] = None

    def moment_match(
        self, activation: Any, mean: ArrayLike, var: ArrayLike, y: ArrayLike, update: str = "auto"
    ) -> MomentMatch:
        """Match by one probit."""
        match = Bernoulli().moment_match(Probit(), _SCALE * np.asarray(mean), _SCALE**2 * np.asarray(var), y)
        return MomentMatch(match.log_z, _SCALE * match.score, _SCALE**2 * match.information, match.variance_ratio)


RULES: dict[str, Callable[[int], BayesianPerceptron]] = {
    "exact": lambda d: BayesianPerceptron(d),
    "one probit": lambda d: BayesianPerceptron(d, moments="paper", observation=OneProbit()),
    "paper, noise 0.01": lambda d: BayesianPerceptron(d, noise=0.01, moments="paper"),
}


@dataclass(frozen=True)
class Calibration:
    """Root mean square z-score of the true weights, and the share of them inside their 95 % interval."""

    rms_z: float
    coverage: float


def study(make: Callable[[int], BayesianPerceptron], d: int, n: int, seeds: int) -> Calibration:
    """Learn ``n`` labels of ``seeds`` models with ``d`` features and look where the truth lies."""
    scores = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=d + 1)
        X = rng.normal(size=(n, d))
        y = (rng.random(n) < expit(weights[0] + X @ weights[1:])).astype(float)
        model = make(d).learn(X, y)
        scores.append((weights - model.mean) / np.sqrt(np.diag(model.cov)))
    z = np.concatenate(scores)
    return Calibration(float(np.sqrt(np.mean(z**2))), float(np.mean(np.abs(z) < 1.959964)))


def main() -> None:
    """Print the table."""
    print("| update | RMS z-score | 95 % interval holds |\n|---|---|---|")
    for name, make in RULES.items():
        found = study(make, d=20, n=20_000, seeds=20)
        print(f"| {name} | {found.rms_z:.3f} | {found.coverage:.1%} |", flush=True)


if __name__ == "__main__":
    main()
