"""The same points, learned by a model that trusts all of them and by one that expects outliers."""

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from onepass.service.playground.following import Follower
from onepass.service.playground.knobs import NumberRequest
from onepass.service.playground.plane import MAX_POINTS, NumberPoint
from onepass.service.playground.scenes.base import Scene, View, numbers_learned, plural
from onepass.service.playground.scenes.curve import Band, band_of

__all__ = ["OutliersRequest", "OutliersScene"]

_DOUBTED = 0.5


class OutliersRequest(NumberRequest, frozen=True, kw_only=True, tag="outliers"):
    """Points, and the share of them that the robust model expects to be wrong."""

    share: Annotated[
        float,
        Meta(
            ge=0.01,
            le=0.4,
            title="Expected outliers",
            description="The share of observations that the robust model expects to be wrong at first; it learns the "
            "share on the way.",
        ),
    ] = 0.05
    points: Annotated[list[NumberPoint], Meta(max_length=MAX_POINTS)] = msgspec.field(default_factory=list)


class OutliersView(View, frozen=True, kw_only=True):
    """Both beliefs, and the points that one of them does not believe."""

    plain: Band
    robust: Band
    doubts: list[float]
    """Probability, of each point, that it is not to be trusted."""
    share: float
    """Estimated share of points not to be trusted."""


class OutliersScene(Scene):
    """Two models of the same points."""

    def __init__(self) -> None:
        self._plain, self._robust = Follower(), Follower()

    def view(self, request: OutliersRequest) -> OutliersView:
        """Learn the points that are new, twice."""
        self._plain.follow(request.recipe(), request.points)
        learned = self._robust.follow(request.recipe(outliers=request.share), request.points)
        doubts = self._doubts(request.points)
        learned_words = numbers_learned(learned, request.points)
        return OutliersView(
            says=f"{learned_words} {_doubted(doubts)}" if doubts else learned_words,
            plain=band_of(self._plain),
            robust=band_of(self._robust),
            doubts=doubts,
            share=float(self._robust.model.outliers_),
        )

    def _doubts(self, points: list[tuple[float, float]]) -> list[float]:
        if not points:
            return []
        assert self._robust.recipe is not None
        rows = np.array(points)
        inputs = self._robust.recipe.features(rows[:, :1])
        return [float(doubt) for doubt in self._robust.model.outlier_probability(inputs, rows[:, 1])]


def _doubted(doubts: list[float]) -> str:
    n_doubted = sum(doubt > _DOUBTED for doubt in doubts)
    verdict = f"does not trust {plural(n_doubted, 'point')}" if n_doubted else "trusts all points"
    return f"The robust model {verdict}."
