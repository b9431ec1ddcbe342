"""What the description of a new model may hold: the types that check it, and that the OpenAPI document is made from.

A description has one of four forms: some rows of a table (`TableFromRows`), its columns (`TableFromColumns`), the arms
of a bandit (`BanditFromArms`), or the seasons of a series (`ForecasterFromSeasons`). The strings below the fields are
what readers of the document see.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from onepass.service.served.values import texts_of
from onepass.service.wire import Scalar
from onepass.tables import options, targets
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category, Hashed
from onepass.tables.columns.column import Column
from onepass.tables.columns.date import Date
from onepass.tables.columns.number import Number
from onepass.tables.columns.text import Text
from onepass.tables.options import Plain

__all__ = [
    "FORMS",
    "Bandit",
    "BanditFromArms",
    "CategoryColumn",
    "ClassTarget",
    "Forecaster",
    "ForecasterFromSeasons",
    "ModelOptions",
    "TableFromColumns",
    "TableFromRows",
    "TableOptions",
    "texts",
]

Name = Annotated[str, Meta(min_length=1, max_length=200, description="a text of 1 to 200 characters")]
AnyNumber = Annotated[float, Meta(ge=-1e100, le=1e100, description="a number between -1e100 and 1e100")]
Positive = Annotated[float, Meta(ge=1e-100, le=1e100, description="a number above 0")]
Count = Annotated[int, Meta(ge=1, le=2**20, description="a whole number from 1 to 1048576")]
Width = Annotated[int, Meta(ge=1, le=100_000, description="a whole number from 1 to 100000")]
Layers = Annotated[
    Width | tuple[Width, ...] | Annotated[str, Meta(pattern=r"^\s*[1-9]\d{0,4}\s*(,\s*[1-9]\d{0,4}\s*)*$")],
    Meta(description='whole numbers as an array, such as [50, 50], or as a text, such as "50,50"', examples=[[50, 50]]),
]
Names = Annotated[
    tuple[str, ...] | str,
    Meta(description='an array of names such as ["a", "b"], or a text such as "a,b"', examples=[["a", "b"]]),
]
Rate = Annotated[float | Literal["auto"], Meta(description='a number from 0 to 1, or "auto"')]
_WORDS = 25  # in an average text, whose vector has a length of 1


class _Part(Struct, forbid_unknown_fields=True, tag_field="kind"):
    kind_is_optional: ClassVar[bool] = False  # where the other fields tell it
    name: Name
    """Name of the column, as in rows."""


# Columns.


class NumberColumn(_Part, tag="number"):
    """A column of numbers; a column without `kind` is one."""

    kind_is_optional: ClassVar[bool] = True
    mean: AnyNumber = 0.0
    """Mean of the values, roughly."""
    std: Positive = 1.0
    """Standard deviation of the values, roughly."""
    missing: bool = False
    """Whether the model also learns from the fact that a value is missing."""

    def column(self, norm: float) -> Column:
        """The column of a table."""
        return Number(self.name, self.mean, self.std, self.missing)


class BooleanColumn(_Part, tag="boolean"):
    """A column of true and false."""

    def column(self, norm: float) -> Column:
        """The column of a table."""
        return Boolean(self.name)


class CategoryColumn(_Part, tag="category"):
    """A column with a few different values, each with a weight of its own."""

    values: Annotated[list[Scalar], Meta(min_length=1, max_length=10_000)]
    """All values that are distinguished; any other value, and a missing one, counts as one more."""

    def column(self, norm: float) -> Column:
        """The column of a table."""
        levels = texts(self.values)
        return Category(self.name, levels, (1.0 / len(levels),) * len(levels))


class HashedColumn(_Part, tag="hashed"):
    """A column with many different values, or values that nobody knows yet; they share a number of weights."""

    buckets: Count = 64
    """Number of weights."""

    def column(self, norm: float) -> Column:
        """The column of a table."""
        return Hashed(self.name, self.buckets, (1.0 / self.buckets,) * self.buckets)


class DateColumn(_Part, tag="date"):
    """A column of dates or times: the trend, the season, the day of the week."""

    mean: Annotated[datetime, Meta(description='a date and time such as "2026-01-31T00:00:00Z"')] = datetime(
        2020, 1, 1, tzinfo=UTC
    )
    """A date in the middle of those to come, roughly."""
    clock: bool = False
    """Whether the time of the day matters."""
    missing: bool = False
    """Whether the model also learns from the fact that a value is missing."""

    def column(self, norm: float) -> Column:
        """The column of a table."""
        since = self.mean if self.mean.tzinfo else self.mean.replace(tzinfo=UTC)
        return Date(self.name, float(since.timestamp() // 86400.0), self.clock, self.missing)


class TextColumn(_Part, tag="text"):
    """A column of texts, of which the words are learned."""

    buckets: Count = 2**14
    """Number of weights that the words share."""

    def column(self, norm: float) -> Column:
        """The column of a table."""
        return Text(self.name, self.buckets, norm, norm / _WORDS**0.5, ())


Columns = list[NumberColumn | BooleanColumn | CategoryColumn | HashedColumn | DateColumn | TextColumn]


# Targets.


class NumberTarget(_Part, tag="number"):
    """A target that is a number; a target without `kind` and `labels` is one."""

    kind_is_optional: ClassVar[bool] = True
    mean: AnyNumber = 0.0
    """Mean of the target, roughly."""
    std: Positive = 1.0
    """Standard deviation of the target, roughly."""

    def target(self) -> targets.Target:
        """The target of a table."""
        return targets.NumberTarget(self.name, self.mean, self.std)


class LogTarget(_Part, tag="log"):
    """A positive target whose logarithm is learned, such as a price; predictions are in the target's own units."""

    mean: AnyNumber = 0.0
    """Mean of the logarithm, roughly."""
    std: Positive = 1.0
    """Standard deviation of the logarithm, roughly."""

    def target(self) -> targets.Target:
        """The target of a table."""
        return targets.LogTarget(self.name, self.mean, self.std, why="as given")


