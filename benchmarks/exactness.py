"""One pass compared with the exact posterior: linear models that learn their noise, in any order of the rows.

The weights have independent Gaussian priors and the log of the noise variance has a Gaussian prior with a standard
deviation of 3, so given all rows the posterior and the marginal likelihood follow from a sum over noises. Distances are
the largest among the weights, in exact posterior standard deviations; "std ratio" is the larger of the two standard
deviations divided by the smaller, the largest among the weights. A distance is the worst of five orders: as in the
file, reversed, and sorted by target, by the target's magnitude and by the first input.

    python -m benchmarks.exactness [--data FOLDER] [--only PART,PART] [--write]

FOLDER has the sets of `benchmarks.uci` in ``uci``; without it the data are synthetic. ``--only`` measures these
parts alone. ``--write`` keeps the results in benchmarks/exactness.json, next to those of other parts, and writes
docs/evidence/exactness.md.
"""

import argparse
import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge

import onepass
from benchmarks.charts import IMAGES, dots
from benchmarks.trust import explanation
from benchmarks.uci.splits import find_datasets
from benchmarks.wide.study import Figure, Findings, Table, figure_lines, missed, number, read, table_lines, write
from onepass import BayesianMLPRegressor, BayesianPerceptron, BayesianPerceptronRegressor
from onepass._typing import FloatArray
from onepass.river import MLPRegressor, PerceptronRegressor

__all__ = ["PARTS", "Fit", "Posterior", "Problem", "chart", "exact_posterior", "gap", "page"]

STORED = Path(__file__).with_name("exactness.json")
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "exactness.md"
INTRODUCTION = """\
# Exactness of one pass

How far is the belief after one pass from the exact posterior of all rows? {finding}

![Largest distance from the exact posterior](../images/evidence-exactness.png)

Written by `python -m benchmarks.exactness --data FOLDER --write`, which measures every figure anew;
[evidence](index.md) has the date.
"""

PRIOR_VARIANCES = (1.0, 100.0, 1e6)
NOISE_STDS = (1.0, 0.1, 0.01, 0.001)
COPIES = (1, 2, 5, 10)
LARGEST = 1000  # rows
_LOG_NOISES = np.arange(-40.0, 40.0, 0.01)  # finer than the posterior of 10,000 rows is wide
_WARM_UP = 100  # rows that the regressors standardise by
_INTERCEPT_VAR = 16.0  # prior of a regressor's intercept


class Problem(NamedTuple):
    """Rows ``(n, d)`` with their targets ``(n,)``."""

    name: str
    X: FloatArray
    y: FloatArray

    def at(self, rows: Any, name: str = "") -> "Problem":
        """Some of the rows, or all in another order."""
        return Problem(name or self.name, self.X[rows], self.y[rows])

    def repeated(self, times: int) -> "Problem":
        """Every row so many times in succession."""
        return self.at(np.repeat(np.arange(len(self.y)), times))


class Posterior(NamedTuple):
    """Means and standard deviations of the weights, ``(p,)``, and the log marginal likelihood of all rows."""

    mean: FloatArray
    std: FloatArray
    log_evidence: float


def exact_posterior(
    X: FloatArray, y: FloatArray, prior_vars: FloatArray, start: float, weights: FloatArray | None = None
) -> Posterior:
    """Sum over noises, given at least as many rows as weights; a row of weight ``w`` counts as ``w`` copies.

    Along the singular vectors of the rows, in units of the prior, everything is independent. ``start`` is the median of
    the noise variance before the first row.
    """
    counts = np.ones(len(y)) if weights is None else weights
    scale, root = np.sqrt(prior_vars), np.sqrt(counts)
    left, values, axes = np.linalg.svd(root[:, None] * X * scale, full_matrices=False)
    target = left.T @ (root * y)
    rest = root * y - left @ target
    noise = np.exp(_LOG_NOISES)[:, None]
    total = values**2 + noise
    logs = norm.logpdf(_LOG_NOISES, np.log(start), 3.0) + np.log(_LOG_NOISES[1] - _LOG_NOISES[0])
    logs -= 0.5 * (counts.sum() * np.log(2.0 * np.pi * noise[:, 0]) + np.log1p(values**2 / noise).sum(axis=1))
    logs -= 0.5 * (rest @ rest / noise[:, 0] + (target**2 / total).sum(axis=1))
    log_evidence = float(logsumexp(logs))
    shares = np.exp(logs - log_evidence)
    means = (values * target / total) @ axes * scale
    mean = shares @ means
    var = (shares @ (noise / total)) @ axes**2 * prior_vars + shares @ (means - mean) ** 2
    return Posterior(mean, np.sqrt(var), log_evidence)


