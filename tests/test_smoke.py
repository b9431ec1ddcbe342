"""The snippets of README.md that are no doctests, run as `make wheel` runs them on the installed wheel."""

import subprocess
import sys
from pathlib import Path

SMOKE = Path(__file__).parents[1] / "scripts" / "smoke.py"


def test_the_commands_and_the_service_of_the_readme_work() -> None:
    done = subprocess.run([sys.executable, str(SMOKE), "readme"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("ok onepass")]
    assert ran == ["fit", "predict", "serve"]
