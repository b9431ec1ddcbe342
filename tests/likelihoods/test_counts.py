"""Counts: moment matches against quadrature, probabilities that sum to 1, quantiles against sums."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import nbinom, poisson

from onepass import (
    BayesianCommittee,
    BayesianMLPRegressor,
    BayesianNetwork,
    BayesianPerceptron,
    BayesianPerceptronRegressor,
    PerceptronFleet,
)
from onepass._typing import FloatArray
from onepass.activations import as_activation
from onepass.likelihoods import Counts, NegativeBinomial, Poisson
from onepass.likelihoods.counts import count_cdf, count_log_probabilities, count_quantile, dispersion_of
from onepass.likelihoods.mixtures import Components
from tests.helpers.quadrature import tilted

EXP = as_activation("exp")
rng = np.random.default_rng(0)


def made_counts(n: int, dispersion: float, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    rate = np.exp(1.5 + X @ [0.4, -0.3, 0.0])
    return X, random.poisson(rate * (random.gamma(1 / dispersion, dispersion, n) if dispersion else 1.0)).astype(float)


def components(weights: FloatArray, means: FloatArray, variances: FloatArray, dispersions: FloatArray) -> Components:
    """Counts whose log rates have these moments, ``(k, n)``."""
    rates = EXP.moments(means, variances)
    noise = rates.mean + dispersions * (rates.mean**2 + rates.var)
    return Components(EXP, weights[:, None], rates.mean, rates.var, means, variances, noise, np.zeros((1, 1)))


def quantile(mean: float, var: float, dispersion: float, level: float) -> float:
    means, variances, dispersions = (np.array([[part]]) for part in (mean, var, dispersion))
    return float(count_quantile(components(np.ones(1), means, variances, dispersions), np.array([level]))[0])


@pytest.mark.parametrize("dispersion", [1e-3, 0.1, 1.0, 30.0])
def test_a_negative_binomial_match_is_that_of_quadrature(dispersion: float) -> None:
    shape = 1.0 / dispersion
    for count in (0.0, 1.0, 7.0, 300.0):

        def log_likelihood(a: FloatArray, y: float = count) -> FloatArray:
            return np.asarray(nbinom.logpmf(y, shape, 1.0 / (1.0 + dispersion * np.exp(np.minimum(a, 300.0)))))

        for mean in (-4.0, 0.0, 3.0):
            for var in (1e-3, 0.2, 5.0, 60.0):
                truth = tilted(log_likelihood, mean, var)
                match = NegativeBinomial(dispersion).moment_match(EXP, mean, var, count)
                assert match.log_z == pytest.approx(truth.log_z, rel=1e-7, abs=1e-7)
                assert (mean + match.score * var - truth.mean) / np.sqrt(truth.var) == pytest.approx(0.0, abs=1e-6)
                assert var * match.variance_ratio == pytest.approx(truth.var, rel=1e-6)
                assert 1.0 - match.information * var == pytest.approx(match.variance_ratio, rel=1e-6, abs=1e-9)


def test_without_dispersion_it_is_poisson() -> None:
    mean, var, y = rng.normal(1.0, 2.0, 50), rng.gamma(1.0, 2.0, 50), rng.poisson(4.0, 50).astype(float)
    plain = Poisson().moment_match(EXP, mean, var, y)
    for part, same in zip(plain, NegativeBinomial(1e-12).moment_match(EXP, mean, var, y), strict=True):
        np.testing.assert_allclose(same, part, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("activation", ["exp", "softplus"])
@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(0.4)], ids=["poisson", "negative_binomial"])
def test_probabilities_of_all_counts_sum_to_one(likelihood: Counts, activation: str) -> None:
    counts = np.arange(30_000.0)
    for mean, var in ((0.0, 0.1), (2.0, 0.5), (-3.0, 2.0)):
        match = likelihood.moment_match(as_activation(activation), mean, var, counts)
        assert np.exp(match.log_z).sum() == pytest.approx(1.0, abs=1e-5)


def test_whatever_the_belief_a_match_is_one() -> None:
    random, n = np.random.default_rng(0), 3000
    mean, var = random.choice([1.0, 1e2, 1e5], n) * random.normal(size=n) * 3.0, 10 ** random.uniform(-22, 13, n)
    counts = np.where(random.random(n) < 0.3, 0.0, np.floor(10 ** random.uniform(0, 9, n)))
    for likelihood in (Poisson(), NegativeBinomial(10 ** random.uniform(-14, 7, n))):
        match = likelihood.moment_match(EXP, mean, var, counts)
        assert np.isfinite(np.array(match)).all()
        assert match.log_z.max() < 1e-6  # a probability, also where the log rate is in the thousands
        assert (match.variance_ratio > 0.0).all()


def test_a_rate_beyond_all_bounds_has_the_probability_of_its_limit() -> None:
    for mean in (200.0, 400.0, 2000.0):  # of which e^mean d is all that counts: log p = -log(e^mean d)/d
        found = NegativeBinomial(0.5).moment_match(EXP, mean, 1e-12, 0.0).log_z
        assert found == pytest.approx(-2.0 * (mean + np.log(0.5)), rel=1e-9)


def test_the_evidence_of_counts_with_unknown_dispersion_is_a_probability() -> None:
    model = BayesianPerceptron(1, "exp", observation="negative_binomial", cov=0.25)
    counts = np.concatenate([np.arange(300.0), np.round(np.geomspace(300, 1e15, 1200))])
    width = np.diff(counts, append=counts[-1])
    for y in (3.0, 0.0):
        logs = model.log_predictive(np.full((len(counts), 1), 0.5), counts)
        assert np.exp(logs) @ width == pytest.approx(1.0, abs=3e-3)  # the tail is summed in steps
        at = logs[int(y)]
        before = model.log_evidence
        model.learn([0.5], y)
        assert model.log_evidence - before == pytest.approx(at)


def test_dispersion_is_learned() -> None:
    for dispersion in (0.0, 0.05, 0.5, 2.0):
        X, y = made_counts(2000, dispersion)
        model = BayesianPerceptron(3, "exp", observation="negative_binomial", cov=[16, 1, 1, 1]).learn(X, y)
        network = BayesianNetwork(3, (), observation="negative_binomial", intercept_scale=4.0).learn(X, y)
        for found in (model.noise, network.noise_var[0]):
            assert found == pytest.approx(dispersion, rel=0.3) if dispersion else found < 0.04
        assert model.mean == pytest.approx([1.5, 0.4, -0.3, 0.0], abs=0.15)
        plain = BayesianPerceptron(3, "exp", cov=[16, 1, 1, 1]).learn(X, y)
        gained = model.log_evidence - plain.log_evidence
        assert gained > 10.0 if dispersion else gained > -12.0


def test_a_perceptron_without_hidden_layers_is_the_network_of_counts() -> None:
    X, y = made_counts(200, 0.3)
    options: dict[str, Any] = {"observation": "negative_binomial", "noise": 0.3}
    one = BayesianPerceptron(3, "exp", **options).learn(X, y)
    other = BayesianNetwork(3, (), **options).learn(X, y)
    np.testing.assert_allclose(other.weights[0][0], one.mean, rtol=1e-6)
    assert other.log_evidence == pytest.approx(one.log_evidence)
    np.testing.assert_allclose(other.predict(X).moments[:2], one.predict(X).moments[:2], rtol=1e-6)
    np.testing.assert_array_equal(other.interval(X), one.interval(X))
    reference = BayesianNetwork(3, (), kernel="reference", **options).learn(X, y)
    np.testing.assert_allclose(reference.mean, other.mean, atol=1e-9)


@pytest.mark.parametrize("dispersion", [0.0, 0.02, 0.5, 5.0])
def test_distribution_and_quantiles_are_those_of_the_sum(dispersion: float) -> None:
    counts = np.arange(4000.0)
    for mean, var in ((-1.0, 0.01), (1.0, 0.3), (2.5, 0.5), (4.0, 0.001)):
        means, variances, dispersions = (np.full(len(counts), part) for part in (mean, var, dispersion))
        total = np.cumsum(np.exp(count_log_probabilities(means, variances, dispersions, counts)))
        np.testing.assert_allclose(count_cdf(counts, means, variances, dispersions)[:200], total[:200], atol=1e-4)
        for level in (0.025, 0.5, 0.9):
            found = quantile(mean, var, dispersion, level)
            off = total[int(found)] - level
            assert off >= -2e-4
            assert found == 0 or total[int(found) - 1] < level + 2e-4
    assert count_cdf(np.array([-1.0]), np.zeros(1), np.ones(1), np.zeros(1))[0] == 0.0


def test_a_narrow_count_around_a_wide_rate_has_the_quantile_of_the_rate() -> None:
    many = np.exp(np.random.default_rng(0).normal(9.0, 1.5, 400_000))
    drawn = np.quantile(poisson.rvs(many, random_state=1), [0.05, 0.5, 0.95])
    found = [quantile(9.0, 2.25, 0.0, level) for level in (0.05, 0.5, 0.95)]
    np.testing.assert_allclose(found, drawn, rtol=0.02)


def test_a_quantile_of_a_mixture_lies_between_those_of_its_parts() -> None:
    means, variances, dispersions = np.array([[0.0], [3.0]]), np.array([[0.1], [0.2]]), np.array([[0.0], [0.5]])
    weights = np.array([0.3, 0.7])
    found = count_quantile(components(weights, means, variances, dispersions), np.array([0.4]))[0]
    below, up_to = (weights @ count_cdf(np.full((2, 1), y), means, variances, dispersions) for y in (found - 1, found))
    assert below[0] < 0.4 <= up_to[0]


def test_intervals_of_new_counts_hold() -> None:
    X, y = made_counts(1500, 0.3, seed=1)
    models: list[Any] = [
        BayesianPerceptron(3, "exp", observation="negative_binomial", cov=[16, 1, 1, 1]),
        BayesianNetwork(3, (8,), observation="negative_binomial"),
        BayesianCommittee(3, (5,), members=2, observation="negative_binomial"),
    ]
    for model in models:
        model.learn(X[:1000], y[:1000])
        low, high = model.interval(X[1000:], 0.9)
        assert 0.86 < ((low <= y[1000:]) & (y[1000:] <= high)).mean() < 0.96
        seen = model.predict(X[1000:])
        ratio = np.mean((y[1000:] - seen.mean) ** 2 / seen.var)
        assert ratio == pytest.approx(1.0, abs=0.25)
    one = models[-1].members[0]
    assert np.isscalar(one.interval(X[0])[0])
    drawn = one.sample_output(X[:2], 2000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), one.predict(X[:2]).mean, rtol=0.05)


def test_intervals_of_a_rate_that_is_no_exponential_are_those_of_the_perceptron() -> None:
    X, y = made_counts(200, 0.3)
    model = BayesianPerceptronRegressor(
        "softplus", observation="negative_binomial", prior_scale=3.0, standardize=False
    ).fit(X, y)
    core = BayesianPerceptron(3, "softplus", observation="negative_binomial", cov=[16.0, 9.0, 9.0, 9.0]).learn(X, y)
    np.testing.assert_array_equal(model.predict_interval(X[:20]), core.interval(X[:20]))


def test_far_from_the_data_the_mean_of_a_count_stays_within_reason_of_its_median() -> None:
    X, y = made_counts(50, 0.3)
    model = BayesianPerceptron(3, "exp", observation="negative_binomial").learn(X, y)
    seen = model.predict(np.array([0.0, 0.0, 60.0]))
    assert seen.pre_var > 9.0
    assert seen.mean == pytest.approx(np.exp(seen.pre_mean + 2.0))
    many = model.predict(np.array([[0.0, 0.0, 60.0]]))
    assert many.mean[0] == pytest.approx(seen.mean)
    assert dispersion_of(*(np.asarray(p) for p in (seen.mean, seen.epistemic, seen.aleatoric))) == pytest.approx(
        model.noise
    )
    low, high = model.interval(np.array([0.0, 0.0, 60.0]))
    assert low < np.exp(seen.pre_mean) < high


@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_what_is_no_count_is_refused_and_what_is_huge_is_learned(name: str) -> None:
    models: list[Any] = [BayesianPerceptron(1, "exp", observation=name), BayesianNetwork(1, (3,), observation=name)]
    for model in models:
        for bad in (-1.0, 0.5):
            with pytest.raises(ValueError, match=rf"y must hold counts 0, 1, 2, ... for observation='{name}', got"):
                model.learn([[1.0], [2.0]], [1.0, bad])
        model.learn([[1.0], [2.0], [0.5]], [1e9, 0.0, 1e12])
        assert np.isfinite(model.log_evidence)
        assert np.isfinite(model.mean).all()
        assert np.isfinite(model.predict([[1.0], [100.0]]).mean).all()
        assert np.isfinite(model.interval([[1.0], [100.0]])).all()


def test_settings_of_counts_are_checked() -> None:
    with pytest.raises(ValueError, match="never negative"):
        BayesianPerceptron(1, "linear", observation="negative_binomial")
    with pytest.raises(ValueError, match="noise can be given only with observation='gaussian' or 'negative_binomial'"):
        BayesianPerceptron(1, "exp", observation="poisson", noise=0.1)
    models = (
        BayesianPerceptronRegressor("exp", observation="poisson", noise=0.1, standardize=False),
        BayesianMLPRegressor((3,), noise=0.1),
    )
    for model in models:
        with pytest.raises(ValueError, match=r"got noise=0\.1 with observation='poisson'"):
            model.set_params(observation="poisson").fit([[1.0], [2.0]], [1, 2])
    with pytest.raises(ValueError, match=r"got noise=0\.1 with observation='poisson'"):
        BayesianNetwork(1, (3,), observation="poisson", noise=0.1)
    with pytest.raises(ValueError, match="n_outputs must be 1 for observation='poisson', got 2"):
        BayesianNetwork(1, (3,), 2, observation="poisson")
    assert BayesianPerceptron(1, "exp", observation="negative_binomial", noise=0.2).noise == 0.2
    assert BayesianNetwork(1, (3,), observation="poisson").noise_var[0] == 0.0


def test_copies_files_and_fleets_of_counts() -> None:
    X, y = made_counts(100, 0.3)
    model = BayesianPerceptron(3, "exp", observation="negative_binomial").learn(X, y)
    copies = [pickle.loads(pickle.dumps(model)), BayesianPerceptron.from_state(*model.export_state())]
    np.testing.assert_array_equal(*(copy.learn(X, y).mean for copy in copies))
    network = BayesianNetwork(3, (4,), observation="negative_binomial").learn(X, y)
    again = BayesianNetwork.from_state(*network.export_state())
    assert again.learn(X, y).log_evidence == network.learn(X, y).log_evidence
    fleet = PerceptronFleet(3, "exp", observation="negative_binomial").learn(X, y, keys=["a"] * 100)
    assert fleet.perceptron("a").log_evidence == pytest.approx(model.log_evidence)
    np.testing.assert_allclose(fleet.predict(X[:1], keys=["a"]).aleatoric, model.predict(X[:1]).aleatoric)