class CountTarget(_Part, tag="count"):
    """A target that is a count: 0, 1, 2 and so on."""

    def target(self) -> targets.Target:
        """The target of a table."""
        return targets.CountTarget(self.name)


class ClassTarget(_Part, tag="class"):
    """A target that is one of several classes; a target with `labels` needs no `kind`."""

    kind_is_optional: ClassVar[bool] = True
    labels: Annotated[list[Scalar], Meta(min_length=2, max_length=1000)]
    """All classes."""

    def target(self) -> targets.Target:
        """The target of a table."""
        numeric = all(isinstance(label, int | float) and not isinstance(label, bool) for label in self.labels)
        return targets.ClassTarget(self.name, texts(self.labels), numeric)


Targets = NumberTarget | LogTarget | CountTarget | ClassTarget


def texts(values: list[Scalar]) -> tuple[str, ...]:
    """Values as a table has them."""
    return tuple(texts_of(values).to_pylist())


# Options.


_TYPES: dict[Plain, Any] = {
    Plain.WORD: str,
    Plain.NAMES: Names,
    Plain.COLUMN: Name,
    Plain.COLUMN_KINDS: dict[str, str],
    Plain.DATE_FORMATS: Names,
    Plain.WIDTHS: Layers,
    Plain.SEED: Annotated[int, Meta(ge=0, lt=2**32, description="a whole number from 0 to 4294967295")],
    Plain.SHARE: float,
    Plain.FRACTION: float,
    Plain.RATE: Rate,
    Plain.ON_OFF: bool,
}


def _type_of(kind: Plain | options.Choice | options.Count | options.Positive) -> Any:
    if isinstance(kind, options.Choice):
        return Literal[kind.words]
    if isinstance(kind, options.Count):
        return Annotated[int, Meta(ge=1, le=kind.most, description=f"a whole number from 1 to {kind.most}")]
    if isinstance(kind, options.Positive):
        return Positive | Literal[kind.words] if kind.words else Positive
    return _TYPES[kind]


def _options_struct(name: str, words: str, *, of_rows: bool) -> Any:
    """The type of a description's options, of those that `onepass fit` has; null is the default of each."""
    served = [one for one in options.OPTIONS if one.served and (of_rows or not one.of_rows)]
    own = {"__doc__": words, "field_words": {one.name: one.words(lambda one: f"`{one.name}`") for one in served}}
    types = [(one.name, _type_of(one.kind) | UnsetType | None, UNSET) for one in served]
    return defstruct(name, types, namespace=own, module=__name__, forbid_unknown_fields=True, frozen=True)


if TYPE_CHECKING:
    ModelOptions: TypeAlias = Struct
    TableOptions: TypeAlias = Struct
else:
    _AS_FIT = "those of `onepass fit` with underscores in their names."
    ModelOptions = _options_struct("ModelOptions", f"Options of the model, {_AS_FIT}", of_rows=False)
    TableOptions = _options_struct(
        "TableOptions", f"Options of the model and of how rows are read, {_AS_FIT}", of_rows=True
    )


