"""The order in which ``onepass fit`` learns rows, and the batch that it makes of small tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass import BayesianMLPRegressor
from onepass.cli.main import main
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from tests.cli.conftest import Run
from tests.helpers.tables import write_csv

N = 1500


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose level changes every 300 rows, and is far from its mean in the last of them."""
    rng = np.random.default_rng(1)
    X, level = rng.normal(size=(N, 2)), np.repeat([-1.0, 0.5, 0.0, -1.5, 3.0], 300)
    y = X[:, 0] + np.abs(X[:, 1]) + level + 0.3 * rng.normal(size=N)
    rows = [{"a": a, "b": b, "y": value} for (a, b), value in zip(X.tolist(), y.tolist(), strict=True)]
    return write_csv(tmp_path_factory.mktemp("shuffling") / "table.csv", rows)


def fitted(run: Run, table: Path, model: Path, *options: str) -> tuple[Any, dict[str, str]]:
    """The model, and what was told of it by name."""
    done = run("fit", table, "--target", "y", "--hidden", "20", "--model", model, *options)
    assert done.code == 0, done
    told = dict(line.split(":", 1) for line in done.out.splitlines() if ":" in line)
    return onepass.load(model), {name: words.strip() for name, words in told.items()}


def bias(model: Any, table: Path) -> float:
    """Mean error over the whole table."""
    columns = np.loadtxt(table, delimiter=",", skiprows=1)
    rows = [{"a": a, "b": b} for a, b in columns[:, :2].tolist()]
    return float(np.mean(model.predict(rows)["mean"].to_numpy() - columns[:, 2]))


def test_rows_are_shuffled_and_refined_and_the_command_says_so(run: Run, table: Path, tmp_path: Path) -> None:
    model, told = fitted(run, table, tmp_path / "m")
    assert told["order"] == "random, within a buffer of 16,384 rows"
    assert abs(bias(model, table)) < 0.3
    assert told.get("passes", "1, ").startswith(f"{model.n_passes}, ")
    once, _ = fitted(run, table, tmp_path / "once", "--passes", "1")
    assert (abs(bias(once, table)) < 0.3, once.n_passes) == (True, 1)
    as_it_comes, told = fitted(run, table, tmp_path / "order", "--passes", "1", "--shuffle", "off")
    assert "order" not in told
    assert bias(as_it_comes, table) > 1.0
    in_order, _ = fitted(run, table, tmp_path / "off", "--shuffle", "off")
    np.testing.assert_array_equal(in_order.estimator.predict(np.eye(2)), as_it_comes.estimator.predict(np.eye(2)))


def test_a_small_table_is_learned_as_fit_of_the_estimator_does(run: Run, table: Path, tmp_path: Path) -> None:
    model, _ = fitted(run, table, tmp_path / "m")
    inputs = Inputs((str(table),))
    rows = [step.rows for step in steps(model, inputs, inputs.sources())]
    X, y = np.concatenate([part.X for part in rows]), np.concatenate([part.y for part in rows])
    expected = BayesianMLPRegressor((20,), standardize=False).fit(X, y)
    np.testing.assert_array_equal(model.estimator.predict(X), expected.predict(X))
    assert (model.n_passes, model.n_rows) == (expected.n_passes_, N)


@pytest.mark.parametrize(
    "options", [("--drift", "0.01"), ("--forgetting", "0.999"), ("--prior-scale", "auto"), ("--alarms", "alarms.csv")]
)
def test_the_order_is_kept_where_it_is_needed(run: Run, table: Path, tmp_path: Path, options: tuple[str, str]) -> None:
    name, value = options
    given = (name, str(tmp_path / value) if name == "--alarms" else value)
    model, told = fitted(run, table, tmp_path / "m", *given)
    assert "order" not in told
    off, _ = fitted(run, table, tmp_path / "off", *given, "--shuffle", "off", "--passes", "1")
    np.testing.assert_array_equal(model.estimator.predict(np.eye(2)), off.estimator.predict(np.eye(2)))


def test_perceptrons_and_learning_on_keep_the_order(run: Run, table: Path, tmp_path: Path) -> None:
    done = run("fit", table, "--target", "y", "--model-kind", "perceptron", "--model", tmp_path / "m")
    assert done.code == 0
    assert "order:" not in done.out
    model, _ = fitted(run, table, tmp_path / "n")
    again = onepass.load(tmp_path / "n")
    inputs = Inputs((str(table),))
    for step in steps(again, inputs, inputs.sources()):
        again.learn(step.rows)
    assert run("learn", tmp_path / "n", table, "--again", "-q").code == 0
    learned = onepass.load(tmp_path / "n").estimator.predict(np.eye(2))
    np.testing.assert_array_equal(learned, again.estimator.predict(np.eye(2)))
    assert not np.array_equal(learned, model.estimator.predict(np.eye(2)))


@pytest.mark.parametrize(("passes", "buffer"), [("auto", 1600), ("1", 700), ("2", 700)])
def test_a_run_cut_anywhere_in_a_buffer_ends_with_the_same_model(
    run: Run, table: Path, tmp_path: Path, passes: str, buffer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TabularModel, "rows_per_block", 200)
    monkeypatch.setattr(TabularModel, "rows_per_buffer", buffer)
    command = ["fit", str(table), "--target", "y", "--hidden", "5", "--passes", passes, "--checkpoint-every", "1", "-q"]
    assert run(*command, "--model", tmp_path / "whole").code == 0
    whole = onepass.load(tmp_path / "whole")
    learn, refine = TabularModel.learn, TabularModel.refine
    for cut in (1, 2, 4, 7, *([9] if passes != "1" else [])):  # of eight or nine blocks per pass
        count = 0

        def dying(self: TabularModel, rows: Any, cut: int = cut) -> None:
            nonlocal count
            count += 1
            if count > cut:
                raise MemoryError("killed")
            learn(self, rows)

        def dying_late(self: TabularModel, rows: Any) -> None:
            refine(self, rows)
            raise MemoryError("killed")

        path = tmp_path / f"cut{cut}"
        with monkeypatch.context() as patched:
            patched.setattr(TabularModel, "learn", dying)
            patched.setattr(TabularModel, "refine", dying_late)
            with pytest.raises(MemoryError):
                main([*command, "--model", str(path)])
        assert run(*command, "--model", path, "--resume").code == 0
        resumed = onepass.load(path)
        assert resumed.n_rows == whole.n_rows
        np.testing.assert_array_equal(resumed.estimator.predict(np.eye(2)), whole.estimator.predict(np.eye(2)))
        assert resumed.estimator.log_evidence_ == whole.estimator.log_evidence_
