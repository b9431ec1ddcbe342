"""Forgetting towards the prior and weights that drift, in every form of the belief, against formulas written out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import onepass
from onepass import BayesianNetwork, BayesianPerceptron, PerceptronFleet
from onepass.beliefs.block import LayerBlocks
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.full import FullGaussian
from onepass.layers.layout import Layout
from onepass.merging import Merging

PERCEPTRONS: list[dict[str, Any]] = [
    {"kernel": "rows"},
    {"kernel": "blocks"},
    {"kernel": "reference"},
    {"covariance": "diagonal"},
    {"covariance": "diagonal", "kernel": "reference"},
    {"kernel": "rows", "process_noise": 1e-4},
]
STRUCTURES = ["full", "layer", "neuron", "diagonal"]


def rows(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.4 + rng.normal(0, 0.3, n)


def mixed_covariance(p: int, seed: int = 1) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(p, p))
    return A @ A.T / p + 0.1 * np.eye(p)


def ridge(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, noise: float, mean: np.ndarray, cov: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted ridge regression around a prior, by the normal equations."""
    precision = np.linalg.inv(cov)
    total = precision + (X * weights[:, None]).T @ X / noise
    return np.linalg.solve(total, precision @ mean + X.T @ (weights * y) / noise), np.linalg.inv(total)


@pytest.mark.parametrize("prior", ["default", "own variances", "matrix"])
@pytest.mark.parametrize("kernel", ["rows", "blocks", "reference", "auto"])
@pytest.mark.parametrize("forgetting", [0.5, 0.9, 0.97])
def test_forgetting_is_weighted_ridge_regression(forgetting: float, kernel: str, prior: str) -> None:
    X, y = rows(61, 3)
    p, noise = 4, 0.2
    given_prior: dict[str, Any] = {}
    mean, cov = np.zeros(p), np.eye(p)
    if prior != "default":
        mean, cov = np.array([0.5, -1.0, 2.0, 0.0]), np.diag([1.0, 4.0, 0.5, 100.0])
        cov = mixed_covariance(p) if prior == "matrix" else cov
        given_prior = {"mean": mean, "cov": cov}
    model = BayesianPerceptron(3, "linear", noise=noise, forgetting=forgetting, kernel=kernel, **given_prior)
    model.learn(X, y)
    period = Forgetting(forgetting, p).period
    assert period == int(np.ceil(0.25 / (1 - forgetting) - 1e-9))
    # Stairs: a row counts less after every step that came since it was learned.
    steps_since = 60 // period - np.arange(61) // period
    whole = np.column_stack([np.ones(61), X])
    expected_mean, expected_cov = ridge(whole, y, forgetting ** (period * steps_since), noise, mean, cov)
    np.testing.assert_allclose(model.mean, expected_mean, atol=1e-9)
    np.testing.assert_allclose(model.cov, expected_cov, atol=1e-9)


def test_the_steps_of_a_large_covariance_are_further_apart() -> None:
    assert Forgetting(0.9, 160).period == 53
    assert Forgetting(0.999, 160).period == 250
    assert Forgetting(0.9, 160).keep == 0.9**53
    assert Forgetting(1.0, 160).period == 0


def test_segments_divide_rows_at_the_steps_however_they_come() -> None:
    forgetting = Forgetting(0.95, 4)  # every 5 rows
    assert [tuple(s) for s in forgetting.segments(0, 12)] == [(0, 5, 0), (5, 10, 1), (10, 12, 1)]
    assert [tuple(s) for s in forgetting.segments(5, 3)] == [(0, 3, 1)]
    assert [tuple(s) for s in forgetting.segments(3, 4)] == [(0, 2, 0), (2, 4, 1)]
    assert [tuple(s) for s in forgetting.segments(0, 22, 8)] == [(0, 8, 1), (8, 16, 2), (16, 22, 1)]
    assert [tuple(s) for s in Forgetting(1.0, 4).segments(3, 4)] == [(0, 4, 0)]


