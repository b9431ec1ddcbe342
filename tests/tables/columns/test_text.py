"""Words and pairs as features, against a plain count of them; and which columns are taken for text."""

import hashlib
import random
import re
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import issparse
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import onepass
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.inference import infer
from onepass.tables.columns.text import Text, TextSize
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch
from onepass.tables.readers.registry import open_source
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from tests.helpers.tables import messages, write_csv

TEXTS = ["Free entry, WIN now! win now", "don't  STRASSE_7 straße 北京", None, "", "a", "...", "now now now win"]
_BITS = 2**64


def hash_of(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8, person=b"onepass").digest(), "little")


def pair_hash(one: int, other: int) -> int:
    mixed = ((one ^ one >> 29) * 0x9E3779B97F4A7C15 + other) % _BITS
    return mixed ^ mixed >> 32


def plainly(text: str | None, size: TextSize) -> Any:
    """The features of a text, counted one by one with Python's own words and integers."""
    words = [hash_of(word) for word in re.findall(r"\w+", (text or "").lower())]
    row = np.zeros(size.buckets)
    for weight, found in ((1.0, words), (0.3, [pair_hash(*pair) for pair in pairwise(words)])):
        for bucket, count in Counter(number % size.buckets for number in found).items():
            row[bucket] += weight * (1.0 + np.log(count))
    return row * (size.norm / np.linalg.norm(row)) if row.any() else row


@pytest.mark.parametrize("size", [TextSize(2**12, 4.0), TextSize(3, 0.5)])
def test_words_and_pairs_are_counted(size: TextSize) -> None:
    array = pa.array(TEXTS)
    found = Text.of_texts("t", array, size).rows(array)
    assert found.shape == (len(TEXTS), size.buckets)
    assert found.indices.dtype == np.int32
    np.testing.assert_allclose(found.toarray(), [plainly(text, size) for text in TEXTS], atol=1e-15)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_any_arrow_type_are_the_same(kind: Any) -> None:
    column = Text.of_texts("t", pa.array(TEXTS), TextSize(64))
    found, expected = (column.rows(array).toarray() for array in (pa.array(TEXTS).cast(kind), pa.array(TEXTS)))
    np.testing.assert_array_equal(found, expected)
    assert column.rows(pa.nulls(3)).nnz == 0


def test_features_have_the_names_of_frequent_words_and_pairs() -> None:
    column = Text.of_texts("sms", pa.array(["win now", "win now win now", "lose now"]), TextSize(2**16))
    assert column.terms == ("now", "win", "win now", "now win")[: len(column.terms)]
    assert {name for name in column.features if ":" in name} == {"sms: 'now'", "sms: 'win'", "sms: 'win now'"}
    assert column.features[hash_of("now") % 2**16] == "sms: 'now'"
    assert column.features[0] == "sms#0"
    crowded = Text.of_texts("sms", pa.array(["a b c d"] * 2), TextSize(1))
    assert crowded.features == ["sms: 'a', 'a b', 'b', ..."]


