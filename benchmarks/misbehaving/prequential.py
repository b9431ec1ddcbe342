"""Recorded streams: every row predicted before it is learned, by onepass and by River's models at their best.

All get the same features, standardised by the rows so far. Elec2, weather and SEA come from the data folder, the others
with River. "Best other" is the best of River's adaptive random forest, its adaptive Hoeffding tree, and SGD
that at each row uses the step size with the best loss so far ("tuned on the way"). "Drift alone" is onepass with
`drift="auto"` and without `outliers`. Two more are listed below the table for reference only: the step
size that turned out best ("in hindsight"), which nobody could have known, and predicting the last label again, which is
no model.
"""

from typing import Any

import numpy as np

from benchmarks.misbehaving import peers
from benchmarks.misbehaving.sources import Stream, streams
from benchmarks.misbehaving.study import Outcome, Study
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.evaluation.metrics import MeanAbsoluteError, NumberPredictions, RootMeanSquaredError

__all__ = ["network", "notes", "ours", "outcomes", "perceptron", "score"]

QUICK_ROWS = 200


def outcomes(study: Study) -> list[Outcome]:
    """Perceptron and network on every stream, with all our settings and with drift alone."""
    kept = peers.read()
    found = []
    for stream in streams(study.folder("streams")):
        rows = stream.first(study.size(len(stream.y), QUICK_ROWS))
        for words, settings in {"": study.without(), ", drift alone": study.only("drift")}.items():
            for learner, scores in ours(rows, settings).items():
                for measure, value in scores.items():
                    other, by = peers.best(kept[stream.name], measure)
                    sign = ">=" if peers.MEASURES[measure] > 0 else "<="
                    task = f"{stream.name}, {learner}{words}: {measure}"
                    found.append(Outcome(task, value, other, by, None, f"{sign} {other:.4f}"))
    return found


def notes() -> list[str]:
    """Lines below the table: all scores of others."""
    lines = ["| stream | who | scores |", "|---|---|---|"]
    for stream, found in peers.read().items():
        for peer, scores in found.items():
            words = ", ".join(f"{measure} {value:.4f}" for measure, value in scores.items())
            lines.append(f"| {stream} | {peer} | {words} |")
    return lines


def ours(stream: Stream, settings: dict[str, Any]) -> dict[str, peers.Scores]:
    """Scores of a perceptron and of a network with the library's defaults but for the settings."""
    models = {"perceptron": perceptron(stream, settings), "network": network(stream, settings)}
    return {name: score(stream, model) for name, model in models.items()}


def perceptron(stream: Stream, settings: dict[str, Any]) -> Any:
    """One for the stream's targets; its features are standardised already."""
    kind: Any = BayesianPerceptronClassifier if stream.n_classes else BayesianPerceptronRegressor
    return kind(standardize=False, **settings)


def network(stream: Stream, settings: dict[str, Any]) -> Any:
    """One for the stream's targets; its features are standardised already."""
    kind: Any = BayesianMLPClassifier if stream.n_classes else BayesianMLPRegressor
    return kind(standardize=False, **settings)


def score(stream: Stream, model: Any) -> peers.Scores:
    """Scores of predicting every row before learning it."""
    if stream.n_classes:
        predicted = model.predict_then_learn(stream.X, stream.y, classes=range(stream.n_classes))
        # With outliers the means are of labels that can be trusted, and the log density of labels as they come.
        return {**peers.class_scores(stream.y, predicted.mean), "log-loss": float(-predicted.log_density.mean())}
    stream = stream.with_standardized_targets()
    predicted = model.predict_then_learn(stream.X, stream.targets)
    rows = NumberPredictions(stream.y[1:], (predicted.mean * stream.scale + stream.centre)[1:])
    densities = predicted.log_density - np.log(stream.scale)
    return {
        "RMSE": RootMeanSquaredError().update(rows).get(),
        "MAE": MeanAbsoluteError().update(rows).get(),
        "log density": float(densities[1:].mean()),
    }
