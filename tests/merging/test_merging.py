import copy
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass
from onepass import BayesianNetwork, BayesianPerceptron, Quadrature, merge
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.engine.step import NOISE_START_WEIGHT
from onepass.files.registry import exported
from onepass.merging import Merging
from tests.helpers.merging import close, labelled_rows, learned_apart, linear_rows


@pytest.mark.parametrize("form", [FullGaussian, DiagonalGaussian])
def test_natural_parameters_there_and_back(form: Any) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    cov = root @ root.T if form is FullGaussian else np.square(root[0])
    belief, centre = form(rng.normal(size=5), cov), rng.normal(size=5)
    natural = belief.natural(centre)
    whole = cov if form is FullGaussian else np.diag(cov)
    precision = natural.precision if form is FullGaussian else np.diag(natural.precision)
    np.testing.assert_allclose(precision @ whole, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(natural.precision_mean, precision @ (belief.mean - centre))
    gap = belief.mean - centre
    assert natural.log_volume == pytest.approx(0.5 * gap @ precision @ gap + 0.5 * np.linalg.slogdet(whole)[1])
    back = form.from_natural(natural.precision, natural.precision_mean, centre)
    np.testing.assert_allclose(back.mean, belief.mean)
    np.testing.assert_allclose(back.cov, belief.cov)


def test_an_indefinite_or_singular_belief_has_no_such_parameters() -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        FullGaussian.from_natural(np.diag([1.0, -1.0]), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="not positive definite"):  # a pivot that is rounding alone
        FullGaussian.from_natural(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-16]]), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="not positive definite"):
        DiagonalGaussian.from_natural(np.array([1.0, 0.0]), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="known exactly"):
        FullGaussian(np.zeros(2), np.array([1.0, 0.0])).natural(np.zeros(2))
    with pytest.raises(ValueError, match="known exactly"):
        DiagonalGaussian(np.zeros(2), np.array([1.0, 0.0])).natural(np.zeros(2))


@pytest.mark.parametrize("options", [{}, {"kernel": "blocks"}, {"mean": [1e3, 1, 2, 3, 4.0]}, {"bias": False}], ids=str)
@pytest.mark.parametrize("parts", [1, 2, 7])
def test_linear_models_merge_to_what_one_would_have_learned(options: dict[str, Any], parts: int) -> None:
    X, y = linear_rows(3000)
    prior = BayesianPerceptron(4, "linear", noise=0.25, cov=4.0, **options)
    prior.learn(X[:100], y[:100])  # a prior may know something already
    whole = copy.deepcopy(prior).learn(X[100:], y[100:])
    close(merge(prior, learned_apart(prior, X[100:], y[100:], parts)), whole, 1e-9)


def test_merging_keeps_its_digits_over_many_precise_rows_of_uneven_scale() -> None:
    X, y = linear_rows(200_000)
    scales = np.array([1e-3, 1.0, 1e2, 1e3])
    prior = BayesianPerceptron(4, "linear", noise=1e-4, cov=1e4)
    whole = copy.deepcopy(prior).learn(X * scales, y)
    merged = merge(prior, learned_apart(prior, X * scales, y, 8))
    deviations = np.sqrt(np.diag(whole.cov))
    np.testing.assert_allclose(merged.mean / deviations, whole.mean / deviations, rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(merged.cov)), deviations, rtol=1e-9)


def test_the_prior_and_the_models_stay_as_they_are() -> None:
    X, y = labelled_rows(200)
    prior = BayesianPerceptron(4)
    models = learned_apart(prior, X, y, 3)
    before = [exported(model) for model in (prior, *models)]
    merged = merge(prior, models).learn(X, y)
    assert merged.n_seen == 400
    for (_, arrays), model in zip(before, (prior, *models), strict=True):
        for name, array in exported(model)[1].items():
            np.testing.assert_array_equal(array, arrays[name])


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.permutations(range(4)), st.sampled_from(["labels", "noise", "diagonal"]))
def test_the_order_and_grouping_of_models_make_no_difference(seed: int, order: list[int], kind: str) -> None:
    X, y = labelled_rows(120, seed=seed) if kind == "labels" else linear_rows(120, seed=seed)
    options: dict[str, Any] = {} if kind == "labels" else {"activation": "relu", "noise": "learn"}
    prior = BayesianPerceptron(4, **options, covariance="diagonal" if kind == "diagonal" else "full")
    models = learned_apart(prior, X, y, 4)
    straight = merge(prior, models)
    close(merge(prior, [models[k] for k in order]), straight, 1e-8)
    pairs = [merge(prior, [models[k] for k in order[:2]]), merge(prior, [models[k] for k in order[2:]])]
    close(merge(prior, pairs), straight, 1e-8)


