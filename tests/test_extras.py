"""What works without the optional packages, and what is said where one is missing."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from onepass import _extras
from onepass._extras import PACKAGES, MissingExtraError, require

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class Block(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
"""
ALL = sorted({package for packages in PACKAGES.values() for package in packages} | {"jinja2", "polars", "uvloop"})


def without(packages: list[str], code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process that can't import some packages."""
    program = BLOCK.format(blocked=set(packages)) + code
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, check=False
    )


def test_extras_name_the_packages_that_pyproject_installs() -> None:
    for extra, packages in PACKAGES.items():
        found = [re.match(r"[\w-]+", one) for one in PROJECT["optional-dependencies"][extra]]
        asked = {one[0] for one in found if one} - {PROJECT["name"], "uvloop"}  # uvloop: faster where it exists
        assert {one.replace("-", "_") for one in asked} == set(packages), extra


def test_all_has_every_extra_for_users() -> None:
    apart = {"skpro", "sktime"}  # which need another pandas than the rest
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", everything)) - {"onepass", "learn"} == set(PACKAGES) - apart


MODELS = """
import numpy as np, onepass, sys
from onepass.decisions import ContextualBandit

folder = sys.argv[1]
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = X[:, 0] + rng.normal(0, 0.1, 60)
labels, classes = (y > 0).astype(float), np.digitize(y, [-0.5, 0.5])
for model in (
    onepass.BayesianPerceptron(3).learn(X, labels),
    onepass.BayesianNetwork(3, (5,)).learn(X, y),
    onepass.BayesianCommittee(3, (5,)).learn(X, y),
    onepass.PerceptronFleet(3).learn(X, labels, keys=["a", "b"] * 30),
    onepass.BayesianPerceptronClassifier().fit(X, classes),
    onepass.BayesianPerceptronRegressor().fit(X, y),
    onepass.BayesianMLPClassifier().fit(X, classes),
    onepass.BayesianMLPRegressor().fit(X, y),
):
    onepass.save(model, f"{folder}/model")
    assert type(onepass.load(f"{folder}/model")) is type(model)
for name in onepass.__all__:
    if "Tabular" not in name:  # which need pyarrow
        getattr(onepass, name)
bandit = ContextualBandit(["left", "right"], n_features=3)
bandit.reward(bandit.choose(X[0]).id, 1.0)
import onepass.paper.kalman_network
print("done", *sorted({name.partition(".")[0] for name in sys.modules} & set(%r)))
"""


def test_every_model_works_without_any_extra(tmp_path: Path) -> None:
    done = without(ALL, MODELS % ALL, str(tmp_path))
    assert (done.stderr, done.stdout) == ("", "done\n")


@pytest.mark.parametrize(
    ("blocked", "code", "sentence"),
    [
        (
            "skpro",
            "import onepass.integrations.skpro",
            "onepass.integrations.skpro needs skpro: pip install 'onepass-learn[skpro]'",
        ),
        (
            "sktime",
            "import onepass.integrations.sktime",
            "onepass.integrations.sktime needs sktime: pip install 'onepass-learn[sktime]'",
        ),
        ("river", "import onepass.river", "onepass.river needs river: pip install 'onepass-learn[river]'"),
        (
            "distributed",
            "import onepass.distributed",
            "onepass.distributed needs distributed: pip install 'onepass-learn[dask]'",
        ),
        ("httpx", "import onepass.client", "onepass.client needs httpx: pip install 'onepass-learn[client]'"),
        ("pyarrow", "import onepass.tables.model", "onepass.tables needs pyarrow: pip install 'onepass-learn[cli]'"),
        (
            "pyarrow",
            "from onepass.decisions import DecisionLog",
            "onepass.decisions.DecisionLog needs pyarrow: pip install 'onepass-learn[cli]'",
        ),
        (
            "matplotlib",
            "import onepass.reports",
            "a figure needs matplotlib: pip install 'onepass-learn[plots]'",
        ),
        ("msgspec", "import onepass.service", "onepass.service needs msgspec: pip install 'onepass-learn[serve]'"),
    ],
)
def test_a_missing_extra_is_named_with_the_way_to_get_it(blocked: str, code: str, sentence: str) -> None:
    done = without([blocked], code)
    assert done.stderr.splitlines()[-1] == f"onepass._extras.MissingExtraError: {sentence}"


@pytest.mark.parametrize("missing", ["click", "rich", "pyarrow"])
def test_the_command_without_its_extra_is_one_sentence(missing: str) -> None:
    done = without([missing], "from onepass.__main__ import main; main()", "--version")
    sentence = f"onepass: the command 'onepass' needs {missing}: pip install 'onepass-learn[cli]'.\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("evaluate", "rows.csv", "--target", "y", "--html", "how.html"), "--html"),
        (("show", "rows.csv", "--html", "what.html"), "--html"),
        (("reproduce", "sigmoid", "--out", "out"), "'onepass reproduce'"),
    ],
)
def test_figures_without_their_extra_are_refused_before_the_work(
    arguments: tuple[str, ...], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{k},{2 * k}\n" for k in range(50)))
    done = without(["matplotlib"], "from onepass.__main__ import main; main()", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"onepass: {what} needs matplotlib: pip install 'onepass-learn[plots]'.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_installed_packages_are_found_without_importing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_extras.PACKAGES, "none", ("a_package_that_nobody_has",))
    with pytest.raises(MissingExtraError, match="it needs a_package_that_nobody_has: pip install 'onepass") as caught:
        require("none", "it")
    assert caught.value.name == "a_package_that_nobody_has"
    done = without(
        [],
        "from onepass._extras import *\n"
        "for one in set(PACKAGES) - {'skpro', 'sktime'}: require(one, one)\n"  # which have an environment of their own
        "print('pyarrow' in sys.modules)",
    )
    assert done.stdout == "False\n"
