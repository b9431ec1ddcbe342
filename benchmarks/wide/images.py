"""MNIST or, without it, the digits that come with scikit-learn; and one pass over them, scored on the way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.bandits.tasks import read_images, read_labels
from benchmarks.wide.study import Study
from onepass._typing import FloatArray
from onepass.evaluation.metrics import Accuracy, ClassPredictions, LogLoss

__all__ = ["CLASSES", "Images", "Progress", "Scores", "load", "one_pass", "score"]

CLASSES = 10
QUICK_IMAGES = 200

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """Images of the training file and of the test file in their order, a row of pixels in 0..1 each, and labels."""

    X: FloatArray
    y: Labels
    X_test: FloatArray
    y_test: Labels
    shape: tuple[int, int]

    @property
    def n_pixels(self) -> int:
        """Of an image."""
        return self.shape[0] * self.shape[1]

    def as_images(self) -> "Images":
        """The same, as arrays ``(n, height, width)``."""
        X, X_test = (rows.reshape(-1, *self.shape) for rows in (self.X, self.X_test))
        return Images(X, self.y, X_test, self.y_test, self.shape)

    def stops(self, *counts: int) -> list[int]:
        """The numbers of rows after which to look, as far as there are so many."""
        return sorted({min(count, len(self.y)) for count in counts})


class Scores(NamedTuple):
    """On test images."""

    accuracy: float
    log_loss: float


class Progress(NamedTuple):
    """After so many rows: the scores, and images per second since the last stop by the processor's and wall clock."""

    rows: int
    scores: Scores
    speed: float
    wall_speed: float


def load(study: Study) -> Images:
    """All of MNIST, or digits of 8 x 8 pixels; of both a few if that is enough."""
    folder = study.folder("mnist")
    if folder is None:
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order] / 16.0, y[order]
        images = Images(X[:1200], y[:1200], X[1200:], y[1200:], (8, 8))
    else:
        X, X_test = (read_images(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
        y, y_test = (read_labels(folder / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k"))
        images = Images(X, y, X_test, y_test, (28, 28))
    n = study.size(len(images.y), QUICK_IMAGES)
    return Images(images.X[:n], images.y[:n], images.X_test[:n], images.y_test[:n], images.shape)


def score(model: Any, X: FloatArray, y: Labels) -> Scores:
    """Accuracy and log-loss of a network or a committee."""
    rows = ClassPredictions(y, np.asarray(model.predict(X).mean, dtype=np.float64))
    return Scores(Accuracy().update(rows).get(), LogLoss().update(rows).get())


def one_pass(model: Any, images: Images, stops: Sequence[int]) -> Iterator[Progress]:
    """Learn the rows in their order, and score at every stop."""
    begin = 0
    for end in stops:
        start, wall = process_time(), perf_counter()
        model.learn(images.X[begin:end], images.y[begin:end])
        seconds, wall_seconds = process_time() - start, perf_counter() - wall
        found = score(model, images.X_test, images.y_test)
        yield Progress(end, found, (end - begin) / seconds, (end - begin) / wall_seconds)
        begin = end
