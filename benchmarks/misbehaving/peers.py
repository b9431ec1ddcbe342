"""What others reach on the streams: River's adaptive forests and trees, linear models by SGD, the last label.

They take minutes, so that their scores are kept in benchmarks/misbehaving.json; ``python -m benchmarks.misbehaving
--data FOLDER --peers`` measures them again. Everything that is left to choose is chosen in their favour: SGD and
AdaGrad have many pairs of step sizes, of which the one with the best progressive loss so far predicts; probabilities
are mixed with even odds by the share that turned out best; errors have the Gaussian density that fits them best in
hindsight; and regressors learn the targets as they are and standardised.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from river import forest, linear_model, optim, tree

from benchmarks.misbehaving.sources import Stream
from onepass._typing import FloatArray
from onepass.evaluation.baselines import Candidate, TunedBaseline
from onepass.evaluation.baselines.river import RiverModel
from onepass.evaluation.metrics import Accuracy, ClassPredictions, LogLoss, MeanAbsoluteError, NumberPredictions
from onepass.evaluation.metrics import RootMeanSquaredError as Rmse

__all__ = ["FILE", "LAST", "MEASURES", "Scores", "best", "class_scores", "measure", "read", "write"]

FILE = Path(__file__).parents[1] / "misbehaving.json"
COMMAND = "python -m benchmarks.misbehaving --data FOLDER --peers"
CLASSIFIERS: tuple[Any, ...] = (forest.ARFClassifier, tree.HoeffdingAdaptiveTreeClassifier)
REGRESSORS: tuple[Any, ...] = (forest.ARFRegressor, tree.HoeffdingAdaptiveTreeRegressor)
OPTIMISERS: dict[Any, tuple[float, ...]] = {
    optim.SGD: (0.1, 0.03, 0.01, 0.003, 0.3, 1.0, 3.0, 10.0),
    optim.AdaGrad: (0.1, 0.3, 1.0, 3.0),
}
"""Of the weights, with their step sizes, the one to begin with first."""
INTERCEPT_STEPS = (0.1, 0.01, 0.03, 0.3, 1.0, 3.0, 10.0)
SHARES = (0.0, 0.001, 0.01, 0.03, 0.1)  # of even odds, in probabilities of others
LAST = "the last label"
HINDSIGHT = "in hindsight"
MEASURES = {"accuracy": 1, "log-loss": -1, "RMSE": -1, "MAE": -1, "log density": 1}
"""What is measured, and whether more of it is better."""

Scores = dict[str, float]


def measure(stream: Stream) -> dict[str, Scores]:
    """Scores of every other on a stream, by name."""
    found = {**_learners(stream), LAST: _score(stream, _last(stream))}
    if not stream.n_classes:
        scaled = _learners(stream.with_standardized_targets())
        found |= {f"{name}, standardised targets": scores for name, scores in scaled.items()}
    return found


def best(scores: dict[str, Scores], name: str) -> tuple[float, str]:
    """The best of others by one measure, and who it is; neither the last label nor what nobody could have known."""
    rivals = {
        peer: found[name] for peer, found in scores.items() if peer != LAST and HINDSIGHT not in peer and name in found
    }
    peer = max(rivals, key=lambda one: MEASURES[name] * rivals[one])
    return rivals[peer], peer


def class_scores(y: FloatArray, probabilities: FloatArray) -> Scores:
    """Accuracy and log-loss."""
    rows = ClassPredictions(y.astype(int), probabilities)
    return {"accuracy": Accuracy().update(rows).get(), "log-loss": LogLoss().update(rows).get()}


def read() -> dict[str, dict[str, Scores]]:
    """Scores by stream and name, as they were written."""
    found: dict[str, dict[str, Scores]] = json.loads(FILE.read_text())["peers"]
    return found


def write(peers: dict[str, dict[str, Scores]]) -> None:
    """Keep scores, with the command that measures them again."""
    FILE.write_text(json.dumps({"command": COMMAND, "peers": peers}, indent=1) + "\n")


def _learners(stream: Stream) -> dict[str, Scores]:
    found = {}
    for kind in CLASSIFIERS if stream.n_classes else REGRESSORS:
        model = RiverModel("defaults", kind(seed=0), stream.n_classes)
        found[kind.__name__] = _score(stream, model.predict_then_learn(stream.X, stream.targets))
    return found | _steps(stream)


class _Kept:
    """A candidate that keeps what it predicted."""

    def __init__(self, model: Candidate) -> None:
        self.setting, self._model = model.setting, model
        self.guesses: FloatArray = np.empty(0)

    def predict(self, X: FloatArray) -> FloatArray:
        return self._model.predict(X)

    @property
    def takes_weights(self) -> bool:
        return self._model.takes_weights

    def predict_then_learn(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        self.guesses = self._model.predict_then_learn(X, y, weights)
        return self.guesses


def _steps(stream: Stream) -> dict[str, Scores]:
    """Linear models with the steps that were best so far, and with those that turned out best."""
    kept = [_Kept(one) for one in _linear_models(stream.n_classes)]
    tuned = TunedBaseline("SGD", stream.n_classes, kept)
    found = {"SGD, tuned on the way": _score(stream, tuned.predict_then_learn(stream.X, stream.targets))}
    each = {one.setting: _score(stream, one.guesses) for one in kept if _is_sound(one.guesses)}
    for name in next(iter(each.values())):
        value, setting = best(each, name)
        found.setdefault(f"{setting} {HINDSIGHT}", {})[name] = value
    return found


def _linear_models(n_classes: int) -> Iterator[RiverModel]:
    kind = linear_model.LogisticRegression if n_classes else linear_model.LinearRegression
    for step in INTERCEPT_STEPS:
        for optimiser, rates in OPTIMISERS.items():
            for rate in rates:
                setting = f"{optimiser.__name__}({rate:g}, intercept {step:g})"
                yield RiverModel(setting, kind(optimiser(rate), intercept_lr=step), n_classes)


def _is_sound(guesses: FloatArray) -> bool:
    """Whether a setting went on to the end, and to numbers."""
    return len(guesses) > 0 and bool(np.isfinite(guesses).all())


def _last(stream: Stream) -> FloatArray:
    before = np.concatenate([stream.y[:1] * 0.0, stream.y[:-1]])
    return np.eye(stream.n_classes)[before.astype(int)] if stream.n_classes else before


def _score(stream: Stream, guesses: FloatArray) -> Scores:
    if not stream.n_classes:
        guesses = guesses * stream.scale + stream.centre
        rows = NumberPredictions(stream.y[1:], guesses[1:])  # nobody knows where the first target is
        rmse = Rmse().update(rows).get()
        density = -0.5 * (1.0 + np.log(2.0 * np.pi * rmse**2))
        return {"RMSE": rmse, "MAE": MeanAbsoluteError().update(rows).get(), "log density": float(density)}
    mixed = [(1.0 - share) * guesses + share / stream.n_classes for share in SHARES]
    found = [class_scores(stream.y, probabilities) for probabilities in mixed]
    return {"accuracy": found[0]["accuracy"], "log-loss": min(one["log-loss"] for one in found)}
