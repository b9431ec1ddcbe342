"""Files as they are found in the wild: what people write in them is read, told, and can be said otherwise."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onepass.files.checkpoint import load, save
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Hashed
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.inference import infer
from onepass.tables.columns.notation import Notation
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.reasons import Reason
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.targets import ClassTarget, target_from_state


def write(path: Path, header: str, rows: list[str]) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def learned(file: Path, target: str, **options: Any) -> TabularModel:
    """A model that has learned a file, and been through a file of its own on the way."""
    inputs = Inputs((str(file),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions(target, **options), rereadable=True)
    for number, step in enumerate(steps(model, inputs, sources)):
        model.learn(step.rows)
        if not number:
            save(model, file.with_suffix(".onepass"))
            model = load(file.with_suffix(".onepass"))
    return model


def told(model: TabularModel) -> dict[str, str]:
    return dict(model.choices())


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def test_a_german_file_is_the_same_model_as_a_plain_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    area, year = rng.uniform(20, 3000, 200), rng.integers(1, 29, 200)
    rent = 9.0 * area + rng.normal(0, 20, 200)
    lines = [f"{german(a)};{d:02}.01.2024;{german(r)} €" for a, d, r in zip(area, year, rent, strict=True)]
    wild = learned(write(tmp_path / "wild.csv", "area;day;rent", lines), "rent")
    lines = [f"{a:.2f},2024-01-{d:02},{r:.2f}" for a, d, r in zip(area, year, rent, strict=True)]
    plain = learned(write(tmp_path / "plain.csv", "area,day,rent", lines), "rent")
    assert (wild.n_rows, wild.n_rejected) == (200, 0)
    X = plain.encoding.encode(batch(area=["70", "500"], day=["2024-01-05", "2024-01-06"])).X
    np.testing.assert_array_equal(
        wild.encoding.encode(batch(area=["70,0", "500"], day=["05.01.2024", "06.01.2024"])).X, X
    )
    np.testing.assert_array_equal(wild.predictions(X, 0.95)["mean"], plain.predictions(X, 0.95)["mean"])
    assert told(wild)["target"].startswith("rent, a number written 1.234,5 in €, ")
    assert told(wild)["column area"].startswith("number written 1.234,5, ")
    assert told(wild)["column day"].startswith("date written %d.%m.%Y, ")


def test_the_target_has_a_sign_that_can_be_said(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "x;y", [f"{i % 7};{10 + i % 9},{100 + i}" for i in range(50)])
    for notation, low, high in ((Notation(), 10_000, 20_000), (Notation(","), 10, 20)):
        (mean,) = learned(file, "y", notation=notation).predictions(np.zeros((1, 1)), 0.95)["mean"]
        assert low < mean < high
    counts = learned(file, "y", task="counts")
    assert told(counts)["target"] == "y, a count written 1,234.5, though nothing rules out 1.234,5"


HOUSES = [
    f"{('NA' if i % 10 else 'Grvl')},{('None', 'BrkFace', 'Stone')[i % 3]},{'NA' if i % 5 == 0 else 60 + i % 9},"
    f"{'NA' if i == 7 else ('gas', 'oil')[i % 2]},{100_000 + 1000 * (i % 13)}"
    for i in range(120)
]


def test_words_that_are_answers_of_a_text_column_are_values(tmp_path: Path) -> None:
    file = write(tmp_path / "houses.csv", "alley,masonry,frontage,heating,price", HOUSES)
    model = learned(file, "price")
    features = model.encoding.features
    assert {"alley=NA", "alley=Grvl", "masonry=None", "frontage is missing"} <= set(features)
    assert "heating=NA" not in features  # one of 120 rows is no answer
    assert told(model)["column alley"].endswith("; NA is a value, not missing")
    X = model.encoding.encode(batch(alley=["NA", None], masonry=["None", "NA"], heating=["NA", "gas"])).X
    on = [{name for name, value in zip(features, row, strict=True) if value == 1.0} for row in X]
    assert on == [
        {"alley=NA", "masonry=None", "heating=(other)", "frontage is missing"},
        {"alley=(other)", "masonry=(other)", "heating=gas", "frontage is missing"},
    ]


def test_the_user_says_which_words_are_missing(tmp_path: Path) -> None:
    file = write(tmp_path / "houses.csv", "alley,masonry,frontage,heating,price", HOUSES)
    model = learned(file, "price", notation=Notation(missing=("NA", "Stone")))
    assert {name for name in model.encoding.features if "=" in name} == {
        *("alley=Grvl", "alley=(other)"),
        *("masonry=None", "masonry=BrkFace", "masonry=(other)"),
        *("heating=gas", "heating=oil", "heating=(other)"),
    }
    none = learned(file, "price", notation=Notation(missing=()))
    assert "heating=NA" in none.encoding.features
    assert none.encoding.columns[2].kind == "category"  # of numbers and NA


def test_many_texts_that_are_hashed_know_their_words() -> None:
    table = batch(
        a=[f"town {i % 40}" if i % 2 else "None" for i in range(400)], b=[f"town {i % 40}" for i in range(400)]
    )
    encoding = infer(table, [])
    a, b = encoding.columns
    assert a.words().endswith("; None is a value, not missing")
    X = Encoding.from_state(encoding.state()).encode(batch(a=["None", "NA"], b=["None", "town 1"])).X
    assert X[:, : len(a.features)].sum(axis=1).tolist() == [1, 0]
    assert X[:, len(a.features) :].sum(axis=1).tolist() == [0, 1]
    assert isinstance(b, Hashed)
    assert b.state().keys() == {"name", "buckets", "shares"}  # as in files of earlier versions


def test_a_handful_of_rows_makes_no_word_a_value() -> None:
    (column,) = infer(batch(a=["x", "y", "NA", "NA"]), []).columns
    assert column.features == ["a=x", "a=y", "a=(other)"]


def test_nothing_but_words_is_nothing() -> None:
    assert infer(batch(a=["NA", "None", None], b=["1", "2", "3"]), []).ignored == {
        "a": "it has no values among the first rows"
    }


def test_the_majority_class_none_is_a_class(tmp_path: Path) -> None:
    labels = ["None"] * 6 + ["Minor"] * 3 + ["Major"]
    rows = [f"{i % 10},{labels[i % 10]}" for i in range(100)] + ["3,NA", "4,"]
    model = learned(write(tmp_path / "a.csv", "x,severity", rows), "severity")
    assert model.labels == ("Major", "Minor", "None")
    assert (model.n_rows, model.n_rejected) == (100, 1)  # a row without a target is left out, and no error
    assert told(model)["target"].endswith("; None is a value, not missing")
    bad: dict[int, Reason] = {}
    model.target.encode(pa.array(["None", "NA", None, "x"]), bad)
    assert bad == {
        1: Reason("missing_word", "severity", "NA", "target"),
        2: Reason("missing", "severity", role="target"),
        3: Reason("unknown_class", "severity", "x", "target", labels=("Major", "Minor", "None")),
    }
    declared = learned(tmp_path / "a.csv", "severity", classes=("None", "Minor", "Major", "NA"))
    assert (declared.n_rows, declared.n_rejected) == (101, 0)
    said = learned(tmp_path / "a.csv", "severity", notation=Notation(missing=("None",)))
    assert said.labels == ("Major", "Minor", "NA")


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["True", "False"], ("False", "True")),
        (["TRUE", "FALSE"], ("FALSE", "TRUE")),
        (["True", "false", "true"], ("false", "true")),  # in several ways: the simplest
        (["1.0", "0.0"], ("0.0", "1.0")),
        (["1.0", "0", "1"], ("0", "1")),
        (["01", "02"], ("01", "02")),
        (["001", "010"], ("001", "010")),
        (["Yes", "No"], ("No", "Yes")),
    ],
)
def test_labels_come_back_as_they_were_written(texts: list[str], labels: tuple[str, ...], tmp_path: Path) -> None:
    rows = [f"{i % 7},{texts[i % len(texts)]}" for i in range(60)]
    model = learned(write(tmp_path / "a.csv", "x,y", rows), "y")
    assert (model.labels, model.n_rejected) == (labels, 0)
    assert set(model.predictions(model.encoding.encode(batch(x=["1"])).X, 0.95)["label"]) <= set(labels)


def test_true_of_one_format_is_true_of_another(tmp_path: Path) -> None:
    model = learned(write(tmp_path / "a.csv", "x,y", [f"{i},{bool(i % 2)}" for i in range(0, 90, 3)]), "y")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"x": i, "y": bool(i % 2)}) + "\n" for i in range(30)))
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [True, False]}), tmp_path / "a.parquet")
    for file in ("a.jsonl", "a.parquet"):
        inputs = Inputs((str(tmp_path / file),))
        for step in steps(model, inputs, inputs.sources()):
            assert not step.rows.rejects
            np.testing.assert_array_equal(step.rows.y[:2], [0.0, 1.0] if file == "a.jsonl" else [1.0, 0.0])


def test_zip_codes_stay_texts(tmp_path: Path) -> None:
    codes = ["01067", "80331", "04109"]
    rows = [f"{codes[i % 3]},{1000 + i % 60:05},{i % 12 + 1:02},{i % 5}" for i in range(120)]
    model = learned(write(tmp_path / "a.csv", "zip,many,month,y", rows), "y")
    assert {"zip=01067", "zip=80331"} <= set(model.encoding.features)
    assert told(model)["column zip"].endswith("; digits with leading zeros are texts")
    assert told(model)["column many"].endswith("; digits with leading zeros are texts")  # hashed
    assert told(model)["column month"].startswith("number, ")
    asked = learned(tmp_path / "a.csv", "y", kinds={"zip": "number"})
    assert told(asked)["column zip"].startswith("number, ")


@pytest.mark.parametrize("third", ["Unknown", "No internet service", "NA", "maybe"])
def test_yes_and_no_with_a_third_answer_are_categories(third: str) -> None:
    answers = ["Yes", "No", "Yes", third] * 30
    (column,) = infer(batch(a=answers), []).columns
    assert column.features == [f"a={answer}" for answer in sorted({*answers})] + ["a=(other)"]
    (rare,) = infer(batch(a=["Yes", "No"] * 500 + ["maybe"]), []).columns
    assert rare.kind == "category"


def test_yes_and_no_and_a_few_that_are_missing_are_truths() -> None:
    encoding = infer(batch(a=["Yes", "No"] * 50 + ["?", None, "NA"]), [])
    (column,) = encoding.columns
    assert isinstance(column, Boolean)
    assert column.words() == "true or false, as 1 or 0; missing (?): 0.5"
    found = Encoding.from_state(encoding.state()).encode(batch(a=["no", "?", "NA", "-"]))
    assert found.X[:3, 0].tolist() == [0.0, 0.5, 0.5]
    assert found.bad == {3: Reason("not_boolean", "a", "-")}


def test_a_state_without_words_for_missing_values_means_the_usual_ones() -> None:
    columns: list[dict[str, Any]] = [
        {"kind": "number", "name": "n", "centre": 0.0, "scale": 1.0, "missing": True},
        {"kind": "boolean", "name": "b"},
        {"kind": "category", "name": "c", "levels": ["x"], "shares": [1.0]},
        {"kind": "hashed", "name": "h", "buckets": 2, "shares": [0.5, 0.5]},
        {"kind": "date", "name": "d", "centre": 0.0, "clock": False, "missing": True},
    ]
    encoding = Encoding.from_state({"columns": columns, "ignored": {}, "left_out": []})
    assert encoding.state()["columns"] == [
        {name: tuple(value) if isinstance(value, list) else value for name, value in column.items()}
        for column in columns
    ]
    names = [column["name"] for column in columns]
    for word in ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"):
        spoken = encoding.encode(batch(**{name: [word, "", None] for name in names if name not in "bhc"}))
        assert not spoken.bad
        spoken = encoding.encode(batch(**{name: [word, None] for name in names}))
        assert not spoken.bad
        np.testing.assert_array_equal(spoken.X[0], spoken.X[1])
    target = target_from_state({"kind": "class", "name": "y", "labels": ["false", "true"], "numeric": False})
    assert target == ClassTarget("y", ("false", "true"), False)
    assert target.encode(pa.array(["True", "false"]), {}).tolist() == [1.0, 0.0]
