"""Models from descriptions: those that are sound are made, and what is wrong with others is named."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.decisions import ContextualBandit
from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.service.declared import declared_content
from onepass.service.errors import ProblemError
from onepass.service.served import RowModel, serve
from onepass.service.wire import Declared
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from tests.helpers.served import table_row

NUMBER = {"name": "price", "mean": 100.0, "std": 30.0}


def rows(n: int = 40) -> list[Any]:
    rng = np.random.default_rng(0)
    return [{**table_row(rng), "price": round(float(rng.normal(100.0, 30.0)), 2)} for _ in range(n)]


def made(**given: Any) -> Any:
    return from_bytes(declared_content(Declared(**given)))


@pytest.mark.parametrize("learn", [False, True])
def test_a_model_from_rows_is_that_of_a_file_with_them(learn: bool, tmp_path: Any) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows()))
    inputs = Inputs((str(file),))
    sources = inputs.sources()
    options = SchemaOptions("price", ignore=("sold",), settings=Settings(model_kind="perceptron", outliers=0.02))
    expected, _ = infer_model(sources, options, rereadable=True)
    for step in steps(expected, inputs, sources) if learn else ():
        expected.learn(step.rows)
    given = {"ignore": ["sold"], "model_kind": "perceptron", "outliers": 0.02}
    found = made(rows=rows(), target="price", options=given, learn=learn)
    assert found.encoding == expected.encoding
    assert found.target == expected.target
    assert found.n_rows == (40 if learn else 0)
    assert to_bytes(found) == to_bytes(expected if learn else expected.start())


def test_rows_that_were_not_learned_give_a_model_that_answers_by_its_prior() -> None:
    model = serve(made(rows=rows(), target="price"))
    assert isinstance(model, RowModel)
    assert model.n_seen == 0
    numbers, _ = model.read([{"km": 50.0}], [None])
    answer = model.predict(numbers, 0.95)
    assert answer["lower"][0] < 100.0 < answer["upper"][0]


TARGETS: list[tuple[dict[str, Any], Any]] = [
    (NUMBER, 110.0),
    ({"name": "price", "kind": "log", "mean": 4.5, "std": 0.5}, 90.0),
    ({"name": "visits", "kind": "count"}, 3),
    ({"name": "spam", "labels": ["no", "yes"]}, "yes"),
    ({"name": "spam", "labels": [False, True]}, True),
    ({"name": "size", "kind": "class", "labels": [1, 2, 3]}, 2),
]
COLUMNS: list[dict[str, Any]] = [
    {"name": "text", "kind": "text", "buckets": 32},
    {"name": "km", "mean": 50.0, "std": 20.0, "missing": True},
    {"name": "car", "kind": "category", "values": ["audi", "bmw", 3]},
    {"name": "town", "kind": "hashed", "buckets": 8},
    {"name": "new", "kind": "boolean"},
    {"name": "sold", "kind": "date", "clock": True, "missing": True},
]
ROW: dict[str, Any] = {
    "km": 60.0,
    "car": "audi",
    "town": "Ulm",
    "new": True,
    "sold": "2024-05-06T07:08",
    "text": "good as new",
}


@pytest.mark.parametrize(("target", "label"), TARGETS, ids=lambda given: str(given))
@pytest.mark.parametrize("options", [{}, {"hidden": [3]}, {"drift": "auto"}, {"outliers": 0.05}], ids=str)
def test_a_model_of_described_columns_answers_by_its_prior_and_then_learns(
    target: dict[str, Any], label: Any, options: dict[str, Any]
) -> None:
    model = serve(made(columns=COLUMNS, target=target, options=options))
    assert isinstance(model, RowModel)
    assert model.n_seen == 0
    numbers, bad = model.read([ROW, {"km": None}], [None] * 2)
    assert not bad
    prior = model.predict(numbers, 0.95)
    y, bad = model.read_targets([label])
    assert not bad
    if model.labels:
        assert sum(prior[f"p_{name}"][0] for name in model.labels) == pytest.approx(1.0)
    elif target["name"] != "visits":
        low, high = prior["lower"], prior["upper"]
        assert (low < label).all()
        assert (high > label).all()
    before = model.content()
    for _ in range(30):
        model.learn(replace(numbers.at([0]), y=y))
    assert model.n_seen == 30
    assert model.content() != before
    after = model.predict(numbers.at([0]), 0.95)
    if model.labels:
        assert after["label"][0] == model.target_text(float(y[0]))
    else:
        assert abs(after["mean"][0] - label) < 0.5 * (prior["upper"][0] - prior["lower"][0])


def test_a_model_that_has_learned_nothing_learns_as_one_that_was_never_saved() -> None:
    content = declared_content(Declared(columns=COLUMNS, target=NUMBER))
    first, second = serve(from_bytes(content)), serve(from_bytes(to_bytes(from_bytes(content))))
    assert isinstance(first, RowModel)
    assert isinstance(second, RowModel)
    numbers, _ = first.read([ROW], [None])
    y, _ = first.read_targets([110.0])
    first.learn(replace(numbers, y=y))
    second.learn(replace(numbers, y=y))
    assert first.content() == second.content()


def test_a_described_model_per_key_and_one_with_weights() -> None:
    column = {"name": "km"}
    by = serve(made(columns=[column], target=NUMBER, options={"by": "shop"}))
    weighted = serve(made(columns=[column], target=NUMBER, options={"weight": "often"}))
    assert isinstance(by, RowModel)
    assert isinstance(weighted, RowModel)
    assert by.read([{"km": 1, "shop": "a"}], [None])[0].keys == ("a",)
    found, bad = weighted.read([{"km": 1, "often": 0.5}, {"km": 1}], [None] * 2)
    assert not bad
    assert found.weights is not None
    assert found.weights.tolist() == [0.5, 1.0]


def test_a_bandit_is_that_of_its_arguments() -> None:
    found = made(bandit={"arms": ["a", "b"], "n_features": 2, "hidden": [4], "policy": "ucb", "reward_range": [0, 5]})
    expected = ContextualBandit(["a", "b"], 2, hidden=(4,), policy="ucb", reward_range=(0.0, 5.0))
    assert to_bytes(found) == to_bytes(expected)
    shared = made(bandit={"arms": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "n_features": 2})
    assert list(shared.arms) == ["a", "b"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "rows"),
    ({"rows": [], "columns": []}, "columns"),
    ({"rows": []}, "target"),
    ({"rows": [], "target": "price"}, "rows"),
    ({"rows": rows(), "target": 5}, "target"),
    ({"rows": rows(), "target": "prize"}, "target"),
    ({"rows": rows(), "target": "price", "options": {"hiden": [5]}}, "options.hiden"),
    ({"rows": rows(), "target": "price", "options": {"hidden": "many"}}, "options.hidden"),
    ({"rows": rows(), "target": "price", "options": {"hidden": [0]}}, "options.hidden[0]"),
    ({"rows": rows(), "target": "price", "options": {"outliers": 0.9}}, "options.outliers"),
    ({"rows": rows(), "target": "price", "options": {"forgetting": 7}}, "options.forgetting"),
    ({"rows": rows(), "target": "price", "options": {"drift": "fast"}}, "options.drift"),
    ({"rows": rows(), "target": "price", "options": {"covariance": "round"}}, "options.covariance"),
    ({"rows": rows(), "target": "price", "options": {"model_kind": "forest"}}, "options.model_kind"),
    ({"rows": rows(), "target": "price", "options": {"task": "magic"}}, "options.task"),
    ({"columns": [], "target": NUMBER}, "columns"),
    ({"columns": [{"name": "km"}]}, "target"),
    ({"columns": [{"name": "km"}], "target": "price"}, "target"),
    ({"columns": [{"name": "km"}], "target": {"mean": 1}}, "target.name"),
    ({"columns": [{"name": "km"}], "target": {"name": "y", "kind": "odd"}}, "target.kind"),
    ({"columns": [{"name": "km"}], "target": {"name": "y", "std": 0}}, "target.std"),
    ({"columns": [{"name": "km"}], "target": {"name": "y", "labels": ["a"]}}, "target.labels"),
    ({"columns": [{"name": "km"}], "target": {"name": "y", "labels": ["a", "a"]}}, "target.labels"),
    ({"columns": [{"name": "km", "std": -1}], "target": NUMBER}, "columns[0].std"),
    ({"columns": [{"name": "km", "mean": "much"}], "target": NUMBER}, "columns[0].mean"),
    ({"columns": [{"name": "km", "size": 1}], "target": NUMBER}, "columns[0].size"),
    ({"columns": [{"mean": 1}], "target": NUMBER}, "columns[0].name"),
    ({"columns": [{"name": "km"}, {"name": "km"}], "target": NUMBER}, "columns[1].name"),
    ({"columns": [{"name": "price"}], "target": NUMBER}, "columns[0].name"),
    ({"columns": [{"name": "km", "kind": "colour"}], "target": NUMBER}, "columns[0].kind"),
    ({"columns": [{"name": "car", "kind": "category"}], "target": NUMBER}, "columns[0].values"),
    ({"columns": [{"name": "car", "kind": "category", "values": []}], "target": NUMBER}, "columns[0].values"),
    ({"columns": [{"name": "car", "kind": "category", "values": ["a", "a"]}], "target": NUMBER}, "columns[0].values"),
    ({"columns": [{"name": "car", "kind": "category", "values": [None]}], "target": NUMBER}, "columns[0].values"),
    ({"columns": [{"name": "t", "kind": "hashed", "buckets": 0}], "target": NUMBER}, "columns[0].buckets"),
    ({"columns": [{"name": "km"}], "target": NUMBER, "options": {"ignore": ["a"]}}, "options.ignore"),
    ({"columns": [{"name": "km"}], "target": NUMBER, "options": {"by": "km"}}, "options.by"),
    ({"columns": [{"name": "km"}], "target": NUMBER, "options": {"by": "price"}}, "options.by"),
    ({"columns": [{"name": "km"}], "target": NUMBER, "learn": True}, "learn"),
    ({"bandit": {"arms": ["a"], "n_features": 2}, "target": "price"}, "target"),
    ({"bandit": {"arms": ["a"], "n_features": 2}, "options": {"seed": 1}}, "options"),
    ({"bandit": {"arms": {}, "n_features": 2}}, "bandit.arms"),
    ({"bandit": {"arms": [], "n_features": 2, "hidden": [3]}}, "bandit"),
    ({"columns": [{"name": "km"}], "target": NUMBER, "options": {"by": "s", "drift": 0.1}}, "options.by"),
    ({"columns": [{"name": "km"}], "target": NUMBER, "options": {"prior_scale": -1}}, "options.prior_scale"),
    ({"bandit": {}}, "bandit.arms"),
    ({"bandit": {"arms": ["a"], "n_features": 2, "colour": 1}}, "bandit.colour"),
    ({"bandit": {"arms": "ab", "n_features": 2}}, "bandit.arms"),
    ({"bandit": {"arms": ["a", "a"], "n_features": 2}}, "bandit.arms"),
    ({"bandit": {"arms": ["a", "b"], "n_features": 0}}, "bandit.n_features"),
    ({"bandit": {"arms": ["a", "b"], "n_features": 2, "policy": "luck"}}, "bandit.policy"),
    ({"bandit": {"arms": ["a", "b"], "n_features": 2, "observation": "odd"}}, "bandit.observation"),
    ({"bandit": {"arms": ["a", "b"], "n_features": 2, "outliers": 3}}, "bandit.outliers"),
    ({"bandit": {"arms": ["a", "b"], "n_features": 2, "reward_range": [1, 0]}}, "bandit.reward_range"),
]


@pytest.mark.parametrize(("description", "field"), WRONG, ids=lambda given: str(given)[:80])
def test_what_is_wrong_with_a_description_is_named(description: dict[str, Any], field: str) -> None:
    with pytest.raises(ProblemError) as raised:
        declared_content(Declared(**description))
    assert raised.value.status == 422
    assert raised.value.field == field
    assert "tmp" not in raised.value.detail


SAID: list[tuple[dict[str, Any], str]] = [
    ({"columns": [{"name": "km", "size": 1}]}, "there is no field 'size'; there are kind, name, mean, std, missing"),
    (
        {"columns": [{"name": "car", "kind": "category", "values": ["a"], "mean": 1}]},
        "there is no field 'mean'; there are kind, name, values",
    ),
    ({"columns": [{"name": "km", "std": 0}]}, "std must be a number above 0"),
    ({"columns": [{"name": "t", "kind": "hashed", "buckets": 0}]}, "buckets must be a whole number from 1 to 1048576"),
    ({"columns": [{"name": "sold", "kind": "date", "mean": "May"}]}, "mean must be a date and time such as"),
    ({"target": {"name": "y", "labels": ["a"]}}, "labels must be an array of at least 2 values"),
    ({"columns": [{"name": "c", "kind": "category", "values": []}]}, "values must be an array of at least 1 value"),
    ({"options": {"hidden": "many"}}, 'such as [50, 50], or as a text, such as "50,50"'),
    ({"options": {"noise": 0}}, "noise must be a number above 0 or learn"),
    ({"options": {"by": "km"}}, "'km' is one of columns: the column with the keys of a fleet is given by its name"),
    ({"options": {"by": "km"}}, "leave it out of columns"),
    ({"learn": True}, "there are no rows to learn"),
]


@pytest.mark.parametrize(("part", "words"), SAID, ids=lambda given: str(given)[:80])
def test_what_is_wrong_with_a_description_is_told_in_plain_words(part: dict[str, Any], words: str) -> None:
    problem = content_or_problem(**{"columns": [{"name": "km"}], "target": NUMBER, **part})
    assert isinstance(problem, ProblemError)
    assert words in problem.detail
    assert "expected" not in problem.detail.lower()


def test_options_may_be_written_as_on_the_command_line() -> None:
    written = {"hidden": "4, 3", "ignore": "sold, new", "noise": "learn", "covariance": "auto"}
    listed = {"hidden": [4, 3], "ignore": ["sold", "new"]}
    found, expected = (made(rows=rows(), target="price", options=options) for options in (written, listed))
    assert to_bytes(found) == to_bytes(expected)
    assert found.estimator.hidden_layer_sizes == (4, 3)
    assert made(rows=rows(), target="price", options={"hidden": 4}).estimator.hidden_layer_sizes == (4,)


def content_or_problem(**given: Any) -> bytes | ProblemError:
    try:
        return declared_content(Declared(**given))
    except ProblemError as problem:
        return problem


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 50) | st.floats(-1e3, 1e3) | st.sampled_from(["auto", "", "a", "km"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "kind", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
KINDS = st.sampled_from(["number", "boolean", "category", "hashed", "date", "text", "class", "log", "count", "odd"])
WORDS = ["name", "kind", "mean", "std", "missing", "values", "buckets", "clock", "labels"]
PARTS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=3).flatmap(
    lambda part: KINDS.map(lambda kind: {"name": "km", "kind": kind, **part})
)
OPTIONS = st.dictionaries(
    st.sampled_from(
        ["hidden", "outliers", "forgetting", "drift", "noise", "by", "weight", "seed", "prior_scale", "odd"]
    ),
    VALUES,
    max_size=2,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=3), PARTS | VALUES, OPTIONS)
def test_any_description_makes_a_model_that_answers_or_is_refused(columns: Any, target: Any, options: Any) -> None:
    if isinstance(target, dict) and target.get("name") == "km":
        target["name"] = "y"
    content = content_or_problem(columns=columns, target=target, options=options)
    if isinstance(content, ProblemError):
        assert content.status == 422
        assert content.field is not None
        assert content.field.split(".")[0].split("[")[0] in ("columns", "target", "options")
        return
    model = from_bytes(content)
    assert isinstance(model, TabularModel)
    served = serve(model)
    assert isinstance(served, RowModel)
    assert served.schema()["columns"]


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["arms", "n_features", "policy", "hidden", "noise", "seed", "odd"]), VALUES))
def test_any_bandit_is_made_or_refused(given: Any) -> None:
    content = content_or_problem(bandit={"arms": ["a", "b"], "n_features": 2, **given})
    if isinstance(content, ProblemError):
        assert content.status == 422
        assert content.field is not None
        assert content.field.startswith("bandit")
    else:
        assert isinstance(from_bytes(content), ContextualBandit)


def test_a_model_that_memory_cannot_hold_is_refused() -> None:
    with pytest.raises(ProblemError, match="would take") as caught:
        declared_content(Declared(bandit={"arms": ["a", "b"], "n_features": 61_202}))
    assert caught.value.status == 422
