"""Rare events, counts, and noise far from the data: what the intercept's prior and the likelihood of counts improve.

The first table has the ratio of predicted to actual positives. The second has scores of a count regression. The third
has the standard deviation of the noise that is predicted at x = 20, where the data end at 1.7.

    python -m benchmarks.counts

All data are made here, by seeds that no default was chosen on.
"""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.cells import Cell
from benchmarks.varying_noise import problem
from onepass import BayesianNetwork, BayesianPerceptronClassifier, BayesianPerceptronRegressor
from onepass._typing import FloatArray

__all__ = ["cells", "rare_events", "shells"]

ROWS, POSITIVES = 20_000, 31
SEEDS = range(100, 109)
FAR = 20.0  # inputs, where the data end at 1.7


def rare_events(seed: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rows and labels of which 28 to 34 in 20,000 are 1, and as many to test with: log odds of about -7."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=5)
    weights *= 0.5 * np.sqrt(5) / np.linalg.norm(weights)
    intercept = -7.0
    while True:
        X = rng.normal(size=(2 * ROWS, 5))
        y = (rng.random(2 * ROWS) < 1 / (1 + np.exp(-intercept - X @ weights))).astype(float)
        if abs(y[:ROWS].sum() - POSITIVES) <= 3:
            return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]
        intercept += 0.2 * np.log(POSITIVES / max(y[:ROWS].sum(), 1.0))


def predicted_over_actual(model: Any, seed: int) -> float:
    """Sum of the predicted probabilities over the number of positives, on rows that were not learned."""
    X, y, test, labels = rare_events(seed)
    return float(model.fit(X, y).predict_proba(test)[:, 1].sum() / labels.sum())


def shells(seed: int, n: int = 4000) -> tuple[FloatArray, FloatArray]:
    """Counts like rings of shells: seven sizes that grow together, some measured wrongly; counts vary by a quarter."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(0.0, 0.3, n))
    powers = np.array([1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0])
    X = size[:, None] ** powers * np.exp(rng.normal(0.0, 0.1, (n, 7)))
    wrong = rng.choice(n, 4, replace=False)
    X[wrong, 2] *= 8.0
    rate = 10.0 * size ** rng.uniform(0.5, 0.8) * rng.gamma(16.0, 1 / 16.0, n)
    return X, rng.poisson(rate).astype(float)


def count_scores(model: Any, seed: int) -> tuple[float, float, float]:
    """RMSE, mean log probability and share inside the 95 % interval, on the half that was not learned."""
    X, y = shells(seed)
    half = len(y) // 2
    model.fit(X[:half], y[:half])
    mean = model.predict(X[half:])
    low, high = model.predict_interval(X[half:])
    inside = (low <= y[half:]) & (y[half:] <= high)
    before = model.log_evidence_
    density = (model.partial_fit(X[half:], y[half:]).log_evidence_ - before) / half
    return float(np.sqrt(np.mean((mean - y[half:]) ** 2))), float(density), 100.0 * float(inside.mean())


def noise_far_away(seed: int) -> float:
    """Standard deviation of the noise that a network predicts far from its data; at their edge it is 0.5."""
    X, y, _ = problem(1000, seed, 0.05, 10.0)
    network = BayesianNetwork(1, (20,), observation="heteroscedastic", seed=seed).learn(X, y)
    return float(np.sqrt(network.predict(np.array([FAR])).aleatoric))


def cells() -> list[Cell]:
    """All measurements: medians over seeds."""
    rare = np.median([predicted_over_actual(BayesianPerceptronClassifier(standardize=False), seed) for seed in SEEDS])
    batch = float(np.median([predicted_over_actual(LogisticRegression(), seed) for seed in SEEDS]))
    counts = [count_scores(BayesianPerceptronRegressor("exp", standardize=True), seed) for seed in SEEDS]
    error, density, inside = np.median(counts, axis=0)
    far = np.median([noise_far_away(seed) for seed in SEEDS])
    section = "31 positives in 20,000 rows: predicted over actual"
    return [
        Cell(section, "perceptron", float(rare), "<= 1.3"),
        Cell(section, "batch logistic regression", batch),
        Cell("counts, activation exp", "RMSE", float(error), "<= 5"),
        Cell("counts, activation exp", "log-likelihood", float(density), ">= -3"),
        Cell("counts, activation exp", "inside 95 %", float(inside), "93-98"),
        Cell("heteroscedastic noise far from the data", "standard deviation", float(far), "<= 3"),
    ]


def main() -> None:
    """Print the figures."""
    for cell in cells():
        print(cell.line)


if __name__ == "__main__":
    main()
