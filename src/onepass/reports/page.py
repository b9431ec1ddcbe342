"""The one page that people forward: a model scored on files, in a file that opens anywhere.

`onepass report`, `onepass evaluate --html` and the function here all write this page.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from onepass.evaluation.evaluating import evaluate
from onepass.evaluation.prequential import Trial
from onepass.files.atomic import write_atomically
from onepass.reports.html import render_html
from onepass.reports.model_report import evaluation_report
from onepass.tables.readers.addresses import located
from onepass.tables.readers.paths import FilePath

__all__ = ["report", "write_page"]


def write_page(html: str | PathLike[str], trial: Trial, files: Sequence[str]) -> None:
    """Write the page of a trial, whose rows came from ``files``."""
    write_atomically(Path(html), render_html(evaluation_report(trial, files)).encode())


def report(
    files: FilePath | Sequence[FilePath], target: str | None = None, *, html: str | PathLike[str], **options: Any
) -> Trial:
    r"""Score a model on files and write the page, as ``onepass report`` does.

    Parameters
    ----------
    files : path or paths, also patterns and URLs
    target : name of the column to predict, for a new model
    html : file to write
    options : those of `onepass.evaluation.evaluate`

    Returns
    -------
    Trial
        Its ``scores()`` are the metrics of the model, and of the simple predictions that it is compared with.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "".join(f"{km % 17},{3 + 2 * (km % 17)}\n" for km in range(99))
    >>> _ = (folder / "trips.csv").write_text("km,price\n" + rows)
    >>> trial = report(folder / "trips.csv", "price", html=folder / "report.html", model_kind="perceptron")
    >>> sorted(trial.scores()), (folder / "report.html").exists()
    (['last value', 'mean', 'onepass', 'same time last period'], True)
    """
    trial = evaluate(files, target, **options)
    write_page(html, trial, located(files)[0])
    return trial
