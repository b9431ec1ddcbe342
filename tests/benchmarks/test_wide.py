import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.wide import __main__ as command
from benchmarks.wide import cliffs, permuted, speed
from benchmarks.wide.images import load, one_pass, score
from benchmarks.wide.study import Figure, Findings, Study, Table, figure_lines, missed, read, write
from scipy.linalg.blas import dsymv

from onepass import BayesianNetwork

QUICK = Study(quick=True)
FOUND = Findings((Figure("accuracy", 0.9755, ">= 0.965"),), (Table("All:", ("a", "b"), (("1", "2"),)),))


@pytest.mark.parametrize("name", command.PARTS)
def test_every_part_measures_something_in_a_few_rows(name: str) -> None:
    found = command.PARTS[name].module.findings(QUICK)
    assert found.figures
    assert all(np.isfinite(figure.value) for figure in found.figures)
    assert not any(figure.target for figure in found.figures)
    assert all(len(line) == len(table.columns) for table in found.tables for line in table.lines)
    assert f"## {command.PARTS[name].title}" in command.page({name: found})


def test_the_table_has_every_figure_and_commands_print_missed_bounds() -> None:
    figures = (*FOUND.figures, Figure("log-loss", 0.12, "<= 0.115"), Figure("rows", 12345.6))
    assert list(figure_lines(figures))[2:] == ["| accuracy | 0.9755 |", "| log-loss | 0.12 |", "| rows | 12,346 |"]
    assert list(missed(figures)) == ["MISSED <= 0.115: log-loss, 0.12"]


def test_targets_are_those_of_the_published_data_alone() -> None:
    words = ">= 0.82"
    assert Study(Path("data")).published_target(words) == Study().target(words) == words
    assert Study().published_target(words) == QUICK.target(words) == ""


def test_parts_are_kept_next_to_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, page = tmp_path / "wide.json", tmp_path / "page.md"
    write(stored, {"classes": FOUND})
    assert read(stored) == {"classes": FOUND}
    monkeypatch.setattr(command, "STORED", stored)
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(command, "IMAGES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["wide", "--page"])
    command.main()
    assert "| accuracy | 0.9755 |" in page.read_text()


@pytest.mark.parametrize(
    ("given", "words"),
    [(["--only", "mnist,chess"], "'chess'"), (["--write"], "--data"), (["--write", "--quick"], "all")],
)
def test_what_cannot_be_measured_is_said(
    given: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["wide", *given])
    with pytest.raises(SystemExit):
        command.main()
    assert words in capsys.readouterr().err


def test_a_pass_with_stops_is_the_pass_without() -> None:
    images = load(QUICK)
    models = [BayesianNetwork(64, (4,), 10, observation="categorical", covariance="kronecker") for _ in range(2)]
    *_, stopped = one_pass(models[0], images, [50, 200])
    whole = score(models[1].learn(images.X, images.y), images.X_test, images.y_test)
    assert stopped.scores == pytest.approx(whole)
    assert images.as_images().X.shape == (200, 8, 8)


def test_tasks_that_are_still_to_come_have_no_accuracy() -> None:
    found = permuted.accuracies(load(QUICK), 20, "diagonal")
    np.testing.assert_array_equal(np.isnan(found), ~np.tri(5, dtype=bool))


def test_every_change_of_the_choice_is_found() -> None:
    def network(size: int) -> BayesianNetwork:
        return BayesianNetwork(2, (), covariance="full" if size < 13 else "diagonal" if size < 17 else "neuron")

    series = cliffs.Series("size", "", (5, 20, 30), network, cliffs.numbers)
    assert list(cliffs.changes(series)) == [12, 16]


def test_more_inputs_leave_the_targets_as_they_are() -> None:
    (few, y), (many, same) = cliffs.numbers(5, 20, 1), cliffs.numbers(9, 20, 1)
    np.testing.assert_array_equal(few, many[:, :5])
    np.testing.assert_array_equal(y, same)


def test_the_bare_products_are_as_many_as_said(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(alpha: float, factor: np.ndarray, vector: np.ndarray, lower: int) -> np.ndarray:
        sizes.append(len(factor))
        return dsymv(alpha, factor, vector, lower=lower)

    monkeypatch.setattr("scipy.linalg.blas.dsymv", counted)
    speed.bare_products((5, 3, 4, 10), "float64", times=2)()
    assert {size: sizes.count(size) for size in sizes} == {5: 2, 3: 20, 4: 2, 10: 20}
