"""Targets that are absurdly far off are set aside: counted, and not learned, unless they go on coming."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture, PerceptronFleet
from onepass._typing import FloatArray
from onepass.models.mixture import with_drift

D = 3
PERCEPTRONS: list[dict[str, Any]] = [
    {"activation": "linear", "noise": "learn"},
    {"activation": "linear", "noise": 0.04},
    {"activation": "linear", "noise": "learn", "covariance": "diagonal"},
    {"activation": "linear", "noise": 0.04, "covariance": "diagonal"},
    {"activation": "linear", "noise": "learn", "drift": 1e-3},
    {"activation": "linear", "noise": "learn", "drift": "auto"},
    {"activation": "linear", "noise": "learn", "forgetting": 0.99},
    {"activation": "linear", "noise": "learn", "noise_window": 100},
    {"activation": "linear", "noise": "learn", "dtype": "float32"},
    {"activation": "linear", "noise": "learn", "kernel": "blocks"},
    {"activation": "linear", "noise": "learn", "kernel": "reference"},
    {"activation": "relu", "noise": "learn"},
    {"activation": "relu", "noise": 0.04},
]
NETWORKS: list[dict[str, Any]] = [
    *({"covariance": name} for name in ("full", "low_rank", "layer", "neuron", "kronecker", "diagonal")),
    {"covariance": ("kronecker", "full")},
    {"observation": "heteroscedastic"},
    {"observation": "heteroscedastic", "covariance": "diagonal"},
    {"noise": 0.04},
    {"drift": 1e-3},
    {"drift": "auto"},
    {"forgetting": 0.99},
    {"dtype": "float32"},
    {"kernel": "reference"},
]


def perceptron(**options: Any) -> BayesianPerceptron | Mixture:
    return with_drift(BayesianPerceptron, D, **options)


def network(**options: Any) -> BayesianNetwork | Mixture:
    return with_drift(BayesianNetwork, D, (6,), **options)


def named(pairs: list[tuple[Any, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(kind, options, id=f"{kind.__name__} {options}") for kind, options in pairs]


PAIRS = [*((perceptron, options) for options in PERCEPTRONS), *((network, options) for options in NETWORKS)]
MODELS = named(PAIRS)


def problem(n: int, seed: int = 0, activation: str = "linear") -> tuple[FloatArray, FloatArray]:
    """Rows, and targets of a line, or what a rectifier leaves of it, with a noise of 0.2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    outputs = 0.5 + X @ [1.0, -0.5, 0.3]
    return X, (np.maximum(outputs, 0.0) if activation == "relu" else outputs) + 0.2 * rng.normal(size=n)


def same(one: Any, other: Any) -> None:
    """To the last bit, but for the evidence of a network, which is a sum of sums by call."""
    first, second = one.export_state(), other.export_state()
    sides = ([own.get("state", own) for own in state.get("members", [state])] for state, _ in (first, second))
    for mine, theirs in zip(*sides, strict=True):
        assert mine.pop("log_evidence", 0.0) == pytest.approx(theirs.pop("log_evidence", 0.0), rel=1e-13)
    assert first[0] == second[0]
    assert first[1].keys() == second[1].keys()
    for name, array in first[1].items():
        np.testing.assert_array_equal(array, second[1][name], err_msg=name)


@pytest.mark.parametrize("target", [1e12, -1e12, 1e150])
@pytest.mark.parametrize(("kind", "options"), MODELS)
def test_one_absurd_target_is_counted_and_moves_nothing(kind: Any, options: dict[str, Any], target: float) -> None:
    X, y = problem(520, activation=options.get("activation", "linear"))
    model = kind(**options).learn(X[:500], y[:500])
    assert model.n_set_aside == 0
    before = model.predict(X[500:], rows_ahead=2)  # weights drift before this row as well
    model.learn(X[500], target)
    assert (model.n_set_aside, model.n_seen) == (1, 501)
    after = model.predict(X[500:])
    std = before.std
    assert np.max(np.abs(after.mean - before.mean) / std) < 0.1
    np.testing.assert_allclose(after.std, std, rtol=0.1)
    assert np.isfinite(model.log_evidence)
    # The rows that follow are learned as ever.
    model.learn(X[501:], y[501:])
    assert (model.n_set_aside, model.n_seen) == (1, 520)
    assert np.sqrt(np.mean((model.predict(X[:500]).mean - y[:500]) ** 2)) < 0.45


