import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import onepass
from onepass import (
    BayesianMLPClassifier,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
    CheckpointError,
)
from onepass.estimators.rows import PredictedRows, Rows
from onepass.files.registry import exported, restored
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import FARTHEST
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.reasons import Reason
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.targets import NumberTarget
from tests.helpers.tables import clicks, trips, write_csv

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(0.0, 0.3, 120)


def learned(folder: Path, rows: list[dict[str, Any]], target: str, **settings: Any) -> TabularModel:
    inputs = Inputs((str(write_csv(folder / "a.csv", rows)),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions(target, settings=Settings(**settings)), rereadable=True)
    for step in steps(model, inputs, sources):
        model.learn(step.rows)
    return model


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianPerceptronRegressor(standardize=False),
        BayesianPerceptronRegressor(prior_scale="auto", standardize=False),
        BayesianPerceptronClassifier(),
        BayesianMLPClassifier((3,), standardize=False),
    ],
    ids=lambda estimator: f"{type(estimator).__name__}-{estimator.prior_scale}",
)
def test_rows_are_predicted_by_what_was_learned_before_them(estimator: Any) -> None:
    classes = hasattr(estimator, "predict_proba")
    y = np.digitize(Y, [-1.0, 1.0]) if classes else Y
    first = {"classes": [0, 1, 2]} if classes else {}
    estimator.partial_fit(X[:100], y[:100], **first)
    expected = []
    copy = restored(type(estimator), *exported(estimator))
    for i in range(100, 105):
        expected.append(copy.predict_proba(X[i : i + 1])[0] if classes else copy.predict(X[i : i + 1])[0])
        copy.partial_fit(X[i : i + 1], y[i : i + 1])
    predicted = estimator.predict_then_learn(X[100:105], y[100:105])
    # Several priors are weighed once a call, so only the first row sees the very same weights.
    same = 1 if estimator.prior_scale == "auto" else 5
    np.testing.assert_allclose(predicted.mean[:same], np.array(expected)[:same], rtol=1e-7)
    assert estimator.n_seen_ == 105
    assert (predicted.var > 0).all()


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (BayesianPerceptronRegressor(warm_up=50), 1e5 * Y),
        (BayesianPerceptronRegressor(warm_up=50), 1e5 * np.column_stack([Y, -Y])),
        (BayesianPerceptronRegressor(noise=1e8, warm_up=50), 1e5 * Y),
        (BayesianPerceptronRegressor(noise=1e8, warm_up=50), 1e5 * np.column_stack([Y, -Y])),
        (BayesianPerceptronClassifier(standardize=True, warm_up=50), (Y > 0).astype(int)),
        (BayesianMLPClassifier((4,), warm_up=50, passes=1, shuffle=False), np.digitize(Y, [-1.0, 1.0])),
    ],
)
def test_rows_of_a_warm_up_are_predicted_and_not_scored(model: Any, y: Any) -> None:
    options = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
    together, one_by_one = clone(model), clone(model)
    predicted = together.predict_then_learn(X, y, **options)
    assert np.isnan(predicted.mean[0]).all()  # before the first row nothing is known
    assert np.isfinite(predicted.mean[1:]).all()
    assert np.isnan(predicted.log_density[:50]).all()
    assert np.isfinite(predicted.log_density[50:]).all()
    rows = [one_by_one.predict_then_learn(X[i : i + 1], y[i : i + 1], **options) for i in range(len(X))]
    own = PredictedRows.joined(rows)
    np.testing.assert_allclose(own.mean[50:], predicted.mean[50:], rtol=1e-7)
    np.testing.assert_allclose(own.log_density[50:], predicted.log_density[50:], rtol=1e-7)
    assert one_by_one.log_evidence_ == pytest.approx(together.log_evidence_)
    if getattr(model, "noise", 0.0) != "learn":  # of which the evidence is no product of predictive densities
        assert together.log_evidence_ == pytest.approx(np.nansum(predicted.log_density))
    assert together.log_evidence_ == pytest.approx(clone(model).fit(X, y).log_evidence_)
    fitted = clone(model).fit(X[:10], y[:10]) if not options else clone(model).partial_fit(X[:10], y[:10], **options)
    expected = fitted.predict_proba(X[10:11]) if options else fitted.predict(X[10:11])
    np.testing.assert_allclose(own.mean[10], expected[0], rtol=1e-7)  # by the scale of the rows before


