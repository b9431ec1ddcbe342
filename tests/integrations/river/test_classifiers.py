import copy
import math
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import checks, datasets, evaluate, linear_model, metrics, multiclass, preprocessing

import onepass
from onepass import BayesianNetwork
from onepass.models.calibration import CalibrationMap
from onepass.river import MLPClassifier, MLPRegressor, PerceptronClassifier, SoftmaxClassifier

MODELS = [
    SoftmaxClassifier(),
    SoftmaxClassifier(covariance="diagonal", forgetting=0.99, outliers=0.05),
    MLPClassifier((4,)),
    SoftmaxClassifier(probabilities="adaptive"),
    MLPClassifier((3, 3), activation="tanh", covariance="neuron", random_state=7),
    MLPRegressor((4,)),
    MLPRegressor((3,), observation="heteroscedastic", forgetting=0.99, covariance="diagonal"),
]
CHECKED = [
    kind(**arguments)
    for kind in (SoftmaxClassifier, MLPClassifier, MLPRegressor)
    for arguments in kind._unit_test_params()
]
STANDARDIZED = [MLPRegressor((4,), standardize=True)]
DRIFTING = [SoftmaxClassifier(drift="auto"), MLPRegressor((2,), drift="auto")]
COMMITTEES = [MLPClassifier((3,), members=2, missing="mean"), MLPRegressor((2,), members=2, drift="auto")]


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(
            model,
            check,
            id=f"{type(model).__name__}-{getattr(model, 'members', 1)}-{check.__name__}",
            marks=[pytest.mark.slow] if check.__name__ == "check_bounded_memory_growth" else [],
        )
        for model in CHECKED
        for check in checks.yield_checks(model)
        if check.__name__ not in model._unit_test_skips()
    ],
)
@pytest.mark.filterwarnings("ignore:member . of the mixture predicts")  # rows of River's checks are not scaled
def test_it_is_a_river_model(model: Any, check: Any) -> None:
    random.seed(0)  # checks leave out features at random, and rows of such a size can be too much for a network
    check(model.clone())


