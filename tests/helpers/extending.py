"""The pages of ``docs/how-to/extend``, followed: as code of a user's own, and as a change to a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onepass
from tests.helpers.markdown import ROOT, code_blocks

__all__ = ["EXTEND", "PackageCopy", "run_page"]

EXTEND = ROOT / "docs" / "how-to" / "extend"
_PACKAGE = Path(onepass.__file__).parent


def _blocks(page: str, language: str) -> list[str]:
    return code_blocks(EXTEND / f"{page}.md", language)


def run_page(page: str, **names: Any) -> dict[str, Any]:
    """Run the Python of a page, what it defines and how that is used, and return all names."""
    for block in _blocks(page, "python"):
        exec(block, names)
    return names


class PackageCopy:
    """A copy of the package in which the steps of a page have been taken that make an addition built in."""

    def __init__(self, folder: Path, page: str, module: str | None) -> None:
        self.folder = folder
        shutil.copytree(_PACKAGE, folder / "onepass", ignore=shutil.ignore_patterns("__pycache__"))
        if module is not None:
            self._write(module, _blocks(page, "python")[0])
        for diff in _blocks(page, "diff"):
            header, _, hunks = diff.partition("\n")
            self._change(header.removeprefix("+++ src/onepass/"), hunks.split("@@\n"))

    def _write(self, name: str, text: str) -> None:
        (self.folder / "onepass" / name).write_text(text, encoding="utf-8")

    def _change(self, name: str, hunks: list[str]) -> None:
        text = (self.folder / "onepass" / name).read_text(encoding="utf-8")
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old, new = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
            assert text.count(old) == 1, f"{name} must have these lines once:\n{old}"
            text = text.replace(old, new)
        self._write(name, text)

    @property
    def touched(self) -> set[str]:
        """The files that are new or differ from those of the package."""
        files = {path.relative_to(self.folder / "onepass") for path in self.folder.rglob("*") if path.is_file()}
        return {name.as_posix() for name in files if "__pycache__" not in name.parts and not self._is_as_before(name)}

    def _is_as_before(self, name: Path) -> bool:
        before = _PACKAGE / name
        return before.exists() and before.read_bytes() == (self.folder / "onepass" / name).read_bytes()

    def run(self, program: str) -> str:
        """What a program prints that imports the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()