class Fit(NamedTuple):
    """Learned means and standard deviations of the last weights, and what the exact posterior is to be taken of."""

    mean: FloatArray
    std: FloatArray
    X: FloatArray  # (n, p), the intercept's ones first
    y: FloatArray
    prior_vars: FloatArray
    start: float


def perceptron(problem: Problem, prior_var: float, weights: FloatArray | None = None) -> Fit:
    """Learn with a `BayesianPerceptron`."""
    d = problem.X.shape[1]
    model = BayesianPerceptron(d, "linear", noise="learn", cov=prior_var)
    model.learn(problem.X, problem.y, sample_weight=weights)
    X = np.column_stack([np.ones(len(problem.y)), problem.X])
    found = model.posterior()
    return Fit(found.mean, np.sqrt(np.diag(found.cov)), X, problem.y, np.full(d + 1, prior_var), 0.1 * prior_var)


def regressor(problem: Problem, prior_var: float, weights: FloatArray | None = None) -> Fit:
    """Learn with a `BayesianPerceptronRegressor`, which standardises by its first rows; the intercept is left out."""
    X, y = problem.X, problem.y
    model = BayesianPerceptronRegressor(prior_scale=float(np.sqrt(prior_var))).fit(X, y, sample_weight=weights)
    new = np.append(True, (X[1:] != X[:-1]).any(axis=1) | (y[1:] != y[:-1]))
    starts = np.flatnonzero(new | (model.n_seen_ == len(y)))  # of runs of equal rows, if these were taken for one row
    stop = starts[_WARM_UP] if len(starts) > _WARM_UP else len(y)
    _, first, targets = problem.at(slice(stop))  # whose weights, if there are any, are equal
    scale, unit = first.std(axis=0), targets.std()
    scale = np.where(scale > 1e-12 * np.abs(first).max(axis=0), scale, 1.0)
    centre, middle = first.mean(axis=0), targets.mean()
    if unit <= 1e-12 * np.abs(targets).max():  # equal targets are divided by their size
        unit = abs(middle)
    design = np.column_stack([np.ones(len(y)), (X - centre) / scale])
    prior_vars = np.append(_INTERCEPT_VAR, np.full(X.shape[1], prior_var))
    factor = scale / unit
    return Fit(factor * model.coef_, factor * model.coef_std_, design, (y - middle) / unit, prior_vars, 0.1 * prior_var)


MODELS: dict[str, Callable[..., Fit]] = {"BayesianPerceptron": perceptron, "regressor": regressor}


class Gap(NamedTuple):
    """Between one pass and the exact posterior: see the top of this module."""

    distance: float
    ratio: float


def gap(fit: Fit, weights: FloatArray | None = None) -> Gap:
    """Compare a fit with the exact posterior."""
    exact = exact_posterior(fit.X, fit.y, fit.prior_vars, fit.start, weights)
    mean, std = (part[-len(fit.mean) :] for part in (exact.mean, exact.std))
    ratios = fit.std / std
    return Gap(float(np.max(np.abs(fit.mean - mean) / std)), float(np.max(np.maximum(ratios, 1.0 / ratios))))


def learned_gap(make: Callable[..., Fit], problem: Problem, prior_var: float, weights: FloatArray | None = None) -> Gap:
    """Learn and compare; rows that a model rejects leave it infinitely far away."""
    try:
        return gap(make(problem, prior_var, weights), weights)
    except ValueError:
        return Gap(np.inf, np.inf)


def worst_order(make: Callable[..., Fit], problem: Problem, prior_var: float) -> tuple[Gap, str]:
    """The worst of five orders, and the name of the one with the largest distance."""
    magnitude = np.abs(problem.y)
    orders: dict[str, Any] = {
        "as is": np.arange(len(magnitude)),
        "reversed": np.arange(len(magnitude))[::-1],
        "by target": np.argsort(problem.y, kind="stable"),
        "by magnitude": np.argsort(magnitude, kind="stable"),
        "by input": np.argsort(problem.X[:, 0], kind="stable"),
    }
    gaps = {name: learned_gap(make, problem.at(order), prior_var) for name, order in orders.items()}
    worst = max(gaps, key=lambda name: gaps[name].distance)
    return Gap(*np.max(list(gaps.values()), axis=0).tolist()), worst


