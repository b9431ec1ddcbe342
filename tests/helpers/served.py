"""A model of every kind that the service can serve, with rows, targets and keys that suit it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import onepass
from onepass.estimators import FleetEstimator
from onepass.estimators.rows import Rows
from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.service.declared import declared_content
from onepass.service.served import RowModel, serve
from onepass.service.wire import Declared
from onepass.tables.better_of_two import BetterOfTwo

__all__ = ["EXAMPLES", "Example", "content", "served"]

Rng = np.random.Generator


@dataclass(frozen=True)
class Example:
    """How a model is made, and what its requests look like."""

    make: Callable[[], Any]
    row: Callable[[Rng], Any]
    target: Callable[[Rng], Any]
    key: Callable[[Rng], str | None] = lambda rng: None

    def request(self, rng: Rng) -> dict[str, Any]:
        """A row with its target, and its key in a fleet."""
        found = {"x": self.row(rng), "y": self.target(rng)}
        key = self.key(rng)
        return found if key is None else {**found, "key": key}

    def requests(self, rng: Rng, n: int) -> list[dict[str, Any]]:
        """Several of them."""
        return [self.request(rng) for _ in range(n)]


def content(name: str) -> bytes:
    """The file of an example."""
    return _content(name)


def served(name: str) -> RowModel:
    """An example behind the service's questions."""
    found = serve(from_bytes(content(name)))
    assert isinstance(found, RowModel)
    return found


@cache
def _content(name: str) -> bytes:
    return to_bytes(EXAMPLES[name].make())


# Rows.


def numbers(rng: Rng) -> list[float]:
    """A row of three numbers."""
    return [round(float(value), 3) for value in rng.normal(size=3)]


def table_row(rng: Rng) -> dict[str, Any]:
    """A row of a table, in which something may be missing."""
    row: dict[str, Any] = {
        "km": round(float(rng.normal(50.0, 20.0)), 2),
        "car": str(rng.choice(["audi", "bmw", "fiat"])),
        "new": bool(rng.random() < 0.5),
        "sold": f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}",
    }
    if rng.random() < 0.2:
        row[str(rng.choice(list(row)))] = None
    return row


def text_row(rng: Rng) -> dict[str, Any]:
    """A row with a text."""
    words = rng.choice(["the", "red", "blue", "fast", "slow", "old", "car", "bike", "runs", "well"], size=6)
    return {"km": round(float(rng.normal()), 2), "words": " ".join(words)}


def keyed_row(rng: Rng) -> dict[str, Any]:
    """A row whose key is a column."""
    return {"km": round(float(rng.normal()), 2), "shop": str(rng.choice(["a", "b", "c"]))}


def weighted_row(rng: Rng) -> dict[str, Any]:
    """A row with a weight, now and then."""
    row: dict[str, Any] = {"km": round(float(rng.normal()), 2)}
    return row if rng.random() < 0.3 else {**row, "often": float(rng.choice([0.5, 1.0, 2.0]))}


def gappy(rng: Rng) -> list[float | None]:
    """A row of numbers of which one is missing at times."""
    row: list[float | None] = list(numbers(rng))
    if rng.random() < 0.3:
        row[1] = None
    return row


# Targets.


def number(rng: Rng) -> float:
    """A number, seldom a wild one."""
    return round(float(rng.normal() + 8.0 * (rng.random() < 0.05)), 3)


def price(rng: Rng) -> float:
    """A positive number."""
    return round(float(np.exp(rng.normal(3.0, 1.0))), 3)


def count(rng: Rng) -> int:
    """A count."""
    return int(rng.poisson(2.0))


def label(rng: Rng) -> int:
    """One of two labels."""
    return int(rng.integers(2))


def of_three(rng: Rng) -> int:
    """One of three classes."""
    return int(rng.integers(3))


def word(rng: Rng) -> str:
    """A class that is a text."""
    return str(rng.choice(["no", "yes"]))


def person(rng: Rng) -> str:
    """A key of a fleet."""
    return str(rng.choice(["ann", "bob", "eve"]))


def house(rng: Rng) -> str:
    """A key of a fleet whose keys are whole numbers."""
    return str(rng.integers(-2, 3))


# Models.


def inferred(row: Callable[[Rng], Any], target: Callable[[Rng], Any], n: int = 60, **options: Any) -> Any:
    """The model of a table, from some of its rows."""
    rng = np.random.default_rng(1)
    rows = [{**row(rng), "y": target(rng)} for _ in range(n)]
    return from_bytes(declared_content(Declared(rows=rows, target="y", learn=True, options=options)))


