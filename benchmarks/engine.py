"""How fast the engine is, against the bare arithmetic and against others.

    make bench
    python -m benchmarks.engine --page

Every figure is a ratio of two things timed in turns in this one run, on a single BLAS thread, the median of several
rounds, with microseconds per row. Others get their input ready-made in the form they like best: River
dicts, Vowpal Wabbit its text (whose parsing is then part of its time, as it is when it reads a file).
"""

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from river import linear_model
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.charts import IMAGES, dots
from benchmarks.endurance import hard_stream, inspect
from benchmarks.network_speed import networks
from benchmarks.start_up import start_up
from benchmarks.timing import Measurement, race, ratio
from onepass import BayesianPerceptron
from onepass._typing import FloatArray
from onepass.beliefs.full import CROSSOVER
from onepass.files.atomic import write_atomically
from onepass.likelihoods.mixtures import Gaussians

STORED = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "speed.md"
_RNG = np.random.default_rng(0)


def labels(X: FloatArray, scale: float = 1.0) -> FloatArray:
    """Labels of a logistic model with random weights."""
    a = X @ _RNG.normal(0, scale, X.shape[1])
    return (_RNG.random(len(X)) < 1.0 / (1.0 + np.exp(-a))).astype(np.float64)


def at_most(name: str, seconds: dict[str, list[float]], them: str, n: int, limit: float) -> Measurement:
    """Our time over theirs has to stay below a limit."""
    value = ratio(seconds, "ours", them)
    times = median(seconds["ours"]) / n, median(seconds[them]) / n
    return Measurement(name, *times, value, f"at most {limit:g}", value <= limit)


def at_least(name: str, seconds: dict[str, list[float]], them: str, rows: tuple[int, int], limit: float) -> Measurement:
    """Our rows a second over theirs, each for its own number of rows, have to reach a limit."""
    value = ratio(seconds, them, "ours") * rows[0] / rows[1]
    times = median(seconds["ours"]) / rows[0], median(seconds[them]) / rows[1]
    return Measurement(name, *times, value, f"at least {limit:g}", value >= limit)


def full_covariance() -> Iterator[Measurement]:
    """A large covariance against the bare product that touches it once a row."""
    for d, limit in ((1000, 2.3), (2000, 2.2)):
        n = 4000
        X = _RNG.normal(size=(n, d))
        y = labels(X, 1.0 / np.sqrt(d))
        cov = np.eye(d) + 0.01
        model = BayesianPerceptron(d, bias=False)
        competitors: dict[str, Callable[[], object]] = {
            "ours": partial(model.learn, X, y),
            "product": partial(np.matmul, X, cov),
        }
        yield at_most(f"full covariance, d = {d}, over X @ C", race(competitors, 5), "product", n, limit)


def small_dense() -> Iterator[Measurement]:
    """Twenty features: one call for many rows, and one row at a time."""
    n, few = 200_000, 10_000
    X = _RNG.normal(size=(n, 20))
    y = labels(X)
    names = [f"x{j}" for j in range(20)]
    dicts = [dict(zip(names, row.tolist(), strict=True)) for row in X[:few]]
    truths = [bool(label) for label in y[:few]]

    def river(make: Callable[[], Any], rows: int) -> None:
        model = make()
        for x, label in zip(dicts[:rows], truths, strict=False):
            model.learn_one(x, label)

    competitors: dict[str, Callable[[], object]] = {
        "ours": lambda: BayesianPerceptron(20).learn(X, y),
        "paper": lambda: BayesianPerceptron(20, noise=0.01, moments="paper").learn(X, y),
        "river logistic": lambda: river(linear_model.LogisticRegression, few),
        "river bayes": lambda: river(linear_model.BayesianLinearRegression, few),
        "scikit-learn": lambda: LogisticRegression().fit(X, y),
    }
    seconds = race(competitors, 7)
    yield at_least("d = 20, one call: rate over River logistic", seconds, "river logistic", (n, few), 10)
    yield at_least("d = 20, one call: rate over River Bayesian", seconds, "river bayes", (n, few), 25)
    yield at_least("d = 20, one call: rate over scikit-learn's batch fit", seconds, "scikit-learn", (n, n), 1.2)
    yield at_most("d = 20: exact update over the paper's rule", seconds, "paper", n, 2)

    rows, targets = list(X[:few]), y[:few].tolist()

    def one_by_one() -> None:
        model = BayesianPerceptron(20)
        for x, label in zip(rows, targets, strict=True):
            model.learn(x, label)

    seconds = race(
        {
            "ours": one_by_one,
            "river logistic": competitors["river logistic"],
            "river bayes": competitors["river bayes"],
        },
        7,
    )
    yield at_least("d = 20, row by row: rate over River logistic", seconds, "river logistic", (few, few), 4.5)
    yield at_least("d = 20, row by row: rate over River Bayesian", seconds, "river bayes", (few, few), 5)

    model = BayesianPerceptron(20).learn(X[:few], y[:few])

    def predict_one_by_one() -> None:
        for x in rows:
            model.predict(x)

    micro = 1e6 * median(race({"ours": predict_one_by_one}, 7)["ours"]) / few
    yield Measurement("d = 20, predict of one row: us", 1e-6 * micro, 0.0, micro, "at most 10", micro <= 10.0)


