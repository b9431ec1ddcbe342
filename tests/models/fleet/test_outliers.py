"""Fleets that may not trust their targets: each key as a perceptron of its own, alarms, files and populations too."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass import BayesianPerceptron, CheckpointError, PerceptronFleet
from onepass.files.checkpoint import _encoded

N, D, KEYS = 900, 2, 6
SETTINGS: list[dict[str, Any]] = [
    {"activation": "linear", "noise": "learn", "cov": 25.0},
    {
        "activation": "linear",
        "noise": 0.1,
        "forgetting": 0.99,
        "cov": [[9.0, 1.0, 0.0], [1.0, 9.0, 2.0], [0.0, 2.0, 9.0]],
    },
    {"activation": "relu", "noise": 0.1, "cov": 25.0},
    {},
    {"activation": "step"},
    {"activation": "exp"},
]


def stream(options: dict[str, Any], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which one in twenty is wild, and whose level jumps in the middle."""
    rng = np.random.default_rng(seed)
    keys, X = rng.integers(KEYS, size=N), rng.normal(size=(N, D))
    score = X[:, 0] - X[:, 1] + np.where(np.arange(N) < N // 2, 3.0, -3.0) + 0.3 * rng.normal(size=N)
    wild = rng.random(N) < 0.05
    activation = options.get("activation", "sigmoid")
    if activation in ("sigmoid", "step"):
        return keys, X, ((score > 0) ^ wild).astype(float)
    if activation == "exp":
        return keys, X, np.where(wild, 1000.0, rng.poisson(np.exp(np.clip(score, -3, 3))))
    if activation == "relu":
        score += 5.0  # below zero it can't follow
    return keys, X, score + np.where(wild, 1e3 * rng.normal(size=N), 0.0)


def alike(one: BayesianPerceptron, other: BayesianPerceptron) -> None:
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-9, atol=1e-11)
    ours, theirs = (model.export_state()[1]["running"] for model in (one, other))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_a_key_is_a_perceptron_that_learned_its_rows(options: dict[str, Any]) -> None:
    keys, X, y = stream(options)
    fleet = PerceptronFleet(D, **options, outliers=0.05)
    distrust = fleet.outlier_probability(X[:1], y[:1], keys=keys[:1])
    prediction, found = fleet.predict_then_learn(X, y, keys=keys, return_outlier_probability=True)
    assert distrust == pytest.approx(found[:1])
    alarms = 0
    for key in range(KEYS):
        own = keys == key
        model = BayesianPerceptron(D, **options, outliers=0.05)
        seen, scores = model.predict_score_learn(X[own], y[own])
        np.testing.assert_allclose(prediction.mean[own], seen.mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(prediction.epistemic[own], seen.epistemic, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found[own], scores.outliers, rtol=1e-9, atol=1e-11)
        alike(fleet.perceptron(key), model)
        alarms += int((scores.changes > 0.5).sum())
        expected = model.outlier_probability(X, y)
        np.testing.assert_allclose(fleet.outlier_probability(X, y, keys=[key] * N), expected, rtol=1e-8, atol=1e-10)
    assert alarms >= KEYS or options.get("activation") != "linear"  # where there are none, the test would not test them
    assert isinstance(fleet.outlier_probability(X[0], y[0], keys=0), float)


def test_the_level_is_found_again_after_a_jump_and_not_lost_in_spikes() -> None:
    keys, X, y = stream(SETTINGS[0])
    fleet = PerceptronFleet(D, **SETTINGS[0], outliers=0.05)
    plain = PerceptronFleet(D, **SETTINGS[0])
    for one in (fleet, plain):
        one.learn(X, y, keys=keys)
    level = fleet.predict(np.zeros((KEYS, D)), keys=np.arange(KEYS)).mean
    np.testing.assert_allclose(level, -3.0, atol=0.3)
    assert np.abs(plain.predict(np.zeros((KEYS, D)), keys=np.arange(KEYS)).mean + 3.0).max() > 3.0


def test_memory_is_thirteen_numbers_more_and_only_with_outliers() -> None:
    keys, X, y = stream({"activation": "linear"})
    plain, robust = (
        PerceptronFleet(D, "linear", noise=1.0, outliers=share).learn(X, y, keys=keys) for share in (0.0, 0.01)
    )
    assert plain.nbytes == KEYS * 8 * (7 + 3 + 6 + 4)
    assert robust.nbytes == plain.nbytes + KEYS * 8 * (17 - 4)
    assert plain.export_state()[1]["trust"].shape == (KEYS, 4)
    assert robust.export_state()[1]["trust"].shape == (KEYS, 17)
    assert plain.outlier_probability(X, y, keys=keys).max() == 0.0


@pytest.mark.parametrize("cut", [301, 460])  # before and after the jump, with some keys alarmed
def test_files_spills_and_parts_go_on_bit_for_bit(cut: int, tmp_path: Path) -> None:
    options = SETTINGS[0]
    keys, X, y = stream(options)
    whole = PerceptronFleet(D, **options, outliers=0.05).learn(X, y, keys=keys)
    bounded = PerceptronFleet(D, **options, outliers=0.05, capacity=2, spill=tmp_path / "spill")
    for i in range(cut):
        bounded.learn(X[i], y[i], keys=keys[i])
    onepass.save(bounded, tmp_path / "fleet")
    one, *others = bounded.split(3)
    copies = [onepass.load(tmp_path / "fleet"), pickle.loads(pickle.dumps(bounded)), one.join(others)]
    for again in copies:
        again.learn(X[cut:], y[cut:], keys=keys[cut:])
        for key in range(KEYS):
            for mine, theirs in zip(_numbers(again, key), _numbers(whole, key), strict=True):
                np.testing.assert_array_equal(mine, theirs)


def _numbers(fleet: PerceptronFleet, key: int) -> list[np.ndarray]:
    arrays = fleet.perceptron(key).export_state()[1]
    return [arrays[name] for name in sorted(arrays)]


def test_a_single_perceptron_of_a_fleet_goes_on_like_the_fleet() -> None:
    keys, X, y = stream(SETTINGS[0])
    own = np.flatnonzero(keys == 0)
    half = len(own) // 2 + 3
    fleet = PerceptronFleet(D, **SETTINGS[0], outliers=0.05).learn(X[own[:half]], y[own[:half]], keys=keys[own[:half]])
    model = fleet.perceptron(0).learn(X[own[half:]], y[own[half:]])
    alike(model, fleet.learn(X[own[half:]], y[own[half:]], keys=keys[own[half:]]).perceptron(0))


def test_a_bad_row_after_an_alarm_teaches_nobody() -> None:
    keys, X, y = stream(SETTINGS[0])
    fleet = PerceptronFleet(D, **SETTINGS[0], outliers=0.05).learn(X[:440], y[:440], keys=keys[:440])
    before = fleet.export_state()[1]
    bad = X.copy()
    bad[-1] = 1e200
    with pytest.raises(ValueError, match="Nothing was learned"):
        fleet.learn(bad[440:], y[440:], keys=keys[440:])
    for name, array in fleet.export_state()[1].items():
        np.testing.assert_array_equal(array, before[name])


def test_new_keys_take_over_how_many_rows_the_population_distrusts() -> None:
    rng = np.random.default_rng(1)
    keys, X = rng.integers(40, size=4000), rng.normal(size=(4000, D))
    y = X[:, 0] + 0.1 * rng.normal(size=4000) + np.where(rng.random(4000) < 0.2, 1e3, 0.0)
    fleet = PerceptronFleet(D, "linear", noise=0.01, outliers=0.05).learn(X, y, keys=keys)
    population = fleet.population()
    shares = population._state.progress.trust.shares
    assert 1.0 - shares[0] == pytest.approx(0.125, abs=0.03)  # of 100 rows and the start's 100
    fleet.prior = population
    counts = fleet.prior._state.progress.trust.to_array()
    assert counts[:6].sum() == pytest.approx(100.0)
    assert counts[6:11].tolist() == [0.0] * 5
    assert counts[11] == np.inf
    # An alarm leads a key back to the prior that it started from.
    fleet.learn(np.zeros((30, D)), [0.0] * 10 + [50.0] * 20, keys=[99] * 30)
    single = fleet.prior.learn(np.zeros((30, D)), [0.0] * 10 + [50.0] * 20)
    alike(fleet.perceptron(99), single)


def test_a_prior_with_other_outliers_is_refused() -> None:
    fleet = PerceptronFleet(D, "linear", noise=1.0, outliers=0.05)
    with pytest.raises(ValueError, match=r"prior has outliers=0\.0 where the fleet has 0\.05"):
        fleet.prior = BayesianPerceptron(D, "linear", noise=1.0)
    with pytest.raises(ValueError, match=r"outliers must be a number in \[0, 0\.5\).*got 0\.5"):
        PerceptronFleet(D, outliers=0.5)


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [("trust", (0, 0), 0.0), ("trust", (1, 3), -1.0), ("trust", (0, 6), np.nan), ("prior_trust", (0, 1), np.inf)],
)
def test_trust_that_cannot_be_is_refused(name: str, index: tuple[int, int], value: float, tmp_path: Path) -> None:
    keys, X, y = stream({})
    parameters, arrays = PerceptronFleet(D, outliers=0.05).learn(X, y, keys=keys).export_state()
    arrays[name][index] = value
    (tmp_path / "model").write_bytes(_encoded("PerceptronFleet", parameters, arrays))
    with pytest.raises(CheckpointError, match="trust holds numbers that are not finite, or negative"):
        onepass.load(tmp_path / "model")
    arrays[name] = arrays[name][:, :7].copy()
    (tmp_path / "model").write_bytes(_encoded("PerceptronFleet", parameters, arrays))
    with pytest.raises(CheckpointError, match=r"trust has shape \(7,\) where \(17,\) was expected"):
        onepass.load(tmp_path / "model")