def test_learned_noise_is_pooled_by_the_rows_it_rests_on() -> None:
    X, y = linear_rows(900)
    prior = BayesianPerceptron(4, "linear", noise="learn", covariance="diagonal")
    short, long = copy.deepcopy(prior).learn(X[:100], y[:100]), copy.deepcopy(prior).learn(X[100:], y[100:])
    merged = merge(prior, [short, long])
    weights = [exported(model)[1]["running"][1] - NOISE_START_WEIGHT for model in (short, long)]
    assert merged.noise == pytest.approx(np.average([short.noise, long.noise], weights=weights))
    assert merged.export_state()[1]["running"][1] == pytest.approx(NOISE_START_WEIGHT + sum(weights))


def test_shards_that_learn_their_noise_say_together_what_all_rows_say() -> None:
    X, y = linear_rows(900)
    prior = BayesianPerceptron(4, "linear", noise="learn")
    merged = merge(prior, [copy.deepcopy(prior).learn(X[rows], y[rows]) for rows in np.split(np.arange(900), [9, 100])])
    whole = copy.deepcopy(prior).learn(X, y)
    asked = merge(prior, [whole])  # so that all of its rows are asked about their noise
    # What rows say about their noise is a sum over nodes around what was guessed, which has some eight digits.
    close(merged, asked, 2e-8)
    assert (merged.noise, merged.log_noise_var) == pytest.approx((asked.noise, asked.log_noise_var), rel=2e-8)
    assert merged.log_evidence == pytest.approx(whole.log_evidence, rel=2e-8)
    std = np.sqrt(np.diag(whole.cov))
    assert np.max(np.abs(merged.posterior().mean - whole.posterior().mean) / std) < 1e-6
    assert np.max(np.abs(merged.mean - whole.mean) / std) < 2e-3  # whose noises are of different rows


def test_diagonal_beliefs_merge_weight_by_weight() -> None:
    """Rows that each touch one weight are exact even with independent weights."""
    rng = np.random.default_rng(0)
    X = np.eye(3)[rng.integers(3, size=600)]
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=600)
    prior = BayesianPerceptron(3, "linear", noise=1.0, bias=False, covariance="diagonal")
    close(merge(prior, learned_apart(prior, X, y, 5)), copy.deepcopy(prior).learn(X, y), 1e-9)


def test_a_float32_model_stays_one() -> None:
    X, y = linear_rows(500)
    prior = BayesianPerceptron(4, "linear", noise=1.0, dtype="float32")
    merged = merge(prior, learned_apart(prior, X, y, 2))
    assert merged.cov.dtype == np.float32
    np.testing.assert_allclose(merged.mean, copy.deepcopy(prior).learn(X, y).mean, rtol=1e-4)


@pytest.mark.parametrize("covariance", ["full", "layer", "neuron", "diagonal"])
def test_networks_merge_block_by_block(covariance: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 1))
    y = np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, 2000)
    prior = BayesianNetwork(1, hidden=(10,), covariance=covariance).learn(X[:200], y[:200])
    merged = merge(prior, learned_apart(prior, X[200:1800], y[200:1800], 4))
    assert merged.n_seen == 1800

    def error(model: BayesianNetwork) -> float:
        return float(np.sqrt(np.mean((model.predict(X[1800:]).mean - y[1800:]) ** 2)))

    assert error(merged) < error(prior)
    whole = copy.deepcopy(prior).learn(X[200:1800], y[200:1800])
    assert error(merged) < 1.5 * error(whole)


def test_a_linear_network_merges_exactly() -> None:
    X, y = linear_rows(600)
    prior = BayesianNetwork(4, hidden=(), noise=0.25)
    merged, whole = merge(prior, learned_apart(prior, X, y, 3)), copy.deepcopy(prior).learn(X, y)
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(merged.cov[0], whole.cov[0], rtol=1e-9, atol=1e-15)
    assert merged.log_evidence == pytest.approx(whole.log_evidence)


