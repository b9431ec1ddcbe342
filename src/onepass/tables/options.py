"""The options of a new model of a table, each defined once; quick to import.

``onepass fit`` and ``evaluate``, `onepass.tables.fit`, the descriptions that the service takes and the reference pages
of all of them are made from `OPTIONS`. An option reaches the library under its name: as a field of `Settings`,
`SchemaOptions` or `Notation`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from onepass._limits import INTERVALS, MODEL_KINDS, TASKS
from onepass.beliefs.names import COVARIANCES
from onepass.tables.columns.names import COLUMN_KINDS

__all__ = ["OPTIONS", "Choice", "Count", "Option", "Plain", "Positive"]


class Plain(Enum):
    """Kinds of options that need no numbers or words of their own."""

    WORD = "any text"
    NAMES = "several names"
    COLUMN = "the name of a column"
    COLUMN_KINDS = "kinds of columns, by their names"
    DATE_FORMATS = "ways in which dates are written"
    WIDTHS = "widths of layers"
    SEED = "a seed of random numbers"
    SHARE = "a share of all rows, below one half"
    FRACTION = "a number above 0, and 1 at most"
    RATE = "a number from 0 to 1, or auto"
    ON_OFF = "yes or no"


@dataclass(frozen=True)
class Choice:
    """One of several words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Count:
    """A whole number of at least 1."""

    most: int | None = None


