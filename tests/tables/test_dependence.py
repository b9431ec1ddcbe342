"""How much one column explains: compared with scikit-learn's scores, and with what is known of made-up columns."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LinearRegression

from onepass.tables.dependence import share_explained

N = 600


def _random() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_line_explains_its_r2_and_a_curve_that_of_its_ranks() -> None:
    x = _random().normal(size=N)
    y = 2.0 * x + _random().normal(size=N)
    line = LinearRegression().fit(x[:, None], y).score(x[:, None], y)
    assert share_explained(x, y, ordered=True) == pytest.approx(max(line, spearmanr(x, y)[0] ** 2), abs=1e-12)
    assert share_explained(x, np.exp(3.0 * x), ordered=True) == pytest.approx(1.0)


def test_levels_explain_what_the_adjusted_r2_of_their_dummies_says() -> None:
    levels = _random().integers(0, 5, N)
    y = np.array([0.0, 3.0, 1.0, 0.0, 2.0])[levels] + _random().normal(size=N)
    dummies = np.eye(5)[levels]
    r2 = LinearRegression(fit_intercept=False).fit(dummies, y).score(dummies, y)
    adjusted = 1.0 - (1.0 - r2) * (N - 1) / (N - 5)
    assert share_explained(levels.astype(float), y, ordered=False) == pytest.approx(adjusted)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_number_from_which_the_class_can_be_read_explains_nearly_all(n_classes: int) -> None:
    x = _random().uniform(0.0, n_classes, N)
    found = share_explained(x, np.floor(x), ordered=True, classes=n_classes)
    assert found > 0.96
    assert share_explained(np.floor(x), np.floor(x), ordered=True, classes=n_classes) == 1.0


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n_levels", [3, 100, 10**6])
def test_noise_explains_next_to_nothing_however_many_values_it_has(n_levels: int, ordered: bool, classes: int) -> None:
    x = _random().integers(0, n_levels, N).astype(float)
    y = np.random.default_rng(4).normal(size=N)
    y = (y > 0.3).astype(float) if classes else y
    assert share_explained(x, y, ordered=ordered, classes=classes) < 0.1


def test_what_is_missing_or_constant_explains_nothing() -> None:
    x = np.arange(10.0)
    x[3] = np.nan
    y = np.where(np.isnan(x), 1e9, x)
    assert share_explained(x, y, ordered=True) == pytest.approx(1.0)
    assert share_explained(np.ones(10), y, ordered=True) == share_explained(np.full(10, np.nan), y, ordered=True) == 0.0