def test_without_drift_an_absurd_target_changes_not_one_bit_of_the_belief() -> None:
    X, y = problem(200)
    for options in ({"noise": "learn"}, {"noise": 0.04}, {"noise": "learn", "covariance": "diagonal"}):
        model = BayesianPerceptron(D, "linear", **options).learn(X, y)
        before, noise = model.mean, model.noise
        cov = model.cov
        model.learn(X[0], 1e12)
        np.testing.assert_array_equal(model.mean, before)
        np.testing.assert_array_equal(model.cov, cov)
        assert model.noise == noise


@pytest.mark.parametrize("observation", ["gaussian", "heteroscedastic"])
def test_one_absurd_output_of_several_is_set_aside_with_its_row(observation: str) -> None:
    X, y = problem(320)
    targets = np.column_stack([y, -y])
    model = BayesianNetwork(D, (6,), 2, observation=observation).learn(X[:300], targets[:300])
    before = model.predict(X[300:])
    model.learn(X[300], np.array([y[300], 1e12]))
    assert model.n_set_aside == 1
    after = model.predict(X[300:])
    assert np.max(np.abs(after.mean - before.mean) / np.sqrt(before.epistemic + before.aleatoric)) < 0.1


@pytest.mark.parametrize(
    ("kind", "options", "refine"),
    [
        (perceptron, {"activation": "linear", "noise": "learn"}, "reuse"),
        (perceptron, {"activation": "linear", "noise": "learn"}, "ep"),
        (perceptron, {"activation": "linear", "noise": "learn", "covariance": "diagonal"}, "reuse"),
        (perceptron, {"activation": "relu", "noise": "learn"}, "reuse"),
        (perceptron, {"activation": "relu", "noise": "learn"}, "ep"),
        (network, {}, "reuse"),
        (network, {}, "ep"),
        (network, {"covariance": "kronecker"}, "reuse"),
    ],
)
def test_a_row_that_is_learned_again_is_set_aside_once(kind: Any, options: dict[str, Any], refine: str) -> None:
    X, y = problem(300, activation=options.get("activation", "linear"))
    targets = y.copy()
    targets[[200, 250]] = 1e12, -1e9
    model = kind(**options).learn(X, targets, passes=3, refine=refine)
    assert (model.n_set_aside, model.n_seen) == (2, 300)
    assert np.sqrt(np.mean((model.predict(X).mean - y) ** 2)) < 0.25
    one_more = model.learn(X[0], 1e12)
    assert (one_more.n_set_aside, one_more.n_seen) == (3, 301)


def test_committees_set_aside_too() -> None:
    X, y = problem(320)
    model = BayesianCommittee(D, (6,), members=2).learn(X[:300], y[:300])
    before = model.predict(X[300:])
    model.learn(X[300], 1e12)
    assert model.n_set_aside == 1
    after = model.predict(X[300:])
    assert np.max(np.abs(after.mean - before.mean) / np.sqrt(before.epistemic + before.aleatoric)) < 0.1


def test_what_is_set_aside_is_scored_by_the_density_that_is_told() -> None:
    """Gaussian up to 30 deviations, and from there falling with the distance squared."""
    X, y = problem(200)
    model = BayesianPerceptron(D, "linear", noise=0.04).learn(X, y)
    seen = model.predict(X[0])
    std = float(np.sqrt(seen.epistemic + seen.aleatoric))
    for target in (1e3, 1e12, -1e200):
        away = abs(target - seen.mean) / std
        expected = -0.5 * (np.log(2.0 * np.pi) + 900.0) - np.log(std) - 2.0 * np.log(away / 30.0)
        assert model.log_predictive(X[0], target) == pytest.approx(expected, rel=1e-9)
        assert model.outlier_probability(X[0], target) == 1.0
    before = model.log_evidence
    _, scores = model.predict_score_learn(X[:1], [1e3])
    assert scores.outliers == [1.0]
    assert model.log_evidence - before == pytest.approx(scores.log_densities[0])


@pytest.mark.parametrize(("kind", "options"), named([pair for pair in PAIRS if pair[1].get("noise", "learn") != 0.04]))
def test_targets_of_another_size_are_covered_again_within_forty_rows(kind: Any, options: dict[str, Any]) -> None:
    X, y = problem(800, activation=options.get("activation", "linear"))
    targets = np.where(np.arange(800) < 400, y, 1000.0 * y)
    model = kind(**options).learn(X[:400], targets[:400])
    model.learn(X[400:440], targets[400:440])
    covered = []
    for i in range(440, 640):
        low, high = model.interval(X[i])
        covered.append(low <= targets[i] <= high)
        model.learn(X[i], targets[i])
    assert np.mean(covered[:40]) >= 0.8
    assert np.mean(covered) >= 0.85
    assert 1 <= model.n_set_aside <= 40