@dataclass(frozen=True)
class Positive:
    """A positive number, or one of some words."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """An option of a new model.

    Parameters
    ----------
    name : of the field that it sets
    kind : what it may be
    text : what it is for; other options are in braces, as ``{hidden}``
    default : in the words of users; None for what is found out, or left out
    flag : on the command line, where it is not the name with dashes
    of_rows : whether it says how rows are read, and so needs some
    served : whether the service has it too
    """

    name: str
    kind: Plain | Choice | Count | Positive
    text: str
    default: Any = None
    flag: str = ""
    of_rows: bool = False
    served: bool = True

    @property
    def option(self) -> str:
        """How it is given on the command line.

        Examples
        --------
        >>> [one.option for one in OPTIONS if one.name in ("kinds", "one_hot")]
        ['--as', '--one-hot']
        """
        return self.flag or f"--{self.name.replace('_', '-')}"

    def words(self, shown: Callable[["Option"], str]) -> str:
        """What it is for, with the other options as ``shown`` has them."""
        return self.text.format_map({one.name: shown(one) for one in OPTIONS})


OPTIONS = (
    Option(
        "task",
        Choice(TASKS),
        "What the target is: a number, a count or a class. By default a number or a class, detected from the first "
        "rows.",
        of_rows=True,
    ),
    Option(
        "classes",
        Plain.NAMES,
        "All classes that can occur; by default those in the first rows.",
        default=(),
        of_rows=True,
    ),
    Option("columns", Plain.NAMES, "Learn from these columns only.", default=(), of_rows=True),
    Option("ignore", Plain.NAMES, "Do not learn from these columns.", default=(), of_rows=True),
    Option(
        "kinds",
        Plain.COLUMN_KINDS,
        f"What a column holds: {', '.join(COLUMN_KINDS)}.",
        default=(),
        flag="--as",
        of_rows=True,
    ),
    Option("decimal", Choice((".", ",")), "Decimal sign of numbers; detected per column by default.", served=False),
    Option(
        "missing",
        Plain.NAMES,
        "The words that stand for a missing value; '' for none. An empty field is always missing. By default NA, null, "
        "None and the like, unless one of them is a frequent value of a text column.",
        served=False,
    ),
    Option(
        "date_formats",
        Plain.DATE_FORMATS,
        "How dates are written, such as %d/%m/%Y; detected per column by default.",
        default=(),
        flag="--date-format",
        served=False,
    ),
    Option(
        "one_hot",
        Count(10_000),
        "A column with up to this number of categories gets one feature per category; with more, categories are hashed "
        "into {buckets} features.",
        default=20,
        of_rows=True,
    ),
    Option(
        "buckets",
        Count(2**16),
        "Number of features that the hashed categories of a column share.",
        default=64,
        of_rows=True,
    ),
    Option(
        "text_buckets",
        Count(2**20),
        "Number of features that the words of a text column share. By default 65536; 16384 for more than two classes; "
        "1024 with {hidden}, or with a covariance other than diagonal.",
        of_rows=True,
    ),
    Option(
        "log_target",
        Plain.ON_OFF,
        "Learn the logarithm of the target; predictions are still in the target's own units. By default this is done "
        "if the target is positive and skewed, and the first rows are predicted better that way.",
        of_rows=True,
    ),
    Option(
        "sample",
        Count(),
        "Number of first rows from which the kinds of the columns, the scales of numbers and the prior are decided.",
        default=10_000,
        served=False,
    ),
    Option(
        "hidden",
        Plain.WIDTHS,
        "Learn by a network, with these numbers of units in its hidden layers, such as 50 or 50,50.",
        default=(),
    ),
    Option(
        "model_kind",
        Choice(MODEL_KINDS),
        "A perceptron, a network (with 50 hidden units, unless {hidden} says otherwise), or 'auto': both learn the "
        "first 2,000 rows, and the one that predicts them better is kept; if a network would take too long for the "
        "input, it is a perceptron.",
        default="auto",
    ),
    Option(
        "activation",
        Plain.WORD,
        "Activation of the hidden units (default relu); without {hidden}, of the output (default linear, exp for "
        "counts, sigmoid for classes).",
    ),
    Option(
        "covariance",
        Choice(("auto", *COVARIANCES)),
        "Between which weights correlations are kept; 'auto': as many as is not too slow. 'kronecker' is for wide "
        "hidden layers, 'neuron' also for many classes without {hidden}.",
        default="auto",
    ),
    Option(
        "noise",
        Positive(("learn",)),
        "Variance of the target's noise, or dispersion of counts; 'learn' estimates it from the rows.",
        default="learn",
    ),
    Option(
        "prior_scale",
        Positive(("sample", "auto")),
        "Standard deviation of the weights before the first row. 'sample' estimates it from the first rows, one for "
        "all numeric columns and one for each other column; for networks it is 1. 'auto' averages over several, which "
        "takes longer.",
        default="sample",
    ),
    Option(
        "intercept_scale",
        Positive(),
        "Standard deviation of the intercept before the first row; by default 4, but 1 for numbers with {hidden}.",
    ),
    Option(
        "outliers",
        Plain.SHARE,
        "Share of the rows whose target can't be trusted, such as 0.05. Above 0 the share is learned, starting from "
        "this value, and extreme targets or wrong labels do little harm.",
        default=0.0,
    ),
    Option(
        "forgetting",
        Plain.FRACTION,
        "Below 1 older rows count less, for relations that change: the weight of a row is this number to the power of "
        "its age in rows.",
        default=1.0,
    ),
    Option(
        "drift",
        Plain.RATE,
        "How fast the weights change, from 0 to 1: before each row their covariance moves this share of the way back "
        "to the prior's. 'auto' learns six hypotheses side by side (five rates, and a quick return to the prior), "
        "weighted row by row by how well they predict; it takes seven to ten times as long as a fixed rate, and needs "
        "{forgetting} 1.",
        default=0.0,
    ),
    Option(
        "intervals",
        Choice(INTERVALS),
        "Limits of intervals: 'model' takes them from the predictive distribution; 'adaptive' moves them with every "
        "target, so that in the long run the share inside is the level also where the stream changes. Of "
        "classes it calibrates the probabilities instead, except with {by}; of numbers with {by} each key has its own "
        "limits, drawn towards those of all keys.",
        default="model",
    ),
    Option("seed", Plain.SEED, "Seed of the random numbers; the same seed gives the same network.", default=0),
    Option(
        "weight",
        Plain.COLUMN,
        "Column with the weight of each row: 2 counts as if the row came twice, 0.5 half, 0 not at all. It is not used "
        "as an input, but must be there whenever the model learns.",
    ),
    Option(
        "by",
        Plain.COLUMN,
        "Learn one model for each value of this column, such as a store or a device. What they have in common is "
        "learned too, and is used for values that were never seen. For numbers and two classes, without {hidden}.",
    ),
    Option(
        "time",
        Plain.COLUMN,
        "Column with the time of each row, dates or numbers, the oldest row first. Predictions then start from where "
        "the last rows have left the level of the target, and intervals widen with the distance from them; a date has "
        "waves of the seasons that the first rows cover twice. For numbers.",
        of_rows=True,
    ),
)
"""In the order of the help."""
