"""One measured figure beside the figure it replaces: what the benchmarks of inference hand to the table of them all."""

from dataclasses import dataclass

__all__ = ["Cell"]


@dataclass(frozen=True)
class Cell:
    """A figure of version 0.1's code, the same measured now, and what it is to reach."""

    section: str
    name: str
    before: float
    after: float
    target: str
