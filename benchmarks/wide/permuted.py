"""Five tasks in turn: MNIST with its pixels in five orders, which nothing but the images tells apart.

Every task has its own random order of pixels and 10,000 images that no other task has; a network of 100 units learns
one task after the other in one pass, at defaults, in float32, without being told when a task ends. After each it is
scored on all test images of all tasks so far. What was learned is kept if the belief knows which weights still matter.
"""

import numpy as np

from benchmarks.wide.images import CLASSES, Images, load, score
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork
from onepass._typing import FloatArray

__all__ = ["accuracies", "findings"]

TASKS, ROWS, UNITS = 5, 10_000, 100


def findings(study: Study) -> Findings:
    """Both covariances."""
    images = load(study)
    found = {name: accuracies(images, name) for name in ("kronecker", "diagonal")}
    ends = {name: float(np.nanmean(table[-1])) for name, table in found.items()}
    ahead = 100.0 * (ends["kronecker"] - ends["diagonal"])
    figures = (
        *(Figure(f"accuracy on all five tasks at the end, {name}", value) for name, value in ends.items()),
        Figure("kronecker ahead by, in points", ahead, study.published_target(">= 10")),
    )
    lines = tuple(
        (name, f"{after + 1}", *("" if np.isnan(value) else f"{value:.4f}" for value in row), f"{np.nanmean(row):.4f}")
        for name, table in found.items()
        for after, row in enumerate(table)
    )
    columns = ("covariance", "after task", *(f"on {task + 1}" for task in range(TASKS)), "mean")
    return Findings(figures, (Table("Accuracies after each task, on each so far:", columns, lines),))


def accuracies(images: Images, covariance: str) -> FloatArray:
    """Of each task after each, ``(tasks, tasks)``; NaN for those still to come."""
    orders = [np.random.default_rng(seed).permutation(images.n_pixels) for seed in range(TASKS)]
    rows = min(ROWS, len(images.y) // TASKS)
    network = BayesianNetwork(
        images.n_pixels, (UNITS,), CLASSES, observation="categorical", covariance=covariance, dtype="float32"
    )
    found = np.full((TASKS, TASKS), np.nan)
    for task, order in enumerate(orders):
        own = slice(task * rows, (task + 1) * rows)
        network.learn(images.X[own][:, order], images.y[own])
        for past in range(task + 1):
            found[task, past] = score(network, images.X_test[:, orders[past]], images.y_test).accuracy
    return found
