"""Additions of other packages are found by their entry points, and a broken one does not stop the others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import click
from onepass.evaluation.metrics import MeanAbsoluteError, register
from onepass.tables.readers.csv_file import CsvFile
from onepass.tables.readers.source import FileFormat

SHOUTED = FileFormat("shouted CSV", lambda head: head.startswith(b"KM,"), CsvFile)

@register("numbers")
class Doubled(MeanAbsoluteError):
    name, title = "doubled", "2 MAE"

@click.command()
def count():
    click.echo("counted")
"""
ENTRIES = """
[onepass.formats]
shouted = added:SHOUTED
broken = added:NOTHING
[onepass.metrics]
doubled = added:Doubled
[onepass.commands]
count = added:count
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that has a package with additions, as if it were installed."""
    (tmp_path / "added.py").write_text(MODULE)
    info = tmp_path / "added-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    return tmp_path


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ, PYTHONPATH=str(folder)),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_format_of_another_package_is_read_and_a_broken_one_is_reported(installed: Path) -> None:
    (installed / "a").write_text("KM,PRICE\n1,2\n")
    program = """
from onepass.tables.readers.registry import _FORMATS, open_source
print(open_source("a").columns(), _FORMATS[-1].name)
"""
    done = run(program, installed)
    assert done.stdout == "['KM', 'PRICE'] shouted CSV\n", done.stderr
    assert "'broken' of added in onepass.formats can't be loaded" in done.stderr


def test_a_metric_of_another_package_is_among_all_scores(installed: Path) -> None:
    program = """
import numpy as np
from onepass.evaluation.metrics import NumberPredictions, Scores
rows = NumberPredictions(np.array([2.0, 4.0]), np.array([3.0, 4.0]))
print(sorted(Scores.of("numbers", with_std=False).update(rows).total()))
"""
    done = run(program, installed)
    assert "'doubled'" in done.stdout, done.stderr


def test_a_command_of_another_package_is_run_and_listed(installed: Path) -> None:
    for arguments, expected in ((["count"], "counted"), (["--help"], "count")):
        done = run(f"from onepass.cli.main import main; main({arguments})", installed)
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
