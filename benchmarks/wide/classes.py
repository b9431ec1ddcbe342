"""Softmax perceptrons with many classes: one covariance block per class, or the joint covariance of all weights.

The data are those of `benchmarks.many_classes`: labels drawn from a softmax, and clusters, with two seeds each. Of
these four, rows per second are the lowest; log-losses are divided by those of the joint covariance, and the largest
ratio is shown. "In passing" is the log-loss of rows before they were learned, "held out" that of rows that were not
learned. MNIST is one pass over 60,000 images by the perceptron with one block per class.
"""

from dataclasses import replace

from benchmarks.many_classes import STRUCTURES, STUDIES, Outcome, measure, mnist
from benchmarks.many_classes import Study as Classes
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork

__all__ = ["findings"]

Size = tuple[int, int]
SPEEDS = {(26, 16): ">= 10000", (100, 20): ">= 5000"}
LOSSES = {(26, 16): "<= 1.01", (100, 20): "<= 1.02"}


def findings(study: Study) -> Findings:
    """Every size at its worst, and MNIST."""
    sizes = sorted({(one.n_classes, one.n_features) for one in STUDIES})
    figures, lines = [], []
    for size in sizes[: study.size(len(sizes), 1)]:
        found = _measure(size, study)
        joint = found["full"]
        for name, outcomes in found.items():
            speed = min(outcome.rows_per_second for outcome in outcomes)
            over = max(own.prequential / full.prequential for own, full in zip(outcomes, joint, strict=True))
            held_out = max(own.held_out / full.held_out for own, full in zip(outcomes, joint, strict=True))
            words = f"{size[0]} classes x {size[1]} features"
            lines.append((words, name, f"{speed:,.0f}", f"{over:.4f}", f"{held_out:.4f}"))
            if name == "neuron":
                loss = study.target(LOSSES.get(size, ""))
                figures += [
                    Figure(f"{words}: rows/s, blocks per class", speed, study.target(SPEEDS.get(size, ""))),
                    Figure(f"{words}: log-loss in passing over the joint one's", over, loss),
                    Figure(f"{words}: held-out log-loss over the joint one's", held_out, loss),
                ]
        lines.append((words, f"auto: {_chosen(size)}", "", "", ""))
    figures += _mnist(study)
    columns = ("size", "covariance", "rows/s", "log-loss over joint", "held out")
    words = 'All forms, and the one that `covariance="auto"` chooses:'
    return Findings(tuple(figures), (Table(words, columns, tuple(lines)),))


def _measure(size: Size, study: Study) -> dict[str, list[Outcome]]:
    chosen = [one for one in STUDIES if (one.n_classes, one.n_features) == size]
    return {name: [measure(_sized(one, study), name) for one in chosen] for name in STRUCTURES}


def _sized(one: Classes, study: Study) -> Classes:
    return replace(one, n_rows=100, n_test=100, n_timed=100) if study.quick else one


def _chosen(size: Size) -> str:
    return str(BayesianNetwork(size[1], (), size[0], observation="categorical").covariance)


def _mnist(study: Study) -> list[Figure]:
    """Speed and scores of both precisions, where there are the files and time."""
    folder = study.folder("mnist")
    figures: list[Figure] = []
    if folder is None or study.quick:
        return figures
    for dtype in ("float64", "float32"):
        speed, accuracy, loss = mnist(folder, dtype)
        figures += [
            Figure(f"MNIST, {dtype}: images/s", speed, ">= 1000"),
            Figure(f"MNIST, {dtype}: accuracy", accuracy, ">= 0.91"),
            Figure(f"MNIST, {dtype}: log-loss", loss),
        ]
    return figures