@pytest.mark.parametrize("p", [5, 20, 160])
@pytest.mark.parametrize("prior", ["variances", "matrix"])
def test_all_forms_of_a_full_covariance_forget_the_same(p: int, prior: str) -> None:
    X, y = rows(120, p - 1)
    X /= np.sqrt(p)
    y = (y > 0).astype(float)
    given_prior: dict[str, Any] = {"cov": np.linspace(0.5, 2.0, p) if prior == "variances" else mixed_covariance(p)}
    given_prior["mean"] = np.linspace(-1.0, 1.0, p)
    make = {
        kernel: BayesianPerceptron(p - 1, forgetting=0.95, kernel=kernel, **given_prior)
        for kernel in ("reference", "rows", "blocks", "auto")
    }
    for model in make.values():
        model.learn(X, y)
    dense = BayesianPerceptron(p - 1, forgetting=0.95, **given_prior)
    assert isinstance(dense._state.belief, FullGaussian)
    dense._state.belief.use_covariance()
    for x, target in zip(X, y, strict=True):
        dense.learn(x, target)
    fleet = PerceptronFleet(p - 1, forgetting=0.95, **given_prior).learn(X, y, keys=[7] * 120)
    reference = make.pop("reference")
    for model in (*make.values(), dense, fleet.perceptron(7)):
        np.testing.assert_allclose(model.mean, reference.mean, atol=1e-10)
        np.testing.assert_allclose(model.cov, reference.cov, atol=1e-10)
        assert model.log_evidence == pytest.approx(reference.log_evidence, rel=1e-10)


def test_each_key_forgets_towards_the_prior_that_it_started_from() -> None:
    X, y = rows(60, 2)
    fleet = PerceptronFleet(2, "linear", noise=0.1, forgetting=0.9).learn(X[:20], y[:20], keys=["a"] * 20)
    mean, cov = np.array([1.0, 2.0, 3.0]), mixed_covariance(3)
    fleet.prior = BayesianPerceptron(2, "linear", noise=0.1, forgetting=0.9, mean=mean, cov=cov)
    fleet.learn(X[20:], y[20:], keys=["a", "b"] * 20)
    fleet = PerceptronFleet.from_state(*fleet.export_state())
    fleet.learn(X[20:], y[20:], keys=["a", "b"] * 20)
    single = fleet.perceptron("b").learn(X[:15], y[:15])
    fleet.learn(X[:15], y[:15], keys=["b"] * 15)
    old = BayesianPerceptron(2, "linear", noise=0.1, forgetting=0.9).learn(X[:20], y[:20])
    new = BayesianPerceptron(2, "linear", noise=0.1, forgetting=0.9, mean=mean, cov=cov)
    for _ in range(2):
        old.learn(X[20::2], y[20::2])
        new.learn(X[21::2], y[21::2])
    new.learn(X[:15], y[:15])
    for ours, expected in ((fleet.perceptron("a"), old), (fleet.perceptron("b"), new), (single, new)):
        np.testing.assert_allclose(ours.mean, expected.mean, atol=1e-10)
        np.testing.assert_allclose(ours.cov, expected.cov, atol=1e-10)


