"""Our River models beside River's own: time per row, and how well each row is predicted before it is learned.

    python -m benchmarks.river

The sets are those that come with River and need no download. Times are those of predicting a row and then learning it,
measured in turns in this one process; what counts is the median of their ratios. River's linear models have the best
of five learning rates, chosen afterwards by the very number that is shown. Written to docs/evidence/river.md.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from river import datasets, evaluate, forest, linear_model, metrics, multiclass, naive_bayes, optim, preprocessing

from benchmarks.timing import race, ratio
from onepass.files.atomic import write_atomically
from onepass.river import (
    MLPClassifier,
    MLPRegressor,
    PerceptronClassifier,
    PerceptronRegressor,
    SoftmaxClassifier,
)

PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "river.md"
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
ROUNDS = 15
MISSING = 3  # features that rows lack, in the set with features that come and go
Make = Callable[[], Any]
Rows = list[tuple[dict[Any, float], Any]]


class Score(NamedTuple):
    """The loss of a model, and its time per row with what scales its inputs."""

    loss: float
    seconds: float


def rows_of(dataset: Any) -> Rows:
    """The rows of one of River's sets, whose features are all numbers."""
    return [({name: float(value) for name, value in x.items()}, y) for x, y in dataset()]


def with_gaps(rows: Rows) -> Rows:
    """Rows that lack some of their features, others every time."""
    rng = random.Random(0)
    return [({name: x[name] for name in rng.sample(sorted(x), len(x) - MISSING)}, y) for x, y in rows]


def rate_of(make: Callable[[Any], Any], rate: float) -> Any:
    return make(optim.SGD(rate))


def best(make: Callable[[Any], Any]) -> list[Make]:
    """The same model with every learning rate."""
    return [partial(rate_of, make, rate) for rate in RATES]


def logistic(optimizer: Any) -> Any:
    return linear_model.LogisticRegression(optimizer, intercept_lr=optimizer.learning_rate)


def linear(optimizer: Any) -> Any:
    return linear_model.LinearRegression(optimizer, intercept_lr=optimizer.learning_rate)


LABELS: dict[str, list[Make]] = {
    "**`PerceptronClassifier`**": [PerceptronClassifier],
    "**`MLPClassifier`**": [MLPClassifier],
    "`LogisticRegression`, best rate": best(logistic),
    "`LogisticRegression`, as it comes": [linear_model.LogisticRegression],
    "`GaussianNB`": [naive_bayes.GaussianNB],
    "`ARFClassifier`": [partial(forest.ARFClassifier, seed=0)],
}
CLASSES: dict[str, list[Make]] = {
    "**`SoftmaxClassifier`**": [SoftmaxClassifier],
    "**`MLPClassifier`**": [MLPClassifier],
    "`SoftmaxRegression`, best rate": best(linear_model.SoftmaxRegression),
    "`OneVsRest(LogisticRegression)`, best rate": best(lambda sgd: multiclass.OneVsRestClassifier(logistic(sgd))),
    "`GaussianNB`": [naive_bayes.GaussianNB],
    "`ARFClassifier`": [partial(forest.ARFClassifier, seed=0)],
}
NUMBERS: dict[str, list[Make]] = {
    "**`PerceptronRegressor`**": [PerceptronRegressor],
    "**`PerceptronRegressor(drift='auto')`**": [partial(PerceptronRegressor, drift="auto")],
    "**`MLPRegressor`**": [MLPRegressor],
    "`LinearRegression`, best rate": best(linear),
    "`BayesianLinearRegression`": [linear_model.BayesianLinearRegression],
    "`ARFRegressor`": [partial(forest.ARFRegressor, seed=0)],
}


def contests() -> dict[str, tuple[Rows, dict[str, list[Make]], Make]]:
    """The rows of every set, who learns them, and the loss."""
    phishing = rows_of(datasets.Phishing)
    return {
        "Phishing": (phishing, LABELS, metrics.LogLoss),
        f"Phishing, every row without {MISSING} of its features": (with_gaps(phishing), LABELS, metrics.LogLoss),
        "Bananas": (rows_of(datasets.Bananas), LABELS, metrics.LogLoss),
        "ImageSegments": (rows_of(datasets.ImageSegments), CLASSES, metrics.CrossEntropy),
        "TrumpApproval": (rows_of(datasets.TrumpApproval), NUMBERS, metrics.MAE),
        "ChickWeights": (rows_of(datasets.ChickWeights), NUMBERS, metrics.MAE),
    }


