"""What every kind of model answers, learns and refuses behind the service, against the library asked directly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass
from onepass.estimators import FleetEstimator, learner_of
from onepass.estimators.rows import Rows, as_dense
from onepass.evaluation.metrics import ClassPredictions
from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.paper.kalman_network import KalmanNetwork
from onepass.river import PerceptronRegressor
from onepass.service.declared import declared_content
from onepass.service.errors import ProblemError
from onepass.service.served import RowModel, serve
from onepass.service.wire import Asked, Declared
from onepass.tables.explanation import explain
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch
from tests.helpers.served import EXAMPLES, content, served

LEVEL = 0.9
KINDS = {name: served(name).kind for name in EXAMPLES}
PLAIN = [name for name, kind in KINDS.items() if kind == "plain"]
FLEETS = [name for name, kind in KINDS.items() if kind == "fleet"]
ESTIMATORS = [name for name, kind in KINDS.items() if kind == "estimator"]
TABLES = [name for name, kind in KINDS.items() if kind == "table"]


def read(model: RowModel, requests: list[dict[str, Any]]) -> Any:
    rows, bad = model.read([one["x"] for one in requests], [one.get("key") for one in requests])
    assert not bad
    return rows


def predicted(name: str, n: int = 5) -> tuple[RowModel, list[dict[str, Any]], dict[str, Any]]:
    model, requests = served(name), EXAMPLES[name].requests(np.random.default_rng(7), n)
    return model, requests, model.predict(read(model, requests), LEVEL)


def check_numbers(columns: dict[str, Any], mean: Any, std: Any, limits: Any) -> None:
    np.testing.assert_allclose(columns["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(columns["std"], std, rtol=1e-12)
    np.testing.assert_allclose([columns["lower"], columns["upper"]], limits, rtol=1e-12, atol=1e-12)


def check_classes(columns: dict[str, Any], probabilities: Any) -> None:
    labels = [name.removeprefix("p_") for name in columns if name != "label"]
    np.testing.assert_allclose([columns[f"p_{label}"] for label in labels], np.transpose(probabilities), rtol=1e-9)
    assert columns["label"].tolist() == [labels[best] for best in np.argmax(probabilities, axis=1)]


# Predictions.


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_model_is_answered_for_as_it_answers_itself(name: str) -> None:
    model, requests, columns = predicted(name)
    own = from_bytes(content(name))
    seen = own.predict(np.array([one["x"] for one in requests]))
    if model.labels:
        probabilities = seen.mean if seen.mean.ndim == 2 else np.column_stack([1.0 - seen.mean, seen.mean])
        check_classes(columns, probabilities)
    else:
        limits = own.interval(np.array([one["x"] for one in requests]), LEVEL)
        check_numbers(columns, seen.mean, seen.std, limits)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_answered_for_as_it_answers_itself(name: str) -> None:
    model, requests, columns = predicted(name)
    own = from_bytes(content(name))
    X = np.array([one["x"] for one in requests], dtype=float)
    if model.labels:
        check_classes(columns, own.predict_proba(X))
    else:
        mean, std = own.predict(X, return_std=True)
        check_numbers(columns, mean, std, own.predict_interval(X, LEVEL))


@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_is_answered_for_by_the_perceptron_of_the_key(name: str) -> None:
    model, requests, _ = predicted(name, 8)
    own = from_bytes(content(name))
    requests.append({**requests[0], "key": "12345"})  # which never came
    columns = model.predict(read(model, requests), LEVEL)
    for i, request in enumerate(requests):
        row, columns_of_row = [request["x"]], {label: values[i : i + 1] for label, values in columns.items()}
        if isinstance(own, FleetEstimator):
            if model.labels:
                check_classes(columns_of_row, own.predict_proba(row, keys=[request["key"]]))
            else:
                limits = own.predict_interval(row, LEVEL, keys=[request["key"]])
                mean, std = own.predict(row, True, keys=[request["key"]])
                check_numbers(columns_of_row, mean, std, limits)
            continue
        key = int(request["key"]) if "numbered" in name else request["key"]
        perceptron = own.perceptron(key) if key in own else own.prior
        seen = perceptron.predict(row)
        if model.labels:
            check_classes(columns_of_row, np.column_stack([1.0 - seen.mean, seen.mean]))
        else:
            limits = perceptron.interval(row, LEVEL)
            check_numbers(columns_of_row, seen.mean, seen.std, limits)


def batch_of(model: TabularModel, requests: list[dict[str, Any]]) -> RowBatch:
    """Rows as a reader of files gives them, with the weights that were left out."""
    names = model.needed_columns(target=True)
    default = {model.weight: 1.0, model.target.name: None}
    rows = [{**one["x"], model.target.name: one["y"]} for one in requests]
    columns = {name: pa.array([row.get(name, default.get(name)) for row in rows]) for name in names}
    return RowBatch(pa.RecordBatch.from_pydict(columns), 0, lambda: range(1, len(rows) + 1))


@pytest.mark.parametrize("name", TABLES)
def test_the_model_of_a_table_answers_as_for_rows_of_a_file(name: str) -> None:
    _, requests, columns = predicted(name)
    own = from_bytes(content(name))
    encoded = own.encode(batch_of(own, requests))
    expected = own.predictions(encoded.X, LEVEL, encoded.keys)
    assert list(columns) == list(expected)
    for label, values in columns.items():
        if label == "label":
            assert values.tolist() == expected[label].tolist()
        else:
            np.testing.assert_allclose(values, expected[label], rtol=1e-9)


@pytest.mark.parametrize("name", EXAMPLES)
def test_answers_row_by_row_are_those_of_the_columns(name: str) -> None:
    model, requests, columns = predicted(name)
    found = model.answers(read(model, requests), Asked(LEVEL, (0.5,)))
    for i, answer in enumerate(found):
        if model.labels:
            assert answer["label"] == columns["label"][i]
            assert answer["probabilities"] == {label: columns[f"p_{label}"][i] for label in model.labels}
            assert sum(answer["probabilities"].values()) == pytest.approx(1.0)
        else:
            for what in ("mean", "std", "lower", "upper"):
                assert answer[what] == columns[what][i]
            assert answer["epistemic"] + answer["aleatoric"] == pytest.approx(answer["std"] ** 2, rel=1e-12)
            (half,) = answer["intervals"]
            assert answer["lower"] <= half.lower <= half.upper <= answer["upper"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_published_does_not_change_when_rows_are_learned(name: str) -> None:
    model, requests, columns = predicted(name)
    published = model.published()
    rows = read(model, requests)
    y, _ = model.read_targets([one["y"] for one in requests])
    model.learn(replace(rows, y=y))
    after = published.predict(rows, LEVEL)
    for label, values in columns.items():
        assert list(values) == list(after[label])
    assert any(list(values) != list(columns[label]) for label, values in model.predict(rows, LEVEL).items())
    assert published.n_seen + len(requests) == model.n_seen


# Learning.


def learn_directly(own: Any, model: RowModel, request: dict[str, Any]) -> None:
    """Have the library learn a row, the way its own users do."""
    if isinstance(own, TabularModel):
        own.learn(own.rows([batch_of(own, [request])]))
        own.close_block()
        return
    x, y = np.array([request["x"]], dtype=float), np.array([request["y"]])
    if "key" in request:
        if isinstance(own, FleetEstimator):
            own.learn(Rows(x, y.astype(float), keys=(request["key"],)))
        else:
            own.learn(x, y, keys=[int(request["key"]) if own.has_number_keys else request["key"]])
        return
    if hasattr(own, "partial_fit"):
        learner_of(own.partial_fit(x, y)).close_block()
    else:
        own.learn(x, y).close_block()


@pytest.mark.parametrize("name", EXAMPLES)
def test_rows_are_learned_as_the_library_learns_them(name: str) -> None:
    model, own = served(name), from_bytes(content(name))
    for request in EXAMPLES[name].requests(np.random.default_rng(9), 15):
        rows = read(model, [request])
        y, bad = model.read_targets([request["y"]])
        assert not bad
        seen = model.predict(rows, LEVEL)
        found = model.learn(replace(rows, y=y))
        model.close_block()
        if not any(word in name for word in ("warms up", "drifts", "forgets", "diagonal", "network classifier")):
            scored = model.scored(y, found)
            if isinstance(scored, ClassPredictions):
                np.testing.assert_allclose(
                    found.mean[0], [seen[f"p_{label}"][0] for label in model.labels], rtol=1e-6, atol=1e-9
                )
            else:
                np.testing.assert_allclose(scored.mean, seen["mean"], rtol=1e-6)
            assert np.isfinite(found.log_density).all()
        learn_directly(own, model, request)
    assert model.n_seen == served(name).n_seen + 15
    assert model.content() == to_bytes(own)


# Reading.


def table_of(model: RowModel, requests: list[dict[str, Any]]) -> Any:
    """Requests as an Arrow batch."""
    names = [column["name"] for column in model.schema()["columns"]]
    rows = [
        dict(zip(names, one["x"], strict=True)) if isinstance(one["x"], list) else {"often": 1.0, **one["x"]}
        for one in requests
    ]
    columns = {name: [row.get(name) for row in rows] for name in names}
    columns["y"] = [one["y"] for one in requests]
    if "key" in requests[0]:
        columns["key"] = [one["key"] for one in requests]
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_arrow_batch_is_read_as_its_rows_are(name: str) -> None:
    model, requests = served(name), EXAMPLES[name].requests(np.random.default_rng(11), 20)
    rows = read(model, requests)
    y, _ = model.read_targets([one["y"] for one in requests])
    found = model.read_table(table_of(model, requests), learn=True)
    np.testing.assert_array_equal(as_dense(found.X), as_dense(rows.X))
    np.testing.assert_array_equal(found.y, y)
    assert found.keys == rows.keys
    np.testing.assert_array_equal(found.weights, rows.weights)
    only = model.read_table(table_of(model, requests).drop_columns(["y"]), learn=False)
    np.testing.assert_array_equal(as_dense(only.X), as_dense(rows.X))
    assert only.y is None


@pytest.mark.parametrize("name", [*TABLES, "regressor of gaps"])
def test_a_column_that_an_arrow_batch_lacks_is_missing_as_in_json(name: str) -> None:
    model, requests = served(name), EXAMPLES[name].requests(np.random.default_rng(11), 20)
    names = [column["name"] for column in model.schema()["columns"] if column["kind"] != "key"]
    whole = table_of(model, requests)
    for left in names if len(names) > 1 else []:
        rows = [{name: value for name, value in row.items() if name != left} for row in whole.to_pylist()]
        x = [{name: value for name, value in row.items() if name != "y"} for row in rows]
        sent, bad = model.read(x, [None] * len(x))
        assert not bad
        found = model.read_table(whole.drop_columns([left, "y"]), learn=False)
        expected, columns = model.predict(sent, LEVEL), model.predict(found, LEVEL)
        for label, values in columns.items():
            assert list(values) == list(expected[label])
        learned = model.read_table(whole.drop_columns([left]), learn=True)
        np.testing.assert_array_equal(as_dense(learned.X), as_dense(sent.X))
        assert learned.y is not None


BITS = ["perceptron of labels", "fleet of labels", "classifier", "network of labels"]


@pytest.mark.parametrize("name", BITS)
def test_true_and_false_are_other_words_for_the_labels_1_and_0(name: str) -> None:
    model = served(name)
    y, bad = model.read_targets([True, False, 1, 0])
    assert not bad
    assert y.tolist() == [1.0, 0.0, 1.0, 0.0]
    row = EXAMPLES[name].request(np.random.default_rng(0))
    batch = table_of(model, [row, row]).drop_columns(["y"])
    found = model.read_table(batch.append_column("y", pa.array([True, False])), learn=True)
    assert found.y.tolist() == [1.0, 0.0]


def test_a_described_target_of_0_and_1_takes_true_and_false_and_no_other_does() -> None:
    def targets_of(labels: list[Any]) -> Any:
        given = Declared(columns=[{"name": "km"}], target={"name": "y", "labels": labels})
        return serve(from_bytes(declared_content(given))).read_targets([True])  # type: ignore[attr-defined]

    assert targets_of([0, 1])[0].tolist() == [1.0]
    assert targets_of([1, 0])[0].tolist() == [0.0]  # the place of the label
    assert targets_of([0, 1, 2])[1][0].field == "y"
    assert targets_of([1, 2])[1][0].field == "y"


def test_keys_of_a_numbered_fleet_may_be_numbers() -> None:
    model = served("fleet of numbered keys")
    x: list[Any] = [[1.0, 2.0, 3.0]] * 3
    found, bad = model.read(x, ["-2", -2, 0])
    assert not bad
    assert found.keys == (-2, -2, 0)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        ["", "NA", "1.5", " 2", "1e400", "1_0", "yes", "far", "audi", "2024-02-30", "2024-02-03", "10**9"]
    )
    | st.text(max_size=5).filter(lambda text: text.isprintable())
)
NAMES = ["km", "car", "new", "sold", "words", "shop", "often", "x0", "x1", "x2", "y", "z"]
INPUTS = st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=6) | st.lists(
    st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(), max_size=4
)
KINDS_OF_READING = [
    "table",
    "table of texts",
    "table by key",
    "table of weights",
    "table of three classes",
    "regressor",
    "regressor of gaps",
    "network classifier",
    "perceptron",
    "perceptron of counts",
    "fleet",
    "fleet of numbered keys",
]


@pytest.mark.parametrize("name", KINDS_OF_READING)
@settings(max_examples=settings().max_examples // 2)
@given(st.data())
def test_any_value_is_read_or_refused_by_the_name_of_its_field_whoever_is_beside_it(name: str, data: Any) -> None:
    model, sound = served(name), EXAMPLES[name].requests(np.random.default_rng(1), 2)
    given = [(one["x"], one.get("key")) for one in sound]
    given[1:1] = data.draw(st.lists(st.tuples(INPUTS, st.none() | st.text(max_size=3)), min_size=1, max_size=3))
    rows, bad = model.read([x for x, _ in given], [key for _, key in given])
    assert not {0, len(given) - 1} & set(bad)
    for i, (x, key) in enumerate(given):
        alone, own_bad = model.read([x], [key])
        assert [problem.body() for problem in own_bad.values()] == [bad[i].body() for _ in own_bad]
        assert (i in bad) == bool(own_bad)
        if i not in bad:
            np.testing.assert_array_equal(as_dense(alone.X), as_dense(rows.at([i]).X))
            np.testing.assert_array_equal(alone.weights, rows.at([i]).weights)
            assert np.isfinite(as_dense(alone.X)).all() or "gaps" in name or "table" in name
            assert all(np.isfinite(values.astype(float)).all() for values in numbers_in(model.predict(alone, LEVEL)))
        else:
            assert bad[i].status == 422
            field = bad[i].field
            assert field in ("x", "key") or (field is not None and field.startswith("x."))
            assert field == "key" or not isinstance(x, dict) or field in ("x", *(f"x.{one}" for one in (*x, *NAMES)))


def numbers_in(columns: dict[str, Any]) -> list[Any]:
    return [values for label, values in columns.items() if label != "label"]


@pytest.mark.parametrize("name", [*KINDS_OF_READING, "table of logs", "table of counts", "table of two classes"])
@given(st.lists(SCALARS, min_size=1, max_size=4))
def test_any_target_is_read_or_refused_whoever_is_beside_it(name: str, targets: list[Any]) -> None:
    model, sound = served(name), EXAMPLES[name].target(np.random.default_rng(2))
    y, bad = model.read_targets([sound, *targets])
    assert 0 not in bad
    for i, target in enumerate(targets, start=1):
        alone, own_bad = model.read_targets([target])
        assert [problem.body() for problem in own_bad.values()] == [bad[i].body() for _ in own_bad]
        if i in bad:
            assert (bad[i].status, bad[i].field) == (422, "y")
        else:
            assert np.isfinite(y[i])
            assert alone[0] == y[i]
            assert model.target_text(float(y[i]))


WRONG = [
    ("table", {"km": "far"}, None, "x.km", "not a number"),
    ("table", {"km": True}, None, "x.km", "not a number"),
    ("table", {"km": 1e300}, None, "x.km", "far outside"),
    ("table", {"km": 1, "colour": "red"}, None, "x.colour", "there is no column 'colour'"),
    ("table", {"km": 1, "y": 2}, None, "x.y", "goes into y"),
    ("table", {}, None, "x", "none of"),
    ("table", [1, 2], None, "x", "a list of 4; got a list of 2"),
    ("table", {"km": 1}, "ann", "key", "fleet"),
    ("table", {"new": "perhaps"}, None, "x.new", "neither true nor false"),
    ("table", {"sold": "yesterday"}, None, "x.sold", "sold is"),
    ("table by key", {"km": 1}, None, "x.shop", "missing"),
    ("table of weights", {"km": 1, "often": -1}, None, "x.often", "negative"),
    ("table of weights", {"km": 1, "often": 0}, None, "x.often", "leave it out"),
    ("regressor", [1, None, 3], None, "x.x1", "missing"),
    ("regressor", [1, 2, 3], "ann", "key", "fleet"),
    ("regressor", [1, 2, 1e60], None, "x.x2", "not a number that can be learned"),
    ("perceptron", [1, 2], None, "x", "a list of 3"),
    ("perceptron", {"x0": 1, "x1": "2", "x2": 3}, None, "x.x1", "not a number"),
    ("perceptron", {"x0": 1, "x2": 3}, None, "x.x1", "missing"),
    ("perceptron", {"x0": 1, "x1": True, "x2": 3}, None, "x.x1", "not a number"),
    ("fleet", [1, 2, 3], None, "key", "missing"),
    ("fleet of numbered keys", [1, 2, 3], "ann", "key", "a whole number"),
    ("fleet of numbered keys", [1, 2, 3], "9" * 30, "key", "a whole number"),
    ("fleet of numbered keys", [1, 2, 3], None, "key", "missing"),
    ("fleet", [1, 2, 3], 7, "key", 'must be a text, as the keys of this fleet are, such as "7"'),
]


@pytest.mark.parametrize(("name", "x", "key", "field", "words"), WRONG)
def test_a_wrong_row_is_told_what_is_wrong_and_where(name: str, x: Any, key: Any, field: str, words: str) -> None:
    _, bad = served(name).read([x], [key])
    assert bad[0].field == field
    assert words in bad[0].detail


WRONG_TARGETS = [
    ("table", None, "missing"),
    ("table", "much", "not_a_number"),
    ("table", True, "boolean_for_number"),
    ("table of logs", -1.0, "no_logarithm"),
    ("table of counts", 1.5, "not_a_count"),
    ("table of counts", -1, "not_a_count"),
    ("table of two classes", "perhaps", "unknown_class"),
    ("table of three classes", 7, "unknown_class"),
    ("perceptron of labels", 2, "unknown_class"),
    ("perceptron of labels", 0.5, "unknown_class"),
    ("perceptron of counts", 0.5, "not_a_count"),
    ("Kronecker network of classes", 3, "unknown_class"),
    ("fleet of labels", None, "missing"),
]


@pytest.mark.parametrize(("name", "y", "code"), WRONG_TARGETS)
def test_a_wrong_target_is_told_what_is_wrong(name: str, y: Any, code: str) -> None:
    _, bad = served(name).read_targets([y])
    assert bad[0].field == "y"
    assert bad[0].code == code


WRONG_TABLES = [
    ("table", {"y": [1.0]}, "x", "none of the columns"),
    ("table", {"km": [1.0]}, "y", "the target 'y' is missing; there are"),
    ("table by key", {"km": [1.0], "y": [1.0]}, "shop", "the column 'shop' is missing; there are"),
    ("regressor of gaps", {"y": [1.0]}, "x", "none of the columns"),
    ("perceptron", {"x0": [1.0], "x1": [1.0]}, "x2", "is missing; there are"),
    ("perceptron", {"x0": [1.0], "x1": ["a"], "x2": [1.0], "y": [1.0]}, "x1", "holds texts"),
    ("perceptron", {"x0": [1.0], "x1": [1.0], "x2": [1.0]}, "y", "the target 'y' is missing; there are"),
    ("perceptron", {"x0": [1.0], "x1": [None], "x2": [1.0], "y": [1.0]}, "x.x1", "row 1: x1 is missing"),
    ("perceptron", {"x0": [1.0, 2.0], "x1": [1.0, None], "x2": [1, 2], "y": [1, 2]}, "x.x1", "row 2: x1 is missing"),
    ("perceptron", {"x0": [1.0], "x1": [1e80], "x2": [1.0], "y": [1.0]}, "x.x1", "row 1: .* not a number"),
    ("perceptron", {"x0": [1.0], "x1": [1.0], "x2": [1.0], "y": ["a"]}, "y", "row 1: .*not a number"),
    ("fleet", {"x0": [1.0], "x1": [1.0], "x2": [1.0], "y": [1.0]}, "key", "is missing; there are"),
    ("fleet", {"x0": [1.0], "x1": [1.0], "x2": [1.0], "y": [1.0], "key": [None]}, "key", "row 1: key is missing"),
]


@pytest.mark.parametrize(("name", "columns", "field", "words"), WRONG_TABLES)
def test_a_wrong_arrow_batch_is_refused_as_a_whole(name: str, columns: Any, field: str, words: str) -> None:
    with pytest.raises(ProblemError, match=words) as raised:
        served(name).read_table(pa.RecordBatch.from_pydict(columns), learn=True)
    assert raised.value.field == field


def test_a_number_is_a_number_however_the_table_writes_it() -> None:
    rows: list[Any] = [{"km": f"{i % 7},{i % 10}5", "y": float(i % 5)} for i in range(40)]
    model = serve(from_bytes(declared_content(Declared(rows=rows, target="y"))))
    assert isinstance(model, RowModel)
    assert "1.234,5" in model.schema()["columns"][0]["words"]
    found, bad = model.read([{"km": 1.25}, {"km": "1,25"}, {"km": "1.25"}, {"km": "far"}], [None] * 4)
    assert found.X[0] == found.X[1]
    assert sorted(bad) == [2, 3]
    assert (found.X[0] == model.read([{"km": 1.25}], [None])[0].X).all()


# The rest.


@pytest.mark.parametrize("name", EXAMPLES)
def test_explanations_are_those_of_the_model_of_the_table(name: str) -> None:
    model, requests = served(name), EXAMPLES[name].requests(np.random.default_rng(13), 1)
    rows = read(model, requests)
    own = from_bytes(content(name))
    knows_columns = own.by is None and own.n_rows if isinstance(own, TabularModel) else name in ESTIMATORS
    if not knows_columns:
        with pytest.raises(ProblemError) as raised:
            model.explain(rows)
        assert raised.value.status == 409
        return
    unit, found = model.explain(rows)
    assert unit
    best = {label: values[0] for label, values in model.predict(rows, LEVEL).items()}
    if isinstance(own, TabularModel):
        expected = explain(own, own.encode(batch_of(own, requests)).X)
        assert found.columns == expected.columns
        for what in ("baseline", "add", "std"):
            np.testing.assert_allclose(getattr(found, what), getattr(expected, what), rtol=1e-9, atol=1e-12)
    if len(model.labels) == 2:
        odds = np.log(best[f"p_{model.labels[1]}"] / best[f"p_{model.labels[0]}"])
        assert unit == f"log odds of {model.labels[1]}"
        assert np.sign(found.total[0]) == np.sign(odds)
    elif not model.labels and unit == "y" and "doubts" not in name:
        np.testing.assert_allclose(found.total[0], best["mean"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("own", "labels"),
    [
        (onepass.BayesianPerceptronRegressor(noise=1.0, warm_up=50), False),
        (onepass.BayesianPerceptronClassifier(standardize=False), True),
    ],
)
def test_an_estimator_tells_what_its_numbers_do(own: Any, labels: bool) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 3)) if labels else rng.normal([100.0, 0.0, -5.0], [20.0, 1.0, 0.1], size=(50, 3))
    target = (X - X.mean(axis=0)) @ [0.5, 2.0, -30.0]
    own = own.fit(X, target > 0.0 if labels else target + rng.normal(size=50))
    model, x = serve(own), X[7]
    assert isinstance(model, RowModel)
    centre, scale = (np.zeros(3), np.ones(3)) if labels else (X.mean(axis=0), X.std(axis=0))
    coef = np.ravel(own.coef_)
    _, found = model.explain(model.read([x.tolist()], [None])[0])
    np.testing.assert_allclose(found.add[0], coef * (x - centre), rtol=1e-9)
    np.testing.assert_allclose(found.std[0], np.ravel(own.coef_std_) * np.abs(x - centre), rtol=1e-9)
    np.testing.assert_allclose(found.baseline, coef @ centre + np.ravel(own.intercept_), rtol=1e-9)
    (weights,) = model.weights().values()
    by_name = {weight.feature: (weight.mean, weight.std) for weight in weights}
    expected = zip(coef * scale, np.ravel(own.coef_std_) * scale, strict=True)
    for k, pair in enumerate(expected):
        np.testing.assert_allclose(by_name[f"x{k}"], pair, rtol=1e-9)


def test_an_estimator_of_named_columns_is_asked_without_a_warning_and_keeps_its_names() -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(30, 2)), columns=["size", "age"])
    own = onepass.BayesianPerceptronRegressor(warm_up=20).fit(frame, frame["size"])
    model = serve(from_bytes(to_bytes(own)))
    assert isinstance(model, RowModel)
    rows, bad = model.read([{"size": 1.0, "age": 2.0}], [None])
    assert not bad
    asked = pd.DataFrame({"size": [1.0], "age": [2.0]})
    assert model.predict(rows, LEVEL)["mean"] == own.predict(asked)
    assert model.published().predict(rows, LEVEL)["mean"] == own.predict(asked)
    assert model.explain(rows)[1].columns == ("size", "age")
    model.learn(replace(rows, y=np.array([1.0])))
    own.partial_fit(asked, [1.0])
    learner_of(own).close_block()
    model.close_block()
    assert model.content() == to_bytes(own)


@pytest.mark.parametrize("name", EXAMPLES)
def test_schema_weights_and_facts_can_be_told_of_every_model(name: str) -> None:
    model = served(name)
    schema = model.schema()
    assert schema["columns"]
    assert ("labels" in schema["target"]) == bool(model.labels)
    assert model.facts()
    knows_rows = name in ESTIMATORS or (model.kind == "table" and model.n_seen > 0 and "key" not in name)
    assert bool(model.weights()) == knows_rows
    for weights in model.weights().values():
        assert weights


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (onepass.BayesianNetwork(2, (3,), 2), "2 outputs"),
        (onepass.BayesianNetwork(2, (3,), 2, observation="bernoulli"), "2 outputs"),
        (onepass.BayesianCommittee(2, (3,), 3, members=2), "3 outputs"),
        (onepass.BayesianPerceptronRegressor().fit(np.eye(2), np.eye(2)), "several targets"),
        (KalmanNetwork(2, (3,)), "a KalmanNetwork can't be served"),
        (PerceptronRegressor(), "a PerceptronRegressor can't be served"),
    ],
)
def test_what_can_t_be_served_is_told_what_can(model: Any, words: str) -> None:
    with pytest.raises(ProblemError, match=words) as raised:
        serve(model)
    assert raised.value.status == 422


def test_unknown_columns_of_a_batch_are_refused_but_for_target_key_and_what_is_ignored() -> None:
    table = served("table")
    table.refuse_unknown(["km", table.schema()["target"]["name"], "y", *table.schema()["ignored"]])
    with pytest.raises(ProblemError, match="there is no column 'kms'; the columns are ") as refused:
        table.refuse_unknown(["km", "kms"])
    assert refused.value.field == "kms"
    served("fleet").refuse_unknown(["x0", "key"])
    with pytest.raises(ProblemError, match="there is no column 'key'"):
        table.refuse_unknown(["km", "key"])


def test_a_key_beside_the_row_of_a_table_by_key_is_told_where_to_go() -> None:
    rows: list[dict[str, Any]] = [{"km": i * i % 7 + 0.5, "city": "ab"[i % 2], "price": 2.0 * i} for i in range(20)]
    made = declared_content(Declared(rows=rows, target="price", options={"by": "city"}))
    model = serve(from_bytes(made))
    assert isinstance(model, RowModel)
    _, bad = model.read([{"km": 1.0}], ["a"])
    assert "put it into x.city" in bad[0].detail
