"""Running sums of lag regressions are those of the regression written out."""

import pickle
from typing import Any

import numpy as np
import pytest

from onepass.engine.forecasting import ForecastWorkspace, empty_sizing, learn_values
from onepass.engine.lag_sums import Plan, normal_equations

WAVE = 2.0 * np.pi / 7.0
MEMBERS = [
    {"view": 0, "rate": 1.0, "lags": [1, 2, 3, 7, 8, 15], "kinds": [0, 1, 2], "frequencies": [0.0, WAVE, WAVE]},
    {"view": 1, "rate": 0.97, "lags": [1, 2, 5, 9], "kinds": [0], "frequencies": [0.0]},
    {"view": 2, "rate": 0.99, "lags": [2, 4, 7], "kinds": [0], "frequencies": [0.0]},
]
TIERS = [[1, 3, 6], [2, 4], [1, 3]]
VIEWS = [(0, 0), (0, 1), (1, 7)]


def first_prior(member: dict[str, Any], n_inputs: int) -> dict[str, list[float]]:
    n = len(member["lags"]) + len(member["kinds"]) + n_inputs
    return {"start": [0.0] * n, "precision": [10.0] * n}


def plan(n_inputs: int = 0) -> Plan:
    columns: dict[str, Any] = {"kinds": [3] * n_inputs, "frequencies": list(map(float, range(n_inputs)))}
    members = [
        {**member, "tiers": tiers, **first_prior(member, n_inputs)}
        | {name: member[name] + more for name, more in columns.items()}
        for member, tiers in zip(MEMBERS, TIERS, strict=True)
    ]
    common = {"horizon": 5, "n_tests": 3, "n_inputs": n_inputs, "season": 7, "pause": 0, "outliers": 1e300}
    return Plan({"views": VIEWS, "members": members, **common})


def learned(own: Plan, y: np.ndarray, X: np.ndarray) -> np.ndarray:
    record = np.zeros((1, own.size))
    own.begin(record[0], 3.0)
    work, slots = ForecastWorkspace(own, own.horizon), np.zeros(len(y), dtype=np.int64)
    learn_values(own, y, X, slots, record, own.empty_priors(), empty_sizing(own.horizon), work)
    return np.asarray(record[0])


def written_out(y: np.ndarray, X: np.ndarray, number: int, n_lags: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regressors, targets and weights of a member's rows."""
    member, (logarithm, difference) = MEMBERS[number], VIEWS[number]
    z = np.log(y) if logarithm else y
    u = z[difference:] - z[:-difference] if difference else z - z.mean()
    u = u / u.std()
    lags = np.array(member["lags"][:n_lags])  # type: ignore[index]
    rows = np.arange(lags.max(), len(u))
    time = rows + difference + 3.0
    columns = [np.ones(len(rows))]
    columns += [f(WAVE * time) for f in (np.cos, np.sin)] if number == 0 else []
    changes = X[difference:] - X[:-difference] if difference else X
    columns += list(changes[rows].T)
    weights = float(member["rate"]) ** np.arange(len(rows))[::-1]  # type: ignore[arg-type]
    return np.column_stack([*[u[rows - lag] for lag in lags], *columns]), u[rows], weights


@pytest.mark.parametrize("n_inputs", [0, 2])
@pytest.mark.parametrize("n", [13, 18, 33, 200])
def test_sums_are_those_of_the_rows_written_out(n: int, n_inputs: int) -> None:
    rng = np.random.default_rng(n)
    y, X = 60.0 + np.cumsum(rng.normal(size=n)), rng.normal(size=(n, max(n_inputs, 1)))
    own = plan(n_inputs)
    record, checked = learned(own, y, X), 0
    for number in range(3):
        try:
            matrix, targets, squares, weight = normal_equations(own, record, number)
        except ValueError:
            assert n < 20
            continue
        n_lags = len(matrix) - (3 if number == 0 else 1) - n_inputs
        rows, u, w = written_out(y, X[:, :n_inputs], number, n_lags)
        scale = np.ones(len(matrix))
        if n_inputs:
            centred = rows - w @ rows / w.sum()
            scale[-n_inputs:] = np.sqrt((w[:, None] * centred**2).sum(axis=0) / w.sum())[-n_inputs:]
        rows = rows / scale
        np.testing.assert_allclose(matrix, rows.T @ (w[:, None] * rows), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(targets, rows.T @ (w * u), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose([squares, weight], [w @ u**2, w.sum()], rtol=1e-9)
        checked += 1
    assert checked >= 1


def test_lags_come_into_use_as_the_series_grows() -> None:
    y = 60.0 + np.cumsum(np.random.default_rng(0).normal(size=40))
    own, used = plan(), []
    for n in (4, 8, 32):
        matrix, *_ = normal_equations(own, learned(own, y[:n], np.zeros((n, 1))), 0)
        used.append(len(matrix) - 3)
    assert used == [1, 3, 6]


def test_a_large_level_costs_no_digits() -> None:
    y, own = np.cumsum(np.random.default_rng(0).normal(size=100)), plan()
    small, large = (normal_equations(own, learned(own, y + level, np.zeros((100, 1))), 0) for level in (0.0, 2.0**24))
    np.testing.assert_allclose(large[0], small[0], rtol=1e-6, atol=1e-6)


def test_a_plan_is_pickled_by_its_settings() -> None:
    own = plan(1)
    assert pickle.loads(pickle.dumps(own)).size == own.size
    assert own.tier_places(1)[-1][:2] == (9, 6)
