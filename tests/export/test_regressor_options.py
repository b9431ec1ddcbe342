"""Options of regressors that a file without this library would get wrong."""

import pytest

from onepass import BayesianPerceptronRegressor
from onepass.export.models import estimator_program
from onepass.export.programs import NotExportableError

ROWS, Y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]


def test_transformed_targets_are_refused() -> None:
    with pytest.raises(NotExportableError, match="target_transform"):
        estimator_program(BayesianPerceptronRegressor(target_transform="log").fit(ROWS, Y), "model")


def test_limits_that_are_tracked_are_left_out() -> None:
    plain, tracked = (
        estimator_program(BayesianPerceptronRegressor(noise=0.1, intervals=kind).fit(ROWS, Y), "model").limits
        for kind in ("model", "adaptive")
    )
    assert plain is not None
    assert tracked is None