def described(target: dict[str, Any], **options: Any) -> Any:
    """The model of a table that has learned nothing."""
    columns: list[dict[str, Any]] = [
        {"name": "km", "mean": 50.0, "std": 20.0, "missing": True},
        {"name": "car", "kind": "category", "values": ["audi", "bmw"]},
        {"name": "new", "kind": "boolean"},
        {"name": "sold", "kind": "date", "mean": "2024-06-01T00:00:00Z", "missing": True},
    ]
    return from_bytes(declared_content(Declared(columns=columns, target={"name": "y", **target}, options=options)))


def comparison(target: dict[str, Any], rival: Any) -> Any:
    """The model of a table in which a perceptron and a rival have learned nothing so far."""
    model = described(target)
    model.estimator = BetterOfTwo([model.estimator, rival.set_params(missing="standard")])
    return model.start()


def fitted(model: Any, target: Callable[[Rng], Any], n: int = 30) -> Any:
    """A model that has learned rows of three numbers."""
    rng = np.random.default_rng(2)
    rows, targets = [numbers(rng) for _ in range(n)], [target(rng) for _ in range(n)]
    return model.fit(rows, targets) if hasattr(model, "fit") else model.learn(rows, np.array(targets))


def fleet(model: Any, target: Callable[[Rng], Any], key: Callable[[Rng], Any], n: int = 40) -> Any:
    """A fleet that has learned rows of three numbers."""
    rng = np.random.default_rng(3)
    rows, targets, keys = zip(*((numbers(rng), target(rng), key(rng)) for _ in range(n)), strict=True)
    X, y = np.array(rows, dtype=float), np.array(targets, dtype=float)
    return model.learn(Rows(X, y, keys=keys)) if isinstance(model, FleetEstimator) else model.learn(X, y, keys=keys)


Perceptron, Network, Committee = onepass.BayesianPerceptron, onepass.BayesianNetwork, onepass.BayesianCommittee
Fleet = onepass.PerceptronFleet
Regressor, Classifier = onepass.BayesianPerceptronRegressor, onepass.BayesianPerceptronClassifier
MLP, MLPClasses = onepass.BayesianMLPRegressor, onepass.BayesianMLPClassifier
perceptron: dict[str, Any] = {"model_kind": "perceptron"}