def _sentences(n: int) -> list[str]:
    """Sentences of which no two are the same."""
    words = [f"{first}{last}" for first in ("ba", "ke", "lo") for last in ("", "n", "rt", "sk", "mm")]
    draw = random.Random(0)
    return [f"{' '.join(draw.choices(words, k=8))} {i}" for i in range(n)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (_sentences(200), "text"),
        (_sentences(60), "text"),
        (_sentences(120) + ["thanks a lot for all your help"] * 80, "text"),
        ([f"Ms. Anna{i} Smith" for i in range(200)], None),
        ([hashlib.md5(str(i).encode()).hexdigest() for i in range(200)], None),
        ([f"{i:08x}-e29b-41d4-a716-4466" for i in range(200)], None),
        ([f"Dec {i % 28 + 1} 2024 10:{i % 60:02} 07" for i in range(200)], None),
        (["the train to town is late", "the train to town is on time"] * 100, "category"),
    ],
)
def test_text_is_told_from_names_keys_and_categories(values: list[str], kind: str | None) -> None:
    encoding = infer(pa.RecordBatch.from_pydict({"a": values, "b": [1.0, 2.0] * (len(values) // 2)}), [])
    assert [column.kind for column in encoding.columns if column.name == "a"] == ([kind] if kind else [])


def test_what_a_column_holds_can_be_said() -> None:
    table = pa.RecordBatch.from_pydict({"a": _sentences(200), "b": [f"Ann{i} Smith" for i in range(200)]})
    encoding = infer(table, [], kinds={"a": "hashed", "b": "text"})
    assert [column.kind for column in encoding.columns] == ["hashed", "text"]


def test_text_stands_behind_the_other_columns_and_rows_are_sparse() -> None:
    table = pa.RecordBatch.from_pydict({"a": _sentences(200), "b": ["1", "x"] + ["3"] * 198, "c": ["u", "v"] * 100})
    encoding = infer(table, [], text=TextSize(512, 2.0))
    assert [column.name for column in encoding.columns] == ["b", "c", "a"]
    found = encoding.encode(table)
    assert bool(issparse(found.X))
    assert found.X.shape == (200, len(encoding.features)) == (200, 516)
    assert list(found.bad) == [1]
    assert not found.X[[1]].toarray().any()
    np.testing.assert_allclose(
        found.X[[0], encoding.n_dense :].toarray(), [plainly(_sentences(1)[0], TextSize(512, 2.0))]
    )
    dense = infer(table, ["a"]).encode(table).X
    np.testing.assert_array_equal(found.X[:, : encoding.n_dense].toarray(), dense)


@pytest.mark.parametrize(
    "wrong",
    [{"buckets": 0}, {"buckets": True}, {"norm": -1.0}, {"typical": "x"}, {"terms": [1]}, {"terms": ["a b c"]}],
)
def test_a_file_that_can_not_be_is_refused(wrong: dict[str, Any]) -> None:
    state = infer(pa.RecordBatch.from_pydict({"a": _sentences(200)}), []).state()
    assert Encoding.from_state(state).state() == state
    state["columns"][0] |= wrong
    with pytest.raises(ValueError, match=r"buckets|norm|typical|terms"):
        Encoding.from_state(state)


def test_a_file_with_text_before_other_columns_is_refused() -> None:
    state = infer(pa.RecordBatch.from_pydict({"a": _sentences(200), "b": [1.0, 2.0] * 100}), []).state()
    state["columns"].reverse()
    with pytest.raises(ValueError, match="last"):
        Encoding.from_state(state)


def _learned(folder: Path, rows: list[dict[str, Any]], **options: Any) -> TabularModel:
    (source,) = (open_source(str(write_csv(folder / "sms.csv", rows))),)
    model, _ = infer_model([source], SchemaOptions(**options), rereadable=True)
    model.learn(model.rows(list(source.batches(model.types(target=True), 0))))
    return model


def test_messages_are_told_apart_as_by_logistic_regression(tmp_path: Path) -> None:
    rows = messages(3000)
    model = _learned(tmp_path, rows[:2000], target="kind", ignore=("score", "hour"))
    test = pa.RecordBatch.from_pylist(rows[2000:])
    is_spam = np.array([row["kind"] == "spam" for row in rows])
    ours = model.predictions(model.encoding.encode(test).X, 0.95)["p_spam"]
    words = HashingVectorizer(n_features=2**15, ngram_range=(1, 2), alternate_sign=False).transform(
        [row["sms"] for row in rows]
    )
    found = [
        LogisticRegression(C=c).fit(words[:2000], is_spam[:2000]).predict_proba(words[2000:]) for c in (1, 10, 100)
    ]
    theirs = min(log_loss(is_spam[2000:], one) for one in found)
    assert log_loss(is_spam[2000:], ours) < 1.05 * theirs < 0.4
    names = [weight.feature for weight in model.weights()["spam"][:10]]
    assert all(re.match(r"sms: '(h|sp)am\d+", name) for name in names)
    (column,) = model.encoding.texts
    largest = np.abs(model.estimator.coef_).max() * column.typical  # what the word does in an average text
    assert abs(model.weights()["spam"][0].mean) == pytest.approx(largest)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "score", "ignore": ("kind",)},
        {"target": "hour", "task": "classification"},
        {"target": "kind", "settings": Settings(hidden=(3,))},
    ],
    ids=["numbers", "classes", "network"],
)
def test_a_model_with_text_survives_its_file(options: dict[str, Any], tmp_path: Path) -> None:
    rows = messages(300)
    model = _learned(tmp_path, rows, **options, text_buckets=256)
    onepass.save(model, tmp_path / "a.onepass")
    again = onepass.load(tmp_path / "a.onepass")
    X = model.encoding.encode(pa.RecordBatch.from_pylist(rows[:20])).X
    for name, values in model.predictions(X, 0.9).items():
        np.testing.assert_array_equal(again.predictions(X, 0.9)[name], values)
    assert again.encoding == model.encoding
    assert again.n_rows == 300


def test_rows_of_several_batches_are_learned_as_one(tmp_path: Path) -> None:
    rows = messages(300)
    model = _learned(tmp_path, rows, target="kind", text_buckets=512)
    whole = pa.RecordBatch.from_pylist(rows)
    parts = [RowBatch(whole.slice(start, 100), start, partial(range, start, start + 100)) for start in (0, 100, 200)]
    joined = model.rows(parts)
    np.testing.assert_array_equal(joined.X.toarray(), model.encoding.encode(whole).X.toarray())
    assert len(joined.y) == 300
    assert model.rows_per_block == 2**23 // (4096 + 2)  # room for so many words beside hour and score
