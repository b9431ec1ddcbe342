"""Tests mirror the source: a module's tests are in the file of its name."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MIRRORED = (
    "activations",
    "beliefs",
    "engine",
    "estimators",
    "integrations",
    "layers",
    "likelihoods",
    "merging",
    "models",
)
WITHOUT_LOGIC = {"beliefs/base.py", "beliefs/names.py"}  # protocols, and a table
# Of which Python can call nothing: they are tested by what they are made for.
CALLED_FROM_C = {
    "engine/gumbel.py": "engine/test_class_matches.py",
    "engine/small_matrices.py": "engine/test_vector_matches.py",
    "engine/special.py": "engine/test_moments.py",
}


def modules(package: str) -> set[str]:
    source = ROOT / "src" / "onepass"
    return {path.relative_to(source).as_posix() for path in (source / package).rglob("[!_]*.py")}


@pytest.mark.parametrize("package", MIRRORED)
def test_every_module_has_a_test_file_of_its_name(package: str) -> None:
    tests = ROOT / "tests"
    found = {module for module in modules(package) if (tests / module).with_name(f"test_{Path(module).name}").exists()}
    assert modules(package) - found == {
        module for module in WITHOUT_LOGIC | CALLED_FROM_C.keys() if module.startswith(package)
    }


def test_what_is_called_from_c_is_tested_somewhere() -> None:
    for test in CALLED_FROM_C.values():
        assert (ROOT / "tests" / test).exists(), test
