"""Files for running the service elsewhere: linted, and naming options that the command has."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onepass.cli.serve import serve

DEPLOY = Path(__file__).parents[1] / "deploy"
_HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
_ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(_HADOLINT is None, reason="hadolint is not installed")
def test_the_dockerfile_is_linted() -> None:
    assert _HADOLINT is not None
    done = subprocess.run([_HADOLINT, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(_ANALYZE is None, reason="systemd is not installed")
def test_the_unit_is_one_that_systemd_understands() -> None:
    assert _ANALYZE is not None
    done = subprocess.run(
        [_ANALYZE, "verify", str(DEPLOY / "onepass.service")], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if "onepass.service" in line]
    assert [line for line in complaints if "is not executable" not in line] == []


@pytest.mark.parametrize("name", ["Dockerfile", "onepass.service"])
def test_all_options_are_those_of_the_command(name: str) -> None:
    text = (DEPLOY / name).read_text()
    (line,) = [one for one in text.splitlines() if one.startswith(("ENTRYPOINT", "ExecStart"))]
    known = {option for parameter in serve.params for option in parameter.opts}
    used = set(re.findall(r"--[a-z-]+", line))
    assert used
    assert used <= known
