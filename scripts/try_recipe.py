"""Run the script and the tests of conda/recipe.yaml in a virtual environment, with packages from PyPI.

    python scripts/try_recipe.py dist/onepass_learn-X.Y.Z.tar.gz -c build/constraints.txt

``make wheel`` does so. It shows that the source archive is complete, that the requirements of the recipe are enough,
and that its script installs what its tests ask for; rattler-build itself is not needed. Options go to pip.
"""

import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

RECIPE = Path(__file__).parents[1] / "conda" / "recipe.yaml"


def requirements(recipe: dict[str, Any]) -> list[str]:
    """What a build and a run need, as pip takes it; pip and Python are there."""
    needed = recipe["requirements"]
    return sorted({one.replace(" ", "") for one in (*needed["host"], *needed["run"])} - {"pip", "python"})


def script(recipe: dict[str, Any], python: Path) -> list[str]:
    return [str(python) if word == "PYTHON" else word for word in shlex.split(_filled(recipe["build"]["script"]))]


def checks(recipe: dict[str, Any], python: Path) -> Iterator[list[str]]:
    """The recipe's tests as commands."""
    for test in recipe["tests"]:
        for name in test.get("python", {}).get("imports", ()):
            yield [str(python), "-c", f"import {name}"]
        for line in test.get("script", ()):
            command, *rest = shlex.split(line)
            yield [str(python.with_name(command)), *rest]


def _filled(text: str) -> str:
    return text.replace("${{ PYTHON }}", "PYTHON")


def main(archive: Path, *options: str) -> None:
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(archive) as packed:
            packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
            packed.extractall(folder)
        (source,) = folder.iterdir()
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        absolute = [str(Path(one).resolve()) if Path(one).exists() else one for one in options]
        for command in (
            [str(python), "-m", "pip", "install", "--quiet", *absolute, *requirements(recipe)],
            script(recipe, python),
            *checks(recipe, python),
        ):
            print("+", " ".join(command[1:]), flush=True)
            subprocess.run(command, cwd=source if "pip" in command else folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
