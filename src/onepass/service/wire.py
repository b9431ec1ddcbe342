"""Requests and answers as they travel: typed, checked when they are decoded, and the source of the OpenAPI document."""

from typing import Annotated, Any

from msgspec import Meta, Struct

__all__ = [
    "ArmsRequest",
    "DecideRequest",
    "Decision",
    "Declared",
    "ExplainRequest",
    "Explained",
    "Id",
    "Inputs",
    "LabelRequest",
    "LearnRequest",
    "Learned",
    "PredictRequest",
    "Prediction",
    "RewardRequest",
    "RollbackRequest",
    "Scalar",
]

Scalar = bool | int | float | str | None
Inputs = dict[str, Scalar] | list[float | None]
"""A row: values by column, or the numbers of all features in their order."""

Id = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern="^[^\\x00-\\x1f\\x7f]*$(?!\\n)",  # "$" alone lets a last line break pass
        description="a text of 1 to 200 characters without control characters",
    ),
]
Level = Annotated[float, Meta(gt=0.0, lt=1.0, description="a number between 0 and 1, such as 0.95")]


class PredictRequest(Struct, forbid_unknown_fields=True):
    """A row to predict; with an id it is kept until its label comes."""

    x: Inputs
    id: Id | None = None
    key: str | None = None
    """Of a fleet of perceptrons: whose model answers."""
    level: Level = 0.95
    """Of the interval from ``lower`` to ``upper``."""


class Prediction(Struct, omit_defaults=True):
    """What is expected: of a number mean, standard deviation and interval, of classes their probabilities."""

    version: int
    """Number of the last event that the model had learned from."""
    id: str | None = None
    mean: float | None = None
    std: float | None = None
    lower: float | None = None
    upper: float | None = None
    label: str | None = None
    probabilities: dict[str, float] | None = None
    learned: bool = False
    """Whether a label that had come before was learned with it."""


class LearnRequest(Struct, forbid_unknown_fields=True):
    """A row with its target; with an id it is learned once, however often it is sent."""

    x: Inputs
    y: Scalar
    id: Id | None = None
    key: str | None = None


class LabelRequest(Struct, forbid_unknown_fields=True):
    """The target of an earlier prediction."""

    id: Id
    y: Scalar


class Learned(Struct):
    """What became of a row or a label."""

    id: str
    status: str
    """``learned``; or ``waiting``: the label's prediction has not come yet."""
    version: int
    n_seen: int
    """Rows that the model has learned, with this one."""


class DecideRequest(Struct, forbid_unknown_fields=True):
    """A context in which a bandit chooses."""

    context: list[float]
    id: Id | None = None
    n: Annotated[int, Meta(ge=1, le=1000)] = 1
    arms: list[str] | None = None


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
    """What came of a decision."""

    id: Id
    reward: float
    arm: str | None = None


class ExplainRequest(Struct, forbid_unknown_fields=True):
    """A row whose prediction is to be explained."""

    x: Inputs
    key: str | None = None


class Explained(Struct):
    """What each column adds to the prediction of an average row, with its standard deviation."""

    unit: str
    """What is explained, such as ``price`` or ``log odds of yes``."""
    baseline: float
    total: float
    columns: list[dict[str, Any]]
    """``column``, ``value``, ``add``, ``std``; the largest first."""
    version: int


class RollbackRequest(Struct, forbid_unknown_fields=True):
    """Where to go back to."""

    version: Annotated[int, Meta(ge=1)]


class Declared(Struct, forbid_unknown_fields=True):
    """A new model, described; exactly one of the first three is given.

    ``rows`` are some rows of the table, from which columns, scales and model are inferred as ``onepass fit`` does.
    """

    rows: list[dict[str, Scalar]] | None = None
    columns: list[dict[str, Any]] | None = None
    bandit: dict[str, Any] | None = None
    target: Any = None
    """Name of the target's column; for ``columns`` its description."""
    options: dict[str, Any] = {}
    """As the options of ``onepass fit``, with underscores: ``hidden``, ``outliers``, ``drift`` and others."""
    learn: bool = False
    """Whether ``rows`` are also learned."""
