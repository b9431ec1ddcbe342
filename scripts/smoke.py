"""Try an installed onepass: every model and every command once, and the snippets of README.md, from an empty folder.

``make wheel`` runs this with the wheel in an environment that has no compiler, twice: ``smoke.py core`` after
installing the wheel alone, ``smoke.py readme commands`` with the extras serve, client and plots.
"""

import doctest
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import onepass

README = Path(__file__).parents[1] / "README.md"
COMMAND = [sys.executable, "-m", "onepass"]


def models(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    numbers, labels = X @ [1.0, -2.0, 0.5] + rng.normal(0, 0.1, 200), (X[:, 0] > X[:, 1]).astype(float)
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    fitted: list[Any] = [
        onepass.BayesianPerceptron(3).learn(X, labels),
        onepass.BayesianPerceptron(3, "relu", noise="learn").learn(X, numbers),
        onepass.BayesianPerceptron(3, "exp").learn(X, np.floor(np.exp(X[:, 0]))),
        onepass.BayesianPerceptron(3, covariance="diagonal").learn(X, labels),
        onepass.BayesianNetwork(3, (10,)).learn(X, numbers),
        onepass.BayesianNetwork(3, (10,), 3, observation="categorical", covariance="diagonal").learn(X, classes),
        onepass.BayesianCommittee(3, (5,)).learn(X, numbers),
        onepass.PerceptronFleet(3).learn(X, labels, keys=["a", "b"] * 100),
        onepass.BayesianPerceptronClassifier().fit(X, classes),
        onepass.BayesianPerceptronRegressor().fit(X, numbers),
        onepass.BayesianMLPClassifier().fit(X, labels),
        onepass.BayesianMLPRegressor().fit(X, numbers),
    ]
    for model in fitted:
        onepass.save(model, folder / "model")
        again = onepass.load(folder / "model")
        given = {"keys": ["a", "new"]} if isinstance(model, onepass.PerceptronFleet) else {}
        expected, seen = model.predict(X[:2], **given), again.predict(X[:2], **given)
        np.testing.assert_array_equal(np.asarray(expected), np.asarray(seen))
        print("ok", type(model).__name__)


def readme_python(folder: Path) -> None:
    failed, tried = doctest.testfile(str(README), module_relative=False)
    if failed or not tried:
        sys.exit(f"{failed} of {tried} lines of Python in {README.name} failed")
    print("ok", tried, "lines of Python in", README.name)


def missing_command(folder: Path) -> None:
    """Check that the command, without its extra, says how to get it."""
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=False)
    if done.returncode != 1 or "pip install 'onepass-learn[cli]'" not in done.stderr:
        sys.exit(f"onepass without the extra cli: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print("ok", done.stderr.strip())


def readme_commands(folder: Path) -> None:
    write_trips(folder)
    for line in snippet("command line"):
        run(line, folder)


def other_commands(folder: Path) -> None:
    for line in (
        "onepass --version",
        "onepass learn price.onepass tonight.csv",
        "onepass evaluate trips.csv --target price --html how.html",
        "onepass show price.onepass",
        "onepass fit trips.csv --target price --hidden 10 --model network.onepass",
        "onepass show price.onepass --html what.html",
        "onepass completion bash",
        "onepass reproduce sigmoid --out reproduction",
    ):
        run(line, folder)


def write_trips(folder: Path) -> None:
    dice = random.Random(1)
    extra = {"compact": 0.0, "van": 6.0, "limousine": 15.0}
    for name, n in (("trips.csv", 500), ("tonight.csv", 50), ("new.csv", 5)):
        lines = ["km,car,vip,price"]
        for _ in range(n):
            km, car, vip = dice.uniform(1, 30), dice.choice(sorted(extra)), dice.random() < 0.2
            price = 4.0 + 1.8 * km + extra[car] + 3.0 * vip + dice.gauss(0, 2)
            lines.append(f"{km:.1f},{car},{str(vip).lower()},{price:.2f}")
        (folder / name).write_text("\n".join(lines) + "\n")


def snippet(name: str) -> list[str]:
    """Lines of the indented block that follows a mark in README.md."""
    found = re.search(rf"<!-- runs: {name} -->\n\n((?:    .*\n)+)", README.read_text(encoding="utf-8"))
    if found is None:
        sys.exit(f"{README.name} has no snippet that is marked as {name!r}")
    return [line.partition("#")[0].strip() for line in found[1].splitlines()]


def run(line: str, folder: Path) -> None:
    done = subprocess.run([*COMMAND, *line.split()[1:]], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    print("ok", line)


def service(folder: Path) -> None:
    """Start the service of README.md, run its Python, and look at what it learned."""
    (line,) = snippet("service")
    text = README.read_text(encoding="utf-8").partition("<!-- runs: service -->")[2]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found, "the snippet of the service has no Python"
    with served(line, folder) as started:
        code = found[1].replace("http://127.0.0.1:8080", started["address"]).replace("onepass_...", started["token"])
        names: dict[str, Any] = {}
        exec(code, names)
        again = names["price"].label("trip 17", 33.5)
    offer = names["offer"]
    low, high = offer.interval()
    assert low < 32.5 < high, offer  # 4 + 1.8 x 12.5 + 6, see write_trips
    assert (again.status, again.n_seen) == ("learned", 501), again  # 500 trips, and this one, once
    print("ok", line)


@contextmanager
def served(line: str, folder: Path) -> Iterator[dict[str, str]]:
    """Address and token of a service, while it runs."""
    command = [*COMMAND, *line.split()[1:], "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started: dict[str, str] = {}
        for printed in process.stdout:
            name, _, value = printed.partition(": ")
            started[name] = value.strip()
            if "address" in started and "token file" in started:
                break
        started["token"] = Path(started["token file"]).read_text(encoding="utf-8").strip()
        try:
            yield started
        finally:
            process.terminate()
    if process.returncode:
        sys.exit(f"onepass serve: exit code {process.returncode}")


PARTS = {
    "core": (models, readme_python, missing_command),
    "readme": (readme_commands, service),
    "commands": (other_commands,),
}

if __name__ == "__main__":
    print("onepass", onepass.__version__, "from", Path(onepass.__file__).parent)
    with tempfile.TemporaryDirectory() as name:
        for part in sys.argv[1:]:
            for check in PARTS[part]:
                check(Path(name))
