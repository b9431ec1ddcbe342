"""The bench on sets with fixed splits, on a small set made here."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.uci.splits import Setting, find_datasets, load_split, score

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two sets with three splits; the target stands first, and one feature never varies."""
    rng = np.random.default_rng(0)
    for name in ("hill", "slope"):
        there = tmp_path / name
        there.mkdir()
        X = rng.normal(5.0, 3.0, size=(120, 2))
        y = 100 + 20 * np.sin(X[:, 0]) if name == "hill" else 100 + 20 * X[:, 0]
        np.savetxt(there / "data.txt", np.column_stack([y + rng.normal(0, 2, 120), X, np.full(120, 7.0)]))
        np.savetxt(there / "index_features.txt", [1, 2, 3], fmt="%d")
        np.savetxt(there / "index_target.txt", [0], fmt="%d")
        for split in range(3):
            order = rng.permutation(120)
            np.savetxt(there / f"index_train_{split}.txt", np.sort(order[:100]), fmt="%d")
            np.savetxt(there / f"index_test_{split}.txt", order[100:], fmt="%d")
    return tmp_path


def test_a_split_is_standardised_by_its_training_part(folder: Path) -> None:
    split = load_split(folder / "slope", 1)
    assert find_datasets(folder) == ["hill", "slope"]
    np.testing.assert_allclose(split.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X.std(axis=0), [1.0, 1.0, 0.0], atol=1e-12)
    assert split.y.std() == pytest.approx(1.0)
    data = np.loadtxt(folder / "slope" / "data.txt")
    train = np.loadtxt(folder / "slope" / "index_train_1.txt").astype(int)
    assert split.unit == pytest.approx(data[train, 0].std())
    assert len(split.X_test) == 20


def test_scores_are_in_the_targets_own_unit(folder: Path) -> None:
    split = load_split(folder / "slope", 0)
    ours = score(split, Setting(passes=2, hidden=(10,), members=2))
    assert 1.0 < ours.rmse < 6.0  # the noise has a deviation of 2
    assert -4.0 < ours.log_likelihood < -2.0
    assert ours.coverage > 70.0
    scaled = score(split._replace(unit=split.unit * 10), Setting(passes=2, hidden=(10,), members=2))
    assert scaled.rmse == pytest.approx(10 * ours.rmse)
    assert scaled.log_likelihood == pytest.approx(ours.log_likelihood - np.log(10))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.uci", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_the_command_writes_what_it_shows(folder: Path) -> None:
    file = folder / "out.json"
    done = run("--data", str(folder), "--splits", "2", "--hidden", "5", "4", "--json", str(file))
    assert done.returncode == 0, done.stderr
    numbers = json.loads(file.read_text())
    assert [entry["dataset"] for entry in numbers] == ["hill", "slope"]
    fields = {"dataset", "passes", "splits", "rmse_mean", "rmse_se", "ll_mean", "ll_se", "seconds_per_pass"}
    assert fields <= set(numbers[0])
    assert (numbers[0]["splits"], numbers[0]["passes"]) == (2, 1)
    assert f"{numbers[1]['rmse_mean']:.3f}" in done.stdout


def test_a_set_that_is_not_there_is_named(folder: Path) -> None:
    done = run("--data", str(folder), "--datasets", "hill", "valley")
    assert done.returncode == 2
    assert done.stderr.strip().endswith(f"no set valley in {folder}; there are: hill, slope")