@pytest.mark.parametrize("seed", range(1, 10))
@pytest.mark.parametrize(
    "options",
    [
        {"activation": "linear"},
        {"activation": "linear", "covariance": "diagonal"},
        {"activation": "linear", "drift": 1e-3},
        {"activation": "relu"},
    ],
    ids=str,
)
def test_small_targets_among_those_of_another_size_do_not_hide_it(options: dict[str, Any], seed: int) -> None:
    """A target that happens to be near zero is no sign that all is as it was."""
    X, y = problem(640, seed, options["activation"])
    targets = np.where(np.arange(640) < 400, y, 1000.0 * y)
    model = BayesianPerceptron(D, noise="learn", **options).learn(X[:440], targets[:440])
    covered = []
    for i in range(440, 640):
        low, high = model.interval(X[i])
        covered.append(low <= targets[i] <= high)
        model.learn(X[i], targets[i])
    assert np.mean(covered[:40]) >= 0.8
    assert np.mean(covered) >= 0.85


@pytest.mark.parametrize("noise", ["learn", 0.04])
def test_a_line_in_other_units_is_learned_like_the_first(noise: Any) -> None:
    X, y = problem(800)
    targets = np.where(np.arange(800) < 400, y, 1000.0 * y)
    model = BayesianPerceptron(D, "linear", noise=noise).learn(X, targets)
    assert model.n_set_aside == 12
    gaps = model.predict(X[400:]).mean - targets[400:]
    assert np.sqrt(np.mean(gaps**2)) < 220.0  # the noise, 200, and little more
    if noise == "learn":
        assert np.sqrt(model.noise) == pytest.approx(200.0, rel=0.15)


STREAMS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "one": lambda y: np.where(np.arange(len(y)) == 100, 1e9, y),
    "eleven": lambda y: np.where((np.arange(len(y)) >= 100) & (np.arange(len(y)) < 111), 1e9, y),
    "jump": lambda y: np.where(np.arange(len(y)) < 100, y, 1e4 * y),
}


def grouped(options: dict[str, Any]) -> bool:
    """Whether rows are learned in blocks, in which they round in another way than one by one."""
    covariance = options.get("covariance")
    return options.get("kernel") == "blocks" or covariance in ("low_rank", "kronecker", ("kronecker", "full"))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(("kind", "options"), MODELS)
def test_files_and_the_split_of_calls_change_nothing(
    kind: Any, options: dict[str, Any], stream: str, tmp_path: Path
) -> None:
    X, y = problem(160)
    targets = STREAMS[stream](y)
    whole = kind(**options).learn(X, targets)
    assert whole.n_set_aside >= (12 if stream == "jump" else 1)
    reloaded = kind(**options)
    for start, stop in ((0, 100), (100, 101), (101, 111), (111, 112), (112, 113), (113, 160)):
        reloaded.learn(X[start:stop], targets[start:stop])
        onepass.save(reloaded, tmp_path / "model")
        loaded = onepass.load(tmp_path / "model")
        same(loaded, reloaded)
        reloaded = loaded
    singly = kind(**options)
    for row, target in zip(X, targets, strict=True):
        singly.learn(row, target)
    for other in (reloaded, singly):
        assert other.n_set_aside == whole.n_set_aside
        if not grouped(options):
            same(other, whole)
        for one, two in zip(other.predict(X).moments, whole.predict(X).moments, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-7)


@pytest.mark.parametrize("noise", ["learn", 0.04])
@pytest.mark.parametrize("kind", [perceptron, network])
def test_after_equal_targets_a_usual_one_is_learned(kind: Any, noise: Any) -> None:
    """A model that was sure of a constant may be wrong, by as much as the prior expected."""
    X, _ = problem(400)
    options = {"activation": "linear"} if kind is perceptron else {}
    model = kind(noise=noise, **options).learn(X[:300], np.zeros(300))
    for target in (1.0, -2.0, 3.0):
        model.learn(X[300], target)
    assert model.n_set_aside == 0
    y = X @ [1.0, -0.5, 0.3]
    model.learn(X[301:], y[301:])
    assert model.n_set_aside == 0


def test_the_first_rows_are_never_set_aside() -> None:
    X, y = problem(30)
    model = BayesianPerceptron(D, "linear", noise="learn").learn(X[:29], 1e9 * y[:29])
    assert model.n_set_aside == 0
    assert model.learn(X[29], 1e14).n_set_aside == 0


