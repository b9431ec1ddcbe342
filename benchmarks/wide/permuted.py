"""Five tasks in turn: MNIST with its pixels in five different orders, and no other sign of which task an image is from.

A network of 100 units learns one task after the other in one pass, at defaults, in float32, without knowing when a
task ends. Every task has its own random order of pixels, and either 10,000 images that no other task has, or all
60,000, as is usual. After each task the network is scored on all test images of all tasks so far. An accuracy that
stays high on the first tasks means that the belief knows which weights still matter for them.
"""

import numpy as np

from benchmarks.wide.images import CLASSES, Images, load, score
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork
from onepass._typing import FloatArray

__all__ = ["accuracies", "findings"]

TASKS, ROWS, UNITS = 5, 10_000, 100


def findings(study: Study) -> Findings:
    """Both covariances, with images of their own for each task, and with all."""
    images = load(study)
    figures: list[Figure] = []
    tables = []
    for rows in (min(ROWS, len(images.y) // TASKS), len(images.y)):
        found = {name: accuracies(images, rows, name) for name in ("kronecker", "diagonal")}
        ends = {name: float(table[-1].mean()) for name, table in found.items()}
        figures += [Figure(f"{rows:,} images per task, accuracy at the end, {name}", ends[name]) for name in ends]
        ahead = 100.0 * (ends["kronecker"] - ends["diagonal"])
        words = f"{rows:,} images per task, kronecker ahead by, in points"
        figures.append(Figure(words, ahead, study.published_target(">= 10")))
        tables.append(_table(rows, found))
    return Findings(tuple(figures), tuple(tables))


def accuracies(images: Images, rows: int, covariance: str) -> FloatArray:
    """Of each task after each, ``(tasks, tasks)``; NaN for those still to come."""
    orders = [np.random.default_rng(seed).permutation(images.n_pixels) for seed in range(TASKS)]
    network = BayesianNetwork(
        images.n_pixels, (UNITS,), CLASSES, observation="categorical", covariance=covariance, dtype="float32"
    )
    found = np.full((TASKS, TASKS), np.nan)
    for task, order in enumerate(orders):
        first = task * rows if TASKS * rows <= len(images.y) else 0
        own = slice(first, first + rows)
        network.learn(images.X[own][:, order], images.y[own])
        for past in range(task + 1):
            found[task, past] = score(network, images.X_test[:, orders[past]], images.y_test).accuracy
    return found


def _table(rows: int, found: dict[str, FloatArray]) -> Table:
    lines = tuple(
        (name, f"{after + 1}", *("" if np.isnan(value) else f"{value:.4f}" for value in row), f"{np.nanmean(row):.4f}")
        for name, table in found.items()
        for after, row in enumerate(table)
    )
    columns = ("covariance", "after task", *(f"on {task + 1}" for task in range(TASKS)), "mean")
    return Table(f"Accuracies after each task of {rows:,} images, on each so far:", columns, lines)