def test_estimators_merge_with_their_standardisation() -> None:
    X, y = linear_rows(1000)
    kinds = np.digitize(y, [-2.0, 2.0])
    start = onepass.BayesianPerceptronClassifier(standardize=True, prior_scale="auto").fit(X[:200], kinds[:200])
    parts = [copy.deepcopy(start).partial_fit(X[k : k + 400], kinds[k : k + 400]) for k in (200, 600)]
    merged, whole = merge(start, parts), copy.deepcopy(start).partial_fit(X[200:], kinds[200:])
    assert merged.n_seen_ == 1000
    np.testing.assert_allclose(merged.predict_proba(X), whole.predict_proba(X), atol=0.05)
    assert merged.prior_weights_.sum() == pytest.approx(1.0)
    regressor = onepass.BayesianPerceptronRegressor(noise=0.25, standardize=True).fit(X[:200], y[:200])
    parts = [copy.deepcopy(regressor).partial_fit(X[k : k + 400], y[k : k + 400]) for k in (200, 600)]
    merged, whole = merge(regressor, parts), copy.deepcopy(regressor).partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(merged.coef_, whole.coef_, rtol=1e-9)
    assert merged.log_evidence_ == pytest.approx(whole.log_evidence_)
    with pytest.raises(ValueError, match=re.escape("standardisation (centre of the inputs)")):
        merge(
            regressor, [onepass.BayesianPerceptronRegressor(noise=0.25, standardize=True).fit(X[300:700], y[300:700])]
        )
    cold = onepass.BayesianPerceptronRegressor(standardize=True).fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="warm-up of 100 rows"):
        merge(cold, [cold])


BASE: dict[str, Any] = {"activation": "relu", "noise": 0.1}


DIFFERENT: list[tuple[dict[str, Any], str]] = [
    ({"cov": 2.0}, "did not start from the given prior"),
    ({"mean": np.ones(5)}, "did not start from the given prior"),
    ({"noise": 0.2}, "noise=0.2 where the prior has 0.1"),
    ({"noise": "learn"}, "noise='learn' where the prior has 0.1"),
    ({"activation": "linear"}, "activation="),
    ({"activation": "sigmoid", "noise": None}, "activation="),
    ({"covariance": "diagonal"}, "covariance='diagonal' where the prior has 'full'"),
    ({"bias": False}, "bias=False where the prior has True"),
    ({"update": "kalman"}, "update='kalman' where the prior has 'adf'"),
    ({"dtype": "float32"}, "dtype='float32' where the prior has 'float64'"),
    ({"forgetting": 0.99}, "forgetting=0.99 favours the last rows"),
    ({"process_noise": 1e-3}, "process_noise lets the weights wander"),
    ({"noise": "learn", "noise_window": 10}, "noise="),
]


@pytest.mark.parametrize(("options", "words"), DIFFERENT, ids=[str(options) for options, _ in DIFFERENT])
def test_models_that_differ_are_refused_by_name(options: dict[str, Any], words: str) -> None:
    prior = BayesianPerceptron(4, **BASE)
    other = BayesianPerceptron(4, **{**BASE, **options})
    y = np.array([1.0, 0.0])
    other.learn(np.ones((2, 4)), y)
    with pytest.raises(ValueError, match=f"model 1.*{re.escape(words)}"):
        merge(prior, [copy.deepcopy(prior).learn(np.ones((2, 4)), y), other])


