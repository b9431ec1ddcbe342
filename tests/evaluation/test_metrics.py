"""Every metric against an independent computation, and against itself on parts that are merged."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import integrate, stats
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    mean_poisson_deviance,
    roc_auc_score,
    root_mean_squared_error,
)

from onepass.cli.main import onepass
from onepass.evaluation import metrics
from onepass.evaluation.metrics import (
    REGISTRY,
    ClassPredictions,
    CountPredictions,
    Curve,
    DistributionPredictions,
    Metric,
    NumberPredictions,
    PredictedStd,
    RowMean,
    Scores,
    Task,
    register,
    registered,
)
from onepass.models.tracking import TrackedPlaces, TrackedQuantiles


def numbers(n: int = 3000, seed: int = 0, stretch: float = 1.0) -> NumberPredictions:
    """Targets from the predictive distributions, whose widths are then stretched."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return NumberPredictions(mean + std * rng.normal(size=n), mean, std * stretch)


DISPERSION = 0.3


def counts(n: int = 3000, seed: int = 0) -> CountPredictions:
    """Counts whose rates are known."""
    rng = np.random.default_rng(seed)
    mean = rng.gamma(2.0, 3.0, n)
    y = rng.poisson(mean * rng.gamma(1 / DISPERSION, DISPERSION, n)).astype(float)
    noise_var = mean + DISPERSION * mean**2
    return CountPredictions(y=y, mean=mean, std=np.sqrt(noise_var), var=np.zeros(n), noise_var=noise_var)


def count_distribution(rows: CountPredictions) -> Any:
    return stats.nbinom(1 / DISPERSION, 1 / (1 + DISPERSION * rows.mean))


def count_coverage(level: float) -> Callable[[Any], float]:
    def share(rows: Any) -> float:
        low, high = count_distribution(rows).interval(level)
        return float(np.mean((low <= rows.y) & (rows.y <= high)))

    return share


def count_level_error(rows: CountPredictions) -> float:
    known = count_distribution(rows)
    place = 0.5 * (known.cdf(rows.y) + known.cdf(rows.y - 1))
    levels = np.linspace(0.05, 0.95, 19)
    return float(np.mean([abs(np.mean(np.abs(place - 0.5) <= level / 2) - level) for level in levels]))