def synthetic(d: int, n: int, noise_std: float, seed: int = 0) -> Problem:
    """Draw standard normal inputs, weights and intercept."""
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(n, d)), rng.normal(size=d + 1)
    return Problem(f"noise {noise_std:g}, d = {d}", X, weights[0] + X @ weights[1:] + noise_std * rng.normal(size=n))


def uci(folder: Path) -> Iterator[Problem]:
    """Yield the regression sets of a folder, standardised."""
    for name in find_datasets(folder):
        parts = ("data", "index_features", "index_target")
        table, inputs, target = (np.loadtxt(folder / name / f"{part}.txt") for part in parts)
        table = (table - table.mean(axis=0)) / np.where(table.std(axis=0) > 0.0, table.std(axis=0), 1.0)
        yield Problem(name, table[:, inputs.astype(int)], table[:, int(target)])


def part_of(problem: Problem, n: int) -> Problem:
    """Take ``n`` rows at random, in the order of the file."""
    rows = np.sort(np.random.default_rng(0).permutation(len(problem.y))[:n])
    return problem.at(rows, f"{problem.name}, n = {len(rows)}")


def families(folder: Path | None) -> dict[str, list[Problem]]:
    """All data: real ones and, by the standard deviation of their noise, synthetic ones."""
    real = {} if folder is None else {"UCI": list(uci(folder / "uci"))}
    return real | {f"noise std {std:g}": [synthetic(d, LARGEST, std) for d in (1, 5, 20)] for std in NOISE_STDS}


def posterior(folder: Path | None) -> Findings:
    """Posteriors of at least three rows per weight and, as "n = p", of as many rows as weights."""
    figures, misses = [], []
    data = families(folder)
    for (name, make), family, prior_var in product(MODELS.items(), data, PRIOR_VARIANCES):
        many, square = [Gap(0.0, 1.0)], [Gap(0.0, 1.0)]
        for problem in data[family]:
            p = problem.X.shape[1] + 1
            for n in sorted({p, 3 * p, 10 * p, min(LARGEST, len(problem.y))}):
                part = part_of(problem, n)
                found, order = worst_order(make, part, prior_var)
                (square if n == p else many).append(found)
                limits = (0.3, np.inf) if n == p else (0.03, 1.03)
                if not (found.distance <= limits[0] and found.ratio <= limits[1]):
                    misses.append((name, part.name, f"{prior_var:g}", *map(number, found), order))
        where = f"{name}, {family}, prior variance {prior_var:g}"
        distance, ratio = np.max(many, axis=0).tolist()
        figures += [Figure(f"{where}: distance", distance, "<= 0.03"), Figure("... std ratio", ratio, "<= 1.03")]
        figures.append(Figure("... distance, n = p", float(np.max(square, axis=0)[0]), "<= 0.30"))
    columns = ("model", "data", "prior variance", "distance", "std ratio", "worst order")
    return Findings(tuple(figures), (Table("All that miss their targets:", columns, tuple(misses)),))


def copies(folder: Path | None) -> Findings:
    """Rows with weights, and rows that repeat, compared with the exact posterior of that many copies."""
    figures, misses = [], []
    data = [problem for own in families(folder).values() for problem in own]
    problems = [part_of(problem, times * (problem.X.shape[1] + 1)) for problem in data for times in (3, 10)]
    for (name, make), prior_var, way, times in product(MODELS.items(), PRIOR_VARIANCES, ("weight", "copies"), COPIES):
        worst = [0.0]
        for problem in problems:
            if way == "weight":
                counts = np.full(len(problem.y), float(times))
                found = learned_gap(make, problem, prior_var, counts)
            else:
                found = learned_gap(make, problem.repeated(times), prior_var)
            worst.append(found.distance)
            if not found.distance <= 0.05:
                misses.append((name, f"{way} {times}", problem.name, f"{prior_var:g}", *map(number, found)))
        where = f"{name}, prior variance {prior_var:g}, {way} {times}"
        figures.append(Figure(f"{where}: distance", max(worst), "<= 0.05"))
    columns = ("model", "rows", "data", "prior variance", "distance", "std ratio")
    table = Table("All that miss their targets:", columns, tuple(misses))
    return Findings((*figures, *_diabetes()), (table,))