def test_what_cannot_be_merged_is_refused() -> None:
    prior = BayesianPerceptron(4)
    with pytest.raises(ValueError, match="n_features=3 where the prior has 4"):
        merge(prior, [BayesianPerceptron(3)])
    with pytest.raises(ValueError, match="at least one model"):
        merge(prior, [])
    with pytest.raises(TypeError, match="model 0 must be a BayesianPerceptron"):
        merge(prior, [BayesianNetwork(4)])
    with pytest.raises(TypeError, match="prior must be one of BayesianMLPClassifier"):
        merge("prior", [prior])
    with pytest.raises(ValueError, match="fewer than the 10 of the prior"):
        merge(copy.deepcopy(prior).learn(np.ones((10, 4)), np.ones(10)), [prior])
    with pytest.raises(ValueError, match="the prior can't be merged: forgetting"):
        Merging(BayesianPerceptron(4, forgetting=0.9))
    with pytest.raises(ValueError, match="noise_window favours"):
        Merging(BayesianPerceptron(4, "relu", noise="learn", noise_window=5))
    with pytest.raises(ValueError, match="known exactly"):
        merge(BayesianPerceptron(4, cov=0.0), [BayesianPerceptron(4, cov=0.0)])
    with pytest.raises(TypeError, match="only models that can be saved"):
        Merging(BayesianPerceptron(4, Quadrature(np.sin), noise=0.1))
    with pytest.raises(ValueError, match="seed=1 where the prior has 0"):
        merge(BayesianNetwork(2), [BayesianNetwork(2, seed=1)])
    with pytest.raises(ValueError, match="forgetting"):
        Merging(BayesianNetwork(2, forgetting=0.9))


@pytest.mark.parametrize("covariance", ["full", "layer", "neuron", "diagonal"])
def test_networks_whose_noise_depends_on_the_input_merge_block_by_block(covariance: str) -> None:
    X, y = linear_rows(400, d=3)
    prior = BayesianNetwork(3, (5,), covariance=covariance, observation="heteroscedastic", seed=3).learn(
        X[:200], y[:200]
    )
    alone = copy.deepcopy(prior).learn(X[200:], y[200:])
    merged = merge(prior, [alone])  # one model's change over the prior is that model again
    np.testing.assert_allclose(merged.mean, alone.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(merged.predict(X).aleatoric, alone.predict(X).aleatoric, rtol=1e-6)
    assert merge(prior, learned_apart(prior, X[200:], y[200:], 2)).n_seen == 400


def test_estimators_of_several_members_merge_with_their_weights() -> None:
    X, y = linear_rows(400, d=3)
    prior = onepass.BayesianMLPRegressor((5,), members=3, warm_up=50).fit(X[:100], y[:100])
    models = [copy.deepcopy(prior).partial_fit(X[part], y[part]) for part in (slice(100, 200), slice(200, 400))]
    merged = merge(prior, models)
    one, other, pooled = (model._learner.state.mixtures[0]._weighting.arrays for model in (*models, merged))
    np.testing.assert_allclose(pooled["weights"], (one["weights"] + 2 * other["weights"]) / 3, rtol=1e-12)
    assert pooled["count"][0] == 3.0 + 400.0
    for k, member in enumerate(merged._learner.state.mixtures[0].members):
        alone = merge(
            prior._learner.state.mixtures[0].members[k],
            [model._learner.state.mixtures[0].members[k] for model in models],
        )
        np.testing.assert_allclose(member.mean, alone.mean, rtol=1e-10, atol=1e-12)
    merged.partial_fit(X, y)
    assert merged.score(X, y) > 0.5


def test_merge_says_which_argument_is_wrong() -> None:
    X, y = linear_rows(40)
    prior = BayesianPerceptron(4, "linear", noise=0.25)
    models = learned_apart(prior, X, y, 2)
    close(merge(prior, (model for model in models)), merge(prior, models), 1e-12)
    with pytest.raises(ValueError, match="at least one model"):
        merge(prior, iter(()))
    with pytest.raises(TypeError, match="models must be a list of models, got BayesianPerceptron"):
        merge(prior, models[0])
    with pytest.raises(ValueError, match=r"models\[2\] is the same object as models\[0\]"):
        merge(prior, [*models, models[0]])
    cold = onepass.BayesianPerceptronRegressor(standardize=False)
    with pytest.raises(ValueError, match="the prior has not been fitted; fit it to some rows before you copy it"):
        merge(cold, [onepass.BayesianPerceptronRegressor(standardize=False).fit(X, y)])


def test_models_that_did_not_start_from_the_prior_are_refused_even_if_they_saw_as_many_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(float)
    siblings = [onepass.BayesianPerceptron(2).learn(X[k::4], y[k::4]) for k in range(4)]
    with pytest.raises(ValueError, match=r"model 0 has learned no more rows than the prior but has a different belief"):
        onepass.merge(siblings[0], siblings[1:])
