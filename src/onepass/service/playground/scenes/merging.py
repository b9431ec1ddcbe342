"""Two models that learned different points, merged, and compared with one model that learned all points."""

import copy
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from onepass import merge
from onepass.service.playground.following import Follower, Recipe
from onepass.service.playground.knobs import NumberRequest
from onepass.service.playground.plane import GRID, MAX_POINTS, Coordinate
from onepass.service.playground.scenes.base import Scene, View
from onepass.service.playground.scenes.curve import Band, band_of

__all__ = ["MergingRequest", "MergingScene"]

_ROUNDING = 1e-9  # of standard deviations: far above what sums of a few hundred rows lose, and far below what one sees

HalfPoint = tuple[Coordinate, Coordinate, Literal[0, 1]]


class MergingRequest(NumberRequest, frozen=True, kw_only=True, tag="merging"):
    """Points, each of which one of two models learns."""

    points: Annotated[list[HalfPoint], Meta(max_length=MAX_POINTS)] = msgspec.field(default_factory=list)


class MergingView(View, frozen=True, kw_only=True):
    """The belief of each half, of both merged, and of one model that has seen everything."""

    halves: list[Band]
    merged: Band | None
    """None where the halves contradict each other so that no Gaussian is left."""
    whole: Band
    difference: float | None
    """The largest between the means of merged and whole, in standard deviations of the whole."""
    exact: bool


class MergingScene(Scene):
    """A model per half, and one of all points."""

    def __init__(self) -> None:
        self._halves, self._whole = (Follower(), Follower()), Follower()

    def view(self, request: MergingRequest) -> MergingView:
        """Learn what is new in each half and in the whole, and merge."""
        recipe = request.recipe()
        for half, follower in enumerate(self._halves):
            follower.follow(recipe, [(x, y) for x, y, of in request.points if of == half])
        self._whole.follow(recipe, [(x, y) for x, y, _ in request.points])
        merged, why = self._merge(recipe)
        difference = None if merged is None else self._difference(merged)
        exact = difference is not None and difference < _ROUNDING
        counts = " and ".join(str(follower.model.n_seen) for follower in self._halves)
        return MergingView(
            says=f"The halves have learned {counts} points. {why or _compared(difference, exact)}",
            halves=[band_of(follower) for follower in self._halves],
            merged=None if merged is None else band_of(merged),
            whole=band_of(self._whole),
            difference=difference,
            exact=exact,
        )

    def _merge(self, recipe: Recipe) -> tuple[Follower | None, str]:
        """The merged model or, if there is none, why."""
        merged = Follower()
        merged.follow(recipe, [])
        try:
            merged.model = merge(recipe.make(), [copy.deepcopy(follower.model) for follower in self._halves])
        except ValueError as error:
            return None, f"They can't be merged: {error}."
        return merged, ""

    def _difference(self, merged: Follower) -> float:
        whole = self._whole.predict(GRID[:, None])
        gaps = np.abs(merged.predict(GRID[:, None]).mean - whole.mean)
        return float(np.max(gaps / np.sqrt(whole.epistemic)))


def _compared(difference: float | None, exact: bool) -> str:
    if exact:
        return "Merged, they are the same as the model that has learned all points, up to rounding."
    return (
        f"Merged, they are {difference:.2f} standard deviations away from the model that has seen all points, at most: "
        "this model is not linear, and merging it is an approximation."
    )