@pytest.mark.parametrize("form", ["root", "dense", "diagonal", "blocks"])
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**20),
    keep=st.floats(1e-3, 0.9),
    share=st.floats(0.0, 0.999),
    known=st.booleans(),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_no_direction_ever_exceeds_the_prior(
    form: str, seed: int, keep: float, share: float, known: bool, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    variances = rng.gamma(1.0, scale, 5) + 1e-9 * scale
    variances[2] = 0.0 if known else variances[2]
    prior = DiagonalGaussian(rng.normal(size=5), variances)
    belief: Any
    if form == "diagonal":
        belief = prior.copy()
    elif form == "blocks":
        belief = LayerBlocks(Layout((2, 1, 1)), prior.mean, variances)
    else:
        belief = FullGaussian(prior.mean, variances)
        if form == "dense":
            belief.use_covariance()

    def covariance() -> np.ndarray:
        if form == "diagonal":
            return np.diag(belief.cov)
        if form != "blocks":
            return np.asarray(belief.cov)
        whole = np.zeros((5, 5))
        for part, block in zip((slice(0, 3), slice(3, 5)), belief.cov, strict=True):
            whole[part, part] = block
        return whole

    unit = np.sqrt(np.where(variances > 0.0, variances, 1.0))
    for _ in range(4):
        for _ in range(3):
            x = rng.normal(size=5) / np.sqrt(scale)
            if form == "blocks":
                gain, var = belief.project_outputs(x[None])
                belief.step(gain, x[None], np.array([0.1]), 1.0 / (var + 0.1))
            else:
                seen = belief.project(x)
                ratio = 0.1 / (seen.var + 0.1)
                belief.rank_one_step(seen, 0.1, (1.0 - ratio) / max(seen.var, 1e-300), ratio)
                if form == "dense":
                    belief.use_covariance()
        before = covariance() / np.outer(unit, unit)
        (belief.forget(keep, prior) if rng.random() < 0.5 else belief.drift(share, prior))
        after = covariance() / np.outer(unit, unit)
        assert np.linalg.eigvalsh(np.diag((variances > 0.0).astype(float)) - after)[0] > -1e-12
        assert np.linalg.eigvalsh(after - before)[0] > -1e-12
        assert (belief.mean[2] == prior.mean[2]) or not known


def test_forgetting_everything_is_the_prior_again() -> None:
    cov = mixed_covariance(3)
    prior = FullGaussian(np.array([1.0, 2.0, 3.0]), cov)
    for dense in (False, True):
        belief = prior.copy()
        belief.rank_one_step(belief.project(np.array([1.0, -1.0, 0.5])), 2.0, 0.5, 0.5)
        if dense:
            belief.use_covariance()
        belief.forget(1e-12, prior)
        np.testing.assert_allclose(belief.mean, prior.mean, atol=1e-9)
        np.testing.assert_allclose(belief.cov, cov, atol=1e-9)


def test_a_combination_of_weights_that_the_prior_knows_stays_known() -> None:
    cov = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])  # the first two are equal
    X, y = rows(50, 2)
    models = [
        BayesianPerceptron(2, "linear", noise=0.1, cov=cov, forgetting=0.9, kernel=kernel).learn(X, y)
        for kernel in ("rows", "reference")
    ]
    # The same in two weights: a bias that both share, and the last.
    whole = np.column_stack([1.0 + X[:, 0], X[:, 1]])
    fewer = BayesianPerceptron(2, "linear", bias=False, noise=0.1, cov=[1.0, 2.0], forgetting=0.9).learn(whole, y)
    for model in models:
        np.testing.assert_allclose(model.mean, fewer.mean[[0, 0, 1]], atol=1e-10)
        np.testing.assert_allclose(model.cov, fewer.cov[np.ix_([0, 0, 1], [0, 0, 1])], atol=1e-10)


@pytest.mark.parametrize("fading", [{"forgetting": 0.9}, {"drift": 0.02}], ids=str)
@pytest.mark.parametrize("form", PERCEPTRONS[:5], ids=str)
def test_a_column_of_zeros_changes_nothing(form: dict[str, Any], fading: dict[str, Any]) -> None:
    X, y = rows(300, 3)
    more = np.insert(X, 1, 0.0, axis=1)
    without = BayesianPerceptron(3, "relu", noise="learn", **form, **fading).learn(X, y)
    idle = BayesianPerceptron(4, "relu", noise="learn", **form, **fading).learn(more, y)
    kept = [0, 1, 3, 4]
    np.testing.assert_allclose(idle.mean[kept], without.mean, rtol=1e-12, atol=1e-12)
    assert idle.mean[2] == 0.0
    if "covariance" in form:
        np.testing.assert_allclose(idle.cov[kept], without.cov, rtol=1e-12)
        assert idle.cov[2] == pytest.approx(1.0, abs=1e-12)
    else:
        np.testing.assert_allclose(idle.cov[np.ix_(kept, kept)], without.cov, atol=1e-12)
        np.testing.assert_allclose(idle.cov[2], [0.0, 0.0, 1.0, 0.0, 0.0], atol=1e-12)
    if not form.keys() - {"covariance"} and form:
        sparse = BayesianPerceptron(4, "relu", noise="learn", **form, **fading).learn(csr_array(more), y)
        np.testing.assert_allclose(sparse.mean, idle.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sparse.cov, idle.cov, rtol=1e-9)