def mixtures() -> Iterator[Measurement]:
    """Both limits of an interval of a mixture of five Gaussians, one row at a time, as a served model is asked."""
    calls = 2000
    weights, means, stds = (
        _RNG.dirichlet(np.ones(5))[:, None],
        _RNG.normal(size=(5, 1)),
        _RNG.uniform(0.5, 2.0, size=(5, 1)),
    )

    def limits() -> None:
        for _ in range(calls):
            Gaussians(weights, means, stds).interval(0.95)

    micro = 1e6 * median(race({"ours": limits}, 7)["ours"]) / calls
    name = "interval of a mixture of five, one row: us"
    yield Measurement(name, 1e-6 * micro, 0.0, micro, "at most 50", micro <= 50.0)


def sparse() -> Iterator[Measurement]:
    """Hashed features: a million weights, forty of them in a row."""
    n, few, size, nnz = 200_000, 4000, 2**20, 40
    columns = np.sort(_RNG.integers(0, size, size=(n, nnz)), axis=1).astype(np.int32)
    X = csr_array((np.ones(n * nnz), columns.ravel(), np.arange(0, n * nnz + 1, nnz)), shape=(n, size))
    y = (_RNG.random(n) < 0.3).astype(np.float64)
    dicts = [dict.fromkeys(map(str, row.tolist()), 1.0) for row in columns[:few]]
    truths = [bool(label) for label in y[:few]]

    def river(make: Callable[[], Any]) -> None:
        model = make()
        for x, label in zip(dicts, truths, strict=True):
            model.learn_one(x, label)

    ours = BayesianPerceptron(size, covariance="diagonal")
    competitors: dict[str, Callable[[], object]] = {
        "ours": lambda: ours.learn(X, y),
        "river adpredictor": lambda: river(linear_model.AdPredictor),
        "river logistic": lambda: river(linear_model.LogisticRegression),
    }
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        print("Vowpal Wabbit is not installed; its figure is left out", file=sys.stderr)
        Workspace = None
    if Workspace is not None:
        texts = [
            f"{'1' if label else '-1'} | " + " ".join(f"{column}" for column in row)
            for row, label in zip(columns[:few].tolist(), truths, strict=True)
        ]
        wabbit = Workspace("--loss_function logistic -b 20 --quiet")

        def wabbit_learns() -> None:
            for text in texts:
                wabbit.learn(text)

        competitors["vowpal wabbit"] = wabbit_learns
    seconds = race(competitors, 5)
    yield at_least("sparse, 2^20 features: rate over River AdPredictor", seconds, "river adpredictor", (n, few), 10)
    yield at_least("sparse, 2^20 features: rate over River logistic", seconds, "river logistic", (n, few), 10)
    if Workspace is not None:
        yield at_least("sparse, 2^20 features: rate over Vowpal Wabbit (text)", seconds, "vowpal wabbit", (n, few), 1)


def growth() -> Iterator[Measurement]:
    """How the time of a row grows with the number of features."""
    for covariance, sizes, limit in (("full", (200, 2000), 2.1), ("diagonal", (200, 2000), 1.1)):
        n = 2000 if covariance == "full" else 20_000
        competitors: dict[str, Callable[[], object]] = {}
        for d in sizes:
            X = _RNG.normal(size=(n, d))
            y = labels(X, 1.0 / np.sqrt(d))
            model = BayesianPerceptron(d, bias=False, covariance=covariance)
            competitors["ours" if d == sizes[1] else "small"] = partial(model.learn, X, y)
        seconds = race(competitors, 5)
        slope = np.log(ratio(seconds, "ours", "small")) / np.log(sizes[1] / sizes[0])
        times = median(seconds["ours"]) / n, median(seconds["small"]) / n
        name = f"{covariance}: slope of log time over log d, {sizes[0]} to {sizes[1]}"
        yield Measurement(name, *times, float(slope), f"at most {limit:g}", bool(slope <= limit))


