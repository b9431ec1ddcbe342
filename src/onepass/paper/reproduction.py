"""From outcomes to files: the figures, every number as JSON, and the report."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version

from onepass import __version__
from onepass.paper import load
from onepass.paper.base import Outcome
from onepass.reports.html import Report, Section, render_html
from onepass.reports.plots import house_style, render

__all__ = ["Publication", "Run", "publish"]


@dataclass(frozen=True)
class Run:
    """What was run, and the seconds it took."""

    experiment: str
    seed: int
    trials: int
    seconds: float


@dataclass(frozen=True)
class Publication:
    """The contents of all files by name, and the sections, for the terminal."""

    files: dict[str, bytes]
    sections: tuple[Section, ...]


def publish(outcomes: Mapping[str, Outcome], run: Run) -> Publication:
    """Draw the figures and write the report of outcomes by name; files are returned, not written."""
    files: dict[str, bytes] = {}
    sections = []
    for experiment, outcome in ((load(name), outcome) for name, outcome in outcomes.items()):
        svg = {}
        with house_style():
            for name, figure in experiment.draw(outcome).items():
                svg[name] = render(figure, "svg")
                files[f"{name}.svg"], files[f"{name}.png"] = svg[name], render(figure, "png")
        sections.append(experiment.section(outcome, svg))
    files["results.json"] = _results(outcomes, run)
    files["report.html"] = render_html(_report(tuple(sections), run)).encode()
    return Publication(files, tuple(sections))


def _results(outcomes: Mapping[str, Outcome], run: Run) -> bytes:
    numbers = {
        "onepass": __version__,
        "seed": run.seed,
        "trials": run.trials,
        "seconds": run.seconds,
        **{name: outcome.numbers() for name, outcome in outcomes.items()},
    }
    return (json.dumps(numbers, indent=2, allow_nan=False) + "\n").encode()


def _report(sections: tuple[Section, ...], run: Run) -> Report:
    return Report(
        title="The Bayesian perceptron, reproduced",
        lead=(
            "Every experiment, figure and number of Section V of M. F. Huber, “Bayesian Perceptron: Towards fully "
            "Bayesian Neural Networks” (2020), run again and compared with what the paper prints and with the exact "
            "update of onepass on the same task. Each section ends with what did not reproduce."
        ),
        sections=sections,
        facts=(
            ("command", f"`onepass reproduce {run.experiment} --seed {run.seed} --trials {run.trials}`"),
            ("onepass", __version__),
            ("Python, NumPy, SciPy", f"{platform.python_version()}, {version('numpy')}, {version('scipy')}"),
            ("time", f"{run.seconds:.0f} s for the experiments"),
            ("numbers", "all of them in `results.json`; the same seed gives the same, apart from times"),
        ),
    )
