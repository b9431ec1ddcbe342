"""Records of what was predicted."""

import numpy as np

from onepass import BayesianPerceptron
from onepass.models.prediction import Parts, PredictedMoments, RowScores, one_or_many

X = np.random.default_rng(0).normal(size=(30, 2))
Y = X @ [1.0, -1.0]


def test_one_row_has_numbers_and_many_have_arrays() -> None:
    columns = [np.array([float(k)]) for k in range(5)]
    one, many = PredictedMoments.of(columns, single=True), PredictedMoments.of(columns, single=False)
    assert list(one) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert all(type(part) is float for part in one)
    assert [part.tolist() for part in many] == [[0.0], [1.0], [2.0], [3.0], [4.0]]
    assert one_or_many(np.array([2.5, 3.5]), True) == 2.5


def test_scores_are_log_densities_before_each_row() -> None:
    model, twin = (BayesianPerceptron(2, "linear", noise=0.1) for _ in range(2))
    _, scores = model.predict_score_learn(X, Y)
    expected = []
    for x, y in zip(X, Y, strict=True):
        expected.append(twin.log_predictive(x, y))
        twin.learn(x, y)
    np.testing.assert_allclose(scores.log_densities, expected)
    np.testing.assert_allclose(scores.row_gains.sum(), model.log_evidence)
    assert not scores.outliers.any()


def test_the_gain_of_a_row_is_its_log_density_unless_it_says_otherwise() -> None:
    zeros = np.zeros(2)
    plain = RowScores(np.array([-1.0, -2.0]), zeros, zeros)
    assert plain.row_gains.tolist() == [-1.0, -2.0]
    assert plain._replace(gains=np.array([-3.0, -6.0])).row_gains.tolist() == [-3.0, -6.0]


def test_a_model_alone_is_its_only_component() -> None:
    prediction = BayesianPerceptron(2, "linear", noise=0.1).predict(X).moments
    parts = Parts.alone(prediction, np.zeros(30))
    assert parts.weights.tolist() == [[1.0] * 30]
    assert parts.predictions == [prediction]
