"""Networks whose layers have matrix-normal beliefs: what is added up, where it is exact, and what it is worth."""

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from onepass import BayesianMLPClassifier, BayesianNetwork, merge
from onepass.beliefs.kronecker import KroneckerGaussian
from onepass.layers import Conv2D
from onepass.merging import Merging, Rounds
from tests.helpers.merging import learned_apart, linear_rows

SHAPE = (3, 4)


def belief(seed: int = 0) -> KroneckerGaussian:
    rng = np.random.default_rng(seed)
    return KroneckerGaussian(rng.normal(size=SHAPE), rng.normal(size=(3, 3)), rng.normal(size=(4, 4)))


def whole_covariance(one: KroneckerGaussian) -> np.ndarray:
    return np.kron(one.output_root @ one.output_root.T, one.input_root @ one.input_root.T)


def wave(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + rng.normal(0, 0.1, n)


def error(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((model.predict(X).mean - y) ** 2)))


def same(one: BayesianNetwork, other: BayesianNetwork, tolerance: float) -> None:
    np.testing.assert_allclose(one.mean, other.mean, rtol=tolerance, atol=tolerance)
    for mine, theirs in zip(one.weight_variances, other.weight_variances, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=tolerance)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=tolerance, abs=tolerance)
    assert one.n_seen == other.n_seen


def test_natural_parameters_are_those_of_the_whole_precision_and_lead_back() -> None:
    one, centre = belief(), np.random.default_rng(1).normal(size=SHAPE)
    natural = one.natural(centre)
    precision, gap = np.linalg.inv(whole_covariance(one)), (one.mean - centre).ravel()
    np.testing.assert_allclose(natural.precision_mean.ravel(), precision @ gap)
    blocks = precision.reshape(*SHAPE, *SHAPE)
    over_inputs, over_outputs = np.einsum("uiuj->ij", blocks) / 3, np.einsum("uivi->uv", blocks) / 4
    np.testing.assert_allclose(natural.precision, np.concatenate([over_inputs.ravel(), over_outputs.ravel()]))
    log_det = np.linalg.slogdet(whole_covariance(one))[1]
    assert natural.log_volume == pytest.approx(0.5 * gap @ precision @ gap + 0.5 * log_det)
    back = KroneckerGaussian.from_natural(natural.precision, natural.precision_mean, centre)
    np.testing.assert_allclose(back.mean, one.mean)
    np.testing.assert_allclose(whole_covariance(back), whole_covariance(one), rtol=1e-9)


def test_a_sum_keeps_the_partial_traces_of_the_precisions() -> None:
    centre = np.zeros(SHAPE)
    summed = belief(0).natural(centre).precision + belief(1).natural(centre).precision
    again = KroneckerGaussian.from_natural(summed, np.ones(SHAPE), centre).natural(centre)
    np.testing.assert_allclose(again.precision, summed, rtol=1e-9)
    np.testing.assert_allclose(again.precision_mean, np.ones(SHAPE), rtol=1e-9)


def test_an_indefinite_or_singular_belief_has_no_such_parameters() -> None:
    centre = np.zeros(SHAPE)
    difference = belief(0).natural(centre).precision - belief(1).natural(centre).precision
    with pytest.raises(ValueError, match="not positive definite"):
        KroneckerGaussian.from_natural(difference, centre, centre)
    with pytest.raises(ValueError, match="known exactly"):
        KroneckerGaussian(centre, np.zeros((3, 3)), np.eye(4)).natural(centre)


@pytest.mark.parametrize("covariance", ["kronecker", ("full",)])
@pytest.mark.parametrize("outputs", [1, 2])
def test_linear_networks_merge_exactly(covariance: Any, outputs: int) -> None:
    """With several outputs of one noise the posterior is matrix-normal, and shards differ in one factor only."""
    X, y = linear_rows(600)
    Y = y if outputs == 1 else np.column_stack([y, -2.0 * y + X[:, 0]])
    prior = BayesianNetwork(4, hidden=(), n_outputs=outputs, noise=0.25, covariance=covariance).learn(X[:50], Y[:50])
    merged = merge(prior, learned_apart(prior, X[50:], Y[50:], 3))
    same(merged, copy.deepcopy(prior).learn(X[50:], Y[50:]), 1e-7)


def test_sites_are_a_group_and_order_makes_no_difference() -> None:
    X, y = wave(400)
    prior = BayesianNetwork(2, hidden=(6,), n_outputs=1, covariance="kronecker").learn(X[:100], y[:100])
    models = learned_apart(prior, X[100:], y[100:], 3)
    merging = Merging(prior)
    first, second, third = (merging.site(prior, model) for model in models)
    same(merging.merged(first + second - second), models[0], 1e-7)
    same(merging.merged(merging.nothing()), prior, 1e-9)
    straight = merge(prior, models)
    same(merge(prior, models[::-1]), straight, 1e-7)
    same(merge(prior, [merge(prior, models[:2]), models[2]]), straight, 1e-7)
    cavity = merging.cavity(first + second + third, third)
    assert cavity is not None
    np.testing.assert_allclose(cavity.mean, merge(prior, models[:2]).mean, rtol=1e-7)