EXAMPLES: dict[str, Example] = {
    # Models of tables.
    "table": Example(lambda: inferred(table_row, number, **perceptron), table_row, number),
    "table of texts": Example(
        lambda: inferred(text_row, word, **perceptron, text_buckets=64, kinds={"words": "text"}), text_row, word
    ),
    "table of logs": Example(lambda: inferred(table_row, price, **perceptron, log_target=True), table_row, price),
    "table of counts": Example(lambda: inferred(table_row, count, **perceptron, task="counts"), table_row, count),
    "table of two classes": Example(lambda: inferred(table_row, word, **perceptron), table_row, word),
    "table of three classes": Example(
        lambda: inferred(table_row, of_three, **perceptron, task="classification"), table_row, of_three
    ),
    "table by key": Example(lambda: inferred(keyed_row, number, by="shop"), keyed_row, number),
    "table of classes by key": Example(lambda: inferred(keyed_row, word, by="shop"), keyed_row, word),
    "table of weights": Example(
        lambda: inferred(lambda rng: {"often": 1.0, **weighted_row(rng)}, number, **perceptron, weight="often"),
        weighted_row,
        number,
    ),
    "table of a comparison": Example(
        lambda: comparison({"std": 2.0}, MLP((5,), standardize=False, covariance="kronecker")), table_row, number
    ),
    "table that doubts": Example(lambda: inferred(table_row, number, **perceptron, outliers=0.05), table_row, number),
    "table that drifts": Example(lambda: inferred(table_row, number, **perceptron, drift="auto"), table_row, number),
    "table of a network": Example(lambda: inferred(table_row, number, hidden=[6]), table_row, number),
    "table of a Kronecker network": Example(
        lambda: inferred(table_row, of_three, hidden=[6], covariance="kronecker", task="classification"),
        table_row,
        of_three,
    ),
    "new table": Example(lambda: described({"mean": 1.0, "std": 2.0}), table_row, number),
    "new table of logs": Example(lambda: described({"kind": "log", "mean": 3.0}), table_row, price),
    "new table of counts": Example(lambda: described({"kind": "count"}), table_row, count),
    "new table of classes": Example(lambda: described({"labels": ["no", "yes"]}), table_row, word),
    "new table of a network": Example(lambda: described({"labels": [0, 1, 2]}, hidden=[4]), table_row, of_three),
    # Estimators.
    "regressor": Example(lambda: fitted(Regressor(warm_up=20), number), numbers, number),
    "regressor that warms up": Example(lambda: fitted(Regressor(warm_up=40), number), numbers, number),
    "regressor of gaps": Example(lambda: fitted(Regressor(missing="mean", warm_up=20), number), gappy, number),
    "regressor of counts": Example(
        lambda: fitted(Regressor(activation="exp", standardize=False), count), numbers, count
    ),
    "regressor of several priors": Example(
        lambda: fitted(Regressor(prior_scale="auto", standardize=False), number), numbers, number
    ),
    "classifier": Example(lambda: fitted(Classifier(standardize=False), label), numbers, label),
    "classifier of three": Example(lambda: fitted(Classifier(warm_up=20), of_three), numbers, of_three),
    "network regressor": Example(
        lambda: fitted(MLP((5,), covariance="kronecker", warm_up=20), number), numbers, number
    ),
    "network regressor of several": Example(lambda: fitted(MLP((5,), members=2, warm_up=20), number), numbers, number),
    "network classifier": Example(
        lambda: fitted(MLPClasses((4,), drift="auto", warm_up=20), of_three), numbers, of_three
    ),
    # Models.
    "perceptron": Example(lambda: fitted(Perceptron(3, "linear", noise="learn"), number), numbers, number),
    "new perceptron": Example(lambda: Perceptron(3, "linear", noise=0.5), numbers, number),
    "perceptron of labels": Example(lambda: fitted(Perceptron(3), label), numbers, label),
    "perceptron of counts": Example(
        lambda: fitted(Perceptron(3, "exp", observation="negative_binomial"), count), numbers, count
    ),
    "perceptron that doubts": Example(
        lambda: fitted(Perceptron(3, "linear", noise=0.5, outliers=0.05), number), numbers, number
    ),
    "perceptron that forgets": Example(
        lambda: fitted(Perceptron(3, "linear", noise=0.5, forgetting=0.97), number), numbers, number
    ),
    "perceptron that drifts": Example(
        lambda: fitted(onepass.Mixture.over_drift(Perceptron, 3, "linear", noise="learn"), number), numbers, number
    ),
    "perceptron in single precision": Example(
        lambda: fitted(Perceptron(3, "relu", noise=0.1, dtype="float32"), number), numbers, number
    ),
    "diagonal perceptron": Example(
        lambda: fitted(Perceptron(3, covariance="diagonal", drift=0.01), label), numbers, label
    ),
    "network": Example(lambda: fitted(Network(3, (4,)), number), numbers, number),
    "Kronecker network": Example(lambda: fitted(Network(3, (4, 4), covariance="kronecker"), number), numbers, number),
    "Kronecker network of classes": Example(
        lambda: fitted(Network(3, (4,), 3, observation="categorical", covariance="kronecker"), of_three),
        numbers,
        of_three,
    ),
    "Kronecker network in single precision": Example(
        lambda: fitted(Network(3, (4,), covariance="kronecker", dtype="float32", outliers=0.02), number),
        numbers,
        number,
    ),
    "network of labels": Example(lambda: fitted(Network(3, (4,), observation="bernoulli"), label), numbers, label),
    "network of counts": Example(lambda: fitted(Network(3, (4,), observation="poisson"), count), numbers, count),
    "network of varying noise": Example(
        lambda: fitted(Network(3, (4,), observation="heteroscedastic", covariance="low_rank"), number), numbers, number
    ),
    "network that drifts": Example(
        lambda: fitted(onepass.Mixture.over_drift(Network, 3, (4,), covariance="kronecker"), number), numbers, number
    ),
    "committee": Example(lambda: fitted(Committee(3, (4,), members=3), number), numbers, number),
    "Kronecker committee": Example(
        lambda: fitted(Committee(3, (4,), 3, members=2, observation="categorical", covariance="kronecker"), of_three),
        numbers,
        of_three,
    ),
    # Fleets.
    "fleet": Example(lambda: fleet(Fleet(3, "linear", noise="learn"), number, person), numbers, number, person),
    "new fleet": Example(lambda: Fleet(3, "linear", noise=0.5), numbers, number, person),
    "fleet of numbered keys": Example(
        lambda: fleet(Fleet(3, "linear", noise=0.5, outliers=0.05), number, lambda rng: int(house(rng))),
        numbers,
        number,
        house,
    ),
    "fleet of labels": Example(lambda: fleet(Fleet(3), label, person), numbers, label, person),
    "fleet of counts": Example(
        lambda: fleet(Fleet(3, "exp", observation="negative_binomial"), count, person), numbers, count, person
    ),
    "fleet estimator": Example(lambda: fleet(FleetEstimator(3), number, person), numbers, number, person),
    "fleet estimator of labels": Example(
        lambda: fleet(FleetEstimator(3, "sigmoid"), label, person), numbers, label, person
    ),
}
