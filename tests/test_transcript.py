import subprocess
import sys
from pathlib import Path


def test_the_page_shows_what_the_commands_print() -> None:
    script = Path(__file__).parents[1] / "scripts" / "transcript.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
