"""What is exported of a model: the inputs, the computations, and the outputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onepass._typing import FloatArray
from onepass.export.expressions import Expression

__all__ = ["Input", "Learning", "NotExportableError", "Program"]


class NotExportableError(ValueError):
    """A model, or a part of it, has no form in the language that was asked for; the message says what to do."""


@dataclass(frozen=True)
class Input:
    """One number of a row: what it is called, and what it means if it is not a plain number."""

    name: str
    kind: str = "number"  # or boolean, category, hashed, date
    levels: tuple[str, ...] = ()  # of a category, whose number is the place of its value among these
    buckets: int = 0  # of a hashed one, whose number is that of the bucket
    missing_words: tuple[str, ...] = ()  # texts that stand for a missing value, NaN
    written: Mapping[str, str] = field(default_factory=dict)
    """How texts of it are written, if not as programs write them: a ``pattern`` of Python's ``re`` that they match, the
    same in ``words``, and for numbers the ``decimal`` sign and the ``unit``."""

    @property
    def reader(self) -> str:
        """What its raw values are read as."""
        return f"written {self.kind}" if self.written else self.kind


@dataclass(frozen=True)
class Learning:
    """What learning on a device needs of a perceptron, besides the parameters of the program."""

    rule: str  # linear, sigmoid, probit or step
    row: Expression  # (p,), as the weights meet it, the constant of the bias included
    mean: FloatArray  # (p,)
    root: FloatArray  # (p, p), R of the covariance R'R
    target_centre: float
    target_scale: float
    is_log: bool
    noise: float


@dataclass(frozen=True)
class Program:
    """A model as a graph: of ``inputs`` per row to ``mean`` and ``std``, each of as many numbers as it predicts.

    Of a classifier these are the probabilities of its classes and their standard deviations.
    """

    origin: str  # what it was made of, in a clause
    x: Expression
    inputs: tuple[Input, ...]
    mean: Expression
    std: Expression
    classes: tuple[Any, ...] = ()
    single: bool = False  # whether one number is predicted, and not a row of them
    std_words: str = "the standard deviation of a new target"
    quantile: Expression | None = None  # placeholder of the standard normal's quantile in the limits
    limits: tuple[Expression, Expression] | None = None
    learning: Learning | None = None
    no_learning: str = ""  # why there is none, where a perceptron has no form for it
    notes: tuple[str, ...] = field(default=())
