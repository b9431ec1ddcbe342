import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
DRAWINGS = sorted((FOLDER / "gallery").glob("*.py"))


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