ESTIMATORS: dict[str, Callable[[], Any]] = {
    "regressor": BayesianPerceptronRegressor,
    'regressor, drift="auto"': lambda: BayesianPerceptronRegressor(drift="auto"),
    "regressor, outliers=0.05": lambda: BayesianPerceptronRegressor(outliers=0.05),
    "MLP": lambda: BayesianMLPRegressor(passes=1, shuffle=False),
    'MLP, drift="auto"': lambda: BayesianMLPRegressor(drift="auto"),
    "MLP, outliers=0.05": lambda: BayesianMLPRegressor(outliers=0.05, shuffle=False),
}


def _diabetes() -> Iterator[Figure]:
    """How far predictions by weights and by copies differ on the diabetes data, and the lowest R² of both."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = Problem("", X, y).at(order[:300]), Problem("", X, y).at(order[300:])
    for name, make in ESTIMATORS.items():
        for times in COPIES:
            repeated = train.repeated(times)
            weighted = make().fit(train.X, train.y, sample_weight=np.full(300, float(times)))
            models = weighted, make().fit(repeated.X, repeated.y)
            first, second = (model.predict(test.X) for model in models)
            apart = float(np.sqrt(np.mean((first - second) ** 2)) / test.y.std())
            yield Figure(f"{name}, diabetes, {times} times: copies from weights, in target std", apart, "<= 0.01")
            yield Figure("... lower R²", min(model.score(test.X, test.y) for model in models), ">= 0.35")


def wide(folder: Path | None) -> Findings:
    """Widths of intervals after 100 rows of 200 features, compared with those of scikit-learn's BayesianRidge."""
    figures = []
    for name, active, noise_std in (("all weights", 200, 1.0), ("ten weights", 10, 1.0), ("ten weights", 10, 0.1)):
        widths, shares = [], []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, weights = rng.normal(size=(600, 200)), np.zeros(200)
            weights[:active] = rng.normal(size=active) / np.sqrt(active)
            y = X @ weights + noise_std * rng.normal(size=600)
            ours, theirs = BayesianPerceptronRegressor().fit(X[:100], y[:100]), BayesianRidge().fit(X[:100], y[:100])
            low, high = ours.predict_interval(X[100:])
            widths.append(np.mean(high - low) / np.mean(3.92 * theirs.predict(X[100:], return_std=True)[1]))
            shares.append(100.0 * np.mean((low <= y[100:]) & (y[100:] <= high)))
        where = f"{name} of 200 not zero, noise std {noise_std:g}"
        figures.append(Figure(f"{where}: width over BayesianRidge's", float(np.mean(widths)), "<= 2"))
        figures.append(Figure("... targets inside, per cent", float(np.mean(shares))))
    return Findings(tuple(figures))


def evidence(folder: Path | None) -> Findings:
    """Evidence of 300 rows minus the exact log marginal likelihood, in nats; the worst of five runs.

    "At the end" is `log_evidence` after all rows; "row by row" is the sum of the log densities that the rows were
    predicted with, each before it was learned.
    """
    figures = []
    for d, noise_std in product((1, 5, 20), NOISE_STDS):
        gaps: dict[str, list[float]] = defaultdict(list)
        for seed in range(5):
            _, X, y = synthetic(d, 300, noise_std, seed)
            design = np.column_stack([np.ones(300), X])
            exact = exact_posterior(design, y, np.ones(d + 1), 0.1).log_evidence
            prior = BayesianPerceptron(d, "linear", noise="learn")
            model, by_row = copy.deepcopy(prior), 0.0
            for row, target in zip(X, y, strict=True):
                by_row += float(model.log_predictive(row, target))
                model.learn(row, target)
            shards = [copy.deepcopy(prior).learn(X[k::4], y[k::4]) for k in range(4)]
            heavy, tens = copy.deepcopy(prior), np.full(300, 10.0)
            as_tens = exact_posterior(design, y, np.ones(d + 1), 0.1, tens).log_evidence
            gaps["at the end, weights of 10"].append(heavy.learn(X, y, sample_weight=tens).log_evidence - as_tens)
            gaps["row by row"].append(by_row - exact)
            gaps["at the end"].append(model.log_evidence - exact)
            gaps["merged from four shards"].append(onepass.merge(prior, shards).log_evidence - exact)
        limits = {"row by row": 2.0 + d / 10, "at the end": 0.1, "merged from four shards": 2.0 + d / 4}
        limits["at the end, weights of 10"] = 0.1
        for name, limit in limits.items():
            worst = max(gaps[name], key=abs)
            figures.append(Figure(f"d = {d}, noise std {noise_std:g}: {name}", worst, f"-{limit:.2f}-{limit:.2f}"))
    return Findings(tuple(figures))


