"""Learning on a device against the library: the same step for thousands of rows, in C, under the sanitiser."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.export import to_c
from tests.helpers.exported import compiled, run_rows

N_ROWS = 20_000
_LEARN = """
#include <stdio.h>
#include "m.h"
int main(void) {
    double row[M_INPUTS + 1];
    struct m_model model = m_learned;
    m_real x[M_INPUTS], mean[2], std[2];
    while (fread(row, sizeof(double), M_INPUTS + 1, stdin) == M_INPUTS + 1) {
        for (int i = 0; i < M_INPUTS; i++) { x[i] = (m_real)row[i]; }
        (void)m_predict_with(&model, x, mean, std);
        if (!m_learn(&model, x, (m_real)row[M_INPUTS])) { return 1; }
        const double out[2] = {mean[M_OUTPUTS - 1], std[M_OUTPUTS - 1]};
        fwrite(out, sizeof(double), 2, stdout);
    }
    (void)m_predict(x, mean, std);
    return 0;
}
"""
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N_ROWS, 6))
A = X @ RNG.normal(size=6)
NOISY = A + 0.3 * RNG.normal(size=N_ROWS)


@pytest.mark.parametrize(
    ("activation", "options", "y"),
    [
        ("linear", {"noise": 0.1}, NOISY),
        ("linear", {"noise": "learn"}, NOISY),
        ("linear", {"noise": "learn", "noise_window": 300}, NOISY),
        ("linear", {"noise": 0.1, "bias": False}, NOISY),
        ("sigmoid", {}, RNG.random(N_ROWS) < 1.0 / (1.0 + np.exp(-A))),
        ("probit", {}, A + RNG.normal(size=N_ROWS) > 0.0),
        ("step", {}, A > 0.0),
    ],
)
@pytest.mark.parametrize("before", [0, 30])
def test_every_prediction_before_a_row_is_learned_is_that_of_the_library(
    activation: str, options: dict[str, Any], y: Any, before: int, tmp_path: Path
) -> None:
    n = 400 if activation == "step" else N_ROWS  # labels without noise soon leave nothing to be learned
    model = onepass.BayesianPerceptron(6, activation, **options)
    model.learn(X[:before], y[:before]) if before else None
    program = compiled(to_c(model, "m"), _LEARN, tmp_path)
    found = run_rows(program, np.column_stack([X[before:n], y[before:n]])).reshape(-1, 2)
    seen = (_with_fixed_noise(model) if activation == "linear" else model).predict_then_learn(X[before:n], y[before:n])
    std = np.sqrt(seen.var if activation == "linear" else seen.epistemic)
    assert (np.abs(found[:, 0] - seen.mean) / (np.abs(seen.mean) + std)).max() < 1e-12
    assert (np.abs(found[:, 1] - std) / std).max() < 2e-12


def _with_fixed_noise(model: onepass.BayesianPerceptron) -> onepass.BayesianPerceptron:
    """A perceptron with the same belief, whose noise stays what it is by now, as on a device."""
    return onepass.BayesianPerceptron(
        model.n_features, "linear", bias=bool(model.bias), noise=model.noise, mean=model.mean, cov=model.cov
    )


def test_an_estimator_learns_targets_in_their_own_units(tmp_path: Path) -> None:
    y = 40.0 * NOISY + 500.0
    model = onepass.BayesianPerceptronRegressor().fit(3.0 * X[:200], y[:200])
    program = compiled(to_c(model, "m"), _LEARN, tmp_path)
    rows = slice(200, 3000)
    found = run_rows(program, np.column_stack([3.0 * X[rows], y[rows]])).reshape(-1, 2)
    inner = _with_fixed_noise(model._learner.state.mixtures[0].members[0])
    targets = model._learner.state.targets
    seen = inner.predict_then_learn(model._learner.state.inputs(3.0 * X[rows]), targets(y[rows, None])[:, 0])
    scale = targets.scale[0]
    np.testing.assert_allclose(found[:, 0], scale * seen.mean + targets.centre[0], rtol=1e-11)
    np.testing.assert_allclose(found[:, 1], scale * seen.std, rtol=1e-12)


def test_a_device_may_store_single_precision(tmp_path: Path) -> None:
    model = onepass.BayesianPerceptron(6, "linear", noise=0.1)
    program = compiled(to_c(model, "m"), _LEARN, tmp_path, "-DM_REAL=float")
    found = run_rows(program, np.column_stack([X, NOISY])).reshape(-1, 2)
    seen = model.predict_then_learn(X, NOISY)
    assert np.abs(found[:, 0] - seen.mean).max() < 1e-3
    np.testing.assert_allclose(found[:, 1], seen.std, rtol=1e-3)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (onepass.BayesianPerceptron(2, "relu", noise=0.1), "linear outputs"),
        (onepass.BayesianPerceptron(2, "linear", noise=0.1, forgetting=0.99), "forgetting"),
        (onepass.BayesianPerceptron(2, "linear", noise=0.1, covariance="diagonal"), "diagonal"),
    ],
)
def test_a_header_without_learning_says_why(model: Any, reason: str) -> None:
    text = to_c(model, "m")
    assert "int m_learn(" not in text
    assert f"There is no m_learn: {reason}" in text or reason in text
