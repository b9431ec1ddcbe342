"""`Prediction` against SciPy's distributions, against draws, and against what models score."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import expon, nbinom, norm

from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture, PerceptronFleet
from onepass.activations import as_activation
from onepass.likelihoods import Gaussian
from onepass.models.distribution import Family, LinearUnits, Prediction
from onepass.models.prediction import PredictedMoments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
NUMBERS = X @ [1.0, -2.0] + 0.3 * RNG.normal(size=80)
LABELS = (NUMBERS > 0.0).astype(float)
COUNTS = RNG.poisson(np.exp(0.5 + 0.4 * X[:, 0])).astype(float)
MODELS: dict[str, tuple[Any, np.ndarray]] = {
    "perceptron": (lambda: BayesianPerceptron(2, "linear", noise=0.1), NUMBERS),
    "learned noise": (lambda: BayesianPerceptron(2, "linear", noise="learn"), NUMBERS),
    "outliers": (lambda: BayesianPerceptron(2, "linear", noise="learn", outliers=0.05), NUMBERS),
    "labels": (lambda: BayesianPerceptron(2), LABELS),
    "counts": (lambda: BayesianPerceptron(2, "exp", observation="negative_binomial"), COUNTS),
    "network": (lambda: BayesianNetwork(2, (5,)), NUMBERS),
    "network of labels": (lambda: BayesianNetwork(2, (5,), observation="bernoulli"), LABELS),
    "network of counts": (lambda: BayesianNetwork(2, (5,), observation="poisson"), COUNTS),
    "own noise": (lambda: BayesianNetwork(2, (5,), observation="heteroscedastic"), NUMBERS),
    "drift": (lambda: Mixture.over_drift(BayesianPerceptron, 2, "linear", noise="learn"), NUMBERS),
    "drift of labels": (lambda: Mixture.over_drift(BayesianNetwork, 2, (5,), observation="bernoulli"), LABELS),
    "committee": (lambda: BayesianCommittee(2, (5,), members=3), NUMBERS),
}
CONTINUOUS = [name for name, (_, y) in MODELS.items() if y is NUMBERS]


def learned(name: str) -> tuple[Any, np.ndarray]:
    make, y = MODELS[name]
    return make().learn(X[:60], y[:60]), y


@pytest.mark.parametrize("name", MODELS)
def test_densities_are_those_that_models_score(name: str) -> None:
    model, y = learned(name)
    seen = model.predict(X[60:])
    np.testing.assert_allclose(seen.logpdf(y[60:]), model.log_predictive(X[60:], y[60:]), rtol=1e-12)
    np.testing.assert_allclose(seen.pdf(y[60:]), np.exp(model.log_predictive(X[60:], y[60:])), rtol=1e-12)
    assert model.predict(X[60]).logpdf(y[60]) == pytest.approx(float(seen.logpdf(y[60:])[0]), rel=1e-9)
    before = model.predict(X[60])
    expected = before.logpdf(y[60])
    _, scores = model.predict_score_learn(X[60:61], y[60:61])
    assert float(scores.log_densities[0]) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(RuntimeError, match="has learned 1 rows since"):
        before.logpdf(y[60])


@pytest.mark.parametrize("name", MODELS)
def test_intervals_are_those_of_the_model_for_one_row_and_for_many(name: str) -> None:
    model, _ = learned(name)
    low, high = model.predict(X[60:]).interval(0.8)
    np.testing.assert_array_equal((low, high), model.interval(X[60:], 0.8))
    one = model.predict(X[60]).interval(0.8)
    np.testing.assert_allclose(one, (low[0], high[0]), rtol=1e-7)
    assert all(type(side) is float for side in one)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_quantiles_invert_the_distribution_function_and_limit_the_interval(name: str) -> None:
    seen = learned(name)[0].predict(X[60:])
    for q in (1e-6, 0.1, 0.5, 0.975):
        np.testing.assert_allclose(seen.cdf(seen.ppf(q)), q, rtol=1e-8)
    np.testing.assert_allclose(seen.interval(0.9), seen.ppf([[0.05], [0.95]]), rtol=1e-12)
    assert seen.cdf(np.zeros((3, 20))).shape == (3, 20)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_have_the_moments_and_the_distribution(name: str) -> None:
    seen = learned(name)[0].predict(X[60:63])
    drawn = seen.sample(40_000, 0)
    assert drawn.shape == (40_000, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), seen.mean, atol=0.03 * seen.std.max())
    np.testing.assert_allclose(drawn.std(axis=0), seen.std, rtol=0.05)
    np.testing.assert_allclose((drawn <= seen.ppf(0.9)).mean(axis=0), 0.9, atol=0.006)
    np.testing.assert_array_equal(drawn, seen.sample(40_000, 0))


def test_a_perceptron_of_known_noise_predicts_a_gaussian() -> None:
    seen = learned("perceptron")[0].predict(X[60:])
    expected = norm(seen.mean, np.sqrt(seen.epistemic + 0.1))
    np.testing.assert_allclose(seen.aleatoric, 0.1)
    np.testing.assert_allclose(seen.var, seen.epistemic + seen.aleatoric)
    np.testing.assert_allclose(seen.std, expected.std())
    y = NUMBERS[60:]
    for found, wanted in ((seen.cdf(y), expected.cdf(y)), (seen.logpdf(y), expected.logpdf(y))):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    np.testing.assert_allclose(seen.ppf(0.2), expected.ppf(0.2), rtol=1e-12)
    np.testing.assert_allclose(seen.normal_score(y), (y - seen.mean) / seen.std)
    np.testing.assert_allclose(seen.at_normal_score(seen.normal_score(y)), y)


def test_counts_have_the_distribution_of_the_sum_over_their_rates() -> None:
    """Rates drawn from the log-normal, counts around them: against the distribution function and the draws."""
    seen = learned("counts")[0].predict(X[60])
    rates = np.exp(np.random.default_rng(1).normal(seen.pre_mean, np.sqrt(seen.pre_var), 200_000))
    dispersion = (seen.aleatoric - seen.mean) / (seen.mean**2 + seen.epistemic)
    below = [nbinom.cdf(y, 1.0 / dispersion, 1.0 / (1.0 + dispersion * rates)).mean() for y in range(8)]
    np.testing.assert_allclose(seen.cdf(np.arange(8.0)), below, atol=2e-3)
    np.testing.assert_array_equal(seen.cdf(np.arange(8.0) + 0.5), seen.cdf(np.arange(8.0)))
    assert seen.ppf(0.5) == np.searchsorted(below, 0.5)
    drawn = seen.sample(40_000, 0)
    np.testing.assert_allclose([(drawn <= y).mean() for y in range(8)], below, atol=0.01)
    assert seen.tracking_score(3.0) < seen.normal_score(3.0)


def test_labels_have_probabilities_and_two_values() -> None:
    seen = learned("labels")[0].predict(X[60:])
    np.testing.assert_allclose(seen.probabilities, np.column_stack([1.0 - seen.mean, seen.mean]))
    np.testing.assert_allclose(seen.var, seen.mean * (1.0 - seen.mean))
    np.testing.assert_allclose(seen.cdf(0.0), 1.0 - seen.mean)
    np.testing.assert_array_equal(seen.cdf(1.0), 1.0)
    np.testing.assert_array_equal(seen.ppf(0.5), (seen.mean > 0.5).astype(float))
    np.testing.assert_allclose(seen.sample(20_000, 0).mean(axis=0), seen.mean, atol=0.015)


def test_classes_have_probabilities_and_no_quantiles() -> None:
    network = BayesianNetwork(2, (5,), 3, observation="categorical").learn(X, np.digitize(NUMBERS, [-1.0, 1.0]))
    seen = network.predict(X[:4])
    np.testing.assert_allclose(seen.probabilities.sum(axis=1), 1.0)
    drawn = seen.sample(20_000, 0)
    np.testing.assert_allclose([(drawn == k).mean(axis=0) for k in range(3)], seen.probabilities.T, atol=0.015)
    low, high = seen.interval()
    assert low.shape == high.shape == (4, 3)
    with pytest.raises(TypeError, match="no quantiles"):
        seen.ppf(0.5)


def test_numbers_have_no_probabilities() -> None:
    with pytest.raises(AttributeError, match="numbers"):
        _ = learned("perceptron")[0].predict(X).probabilities


def test_the_components_of_a_mixture_make_up_its_distribution() -> None:
    model, y = learned("drift")
    seen = model.predict(X[60:])
    parts = seen.components
    assert len(parts) == 6
    assert sum(np.asarray(weight) for weight, _ in parts) == pytest.approx(1.0)
    np.testing.assert_allclose(sum(weight * part.cdf(y[60:]) for weight, part in parts), seen.cdf(y[60:]), rtol=1e-9)
    ((weight, alone),) = learned("perceptron")[0].predict(X[60:]).components
    assert float(weight) == 1.0
    np.testing.assert_array_equal(alone.mean, learned("perceptron")[0].predict(X[60:]).mean)


def test_rows_predicted_before_they_are_learned_have_distributions() -> None:
    for name in CONTINUOUS:
        model, y = learned(name)
        apart = learned(name)[0]
        seen = model.predict_then_learn(X[60:], y[60:])
        np.testing.assert_allclose([side[0] for side in seen.interval()], apart.predict(X[60]).interval(), rtol=1e-6)
        assert seen.logpdf(y[60:])[0] == pytest.approx(apart.predict(X[60]).without_model().logpdf(y[60]), rel=1e-4)


@pytest.mark.parametrize("name", [*CONTINUOUS, "counts", "network of counts", "labels"])
def test_without_its_model_a_prediction_has_the_density_of_its_distribution_function(name: str) -> None:
    model, y = learned(name)
    seen = model.predict(X[60:])
    bare = seen.without_model()
    if y is NUMBERS:
        step = 1e-5
        slope = (bare.cdf(y[60:] + step) - bare.cdf(y[60:] - step)) / (2.0 * step)
        np.testing.assert_allclose(bare.pdf(y[60:]), slope, rtol=1e-4, atol=1e-9)
    else:
        np.testing.assert_allclose(bare.pdf(y[60:]), bare.cdf(y[60:]) - bare.cdf(y[60:] - 1.0), rtol=2e-3, atol=1e-6)
        np.testing.assert_array_equal(bare.pdf(y[60:] + 0.5), 0.0)
    if name != "outliers":
        np.testing.assert_allclose(bare.logpdf(y[60:]), seen.logpdf(y[60:]), atol=0.1)
    grid = np.array([[0.0], [1.0], [2.0]])
    for each in (seen, bare):
        if y is not LABELS:
            np.testing.assert_allclose(each.pdf(grid), [each.pdf(np.full(20, value)) for value in grid[:, 0]])


def test_classes_have_probabilities_without_their_model_too() -> None:
    kinds = np.digitize(NUMBERS, [-1.0, 1.0])
    seen = BayesianNetwork(2, (5,), 3, observation="categorical").learn(X, kinds).predict(X)
    np.testing.assert_allclose(seen.without_model().pdf(kinds), seen.probabilities[np.arange(80), kinds])
    assert seen.pdf(kinds)[3] == pytest.approx(seen.without_model().pdf(kinds)[3])


@pytest.mark.parametrize("name", MODELS)
def test_a_pickled_prediction_has_no_model(name: str) -> None:
    model, y = learned(name)
    seen = model.predict(X[60:])
    limits = seen.interval(0.8)
    twin = pickle.loads(pickle.dumps(seen))
    model.learn(X[60:], y[60:])
    np.testing.assert_array_equal(twin.interval(0.8), limits)
    np.testing.assert_array_equal(twin.cdf(y[60:]), seen.cdf(y[60:]))
    np.testing.assert_array_equal(twin.logpdf(y[60:]), seen.without_model().logpdf(y[60:]))


def test_fleets_predict_as_their_perceptrons() -> None:
    fleet = PerceptronFleet(2, "linear", noise="learn").learn(X, NUMBERS, keys=["a", "b"] * 40)
    seen = fleet.predict(X[:2], keys=["a", "b"])
    for k, key in enumerate("ab"):
        alone = fleet.perceptron(key).predict(X[k])
        np.testing.assert_allclose([side[k] for side in seen.interval(0.9)], alone.interval(0.9), rtol=1e-9)
        assert seen.cdf(0.3)[k] == pytest.approx(alone.cdf(0.3), rel=1e-9)
        assert seen.logpdf(0.3)[k] == pytest.approx(alone.without_model().logpdf(0.3), rel=1e-9)


class Doubled:
    """Targets in other units: twice as large, and 1 more."""

    scale = 2.0

    def to_model(self, y: Any) -> Any:
        return (np.asarray(y) - 1.0) / 2.0

    def from_model(self, y: Any) -> Any:
        return 2.0 * np.asarray(y) + 1.0

    def log_slope(self, y: Any) -> Any:
        return np.full(np.shape(y), -np.log(2.0))


class Logarithm:
    """Targets whose logarithms were learned."""

    scale = None

    def to_model(self, y: Any) -> Any:
        return np.log(y)

    def from_model(self, y: Any) -> Any:
        return np.exp(y)

    def log_slope(self, y: Any) -> Any:
        return -np.log(y)

    def moments(self, seen: Any) -> None:
        return None


@pytest.mark.parametrize("units", [None, LinearUnits(3.0, 2.5)])
@pytest.mark.parametrize("rows", [60, slice(60, 64)])
def test_a_gaussian_is_a_mixture_with_one_part(rows: Any, units: LinearUnits | None) -> None:
    model = MODELS["perceptron"][0]().learn(X[:60], NUMBERS[:60])
    seen = model.predict(X[rows])
    mixed = Prediction(seen._family, seen.moments, mixed=seen._own_parts())
    if units is not None:
        seen, mixed = seen.in_units(units), mixed.in_units(units)
    for y in (0.3, -1e300, np.inf, np.nan, np.array([[0.1], [2.0]])):
        np.testing.assert_array_equal(seen.normal_score(y), mixed.normal_score(y))
        np.testing.assert_array_equal(seen.at_normal_score(y), mixed.at_normal_score(y))


def test_quantiles_of_a_likelihood_of_its_own_are_used() -> None:
    class Skewed(Gaussian):
        def quantile(self, activation: Any, mean: Any, var: Any, level: float) -> Any:
            return mean + expon.ppf(level) - 1.0

    moments = PredictedMoments(*map(np.float64, (1.0, 0.5, 1.0, 0.5, 0.5)))
    seen = Prediction(Family(Skewed(0.5), as_activation("linear")), moments)
    assert seen.ppf(0.9) == pytest.approx(expon.ppf(0.9))
    assert seen.normal_score(seen.ppf(0.9)) == pytest.approx(norm.ppf(0.9))


def test_targets_in_other_units() -> None:
    plain = learned("perceptron")[0].predict(X[60:])
    gaussian = norm(1.0 + 2.0 * plain.mean, 2.0 * plain.std)
    seen, y = plain.in_units(Doubled()), NUMBERS[60:]
    np.testing.assert_allclose(seen.mean, gaussian.mean())
    np.testing.assert_allclose(seen.std, gaussian.std())
    np.testing.assert_allclose(seen.epistemic, 4.0 * plain.epistemic)
    np.testing.assert_allclose(seen.logpdf(y), gaussian.logpdf(y), rtol=1e-10)
    np.testing.assert_allclose(seen.cdf(y), gaussian.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(seen.interval(0.9), gaussian.interval(0.9), rtol=1e-10)


def test_targets_whose_logarithm_was_learned() -> None:
    plain = learned("perceptron")[0].predict(X[60:])
    seen, y = plain.in_units(Logarithm()), np.exp(NUMBERS[60:])
    np.testing.assert_allclose(seen.mean, np.exp(plain.mean + plain.var / 2), rtol=1e-9)
    np.testing.assert_allclose(seen.var, np.expm1(plain.var) * np.exp(2 * plain.mean + plain.var), rtol=1e-7)
    np.testing.assert_allclose(seen.epistemic + seen.aleatoric, seen.var)
    np.testing.assert_allclose(seen.logpdf(y), plain.logpdf(np.log(y)) - np.log(y), rtol=1e-10)
    np.testing.assert_allclose(seen.ppf(0.3), np.exp(plain.ppf(0.3)))
    np.testing.assert_allclose(seen.interval(), np.exp(plain.interval()))
    np.testing.assert_allclose(np.log(seen.sample(5, 1)), plain.sample(5, 1))


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan])
def test_what_is_no_probability_has_no_quantile(q: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        learned("perceptron")[0].predict(X[0]).ppf(q)


def test_where_a_row_lies_does_not_depend_on_the_rows_next_to_it() -> None:
    """The noise of the first rows is hardly known, that of the last ones well."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    whole = BayesianPerceptron(2, "linear", noise="learn").predict_then_learn(X, y)
    model = BayesianPerceptron(2, "linear", noise="learn")
    parts = [
        model.predict_then_learn(X[rows], y[rows]).normal_score(y[rows]) for rows in (slice(0, 150), slice(150, 300))
    ]
    np.testing.assert_allclose(np.concatenate(parts), whole.normal_score(y), rtol=1e-12)


@pytest.mark.parametrize("name", ["perceptron", "learned noise", "outliers", "drift", "committee"])
def test_wider_predictions(name: str) -> None:
    model, y = learned(name)
    plain = model.predict(X[60:])
    wide, nearer = plain.widened(1.5), plain.mean + (y[60:] - plain.mean) / 1.5
    np.testing.assert_allclose(wide.mean, plain.mean, rtol=1e-12)
    np.testing.assert_allclose(wide.std, 1.5 * plain.std, rtol=1e-12)
    np.testing.assert_allclose(wide.aleatoric, plain.aleatoric, rtol=1e-12)
    np.testing.assert_allclose(wide.logpdf(y[60:]), plain.logpdf(nearer) - np.log(1.5), rtol=1e-9)
    np.testing.assert_allclose(wide.cdf(y[60:]), plain.cdf(nearer), rtol=1e-9)
    for ends, own in zip(wide.interval(0.8), plain.interval(0.8), strict=True):
        np.testing.assert_allclose(ends, plain.mean + 1.5 * (own - plain.mean), rtol=1e-9, atol=1e-9)