class Stream(NamedTuple):
    """A model that learns single rows; it predicts means and standard deviations of rows, and the interval of one."""

    learn: Callable[[FloatArray, float], Any]
    predict: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    interval: Callable[[FloatArray], tuple[float, float]]


def streams(X: FloatArray, y: FloatArray) -> Iterator[tuple[str, Stream]]:
    """Yield models that have learned rows ``(n, d)``."""
    model = BayesianPerceptron(X.shape[1], "linear", noise="learn").learn(X, y)

    def moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen = model.predict(rows)
        return np.asarray(seen.mean), seen.std

    yield "BayesianPerceptron", Stream(model.learn, moments, model.interval)
    for name, make in (("regressor", BayesianPerceptronRegressor), ("MLP", BayesianMLPRegressor)):
        yield name, _estimator_stream(make().partial_fit(X, y))
    yield "River's PerceptronRegressor", _river_stream(PerceptronRegressor(), X, y)
    yield "River's MLPRegressor", _river_stream(MLPRegressor(standardize=True), X, y)


def _estimator_stream(model: Any) -> Stream:
    def interval(row: FloatArray) -> tuple[float, float]:
        low, high = model.predict_interval(row[None])
        return float(low[0]), float(high[0])

    return Stream(
        lambda row, target: model.partial_fit(row[None], [target]),
        lambda rows: model.predict(rows, return_std=True),
        interval,
    )


def _river_stream(model: Any, X: FloatArray, y: FloatArray) -> Stream:
    def named(row: FloatArray) -> dict[str, float]:
        return {f"x{k}": float(value) for k, value in enumerate(row)}

    def moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen = [model.predict_one(named(row), with_dist=True) for row in rows]
        return np.array([one.mu for one in seen]), np.array([one.sigma for one in seen])

    def interval(row: FloatArray) -> tuple[float, float]:
        mean, std = moments(row[None])
        return float(mean[0] - 1.96 * std[0]), float(mean[0] + 1.96 * std[0])

    for row, target in zip(X, y, strict=True):
        model.learn_one(named(row), float(target))
    return Stream(lambda row, target: model.learn_one(named(row), target), moments, interval)


