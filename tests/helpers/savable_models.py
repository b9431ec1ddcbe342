"""A model of every class that can be saved, and what each predicts."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import onepass
import onepass.forecasting
from onepass.decisions import UCB, ContextualBandit
from onepass.estimators import FleetEstimator, MovingLevelRegressor, start_learner
from onepass.estimators.rows import Rows
from onepass.paper.kalman_network import KalmanNetwork
from onepass.river import (
    MLPClassifier,
    MLPRegressor,
    PerceptronClassifier,
    PerceptronRegressor,
    SoftmaxClassifier,
)
from onepass.tables.better_of_two import BetterOfTwo
from onepass.tables.detection_model import DetectionModel
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.readers.registry import open_source
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.series import read_series
from onepass.tables.series_model import SeriesModel
from onepass.tables.series_rows import SeriesColumns
from onepass.tables.settings import Settings


def predicted(model: Any, X: Any) -> list[Any]:
    """What a model says of rows, in the way of its kind."""
    if hasattr(model, "predict_one"):
        rows = [dict(zip("abc", row, strict=True)) for row in X]
        if isinstance(model, PerceptronClassifier):
            return [model.predict_proba_one(row)[True] for row in rows]
        if isinstance(model, (MLPClassifier, SoftmaxClassifier)):
            return [list(model.predict_proba_one(row).values()) for row in rows]
        return [model.predict_one(row) for row in rows]
    if isinstance(model, TabularModel):
        encoded = encoded_lines(model, X) if isinstance(X[0], str) else np.array(X)
        return list(model.predictions(encoded, 0.95)["mean"].tolist())
    if isinstance(model, FleetEstimator):
        return list(model.predict(X, keys=["ann", "bob", "eve", "ann", "new"]).tolist())
    if isinstance(model, onepass.PerceptronFleet):
        return list(model.predict(X, keys=["ann", "bob", "eve", "ann", "new"]).mean.tolist())
    if isinstance(model, onepass.forecasting.AnomalyScorer):
        return list(model.score([row[0] for row in X]).score.tolist())
    if isinstance(model, onepass.BayesianForecaster):
        return list(model.forecast(3).mean.tolist())
    if isinstance(model, DetectionModel):
        return [scorer.score([row[0] for row in X]).score.tolist() for scorer in model.scorers.values()]
    if isinstance(model, SeriesModel):
        return [one.forecast.mean.tolist() for one in model.forecasts(3)]
    if isinstance(model, onepass.forecasting.ForecastingFleet):
        return list(model.forecast(3, key="bob").mean.tolist())
    if isinstance(model, ContextualBandit):
        return list(np.hstack([model.predict(X).reward_mean, model.propensities(X)]).tolist())
    if hasattr(model, "predict_proba"):
        return list(model.predict_proba(X).tolist())
    seen = model.predict(X)
    return list((seen.mean if hasattr(seen, "mean") and not isinstance(seen, np.ndarray) else seen).tolist())


def n_learned(model: Any) -> int:
    """How many rows it has learned."""
    if isinstance(model, onepass.PerceptronFleet):
        keys = model.keys()
        return sum(model.perceptron(key).n_seen for key in keys)
    names = ("n_seen_", "n_seen", "n_rows", "n_rewards")
    return int(next(getattr(model, name) for name in names if hasattr(model, name)))


def table(X: Any, y: Any, *rivals: Any, **options: Any) -> TabularModel:
    """A model of a table with three columns of numbers; with rivals of the perceptron a comparison."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        np.savetxt(file, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="")
        inputs = Inputs((str(file),))
        sources = inputs.sources()
        wanted = SchemaOptions("y", settings=Settings(model_kind="perceptron"), **options)
        model, _ = infer_model(sources, wanted, rereadable=True)
        if rivals:
            model.estimator = BetterOfTwo([model.estimator, *rivals])
        for step in steps(model, inputs, sources):
            model.learn(step.rows)
    return model


