"""The build backend: setuptools, a C compiler from PyPI where the machine has none, and the description for PyPI.

The compiled modules need a C compiler once, when onepass is built. Most machines have one; where there is none, the
requirements of the build grow by ``ziglang``, which carries a complete compiler (large, so only then).

README.md links to other files of the repository by their paths, which mean nothing on PyPI: a package's description has
addresses in their place.
"""

import os
import re
import shlex
import shutil
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "has_compiler",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
    "project_description",
]


def has_compiler() -> bool:
    """Whether the C compiler that this Python would call is installed."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    return os.name == "nt" or shutil.which(command[0]) is not None  # on Windows setuptools finds its own


def project_description(version: str) -> str:
    """README.md with links to the files of a version at the address of the sources in pyproject.toml."""
    root = Path(__file__).parent
    source = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["image"] else "blob"  # a page around the file, or the file itself
        return f"{link['image']}[{link['text']}]({source}/{kind}/v{version}/{link['path']})"

    pattern = r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<path>[^)\s]+)\)"
    return re.sub(pattern, absolute, (root / "README.md").read_text(encoding="utf-8"))


def _with_compiler(requirements: list[str]) -> list[str]:
    return requirements if has_compiler() else [*requirements, "ziglang"]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What building a wheel needs."""
    return _with_compiler(build_meta.get_requires_for_build_wheel(config_settings))


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """What an editable installation needs."""
    return _with_compiler(build_meta.get_requires_for_build_editable(config_settings))
