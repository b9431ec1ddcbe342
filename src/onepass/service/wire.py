"""Types of all requests and answers: they are checked when decoded, and the OpenAPI document is made from them."""

from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

__all__ = [
    "ArmRequest",
    "ArmsRequest",
    "Asked",
    "DecideRequest",
    "Decision",
    "Declared",
    "Distribution",
    "ExpireRequest",
    "ExplainRequest",
    "Explained",
    "ForecastRequest",
    "ForecastStep",
    "Forecasted",
    "Id",
    "Inputs",
    "Interval",
    "Key",
    "LabelRequest",
    "LearnRequest",
    "Learned",
    "ModelName",
    "Observed",
    "PredictRequest",
    "Prediction",
    "RewardRequest",
    "RollbackRequest",
    "RowsRequest",
    "Scalar",
]

Scalar = bool | int | float | str | None
Inputs = dict[str, Scalar] | list[float | None]
"""A row: values by column name, or a list with the numbers of all features, in order."""

Key = Annotated[
    str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    Meta(description="a text, or a whole number where the keys of the fleet are"),
]

Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern="^[^\\x00-\\x1f\\x7f]*$(?!\\n)",  # "$" alone lets a last line break pass
        description="a text of 1 to 200 characters without control characters",
    ),
]
ModelName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$(?!\\n)",
        description="up to 64 letters, digits, '_', '.' and '-', the first a letter or digit",
    ),
]
ArmName = str | int
Level = Annotated[float, Meta(gt=0.0, lt=1.0, description="a number between 0 and 1, such as 0.95")]


class Asked(NamedTuple):
    """Which intervals a prediction is to have."""

    level: float
    levels: tuple[float, ...] = ()


class PredictRequest(Struct, forbid_unknown_fields=True):
    """A row to predict; with an id it is stored until its label comes."""

    x: Inputs
    id: Id | None = None
    key: Key | None = None
    """For a fleet of perceptrons: the key whose perceptron answers."""
    level: Level = 0.95
    """Probability of the interval from ``lower`` to ``upper``."""
    levels: list[Level] = []
    """Probabilities of more intervals, which never cross."""

    @property
    def asked(self) -> Asked:
        """Which intervals are asked for."""
        return Asked(self.level, tuple(sorted(set(self.levels))))


class Interval(Struct):
    """Limits between which a new target lies with a probability."""

    level: float
    lower: float
    upper: float


class Prediction(Struct, omit_defaults=True):
    """What is predicted: the distribution of a number, in its own units, or the probabilities of classes."""

    version: int
    """Number of the last event that the model had learned."""
    id: str | None = None
    mean: float | None = None
    std: float | None = None
    epistemic: float | None = None
    """The part of the variance that comes from not knowing the weights."""
    aleatoric: float | None = None
    """The part of the variance that no data can reduce: the noise."""
    lower: float | None = None
    upper: float | None = None
    intervals: list[Interval] | None = None
    """Those of ``levels``, the narrowest first."""
    label: str | None = None
    probabilities: dict[str, float] | None = None
    learned: bool = False
    """Whether the label had come before the prediction, and was learned now."""


class LearnRequest(Struct, forbid_unknown_fields=True):
    """A row with its target; with an id it is learned once, however often it is sent."""

    x: Inputs
    y: Scalar
    id: Id | None = None
    key: Key | None = None


class LabelRequest(Struct, forbid_unknown_fields=True):
    """The target of an earlier prediction."""

    id: Id
    y: Scalar


class Learned(Struct):
    """Whether a row, a label or a reward was learned."""

    id: str
    status: str
    """``learned``; or ``waiting`` if the prediction that a label belongs to has not come yet."""
    version: int
    n_seen: int
    """Rows that the model has learned, including this one, and also those that it has set aside."""


class DecideRequest(Struct, forbid_unknown_fields=True):
    """A context in which a bandit chooses."""

    context: list[float]
    id: Id | None = None
    n: Annotated[int, Meta(ge=1, le=1000)] = 1
    arms: list[ArmName] | dict[str, list[float]] | None = None
    """Those that can be chosen this time, by default all; arms with features may be new ones, for this decision."""


