import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DRAWINGS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(example)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("example", DRAWINGS, ids=lambda path: path.stem)
def test_the_figure_of_the_gallery_is_drawn(example: Path) -> None:
    command = [sys.executable, "-W", "error", str(example)]
    off_screen = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=off_screen)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pyright") is None, reason="needs pyright")
def test_a_users_editor_understands_the_types() -> None:
    command = ["pyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