def detection_model(y: Any) -> DetectionModel:
    """Anomaly scorers of two series of a file."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "series.csv"
        lines = [f"2024-01-{1 + i % 20:02},{value},{'ab'[i // 20]}" for i, value in enumerate(y)]
        file.write_text("\n".join(["day,y,shop", *lines]) + "\n")
        table = read_series([open_source(str(file))], SeriesColumns("day", "y", "shop"))
    model = DetectionModel(table)
    model.score_then_learn(table)
    return model


def series_model(y: Any) -> SeriesModel:
    """Forecasters of two series of a file, with an input that is known one step ahead."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "series.csv"
        lines = [f"2024-01-{1 + i % 20:02},{value},{i},{'ab'[i // 20]}" for i, value in enumerate(y)]
        file.write_text("\n".join(["day,y,price,shop", *lines, "2024-01-21,,40,b"]) + "\n")
        columns = SeriesColumns("day", "y", "shop", ("price",))
        return SeriesModel(read_series([open_source(str(file))], columns), 3, revisions=2)


COLUMNS = "number,truth,kind,town,day,y"
LINES = [
    f"{'NA' if i % 9 == 0 else i % 7},{('yes', 'no', 'null')[i % 3]},{'None' if i % 8 == 0 else 'abc'[i % 3]},"
    f"{'n/a' if i % 10 == 0 else f'town {i % 25}'},{'nan' if i % 11 == 0 else f'2024-01-{1 + i % 28:02}'},"
    f"{i % 5 - i % 7}"
    for i in range(40)
]


def table_of_texts() -> TabularModel:
    """A model of a table with columns of all kinds, which are missing here and there."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_text("\n".join([COLUMNS, *LINES]) + "\n")
        inputs = Inputs((str(file),))
        sources = inputs.sources()
        settings = Settings(model_kind="perceptron")  # the file is to be small
        options = SchemaOptions("y", kinds={"kind": "category"}, settings=settings)
        model, _ = infer_model(sources, options, rereadable=True)
        for step in steps(model, inputs, sources):
            model.learn(step.rows)
    return model


def encoded_lines(model: TabularModel, lines: list[str]) -> Any:
    """Lines of CSV as the numbers that a model sees."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_text("\n".join([COLUMNS, *lines]) + "\n")
        (batch,) = open_source(str(file)).batches(model.types(target=False), 0)
    encoded = model.encoding.encode(batch.record_batch)
    assert not encoded.bad
    return encoded.X


def bandit(X: Any, **options: Any) -> ContextualBandit:
    """A bandit that has decided, learned, and still waits for some rewards."""
    made = ContextualBandit(n_features=3, **options)
    for i, row in enumerate(X):
        choice = made.choose(row, 1 + i % 2, time=float(i))
        made.reward(choice.id, float(i % 3 > 0), choice.arms[-1])
    made.pause("b").expire(20.0, now=40.0)
    made.choose(X[0], id="waits", time=40.0)
    return made


