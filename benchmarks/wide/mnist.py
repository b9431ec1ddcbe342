"""One pass over MNIST with 300 hidden units: a Kronecker belief compared with independent weights, all at defaults.

Pixels are divided by 255, rows come in the order of the file, and nothing is tuned: every model is
`BayesianNetwork(784, (300,), 10, observation="categorical")` with the covariance that is named, in float32. Accuracy
and log-loss are those of all 10,000 test images. How much float64 differs is shown after 10,000 rows. The committee has
five such networks with different seeds and the default weighting. Images per second are given by processor time and by
the wall clock, for the rows since the line before.
"""

from typing import Any

from benchmarks.wide.images import CLASSES, Images, Progress, load, one_pass
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianCommittee, BayesianNetwork

__all__ = ["findings", "progress_line"]

UNITS = 300
STOPS = (1_000, 10_000, 60_000)
COMPARED = 10_000  # rows for float64
ACCURACIES = {1_000: ">= 0.82", 10_000: ">= 0.925", 60_000: ">= 0.965"}


def findings(study: Study) -> Findings:
    """Both covariances at every stop, float64, and the committee."""
    images = load(study)
    stops = images.stops(*STOPS)
    kronecker, diagonal = (list(one_pass(_network(images, name), images, stops)) for name in ("kronecker", "diagonal"))
    early = next((step for step in kronecker if step.rows >= COMPARED), kronecker[-1])
    (double,) = one_pass(_network(images, "kronecker", dtype="float64"), images, [early.rows])
    committee = BayesianCommittee(
        images.n_pixels,
        (UNITS,),
        CLASSES,
        workers=1,
        observation="categorical",
        covariance="kronecker",
        dtype="float32",
    )
    (five,) = one_pass(committee, images, stops[-1:])
    figures = [
        Figure(
            f"accuracy after {step.rows:,} rows",
            step.scores.accuracy,
            study.published_target(ACCURACIES.get(step.rows, "")),
        )
        for step in kronecker
    ]
    figures += [
        Figure(f"log-loss after {stops[-1]:,} rows", kronecker[-1].scores.log_loss, study.published_target("<= 0.115")),
        Figure("accuracy of five members", five.scores.accuracy, study.published_target(">= 0.970")),
        Figure("log-loss of five members", five.scores.log_loss),
        Figure(f"float64: accuracy less that of float32, {double.rows:,} rows", _gap(double, early)),
        Figure(
            f"float64: log-loss less that of float32, {double.rows:,} rows",
            double.scores.log_loss - early.scores.log_loss,
        ),
    ]
    runs = {"kronecker": kronecker, "diagonal": diagonal, "kronecker, float64": [double], "five, kronecker": [five]}
    lines = tuple(progress_line(name, step) for name, steps in runs.items() for step in steps)
    columns = ("covariance", "rows", "accuracy", "log-loss", "images/s", "by the wall clock")
    return Findings(tuple(figures), (Table("Scores along the way:", columns, lines),))


def progress_line(name: str, step: Progress) -> tuple[str, ...]:
    """Cells of a line."""
    accuracy, log_loss = step.scores
    return (
        name,
        f"{step.rows:,}",
        f"{accuracy:.4f}",
        f"{log_loss:.4f}",
        f"{step.speed:,.0f}",
        f"{step.wall_speed:,.0f}",
    )


def _network(images: Images, covariance: str, dtype: str = "float32") -> BayesianNetwork:
    options: dict[str, Any] = {"observation": "categorical", "covariance": covariance, "dtype": dtype}
    return BayesianNetwork(images.n_pixels, (UNITS,), CLASSES, **options)


def _gap(first: Progress, second: Progress) -> float:
    return first.scores.accuracy - second.scores.accuracy
