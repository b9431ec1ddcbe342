"""The experiments of the paper's Section V: see `base` for what one is, the rest for the ones there are.

Loaded on first use: the command line asks for the names alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from onepass.paper.base import Experiment

__all__ = ["NAMES", "load"]

NAMES = ("sigmoid", "comparison", "classification", "regression")


def load(name: str) -> "Experiment":
    """Load an experiment by its name."""
    if name not in NAMES:
        raise ValueError(f"experiment must be one of {', '.join(map(repr, NAMES))}, got {name!r}")
    return cast("Experiment", import_module(f"{__name__}.{name}"))
