"""The River models of onepass next to River's own: time per row, and how well rows are predicted before being learned.

    python -m benchmarks.river [--page]

The sets are those that come with River and need no download. Times are those of predicting a row and then learning it,
measured in turns in this one process; what counts is the median of their ratios. River's linear models have the best
of five learning rates, chosen afterwards by the very number that is shown. What is
found is kept in benchmarks/river.json, from which docs/evidence/river.md and its chart are written; ``--page`` writes
them and measures nothing.
"""

import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from river import datasets, evaluate, forest, linear_model, metrics, multiclass, naive_bayes, optim, preprocessing

from benchmarks.charts import IMAGES, dots
from benchmarks.stored import keep, stored
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
STORED = Path(__file__).with_name("river.json")
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
ROUNDS = 15
MISSING = 3  # features that rows lack, in the set with features that come and go
Make = Callable[[], Any]
Rows = list[tuple[dict[Any, float], Any]]


class Score(NamedTuple):
    """The loss of a model, and its time per row with what scales its inputs."""

    loss: float
    seconds: float


class Losses(NamedTuple):
    """A set's size in words, the name of the loss, and the scores of its learners."""

    size: str
    loss: str
    scores: dict[str, Score]


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


def losses() -> dict[str, Losses]:
    """The losses of every learner on every set."""
    found = {}
    for name, (rows, learners, loss) in contests().items():
        kinds = len({y for _, y in rows})
        counted = "" if learners is NUMBERS else f", {kinds} classes"
        scores = {
            learner: min(score(rows, make, loss, learners is NUMBERS) for make in makes)
            for learner, makes in learners.items()
        }
        found[name] = Losses(f"{len(rows)} rows, {len(rows[0][0])} features{counted}", loss.__name__, scores)
        print(name, scores, flush=True)
    return found


def table(name: str, losses: Losses) -> list[str]:
    """The losses on a set, in Markdown."""
    lines = ["", f"### {name}: {losses.size}", "", f"| model | {losses.loss} | µs per row |", "|---|---|---|"]
    return lines + [
        f"| {learner} | {found.loss:.3f} | {1e6 * found.seconds:.0f} |" for learner, found in losses.scores.items()
    ]


def _ours_over_best(found: dict[str, Losses]) -> dict[str, tuple[float, float, str]]:
    """Our lowest loss, River's lowest, and whose that is, by set."""
    out = {}
    for name, losses in found.items():
        ours = min(part.loss for learner, part in losses.scores.items() if learner.startswith("**"))
        theirs = {learner: part.loss for learner, part in losses.scores.items() if not learner.startswith("**")}
        best = min(theirs, key=lambda learner: theirs[learner])
        out[name] = (ours, theirs[best], best)
    return out


def chart(found: dict[str, Losses]) -> bytes:
    """Draw losses over the lowest of River's models."""
    rows = {}
    for name, (_, theirs, _) in _ours_over_best(found).items():
        scores = {learner.strip("*`"): part.loss / theirs for learner, part in found[name].scores.items()}
        ours = {learner: value for learner, value in scores.items() if f"**`{learner}`**" in found[name].scores}
        rows[name] = {
            "onepass, perceptron": min(value for learner, value in ours.items() if "MLP" not in learner),
            "onepass, network": next(value for learner, value in ours.items() if "MLP" in learner),
            "River, linear, best rate": min(value for learner, value in scores.items() if "best rate" in learner),
            "River, adaptive forest": next(value for learner, value in scores.items() if "ARF" in learner),
        }
    return dots(rows, "loss divided by the lowest of River's models (below 1 is better)", reference=1.0, log=True)


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
        "| set | features | models | onepass, µs per row | River's | ratio |",
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


def page(timed: list[str], found: dict[str, Losses]) -> str:
    """The whole page."""
    pairs = _ours_over_best(found)
    ahead = [name for name, (ours, theirs, _) in pairs.items() if ours < theirs]
    lost = [f"{name} ({best})" for name, (ours, theirs, best) in pairs.items() if ours >= theirs]
    ratios = [float(line.split("|")[-2]) for line in timed[2:]]
    head = [
        "# River: times and losses",
        "",
        "How well do the River models of `onepass` predict, and what do they cost, compared with River's own?",
        "With default",
        f"arguments the better of perceptron and network has a lower loss than every one of River's on {len(ahead)} of",
        f"{len(found)} sets; River is better on {' and '.join(lost) or 'none'}. A row takes {min(ratios):.1f} to "
        f"{max(ratios):.1f} times as long as with River's linear models.",
        "",
        "![Losses divided by the lowest of River's models](../images/evidence-river.png)",
        "",
        "Written by `python -m benchmarks.river`, on sets that come with River and need no download;",
        "[evidence](index.md)",
        "has the date and the machine.",
    ]
    losses_lines = [
        "",
        "## Losses",
        "",
        "Every row is predicted before it is learned; lower is better. River's scalers scale the features, and targets",
        "that are numbers. The models of `onepass` are bold and have their default arguments. `best rate` is the",
        "best of",
        f"the learning rates {', '.join(map(str, RATES))}, chosen afterwards by the very loss that is shown;",
        "`as it comes` is River's default. The times include the scalers and the metric.",
        *(line for name, losses in found.items() for line in table(name, losses)),
    ]
    times_lines = [
        "",
        "## Time per row",
        "",
        "The time to predict a row and then learn it, in microseconds of processor time. Both models take turns in one",
        f"process; times are medians of {ROUNDS} rounds, and the ratio is the median of onepass divided by River's.",
        "",
        *timed,
    ]
    return "\n".join([*head, *losses_lines, *times_lines, ""])


def read() -> tuple[list[str], dict[str, Losses]]:
    """What was measured last."""
    before = stored(STORED)
    found = {
        name: Losses(size, loss, {learner: Score(*part) for learner, part in scores.items()})
        for name, (size, loss, scores) in before["losses"].items()
    }
    return before["times"], found


def main() -> None:
    """Measure; ``--page`` writes the page from what was measured last."""
    if "--page" not in sys.argv:
        keep(STORED, {"times": times(), "losses": losses()})
    timed, found = read()
    write_atomically(PAGE, page(timed, found).encode())
    write_atomically(IMAGES / "evidence-river.png", chart(found))


if __name__ == "__main__":
    main()
