"""One pass over MNIST with a convolution: 16 filters of 5 x 5 pixels at every third place, then 200 units.

`BayesianNetwork((28, 28), (Conv2D(16, 5, stride=3), 200), 10, observation="categorical")` at defaults, in float32: the
belief about the filters is full, those about the dense layers are Kronecker. The architecture was fixed together with
the targets, and nothing was chosen by these images. Pixels are divided by 255, rows come in the order of the file, and
all test images are scored.
"""

from benchmarks.wide.images import CLASSES, load, one_pass
from benchmarks.wide.mnist import progress_line
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork, Conv2D

__all__ = ["findings"]

STOPS = (1_000, 10_000, 60_000)
ACCURACIES = {10_000: ">= 0.945", 60_000: ">= 0.980"}


def findings(study: Study) -> Findings:
    """Scores at every stop, and the speed of the longest stretch."""
    images = load(study).as_images()
    hidden = (Conv2D(16, 5, stride=3), 200)
    network = BayesianNetwork(images.shape, hidden, CLASSES, observation="categorical", dtype="float32")
    steps = list(one_pass(network, images, images.stops(*STOPS)))
    figures = [
        Figure(
            f"accuracy after {step.rows:,} rows",
            step.scores.accuracy,
            study.published_target(ACCURACIES.get(step.rows, "")),
        )
        for step in steps
    ]
    last = steps[-1]
    figures += [
        Figure(f"log-loss after {last.rows:,} rows", last.scores.log_loss, study.published_target("<= 0.065")),
        Figure("images/s, one thread", last.speed, study.published_target(">= 1000")),
    ]
    columns = ("network", "rows", "accuracy", "log-loss", "images/s", "by the wall clock")
    lines = tuple(progress_line("16 filters, 200 units", step) for step in steps)
    return Findings(tuple(figures), (Table("Scores along the way:", columns, lines),))
