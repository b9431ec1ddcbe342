"""The exponential, whose moments are those of the log-normal distribution."""

import numpy as np

from onepass.activations import Exponential, as_activation
from tests.helpers import quadrature


def test_exp_moments_are_log_normal() -> None:
    for mean, var in [(-3.0, 0.1), (0.0, 1.0), (2.0, 2.0)]:
        np.testing.assert_allclose(
            as_activation("exp").moments(mean, var), quadrature.moments(np.exp, mean, var), rtol=1e-9
        )


def test_exponents_are_cut_where_numbers_would_be_infinite() -> None:
    assert Exponential()(1e6) == np.exp(300.0)
    hopeless = Exponential().moments(0.0, 1e6)
    assert np.isfinite(hopeless).all()
    assert hopeless.mean > 1e100
