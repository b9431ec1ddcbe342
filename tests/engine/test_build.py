"""How the engine is compiled, and what type checkers are told of it."""

import ast
import importlib
import platform
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STUBS = sorted((ROOT / "src/onepass/engine").glob("*.pyi"))


def test_sums_may_be_reordered_in_the_listed_modules_only(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("setuptools.setup", given.update)
    monkeypatch.setattr("Cython.Build.cythonize", lambda modules, **_: modules)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")  # without the second build
    found = runpy.run_path("setup.py", run_name="__main__")
    flags = {extension.name.rpartition(".")[2]: found["_flags"](extension) for extension in given["ext_modules"]}
    reordered = {name for name, own in flags.items() if "-fassociative-math" in own or "-O3" in own}
    assert reordered == found["LOOPS"]
    assert {"matches", "moments", "noise", "special", "step"} <= set(flags) - reordered
    assert not any("-ffast-math" in own for own in flags.values())


HEADER = """
from onepass.engine.outliers cimport Trust

cdef class Belief(Base):
    cdef readonly double scale, kept  # of it
    cdef public Trust trust
    cdef double[::1] hidden
    cdef void step(self, double score) noexcept nogil
    cpdef object variances(self, const double[:, ::1] rows, Py_ssize_t n=*)

cpdef enum:
    AT_MEAN = 0

cpdef (double, bint) look(Belief belief, const Py_ssize_t[::1] order)
cdef double _dot(const double* x) noexcept nogil
"""
SOURCE = """
START = 2.0 / 9.0

class Belief(Base):
    def __init__(self, scale, trust=None):
        self.scale = scale

    def step(self, score):
        self.scale = score

    def variances(self, rows, n=0) -> "FloatArray":
        return rows

def look(belief, order):
    return 1.0, True

def _dot(x):
    return x[0]
"""


def test_types_for_python_come_from_the_header_and_the_source() -> None:
    found = runpy.run_path(str(ROOT / "scripts/write_stubs.py"))
    declared = found["read_declarations"](HEADER)
    stub = found["write_stub"](SOURCE, declared, declared.classes, {"Trust": "onepass.engine.outliers"})
    assert stub.splitlines() == [
        "from typing import Any",
        "from onepass._typing import FloatArray",
        "from numpy.typing import NDArray",
        "from onepass.engine.outliers import Trust",
        "",
        "AT_MEAN: int",
        "START: float",
        "class Belief(Base):",
        "    scale: float",
        "    kept: float",
        "    trust: Trust",
        "    def __init__(self, scale: float, trust: Trust | None = ...) -> None: ...",
        "    def variances(self, rows: FloatArray, n: int = ...) -> FloatArray: ...",
        "    ...",
        "def look(belief: Belief, order: NDArray[Any]) -> tuple[float, bool]: ...",
    ]


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)
def test_what_type_checkers_are_told_is_what_the_compiled_module_has(stub: Path) -> None:
    module = importlib.import_module(f"onepass.engine.{stub.stem}")
    told = ast.parse(stub.read_text(encoding="utf-8")).body
    for node in told:
        if isinstance(node, ast.ClassDef):
            methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            assert methods <= set(dir(getattr(module, node.name))), node.name
        elif isinstance(node, ast.FunctionDef):
            assert hasattr(module, node.name)
        elif isinstance(node, ast.AnnAssign):
            assert hasattr(module, ast.unparse(node.target))
    named = {node.name for node in told if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    public = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    assert {name for name in public if not name.startswith("_")} <= named
