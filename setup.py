"""How the compiled modules of `onepass.engine` are built; everything else stands in pyproject.toml."""

import os
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))
from build_backend import has_compiler  # noqa: E402 (it stands beside this file)

# Nobody reads errno or floating-point traps. Not -ffast-math: NaN and infinity keep their meaning, since rows that
# overflow are found by them.
FLAGS = ["-O3", "-fno-math-errno", "-fno-trapping-math"]
# In loops over rows and weights sums may be reordered and fused, so that they vectorise. Formulas are written in the
# order in which nothing cancels, and stay in it.
LOOPS = ["-fno-signed-zeros", "-fassociative-math", "-freciprocal-math", "-ffp-contract=fast"]
FORMULAS = {"special", "moments", "matches", "vector_matches", "step"}
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "nonecheck": False,
    "infer_types": True,
    "freethreading_compatible": True,
}


class BuildExtensions(build_ext):
    """Build with the machine's C compiler, or with the one in the package ``ziglang`` where there is none."""

    def build_extensions(self) -> None:
        """Choose compiler and flags, then build."""
        if not has_compiler():
            if find_spec("ziglang") is None:
                raise SystemExit("onepass needs a C compiler to be built: install one, or `pip install ziglang`")
            compiler: Any = self.compiler
            command = [sys.executable, "-m", "ziglang", "cc"]
            compiler.set_executables(
                compiler_so=[*command, "-fPIC", "-fno-sanitize=all", "-DNDEBUG"], linker_so=[*command, "-shared"]
            )
        windows = self.compiler.compiler_type == "msvc"
        for extension in self.extensions:
            formulas = extension.name.rpartition(".")[2] in FORMULAS
            extension.extra_compile_args = ["/O2"] if windows else [*FLAGS, *([] if formulas else LOOPS)]
        super().build_extensions()


def extensions() -> list[Any]:
    """One extension for each Cython source, which is known by importing ``cython``."""
    sources = sorted(Path("src/onepass/engine").glob("*.py"))
    compiled = [source for source in sources if "\nimport cython\n" in source.read_text(encoding="utf-8")]
    modules = [
        Extension(".".join(source.with_suffix("").parts[1:]), [source.as_posix()], libraries=_math()) for source in compiled
    ]
    return list(cythonize(modules, compiler_directives=DIRECTIVES, build_dir="build/cython", include_path=["src"]))


def _math() -> list[str]:
    return [] if os.name == "nt" or sysconfig.get_platform().startswith("macosx") else ["m"]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