def wild(folder: Path | None) -> Findings:
    """After 500 rows a single target of 1e12; or 500 more rows whose targets are all multiplied by 1000.

    A shift is the largest change of a predicted mean, in predicted standard deviations. Intervals cover again from the
    first row on after which 90 % of the next 40 targets are inside.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1100, 5))
    y = 20.0 + X @ np.array([10.0, -15.0, 5.0, 0.0, 8.0]) + 2.0 * rng.normal(size=1100)
    before, after, test = slice(0, 500), slice(500, 1000), slice(1000, 1100)
    figures = []
    for name, stream in streams(X[before], y[before]):
        mean, std = stream.predict(X[test])
        stream.learn(X[500], 1e12)
        moved, wider = stream.predict(X[test])
        shift = np.abs(moved - mean)
        figures.append(Figure(f"{name}, 1e12 once: shift in std before it", float(np.max(shift / std)), "<= 1"))
        figures.append(Figure("... in std after it", float(np.max(shift / wider)), "<= 1"))
        figures.append(Figure("... std after over before", float(np.median(wider / std))))
    for name, stream in streams(X[before], y[before]):
        inside, widths = [], []
        for row, target in zip(X[after], 1000.0 * y[after], strict=True):
            low, high = stream.interval(row)
            inside.append(low <= target <= high)
            widths.append(high - low)
            stream.learn(row, float(target))
        shares = np.convolve(inside, np.full(40, 1 / 40), mode="valid")
        rows = int(np.argmax(shares >= 0.9)) if (shares >= 0.9).any() else len(inside)
        figures.append(Figure(f"{name}, targets times 1000: rows until intervals cover", rows, "<= 36"))
        figures.append(Figure("... per cent inside afterwards", 100.0 * float(np.mean(inside[rows:] or [False]))))
        figures.append(
            Figure("... last widths over those of the truth", float(np.mean(widths[-50:]) / (3.92 * 2000.0)))
        )
    return Findings(tuple(figures))


class Part(NamedTuple):
    """A part of the page."""

    title: str
    measure: Callable[[Path | None], Findings]


PARTS = {
    "posterior": Part("Posterior", posterior),
    "copies": Part("Weights and copies", copies),
    "wide": Part("More features than rows", wide),
    "evidence": Part("Evidence", evidence),
    "wild": Part("Wild targets and changed units", wild),
}


def text(name: str, findings: Findings) -> str:
    """One part, in Markdown."""
    part = PARTS[name]
    lines = [
        f"## {part.title}\n",
        f"{' '.join((part.measure.__doc__ or '').split())}\n",
        *figure_lines(findings.figures),
    ]
    for table in findings.tables:
        lines += ["", *table_lines(table)] if table.lines else []
    return "\n".join(lines) + "\n"


def page(found: dict[str, Findings]) -> str:
    """The whole page, of those parts that were measured."""
    parts: Iterable[str] = (text(name, found[name]) for name in PARTS if name in found)
    return "\n".join([INTRODUCTION.format(finding=_finding(found)), f"{explanation(__doc__)}\n", *parts])


def _distances(found: dict[str, Findings]) -> dict[str, dict[str, float]]:
    """The largest distance of each model, with enough rows and with as many rows as weights."""
    rows: dict[str, dict[str, float]] = {}
    model = ""
    for figure in found["posterior"].figures if "posterior" in found else ():
        name, _, what = figure.what.rpartition(": ")
        if name:
            model = ", ".join(name.split(", ")[:2])
        kind = {"distance": "three rows per weight and more", "... distance, n = p": "as many rows as weights"}
        if words := kind.get(what if name else figure.what):
            own = rows.setdefault(model, {})
            own[words] = max(own.get(words, 0.0), figure.value)
    return rows


def _finding(found: dict[str, Findings]) -> str:
    distances = [value for values in _distances(found).values() for value in values.values()]
    if not distances or "wide" not in found:
        return ""
    widths = [figure.value for figure in found["wide"].figures if "BayesianRidge" in figure.what]
    return (
        "For linear models that learn their noise, whatever the prior and the order of the rows, no weight's "
        "mean is further "
        f"from the exact one than {max(distances):.0e} of its standard deviation. With more features than rows "
        f"scikit-learn's "
        f"batch `BayesianRidge` has the narrower intervals: those here are {min(widths):.1f} to {max(widths):.1f} "
        f"times as wide."
    )


def chart(found: dict[str, Findings]) -> bytes:
    """Draw the distances."""
    label = "largest distance of a weight's mean, in exact posterior standard deviations (less is better)"
    return dots(_distances(found), label, log=True)


def arguments() -> argparse.Namespace:
    """What the command was given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exactness", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with uci")
    parser.add_argument("--only", default=",".join(PARTS), metavar="PARTS", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--write", action="store_true", help=f"keep the results, and write docs/evidence/{PAGE.name}")
    options = parser.parse_args()
    if unknown := [name for name in options.only.split(",") if name not in PARTS]:
        parser.error(f"no part is named {unknown[0]!r}; there are {', '.join(PARTS)}")
    if options.write and options.data is None:
        parser.error("--write needs --data FOLDER")
    return options


def main() -> None:
    """Measure and print, part by part."""
    options = arguments()
    warnings.filterwarnings("ignore", category=UserWarning)
    for name in options.only.split(","):
        findings = PARTS[name].measure(options.data)
        print(text(name, findings), *missed(findings.figures), sep="\n", flush=True)
        if options.write:
            write(STORED, read(STORED) | {name: findings})
    if options.write:
        found = read(STORED)
        PAGE.write_text(page(found))
        (IMAGES / "evidence-exactness.png").write_bytes(chart(found))


if __name__ == "__main__":
    main()
