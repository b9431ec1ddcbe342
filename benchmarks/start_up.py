"""How long a new user waits: the first call of everything in a process of its own, and whole commands.

    python -m benchmarks.start_up

Imports are timed apart from the call: ``from onepass import ...`` loads what a model needs, and the first ``learn``
must not compile or load anything that can be noticed.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.timing import Measurement

__all__ = ["start_up"]

_ROUNDS = 5
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


if __name__ == "__main__":
    for measurement in start_up():
        print(measurement.line(), flush=True)
