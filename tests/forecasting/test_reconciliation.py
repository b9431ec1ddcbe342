"""Totals agree with their parts: the Gaussian given the sums, by brute force and by the formula of MinT."""

import numpy as np
import pytest

from onepass.forecasting import BayesianForecaster, CountForecast, Forecast, reconcile

KEYS = ["all", "north", "south", "a", "b", "c", "d"]
HIERARCHY = {"all": ["north", "south"], "north": ["a", "b"], "south": ["c", "d"]}
SUMMING = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4)])
H = 3


def random_forecasts(seed: int = 0) -> dict[str, Forecast]:
    rng = np.random.default_rng(seed)
    found = {}
    for key in KEYS:
        root = rng.normal(size=(H, 5))
        found[key] = Forecast(10.0 * rng.normal(size=H), root @ root.T + 0.1 * np.eye(H))
    return found


def conditioned(means: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Gaussian of all series and steps, observed to have sums without any deviation: one at a time."""
    rows: list[np.ndarray] = []
    for total, parts in HIERARCHY.items():
        for step in range(H):
            row = np.zeros((len(KEYS), H))
            row[KEYS.index(total), step] = 1.0
            row[[KEYS.index(part) for part in parts], step] = -1.0
            rows.append(row.ravel())
    mean, cov = means.ravel().copy(), cov.copy()
    for one in rows:
        gain = cov @ one / (one @ cov @ one)
        mean -= gain * (one @ mean)
        cov -= np.outer(gain, one @ cov)
    return mean.reshape(len(KEYS), H), cov


def test_forecasts_are_the_gaussian_given_the_sums() -> None:
    given = random_forecasts()
    cov = np.zeros((len(KEYS) * H, len(KEYS) * H))
    for i, forecast in enumerate(given.values()):
        cov[i * H : i * H + H, i * H : i * H + H] = forecast.cov
    mean, cov = conditioned(np.stack([f.mean for f in given.values()]), cov)
    found = reconcile(given, HIERARCHY)
    for i, key in enumerate(KEYS):
        np.testing.assert_allclose(found[key].mean, mean[i], rtol=1e-9)
        np.testing.assert_allclose(found[key].cov, cov[i * H : i * H + H, i * H : i * H + H], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("by", ["mapping", "matrix"])
def test_one_step_is_reconciled_by_the_formula_of_trace_minimisation(by: str) -> None:
    rng = np.random.default_rng(1)
    means, variances = 10.0 * rng.normal(size=7), rng.uniform(0.5, 3.0, 7)
    given = {key: Forecast(means[[i]], variances[i] * np.eye(1)) for i, key in enumerate(KEYS)}
    found = reconcile(given, HIERARCHY if by == "mapping" else SUMMING)
    inverse = np.diag(1.0 / variances)
    bottom = np.linalg.inv(SUMMING.T @ inverse @ SUMMING)
    np.testing.assert_allclose([f.mean[0] for f in found.values()], SUMMING @ bottom @ SUMMING.T @ inverse @ means)
    np.testing.assert_allclose([f.var[0] for f in found.values()], np.diag(SUMMING @ bottom @ SUMMING.T))


def test_sums_agree_on_all_levels_and_over_all_steps() -> None:
    found = reconcile(random_forecasts(2), HIERARCHY)
    for total, parts in HIERARCHY.items():
        np.testing.assert_allclose(found[total].mean, sum(found[part].mean for part in parts), rtol=1e-12)
        assert found[total].total().mean == pytest.approx(sum(found[part].total().mean for part in parts))


def test_forecasts_that_agree_stay_and_become_more_certain() -> None:
    given = random_forecasts(3)
    means = SUMMING @ np.arange(12.0).reshape(4, H)
    agreed = {key: Forecast(mean, given[key].cov, limit=0.0) for key, mean in zip(KEYS, means, strict=True)}
    found = reconcile(agreed, HIERARCHY)
    for key in KEYS:
        np.testing.assert_allclose(found[key].mean, agreed[key].mean, atol=1e-9)
        assert (found[key].var <= agreed[key].var).all()
        assert found[key].limit == 0.0


def test_keys_outside_of_the_hierarchy_stay_as_they_are() -> None:
    given = random_forecasts(4)
    found = reconcile(given, {"north": ["a", "b"]})
    np.testing.assert_allclose(found["all"].mean, given["all"].mean)
    np.testing.assert_allclose(found["all"].cov, given["all"].cov)
    assert reconcile(given, {}) == given


def test_constant_series_agree_as_well() -> None:
    given = {
        key: BayesianForecaster(1).learn(np.full(30, value)).forecast(4)
        for key, value in zip("tab", (7, 3, 5), strict=True)
    }
    found = reconcile(given, {"t": "ab"})
    np.testing.assert_allclose(found["t"].mean, found["a"].mean + found["b"].mean)


def test_errors_that_go_together_keep_intervals_as_wide_as_they_must_be() -> None:
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(4000, 2))
    own = parts @ np.ones(2) + 0.1 * rng.normal(size=4000)  # a total errs as its parts do
    errors = {"a": parts[:, 0], "b": parts[:, 1], "t": own}
    given = {key: Forecast(np.zeros(1), np.mean(np.square(error)) * np.eye(1)) for key, error in errors.items()}
    apart, together = (reconcile(given, {"t": ["a", "b"]}, errors=one)["t"].var[0] for one in (None, errors))
    assert apart == pytest.approx(1.0, rel=0.1)
    assert together == pytest.approx(2.0, rel=0.1)


def test_unrelated_errors_are_shrunk_to_independence() -> None:
    given = random_forecasts(5)
    rng = np.random.default_rng(6)
    errors = {key: rng.normal(size=20_000) for key in KEYS}
    plain, crossed = reconcile(given, HIERARCHY), reconcile(given, HIERARCHY, errors=errors)
    for key in KEYS:
        np.testing.assert_allclose(crossed[key].mean, plain[key].mean, atol=0.3)


@pytest.mark.parametrize(
    ("hierarchy", "errors", "words"),
    [
        ({"all": ["north", "west"]}, None, "'west', of which there is no forecast"),
        ({"all": ["north", "north"]}, None, "different keys"),
        ({"all": []}, None, "at least one"),
        ({"all": ["north", "south"], "north": ["all", "a"]}, None, "parts of themselves"),
        ({"all": ["all", "a"]}, None, "parts of themselves"),
        (np.eye(3), None, "row for each of the 7 keys"),
        (HIERARCHY, {"all": [1.0]}, "lack 'north'"),
        (HIERARCHY, {key: [1.0, 2.0] for key in KEYS}, "3 times at least, got 2"),
        (HIERARCHY, {key: [1.0] * (3 + (key == "a")) for key in KEYS}, "one number of each key"),
    ],
)
def test_what_is_no_hierarchy_is_refused(hierarchy: object, errors: object, words: str) -> None:
    with pytest.raises((KeyError, ValueError), match=words):
        reconcile(random_forecasts(), hierarchy, errors=errors)  # type: ignore[arg-type]


def test_forecasts_must_be_over_the_same_steps() -> None:
    given = {**random_forecasts(), "a": Forecast(np.zeros(2), np.eye(2))}
    with pytest.raises(ValueError, match="same number of steps"):
        reconcile(given, HIERARCHY)
    with pytest.raises(TypeError, match="objects of"):
        reconcile({"a": 3.0}, {})  # type: ignore[dict-item]


def test_forecasts_of_counts_stay_counts() -> None:
    own = {"a": (0.4, 0.5), "b": (2.0, 3.0), "all": (5.0, 9.0)}
    given = {key: CountForecast(np.array([mean]), np.array([[var]])) for key, (mean, var) in own.items()}
    found = reconcile(given, {"all": ["a", "b"]})
    assert found["all"].mean[0] == pytest.approx(found["a"].mean[0] + found["b"].mean[0])
    for forecast in found.values():
        high = forecast.interval(0.8)[1]
        assert high == np.floor(high)