def test_labels_classes_and_counts_are_never_set_aside() -> None:
    X, y = problem(300)
    assert BayesianPerceptron(D).learn(X, (y > 10.0).astype(float)).learn(X[0], 1.0).n_set_aside == 0
    counts = BayesianPerceptron(D, "exp").learn(X, np.zeros(300)).learn(X[0], 1e6)
    assert counts.n_set_aside == 0
    classes = BayesianNetwork(D, (), 3, observation="categorical").learn(X, np.zeros(300, int)).learn(X[0], 2)
    assert classes.n_set_aside == 0


FLEETS: list[dict[str, Any]] = [
    {"noise": "learn"},
    {"noise": 0.04},
    {"noise": "learn", "forgetting": 0.99},
    {"activation": "relu", "noise": "learn"},
]


@pytest.mark.parametrize("options", FLEETS, ids=str)
def test_a_key_of_a_fleet_sets_aside_what_a_perceptron_does(options: dict[str, Any]) -> None:
    given = {"activation": "linear", **options}
    X, y = problem(400)
    keys = np.arange(400) % 2
    targets = y.copy()
    targets[300] = 1e12  # of key 0
    fleet = PerceptronFleet(D, **given).learn(X, targets, keys=keys)
    without = PerceptronFleet(D, **given).learn(np.delete(X, 300, axis=0), np.delete(y, 300), keys=np.delete(keys, 300))
    assert [fleet.perceptron(key).n_set_aside for key in (0, 1)] == [1, 0]
    for key in (0, 1):
        alone = BayesianPerceptron(D, **given).learn(X[keys == key], targets[keys == key])
        assert alone.n_set_aside == fleet.perceptron(key).n_set_aside
        np.testing.assert_allclose(fleet.perceptron(key).mean, alone.mean, rtol=1e-12)
    seen, expected = fleet.predict(X, keys=keys), without.predict(X, keys=keys)
    std = np.sqrt(expected.epistemic + expected.aleatoric)
    assert np.max(np.abs(seen.mean - expected.mean) / std) < 0.1
    assert fleet.outlier_probability(X[0], 1e12, keys=0) == 1.0


@pytest.mark.parametrize("options", FLEETS, ids=str)
def test_a_fleet_goes_on_bit_for_bit_across_rows_set_aside_and_a_restart(
    options: dict[str, Any], tmp_path: Path
) -> None:
    given = {"activation": "linear", **options}
    X, y = problem(320)
    keys = np.arange(320) % 2
    targets = np.where((np.arange(320) >= 200) & (keys == 0), 1e4 * y, y)
    whole = PerceptronFleet(D, **given).learn(X, targets, keys=keys)
    parts = PerceptronFleet(D, **given)
    for start, stop in ((0, 200), (200, 201), (201, 223), (223, 224), (224, 225), (225, 320)):
        parts.learn(X[start:stop], targets[start:stop], keys=keys[start:stop])
        onepass.save(parts, tmp_path / "fleet")
        parts = onepass.load(tmp_path / "fleet")
    for key in (0, 1):
        same(parts.perceptron(key), whole.perceptron(key))
    assert whole.perceptron(0).n_set_aside >= 12
    assert whole.perceptron(1).n_set_aside == 0


@pytest.mark.parametrize("noise", ["learn", 0.04])
def test_a_key_starts_over_as_a_perceptron_does(noise: Any) -> None:
    X, y = problem(300)
    targets = np.where(np.arange(300) < 100, y, 1e4 * y)
    fleet = PerceptronFleet(D, "linear", noise=noise).learn(X, targets, keys=np.zeros(300, int))
    alone = BayesianPerceptron(D, "linear", noise=noise).learn(X, targets)
    assert fleet.perceptron(0).n_set_aside == alone.n_set_aside == 12
    # A key's rows are not re-weighed after that, so that with a learned noise the two are only close.
    rtol = 0.05 if noise == "learn" else 1e-9
    np.testing.assert_allclose(fleet.perceptron(0).mean, alone.mean, rtol=rtol)


def test_after_starting_over_rows_are_re_weighed_again() -> None:
    X, y = problem(400)
    targets = np.where(np.arange(400) < 100, y, 1e4 * y)
    model = BayesianPerceptron(D, "linear", noise="learn").learn(X, targets)
    n_since = 300 - model.n_set_aside
    expected = np.sqrt(model.noise / n_since)  # inputs are standard normal, and the prior is wide by now
    np.testing.assert_allclose(np.sqrt(np.diag(model.cov)), expected, rtol=0.15)
    np.testing.assert_allclose(np.sqrt(np.diag(model.posterior().cov)), np.sqrt(np.diag(model.cov)), rtol=0.01)
