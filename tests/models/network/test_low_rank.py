"""Networks with a covariance of low rank: against the full one, the readable steps, and what they were saved from."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass import BayesianNetwork, merge
from onepass.beliefs import low_rank
from onepass.beliefs.choice import count_numbers
from onepass.beliefs.low_rank import LowRankGaussian
from onepass.files import checkpoint
from tests.models.network.test_network import HEADS, numbers, problem


@pytest.fixture
def few_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such that some rows fill the belief."""
    monkeypatch.setattr(low_rank, "default_rank", lambda _: 8)


def network(hidden: tuple[int, ...] = (6,), n_features: int = 4, **options: Any) -> BayesianNetwork:
    return BayesianNetwork(n_features, hidden, covariance="low_rank", **options)


def kept(learned: BayesianNetwork) -> LowRankGaussian:
    belief = learned._state.belief
    assert isinstance(belief, LowRankGaussian)
    return belief


@pytest.mark.parametrize("head", [head for head in HEADS if head.get("observation") != "heteroscedastic"], ids=str)
@pytest.mark.parametrize("hidden", [(), (5,), (5, 4)], ids=str)
def test_the_first_rows_are_learned_as_with_a_full_covariance(hidden: tuple[int, ...], head: dict[str, Any]) -> None:
    X, y = problem(head, n=30)
    ours = network(hidden, **head).learn(X, y)
    full = BayesianNetwork(4, hidden, covariance="full", **head).learn(X, y)
    np.testing.assert_allclose(numbers(ours), numbers(full), rtol=1e-7, atol=1e-9)
    for mine, theirs in zip(ours.predict(X).moments, full.predict(X).moments, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7)


