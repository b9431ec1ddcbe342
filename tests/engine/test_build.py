"""How the engine is compiled."""

import platform
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def test_sums_may_be_reordered_in_the_listed_modules_only(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("setuptools.setup", given.update)
    monkeypatch.setattr("Cython.Build.cythonize", lambda modules, **_: modules)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")  # without the second build
    found = runpy.run_path("setup.py")
    flags = {extension.name.rpartition(".")[2]: found["_flags"](extension) for extension in given["ext_modules"]}
    reordered = {name for name, own in flags.items() if "-fassociative-math" in own or "-O3" in own}
    assert reordered == found["LOOPS"]
    assert {"matches", "moments", "noise", "special", "step"} <= set(flags) - reordered
    assert not any("-ffast-math" in own for own in flags.values())