@pytest.mark.parametrize("fading", [{"forgetting": 0.9}, {"drift": 0.02}], ids=str)
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_an_idle_input_of_a_network_stays_at_its_prior(structure: str, batch: int, fading: dict[str, Any]) -> None:
    if structure == "diagonal" and batch > 1:
        return
    X, y = rows(100, 3)
    X[:, 1] = 0.0
    fresh = BayesianNetwork(3, (6,), covariance=structure, **fading)
    learned = BayesianNetwork(3, (6,), covariance=structure, **fading).learn(X, y, batch=batch)
    np.testing.assert_allclose(learned.weights[0][:, 2], fresh.weights[0][:, 2], rtol=1e-12)
    np.testing.assert_allclose(learned.weight_variances[0][:, 2], fresh.weight_variances[0][:, 2], rtol=1e-12)


def flips(n: int = 10_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of three inputs; every 1,000 rows the first weight changes its sign."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    weights = np.tile([3.0, 1.0, -1.0], (n, 1))
    weights[:, 0] *= 1.0 - 2.0 * (np.arange(n) // 1000 % 2)
    chances = 1.0 / (1.0 + np.exp(-(X * weights).sum(axis=1)))
    return X, (rng.random(n) < chances).astype(float)


def test_forgetting_works_whatever_inputs_say_nothing() -> None:
    X, y = flips()
    accuracy = {}
    for name, given_rows in (("without", X), ("with", np.column_stack([X, np.zeros(len(X))]))):
        for forgetting in (0.99, 1.0):
            model = BayesianPerceptron(given_rows.shape[1], forgetting=forgetting)
            seen = model.predict_then_learn(given_rows, y)
            accuracy[name, forgetting] = np.mean((seen.mean > 0.5) == (y == 1.0))
    assert accuracy["with", 0.99] == accuracy["without", 0.99] > 0.78
    assert accuracy["without", 1.0] < 0.65


@pytest.mark.parametrize("prior", ["variances", "matrix"])
@pytest.mark.parametrize("form", [*PERCEPTRONS[:3], {"kernel": "rows", "process_noise": 1e-2}], ids=str)
def test_drift_is_a_kalman_filter_that_returns_to_the_prior(form: dict[str, Any], prior: str) -> None:
    X, y = rows(90, 3)
    q, noise = 0.03, 0.2
    prior_mean = np.array([0.5, -1.0, 2.0, 0.0])
    prior_cov = mixed_covariance(4) if prior == "matrix" else np.diag([1.0, 4.0, 0.5, 9.0])
    model = BayesianPerceptron(3, "linear", noise=noise, drift=q, mean=prior_mean, cov=prior_cov, **form).learn(X, y)
    mean, cov = prior_mean, prior_cov
    for x, target in zip(np.column_stack([np.ones(90), X]), y, strict=True):
        cov = (1 - q) * cov + q * prior_cov + form.get("process_noise", 0.0) * np.eye(4)
        gain = cov @ x / (x @ cov @ x + noise)
        mean, cov = mean + gain * (target - x @ mean), cov - np.outer(gain, x @ cov)
    np.testing.assert_allclose(model.mean, mean, atol=1e-10)
    np.testing.assert_allclose(model.cov, cov, atol=1e-10)


@pytest.mark.parametrize("drift", [1e-6, 0.01, 0.6, 0.999])
def test_drift_of_a_large_covariance_in_blocks(drift: float) -> None:
    X, y = rows(200, 9)
    ours, reference = (
        BayesianPerceptron(9, "linear", noise=0.1, drift=drift, kernel=kernel).learn(X, y)
        for kernel in ("blocks", "reference")
    )
    np.testing.assert_allclose(ours.mean, reference.mean, atol=1e-9)
    np.testing.assert_allclose(ours.cov, reference.cov, atol=1e-9)


@pytest.mark.parametrize("drift", [1e-9, 0.01, 0.9])
def test_drift_of_sparse_rows_is_made_up_later(drift: float) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 12)) * (rng.random((80, 12)) < 0.1)
    y = rng.normal(size=80)
    options: dict[str, Any] = {"covariance": "diagonal", "noise": 0.1, "drift": drift, "process_noise": 1e-3}
    dense, reference, sparse = (
        BayesianPerceptron(12, "linear", kernel=kernel, **options) for kernel in ("auto", "reference", "auto")
    )
    dense.learn(X, y)
    reference.learn(X, y)
    sparse.learn(csr_array(X[:33]), y[:33]).learn(csr_array(X[33:]), y[33:])
    for model in (dense, sparse):
        np.testing.assert_allclose(model.mean, reference.mean, atol=1e-11)
        np.testing.assert_allclose(model.cov, reference.cov, atol=1e-11)


