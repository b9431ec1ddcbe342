"""The experiments of the paper's Section V: what each measures in a module here, how it is reported in `sections`.

To add one, write both modules under one name and add the name to `NAMES`: see `base.Experiment` for what they define.
They are loaded on first use, since the command line needs the names alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onepass.paper.base import Experiment

__all__ = ["NAMES", "load"]

NAMES = ("sigmoid", "comparison", "classification", "regression")


def load(name: str) -> "Experiment":
    """Load an experiment by its name."""
    from onepass.paper.base import Experiment

    if name not in NAMES:
        raise ValueError(f"experiment must be one of {', '.join(map(repr, NAMES))}, got {name!r}")
    measured, reported = import_module(f"{__name__}.{name}"), import_module(f"{__name__}.sections.{name}")
    return Experiment(reported.TITLE, measured.steps, measured.run, reported.draw, reported.section)