def crossover() -> Iterator[Measurement]:
    """Rows against blocks around the size at which the engine changes from one to the other.

    It changes a little late, when blocks are ahead already: below it a single row has a short cut.
    """
    for d in (CROSSOVER // 2, CROSSOVER, 2 * CROSSOVER):
        n = 2000
        X = _RNG.normal(size=(n, d))
        y = labels(X, 1.0 / np.sqrt(d))
        models = {kernel: BayesianPerceptron(d, bias=False, kernel=kernel) for kernel in ("blocks", "rows")}
        seconds = race({"ours" if k == "blocks" else k: partial(m.learn, X, y) for k, m in models.items()}, 7)
        value = ratio(seconds, "ours", "rows")
        target, reached = {
            CROSSOVER // 2: ("above 1", value > 1.0),
            CROSSOVER: ("0.5 to 1", 0.5 <= value <= 1.0),
            2 * CROSSOVER: ("below 1", value < 1.0),
        }[d]
        times = median(seconds["ours"]) / n, median(seconds["rows"]) / n
        yield Measurement(f"d = {d}: blocks over rows", *times, value, target, reached)


def memory() -> Iterator[Measurement]:
    """Peak memory of learning with a full covariance, in matrices of its size."""
    d = 2000
    X = _RNG.normal(size=(256, d))
    y = labels(X, 1.0 / np.sqrt(d))
    BayesianPerceptron(200, bias=False).learn(X[:, :200], y)  # what is loaded once is not counted
    tracemalloc.start()
    model = BayesianPerceptron(d, bias=False)
    model.learn(X, y)
    model.learn(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    matrices = peak / (8.0 * d * d)
    yield Measurement(
        "full covariance, d = 2000: peak memory in d x d", 0.0, 0.0, matrices, "at most 2.5", matrices <= 2.5
    )


def endurance() -> Iterator[Measurement]:
    """A million hard rows."""
    for kernel in ("rows", "blocks"):
        model = BayesianPerceptron(12, "linear", noise=1e-6, kernel=kernel)
        for X, y in hard_stream(1_000_000, 12, seed=0):
            model.learn(X, y)
        health = inspect(model)
        share = health.smallest_eigenvalue / health.largest_eigenvalue
        sound = health.finite and health.symmetric and share >= -1e-12 and health.smallest_predictive_variance >= 0.0
        name = f"endurance, 1,000,000 hard {kernel}: smallest/largest eigenvalue"
        yield Measurement(name, 0.0, 0.0, share, "at least -1e-12", bool(sound))


GROUPS = {
    group.__name__: group
    for group in (
        start_up,
        full_covariance,
        small_dense,
        mixtures,
        sparse,
        growth,
        crossover,
        memory,
        endurance,
        networks,
    )
}


def chart(measurements: list[Measurement]) -> bytes:
    """Draw how many times as fast as others rows are learned."""
    rates = [one for one in measurements if ": rate over " in one.name]
    rows = {one.name.replace(": rate over ", ", against "): {"onepass": one.ratio} for one in rates}
    return dots(rows, "times as many rows per second as the other (more is better)", reference=1.0, log=True)


def table(measurements: list[Measurement]) -> str:
    """All figures, in Markdown."""
    lines = ["| what | onepass, µs per row | the other's | figure |", "|---|---|---|---|"]
    for one in measurements:
        times = [f"{1e6 * seconds:.2f}" if seconds else "" for seconds in (one.ours, one.theirs)]
        figure = f"{one.ratio:.2f}" if abs(one.ratio) >= 0.01 else f"{one.ratio:.2g}"
        lines.append(f"| {one.name} | {' | '.join(times)} | {figure} |")
    return "\n".join(lines)


def write() -> None:
    """Write chart and table of docs/evidence/speed.md from what was measured last."""
    stored = [Measurement(**one) for one in json.loads(STORED.read_text(encoding="utf-8"))]
    write_atomically(IMAGES / "evidence-speed.png", chart(stored))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- table -->\n")
    after = rest.partition("<!-- end of table -->\n")[2]
    PAGE.write_text(f"{before}<!-- table -->\n\n{table(stored)}\n\n<!-- end of table -->\n{after}", encoding="utf-8")


def main() -> None:
    """Run the groups named on the command line, or all; print the table and write it down."""
    if "--page" in sys.argv:
        write()
        return
    names = sys.argv[1:] or list(GROUPS)
    measurements: list[Measurement] = []
    print(f"{'':58s} {'ours us':>10s} {'other us':>10s} {'figure':>8s}")
    with threadpool_limits(1):
        for name in names:
            for measurement in GROUPS[name]():
                print(measurement.line(), flush=True)
                measurements.append(measurement)
    if names == list(GROUPS):
        text = json.dumps([asdict(measurement) for measurement in measurements], indent=1) + "\n"
        write_atomically(STORED, text.encode())
        write()


if __name__ == "__main__":
    main()