def scaled(model: Any, targets: bool) -> Any:
    """A model behind a scaler of its inputs, and of its targets if these are numbers."""
    learner = preprocessing.TargetStandardScaler(model) if targets else model
    return preprocessing.StandardScaler() | learner


def score(rows: Any, make: Make, loss: Make, targets: bool) -> Score:
    """Predict every row, then learn it."""
    model = scaled(make(), targets)
    start = time.process_time()
    value = evaluate.progressive_val_score(rows, model, loss()).get()
    return Score(float(value), (time.process_time() - start) / len(rows))


def losses() -> list[str]:
    """A table per set."""
    lines = []
    for name, (rows, learners, loss) in contests().items():
        kinds = len({y for _, y in rows})
        counted = "" if learners is NUMBERS else f", {kinds} classes"
        lines += ["", f"### {name}: {len(rows)} rows, {len(rows[0][0])} features{counted}", ""]
        lines += [f"| model | {loss.__name__} | µs per row |", "|---|---|---|"]
        for learner, makes in learners.items():
            found = min(score(rows, make, loss, learners is NUMBERS) for make in makes)
            lines.append(f"| {learner} | {found.loss:.3f} | {1e6 * found.seconds:.0f} |")
            print(name, lines[-1], flush=True)
    return lines


def loop(make: Make, rows: Rows, ask: str) -> None:
    """Predict and learn all rows."""
    model = make()
    predict, learn = getattr(model, ask), model.learn_one
    for x, y in rows:
        predict(x)
        learn(x, y)


def prescaled(rows: Rows) -> Rows:
    """Rows that are scaled already, so that only the model's own time counts."""
    scaler: Any = preprocessing.StandardScaler()
    done = []
    for x, y in rows:
        scaler.learn_one(x)
        done.append((scaler.transform_one(x), y))
    return done


def times() -> list[str]:
    """Time of ours over River's, alone and behind a scaler."""
    sky = [(x, y == "sky") for x, y in rows_of(datasets.ImageSegments)]
    pairs: list[tuple[str, Rows, Make, Make, str]] = [
        ("Phishing", rows_of(datasets.Phishing), PerceptronClassifier, linear_model.LogisticRegression, "labels"),
        ("ImageSegments, sky or not", sky, PerceptronClassifier, linear_model.LogisticRegression, "labels"),
        ("TrumpApproval", rows_of(datasets.TrumpApproval), PerceptronRegressor, linear_model.LinearRegression, "y"),
    ]
    lines = [
        "| set | features | models | ours, µs per row | River's | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, rows, ours, theirs, kind in pairs:
        ask = "predict_proba_one" if kind == "labels" else "predict_one"
        for place in ("alone", "behind `StandardScaler`"):
            given = prescaled(rows) if place == "alone" else rows
            makes = (ours, theirs) if place == "alone" else (partial(_piped, ours), partial(_piped, theirs))
            named: dict[str, Callable[[], object]] = {
                "ours": partial(loop, makes[0], given, ask),
                "River's": partial(loop, makes[1], given, ask),
            }
            seconds = race(named, ROUNDS, time.process_time)
            each = [1e6 * median(seconds[who]) / len(given) for who in named]
            who = f"`{ours.__name__}` over `{theirs.__name__}`, {place}"
            figure = ratio(seconds, "ours", "River's")
            lines.append(f"| {name} | {len(rows[0][0])} | {who} | {each[0]:.1f} | {each[1]:.1f} | {figure:.2f} |")
            print(lines[-1], flush=True)
    return lines


def _piped(make: Make) -> Any:
    return preprocessing.StandardScaler() | make()


def main() -> None:
    head = [
        "# River: times and losses",
        "",
        "How long our River models take per row, and how well they predict, beside River's own models. Written by",
        "`python -m benchmarks.river`, on sets that come with River and need no download; [evidence](index.md) has the",
        "date and the machine.",
        "",
        "## Time per row",
        "",
        "The time to predict a row and then learn it, in microseconds of processor time. Ours and River's model take",
        f"turns in one process; times are medians of {ROUNDS} rounds, and the ratio is the median of ours divided by",
        "River's.",
        "",
    ]
    middle = [
        "",
        "## Losses",
        "",
        "Every row is predicted before it is learned; lower is better. River's scalers scale the features, and targets",
        "that are numbers. Ours are bold and have their default arguments. `best rate` is the best of the learning",
        f"rates {', '.join(map(str, RATES))}, chosen afterwards by the very loss that is shown; `as it comes` is",
        "River's default. The times include the scalers and the metric.",
    ]
    text = "\n".join([*head, *times(), *middle, *losses(), ""])
    write_atomically(PAGE, text.encode())


if __name__ == "__main__":
    main()
