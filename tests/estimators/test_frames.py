"""Data frames of pandas and polars and Arrow tables are learned as the arrays that they stand for."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import onepass

N = 150
RNG = np.random.default_rng(0)
SIZE, AGE = RNG.normal(size=(2, N))
COLOUR = np.array(["red", "green", "blue"])[RNG.integers(0, 3, N)]
Y = SIZE + 2.0 * (COLOUR == "red") + RNG.normal(0.0, 0.1, N)
NUMBERS = {"size": SIZE, "age": AGE}
LABELS = ["blue", "green", "red"]
ESTIMATORS = [
    onepass.BayesianPerceptronRegressor(),
    onepass.BayesianPerceptronClassifier(),
    onepass.BayesianMLPRegressor((5,), random_state=0),
    onepass.BayesianMLPClassifier((5,), random_state=0),
]


def target(model: Any) -> Any:
    return Y if isinstance(model, onepass.BayesianPerceptronRegressor | onepass.BayesianMLPRegressor) else Y > 1.0


def frames(colours: list[str | None]) -> dict[str, Any]:
    """The same rows, with a column of categories, in every library."""
    columns = {name: values[: len(colours)] for name, values in NUMBERS.items()}
    encoded = pa.DictionaryArray.from_arrays(
        pa.array([None if one is None else LABELS.index(one) for one in colours], pa.int32()), pa.array(LABELS)
    )
    table = pa.table({**columns, "colour": encoded})
    return {
        "pandas": pd.DataFrame({**columns, "colour": pd.Categorical(colours, categories=LABELS)}),
        "polars": pl.DataFrame({**columns, "colour": pl.Series(colours, dtype=pl.Categorical)}),
        "polars enum": pl.DataFrame({**columns, "colour": pl.Series(colours, dtype=pl.Enum(LABELS))}),
        "arrow": table,
        "arrow in chunks": pa.concat_tables([table[:4], table[4:]]),
    }


KINDS = list(frames(["red"]))


def by_hand(colours: list[str | None]) -> Any:
    """The numbers that those rows stand for."""
    one_hot = [[np.nan if one is None else float(one == label) for label in LABELS] for one in colours]
    return np.column_stack([SIZE[: len(colours)], AGE[: len(colours)], np.array(one_hot)])


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_numbers_in_a_frame_are_those_of_an_array(model: Any, make: Any) -> None:
    X = np.column_stack([SIZE, AGE])
    expected = model.fit(X, target(model)).predict(X)
    seen = model.fit(make(NUMBERS), target(model))
    assert list(seen.feature_names_in_) == ["size", "age"]
    np.testing.assert_array_equal(seen.predict(make(NUMBERS)), expected)


@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_categories_in_a_frame_are_columns_of_zeros_and_ones(model: Any, kind: str) -> None:
    colours = list(COLOUR)
    X = by_hand(colours)
    expected = model.fit(X, target(model)).predict(X)
    seen = model.fit(frames(colours)[kind], target(model))
    assert list(seen.encoded_feature_names_) == ["size", "age", "colour=blue", "colour=green", "colour=red"]
    np.testing.assert_array_equal(seen.predict(frames(colours)[kind]), expected)


@pytest.mark.parametrize("learned", KINDS)
@pytest.mark.parametrize("asked", KINDS)
def test_one_library_may_learn_and_another_predict(learned: str, asked: str) -> None:
    model = onepass.BayesianPerceptronRegressor(missing="mean").fit(by_hand(list(COLOUR)), Y)
    colours = ["red", None, "green", "blue", "red"]
    expected = model.predict(by_hand(colours))
    model = onepass.BayesianPerceptronRegressor(missing="mean").fit(frames(list(COLOUR))[learned], Y)
    np.testing.assert_array_equal(model.predict(frames(colours)[asked]), expected)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (pd.DataFrame, r"X\['colour'\]\.astype\('category'\)"),
        (pl.DataFrame, r"X\.with_columns\(pl\.col\('colour'\)\.cast\(pl\.Categorical\)\)"),
        (pa.table, r"X\.set_column\(i, 'colour', X\['colour'\]\.dictionary_encode\(\)\)"),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_texts_are_refused_with_the_code_that_makes_them_categories(make: Any, code: str) -> None:
    with pytest.raises(ValueError, match=rf"column 'colour' of X has strings.*make it categorical, with {code}"):
        onepass.BayesianPerceptronRegressor().fit(make({**NUMBERS, "colour": COLOUR}), Y)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("kind", ["datetime64[us]", "timedelta64[us]"])
@pytest.mark.parametrize("more", [NUMBERS, {}], ids=["and numbers", "alone"])
def test_dates_are_refused_by_the_name_of_their_column(make: Any, kind: str, more: Any) -> None:
    X = make({**more, "sold": np.arange(len(Y)).astype(kind)})
    with pytest.raises(ValueError, match="column 'sold' of X has dates or times, which aren't numbers: derive"):
        onepass.BayesianPerceptronRegressor().fit(X, Y)


def test_dates_of_an_array_and_objects_of_a_frame_are_refused() -> None:
    dates = np.arange(len(Y)).astype("datetime64[D]")
    with pytest.raises(ValueError, match=r"^X has dates or times"):
        onepass.BayesianPerceptronRegressor().fit(dates[:, None], Y)
    with pytest.raises(ValueError, match=r"column 'sold' of X has strings or other objects.*make it categorical"):
        onepass.BayesianPerceptronRegressor().fit(pd.DataFrame({**NUMBERS, "sold": dates.astype(object)}), Y)


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array], ids=["pandas", "polars", "arrow"])
def test_targets_may_be_columns_of_a_frame(make: Any) -> None:
    X = np.column_stack([SIZE, AGE])
    expected = onepass.BayesianPerceptronRegressor().fit(X, Y).predict(X)
    np.testing.assert_array_equal(onepass.BayesianPerceptronRegressor().fit(X, make(Y)).predict(X), expected)
    model = onepass.BayesianPerceptronClassifier().fit(X, make(COLOUR))
    assert list(model.classes_) == LABELS


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_models_take_frames_of_numbers(make: Any) -> None:
    X = np.column_stack([SIZE, AGE])
    for model in (onepass.BayesianPerceptron(2, "linear"), onepass.BayesianNetwork(2, (3,))):
        model.learn(make(NUMBERS), Y)
        np.testing.assert_array_equal(model.predict(make(NUMBERS)).mean, model.predict(X).mean)
