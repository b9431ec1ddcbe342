"""How the compiled modules of `onepass.engine` are built; everything else stands in pyproject.toml.

Every Python source in that package that imports ``cython`` becomes an extension module. Modules with loops over rows
and weights are built a second time, for processors with AVX2, into ``x86_64_v3/``: the package looks there first where
the processor has it, so that one wheel runs on every x86-64 and newer ones get a third more speed from 60 features on.
Their types for Python are written with every build: see ``scripts/write_stubs.py``.
"""

import os
import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))
from build_backend import has_compiler
from scripts.write_stubs import write_stubs

# Nobody reads errno or floating-point traps. Not -ffast-math: NaN and infinity keep their meaning, since rows that
# overflow are found by them.
FLAGS = ["-g0", "-fno-math-errno", "-fno-trapping-math"]
# Sums in loops over rows and weights may be reordered and fused, so that they vectorise. Only in the modules listed:
# formulas are written in the order in which nothing cancels, and must stay in it.
REORDERED = ["-O3", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math", "-ffp-contract=fast"]
LOOPS = {
    "blocks",
    "fleet",
    "gumbel",
    "network",
    "network_batch",
    "network_diagonal",
    "network_layers",
    "network_low_rank",
    "rows",
    "separate_outputs",
}
NEWER = "x86_64_v3"
IS_X86_64 = platform.machine().lower() in ("x86_64", "amd64")
SHARED = "onepass.engine._cyutility"  # what Cython's memoryviews need, once for all modules
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "nonecheck": False,
    "infer_types": True,
}


class BuildExtensions(build_ext):
    """Build with the machine's C compiler, or with the one in the package ``ziglang`` where there is none."""

    def build_extensions(self) -> None:
        """Choose compiler and flags, then build."""
        portable, newer = "-march=x86-64", "-march=x86-64-v3"
        if not has_compiler():
            portable, newer = "-mcpu=baseline", "-mcpu=x86_64_v3"  # its own words; without one it takes this machine's
            if find_spec("ziglang") is None:
                raise SystemExit("onepass needs a C compiler to be built: install one, or `pip install ziglang`")
            compiler: Any = self.compiler
            command = [sys.executable, "-m", "ziglang", "cc"]
            compiler.set_executables(
                compiler_so=[*command, "-fPIC", "-fno-sanitize=all", "-DNDEBUG"], linker_so=[*command, "-shared"]
            )
        self.parallel = self.parallel or os.cpu_count()
        windows = self.compiler.compiler_type == "msvc"
        for extension in self.extensions:
            if windows:
                extension.extra_compile_args = ["/O2", *(["/arch:AVX2"] if NEWER in extension.name else [])]
            else:
                target = [newer if NEWER in extension.name else portable] if IS_X86_64 else []
                extension.extra_compile_args = [*_flags(extension), *target]
        super().build_extensions()

    def copy_extensions_to_source(self) -> None:
        """Make the folder that holds no source first."""
        Path("src/onepass/engine", NEWER).mkdir(exist_ok=True)
        super().copy_extensions_to_source()


def _flags(extension: Any) -> list[str]:
    return [*FLAGS, *(REORDERED if _name(extension) in LOOPS else ["-O2"])]


def _name(extension: Any) -> str:
    return str(extension.name).rpartition(".")[2]


def extensions() -> list[Any]:
    """One extension for each Cython source, and a second one for newer processors if it is one of the `LOOPS`."""
    sources = sorted(Path("src/onepass/engine").glob("*.py"))
    compiled = [source for source in sources if "\nimport cython\n" in source.read_text(encoding="utf-8")]
    libraries = [] if sys.platform in ("win32", "darwin") else ["m"]
    modules = [Extension(SHARED, ["src/onepass/engine/_cyutility.c"])]
    modules += [
        Extension(".".join(source.with_suffix("").parts[1:]), [source.as_posix()], libraries=libraries)
        for source in compiled
    ]
    built = list(
        cythonize(
            modules,
            compiler_directives=DIRECTIVES,
            build_dir="build/cython",
            include_path=["src"],
            shared_utility_qualified_name=SHARED,
        )
    )
    if not IS_X86_64:
        return built
    return built + [_for_newer(extension, libraries) for extension in built if _name(extension) in LOOPS]


def _for_newer(extension: Any, libraries: list[str]) -> Any:
    """The same C code once more, in a file of its own, since object files are named after their sources."""
    (source,) = extension.sources
    copy = Path("build/cython") / NEWER / Path(source).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.exists() or copy.read_bytes() != Path(source).read_bytes():
        shutil.copyfile(source, copy)
    return Extension(f"onepass.engine.{NEWER}.{_name(extension)}", [copy.as_posix()], libraries=libraries)


write_stubs()
setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