def test_a_linear_network_drifts_and_forgets_as_a_perceptron_does() -> None:
    X, y = rows(70, 3)
    fadings: list[dict[str, Any]] = [{"drift": 0.05}, {"forgetting": 0.9}]
    for fading in fadings:
        perceptron = BayesianPerceptron(3, "linear", noise=0.1, **fading).learn(X, y)
        for kernel in ("auto", "reference"):
            network = BayesianNetwork(3, (), noise=0.1, kernel=kernel, **fading).learn(X, y)
            np.testing.assert_allclose(network.mean, perceptron.mean, atol=1e-10)
            np.testing.assert_allclose(network.cov[0], perceptron.cov, atol=1e-10)


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("hidden", [(5,), (5, 4)], ids=str)
def test_networks_fade_compiled_as_in_the_reference(hidden: tuple[int, ...], structure: str, batch: int) -> None:
    if structure == "diagonal" and batch > 1:
        return
    X, y = rows(60, 4)
    fadings: list[dict[str, Any]] = [{"forgetting": 0.95}, {"drift": 0.01}, {"forgetting": 0.98, "drift": 0.001}]
    for fading in fadings:
        ours, reference = (
            BayesianNetwork(4, hidden, covariance=structure, kernel=kernel, **fading).learn(X, y, passes=2, batch=batch)
            for kernel in ("auto", "reference")
        )
        np.testing.assert_allclose(ours.mean, reference.mean, atol=1e-8)
        for mine, theirs in zip(ours.cov, reference.cov, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-8)


