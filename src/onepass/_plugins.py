"""Additions of other packages, found by the entry points that they declare in their metadata.

A package that is installed next to this one declares, in its pyproject.toml, one or more of

    [project.entry-points."onepass.formats"]    a FileFormat of onepass.tables.readers.source
    [project.entry-points."onepass.metrics"]    a metric class, decorated with onepass.evaluation.metrics.register
    [project.entry-points."onepass.commands"]   a click.Command, under the name of the command
    [project.entry-points."onepass.served"]     a kind of served model, a subclass of onepass.service.served.Served
    [project.entry-points."onepass.stores"]     an event log, under the scheme of its addresses
"""

import warnings
from importlib.metadata import EntryPoint, entry_points
from typing import Any

__all__ = ["loaded", "plugins"]


def plugins(kind: str) -> dict[str, EntryPoint]:
    """What other packages declare, by name: "formats", "metrics", "commands", "served" or "stores"."""
    return {one.name: one for one in entry_points(group=f"onepass.{kind}")}


def loaded(kind: str) -> list[Any]:
    """The same, imported; what can't be is left out with a warning, because the rest works without it."""
    found = []
    for name, one in plugins(kind).items():
        try:
            found.append(one.load())
        except Exception as error:
            package = one.dist.name if one.dist is not None else "another package"
            warnings.warn(f"{name!r} of {package} in onepass.{kind} can't be loaded: {error}", stacklevel=2)
    return found
