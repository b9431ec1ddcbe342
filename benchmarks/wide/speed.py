"""Rows per second with one thread, and the time of a row compared with that of the matrix products it needs at least.

Images of MNIST are learned in one call, which learns them in blocks, or one image per call, by networks that have
learned 1,000 others. All competitors take turns, and figures are medians of the processor time over the rounds. A
"choice" is what a contextual bandit does: it computes the joint moments of ten outputs for one image, and then learns
the image with the target of one of them.

"Bare products" are those that a row of a Kronecker network needs at least, by the routines of the same BLAS: for each
layer a symmetric matrix-vector product and a rank-1 update of the factor between inputs, and ten of each (as many as
outputs) of the factor between units. Products with the means, and everything else, are not included. These routines are
called from Python; the time of as many calls with 1 x 1 matrices is subtracted. Ratios vary by some three per cent from
run to run, so a figure that is this close to its target may miss or reach it in the next run.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from scipy.linalg import blas

from benchmarks.timing import race, ratio
from benchmarks.wide.images import CLASSES, Images, load
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork, Conv2D

__all__ = ["bare_products", "findings"]

WIDE, CHOOSING = 300, 200
FIRST = 1_000  # images that are learned before the race
ROUNDS = 7


@dataclass(frozen=True)
class Competitor:
    """Something that deals with so many rows."""

    rows: int
    run: Callable[[], object]


def findings(study: Study) -> Findings:
    """All networks of one data type in one race, and once again for the other."""
    images = load(study)
    figures: list[Figure] = []
    lines: list[tuple[str, ...]] = []
    for dtype in ("float32", "float64"):
        competitors = _competitors(images, dtype, study)
        seconds = race({name: own.run for name, own in competitors.items()}, study.size(ROUNDS, 1), process_time)
        per_row = {name: [t / own.rows for t in seconds[name]] for name, own in competitors.items()}
        speeds = {name: 1.0 / median(times) for name, times in per_row.items()}
        per_row["bare"] = [a - b for a, b in zip(per_row["bare, with calls"], per_row["calls"], strict=True)]
        goal = study.published_target(">= 3000")
        kronecker = f"kronecker, {WIDE} units"
        figures += [
            Figure(f"{dtype}: images/s, {kronecker}, in blocks", speeds[f"{kronecker}, blocks"], goal),
            Figure(
                f"{dtype}: rows in blocks over the bare products",
                ratio(per_row, f"{kronecker}, blocks", "bare"),
                study.published_target("<= 1.50"),
            ),
            Figure(
                f"{dtype}: one row per call over rows in blocks",
                ratio(per_row, f"{kronecker}, one row per call", f"{kronecker}, blocks"),
                study.published_target("<= 1.50"),
            ),
            Figure(
                f"{dtype}: choices/s, kronecker, {CHOOSING} units",
                speeds[f"kronecker, {CHOOSING} units, choices"],
                study.published_target(">= 2000"),
            ),
        ]
        lines += [
            (dtype, name, f"{1.0 / median(times):,.0f}", f"{1e6 * median(times):,.1f}")
            for name, times in per_row.items()
            if name not in ("calls", "bare, with calls")
        ]
    columns = ("numbers", "what", "rows/s", "microseconds per row")
    return Findings(tuple(figures), (Table("All competitors:", columns, tuple(lines)),))


def _competitors(images: Images, dtype: str, study: Study) -> dict[str, Competitor]:
    rows, single = study.size(2_000, 50), study.size(500, 20)
    dense = {
        f"kronecker, {WIDE} units": (WIDE, "kronecker"),
        "kronecker, 100 units": (100, "kronecker"),
        f"diagonal, {WIDE} units": (WIDE, "diagonal"),
        "diagonal, 100 units": (100, "diagonal"),
    }
    found = {}
    for name, (units, covariance) in dense.items():
        network = _started(images.n_pixels, (units,), images, covariance=covariance, dtype=dtype)
        found[f"{name}, blocks" if covariance == "kronecker" else name] = _learning(network, images, rows)
        if units == WIDE and covariance == "kronecker":
            found[f"{name}, one row per call"] = Competitor(single, partial(_one_by_one, network, images, single))
    arms = BayesianNetwork(images.n_pixels, (CHOOSING,), CLASSES, observation="bernoulli", dtype=dtype)
    choices = Competitor(single, partial(_choose, arms.learn(*_choices(images, FIRST)), *_choices(images, single)))
    found[f"kronecker, {CHOOSING} units, choices"] = choices
    blocks = _started(images.n_pixels, (20,), images, covariance="neuron", dtype=dtype)
    found["neuron, 20 units"] = _learning(blocks, images, study.size(30, 5))
    filters = _started(images.shape, (Conv2D(16, 5, stride=3), 200), images.as_images(), dtype=dtype)
    found["16 filters, 200 units"] = _learning(filters, images.as_images(), single)
    sizes = (images.n_pixels + 1, WIDE, WIDE + 1, CLASSES)
    times = study.size(200, 5)
    found["bare, with calls"] = Competitor(times, bare_products(sizes, dtype, times))
    found["calls"] = Competitor(times, bare_products((1, 1, 1, 1), dtype, times))
    return found


def _started(shape: Any, hidden: tuple[Any, ...], images: Images, **options: Any) -> BayesianNetwork:
    """A network that has learned the first images, or a few where each takes long."""
    network = BayesianNetwork(shape, hidden, CLASSES, observation="categorical", **options)
    n = 20 if options.get("covariance") == "neuron" else FIRST
    return network.learn(images.X[:n], images.y[:n])


def _learning(network: BayesianNetwork, images: Images, rows: int) -> Competitor:
    rest = slice(-min(rows, len(images.y)), None)
    X, y = images.X[rest], images.y[rest]
    return Competitor(len(y), lambda: copy.deepcopy(network).learn(X, y))


def _one_by_one(network: BayesianNetwork, images: Images, rows: int) -> None:
    network = copy.deepcopy(network)
    for row in range(-rows, 0):
        network.learn(images.X[row : row + 1 or None], images.y[row : row + 1 or None])


def _choices(images: Images, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and whether each shows one digit, which another one was taken for now and then; of others nothing."""
    X, y = images.X[:rows], images.y[:rows].astype(int)
    taken = (y + (np.arange(len(y)) % 3 == 0)) % CLASSES
    rewards = np.full((len(y), CLASSES), np.nan)
    rewards[np.arange(len(y)), taken] = taken == y
    return X, rewards


def _choose(network: BayesianNetwork, X: np.ndarray, rewards: np.ndarray) -> None:
    network = copy.deepcopy(network)
    for image, reward in zip(X, rewards, strict=True):
        network.output_moments(image)
        network.learn(image, reward)


def bare_products(sizes: tuple[int, int, int, int], dtype: str, times: int) -> Callable[[], None]:
    """A function of so many rows: both factors of both layers, inputs' first, those between units once per output."""
    symv, syr = (blas.ssymv, blas.ssyr) if dtype == "float32" else (blas.dsymv, blas.dsyr)
    factors = [np.asfortranarray(np.eye(size, dtype=dtype)) for size in sizes]
    vectors = [np.linspace(0.0, 1.0, size, dtype=dtype) for size in sizes]
    counts = (1, CLASSES, 1, CLASSES)

    def run() -> None:
        for _ in range(times):
            for factor, vector, count in zip(factors, vectors, counts, strict=True):
                for _ in range(count):
                    gain = symv(1.0, factor, vector, lower=1)
                    syr(-1e-12, gain, a=factor, lower=1, overwrite_a=1)

    return run
