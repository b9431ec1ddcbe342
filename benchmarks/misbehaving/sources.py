"""The recorded streams, and features standardised on the way, the same for all that learn them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets

from benchmarks.real_data import sets
from onepass._typing import FloatArray

__all__ = ["RECORDED", "Stream", "running_scale", "standardized", "streams"]

RECORDED = {"Elec2": "elec", "weather": "weather", "SEA": "sea"}


@dataclass(frozen=True)
class Stream:
    """Rows in their order: features standardised on the way, and classes 0 to K - 1, or numbers if K is 0.

    Numbers are learned as ``(y - centre) / scale``.
    """

    name: str
    X: FloatArray
    y: FloatArray
    n_classes: int
    centre: FloatArray | float = 0.0
    scale: FloatArray | float = 1.0

    @property
    def targets(self) -> FloatArray:
        """What is learned."""
        return (self.y - self.centre) / self.scale

    def first(self, n: int) -> "Stream":
        """The first rows alone."""
        return Stream(self.name, self.X[:n], self.y[:n], self.n_classes)

    def with_standardized_targets(self) -> "Stream":
        """The same, its numbers standardised by those before them."""
        centre, scale = running_scale(self.y)
        return replace(self, centre=np.append(self.y[0], centre[:-1]), scale=np.append(1.0, scale[:-1]))


def streams(folder: Path | None) -> list[Stream]:
    """Those in the folder, if there is one, and those that come with River."""
    found = []
    for name, file in RECORDED.items() if folder is not None else ():
        rows = np.loadtxt(f"{folder}/{file}.csv.gz", delimiter=",", skiprows=1)
        found.append(Stream(name, standardized(rows[:, :-1]), rows[:, -1], 2))
    classes = {name: (X, y) for name, X, y in sets()}
    for name in ("Phishing", "Bananas"):
        X, y = classes[name]
        found.append(Stream(name, standardized(X), y.astype(np.float64), 2))
    kind: Any = datasets.TrumpApproval
    approval = list(kind())
    X = np.array([[float(value) for value in x.values()] for x, _ in approval])
    found.append(Stream("TrumpApproval", standardized(X), np.array([y for _, y in approval]), 0))
    return found


def standardized(X: FloatArray) -> FloatArray:
    """Every row by the mean and standard deviation of the rows up to it and with it, whose targets nobody has seen."""
    centre, scale = running_scale(X)
    return (X - centre) / scale


def running_scale(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the rows up to each, with it; 1 for columns that have not varied yet."""
    shifted = values - values[0]  # a sum of squares far from zero loses the digits of the variance
    n = np.arange(1, len(values) + 1).reshape(-1, *[1] * (values.ndim - 1))
    mean = np.cumsum(shifted, axis=0) / n
    variance = np.maximum(np.cumsum(shifted**2, axis=0) / n - mean**2, 0.0)
    constant = variance <= 1e-12 * np.maximum.accumulate(shifted**2, axis=0)
    return mean + values[0], np.where(constant, 1.0, np.sqrt(variance))