def test_a_rank_of_all_weights_loses_nothing() -> None:
    X, y = problem(HEADS[0], n=400)
    ours, full = network((3,)), BayesianNetwork(4, (3,), covariance="full")
    assert len(ours.mean) == 19  # and 400 rows: twenty compressions
    np.testing.assert_allclose(numbers(ours.learn(X, y)), numbers(full.learn(X, y)), rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("few_directions")
@pytest.mark.parametrize(
    # Without hidden layers several outputs have directions that tell the same, of which rounding chooses.
    ("hidden", "head"),
    [((), HEADS[0]), *((hidden, head) for hidden in ((5,), (5, 4)) for head in HEADS)],
    ids=str,
)
def test_compiled_learning_is_the_reference(hidden: tuple[int, ...], head: dict[str, Any]) -> None:
    X, y = problem(head)
    fadings: list[dict[str, Any]] = [{}, {"forgetting": 0.97}, {"drift": 0.01}, {"outliers": 0.05}]
    for fading in fadings:
        ours, reference = (network(hidden, kernel=kernel, **head, **fading) for kernel in ("auto", "reference"))
        ours.learn(X, y, passes=2)
        reference.learn(X, y, passes=2)
        np.testing.assert_allclose(numbers(ours), numbers(reference), rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("few_directions")
def test_the_kernel_stops_where_the_readable_steps_raise_an_alarm() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=200) + 8.0 * (np.arange(200) >= 120)  # a jump
    seen = [
        network(n_features=3, outliers=0.05, kernel=kernel).predict_score_learn(X, y)
        for kernel in ("auto", "reference")
    ]
    assert (seen[0][1].changes > 0.5).any()
    np.testing.assert_allclose(seen[1][0].mean, seen[0][0].mean, atol=1e-6)
    np.testing.assert_allclose(seen[1][1].changes, seen[0][1].changes, atol=1e-6)
    assert np.abs(seen[0][0].mean[-20:] - y[-20:]).mean() < 1.0  # it has followed


@pytest.mark.usefixtures("few_directions")
def test_rows_are_learned_the_same_however_they_come() -> None:
    X, y = problem(HEADS[0])
    whole, single = network().learn(X, y), network()
    for x, target in zip(X, y, strict=True):
        single.learn(x, target)
    np.testing.assert_allclose(numbers(single), numbers(whole), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("few_directions")
def test_targets_that_are_not_observed_append_no_columns() -> None:
    X, y = problem(HEADS[1], n=8)
    one, none = y.copy(), np.full_like(y, np.nan)
    one[:, 1:] = np.nan
    for targets, columns in ((one, 8), (none, 0)):
        learned = network(n_outputs=3, noise=0.3).learn(X, targets)
        assert kept(learned).n_columns == columns
    full = BayesianNetwork(4, (6,), 3, covariance="full", noise=0.3).learn(X, one)
    np.testing.assert_allclose(network(n_outputs=3, noise=0.3).learn(X, one).mean, full.mean, atol=1e-9)


def test_correlations_between_layers_are_kept() -> None:
    """What neither blocks nor a diagonal have: the rows of a sine that are hard to learn."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 1))
    y = np.sin(3 * X[:, 0]) + rng.normal(0, 0.05, 400)
    errors = {}
    for name in ("full", "low_rank", "neuron"):
        predicted = BayesianNetwork(1, (60,), covariance=name).learn(X, y).predict(X).mean
        errors[name] = np.sqrt(np.mean((predicted - np.sin(3 * X[:, 0])) ** 2))
    assert errors["low_rank"] < 1.5 * errors["full"]
    assert errors["low_rank"] < 0.6 * errors["neuron"]


@pytest.mark.usefixtures("few_directions")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_saved_network_goes_on_as_the_first_would(tmp_path: Path, dtype: str) -> None:
    X, y = problem(HEADS[0])
    first = network(dtype=dtype, outliers=0.01, forgetting=0.99).learn(X[:37], y[:37])
    checkpoint.save(first, tmp_path / "network.onepass")
    second = checkpoint.load(tmp_path / "network.onepass")
    assert second.covariance == "low_rank"
    np.testing.assert_array_equal(numbers(first.learn(X, y)), numbers(second.learn(X, y)))


@pytest.mark.usefixtures("few_directions")
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda values: values[:-1], "covariance has shape"),
        (lambda values: np.where(np.arange(len(values)) == 0, -1.0, values), "must not be negative"),
        (lambda values: np.append(values[:-1], 16.0), "16 columns in use, which must be a whole number to 15"),
        (lambda values: np.append(values[:-1], 2.5), "2.5 columns in use"),
        (lambda values: np.append(1e-3 * values[:-1], values[-1]), None),
        (lambda values: np.append(values[:37] / 9, values[37:]), "not positive semi-definite"),
    ],
)
def test_a_file_that_is_no_belief_is_refused(spoil: Any, message: str | None) -> None:
    X, y = problem(HEADS[0], n=11)
    learned = network().learn(X, y)
    parameters, arrays = learned.export_state()
    assert len(arrays["covariance"]) == learned.belief_size == count_numbers("low_rank", learned._layout)
    arrays["covariance"] = spoil(arrays["covariance"])
    if message is None:
        BayesianNetwork.from_state(parameters, arrays)
        return
    with pytest.raises(ValueError, match=message):
        BayesianNetwork.from_state(parameters, arrays)


def sine(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, n)


def test_networks_merge() -> None:
    X, y = sine(1000)
    prior = network((50,), n_features=1)
    parts = [copy.deepcopy(prior).learn(X[rows], y[rows]) for rows in np.array_split(np.arange(800), 2)]
    full = [BayesianNetwork(1, (50,), covariance="full") for _ in range(3)]
    for rows, one in zip(np.array_split(np.arange(800), 2), full[1:], strict=True):
        one.learn(X[rows], y[rows])

    def error(model: BayesianNetwork) -> float:
        return float(np.sqrt(np.mean((model.predict(X[800:]).mean - y[800:]) ** 2)))

    merged = merge(prior, parts)
    assert merged.n_seen == 800
    assert error(merged) < 1.3 * error(merge(full[0], full[1:]))
    merged._state.belief.check()


def test_draws_are_what_is_predicted() -> None:
    X, y = problem(HEADS[0], n=150)
    learned = network((6, 5)).learn(X, y)
    draws, seen = learned.sample_output(X[:10], 20_000, 0), learned.predict(X[:10])
    known = np.sqrt(seen.epistemic)
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - seen.mean) / known, 4 / np.sqrt(20_000))
    np.testing.assert_allclose(draws.std(axis=0), known, rtol=0.03)


def test_what_it_can_not_do_is_said() -> None:
    X, y = problem(HEADS[0])
    with pytest.raises(ValueError, match="refine='ep' needs covariance='full', got covariance='low_rank'"):
        network().learn(X, y, passes=2, refine="ep")
    with pytest.raises(ValueError, match="batch must be 1 with covariance='low_rank', got 8"):
        network().learn(X, y, batch=8)


@pytest.mark.usefixtures("few_directions")
def test_a_row_that_overflows_leaves_no_trace() -> None:
    X, y = problem(HEADS[0])
    for dtype in ("float64", "float32"):
        learned = network(dtype=dtype).learn(X, y)
        before = learned.export_state()[1]
        spoiled = X.copy()
        spoiled[40] = 1e200
        for rows, targets in ((spoiled, y), (spoiled[40], y[40])):
            with pytest.raises(ValueError, match="overflow"):
                learned.learn(rows, targets)
        for name, values in learned.export_state()[1].items():
            np.testing.assert_array_equal(values, before[name])


@pytest.mark.usefixtures("few_directions")
def test_a_belief_that_can_not_be_compressed_is_refused() -> None:
    X, y = problem(HEADS[0])
    learned = network().learn(X[:3], y[:3])
    kept(learned).precision_root[0] = 1e200  # as a file may say
    with pytest.raises(ValueError, match="overflow"):
        learned.learn(X[3:], y[3:])


def learn_one_by_one(network: BayesianNetwork, X: Any, y: Any) -> None:
    for row, target in zip(X, y, strict=True):
        network.learn(row, target)


@pytest.mark.usefixtures("few_directions")
def test_an_interrupt_before_a_compression_leaves_room_for_the_next_row(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(HEADS[0])
    learned, whole = network(), network()

    def interrupt(_: LowRankGaussian) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LowRankGaussian, "compress", interrupt)
        with pytest.raises(KeyboardInterrupt):
            learn_one_by_one(learned, X, y)
    assert kept(learned).is_full
    n = learned.n_seen + 1  # the row was learned; only the compression is missing
    learned.learn(X[n], y[n])
    whole.learn(X[: n + 1], y[: n + 1])
    np.testing.assert_array_equal(learned.mean, whole.mean)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from(["float64", "float32"]),
    log_scale=st.floats(-3, 3),
    observation=st.sampled_from(["gaussian", "bernoulli"]),
    fading=st.sampled_from([{}, {"forgetting": 0.9}, {"drift": 0.01}, {"outliers": 0.05}]),
)
def test_no_stream_breaks_it(seed: int, dtype: str, log_scale: float, observation: str, fading: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    X = 10.0**log_scale * rng.standard_t(2, size=(250, 3))
    X[rng.random(250) < 0.2] = X[0]  # the same row again and again
    y = np.abs(np.round(rng.standard_t(2, size=250)))
    y = np.minimum(y, 1.0) if observation == "bernoulli" else np.minimum(y, 100.0)
    learned = network((4, 3), 3, dtype=dtype, observation=observation, **fading)
    learned.learn(X, y)
    seen = learned.predict(X)
    assert np.isfinite(seen.mean).all()
    assert (seen.pre_var >= 0.0).all()
    assert (np.concatenate([part.ravel() for part in learned.weight_variances]) >= 0.0).all()
    learned._state.belief.check()
