"""How long a new user waits: the first call of everything in a process of its own, whole commands, and installing.

    python -m benchmarks.start_up [--footprints]

Imports are timed apart from the call: ``from onepass import ...`` loads what a model needs, and the first ``learn``
must not compile or load anything that can be noticed. Last comes a table of what onepass, River and scikit-learn each
ask for: processor time of the import and of the import that a first model needs, the size of the wheel, and the
packages that are installed with it; ``--footprints`` measures that alone and writes it to docs/evidence/speed.md.
Wheels are fetched by pip, that of onepass is taken from ``dist/``, where ``make wheel`` puts it; what is not at hand is
left out.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from statistics import median

import numpy as np
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.timing import Measurement

__all__ = ["start_up"]

_ROUNDS = 5
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "speed.md"
_BEGIN, _END = "<!-- footprints -->\n", "<!-- end of footprints -->\n"
_FIRST_CALLS = {
    "perceptron": ("BayesianPerceptron", "BayesianPerceptron(5).learn(X, y)"),
    "network": ("BayesianNetwork", "BayesianNetwork(5, (20,)).learn(X, y)"),
    "fleet": ("PerceptronFleet", "PerceptronFleet(5).learn(X, y, keys=list('ab') * 50)"),
}
_TIMED = """
import time, numpy as np
X = np.random.default_rng(0).normal(size=(100, 5)); y = (X[:, 0] > 0).astype(float)
from onepass import {name}
start = time.perf_counter(); {call}; print(time.perf_counter() - start)
"""


def _seconds_inside(code: str) -> float:
    return median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(_ROUNDS)
    )


def _seconds_of(*command: str) -> float:
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *command], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return median(times)


def _processor_seconds_of(*command: str) -> float:
    """What a command asks of the processor, whatever else the machine does."""
    times = []
    for _ in range(_ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(times)


def start_up() -> Iterator[Measurement]:
    """First calls, imports and whole commands, in seconds."""
    for what, (name, call) in _FIRST_CALLS.items():
        seconds = _seconds_inside(_TIMED.format(name=name, call=call))
        yield Measurement(
            f"first learn of a process, {what}: seconds", 0.0, 0.0, seconds, "at most 0.05", seconds <= 0.05
        )
    bare = _seconds_of("-c", "pass")
    seconds = _seconds_of("-c", "import onepass") - bare
    yield Measurement("import onepass: seconds", 0.0, 0.0, seconds, "at most 0.1", seconds <= 0.1)
    library = _seconds_of("-c", "import sklearn.base, sklearn.utils.validation") - bare
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        rows = rng.normal(size=(1000, 4))
        lines = [",".join(f"{value:.4f}" for value in row) for row in rows]
        table.write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
        for words, options in (("perceptron", ()), ("--hidden 20", ("--hidden", "20"))):
            command = ("-m", "onepass", "fit", str(table), "--target", "y", "--model", str(table) + ".model", *options)
            seconds = _seconds_of(*command) - library
            name = f"onepass fit, 1,000 rows, {words}, less scikit-learn's import: s"
            yield Measurement(name, 0.0, 0.0, seconds, "at most 1", seconds <= 1.0)


_PEERS = {  # distribution, package, and the import that a first model needs
    "onepass-learn": ("onepass", "from onepass import BayesianPerceptronRegressor"),
    "river": ("river", "from river.linear_model import LinearRegression"),
    "scikit-learn": ("sklearn", "from sklearn.linear_model import SGDRegressor"),
}


def _needed(distribution: str) -> set[str]:
    """The packages that pip installs with one, without extras, as installed here."""
    found: set[str] = set()
    waiting = [distribution]
    while waiting:
        for line in requires(waiting.pop()) or ():
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                found.add(name)
                waiting.append(name)
    return found


def _wheel_megabytes(distribution: str) -> float | None:
    """Size of the wheel for this machine; None if there is none to be had."""
    built = sorted(Path("dist").glob(f"{distribution.replace('-', '_')}-*.whl"))
    with tempfile.TemporaryDirectory() as folder:
        if not built:
            command = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder]
            wanted = f"{distribution}=={version(distribution)}"
            subprocess.run([sys.executable, *command, wanted], capture_output=True, check=False)
            built = sorted(Path(folder).glob("*.whl"))
        return built[-1].stat().st_size / 1e6 if built else None


def footprints() -> Iterator[str]:
    """The table, row by row, in Markdown."""
    bare = _processor_seconds_of("-c", "pass")
    yield "| | version | import, ms | import of a first model, ms | wheel, MB | packages installed with it |"
    yield "|---|---|---|---|---|---|"
    for distribution, (package, first) in _PEERS.items():
        try:
            found = version(distribution)
        except PackageNotFoundError:
            continue
        milliseconds = [1e3 * (_processor_seconds_of("-c", code) - bare) for code in (f"import {package}", first)]
        size = _wheel_megabytes(distribution)
        cells = [f"{value:.0f}" for value in milliseconds]
        wheel = "not built" if size is None else f"{size:.1f}"
        yield f"| {distribution} | {found} | {' | '.join(cells)} | {wheel} | {len(_needed(distribution))} |"


def write_footprints() -> None:
    """Write the table to docs/evidence/speed.md."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    table = "\n".join(footprints())
    PAGE.write_text(f"{before}{_BEGIN}\n{table}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    if "--footprints" not in sys.argv:
        for measurement in start_up():
            print(measurement.line(), flush=True)
        print()
    write_footprints()
