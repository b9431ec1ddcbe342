"""What targets may be."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor
from onepass.estimators.targets import check_numbers

DAYS = np.array(["2024-01-30", "2024-01-31"], dtype="datetime64[D]")


@pytest.mark.parametrize("model", [BayesianPerceptronRegressor(), BayesianMLPRegressor((3,))])
@pytest.mark.parametrize(
    ("y", "shown"),
    [
        (["yes", "no"], "'yes'"),
        (np.array([1.0, "2"], dtype=object), "'2'"),
        (pd.Series(["1.5", "2.5"]), "'1.5'"),
        ([["a", "b"], ["c", "d"]], "'a'"),
        (DAYS, "'2024-01-30'"),
        (DAYS - DAYS[0], "'0 days'"),
    ],
    ids=["strings", "a string", "strings of digits", "columns", "dates", "durations"],
)
def test_a_regressor_needs_numbers(model: Any, y: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^y must have numbers, got {shown}: .*BayesianPerceptronClassifier"):
        model.fit([[0.0], [1.0]], y)


@pytest.mark.parametrize("y", [[1, 2], [True, False], np.array([1, 2.5], dtype=object), pd.Series([1.0, 2.0])])
def test_numbers_are_numbers_however_they_are_given(y: Any) -> None:
    check_numbers(y)