class ArmsRequest(Struct, forbid_unknown_fields=True):
    """A context for which arms are compared; nothing is decided."""

    context: list[float]


class Decision(Struct):
    """What a bandit has chosen, the best first."""

    id: str
    arm: Any
    arms: list[Any]
    propensity: float
    """Probability with which the first arm was chosen."""
    version: int


class RewardRequest(Struct, forbid_unknown_fields=True):
    """The reward of a decision."""

    id: Id
    reward: float
    arm: ArmName | None = None
    """Which of several arms that were chosen; by default the first."""


class ExpireRequest(Struct, forbid_unknown_fields=True):
    """Decisions that no reward is expected for any more."""

    after: Annotated[float, Meta(ge=0.0)]
    """Their age, in seconds."""
    default: float | None = None
    """The reward to learn for each of them, such as 0 where no click came; by default nothing is learned."""


class ArmRequest(Struct, forbid_unknown_fields=True):
    """What becomes of an arm."""

    arm: ArmName
    change: Literal["add", "remove", "pause", "resume"]
    features: list[float] | None = None
    """Of an arm that is added, where arms have features."""


class ExplainRequest(Struct, forbid_unknown_fields=True):
    """A row whose prediction is to be explained."""

    x: Inputs
    key: Key | None = None


class Explained(Struct):
    """What each column adds to the prediction for an average row, with its standard deviation."""

    unit: str
    """What is explained, such as ``price`` or ``log odds of yes``."""
    baseline: float
    """The prediction for an average row."""
    total: float
    """The prediction for this row: the baseline plus what all columns add."""
    columns: list[dict[str, Any]]
    """One entry per column with ``column``, ``value``, ``add`` and ``std``, the largest first."""
    version: int


class ForecastRequest(Struct, forbid_unknown_fields=True):
    """The steps to forecast of a series."""

    horizon: Annotated[int, Meta(ge=1, le=1000, description="a whole number from 1 to 1000")]
    """How many steps ahead."""
    levels: tuple[Level, ...] = (0.8, 0.95)
    """Probabilities of the intervals, which never cross."""
    inputs: list[dict[str, Scalar]] | None = None
    """For a forecaster with inputs: those of every step, by name."""
    key: Key | None = None
    """For a fleet: the series."""
    recent: Annotated[int, Meta(ge=0, le=10_000, description="a whole number from 0 to 10000")] = 0
    """How many of the latest values to return as well, of those that may still be revised."""


class Distribution(Struct):
    """The distribution of a number that is still to come."""

    mean: float
    std: float
    intervals: list[Interval]
    """Those of ``levels``, the narrowest first."""


class ForecastStep(Distribution):
    """The distribution of the value of one step."""

    time: str | float
    """A time in UTC, or a number where the times of the series are numbers."""


class Observed(Struct):
    """A value of a series."""

    time: str | float
    y: float


class Forecasted(Struct):
    """The forecast of a series."""

    version: int
    """Number of the last event that the model had learned."""
    steps: list[ForecastStep]
    total: Distribution
    """The sum over all steps."""
    recent: list[Observed]
    """The latest values, if they were asked for."""


class RollbackRequest(Struct, forbid_unknown_fields=True):
    """The version to go back to."""

    version: Annotated[int, Meta(ge=1)]


class Declared(Struct, forbid_unknown_fields=True):
    """Description of a new model as it is decoded: one of ``rows``, ``columns``, ``bandit`` or ``forecaster`` is given.

    That tells its form, by whose type in `onepass.service.description` it is checked.
    """

    rows: list[dict[str, Scalar]] | None = None
    columns: list[dict[str, Any]] | None = None
    bandit: dict[str, Any] | None = None
    forecaster: dict[str, Any] | None = None
    target: Any = None
    options: dict[str, Any] = {}
    learn: bool = False


class RowsRequest(NamedTuple):
    """Rows of one request, in one of two forms, not yet checked against a model."""

    table: Any = None
    """A `pyarrow.RecordBatch` with a column per input, and the target's column where rows are to be learned."""
    records: list[dict[str, Any]] | None = None
    """JSON lines, decoded: ``{"x": {...}, "y": ..., "id": ...}``."""

    def __len__(self) -> int:
        return len(self.records) if self.records is not None else int(self.table.num_rows)