def classes(k: int, n: int = 3000, seed: int = 0) -> ClassPredictions:
    """Classes drawn with the probabilities predicted."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.arange(1.0, k + 1), n)
    return ClassPredictions((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), p)


def coverage(level: float) -> Callable[[Any], float]:
    def share(rows: Any) -> float:
        low, high = stats.norm.interval(level, rows.mean, rows.std)
        return float(np.mean((low <= rows.y) & (rows.y <= high)))

    return share


def log_likelihood(rows: Any) -> float:
    return float(np.mean(stats.norm.logpdf(rows.y, rows.mean, rows.std)))


def level_error(rows: NumberPredictions) -> float:
    levels = np.linspace(0.05, 0.95, 19)
    return float(np.mean([abs(coverage(level)(rows) - level) for level in levels]))


def of_second(rows: ClassPredictions) -> Any:
    return rows.probabilities[:, 1] if rows.probabilities.shape[1] == 2 else rows.probabilities


def brier(rows: ClassPredictions) -> float:
    if rows.probabilities.shape[1] == 2:
        return float(brier_score_loss(rows.y, of_second(rows)))
    return float(np.square(rows.probabilities - np.eye(rows.probabilities.shape[1])[rows.y]).sum(axis=1).mean())


def binned_gap(p: Any, happened: Any, bins: int) -> float:
    """Expected calibration error, bin by bin."""
    gaps = 0.0
    for low in np.arange(bins) / bins:
        own = (p >= low) & (p < low + 1.0 / bins)
        gaps += abs(p[own].sum() - happened[own].sum())
    return float(gaps / len(p))


def top_class_gap(rows: ClassPredictions, bins: int = 20) -> float:
    return binned_gap(rows.probabilities.max(axis=1), rows.probabilities.argmax(axis=1) == rows.y, bins)


def class_gap(rows: ClassPredictions) -> float:
    return binned_gap(of_second(rows), rows.y == 1, 20) if rows.n_classes == 2 else top_class_gap(rows)


# Independent values, and how close ours must come: histograms are not exact.
NUMBERS: dict[str, tuple[Callable[[NumberPredictions], float], float]] = {
    "rmse": (lambda rows: root_mean_squared_error(rows.y, rows.mean), 1e-12),
    "mae": (lambda rows: mean_absolute_error(rows.y, rows.mean), 1e-12),
    "log_likelihood": (log_likelihood, 1e-12),
    "coverage_50": (coverage(0.5), 1e-12),
    "coverage_80": (coverage(0.8), 1e-12),
    "coverage_95": (coverage(0.95), 1e-12),
    "calibration_error": (level_error, 1e-3),
}
COUNTS: dict[str, tuple[Callable[[Any], float], float]] = {
    "rmse": NUMBERS["rmse"],
    "mae": NUMBERS["mae"],
    "poisson_deviance": (lambda rows: mean_poisson_deviance(rows.y, rows.mean), 1e-12),
    "log_likelihood": (lambda rows: float(count_distribution(rows).logpmf(rows.y).mean()), 1e-8),
    "coverage_50": (count_coverage(0.5), 1e-12),
    "coverage_80": (count_coverage(0.8), 1e-12),
    "coverage_95": (count_coverage(0.95), 1e-12),
    "calibration_error": (count_level_error, 1e-3),
}
CLASSES: dict[str, tuple[Callable[[ClassPredictions], float], float]] = {
    "accuracy": (lambda rows: accuracy_score(rows.y, rows.probabilities.argmax(axis=1)), 1e-12),
    "log_loss": (lambda rows: log_loss(rows.y, rows.probabilities), 1e-12),
    "brier": (brier, 1e-12),
    "roc_auc": (lambda rows: roc_auc_score(rows.y, of_second(rows), multi_class="ovr"), 1e-3),
    "calibration_error": (class_gap, 1e-12),
}
CASES = [
    *(pytest.param("numbers", name, numbers(), id=f"numbers-{name}") for name in NUMBERS),
    *(pytest.param("counts", name, counts(), id=f"counts-{name}") for name in COUNTS),
    *(pytest.param("classes", name, classes(2), id=f"two-{name}") for name in CLASSES),
    *(pytest.param("classes", name, classes(4), id=f"four-{name}") for name in CLASSES),
]


def test_every_registered_metric_is_tested() -> None:
    assert list(REGISTRY["numbers"]) == list(NUMBERS)
    assert list(REGISTRY["counts"]) == list(COUNTS)
    assert list(REGISTRY["classes"]) == list(CLASSES)


@pytest.mark.parametrize(("task", "name", "rows"), CASES)
def test_a_metric_agrees_with_an_independent_computation(task: Any, name: str, rows: Any) -> None:
    independent: dict[str, Any] = {"numbers": NUMBERS, "counts": COUNTS, "classes": CLASSES}[task]
    expected, tolerance = independent[name]
    assert REGISTRY[task][name]().update(rows).get() == pytest.approx(expected(rows), abs=tolerance)


@pytest.mark.parametrize(("task", "name", "rows"), CASES)
def test_merged_parts_are_the_whole(task: Any, name: str, rows: Any) -> None:
    make = REGISTRY[task][name]
    whole = make().update(rows)
    merged = make()  # with no rows at all, which must not matter
    for index in np.array_split(np.arange(len(rows)), [1, 17, 900]):
        merged.merge(make().update(rows.at(index)))
    merged.merge(make())
    assert merged.get() == pytest.approx(whole.get(), rel=1e-12)
    in_turns = make()
    for index in np.array_split(np.arange(len(rows)), [1, 17, 900]):
        in_turns.update(rows.at(index))
    assert in_turns.get() == pytest.approx(whole.get(), rel=1e-12)


def test_the_calibration_of_the_top_class_may_have_other_bins() -> None:
    for rows in (classes(2), classes(3)):
        found = metrics.TopClassCalibrationError(bins=10).update(rows).get()
        assert found == pytest.approx(top_class_gap(rows, 10), abs=1e-12)


def test_the_area_under_the_roc_curve_needs_every_class() -> None:
    rows = ClassPredictions(np.zeros(5, dtype=int), np.full((5, 2), 0.5))
    assert metrics.RocAuc().get() is None
    assert metrics.RocAuc().update(rows).get() is None
    assert "roc_auc" not in Scores.of("classes", with_std=True).update(rows).total()


def test_overconfidence_is_seen() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.0, 1.0, 20_000)
    y = (rng.random(20_000) < p).astype(int)
    sure = p**3 / (p**3 + (1 - p) ** 3)
    errors = [
        metrics.ClassCalibrationError().update(ClassPredictions(y, np.column_stack([1 - given, given]))).get()
        for given in (p, sure)
    ]
    assert errors[0] < 0.01 < 0.1 < errors[1]
    widths = [metrics.NumberCalibrationError().update(numbers(50_000, stretch=by)).get() for by in (1.0, 2.0)]
    assert widths[0] < 0.01 < 0.1 < widths[1]


def test_other_distributions_bring_their_own_densities_and_intervals() -> None:
    rng = np.random.default_rng(0)
    y, low = rng.normal(size=100), np.full(100, -1.0)
    rows = DistributionPredictions(y=y, mean=np.zeros(100), log_densities=y - 3.0, low=low, high=-low)
    assert metrics.LogLikelihood().update(rows).get() == pytest.approx(y.mean() - 3.0)
    assert metrics.Coverage95().update(rows).get() == pytest.approx(np.mean(np.abs(y) < 1.0))
    with pytest.raises(ValueError, match=r"intervals of level 0\.95, not 0\.5"):
        metrics.Coverage50().update(rows)


def test_metrics_of_uncertainty_are_left_out_where_there_is_none() -> None:
    rows = numbers()
    means = NumberPredictions(rows.y, rows.mean)
    assert list(Scores.of("numbers", with_std=False).update(means).total()) == ["rmse", "mae"]
    with pytest.raises(ValueError, match="no standard deviations"):
        Scores.of("numbers", with_std=True).update(means)


@pytest.mark.parametrize("metric", REGISTRY["classes"].values())
def test_metrics_of_two_halves_merge_into_that_of_all(metric: type[Metric[Any]]) -> None:
    rows = classes(3)
    halves = [metric().update(rows.at(own)) for own in (slice(1000), slice(1000, None))]
    assert halves[0].merge(halves[1]).get() == pytest.approx(metric().update(rows).get(), rel=1e-12)


TASKS = [("numbers", lambda: numbers(300)), ("classes", lambda: classes(2)), ("classes", lambda: classes(3))]


@pytest.mark.parametrize(("task", "make"), TASKS)
def test_scores_have_the_values_of_their_metrics_and_go_on_from_their_state(task: Task, make: Any) -> None:
    rows = make()
    scores = Scores.of(task, with_std=True).update(rows.at(slice(100)))
    state = json.loads(json.dumps(scores.state()))
    copy = Scores(registered(task, state["metrics"])).restore(state)
    assert copy.report() == scores.report()
    for one in (scores, copy):
        one.update(rows.at(slice(100, None)))
    assert copy.state() == scores.state()
    whole = {name: metric().update(rows).get() for name, metric in REGISTRY[task].items()}
    assert scores.total() == pytest.approx(whole, rel=1e-9)


def test_some_of_the_rows_have_their_own_places_and_moments() -> None:
    rows = counts(20)
    some = rows.at(np.array([3, 5]))
    assert (len(some), some.y.tolist(), some.mean.tolist()) == (2, rows.y[[3, 5]].tolist(), rows.mean[[3, 5]].tolist())
    np.testing.assert_allclose(some.z, rows.z[[3, 5]])
    places = TrackedPlaces(np.array([0.5, 3.0, np.nan]), TrackedQuantiles(np.array([1.0]), np.ones((3, 2))))
    found = NumberPredictions(np.zeros(3), np.zeros(3), places=places).at([1]).places
    assert found is not None
    assert found.score.tolist() == [3.0]


def test_a_curve_keeps_its_sums_whatever_its_length() -> None:
    values = np.random.default_rng(0).normal(size=(100_000, 2))
    curve = Curve(2)
    for own in np.array_split(np.arange(100_000), [3, 500, 40_000]):
        curve.add(values[own])
    assert len(curve.rows) <= 256
    assert curve.rows[-1] == 100_000
    np.testing.assert_allclose(curve.sums.sum(axis=0), values.sum(axis=0))
    width = curve.rows[0]
    np.testing.assert_allclose(curve.means[1], values[width : 2 * width].mean(axis=0))


@pytest.mark.parametrize(("n", "first"), [(34, 16), (39, 16), (40, 32), (48, 32), (3, 0)])
def test_a_few_rows_at_the_end_are_no_segment_of_their_own(n: int, first: int) -> None:
    curve, values = Curve(1), np.arange(float(n))[:, None] ** 2
    curve.add(values)
    assert curve.rows[-1] == n
    assert curve.means[-1] == pytest.approx(values[first:].mean(axis=0))


def test_metrics_over_time_are_those_of_the_rows_in_each_segment() -> None:
    rows = numbers(200)
    scores = Scores([metrics.RootMeanSquaredError, PredictedStd])
    for own in (slice(50), slice(50, None)):
        scores.update(rows.at(own))
    assert scores.rows[:2].tolist() == [16, 32]
    second = rows.at(slice(16, 32))
    assert second.std is not None
    assert scores.segments()["rmse"][1] == pytest.approx(root_mean_squared_error(second.y, second.mean))
    assert scores.segments()["std"][1] == pytest.approx(second.std.mean())
    assert scores.so_far()["rmse"][-1] == pytest.approx(root_mean_squared_error(rows.y, rows.mean))


# Adding a metric, the way that onepass.evaluation.metrics describes.


@pytest.fixture
def registry() -> Iterator[None]:
    """The registry as it was before, afterwards."""
    before = {task: dict(known) for task, known in REGISTRY.items()}
    yield
    for task, known in before.items():
        REGISTRY[task].clear()
        REGISTRY[task].update(known)


@pytest.mark.usefixtures("registry")
def test_a_metric_that_is_registered_is_shown_by_evaluate(tmp_path: Path) -> None:
    @register("numbers")
    class Bias(RowMean[NumberPredictions]):
        name, title = "bias", "bias"

        @classmethod
        def per_row(cls, rows: NumberPredictions) -> Any:
            return rows.mean - rows.y

    @register("numbers")
    class LargestError(Metric[NumberPredictions]):
        name, title = "largest_error", "largest error"

        def __init__(self) -> None:
            self._largest = 0.0

        def update(self, rows: NumberPredictions) -> Self:
            self._largest = max(self._largest, float(np.abs(rows.error).max()))
            return self

        def get(self) -> float:
            return self._largest

        def merge(self, other: Self) -> Self:
            self._largest = max(self._largest, other._largest)
            return self

    file = tmp_path / "rows.csv"
    file.write_text("x,y\n" + "".join(f"{i % 7},{3 * (i % 7) + i % 2}\n" for i in range(300)))
    shown = CliRunner().invoke(onepass, ["evaluate", str(file), "--target", "y"], standalone_mode=False)
    assert shown.exception is None
    assert "bias" in shown.stdout
    assert "largest error" in shown.stdout
    done = CliRunner().invoke(onepass, ["evaluate", str(file), "--target", "y", "--json"], standalone_mode=False)
    event = json.loads(done.stdout.splitlines()[-1])
    scores = event["scores"]["onepass"]
    assert abs(scores["bias"]) < scores["mae"] < scores["largest_error"]
    assert len(event["over_time"]["bias"]) == len(event["over_time"]["rows"])


def test_the_continuous_ranked_probability_score_is_an_integral() -> None:
    y, mean, std = np.array([0.3, -2.0]), np.array([0.0, 1.0]), np.array([1.0, 0.5])
    found = metrics.gaussian_crps(y, mean, std)
    for k in range(2):
        cdf = stats.norm(mean[k], std[k]).cdf
        below, _ = integrate.quad(lambda x, cdf=cdf: cdf(x) ** 2, -30.0, y[k])
        above, _ = integrate.quad(lambda x, cdf=cdf: (1.0 - cdf(x)) ** 2, y[k], 30.0)
        assert found[k] == pytest.approx(below + above, rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("std", [0.0, 1e-320, 1e-200, 1e-12])
def test_without_a_deviation_the_continuous_ranked_probability_score_is_the_error(std: float) -> None:
    y = np.array([0.0, 3.0, -1e12, 1e-5])
    found = metrics.gaussian_crps(y, np.zeros(4), np.full(4, std))
    np.testing.assert_allclose(found, np.abs(y), rtol=1e-6, atol=1e-11)


@pytest.mark.usefixtures("registry")
def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match=r"already a metric of numbers with the name 'rmse'"):
        register("numbers")(metrics.RootMeanSquaredError)
