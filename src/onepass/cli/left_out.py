"""Rows that --where left out: counted and reported, but not rejected."""

from collections.abc import Sequence
from typing import Protocol

from onepass.cli.console import Console, counted

__all__ = ["tell_left_out"]


class _Filtered(Protocol):
    """A file that was read with a condition, here or by a worker."""

    @property
    def left_out(self) -> int: ...

    @property
    def unreadable(self) -> str: ...


def tell_left_out(console: Console, where: str | None, sources: Sequence[_Filtered]) -> None:
    """Say how many rows --where left out, and show a value for which it could not be evaluated."""
    if where is None:
        return
    n = sum(source.left_out for source in sources)
    console.fact("left out", f"{counted(n, 'row')} by --where {where!r}", "fact", left_out=n)
    for unreadable in [source.unreadable for source in sources if source.unreadable][:1]:
        console.aside(f"left out: {unreadable}")
