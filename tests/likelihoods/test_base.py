"""What every likelihood has: a choice by name, of the rule, and targets that are checked."""

from typing import Any

import numpy as np
import pytest

from onepass.activations import Activation, PaperSigmoid, Quadrature, as_activation
from onepass.likelihoods import Bernoulli, Gaussian, Likelihood, MomentMatch, as_likelihood
from onepass.likelihoods.base import encode_likelihood, likelihood_names, named


def test_defaults_follow_the_activation() -> None:
    def default(activation: Activation) -> str:
        return type(as_likelihood("auto", activation)).__name__

    assert [default(as_activation(name)) for name in ("sigmoid", "probit", "step")] == ["Bernoulli"] * 3
    assert default(PaperSigmoid()) == "Bernoulli"
    assert [default(as_activation(name)) for name in ("relu", "tanh", "hard_sigmoid")] == ["Gaussian"] * 3
    assert default(Quadrature(np.sin)) == "Gaussian"
    assert default(as_activation("exp")) == "Poisson"


def test_every_likelihood_is_found_by_its_name_and_encoded_as_it() -> None:
    for name in likelihood_names():
        assert named(name).name == name
        assert encode_likelihood(named(name)()) == name
    assert likelihood_names(lambda kind: kind.is_gaussian) == ("gaussian",)
    with pytest.raises(ValueError, match=r"observation must be .*'bernoulli'.*got 'gauss'"):
        named("gauss")


def test_a_likelihood_that_its_name_can_not_restore_is_not_encoded() -> None:
    class Mine(Gaussian):
        pass

    with pytest.raises(TypeError, match="not one that a file can name"):
        encode_likelihood(Mine())


def test_auto_is_the_exact_rule_where_there_is_one() -> None:
    assert Bernoulli().choose_update("auto", as_activation("sigmoid")) == "adf"
    assert Bernoulli().choose_update("auto", PaperSigmoid()) == "kalman"
    assert Bernoulli().choose_update("kalman", as_activation("sigmoid")) == "kalman"
    with pytest.raises(ValueError, match=r"no closed form for Gaussian targets around 'tanh'. Use update='kalman'"):
        Gaussian(0.1).choose_update("adf", as_activation("tanh"))
    with pytest.raises(ValueError, match="update must be"):
        Gaussian(0.1).choose_update("exact", as_activation("linear"))


class InPython(Likelihood):
    """Readings with noise 1, matched in Python."""

    def moment_match(self, activation: Any, mean: Any, var: Any, y: Any, update: str = "auto") -> MomentMatch:
        total = var + 1.0
        log_z = -0.5 * (np.log(2.0 * np.pi * total) + (y - mean) ** 2 / total)
        return MomentMatch(log_z, (y - mean) / total, 1.0 / total, 1.0 / total)


def test_what_a_likelihood_in_python_lacks_is_named() -> None:
    linear = as_activation("linear")
    assert InPython().choose_update("auto", linear) == "adf"
    with pytest.raises(ValueError, match="not available for InPython"):
        InPython().choose_update("kalman", linear)
    with pytest.raises(TypeError, match="Likelihood needs a method moment_match"):
        Likelihood().choose_update("auto", linear)
    with pytest.raises(NotImplementedError, match=r"InPython needs a method noise_var\(output\)"):
        InPython().noise_var(linear.moments(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="log_outlier_density"):
        InPython().log_outlier_density(1.0)
    InPython().check_outliers(0.0)
    with pytest.raises(ValueError, match=r"outliers=0.1 needs a method log_outlier_density"):
        InPython().check_outliers(0.1)


def test_compiled_loops_match_as_python_does() -> None:
    mean, var, y = np.array([0.3, -1.0]), np.array([2.0, 0.5]), np.array([1.0, 4.0])
    zeros = np.zeros(2)
    found = InPython().compiled(as_activation("linear"), "adf").match_rows(mean, var, y, zeros)
    np.testing.assert_allclose(found, InPython().moment_match(None, mean, var, y), rtol=1e-12)
    np.testing.assert_allclose(found, Gaussian(1.0).moment_match(as_activation("linear"), mean, var, y), rtol=1e-12)


def test_noise_is_given_once_and_only_where_there_is_any() -> None:
    assert Gaussian().choose_noise("learn") == "learn"
    assert Gaussian(0.3).choose_noise(None) == 0.3
    with pytest.raises(ValueError, match="noise can be given only once"):
        Gaussian(0.3).choose_noise(0.1)
    with pytest.raises(ValueError, match=r"only with observation='gaussian'.*noise=0.1"):
        Bernoulli().choose_noise(0.1)
    with pytest.raises(ValueError, match=r"only with a known noise: use Gaussian\(noise\)"):
        Gaussian().moment_match(as_activation("linear"), 0.0, 1.0, 1.0)


def test_targets_have_a_column_per_output() -> None:
    two = Gaussian().outputs(2)
    np.testing.assert_array_equal(Gaussian().as_targets([[1, np.nan]], 1, False, two), [[1.0, np.nan]])
    np.testing.assert_array_equal(Gaussian().as_targets([1, 2], 1, True, two), [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"y must have shape \(3, 2\), got shape \(3,\)"):
        Gaussian().as_targets([1, 2, 3], 3, False, two)
    one = Gaussian().outputs(1)
    np.testing.assert_array_equal(Gaussian().as_targets(3.0, 1, True, one), [[3.0]])
    with pytest.raises(ValueError, match=r"\(2,\) or \(2, 1\), got shape \(1, 2\)"):
        Gaussian().as_targets([[1, 2]], 2, False, one)
