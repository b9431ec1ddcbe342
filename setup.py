"""How the compiled modules of `onepass.engine` are built; everything else is in pyproject.toml.

Every Python source in that package that imports ``cython`` becomes an extension module. Modules with loops over rows
and weights are built a second time, for processors with AVX2, into ``x86_64_v3/``: the package looks there first where
the processor has it, so that one wheel runs on every x86-64 and newer ones get a third more speed from 60 features on.
Their types for Python are written with every build: see ``scripts/write_stubs.py``.
"""

import os
import platform
import re
import shutil
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))
from build_backend import has_compiler, project_description
from scripts.write_stubs import write_stubs

# Nobody reads errno or floating-point traps. Not -ffast-math: NaN and infinity keep their meaning, since rows that
# overflow are found by them. Cython writes conversions of structs whether or not a module uses them.
FLAGS = ["-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-unused-function"]
# Sums in loops over rows and weights may be reordered and fused, so that they vectorise. Only in the modules listed:
# formulas are written in the order in which nothing cancels, and must stay in it.
REORDERED = ["-O3", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math", "-ffp-contract=fast"]
LOOPS = {
    "blocks",
    "fleet",
    "forecasting",
    "gumbel",
    "lag_rollout",
    "lag_sums",
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

    user_options: ClassVar = [*build_ext.user_options, ("portable", None, f"leave out {NEWER}/, which is faster only")]
    boolean_options: ClassVar = [*build_ext.boolean_options, "portable"]
    n_built = 0

    def initialize_options(self) -> None:
        """Build for newer processors as well, unless asked not to."""
        super().initialize_options()
        self.portable = False

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
        if self.portable:
            self.extensions = [extension for extension in self.extensions if NEWER not in extension.name]
        self.extensions.sort(key=_size, reverse=True)  # the longest first, so that no processor waits at the end
        self.parallel = self.parallel or os.cpu_count()
        windows = self.compiler.compiler_type == "msvc"
        for extension in self.extensions:
            if windows:
                extension.extra_compile_args = ["/O2", *(["/arch:AVX2"] if NEWER in extension.name else [])]
            else:
                target = [newer if NEWER in extension.name else portable] if IS_X86_64 else []
                extension.extra_compile_args = [*_flags(extension), *target]
        super().build_extensions()

    def build_extension(self, extension: Any) -> None:
        """Build one, and count it on the terminal."""
        super().build_extension(extension)
        self.n_built += 1
        if sys.stderr.isatty():
            end = "\n" if self.n_built == len(self.extensions) else ""
            print(f"\rCompiled {self.n_built} of {len(self.extensions)} modules", end=end, file=sys.stderr, flush=True)

    def copy_extensions_to_source(self) -> None:
        """Make the folder that holds no source first."""
        Path("src/onepass/engine", NEWER).mkdir(exist_ok=True)
        super().copy_extensions_to_source()


def _flags(extension: Any) -> list[str]:
    return [*FLAGS, *(REORDERED if _name(extension) in LOOPS else ["-O2"])]


def _size(extension: Any) -> int:
    """Bytes of C: the time to compile them grows with it."""
    return sum(Path(source).stat().st_size for source in extension.sources)


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
    # On standard output Cython lists what it translates; warnings and errors come on standard error.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        built = list(
            cythonize(
                modules,
                nthreads=os.cpu_count() or 1,
                compiler_directives=DIRECTIVES,
                build_dir="build/cython",
                include_path=["src"],
                shared_utility_qualified_name=SHARED,
            )
        )
    if not IS_X86_64:
        return built
    return built + [_for_newer(extension, libraries) for extension in built if _name(extension) in LOOPS]


def _version() -> str:
    source = Path("src/onepass/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    assert found is not None
    return found[1]


def _for_newer(extension: Any, libraries: list[str]) -> Any:
    """The same C code once more, in a file of its own, since object files are named after their sources."""
    (source,) = extension.sources
    copy = Path("build/cython") / NEWER / Path(source).name
    copy.parent.mkdir(parents=True, exist_ok=True)
    if not copy.exists() or copy.read_bytes() != Path(source).read_bytes():
        shutil.copyfile(source, copy)
    return Extension(f"onepass.engine.{NEWER}.{_name(extension)}", [copy.as_posix()], libraries=libraries)


if __name__ == "__main__":  # Cython's processes import this file again
    write_stubs()
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildExtensions},
        long_description=project_description(_version()),
        long_description_content_type="text/markdown",
    )