def test_a_model_of_a_table_survives_its_file_and_equal_models_are_equal_files(tmp_path: Path) -> None:
    model = learned(tmp_path, trips(300), "price")
    onepass.save(model, tmp_path / "a")
    again = onepass.load(tmp_path / "a")
    onepass.save(again, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert list(again.choices()) == list(model.choices())
    assert again.weights() == model.weights()
    rows = RNG.normal(size=(4, len(model.encoding.features)))
    for name, column in model.predictions(rows, 0.9).items():
        np.testing.assert_array_equal(again.predictions(rows, 0.9)[name], column)


@pytest.mark.parametrize(
    "change",
    [
        ("encoding", {"columns": [], "ignored": {}}),
        ("encoding", {"columns": [{"kind": "boolean", "name": "a"}], "ignored": {}}),
        ("target", {"kind": "number", "name": "price", "centre": 0.0, "scale": -1.0}),
        ("target", {"kind": "class", "name": "price", "labels": ["a", "b"], "numeric": False}),
        ("target", {"kind": "magic"}),
        ("estimator", {"class": "os.system", "state": {}}),
        ("estimator", {"class": ["BayesianMLPRegressor"], "state": {}}),
        ("n_rows", -1),
        ("n_rejected", None),
        ("history", {"runs": 5, "forgotten": 0}),
        ("progress", "much"),
    ],
)
def test_a_hostile_file_is_refused(change: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = learned(tmp_path, trips(50), "price")
    parameters, arrays = model.export_state()
    parameters[change[0]] = change[1]
    monkeypatch.setattr(model, "export_state", lambda: (parameters, arrays))
    onepass.save(model, tmp_path / "a")
    with pytest.raises(CheckpointError):
        onepass.load(tmp_path / "a")


def test_only_an_estimator_is_taken_for_one(tmp_path: Path) -> None:
    parameters, arrays = learned(tmp_path, trips(50), "price").export_state()
    for name in ("TabularModel", "BayesianPerceptron"):  # classes that a file can hold, but not in this place
        parameters["estimator"]["class"] = name
        with pytest.raises(ValueError, match=f"'{name}' is not an estimator"):
            TabularModel.from_state(parameters, arrays)


def test_many_features_are_learned_and_shown_in_bounded_memory(tmp_path: Path) -> None:
    rows = [{"word": f"w{i}", "y": float(i % 7)} for i in range(500)]
    sources = Inputs((str(write_csv(tmp_path / "a.csv", rows)),)).sources()
    model, _ = infer_model(sources, SchemaOptions("y", kinds={"word": "hashed"}, buckets=2**14), rereadable=True)
    assert model.rows_per_block * len(model.encoding.features) <= 2**23
    wide = RNG.normal(size=(5, 2**14))
    model.learn(Rows(wide, np.arange(5.0)))
    tracemalloc.start()
    try:
        (weights,) = model.weights().values()
        assert tracemalloc.get_traced_memory()[1] < 3e8  # all contrasts at once would take 2 GB
    finally:
        tracemalloc.stop()
    assert len(weights) == 2**14


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_weights_of_groups_are_gaps_to_an_average_row(covariance: str, tmp_path: Path) -> None:
    model = learned(tmp_path, trips(500), "price", covariance=covariance)
    assert isinstance(model.target, NumberTarget)
    contrasts = np.vstack(list(model.encoding.contrasts(range(len(model.encoding.features)))))
    cov = model.estimator.coef_cov_
    stds = np.sqrt(np.diag(contrasts @ (cov if covariance == "full" else np.diag(cov)) @ contrasts.T))
    (weights,) = model.weights().values()
    found = {weight.feature: (weight.mean, weight.std) for weight in weights}
    means = contrasts @ model.estimator.coef_
    for name, mean, std in zip(model.encoding.features, means, stds, strict=True):
        np.testing.assert_allclose(found[name], np.array([mean, std]) * model.target.scale)


@pytest.mark.parametrize("hidden", [(), (3,)], ids=str)
def test_of_very_many_features_the_foremost_are_shown(
    hidden: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = learned(tmp_path, clicks(2000), "kind", hidden=hidden)
    every = model.weights()
    monkeypatch.setattr("onepass.tables.weights._MOST_DRAWN", 5)
    for key, few in model.weights().items():
        assert len(few) == 5
        assert few[0].feature in {weight.feature for weight in every[key][:5]}
        assert few[0].mean == pytest.approx({one.feature: one.mean for one in every[key]}[few[0].feature], rel=0.2)


def test_weights_of_a_network_point_where_the_data_do(tmp_path: Path) -> None:
    model = learned(tmp_path, clicks(3000), "clicked", hidden=(3,))
    (weights,) = model.weights().values()
    found = {weight.feature: weight for weight in weights}
    assert found["kind=none"].mean < 0 < found["kind=ad"].mean
    assert all(weight.std > 0 for weight in weights if weight.mean)


def test_what_is_chosen_is_plain_data(tmp_path: Path) -> None:
    parameters, _ = learned(tmp_path, clicks(50), "kind").export_state()
    assert json.loads(json.dumps(parameters))["target"]["labels"] == ["ad", "news", "none"]


@pytest.mark.parametrize("settings", [{}, {"hidden": (4,)}], ids=["perceptron", "network"])
@pytest.mark.parametrize("at", [20, 250])
def test_huge_values_cost_their_rows_only(at: int, settings: dict[str, Any], tmp_path: Path) -> None:
    rows = trips(300)
    rows[at] |= {"km": 1e308}
    rows[at + 1] |= {"price": 1e300}
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", rows)),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("price", sample=100, settings=Settings(**settings)), rereadable=True)
    rejects: list[Any] = []
    for step in steps(model, inputs, sources):
        model.learn(step.rows)
        rejects += step.rows.rejects
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (at + 2, Reason("too_far", "km", 1e308)),
        (at + 3, Reason("too_far", "price", 1e300, "target")),
    ]
    assert model.n_rows == 298
    onepass.save(model, tmp_path / "a.onepass")
    far = np.full((1, len(model.encoding.features)), FARTHEST)
    answers = model.predictions(np.vstack([far, -far, 0.0 * far]), 0.9)
    assert all(np.isfinite(answer).all() for answer in answers.values())


@pytest.mark.parametrize("settings", [{}, {"hidden": (4,)}, {"prior_scale": "auto"}], ids=str)
def test_what_is_just_not_too_far_is_learned_with_finite_numbers(settings: dict[str, Any], tmp_path: Path) -> None:
    model = learned(tmp_path, trips(300), "price", **settings)
    d = len(model.encoding.features)
    for x, y in ((FARTHEST, 1.0), (1.0, FARTHEST), (-FARTHEST, FARTHEST)):
        model.learn(Rows(np.full((1, d), x), np.full(1, y)))
    answers = model.predictions(np.eye(d), 0.9)
    assert all(np.isfinite(answer).all() for answer in answers.values())


def test_a_target_of_one_number_may_be_meant_as_a_number(tmp_path: Path) -> None:
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", [{"a": i * i, "y": 3} for i in range(30)])),))
    with pytest.raises(SchemaError) as refused:
        infer_model(inputs.sources(), SchemaOptions("y"), rereadable=True)
    assert (refused.value.reason.code, refused.value.reason.value) == ("one_class", "3")
    assert refused.value.suggestions == {"classes": "a,b", "task": "regression"}
    model, reason = infer_model(inputs.sources(), SchemaOptions("y", task="regression"), rereadable=True)
    assert isinstance(model.target, NumberTarget)
    assert reason.code == "as_asked"


def test_what_a_feature_does_to_one_of_several_classes_is_known_after_many_rows(tmp_path: Path) -> None:
    rows = [{name: row[name] for name in ("age", "device", "kind")} for row in clicks(3000)]
    found = {weight.feature: weight for weight in learned(tmp_path, rows, "kind").weights()["none"]}
    assert found["age"].mean < -5.0 * found["age"].std  # who is older clicks more often
    assert found["age"].std < 0.1


@pytest.mark.parametrize("from_row", [0, 2000], ids=["from the first row", "never among the rows learned"])
def test_a_missing_number_widens_the_interval_by_what_it_would_have_told(tmp_path: Path, from_row: int) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(3000, 2))
    targets = values @ [2.0, 1.0] + 0.3 * rng.normal(size=3000)
    unknown = (rng.random(3000) < 0.2) & (np.arange(3000) >= from_row)
    rows = [
        {"a": None if gone else a, "b": b, "y": y}
        for gone, (a, b), y in zip(unknown.tolist(), values.tolist(), targets.tolist(), strict=True)
    ]
    model = onepass.tables.fit(write_csv(tmp_path / "a.csv", rows[:2000]), target="y")
    found = model.predict(rows[2000:])
    std, low, high = (found[name].to_numpy() for name in ("std", "lower", "upper"))
    gone, y = unknown[2000:], targets[2000:]
    np.testing.assert_allclose(std[~gone], 0.3, rtol=0.1)
    np.testing.assert_allclose(std[gone], np.hypot(2.0, 0.3), rtol=0.1)  # the target given the other column alone
    inside = (low <= y) & (y <= high)
    assert inside[gone].mean() > 0.9
    assert inside[~gone].mean() > 0.9
