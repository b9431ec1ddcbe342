"""Rows that --where left out: counted and told, for they are no rejects."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onepass.cli.console import Console, counted

if TYPE_CHECKING:
    from onepass.tables.readers.source import Source

__all__ = ["tell_left_out"]


def tell_left_out(console: Console, where: str | None, sources: "Sequence[Source]") -> None:
    """Say how many rows --where left out, and show a value by which it could not be told."""
    if where is None:
        return
    n = sum(source.left_out for source in sources)
    console.fact("left out", f"{counted(n, 'row')} by --where {where!r}", "fact", left_out=n)
    for unreadable in [source.unreadable for source in sources if source.unreadable][:1]:
        console.aside(f"left out: {unreadable}")
