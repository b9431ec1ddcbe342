"""Record what every kind of model computes, and compare two recordings: a restructuring changes no number.

    python scripts/record_models.py record FILE
    python scripts/record_models.py compare BEFORE AFTER

Every model learns seeded rows in batches and one by one. Recorded are its predictions, intervals, log densities, the
evidence, mean and variances of its weights, and its predictions after it was saved and loaded.
"""

import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from onepass import (
    BayesianCommittee,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNetwork,
    BayesianPerceptron,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
    Conv2D,
    Mixture,
    PerceptronFleet,
    load,
    save,
)

TOLERANCE = 1e-12  # of the largest number of an array
N, D = 60, 4


def rows(kind: str) -> tuple[Any, Any]:
    """Seeded inputs, and targets of a kind."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N, D))
    signal = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    targets = {
        "number": signal + 0.2 * rng.normal(size=N),
        "label": (signal + 0.3 * rng.normal(size=N) > 0.0).astype(float),
        "count": rng.poisson(np.exp(0.5 * signal)).astype(float),
        "class": np.clip(np.round(signal + 1.0), 0, 2),
        "pair": np.stack([signal, -signal], axis=1) + 0.1 * rng.normal(size=(N, 2)),
    }
    return X, targets[kind]


def perceptrons() -> Iterator[tuple[str, str, Any]]:
    """Name, kind of target and model."""
    for activation in ("linear", "relu", "leaky_relu", "tanh", "gelu", "softplus", "hard_tanh"):
        yield f"perceptron {activation}", "number", BayesianPerceptron(D, activation, noise=0.1)
    for activation in ("sigmoid", "probit", "step"):
        yield f"perceptron {activation}", "label", BayesianPerceptron(D, activation)
    yield "perceptron exp", "count", BayesianPerceptron(D, "exp")
    yield "perceptron dispersed", "count", BayesianPerceptron(D, "exp", observation="negative_binomial")
    settings: dict[str, dict[str, Any]] = {
        "learned": {"noise": "learn"},
        "outliers": {"noise": "learn", "outliers": 0.05},
        "drift": {"noise": "learn", "drift": 0.01},
        "forgetting": {"noise": 0.1, "forgetting": 0.98},
        "walk": {"noise": 0.1, "process_noise": 0.001},
        "diagonal": {"noise": "learn", "covariance": "diagonal"},
        "float32": {"noise": 0.1, "dtype": "float32"},
        "blocks": {"noise": "learn", "kernel": "blocks"},
        "reference": {"noise": "learn", "kernel": "reference"},
        "prior": {"noise": "learn", "mean": np.arange(D + 1.0), "cov": np.eye(D + 1) + 0.2},
        "paper": {"noise": 0.1, "update": "kalman", "moments": "paper"},
    }
    for name, given in settings.items():
        yield f"perceptron {name}", "number", BayesianPerceptron(D, "linear", **given)
    yield "labels with outliers", "label", BayesianPerceptron(D, "sigmoid", outliers=0.1)


def networks() -> Iterator[tuple[str, str, Any]]:
    """The same of networks, committees and images."""
    for covariance in ("full", "layer", "neuron", "diagonal", "kronecker", "low_rank", ("full", "kronecker")):
        yield f"network {covariance}", "number", BayesianNetwork(D, (6,), covariance=covariance)
    for observation, kind, outputs in (
        ("bernoulli", "label", 1),
        ("categorical", "class", 3),
        ("poisson", "count", 1),
        ("negative_binomial", "count", 1),
    ):
        for covariance in ("full", "neuron", "kronecker"):
            model = BayesianNetwork(D, (5,), outputs, observation=observation, covariance=covariance)
            yield f"network {observation} {covariance}", kind, model
    settings: dict[str, dict[str, Any]] = {
        "heteroscedastic": {"observation": "heteroscedastic"},
        "outliers": {"outliers": 0.05},
        "drift": {"drift": 0.01},
        "forgetting": {"forgetting": 0.98},
        "fixed": {"noise": 0.05},
        "float32": {"dtype": "float32"},
        "reference": {"kernel": "reference"},
        "tanh": {"activation": "tanh"},
    }
    for name, given in settings.items():
        yield f"network {name}", "number", BayesianNetwork(D, (6,), **given)
    yield "network deep", "number", BayesianNetwork(D, (6, 5))
    yield "network pair", "pair", BayesianNetwork(D, (6,), 2)
    yield "softmax regression", "class", BayesianNetwork(D, (), 3, observation="categorical")
    yield "softmax of neurons", "class", BayesianNetwork(D, (), 3, observation="categorical", covariance="neuron")
    yield "image", "class", BayesianNetwork((2, 2), (Conv2D(3, 2),), 3, observation="categorical")
    for weighting in ("stacked", "window", "evidence", "uniform"):
        yield f"committee {weighting}", "number", BayesianCommittee(D, (5,), members=3, weighting=weighting)


def over_drift(model: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A mixture over rates of drift."""
    return Mixture.over_drift(model, *args, **options)


def mixtures() -> Iterator[tuple[str, str, Any]]:
    """The same of ``drift="auto"``."""
    yield "drifting perceptron", "number", over_drift(BayesianPerceptron, D, "linear", noise="learn")
    yield "drifting labels", "label", over_drift(BayesianPerceptron, D, "sigmoid")
    yield "drifting counts", "count", over_drift(BayesianPerceptron, D, "exp")
    yield "drifting network", "number", over_drift(BayesianNetwork, D, (5,))
    yield "drifting classes", "class", over_drift(BayesianNetwork, D, (5,), 3, observation="categorical")


