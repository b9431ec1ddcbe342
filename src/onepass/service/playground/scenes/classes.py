"""Two classes in the plane: the probability of one of them everywhere, and how much of it is not known."""

from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from onepass._typing import FloatArray
from onepass.service.playground.following import Follower, Learned, Recipe
from onepass.service.playground.knobs import Forgetting, HiddenActivation, HiddenUnits, PriorScale, Request
from onepass.service.playground.plane import MAX_POINTS, X_RANGE, Y_RANGE, Coordinate, floats
from onepass.service.playground.scenes.base import Scene, View, rows_learned

__all__ = ["ClassesRequest", "ClassesScene"]

_CELLS = 41  # per side of the map: what a network of 30 units predicts while one drags
NAMES = ("blue", "orange")

LabelledPoint = tuple[Coordinate, Coordinate, Literal[0, 1]]


class ClassesRequest(Request, frozen=True, kw_only=True, tag="classes"):
    """Points of two classes, and the model that tells them apart."""

    model: Annotated[
        Literal["perceptron", "network", "deep"],
        Meta(
            title="Model",
            description="The border of a perceptron is straight; that of a network can bend.",
            extra_json_schema={
                "options": {
                    "perceptron": "Perceptron",
                    "network": "Network, one hidden layer",
                    "deep": "Network, two hidden layers",
                }
            },
        ),
    ] = "perceptron"
    activation: HiddenActivation = "tanh"
    units: HiddenUnits = 12
    prior_scale: PriorScale = 1.5
    wrong_labels: Annotated[
        float,
        Meta(
            ge=0.0,
            le=0.3,
            title="Expected wrong labels",
            description="The share of points that may have the wrong label; 0 trusts all of them.",
        ),
    ] = 0.0
    forgetting: Forgetting = 1.0
    points: Annotated[list[LabelledPoint], Meta(max_length=MAX_POINTS)] = msgspec.field(default_factory=list)

    def recipe(self) -> Recipe:
        """What the model is made from."""
        perceptron = self.model == "perceptron"
        return Recipe(
            kind=self.model,
            n_inputs=2,
            activation="sigmoid" if perceptron else self.activation,
            units=self.units,
            observation="bernoulli",
            prior_scale=self.prior_scale,
            outliers=self.wrong_labels,
            forgetting=self.forgetting,
        )


class ClassesView(View, frozen=True, kw_only=True):
    """Maps of the plane, row by row from its lower edge."""

    cells: int
    """Per side."""
    probability: bytes
    """Of the second class."""
    std: bytes
    """What is not known of the probability."""
    doubts: list[float]
    """Probability, of each point, that its label is wrong."""
    n_seen: int
    log_evidence: float
    correct: float | None
    """Share of the points on their own side of the border."""


class ClassesScene(Scene):
    """One model of the plane."""

    def __init__(self) -> None:
        self._follower = Follower()

    def view(self, request: ClassesRequest) -> ClassesView:
        """Learn the points that are new, and draw the maps."""
        follower = self._follower
        rows = [(x, y, float(label)) for x, y, label in request.points]
        learned = follower.follow(request.recipe(), rows)
        plane = follower.predict(_plane())
        array = np.array(rows, dtype=np.float64).reshape(-1, 3)
        at_points = follower.predict(array[:, :2]).mean if rows else np.empty(0)
        return ClassesView(
            says=_says(learned, request.points),
            cells=_CELLS,
            probability=floats(plane.mean),
            std=floats(np.sqrt(plane.epistemic)),
            doubts=self._doubts(array),
            n_seen=follower.model.n_seen,
            log_evidence=follower.model.log_evidence,
            correct=float(np.mean((at_points > 0.5) == array[:, 2])) if rows else None,
        )

    def _doubts(self, rows: FloatArray) -> list[float]:
        if not len(rows):
            return []
        return [float(doubt) for doubt in self._follower.model.outlier_probability(rows[:, :2], rows[:, 2])]


def _plane() -> FloatArray:
    x, y = np.meshgrid(np.linspace(*X_RANGE, _CELLS), np.linspace(*Y_RANGE, _CELLS))
    return np.stack([x.ravel(), y.ravel()], axis=1)


def _says(learned: Learned, points: list[LabelledPoint]) -> str:
    effect = learned.effect
    if effect is None or learned.n_new != 1 or learned.anew:
        return rows_learned(learned, len(points))
    x, y, label = points[-1]
    before, after = (mean if label else 1.0 - mean for mean in (effect.mean_before, effect.mean_after))
    return (
        f"Point {len(points)} at ({x:.2f}, {y:.2f}) is {NAMES[label]}: one step, and the probability of {NAMES[label]} "
        f"there went from {before:.0%} to {after:.0%}."
    )
