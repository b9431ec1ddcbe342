"""Perceptron and network side by side: the better one answers, and nothing but the rows decides which."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import onepass
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.rows import Rows
from onepass.files.versions import VersionedFile
from onepass.tables.better_of_two import COMPARED_ROWS, BetterOfTwo
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.number import Number
from onepass.tables.inputs import Inputs, Position, steps
from onepass.tables.model import TabularModel
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings, make_estimator, resolve_model_kind
from onepass.tables.targets import ClassTarget, NumberTarget
from onepass.tables.training import TrainingRun, train
from tests.helpers.tables import write_csv

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, size=(COMPARED_ROWS + 100, 2))
NOISE = RNG.normal(0.0, 0.1, len(X))
LINEAR, PRODUCT = X @ [1.0, -0.5] + NOISE, 2.0 * X[:, 0] * X[:, 1] + NOISE
NUMBER = NumberTarget("y", 0.0, 1.0)


def comparison(**settings: Any) -> BetterOfTwo:
    small = {"hidden": (), "model_kind": "auto", **settings}
    made = make_estimator(2, NUMBER, Settings(**small))
    assert isinstance(made, BetterOfTwo)
    made.start(2)
    return made


def rows_of(y: Any) -> list[dict[str, Any]]:
    return [{"a": round(a, 4), "b": round(b, 4), "y": one} for (a, b), one in zip(X.tolist(), y, strict=False)]


def fitted(folder: Path, y: Any, passes: int = 1, task: str | None = None, **settings: Any) -> TabularModel:
    inputs = Inputs((str(write_csv(folder / "a.csv", rows_of(y))),), passes)
    sources = inputs.sources()
    options = SchemaOptions("y", task=task, settings=Settings(**settings))
    model, _ = infer_model(sources, options, rereadable=True)
    train(TrainingRun(model, VersionedFile(folder / "a.onepass"), inputs, sources))
    return model


def weighted_evidence(X: Any, y: Any, weights: Any) -> float:
    """Log marginal likelihood of rows that count as so many copies, over noises around a tenth and standard weights."""
    design = np.column_stack([4.0 * np.ones(len(y)), X])  # in units of the prior
    squares, products, total = design.T @ (weights[:, None] * design), design.T @ (weights * y), weights @ y**2
    logs = np.arange(-15.0, 10.0, 0.01)
    densities = []
    for noise in np.exp(logs):
        precision = np.eye(3) + squares / noise
        left = total - products @ np.linalg.solve(precision, products) / noise
        spread = weights.sum() * np.log(2.0 * np.pi * noise) + np.linalg.slogdet(precision)[1]
        densities.append(-0.5 * (spread + left / noise))
    return float(logsumexp(densities + norm.logpdf(logs, np.log(0.1), 3.0)) + np.log(0.01))


@pytest.mark.parametrize("kind", ["perceptron", "auto"])
@pytest.mark.parametrize("n", [300, len(X)], ids=["undecided", "decided"])
def test_the_evidence_of_weighted_rows_is_a_weighted_mean_in_own_units(kind: str, n: int) -> None:
    target, weights = NumberTarget("y", 5.0, 20.0), np.random.default_rng(3).choice([0.1, 0.5, 1.0], size=n)
    encoding = Encoding((Number("a", 0.0, 1.0, False), Number("b", 0.0, 1.0, False)), {})
    model = TabularModel(encoding, target, Settings(kind, prior_scale=1.0, weight="w"))
    predicted = model.predict_then_learn(Rows(X[:n], LINEAR[:n], weights))
    density = target.log_density(LINEAR[:n], predicted.log_density)
    expected = float(np.average(density, weights=weights))
    if kind == "perceptron":  # whose noise is learned, so that its evidence is no product of predictive densities
        expected = weighted_evidence(X[:n], LINEAR[:n], weights) / weights.sum() - np.log(target.scale)
    words = dict(model.facts())["evidence"]
    assert float(words.split(",")[0]) == pytest.approx(expected, abs=1e-3)
    assert words.endswith("weighted by w")


def test_a_network_answers_where_features_act_together(tmp_path: Path) -> None:
    model = fitted(tmp_path, PRODUCT[:600].round(4).tolist())
    assert model.is_network
    assert "network 2-50-1: its log-score was so far" in model.verdict
    assert "better than the perceptron's, over the first 600 rows" in model.verdict
    assert "to pay for" not in model.verdict
    loaded = onepass.load(tmp_path / "a.onepass")
    assert dict(loaded.choices())["model"] == model.verdict


def test_a_perceptron_answers_where_they_do_not(tmp_path: Path) -> None:
    model = fitted(tmp_path, LINEAR.round(4).tolist())
    assert not model.is_network
    assert model.verdict.startswith("perceptron with 2 features: its log-score was ")
    assert f"over the first {COMPARED_ROWS:,} rows" in model.verdict
    assert ("worse than the network's" in model.verdict) == model.verdict.endswith(": too little to pay for a network")
    assert model.estimator.is_decided
    assert len(model.weights()["y"]) == 2


@pytest.mark.parametrize("labels", [2, 3])
def test_classes_compete(labels: int, tmp_path: Path) -> None:
    edges = [0.0] if labels == 2 else [-0.3, 0.3]
    model = fitted(tmp_path, [f"k{k}" for k in np.digitize(PRODUCT[:500], edges)])
    assert model.is_network
    probabilities = model.estimator.predict_proba(X[:50])
    assert probabilities.shape == (50, labels)


def test_counts_compete(tmp_path: Path) -> None:
    counts = RNG.poisson(np.exp(1.0 + 3.0 * X[:600, 0] * X[:600, 1]))
    assert fitted(tmp_path, counts.tolist(), task="counts").is_network


def test_any_split_of_the_rows_gives_the_same_winner_and_predictions() -> None:
    found = []
    for size in (len(X), 700):
        one = comparison()
        parts = [one.predict_then_learn(Rows(X[:size], PRODUCT[:size]))]
        for start in range(size, len(X), size):
            rows = slice(start, start + size)
            parts.append(one.predict_then_learn(Rows(X[rows], PRODUCT[rows])))
        assert one.is_decided
        found.append((np.concatenate([part.mean for part in parts]), one.predict(X[:20]), one.lead))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_the_leader_before_a_row_answers_for_it() -> None:
    both, n = comparison(), 300
    alone = [make_estimator(2, NUMBER, Settings(model_kind=kind)) for kind in ("perceptron", "network")]
    first, second = (one.predict_then_learn(X[:n], PRODUCT[:n]) for one in alone)
    seen = both.predict_then_learn(Rows(X[:n], PRODUCT[:n]))
    gain = weight = 0.0
    for i in range(n):  # the definition, row by row
        leader = second if gain > 5.0 else first
        assert seen.mean[i] == leader.mean[i]
        assert seen.log_density[i] == leader.log_density[i]
        fading = np.exp(-1.0 / 500.0)
        gain, weight = fading * gain + second.log_density[i] - first.log_density[i], fading * weight + 1.0
    assert both.lead == pytest.approx(gain / weight, rel=1e-9)


@pytest.mark.parametrize("settings", [{}, {"outliers": 0.05}, {"drift": "auto"}, {"prior_scale": "auto"}], ids=str)
def test_a_comparison_goes_on_from_its_state_bit_for_bit(settings: dict[str, Any]) -> None:
    one = comparison(**settings)
    one.learn(Rows(X[:40], PRODUCT[:40]))
    other = BetterOfTwo.from_state(*one.export_state())
    for each in (one, other):
        each.learn(Rows(X[40:80], PRODUCT[40:80]))
    assert one.lead == other.lead
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_learning_and_predicting_first_end_the_same() -> None:
    learned, predicted = comparison(), comparison()
    learned.learn(Rows(X[:50], LINEAR[:50]))
    predicted.predict_then_learn(Rows(X[:50], LINEAR[:50]))
    learned.learn(Rows(X[50:90], LINEAR[50:90]))
    predicted.predict_then_learn(Rows(X[50:90], LINEAR[50:90]))
    np.testing.assert_array_equal(learned.predict(X), predicted.predict(X))


def test_rows_that_come_again_are_no_test(tmp_path: Path) -> None:
    model = fitted(tmp_path, LINEAR[:100].round(4).tolist(), passes=3)
    assert model.n_rows == 300
    assert model.estimator.is_decided
    assert model.estimator.n_judged == 100


def test_a_state_that_no_comparison_has_is_refused() -> None:
    one = comparison()
    one.learn(Rows(X[:40], LINEAR[:40]))
    parameters, arrays = one.export_state()
    with pytest.raises(ValueError, match="over after"):
        BetterOfTwo.from_state({**parameters, "n_judged": COMPARED_ROWS + 1}, arrays)
    with pytest.raises(ValueError, match="two candidates"):
        BetterOfTwo.from_state({**parameters, "candidates": []}, arrays)


def test_a_network_is_not_tried_where_it_would_take_too_long() -> None:
    given = Settings()
    for n_features, n_rows, words in (
        (20, 2e6, "some 12 minutes for about 2,000,000 rows"),
        (1000, 100.0, "50,101 weights"),
        (20, None, "the number of rows is unknown"),
    ):
        chosen, reason = resolve_model_kind(given, n_features, NUMBER, n_rows)
        assert chosen.model_kind == "perceptron"
        assert words in reason
    assert resolve_model_kind(given, 20, NUMBER, 5000.0) == (given, "")
    assert (
        resolve_model_kind(Settings(drift="auto"), 20, NUMBER, 5000.0)[0].model_kind == "perceptron"
    )  # ten times the work
    assert resolve_model_kind(Settings(model_kind="network"), 20, NUMBER, 2e6)[0].model_kind == "network"


def test_kinds_that_are_asked_for_are_made() -> None:
    classes = ClassTarget("y", ("a", "b"), False)
    for settings, numbers, labels in (
        (Settings(model_kind="perceptron"), BayesianPerceptronRegressor, BayesianPerceptronClassifier),
        (Settings(model_kind="network"), BayesianMLPRegressor, BayesianMLPClassifier),
        (Settings(hidden=(3,)), BayesianMLPRegressor, BayesianMLPClassifier),
        (Settings(covariance="diagonal"), BayesianPerceptronRegressor, BayesianPerceptronClassifier),
    ):
        assert type(make_estimator(2, NUMBER, settings)) is numbers
        assert type(make_estimator(2, classes, settings)) is labels


def test_on_a_cluster_a_perceptron_learns_and_that_is_told(tmp_path: Path) -> None:
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", rows_of(LINEAR[:50].tolist()))),))
    model, _ = infer_model(inputs.sources(), SchemaOptions("y"), rereadable=True)
    model.end_comparison()
    assert type(model.estimator) is BayesianPerceptronRegressor
    assert dict(model.choices())["model"].endswith("not tried on a cluster, whose rows have no common order")


def test_why_no_network_was_tried_is_kept_in_the_file(tmp_path: Path) -> None:
    model = fitted(tmp_path, LINEAR[:50].round(4).tolist(), model_kind="perceptron")
    model.kind_reason = "a network is not tried"
    onepass.save(model, tmp_path / "b.onepass")
    assert dict(onepass.load(tmp_path / "b.onepass").choices())["model"].endswith("; a network is not tried")


def test_a_cut_run_ends_with_the_same_comparison(tmp_path: Path) -> None:
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", rows_of(PRODUCT.round(4).tolist()))),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("y"), rereadable=True)
    position, blocks = Position(), 0
    for step in steps(model, inputs, sources):
        model.learn(step.rows)
        blocks += 1
        if blocks == 1:
            position = step.position
            onepass.save(model, tmp_path / "half.onepass")
    resumed = onepass.load(tmp_path / "half.onepass")
    for step in steps(resumed, inputs, inputs.sources(), position):
        resumed.learn(step.rows)
    assert blocks > 1
    assert resumed.n_rows == model.n_rows == len(X)
    np.testing.assert_array_equal(resumed.predictions(X[:50], 0.9)["upper"], model.predictions(X[:50], 0.9)["upper"])


def test_the_rows_of_all_files_count(tmp_path: Path) -> None:
    rows = rows_of(LINEAR.round(4).tolist())
    files = [str(write_csv(tmp_path / f"{name}.csv", rows)) for name in "abc"]
    options = SchemaOptions("y", sample=500)
    few, _ = infer_model(Inputs((files[0],)).sources(), options, rereadable=True)
    many, _ = infer_model(Inputs(tuple(files * 1000)).sources(), options, rereadable=True)
    assert isinstance(few.estimator, BetterOfTwo)
    assert isinstance(many.estimator, BayesianPerceptronRegressor)
    (told,) = (int(word.replace(",", "")) for word in many.kind_reason.split() if "," in word and word[0].isdigit())
    assert 0.8 < told / (3000 * len(rows)) < 1.25