def test_a_shard_without_rows_adds_nothing() -> None:
    X, y = wave(300)
    prior = BayesianNetwork(2, hidden=(6,), covariance="kronecker").learn(X[:100], y[:100])
    learned = copy.deepcopy(prior).learn(X[100:], y[100:])
    same(merge(prior, [learned, copy.deepcopy(prior)]), learned, 1e-8)


def test_a_sum_that_is_no_gaussian_is_refused() -> None:
    X, y = wave(300)
    prior = BayesianNetwork(2, hidden=(6,), covariance="kronecker")
    merging = Merging(prior)
    site = merging.site(prior, copy.deepcopy(prior).learn(X, y))
    with pytest.raises(ValueError, match="not positive definite"):
        merging.merged(merging.nothing() - site)
    assert merging.cavity(merging.nothing(), site) is None
    with pytest.raises(ValueError, match="known exactly"):
        Merging(BayesianNetwork(2, hidden=(6,), covariance="kronecker", prior_scale=0.0)).nothing()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("covariance", ["kronecker", ("kronecker", "full")], ids=str)
def test_networks_merge_layer_by_layer(covariance: Any, dtype: str) -> None:
    X, y = wave()
    prior = BayesianNetwork(2, hidden=(10,), covariance=covariance, dtype=dtype).learn(X[:200], y[:200])
    models = learned_apart(prior, X[200:1800], y[200:1800], 4)
    merged, whole = merge(prior, models), copy.deepcopy(prior).learn(X[200:1800], y[200:1800])
    assert merged.n_seen == 1800
    assert merged.mean.dtype == np.dtype(dtype)
    alone, together = error(models[0], X[1800:], y[1800:]), error(merged, X[1800:], y[1800:])
    assert together < alone
    assert together < 1.5 * error(whole, X[1800:], y[1800:])


def test_convolutions_merge() -> None:
    digits = load_digits()
    images, labels = digits.data / 16.0, digits.target
    prior = BayesianNetwork(
        (8, 8, 1), hidden=(Conv2D(4, 3), 16), n_outputs=10, observation="categorical", covariance="kronecker"
    ).learn(images[:300], labels[:300])
    models = learned_apart(prior, images[300:1300], labels[300:1300], 2)

    def right(model: BayesianNetwork) -> float:
        return float(np.mean(model.predict(images[1300:]).mean.argmax(axis=1) == labels[1300:]))

    assert right(merge(prior, models)) > max(right(prior), 0.8)


def test_many_shards_do_not_correct_one_error_many_times() -> None:
    """With full steps the second round of these shards ends at chance."""
    digits = load_digits()
    X, y = digits.data / 16.0, digits.target
    prior = BayesianNetwork(64, hidden=(20,), n_outputs=10, observation="categorical", covariance="kronecker")
    prior.learn(X[:200], y[:200])
    rounds, found = Rounds(prior, 8), []
    for _ in range(3):
        starts = rounds.starts()
        merged = rounds.take(
            [start and start.learn(X[200 + k : 1400 : 8], y[200 + k : 1400 : 8]) for k, start in enumerate(starts)]
        )
        found.append(float(np.mean(merged.predict(X[1400:]).mean.argmax(axis=1) == y[1400:])))
    assert found[2] > max(0.85, found[0])


@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"hidden": (5,), "covariance": "kronecker"}, 0.25),
        ({"hidden": (5,), "covariance": "diagonal"}, 0.25),
        ({"hidden": (5,), "covariance": "full"}, 1.0),
        ({"hidden": (), "covariance": "kronecker"}, 1.0),
    ],
    ids=str,
)
def test_only_networks_with_independent_layers_take_smaller_steps(settings: dict[str, Any], share: float) -> None:
    X, y = wave(60)
    prior = BayesianNetwork(2, **settings)
    merging = Merging(prior)
    site = merging.site(prior, copy.deepcopy(prior).learn(X, y))
    assert merging.step_size(merging.nothing(), site, 8) == 1.0  # the first round is what `merge` does
    assert merging.step_size(site, site, 8) == share
    assert merging.step_size(site, site, 2) == 1.0


def test_estimators_merge() -> None:
    digits = load_digits()
    X, y = digits.data, digits.target
    prior = BayesianMLPClassifier((16,), covariance="kronecker", members=2).fit(X[:300], y[:300])
    models = [copy.deepcopy(prior).partial_fit(X[rows], y[rows]) for rows in (slice(300, 800), slice(800, 1300))]
    merged = merge(prior, models)
    assert merged.n_seen_ == 1300
    assert merged.score(X[1300:], y[1300:]) > prior.score(X[1300:], y[1300:])
    other = BayesianMLPClassifier((16,), covariance="diagonal", members=2).fit(X[:300], y[:300])
    with pytest.raises(ValueError, match="model 0 has covariance"):
        merge(prior, [other])
