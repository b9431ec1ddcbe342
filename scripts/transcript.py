"""Record the session shown in docs/command-line.md again, by running its commands.

    python scripts/transcript.py          # run them and write the page
    python scripts/transcript.py --check  # run them and fail if the page differs

Times and rates depend on the machine, so they are replaced by 0.0 s; numbers in files are cut after six decimals, since
further ones may differ between machines.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from onepass.cli.main import main as onepass

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
_BEGIN, _END = "<!-- transcript -->\n", "<!-- end of transcript -->\n"
COMMANDS = (
    "head -3 trips.csv",
    "onepass fit trips.csv --target price --model price.onepass --rejects bad.csv",
    "echo $?",
    "cat bad.csv",
    "onepass learn price.onepass tonight.csv",
    "onepass predict price.onepass new.csv --keep km --out predictions.csv",
    "cat predictions.csv",
    "onepass evaluate trips.csv --target price",
    "onepass show price.onepass --weights 4",
    "onepass fit sensor.csv --target level --outliers 0.05 --drift auto --model level.onepass --alarms alarms.csv",
    "cat alarms.csv",
    "onepass evaluate sensor.csv --target level --outliers 0.05",
)


def write_trips(path: Path, n: int, seed: int) -> None:
    """Rides and their price."""
    rng = np.random.default_rng(seed)
    lines = ["km,car,day,vip,wait,price"]
    for _ in range(n):
        km, car, vip = rng.gamma(2.0, 4.0), rng.choice(["bike", "sedan", "van"]), rng.random() < 0.2
        day = f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
        wait = "" if rng.random() < 0.1 else f"{rng.exponential(5.0):.1f}"
        price = 3.0 + 1.8 * km + {"bike": -2.0, "sedan": 0.0, "van": 5.0}[str(car)] + 4.0 * vip + rng.normal(0.0, 2.0)
        lines.append(f"{km:.2f},{car},{day},{str(bool(vip)).lower()},{wait},{price:.2f}")
    path.write_text("\n".join(lines) + "\n")


def write_sensor(path: Path, n: int, seed: int) -> None:
    """A level that two readings predict, with three spikes and a jump."""
    rng = np.random.default_rng(seed)
    lines = ["flow,temperature,level"]
    for i in range(n):
        flow, temperature = rng.normal(5.0, 2.0), rng.normal(20.0, 3.0)
        level = 3.0 * flow - 0.5 * temperature + (12.0 if i >= 2 * n // 3 else 0.0) + rng.normal(0.0, 0.5)
        level += 1000.0 if i in (n // 10, n // 2, 9 * n // 10) else 0.0
        lines.append(f"{flow:.2f},{temperature:.1f},{level:.2f}")
    path.write_text("\n".join(lines) + "\n")


def transcript() -> str:
    """Run all commands in a temporary folder; return them with their output."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, n, seed in (("trips.csv", 5000, 0), ("tonight.csv", 1000, 1), ("new.csv", 3, 2)):
                write_trips(Path(name), n, seed)
            write_sensor(Path("sensor.csv"), 3000, 3)
            lines = Path("trips.csv").read_text().splitlines()
            lines[700], lines[1300] = lines[700].replace(lines[700].split(",")[0], "far", 1), "oops"
            Path("trips.csv").write_text("\n".join(lines) + "\n")
            return "\n".join(_lines())
        finally:
            os.chdir(before)


def _lines() -> Iterator[str]:
    code = 0
    for command in COMMANDS:
        yield f"$ {command}"
        program, *arguments = shlex.split(command)
        if program == "onepass":
            shown, code = _run(arguments)
            yield from shown.splitlines()
        elif program == "echo":
            yield str(code)
        else:
            lines = Path(arguments[-1]).read_text().splitlines()
            lines = [re.sub(r"(\d\.\d{6})\d+", r"\1", line) for line in lines]
            yield from lines[:3] if program == "head" else lines
        yield ""


def _run(arguments: list[str]) -> tuple[str, int]:
    shown = io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            onepass(arguments)
        except SystemExit as end:
            code = end.code
    text = re.sub(r" in [\d.,]+ s \([\d,]+ rows/s\)", " in 0.0 s", shown.getvalue())
    return re.sub(r"(?m)^[\d,]+ rows, .* left\n", "", text), int(str(code or 0))


def page() -> str:
    """The page with the session as the commands print it now."""
    before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
    indented = "\n".join(f"    {line}".rstrip() for line in transcript().rstrip().splitlines())
    return f"{before}{_BEGIN}\n{indented}\n\n{_END}{rest.split(_END)[1]}"


def main() -> None:
    """Write or check the page."""
    found = page()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if found == PAGE.read_text(encoding="utf-8") else f"{PAGE.name} is out of date: run {sys.argv[0]}")
    PAGE.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
