"""Few rows: how many of the true weights lie inside the 95 % intervals of a perceptron's weights.

True weights are drawn from the prior and rows from the model, and every replicate is learned from the prior that its
weights came from, so with the exact posterior the share would be 95 %. Each step is exact (for tanh it is the paper's
rule), but after it the belief is replaced by a Gaussian. With few rows that makes a difference. "EP" is expectation
propagation over several passes.

    python -m benchmarks.few_rows [REPLICATES]

Inputs are standard normal; there is no bias, so that all weights are alike. In the cells with learned noise the truth
has noise of standard deviation 0.5; around tanh it is known, and small. With 300 replicates the standard error is 0.5
to 1 point, and the replicates are the same for all code.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from benchmarks.cells import Cell
from onepass import BayesianPerceptron

__all__ = ["STUDIES", "WAYS", "Study", "cells", "coverage"]

REPLICATES = 300
SECTION = "perceptrons with few rows: true weights inside their 95 % intervals, per cent"
_QUANTILE = 1.959964

WAYS: dict[str, dict[str, Any]] = {
    "one pass": {},
    "five passes, EP": {"passes": 5, "refine": "ep"},
    "ten passes, EP": {"passes": 10, "refine": "ep"},
}


@dataclass(frozen=True)
class Study:
    """A perceptron, its data, and the bounds of each way to learn."""

    name: str
    activation: str
    features: int
    rows: int
    prior_std: float
    noise: Any  # of the model: None for labels
    noise_std: float  # of the truth
    bounds: tuple[str, str, str]

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """True weights ``(d,)``, inputs ``(n, d)`` and targets ``(n,)``."""
        weights = self.prior_std * rng.normal(size=self.features)
        X = rng.normal(size=(self.rows, self.features))
        output = _FUNCTIONS[self.activation](X @ weights)
        if self.noise is None:
            return weights, X, (rng.random(self.rows) < output).astype(float)
        return weights, X, output + self.noise_std * rng.normal(size=self.rows)

    def model(self) -> BayesianPerceptron:
        """Return a perceptron with the prior that the weights come from."""
        return BayesianPerceptron(self.features, self.activation, bias=False, cov=self.prior_std**2, noise=self.noise)


_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sigmoid": expit,
    "probit": ndtr,
    "relu": lambda a: np.maximum(a, 0.0),
    "linear": lambda a: a,
    "tanh": np.tanh,
}

_HELD = ("93.5-96.5", "93.5-96.5")
_TANH_STD = 0.03
STUDIES = [
    Study(
        "logistic, 10 weights, 100 rows, prior std 3",
        "sigmoid",
        10,
        100,
        3.0,
        None,
        0.0,
        (">= 91.6", *_HELD),
    ),
    Study("probit, 20 weights, 1,000 rows", "probit", 20, 1000, 1.0, None, 0.0, (">= 90.8", *_HELD)),
    Study("ReLU, learned noise, 5 weights, 200 rows", "relu", 5, 200, 1.0, "learn", 0.5, (">= 93", *_HELD)),
    Study(
        "linear, learned noise, 5 weights, 20 rows",
        "linear",
        5,
        20,
        1.0,
        "learn",
        0.5,
        ("93.0-97.0", *_HELD),
    ),
    Study(
        "tanh by the paper's rule, 10 weights, 100 rows, prior std 3",
        *("tanh", 10, 100, 3.0, _TANH_STD**2, _TANH_STD),
        bounds=(">= 78.6", "", ""),
    ),
]


def coverage(study: Study, way: dict[str, Any], replicates: int = REPLICATES) -> float:
    """Return the share of true weights inside their 95 % intervals, in per cent."""
    inside = []
    for seed in range(replicates):
        weights, X, y = study.draw(np.random.default_rng(seed))
        model = study.model().learn(X, y, **way)
        inside.append(np.abs(weights - model.mean) < _QUANTILE * np.sqrt(np.diag(model.cov)))
    return 100.0 * float(np.mean(inside))


def cells(replicates: int = REPLICATES) -> list[Cell]:
    """Measure every study, in every way that perceptrons can learn."""
    return [
        Cell(SECTION, f"{study.name}: {name}", coverage(study, way, replicates), bound)
        for study in STUDIES
        for (name, way), bound in zip(WAYS.items(), study.bounds, strict=True)
    ]


def main(arguments: list[str]) -> None:
    """Print the cells."""
    for cell in cells(int(arguments[0]) if arguments else REPLICATES):
        print(cell.line)


if __name__ == "__main__":
    main(sys.argv[1:])
