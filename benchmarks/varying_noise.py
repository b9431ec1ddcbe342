"""What a second output for the noise is worth where the noise grows, and what it costs where it does not.

    python -m benchmarks.varying_noise

One pass over 1,000 rows of a sine in one input, 20 ReLU units, the mean of five seeds. A Markdown table comes out:
log-likelihood of 4,000 test rows, and coverage of the 95 % interval in each quarter of the inputs.
"""

import numpy as np

from onepass import BayesianNetwork
from onepass._typing import FloatArray
from onepass.evaluation.metrics import Coverage95, DistributionPredictions, LogLikelihood

__all__ = ["problem"]

EDGE = 1.7
PROBLEMS = {"deviation 0.05 to 0.5": (0.05, 10.0), "0.1 to 0.3": (0.1, 3.0), "0.2 everywhere": (0.2, 1.0)}


def problem(n: int, seed: int, least: float, growth: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs, targets, and the deviation of each target's noise, which grows exponentially from left to right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-EDGE, EDGE, size=(n, 1))
    std = least * growth ** ((X[:, 0] + EDGE) / (2 * EDGE))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, std), std


def quarters(network: BayesianNetwork, X: FloatArray, y: FloatArray) -> FloatArray:
    """Coverage in each quarter of the inputs, per cent."""
    where = np.minimum((X[:, 0] + EDGE) // (EDGE / 2), 3)
    parts = (predictions(network, X[where == quarter], y[where == quarter]) for quarter in range(4))
    return np.array([100.0 * Coverage95().update(part).get() for part in parts])


def predictions(network: BayesianNetwork, X: FloatArray, y: FloatArray) -> DistributionPredictions:
    """Targets, and what the network predicts for them."""
    low, high = network.interval(X)
    densities = network.log_predictive(X, y)
    return DistributionPredictions(y=y, mean=network.predict(X).mean, log_densities=densities, low=low, high=high)


def main() -> None:
    """Print the table."""
    print("| noise | model | log-likelihood | coverage by quarter |")
    print("|---|---|---|---|")
    for name, (least, growth) in PROBLEMS.items():
        table: dict[str, list[FloatArray]] = {}
        for seed in range(5):
            X, y, _ = problem(1000, seed, least, growth)
            test, target, std = problem(4000, 100 + seed, least, growth)
            for label, noise in (("one noise", "learn"), ("second output", "heteroscedastic")):
                network = BayesianNetwork(1, (20,), noise=noise, seed=seed).learn(X, y)  # type: ignore[arg-type]
                likelihood = LogLikelihood().update(predictions(network, test, target)).get()
                table.setdefault(label, []).append(np.append(likelihood, quarters(network, test, target)))
            error = target - np.sin(2 * test[:, 0])
            truth = np.mean(-0.5 * np.log(2 * np.pi * std**2) - 0.5 * (error / std) ** 2)
            table.setdefault("the truth", []).append(np.array([truth, 95.0, 95.0, 95.0, 95.0]))
        for label, rows in table.items():
            likelihood, *coverage = np.mean(rows, axis=0)
            print(f"| {name} | {label} | {likelihood:.3f} | {' / '.join(f'{share:.0f}' for share in coverage)} |")


if __name__ == "__main__":
    main()
