"""Probabilities of classes on streams, each row predicted before it is learned: the model's own, and calibrated ones.

    python -m benchmarks.probabilities --data FOLDER

The folder has ``streams/`` with the files ``elec``, ``weather`` and ``sea`` (``.csv.gz``, the class last) of
scikit-multiflow's streaming data sets; without ``--data`` only the data sets of scikit-learn are measured. The
calibration error is the mean difference between the probability of the predicted class and the share of rows in which
it was right, over fifteen groups of equal width. The rows of the warm-up are left out.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits

from onepass import BayesianMLPClassifier, BayesianPerceptronClassifier
from onepass._typing import FloatArray
from onepass.models.calibration import PROBABILITIES

__all__ = ["MODELS", "Score", "calibration_error", "measure", "streams"]

FILES = ("elec", "weather", "sea")
MODELS: dict[str, Any] = {
    "perceptron": BayesianPerceptronClassifier(),
    "perceptron, drift='auto'": BayesianPerceptronClassifier(drift="auto"),
    "network": BayesianMLPClassifier((20,), passes=1, shuffle=False),
}
_GROUPS = 15


class Score(NamedTuple):
    """Mean log loss in nats, and calibration error."""

    log_loss: float
    calibration_error: float


def streams(data: Path | None) -> Iterator[tuple[str, FloatArray, NDArray[Any]]]:
    """Names, inputs and labels, in their order; those of scikit-learn in a random one."""
    files = [] if data is None else [data / "streams" / f"{name}.csv.gz" for name in FILES]
    for name, file in zip(FILES, files, strict=False):
        table = pd.read_csv(file)
        yield name, table.iloc[:, :-1].to_numpy(np.float64), table.iloc[:, -1].to_numpy()
    for name, given in (("breast cancer", load_breast_cancer()), ("digits", load_digits())):
        order = np.random.default_rng(0).permutation(len(given.target))
        yield name, given.data[order], given.target[order]


def calibration_error(probabilities: FloatArray, labels: NDArray[Any]) -> float:
    """Expected calibration error of the predicted class; ``labels`` are places among the classes."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    groups = np.minimum((_GROUPS * sure).astype(int), _GROUPS - 1)
    gaps = np.bincount(groups, weights=sure - right, minlength=_GROUPS)
    return float(np.abs(gaps).sum() / len(labels))


def measure(model: Any, X: FloatArray, y: NDArray[Any]) -> Score:
    """Predict every row just before learning it."""
    rows = model.predict_then_learn(X, y, classes=np.unique(y))
    scored = slice(model.warm_up, None)
    places = np.searchsorted(model.classes_, y)
    return Score(-rows.log_density[scored].mean(), calibration_error(rows.mean[scored], places[scored]))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="folder with streams/")
    print("| stream | model | log loss | calibrated | calibration error | calibrated |\n|---|---|---|---|---|---|")
    for name, X, y in streams(parser.parse_args().data):
        for words, model in MODELS.items():
            raw, own = (measure(clone(model).set_params(probabilities=kind), X, y) for kind in PROBABILITIES)
            numbers = (raw.log_loss, own.log_loss, raw.calibration_error, own.calibration_error)
            print(f"| {name} | {words} | {' | '.join(f'{number:.3f}' for number in numbers)} |", flush=True)


if __name__ == "__main__":
    main()