def models() -> dict[str, Any]:
    """Every class that can be saved, each with forty rows or rewards learned."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).round(3)
    score = X @ [1.0, -1.0, 0.5]
    label, three = (score > 0).astype(int), np.digitize(score, [-0.7, 0.7])
    spiked, keys = np.where(np.arange(40) % 10 == 9, 1e4, score), ["ann", "bob", "eve", "bob"] * 10
    river: dict[str, Any] = {
        "river-classifier": PerceptronClassifier(),
        "river-regressor": PerceptronRegressor(),
        "river-softmax": SoftmaxClassifier(),
        "river-mlp-classifier": MLPClassifier((4,)),
        "river-mlp-regressor": MLPRegressor((4,), drift="auto"),
    }
    for row, y, name in zip(X.tolist(), score.tolist(), np.array(["x", "y", "z"])[three].tolist(), strict=True):
        named = dict(zip("abc", row, strict=True))
        targets = {"river-classifier": y > 0, "river-softmax": name, "river-mlp-classifier": y > 0}
        for kind, model in river.items():
            model.learn_one(named, targets.get(kind, y))
    return {
        "perceptron": onepass.BayesianPerceptron(3, forgetting=0.999).learn(X, label),
        "drifting-perceptron": onepass.Mixture.over_drift(onepass.BayesianPerceptron, 3).learn(X, label),
        "drifting-network": onepass.Mixture.over_drift(onepass.BayesianNetwork, 3, (4,)).learn(X, score),
        "network": onepass.BayesianNetwork(3, (4,)).learn(X, score),
        "adaptive": onepass.AdaptiveIntervals(onepass.BayesianNetwork(3, (4,))).learn(X, score),
        "committee": onepass.BayesianCommittee(3, (4,), members=2).learn(X, score),
        "kalman-network": KalmanNetwork(3, (4,)).learn(X, score),
        "classifier": onepass.BayesianPerceptronClassifier(standardize=True, prior_scale="auto").fit(X, label),
        "classes": onepass.BayesianPerceptronClassifier().fit(X, np.array(["a", "b", "c"])[three]),
        "regressor": onepass.BayesianPerceptronRegressor(standardize=True).fit(X, np.column_stack([score, -score])),
        "mlp-classifier": onepass.BayesianMLPClassifier((4,), warm_up=20).fit(X, label),
        "mlp-regressor": onepass.BayesianMLPRegressor((4,)).fit(X, score),
        "mlp-members": onepass.BayesianMLPRegressor((4,), members=2).fit(X, score),
        "fleet": onepass.PerceptronFleet(3).learn(X, label.astype(float), keys=keys),
        "moving-level": start_learner(MovingLevelRegressor(0, 0.1), 3).learn(Rows(X, score)),
        "fleet-estimator": FleetEstimator(3).learn(Rows(X, score, keys=tuple(keys))),
        "table": table(X, score),
        "log-table": table(X, np.exp(score), log_target=True),
        "tabular-regressor": onepass.BayesianTabularRegressor().fit(X, score),
        "tabular-classifier": onepass.BayesianTabularClassifier(kinds={"x1": "number"}).fit(X, label),
        "table-comparison": table(X, score, onepass.BayesianMLPRegressor((4,), standardize=False)),
        "table-of-texts": table_of_texts(),
        "robust-perceptron": onepass.BayesianPerceptron(3, "linear", noise="learn", outliers=0.05).learn(X, spiked),
        "robust-network": onepass.BayesianNetwork(3, (4,), outliers=0.05).learn(X, spiked),
        "robust-fleet": onepass.PerceptronFleet(3, "linear", noise="learn", outliers=0.05).learn(X, spiked, keys=keys),
        "layered-network": onepass.BayesianNetwork(3, (4,), covariance=("kronecker", "full")).learn(X, score),
        "low-rank-network": onepass.BayesianNetwork(3, (4,), covariance="low_rank").learn(X, score),
        "image-network": onepass.BayesianNetwork((1, 3), (onepass.Conv2D(2, 1), 4)).learn(X, score),
        "mlp-images": onepass.BayesianMLPClassifier((onepass.Conv2D(2, 1),), image_shape=(1, 3)).fit(X, label),
        "anomaly-scorer": onepass.forecasting.AnomalyScorer(2, 3).learn(score),
        "detection-model": detection_model(score),
        "forecaster": onepass.BayesianForecaster(2, 3).learn(score),
        "forecaster-of-counts": onepass.BayesianForecaster(2, 3, counts=True).learn(label),
        "series-model": series_model(score),
        "forecasting-fleet": onepass.forecasting.ForecastingFleet(2, 3).learn(score, keys=keys),
        "bandit": bandit(X, arms=["a", "b", 3], drift="auto", standardize=True),
        "bandit-network": bandit(X, arms=["a", "b", 3], hidden=(4,), covariance="kronecker", policy=UCB(0.9)),
        "bandit-features": bandit(X, arms={"a": [1.0], "b": [0.5], 3: [-1.0]}, observation="gaussian"),
        **river,
    }