rng = np.random.default_rng(0)
NAMES = list("abcdefghijkl")
X = rng.normal(size=(150, 12))
SCORE = X[:, 0] - X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=150)
CLASSES = np.array(["low", "mid", "high"])[np.digitize(SCORE, [-0.5, 0.5])].tolist()
ROWS = [dict(zip(NAMES, row.tolist(), strict=True)) for row in X]
SOME = [dict(list(row.items())[: 3 + i // 10]) for i, row in enumerate(ROWS)]  # more and more features


def target(model: Any, i: int) -> Any:
    return float(SCORE[i]) if isinstance(model, MLPRegressor) else CLASSES[i]


def taught(model: Any, rows: Any = ROWS, start: int = 0) -> Any:
    for i, x in enumerate(rows[start:], start):
        model.learn_one(x, target(model, i))
    return model


@pytest.mark.parametrize("covariance", ["full", "neuron", "diagonal"])
def test_features_that_come_late_are_as_if_they_had_been_zero(covariance: str) -> None:
    late = taught(SoftmaxClassifier(covariance=covariance), SOME)
    known = taught(SoftmaxClassifier(covariance=covariance), [dict.fromkeys(NAMES, 0.0) | x for x in SOME])
    assert sorted(late.features) == sorted(known.features) == NAMES
    assert late.log_evidence == pytest.approx(known.log_evidence, rel=1e-8)
    for x in ROWS[:5]:
        assert late.predict_proba_one(x) == pytest.approx(known.predict_proba_one(x), rel=1e-6)


def test_the_prior_of_a_network_does_not_depend_on_what_comes_later() -> None:
    model: Any = MLPRegressor((6,))
    model.learn_one(SOME[0], 0.5)
    std = np.sqrt(model._core.weight_variances[0][:, 1:4]).mean()
    taught(model, SOME, 1)
    fresh: Any = MLPRegressor((6,))
    fresh.learn_one(SOME[0], 0.5)
    fresh.learn_one(ROWS[1], 0.5)
    late = np.sqrt(fresh._core.weight_variances[0][:, 4:13]).mean()
    assert late == pytest.approx(std, rel=0.1)  # of three inputs, and not of twelve: half of it
    assert model.features == tuple(NAMES)


def test_the_first_class_is_learned_against_any_other() -> None:
    """What rows of one class say is not lost: it is what a network that knew of a second one has learned."""
    model = SoftmaxClassifier()
    for x in ROWS[:40]:
        model.learn_one(x, "only")
        assert model.predict_proba_one(x) == {"only": 1.0}
    whole = BayesianNetwork(12, (), 2, observation="categorical", intercept_scale=4.0).learn(X[:40], np.zeros(40))
    assert model.log_evidence == pytest.approx(whole.log_evidence, rel=1e-9)
    assert whole.predict(X[40]).mean[0] > 0.9
    model.learn_one(ROWS[40], "other")
    assert model.classes == ("only", "other")
    assert model.predict_proba_one(ROWS[41])["only"] > 0.5


def test_a_class_that_comes_late_is_soon_as_good_as_one_known_before() -> None:
    order = [*(i for i in range(100) if CLASSES[i] != "high"), *range(150)]
    late, whole = SoftmaxClassifier(), BayesianNetwork(12, (), 3, observation="categorical")
    places: dict[str, int] = {}
    losses = []
    for step, i in enumerate(order):
        if step >= len(order) - 100:
            ours = late.predict_proba_one(ROWS[i])
            theirs = whole.predict(X[i]).mean
            losses.append([-math.log(ours[CLASSES[i]]), -math.log(theirs[places[CLASSES[i]]])])
        late.learn_one(ROWS[i], CLASSES[i])
        whole.learn(X[i], float(places.setdefault(CLASSES[i], len(places))))
    ours, theirs = np.mean(losses, axis=0)
    assert ours < 1.05 * theirs
    assert sum(late.predict_proba_one(ROWS[0]).values()) == pytest.approx(1.0)


def test_true_and_false_are_two_classes_from_the_start() -> None:
    model: Any = MLPClassifier((4,))
    assert model.predict_proba_one(ROWS[0]) == {}
    assert model.predict_one(ROWS[0]) is None
    model.learn_one(ROWS[0], np.True_)
    assert list(model.predict_proba_one(ROWS[1])) == [False, True]
    assert model.predict_proba_one(ROWS[0])[True] > 0.5
    with pytest.raises(ValueError, match="y must be True or False, as the first label was, got 'yes'"):
        model.learn_one(ROWS[0], "yes")
    numbers = MLPClassifier((4,))
    for i, y in enumerate((0, 1, 2)):
        numbers.learn_one(ROWS[i], y)
    assert numbers.classes == (0, 1, 2)


@pytest.mark.parametrize(
    "model",
    [*MODELS, *STANDARDIZED, *DRIFTING, *COMMITTEES],
    ids=lambda model: f"{type(model).__name__}-{model.covariance}",
)
def test_files_copies_and_pickles_go_on_bit_for_bit(model: Any, tmp_path: Path) -> None:
    model = taught(model.clone(), SOME[:60])
    onepass.save(model, tmp_path / "model")
    others = [onepass.load(tmp_path / "model"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for one in (model, *others):
        taught(one, ROWS[:90], 60)  # with features that come only now
    for other in others:
        assert repr(other) == repr(model)
        assert other.log_evidence == model.log_evidence
        assert other.predict_one(ROWS[91]) == model.predict_one(ROWS[91])
    assert others[0].drift_ == model.drift_


def test_a_model_that_has_learned_nothing_is_saved(tmp_path: Path) -> None:
    onepass.save(MLPClassifier((3,)), tmp_path / "model")
    again = onepass.load(tmp_path / "model")
    assert again.n_seen == 0
    assert again.log_evidence == 0.0
    assert again.hidden_layer_sizes == (3,)
    assert taught(again, ROWS[:20]).log_evidence == taught(MLPClassifier((3,)), ROWS[:20]).log_evidence


def test_classes_that_a_file_cannot_hold_are_named(tmp_path: Path) -> None:
    model = SoftmaxClassifier()
    model.learn_one({"a": 1.0}, ("x", "y"))
    with pytest.raises(TypeError, match=r"classes must be numbers or strings, got \[\('x', 'y'\)\]"):
        onepass.save(model, tmp_path / "model")


def test_a_network_that_grows_too_large_keeps_fewer_correlations() -> None:
    model = MLPClassifier((20,))
    for i, x in enumerate(ROWS[:40]):
        model.learn_one(x, bool(SCORE[i] > 0))
    assert model._core is not None
    assert model._core.covariance == "full"
    before = model.predict_proba_one(ROWS[41])[True]
    model.learn_one({f"word{k}": 0.0 for k in range(200)}, True)
    assert model._core.covariance == "low_rank"
    assert model.predict_proba_one(ROWS[41])[True] == pytest.approx(before, abs=0.2)
    for i, x in enumerate(ROWS[:40]):
        model.learn_one({**x, f"word{i}": 1.0}, bool(SCORE[i] > 0))
    assert model.n_seen == 81
    fixed = SoftmaxClassifier(covariance="full")
    many = SoftmaxClassifier()
    for k in range(30):
        for each in (fixed, many):
            each.learn_one(ROWS[k], k)
    assert fixed._core is not None
    assert many._core is not None
    assert (fixed._core.covariance, many._core.covariance) == ("full", "neuron")


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "x"])
def test_what_is_no_number_is_refused_by_name(value: Any) -> None:
    model = taught(MLPClassifier((3,)), ROWS[:10])
    evidence = model.log_evidence
    for name in ("a", "new"):
        for call in (model.predict_proba_one, lambda x: model.learn_one(x, "newer")):
            with pytest.raises(ValueError, match=f"feature {name!r} must be a finite number, got .*; leave it out"):
                call({"b": 1.0, name: value})
    assert model.features == tuple(NAMES)
    assert "newer" not in model.classes
    assert (model.n_seen, model.log_evidence) == (10, evidence)


@pytest.mark.parametrize("wrong", [None, math.nan])
def test_a_row_without_a_target_is_refused_and_leaves_nothing_behind(wrong: Any) -> None:
    for model in (SoftmaxClassifier(), MLPRegressor((3,))):
        with pytest.raises(ValueError, match="learn a row once its target is known"):
            model.learn_one({"x": 1.0}, wrong)
        assert model.n_seen == 0
        assert model.features == ()


def test_a_row_that_overflows_leaves_nothing_behind() -> None:
    model = taught(MLPRegressor((3,), noise=1.0), ROWS[:10])
    with pytest.raises(ValueError, match="overflow"):
        model.learn_one({"new": 1e200, "a": 1e200}, 1.0)
    assert "new" not in model.features
    assert math.isfinite(model.predict_one(ROWS[0]))


def test_unknown_features_are_left_out_of_predictions() -> None:
    model = taught(MLPRegressor((3,)), ROWS[:30])
    near, far = (model.predict_one(x, with_dist=True) for x in (ROWS[30], {**ROWS[30], "new": 5.0}))
    assert (near.mu, near.sigma) == (far.mu, far.sigma)
    assert model.predict_one({}) == model.predict_one(dict.fromkeys(NAMES, 0.0))


@pytest.mark.parametrize("observation", ["poisson", "negative_binomial"])
def test_counts(observation: str) -> None:
    rates = np.exp(1.0 + 0.5 * X[:, 0])
    counts = np.random.default_rng(1).poisson(rates)
    model = MLPRegressor((4,), observation=observation)
    for x, y in zip(X[:, 0].tolist(), counts.tolist(), strict=True):
        model.learn_one({"x": x}, y)
    predicted = np.array([model.predict_one({"x": x}) for x in X[:, 0].tolist()])
    assert np.abs(predicted - rates).mean() < 0.5 * np.abs(counts - rates).mean()
    spread = model.predict_one({"x": 0.0}, with_dist=True).sigma
    assert spread == pytest.approx(math.sqrt(math.e), rel=0.4)
    with pytest.raises(ValueError, match="counts"):
        model.learn_one({"x": 0.0}, -1)


def test_wrong_arguments_are_refused_at_once() -> None:
    for arguments, words in (
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes must be"),
        ({"covariance": "none"}, "covariance must be"),
        ({"outliers": 0.7}, "outliers must be"),
        ({"drift": "fast"}, "drift must be"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            MLPClassifier(**arguments)


def test_labels_that_are_wrong_are_told() -> None:
    model = MLPClassifier((4,), outliers=0.1)
    with pytest.raises(ValueError, match="learn one first"):
        model.outlier_probability_one({"x": 3.0}, "left")
    for x in np.linspace(-3.0, 3.0, 200):
        model.learn_one({"x": float(x)}, "left" if x < 0.0 else "right")
    assert model.outlier_probability_one({"x": 3.0}, "left") > 0.5 > model.outlier_probability_one({"x": 3.0}, "right")
    assert 0.0 < model.outliers_ < 0.1


def score(model: Any, data: Any, metric: Any) -> float:
    return float(evaluate.progressive_val_score(data, preprocessing.StandardScaler() | model, metric).get())


def test_networks_learn_what_linear_models_cannot() -> None:
    rows: Any = datasets
    metric: Any = metrics
    losses = [
        score(one, rows.Bananas().take(1000), metric.LogLoss())
        for one in (MLPClassifier(), linear_model.LogisticRegression())
    ]
    assert losses[0] < 0.45 < 0.65 < losses[1]
    others = [
        SoftmaxClassifier(),
        linear_model.SoftmaxRegression(),
        multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    ]
    losses = [score(one, rows.ImageSegments().take(500), metric.CrossEntropy()) for one in others]
    assert losses[0] < min(losses[1:])


@pytest.mark.parametrize("drift", [0.0, "auto"])
def test_before_the_first_row_nothing_is_known_and_that_is_said(drift: Any) -> None:
    models = [MLPRegressor((20,), random_state=seed, drift=drift) for seed in range(8)]
    blind = [model.predict_one(ROWS[0], with_dist=True) for model in models]
    assert all(model.predict_one(ROWS[0]) == seen.mu == 0.0 for model, seen in zip(models, blind, strict=True))
    assert all(1.0 < seen.sigma < 20.0 for seen in blind)
    far = {name: 10.0 * value for name, value in ROWS[0].items()}
    assert models[0].predict_one(far, with_dist=True).sigma > 2.0 * blind[0].sigma
    assert models[0].features == ()
    assert models[0].predict_one({}) == 0.0
    models[0].learn_one(ROWS[0], 3.0)
    assert models[0].predict_one(ROWS[0]) == pytest.approx(3.0, abs=0.2)
    with pytest.raises(ValueError, match="feature 'a' must be a finite number, got None"):
        models[1].predict_one({"a": None})


def test_before_the_first_count_the_rate_is_that_of_the_prior() -> None:
    rates = [MLPRegressor(observation="poisson", random_state=seed).predict_one(ROWS[0]) for seed in range(3)]
    assert rates == pytest.approx(3 * [rates[0]])
    assert 0.0 < rates[0] < 10.0


def test_a_network_standardises_targets() -> None:
    model = MLPRegressor((6,), standardize=True)
    errors = []
    for x, y in zip(SOME, (-4000.0 + 700.0 * SCORE).tolist(), strict=True):
        x = {name: x[name] for name in NAMES[:3]}
        errors.append(abs(y - model.predict_one(x)))
        model.learn_one(x, y)
    assert np.mean(errors[100:]) < 0.5 * 700.0 * np.std(SCORE)
    assert 70.0 < model.predict_one(x, with_dist=True).sigma < 700.0
    with pytest.raises(ValueError, match="standardize=True needs observation='gaussian', got 'poisson'"):
        MLPRegressor(observation="poisson", standardize=True)


@pytest.mark.parametrize("wrong", ["foo", "bernoulli", "categorical"])
def test_an_observation_that_is_not_for_numbers_is_refused(wrong: str) -> None:
    kinds = "'auto', 'gaussian', 'heteroscedastic', 'negative_binomial', 'poisson'"
    with pytest.raises(ValueError, match=f"observation must be one of {kinds}, got {wrong!r}$"):
        MLPRegressor(observation=wrong)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.covariance}")
def test_rows_are_learned_by_their_weights_and_counted_once(model: Any) -> None:
    weighed, plain = model.clone(), model.clone()
    for i, x in enumerate(ROWS[:40]):
        weighed.learn_one(x, target(model, i), w=i % 3)
        if i % 3:
            plain.learn_one(x, target(model, i))
    assert weighed.log_evidence != plain.log_evidence
    assert weighed.n_seen == plain.n_seen
    weighed.learn_one({"new": 1.0}, target(model, 0), w=0.0)
    assert "new" not in weighed.features


def test_a_class_of_weight_zero_has_not_come() -> None:
    model = SoftmaxClassifier()
    model.learn_one({"a": 1.0}, "x", w=0.0)
    assert list(model.classes) == []
    model.learn_one({"a": 1.0}, "x", w=0.5)
    assert list(model.classes) == ["x"]
    assert model.n_seen == 1


def test_labels_true_and_false_are_learned_as_by_the_perceptron() -> None:
    softmax, perceptron = SoftmaxClassifier(), PerceptronClassifier()
    for i, x in enumerate(ROWS):
        softmax.learn_one(x, bool(SCORE[i] > 0.0))
        perceptron.learn_one(x, bool(SCORE[i] > 0.0))
    assert softmax.log_evidence == pytest.approx(perceptron.log_evidence, rel=1e-9)
    assert softmax.predict_proba_one(ROWS[0]) == pytest.approx(perceptron.predict_proba_one(ROWS[0]), rel=1e-9)


@pytest.mark.parametrize("kind", [PerceptronClassifier, SoftmaxClassifier, MLPClassifier])
def test_adaptive_probabilities_are_those_of_the_map_of_what_was_predicted(kind: Any) -> None:
    rng = np.random.default_rng(0)
    plain, adaptive, calibration = kind(), kind(probabilities="adaptive"), CalibrationMap(2)
    for row in rng.normal(size=(200, 2)).tolist():
        x, y = dict(enumerate(row)), bool(sum(row) > 0.0) != (rng.random() < 0.2)
        if plain.classes:
            own = np.array([list(plain.predict_proba_one(x).values())])
            expected = calibration(own)[0]
            assert list(adaptive.predict_proba_one(x).values()) == pytest.approx(expected.tolist(), rel=1e-9)
            assert adaptive.predict_one(x, with_dist=True)(True) == pytest.approx(expected[1], rel=1e-9)
        else:
            own = np.array([[0.5, 0.5]])  # which the prior predicts of its first row
        calibration.learn(own, np.array([float(y)]))
        plain.learn_one(x, y)
        adaptive.learn_one(x, y)


def test_adaptive_probabilities_learn_the_same_in_any_split_and_go_on_from_a_file(tmp_path: Path) -> None:
    rows = list(datasets.ImageSegments().take(120))  # type: ignore[no-untyped-call]
    frame, labels = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    single, many = (SoftmaxClassifier(probabilities="adaptive") for _ in range(2))
    for x, y in rows:
        single.learn_one(x, y)
    many.learn_many(frame[:50], labels[:50])
    onepass.save(many, tmp_path / "model")
    many = onepass.load(tmp_path / "model")
    many.learn_many(frame[50:], labels[50:])
    np.testing.assert_allclose(many.predict_proba_many(frame), single.predict_proba_many(frame), rtol=1e-9)
    plain = SoftmaxClassifier()
    plain.learn_many(frame, labels)
    assert not np.allclose(plain.predict_proba_many(frame), many.predict_proba_many(frame), atol=1e-3)
