"""Other tasks than those that are reported, to choose defaults on: one change at a time, as in `benchmarks.choices`.

    python -m benchmarks.misbehaving.choices [WORD]

Regression made by three formulas with clean targets, heavy tails and spikes; wrong labels; boundaries that turn by 1
and by 10 degrees, flips every 300 and 3,000 rows among ten inputs; jumps of other sizes; streams of River's generators
that drift, and its image segments. A Markdown table comes out, a row a task, a column a variant: errors against the
truth in units of the noise, accuracies and log-losses before each row is learned. WORD measures only the tasks that
have it in their name. VARIANTS is the place for what is to be tried.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from river.datasets import synth
from scipy.special import expit
from sklearn.datasets import make_friedman1

from benchmarks.misbehaving import jumps, labels, moving, prequential
from benchmarks.misbehaving.sources import Stream, standardized
from benchmarks.misbehaving.study import OURS
from benchmarks.real_data import sets
from onepass import BayesianNetwork, BayesianPerceptron
from onepass._typing import FloatArray

__all__ = ["VARIANTS", "contaminated", "regression", "tasks"]

VARIANTS: dict[str, dict[str, Any]] = {"plain": {}, "ours": OURS, **{name: {name: OURS[name]} for name in OURS}}
SEEDS, ROWS, STREAM_ROWS = 5, 2000, 6000
NOISE = 0.2  # standard deviation, where the truth has that of 1
TEN = (2.0, 1.5, -1.0, 1.0, -0.5, 0.5, 0.0, 0.0, 0.0, 0.0)

Settings = dict[str, Any]
Make = Callable[[int, int, Settings], Any]
Task = Callable[[Settings], float]


def tasks() -> Iterator[tuple[str, Task]]:
    """Every task by its name: what gives a figure for settings."""
    for formula, make in {"friedman": _network, "sparse": _linear, "sine": _network}.items():
        for noise in ("clean", "tails", "few spikes", "many spikes", "one side"):
            yield f"{formula}, {noise}: error", partial(error, make, formula, noise)
    for share in (0.0, 0.05, 0.2):
        yield f"{share:.0%} wrong labels: log-loss", partial(wrong_labels, share)
    for name, boundary in boundaries().items():
        yield f"{name}: accuracy", partial(moving.accuracy, boundary, SEEDS)
    for size in (8.0, 40.0):
        yield f"jump of {size:g} sd: rows until believed", partial(believed, size)
    for stream in generated():
        yield f"{stream.name}: log-loss", partial(log_loss, stream)


def error(make: Make, formula: str, noise: str, settings: Settings) -> float:
    """Root mean squared error of one-step predictions against the truth, in units of the noise, after a warm-up."""
    squares = []
    for seed in range(SEEDS):
        X, truth = regression(formula, seed)
        model = make(X.shape[1], seed, settings)
        predicted = model.predict_then_learn(X, contaminated(truth, noise, seed)).mean
        squares.append(np.mean((predicted - truth)[ROWS // 10 :] ** 2))
    return float(np.sqrt(np.mean(squares))) / NOISE


def regression(formula: str, seed: int) -> tuple[FloatArray, FloatArray]:
    """Inputs of about unit variance and the truth, standardised: ``friedman``, ``sparse`` (linear) or ``sine``."""
    rng = np.random.default_rng(seed)
    if formula == "friedman":
        X, truth = make_friedman1(ROWS, 8, random_state=seed)
        X = (X - 0.5) * np.sqrt(12.0)
    elif formula == "sparse":
        X = rng.normal(size=(ROWS, 20))
        truth = X[:, :4] @ rng.normal(size=4)
    else:
        X = rng.normal(size=(ROWS, 4))
        truth = np.sin(X @ rng.normal(size=(4, 5))) @ rng.normal(size=5)
    return X, (truth - truth.mean()) / truth.std()


def contaminated(truth: FloatArray, noise: str, seed: int) -> FloatArray:
    """Targets with ``clean`` noise, ``tails`` of a t distribution, ``few spikes``, many, or some of ``one side``."""
    rng = np.random.default_rng([seed, 1])
    if noise == "tails":
        return np.asarray(truth + NOISE * rng.standard_t(2.0, len(truth)))
    share = {"clean": 0.0, "few spikes": 0.01, "many spikes": 0.2, "one side": 0.1}[noise]
    sizes = NOISE * np.exp(rng.uniform(np.log(5.0), np.log(500.0), len(truth)))
    signs = 1.0 if noise == "one side" else rng.choice([-1.0, 1.0], len(truth))
    spikes = np.where(rng.random(len(truth)) < share, signs * sizes, 0.0)
    return np.asarray(truth + rng.normal(0.0, NOISE, len(truth)) + spikes)


def wrong_labels(share: float, settings: Settings) -> float:
    """Log-loss of a perceptron on right labels, after rows some of whose labels were flipped."""
    losses = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, len(TEN)))
        y = (rng.random(1000) < expit(2.0 * X @ np.array(TEN))).astype(int)
        losses.append(labels.log_losses(X, y, seed, share, settings)[labels.PERCEPTRON])
    return float(np.mean(losses))


def boundaries() -> dict[str, moving.Moving]:
    """Labels whose weights turn, flip, walk or stay."""
    uniform, gaussian = moving.uniform, moving.gaussian
    return {
        "turning by 1 degree": moving.Moving(uniform, moving.turning(1.0), 720),
        "turning by 10 degrees": moving.Moving(uniform, moving.turning(10.0), 720),
        "flips every 300 rows": moving.Moving(gaussian, moving.flipping(TEN, 300), STREAM_ROWS),
        "flips every 3,000 rows": moving.Moving(gaussian, moving.flipping(TEN, 3000), 2 * STREAM_ROWS),
        "ten weights walk": moving.Moving(gaussian, moving.walking(10, 1.0, 5000.0), STREAM_ROWS),
        "ten weights stay": moving.Moving(gaussian, moving.still(TEN), STREAM_ROWS),
    }


def believed(size: float, settings: Settings) -> float:
    """Mean number of rows until a perceptron believes a jump, on seeds that are not reported."""
    make = jumps.MODELS["perceptron"]
    seeds = range(100, 100 + SEEDS)
    return float(np.mean([jumps.rows_until_believed(make(seed, settings), size, seed) for seed in seeds]))


def log_loss(stream: Stream, settings: Settings) -> float:
    """Progressive log-loss of a perceptron."""
    return prequential.score(stream, prequential.perceptron(stream, settings))["log-loss"]


def generated() -> Iterator[Stream]:
    """Streams of River's generators, which drift fast, slowly or all the way, and real images, which do not."""
    half = STREAM_ROWS // 2
    kinds: dict[str, Any] = {
        "SEA": synth.ConceptDriftStream(synth.SEA(0, seed=1), synth.SEA(3, seed=2), seed=3, position=half, width=50),
        "Agrawal": synth.ConceptDriftStream(
            synth.Agrawal(0, seed=1), synth.Agrawal(2, seed=2), seed=3, position=half, width=500
        ),
        "hyperplane": synth.Hyperplane(seed=1, n_features=10, n_drift_features=3, mag_change=0.002),
        "LED": synth.LEDDrift(seed=1, n_drift_features=5),
    }
    for name, kind in kinds.items():
        rows = list(islice(kind, STREAM_ROWS))
        X = np.array([[float(value) for value in x.values()] for x, _ in rows])
        yield _classes(f"{name}, generated", X, np.array([float(y) for _, y in rows]))
    images = next((X, y) for name, X, y in sets() if name == "ImageSegments")
    yield _classes("image segments", *images)


def _classes(name: str, X: FloatArray, y: FloatArray) -> Stream:
    return Stream(name, standardized(X), y.astype(np.float64), int(y.max()) + 1)


def _network(d: int, seed: int, settings: Settings) -> BayesianNetwork:
    return BayesianNetwork(d, (20,), seed=seed, **settings)


def _linear(d: int, seed: int, settings: Settings) -> BayesianPerceptron:
    return BayesianPerceptron(d, "linear", noise="learn", **settings)


def main(arguments: list[str]) -> None:
    """Print the table, a row at a time."""
    warnings.filterwarnings("ignore", category=UserWarning)
    print("| task |", " | ".join(VARIANTS), "|\n|---|" + "---|" * len(VARIANTS))
    for name, task in tasks():
        if all(word in name for word in arguments):
            print(f"| {name} |", *(f"{task(settings):.4g} |" for settings in VARIANTS.values()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
