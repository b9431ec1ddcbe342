"""Try an installed onepass: every model and every command once, from an empty folder.

``make wheel`` runs this with the wheel in an environment that has no compiler. It needs nothing but the package.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import onepass


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
        onepass.PerceptronFleet(3).learn(["a", "b"] * 100, X, labels),
        onepass.BayesianPerceptronClassifier().fit(X, classes),
        onepass.BayesianPerceptronRegressor().fit(X, numbers),
        onepass.BayesianMLPClassifier().fit(X, labels),
        onepass.BayesianMLPRegressor().fit(X, numbers),
    ]
    for model in fitted:
        onepass.save(model, folder / "model")
        again = onepass.load(folder / "model")
        given = (["a", "new"], X[:2]) if isinstance(model, onepass.PerceptronFleet) else (X[:2],)
        expected, seen = model.predict(*given), again.predict(*given)
        np.testing.assert_array_equal(np.asarray(expected), np.asarray(seen))
        print("ok", type(model).__name__)


def commands(folder: Path) -> None:
    rng = np.random.default_rng(1)
    rows = ["size,place,price"]
    rows += [
        f"{size:.2f},{place},{100 * size:.1f}" for size, place in zip(rng.uniform(1, 9, 300), "ab" * 150, strict=True)
    ]
    (folder / "homes.csv").write_text("\n".join(rows) + "\n")
    for line in (
        "--version",
        "fit homes.csv --target price --model homes.onepass",
        "fit homes.csv --target price --hidden 10 --model network.onepass",
        "learn homes.onepass homes.csv",
        "predict homes.onepass homes.csv --out predictions.csv",
        "evaluate homes.csv --target price --html how.html",
        "show homes.onepass --html what.html",
        "completion bash",
        "reproduce sigmoid --out reproduction",
        "bench --help",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "onepass", *line.split()], cwd=folder, capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"onepass {line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        print("ok onepass", line)


if __name__ == "__main__":
    print("onepass", onepass.__version__, "from", Path(onepass.__file__).parent)
    with tempfile.TemporaryDirectory() as folder:
        models(Path(folder))
        commands(Path(folder))
