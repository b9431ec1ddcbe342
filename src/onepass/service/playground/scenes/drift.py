"""A sensor whose level changes: one model forgets nothing, one forgets at a fixed rate, one finds the rate itself."""

from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from onepass._typing import FloatArray
from onepass.service.playground.following import Follower, Recipe
from onepass.service.playground.knobs import Request
from onepass.service.playground.plane import floats
from onepass.service.playground.scenes.base import Scene, View

__all__ = ["MAX_STEPS", "DriftRequest", "DriftScene", "readings"]

MAX_STEPS = 400
_DAY = 24  # steps
_NOISE = 0.15
_RECENT = 50  # steps, over which the models are compared


class DriftRequest(Request, frozen=True, kw_only=True, tag="drift"):
    """A world, and how far it has gone."""

    world: Annotated[
        Literal["still", "wanders", "jumps", "grows"],
        Meta(
            title="What changes",
            description="What happens to the sensor's level, or to its daily cycle.",
            extra_json_schema={
                "options": {
                    "still": "Nothing changes",
                    "wanders": "The level wanders",
                    "jumps": "The level jumps",
                    "grows": "The daily cycle grows",
                }
            },
        ),
    ] = "jumps"
    speed: Annotated[
        float,
        Meta(
            ge=0.0,
            le=3.0,
            title="Size of the change",
            description="How much the level, or the daily cycle, changes.",
            extra_json_schema={"when": {"world": ["wanders", "jumps", "grows"]}},
        ),
    ] = 1.0
    spikes: Annotated[
        float, Meta(ge=0.0, le=0.2, title="Spikes", description="The share of readings that are wrong.")
    ] = 0.0
    robust: Annotated[
        bool, Meta(title="Robust models", description="Let all models expect that 5 % of the readings are wrong.")
    ] = False
    forgetting: Annotated[
        float,
        Meta(
            ge=0.8,
            le=0.999,
            title="Memory of the forgetting model",
            description="How much a reading still counts one step later: at 0.95 about twenty readings count.",
        ),
    ] = 0.95
    seed: Annotated[int, Meta(ge=0, le=99, title="Other readings", description="Seed of the random readings.")] = 0
    steps: Annotated[int, Meta(ge=0, le=MAX_STEPS)] = 0


class Track(msgspec.Struct, frozen=True):
    """What one model predicted for each reading before it saw it."""

    name: str
    mean: bytes
    std: bytes
    miss: float
    """Root mean square of the distance from the truth, over the last readings."""


class DriftView(View, frozen=True, kw_only=True):
    """The readings so far, and what was predicted of them."""

    readings: bytes
    truth: bytes
    tracks: list[Track]
    rates: dict[str, float]
    """How fast the world moves, as the third model believes: the probability of each rate."""


class DriftScene(Scene):
    """Three models of one stream."""

    def __init__(self) -> None:
        self._followers = {"plain": Follower(), "forgetting": Follower(), "auto": Follower()}

    def view(self, request: DriftRequest) -> DriftView:
        """Let every model predict and learn the readings that are new."""
        truth, values = readings(request)
        now = request.steps
        rows = [(*inputs, value) for inputs, value in zip(_cycle(now).tolist(), values[:now].tolist(), strict=True)]
        for name, follower in self._followers.items():
            follower.follow(_recipe(request, name), rows)
        tracks = [_track(name, follower, truth[:now]) for name, follower in self._followers.items()]
        rates = {str(rate): float(share) for rate, share in self._followers["auto"].model.drift_.items()}
        return DriftView(
            says=_says(now, tracks),
            readings=floats(values[:now]),
            truth=floats(truth[:now]),
            tracks=tracks,
            rates=rates,
        )


def readings(request: DriftRequest) -> tuple[FloatArray, FloatArray]:
    """The truth and the readings of all steps, ``(MAX_STEPS,)`` each; those that come later change none before."""
    rng = np.random.default_rng(request.seed)
    steps = np.arange(MAX_STEPS)
    wandering = np.cumsum(rng.normal(size=MAX_STEPS))
    noise, wild = rng.normal(size=(2, MAX_STEPS))
    is_spike = rng.random(MAX_STEPS) < request.spikes
    jumps = np.cumsum(np.where(steps % 80 == 79, rng.choice([-1.0, 1.0], size=MAX_STEPS), 0.0))
    level = {
        "wanders": 0.08 * request.speed * wandering,
        "jumps": 1.2 * request.speed * jumps,
    }.get(request.world, np.zeros(MAX_STEPS))
    size = 0.4 + (request.speed * steps / 150.0 if request.world == "grows" else 0.0)
    truth = level + size * np.sin(2.0 * np.pi * steps / _DAY)
    return truth, truth + np.where(is_spike, 3.0 * np.sign(wild) + wild, _NOISE * noise)


def _cycle(n: int) -> FloatArray:
    angle = 2.0 * np.pi * np.arange(n) / _DAY
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def _recipe(request: DriftRequest, name: str) -> Recipe:
    return Recipe(
        kind="perceptron",
        n_inputs=2,
        activation="linear",
        noise=_NOISE,
        prior_scale=2.0,
        outliers=0.05 if request.robust else 0.0,
        forgetting=request.forgetting if name == "forgetting" else 1.0,
        drift="auto" if name == "auto" else 0.0,
    )


def _track(name: str, follower: Follower, truth: FloatArray) -> Track:
    predicted = np.array(follower.predicted).reshape(-1, 2)
    misses = (predicted[:, 0] - truth)[-_RECENT:]
    return Track(
        name,
        floats(predicted[:, 0]),
        floats(predicted[:, 1]),
        float(np.sqrt(np.mean(misses**2))) if len(misses) else 0.0,
    )


def _says(now: int, tracks: list[Track]) -> str:
    if not now:
        return "No reading yet: press Play."
    misses = ", ".join(f"{track.name} {track.miss:.2f}" for track in tracks)
    return f"Reading {now}. Mean distance from the truth over the last {min(now, _RECENT)}: {misses}."
