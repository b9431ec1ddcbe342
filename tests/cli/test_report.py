"""The page of ``onepass report``: complete, the same as that of ``evaluate --html``, and without paths."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.helpers.tables import trips, write_csv

SECTIONS = ("quality", "predictions", "calibration", "certainty", "importance", "weights", "worst-rows", "reading")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = trips(300)
    rows[10]["price"] = "abc"
    return write_csv(tmp_path_factory.mktemp("secret-folder") / "trips.csv", rows)


def test_the_page_has_every_section_and_no_path(run: Run, file: Path, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    done = run("report", file, "--target", "price", "--model-kind", "perceptron", "--out", html)
    assert done.code == 3  # a row was rejected
    page = html.read_text()
    places = [page.index(f'<section id="{name}">') for name in SECTIONS]
    assert places == sorted(places)
    assert page.index("<h2>Verdict</h2>") < places[0]
    assert "secret-folder" not in page
    assert "1 of 300 rows were rejected" in page
    again = tmp_path / "again.html"
    run("evaluate", file, "--target", "price", "--model-kind", "perceptron", "--html", again)
    assert again.read_text() == page


def test_classes_have_a_confusion_matrix(run: Run, file: Path, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    options = ("--model-kind", "perceptron", "--ignore", "price", "--out", html)
    assert run("report", file, "--target", "car", *options).code == 0
    page = html.read_text()
    assert '<th scope="col">as bike</th>' in page
    assert "Predicted and observed, with counts" in page