def estimators() -> Iterator[tuple[str, str, Any]]:
    """The same of the estimators."""
    yield "regressor", "number", BayesianPerceptronRegressor()
    yield "regressor drifting", "number", BayesianPerceptronRegressor(drift="auto")
    yield "regressor outliers", "number", BayesianPerceptronRegressor(outliers=0.05)
    yield "regressor prior", "number", BayesianPerceptronRegressor(prior_scale="auto")
    yield "classifier", "class", BayesianPerceptronClassifier()
    yield "classifier of two", "label", BayesianPerceptronClassifier(prior_scale="auto")
    yield "mlp regressor", "number", BayesianMLPRegressor(hidden_layer_sizes=(6,), random_state=0)
    yield "mlp committee", "number", BayesianMLPRegressor(hidden_layer_sizes=(5,), members=3, random_state=0)
    yield "mlp classifier", "class", BayesianMLPClassifier(hidden_layer_sizes=(6,), random_state=0)


def recorded(model: Any, kind: str) -> dict[str, Any]:
    """What a core model computes."""
    X, y = rows(kind)
    if getattr(model, "image_shape", None) or getattr(getattr(model, "members", [None])[0], "image_shape", None):
        X = X.reshape(N, 2, 2)
    found = {f"then {k}": part for k, part in enumerate(model.predict_then_learn(X[:30], y[:30]))}
    for row, target in zip(X[30:40], y[30:40], strict=True):
        model.learn(row, target)
    model.learn(X[40:50], y[40:50], sample_weight=np.linspace(0.5, 3.0, 10))
    found |= {f"ahead {k}": part for k, part in enumerate(model.predict(X[50:], rows_ahead=3))}
    found["one"] = np.array(model.predict(X[50]).mean)
    found["density"] = model.log_predictive(X[50:], y[50:])
    if kind != "class":
        found["low"], found["high"] = model.interval(X[50:], 0.9)
    found["evidence"], found["seen"] = model.log_evidence, model.n_seen
    if hasattr(model, "mean"):
        found["mean"] = model.mean
    if type(model).__name__ == "BayesianPerceptron":
        found["cov"] = model.cov
    found["output"] = model.sample_output(X[50:], 3, 1)
    return found | {f"loaded {k}": part for k, part in enumerate(reloaded(model).predict(X[50:]))}


def recorded_estimator(model: Any, kind: str) -> dict[str, Any]:
    """What an estimator computes."""
    X, y = rows(kind)
    model.fit(X[:40], y[:40])
    model.partial_fit(X[40:50], y[40:50])
    found = {"predicted": model.predict(X[50:])}
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(X[50:])
        found["loaded"] = reloaded(model).predict_proba(X[50:])
    else:
        found["std"] = model.predict(X[50:], return_std=True)[1]
        found["low"], found["high"] = model.predict_interval(X[50:])
        found["loaded"] = reloaded(model).predict(X[50:])
    return found | {"evidence": model.log_evidence_}


def recorded_fleet() -> dict[str, Any]:
    """What a fleet computes."""
    X, y = rows("number")
    keys = np.array(list("abc"))[np.arange(N) % 3]
    fleet = PerceptronFleet(D, "linear", noise="learn")
    fleet.learn(X, y, keys=keys)
    found = dict(enumerate(fleet.predict(X[:6], keys=keys[:6]).moments))
    return {str(k): part for k, part in found.items()}


def reloaded(model: Any) -> Any:
    """The model, saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        return load(Path(folder) / "model")


def record() -> dict[str, Any]:
    """All that is recorded, by case and quantity."""
    found: dict[str, Any] = {}
    for source in (perceptrons, networks, mixtures):
        for name, kind, model in source():
            found |= {f"{name}: {what}": part for what, part in recorded(model, kind).items()}
    for name, kind, model in estimators():
        found |= {f"{name}: {what}": part for what, part in recorded_estimator(model, kind).items()}
    return found | {f"fleet: {what}": part for what, part in recorded_fleet().items()}


def compare(before: Any, after: Any) -> int:
    """Print what differs; return how many arrays do."""
    names = set(before) | set(after)
    wrong = 0
    for name in sorted(names):
        if name not in before or name not in after:
            print(f"only in one recording: {name}")
            wrong += 1
            continue
        a, b = np.asarray(before[name], float), np.asarray(after[name], float)
        if a.shape != b.shape:
            print(f"{name}: shape {a.shape} became {b.shape}")
            wrong += 1
            continue
        gap = np.abs(a - b).max() / max(np.abs(a).max(), 1e-300) if a.size else 0.0
        if not gap <= TOLERANCE:
            print(f"{name}: differs by {gap:.1e} of its largest number")
            wrong += 1
    print(f"{len(names)} arrays, {wrong} differ by more than {TOLERANCE:g}")
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["record"] and len(sys.argv) == 3:
        np.savez(sys.argv[2], **record())
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 4:
        sys.exit(bool(compare(np.load(sys.argv[2]), np.load(sys.argv[3]))))
    else:
        sys.exit(__doc__)