class Bandit(Struct, forbid_unknown_fields=True):
    """Arguments of `onepass.decisions.ContextualBandit`."""

    arms: list[Name] | Annotated[dict[Name, list[AnyNumber]], Meta(min_length=1)]
    """Names of the arms, or features of each arm by its name, from which one model learns what arms have in common.
    Without any, nothing can be decided until an arm is added."""
    n_features: Count
    """How many numbers a context has."""
    policy: str | UnsetType = UNSET
    """How arms are chosen: `thompson` (the default), `ucb`, `greedy` or `epsilon_greedy`."""
    observation: str | UnsetType = UNSET
    """What rewards are: `bernoulli` for 0 or 1 (the default), `gaussian` for numbers, `poisson` or
    `negative_binomial` for counts."""
    hidden: Layers | UnsetType = UNSET
    """Learn by a network, with these numbers of units in its hidden layers."""
    prior_scale: float | UnsetType = UNSET
    """Standard deviation of the weights before the first reward."""
    noise: float | Literal["learn"] | UnsetType = UNSET
    """For rewards that are numbers: the variance of a reward around its expected value."""
    reward_range: tuple[float, float] | UnsetType = UNSET
    """For rewards that are numbers: their rough range, `[low, high]`."""
    standardize: bool | UnsetType = UNSET
    """Whether the numbers of contexts are scaled by the contexts that have come."""
    population: bool | UnsetType = UNSET
    """Whether an arm without rewards starts from what the others have in common."""
    outliers: float | UnsetType = UNSET
    """Share of the rewards that can't be trusted."""
    forgetting: float | UnsetType = UNSET
    """Below 1 older rewards count less."""
    drift: Rate | UnsetType = UNSET
    """How fast expected rewards change, from 0 to 1, or `auto`."""
    unknown_rewards: str | UnsetType = UNSET
    """What is done with a reward whose decision is unknown: `error` (the default) or `count`."""
    seed: int | UnsetType = UNSET
    """Seed of the random numbers."""


class Forecaster(Struct, forbid_unknown_fields=True):
    """Arguments of `onepass.BayesianForecaster` or, with a key, of `onepass.forecasting.ForecastingFleet`."""

    season_length: float | list[float] | Literal["auto"] | UnsetType = UNSET
    """Seasons in steps: 12 for months, [24, 168] for hours, 1 for none. `auto`, the default of a single series, takes
    those that belong to the rhythm of its times."""
    horizon: Annotated[int, Meta(ge=1, le=1000, description="a whole number from 1 to 1000")] | UnsetType = UNSET
    """For how many steps ahead the forecasts are weighed."""
    outliers: bool = False
    """Whether values that are very far off are held back until the next ones show whether they were right."""
    counts: bool = False
    """Whether values are counts 0, 1, 2, ..., whose limits are whole numbers."""
    inputs: Names = ()
    """Names of inputs that are known for every step, also ahead, such as prices or holidays."""
    by_key: bool = False
    """Whether there are many series, each with a key, which learn from each other."""
    revisions: Annotated[int, Meta(ge=1, le=10_000, description="a whole number from 1 to 10000")] = 48
    """For how many of the last steps values may come late or be corrected."""


# The four forms.


class TableFromRows(Struct, forbid_unknown_fields=True):
    """A model of a table, from some of its rows: these decide what columns hold, as with `onepass fit`."""

    rows: list[dict[str, Scalar]]
    """Rows of the table, with the target."""
    target: Name
    """Name of the target's column."""
    options: TableOptions = TableOptions()
    learn: bool = False
    """Whether the rows are also learned; otherwise only the columns and their scales are taken from them."""


class TableFromColumns(Struct, forbid_unknown_fields=True):
    """A model of a table, from a description of its columns; it has learned nothing."""

    columns: Columns
    """The columns, without the target and without the columns that `options.by` and `options.weight` name."""
    target: Targets
    """The target."""
    options: ModelOptions = ModelOptions()


class BanditFromArms(Struct, forbid_unknown_fields=True):
    """A bandit, which chooses one of several arms in a context and learns from the reward."""

    bandit: Bandit


class ForecasterFromSeasons(Struct, forbid_unknown_fields=True):
    """A forecaster, which learns the values of one or many series and predicts the next ones."""

    forecaster: Forecaster


FORMS: dict[str, type[Any]] = {
    "rows": TableFromRows,
    "columns": TableFromColumns,
    "bandit": BanditFromArms,
    "forecaster": ForecasterFromSeasons,
}
"""The forms of a description, by the field that tells which it is."""
