"""What every kind of column does: it is inferred from the first rows, turns values into features, and goes into files.

A kind is a frozen dataclass below `Column`, with its name in `onepass.tables.columns.names`. What it can do besides
are attributes of the class.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from onepass._typing import FloatArray
from onepass.files.state import Parameters
from onepass.tables.columns.names import COLUMN_KINDS
from onepass.tables.columns.values import Bad

if TYPE_CHECKING:
    from onepass.tables.columns.inference import FirstValues, InferenceOptions

__all__ = ["Column", "column_class"]


@dataclass(frozen=True)
class Column(ABC):
    """A column of a table, of which every row becomes one or more numbers."""

    name: str
    kind: ClassVar[str]
    exclusive: ClassVar[tuple[int, tuple[float, ...]]] = (0, ())
    """Features of which just one is on: where they begin, and how often each is among the first rows."""
    shares_scale: ClassVar[bool] = False
    """Whether its weights have the same prior as those of all numbers; others have one per column."""
    is_sparse: ClassVar[bool] = False
    """Whether its features are many, most of them 0: `rows` gives them then, and `fill` is not called."""
    is_exportable: ClassVar[bool] = False
    """Whether `onepass.export` knows it."""
    is_ordered: ClassVar[bool] = False
    """Whether its first feature rises with its values, so that it can be the time of the rows."""
    step: ClassVar[str] = ""
    """The change of the column whose effect its weights are, in words."""

    @property
    @abstractmethod
    def features(self) -> list[str]:
        """Names of the numbers made of it."""

    @property
    def arrow_type(self) -> Any:
        """The Arrow type in which to ask a reader for it."""
        return pa.string()

    @classmethod
    @abstractmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> "Column":
        """The column by its values in the first rows."""

    @abstractmethod
    def words(self) -> str:
        """Say what is done with it."""

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows into zeros, ``(n, len(features))``, and note rows that can't be read."""
        raise NotImplementedError

    def fill_one(self, value: Any, out: list[float], at: int) -> bool:
        """Write the features of a plain value; False if only whole columns of such values are read."""
        return False

    def as_time(self) -> Self:
        """The column as the time of rows, of which one that is missing is NaN."""
        return self

    def with_seasons(self, span: float, step: float) -> Self:
        """The column with waves of the seasons of rows that span so much time and are usually so far apart."""
        return self

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Parameters) -> Self:
        """Make the column that `state` described."""
        return cls(**state)


@cache
def column_class(kind: str) -> type[Column]:
    """The class of a kind of column."""
    module, _, name = COLUMN_KINDS[kind].rpartition(".")
    found: type[Column] = getattr(import_module(f"onepass.tables.columns.{module}"), name)
    return found
