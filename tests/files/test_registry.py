import subprocess
import sys

import pytest

import onepass
from onepass.files.registry import savable, savable_names


@pytest.mark.parametrize("name", savable_names())
def test_every_savable_class_is_found_by_its_name_and_can_be_saved(name: str) -> None:
    cls = savable(name)
    assert cls.__name__ == name
    prefix = "_" if name.startswith("Bayesian") and hasattr(cls, "fit") else ""  # scikit-learn's estimators
    assert callable(getattr(cls, f"{prefix}export_state", None))
    assert callable(getattr(cls, f"{prefix}from_state", None))


def test_an_unknown_name_is_no_savable_class() -> None:
    for name in ("dict", "Path", "", "onepass.models.perceptron"):
        with pytest.raises(KeyError):
            savable(name)


def test_names_by_module() -> None:
    assert savable_names("onepass.models.perceptron") == ("BayesianPerceptron",)
    assert "BayesianMLPClassifier" in savable_names("onepass.estimators")
    assert savable_names("onepass.nowhere") == ()


def test_public_models_are_the_savable_ones() -> None:
    models = [name for name in onepass.__all__ if name in savable_names()]
    assert "PerceptronFleet" in models
    assert all(getattr(onepass, name) is savable(name) for name in models)
    with pytest.raises(AttributeError, match="no attribute 'TabularModel'"):
        _ = onepass.TabularModel


def test_loading_a_perceptron_does_not_import_scikit_learn() -> None:
    asked = "from onepass.files.registry import savable; savable('BayesianPerceptron')"
    code = f"import sys; {asked}; print('sklearn' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