@pytest.mark.parametrize("fading", [{"forgetting": 0.95}, {"drift": 0.01}], ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_networks_fade_the_same_however_rows_come(structure: str, fading: dict[str, Any]) -> None:
    X, y = rows(50, 3)
    whole, parts, single = (BayesianNetwork(3, (5,), covariance=structure, **fading) for _ in range(3))
    whole.learn(X, y)
    parts.learn(X[:9], y[:9]).learn(X[9:11], y[9:11]).learn(X[11:], y[11:])
    for x, target in zip(X, y, strict=True):
        single.learn(x, target)
    for other in (parts, single):
        np.testing.assert_array_equal(other.mean, whole.mean)
        for mine, theirs in zip(other.cov, whole.cov, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_rows_of_later_passes_count_as_rows(kernel: str) -> None:
    """Rows that are all the same, so that their order does not matter."""
    X, y = np.ones((7, 2)), np.ones(7)
    perceptrons = [BayesianPerceptron(2, "linear", noise=0.1, forgetting=0.9, kernel=kernel) for _ in range(2)]
    networks = [BayesianNetwork(2, (), noise=0.1, forgetting=0.9, kernel=kernel) for _ in range(2)]
    pairs: list[Any] = [perceptrons, networks]
    for once, thrice in pairs:
        once.learn(X, y).learn(X, y).learn(X, y)
        thrice.learn(X, y, passes=3, refine="reuse")
        np.testing.assert_allclose(thrice.mean, once.mean, rtol=1e-12)
        np.testing.assert_allclose(thrice.cov, once.cov, rtol=1e-9)
        assert thrice.n_seen == 7


@pytest.mark.parametrize("fading", [{"forgetting": 0.9}, {"drift": 0.01}], ids=str)
@pytest.mark.parametrize("form", PERCEPTRONS, ids=str)
def test_a_refused_row_leaves_a_fading_belief_as_it_was(form: dict[str, Any], fading: dict[str, Any]) -> None:
    X, y = rows(21, 3)  # with forgetting=0.9 the next row comes after a step
    model = BayesianPerceptron(3, "linear", noise=0.1, **form, **fading).learn(X, y)
    mean, cov, evidence = model.mean, model.cov, model.log_evidence
    for wild in (np.full(3, 1e200), np.full((2, 3), 1e200)):
        with pytest.raises(ValueError, match="Nothing was learned"):
            model.learn(wild, np.ones(wild.shape[:-1]))
    np.testing.assert_array_equal(model.mean, mean)
    np.testing.assert_array_equal(model.cov, cov)
    assert model.log_evidence == evidence
    network = BayesianNetwork(3, (4,), noise=0.1, **fading).learn(X, y)
    before = network.mean
    with pytest.raises(ValueError, match="Nothing was learned"):
        network.learn(np.full(3, 1e200), 1.0)
    np.testing.assert_array_equal(network.mean, before)


@pytest.mark.parametrize("fading", [{"forgetting": 0.9}, {"drift": 0.01}], ids=str)
@pytest.mark.parametrize("prior", ["variances", "matrix"])
def test_files_keep_what_is_forgotten_towards(prior: str, fading: dict[str, Any], tmp_path: Any) -> None:
    X, y = rows(60, 3)
    cov = mixed_covariance(4) if prior == "matrix" else np.linspace(1.0, 4.0, 4)
    made: list[Any] = [
        BayesianPerceptron(3, "linear", noise=0.1, mean=np.arange(4.0), cov=cov, **fading),
        BayesianNetwork(3, (5,), **fading),
        BayesianNetwork(3, (5,), covariance="diagonal", dtype="float32", **fading),
    ]
    for model in made:
        model.learn(X[:30], y[:30])
        onepass.save(model, tmp_path / "model")
        loaded = onepass.load(tmp_path / "model")
        for each in (model, loaded):
            each.learn(X[30:], y[30:])
        np.testing.assert_array_equal(loaded.mean, model.mean)
        np.testing.assert_array_equal(loaded.cov, model.cov)
        assert loaded.drift == model.drift


@pytest.mark.parametrize("fading", [{"forgetting": 0.9}, {"drift": 0.01}], ids=str)
def test_single_precision_fades_as_double_does(fading: dict[str, Any]) -> None:
    X, y = rows(100, 3)
    for form in PERCEPTRONS:
        single, double = (
            BayesianPerceptron(3, "linear", noise=0.1, dtype=dtype, **form, **fading).learn(X, y)
            for dtype in ("float32", "float64")
        )
        assert single.cov.dtype == np.float32
        np.testing.assert_allclose(single.mean, double.mean, atol=1e-4)
        np.testing.assert_allclose(single.cov, double.cov, atol=1e-4)
    for structure in STRUCTURES:
        networks = [
            BayesianNetwork(3, (4,), noise=0.1, covariance=structure, dtype=dtype, **fading).learn(X, y)
            for dtype in ("float32", "float64")
        ]
        np.testing.assert_allclose(networks[0].mean, networks[1].mean, atol=1e-3)


def test_no_drift_changes_no_bit() -> None:
    X, y = rows(60, 3)
    for form in PERCEPTRONS:
        plain = BayesianPerceptron(3, "linear", **form).learn(X, y)
        none = BayesianPerceptron(3, "linear", drift=0.0, **form).learn(X, y)
        np.testing.assert_array_equal(plain.mean, none.mean)
    assert "prior_mean" not in BayesianNetwork(3, (5,)).export_state()[1]  # its arguments say it


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
def test_drift_is_checked(wrong: float) -> None:
    kinds: list[Any] = [BayesianPerceptron, BayesianNetwork]
    for make in kinds:
        with pytest.raises(ValueError, match=r"drift must be a number in \[0, 1\], got"):
            make(2, drift=wrong)
        with pytest.raises(TypeError, match="drift must be a number"):
            make(2, drift="fast")


def test_what_drifts_is_not_refined_or_merged() -> None:
    X, y = rows(10, 2)
    for model in (BayesianPerceptron(2, "linear", drift=0.1), BayesianNetwork(2, (3,), drift=0.1)):
        with pytest.raises(ValueError, match="don't drift, got drift"):
            model.learn(X, y, passes=2, refine="ep")
        with pytest.raises(ValueError, match=r"drift=0\.1 lets the weights move"):
            Merging(model)
    fleet = PerceptronFleet(2, "linear")
    with pytest.raises(ValueError, match=r"drift=0\.1 where the fleet has 0"):
        fleet.prior = BayesianPerceptron(2, "linear", drift=0.1)
