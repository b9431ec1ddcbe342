"""A curve through points: the band of its uncertainty shrinks with every point."""

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from onepass.service.playground.following import Follower, Learned
from onepass.service.playground.knobs import Forgetting, NumberRequest
from onepass.service.playground.plane import GRID, MAX_POINTS, NumberPoint, floats
from onepass.service.playground.scenes.base import Scene, View, numbers_learned

__all__ = ["Band", "CurveRequest", "CurveScene", "band_of"]


class CurveRequest(NumberRequest, frozen=True, kw_only=True, tag="curve"):
    """Points, and the model that learns them."""

    forgetting: Forgetting = 1.0
    draws: Annotated[
        int,
        Meta(
            ge=0,
            le=20,
            title="Functions drawn",
            description="Number of functions drawn at random from what the model believes: each may be the true curve.",
        ),
    ] = 6
    points: Annotated[list[NumberPoint], Meta(max_length=MAX_POINTS)] = msgspec.field(default_factory=list)


class Band(msgspec.Struct, frozen=True):
    """A prediction on the grid."""

    mean: bytes
    std: bytes
    """What is not known of the function."""
    total: bytes
    """That and the noise: where the next observation may fall."""


class Weight(msgspec.Struct, frozen=True):
    """The belief about one weight."""

    mean: float
    std: float


class CurveView(View, frozen=True, kw_only=True):
    """The belief as a band, and the numbers next to it."""

    band: Band
    draws: list[bytes]
    n_seen: int
    log_evidence: float
    noise: float
    weights: list[Weight]
    """Of perceptrons, the bias first; empty for networks, which have too many to show."""
    n_weights: int
    surprise: float | None
    """How far the last point was from what was predicted, in standard deviations."""


class CurveScene(Scene):
    """One model, followed point by point."""

    def __init__(self) -> None:
        self._follower = Follower()

    def view(self, request: CurveRequest) -> CurveView:
        """Learn the points that are new, and show the band."""
        follower = self._follower
        learned = follower.follow(request.recipe(forgetting=request.forgetting), request.points)
        model = follower.model
        draws = follower.draw(GRID[:, None], request.draws) if request.draws else np.empty((0, len(GRID)))
        return CurveView(
            says=numbers_learned(learned, request.points),
            band=band_of(follower),
            draws=[floats(draw) for draw in draws],
            n_seen=model.n_seen,
            log_evidence=model.log_evidence,
            noise=float(np.sqrt(np.ravel(follower.predict(GRID[:1, None]).aleatoric)[0])),
            weights=_weights(follower),
            n_weights=len(model.mean),
            surprise=_surprise(follower, learned, request.points),
        )


def band_of(follower: Follower) -> Band:
    """What a model predicts on the grid."""
    seen = follower.predict(GRID[:, None])
    return Band(floats(seen.mean), floats(np.sqrt(seen.epistemic)), floats(seen.std))


def _weights(follower: Follower) -> list[Weight]:
    assert follower.recipe is not None
    if follower.recipe.kind not in ("perceptron", "bumps"):
        return []
    model = follower.model
    pairs = zip(model.mean.tolist(), np.sqrt(np.diag(model.cov)).tolist(), strict=True)
    return [Weight(mean, std) for mean, std in pairs]


def _surprise(follower: Follower, learned: Learned, points: list[tuple[float, float]]) -> float | None:
    if learned.effect is None:
        return None
    mean, std = follower.predicted[-1]
    return abs(points[-1][1] - mean) / std
