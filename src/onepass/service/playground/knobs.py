"""Requests, and the knobs that several scenes have, each with its range and the words on the page.

A knob is a field of a request: its type says what is allowed, and the page makes its control from the same words. In
``extra_json_schema``, ``options`` are the choices in their order, ``scale`` is how a slider runs, and ``when`` names
the settings with which the knob does anything.
"""

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from onepass.service.playground.following import Recipe

__all__ = [
    "Activation",
    "Forgetting",
    "HiddenActivation",
    "HiddenUnits",
    "NumberRequest",
    "PriorScale",
    "Request",
    "Units",
]

_MOST_UNITS = 20  # of two such layers all correlations are learned while one drags a point
_ACTIVATIONS = {"linear": "linear", "relu": "ReLU", "tanh": "tanh", "sigmoid": "sigmoid", "softplus": "softplus"}

Activation: TypeAlias = Annotated[
    Literal["linear", "relu", "tanh", "sigmoid", "softplus"],
    Meta(
        title="Activation",
        description="The function that turns a unit's weighted sum into its output. A linear perceptron is a straight "
        "line.",
        extra_json_schema={"options": _ACTIVATIONS, "when": {"model": ["perceptron", "network", "deep"]}},
    ),
]
HiddenActivation: TypeAlias = Annotated[
    Literal["relu", "tanh", "sigmoid"],
    Meta(
        title="Activation",
        description="The function that turns a hidden unit's weighted sum into its output.",
        extra_json_schema={
            "options": {name: _ACTIVATIONS[name] for name in ("relu", "tanh", "sigmoid")},
            "when": {"model": ["network", "deep"]},
        },
    ),
]
Units: TypeAlias = Annotated[
    int,
    Meta(
        ge=3,
        le=_MOST_UNITS,
        title="Units",
        description="Number of bumps, or of units in a hidden layer. The more there are, the more the curve can bend.",
        extra_json_schema={"when": {"model": ["bumps", "network", "deep"]}},
    ),
]
HiddenUnits: TypeAlias = Annotated[
    int,
    Meta(
        ge=3,
        le=_MOST_UNITS,
        title="Units",
        description="Number of units in a hidden layer. The more there are, the more the border can bend.",
        extra_json_schema={"when": {"model": ["network", "deep"]}},
    ),
]
PriorScale: TypeAlias = Annotated[
    float,
    Meta(
        ge=0.1,
        le=5.0,
        title="Prior scale",
        description="How large weights may be, before any data: it sets the width of the band where there are no "
        "points.",
        extra_json_schema={"scale": "log"},
    ),
]
Forgetting: TypeAlias = Annotated[
    float,
    Meta(
        ge=0.5,
        le=1.0,
        title="Memory",
        description="How much a point still counts after one more has come: 1 forgets nothing; at 0.9 the point before "
        "the last counts 90 %, the one before that 81 %.",
    ),
]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="scene"):
    """All that the page shows, but for what is computed."""

    id: Annotated[int, Meta(ge=0)] = 0
    """By which the page knows the answer."""


class NumberRequest(Request, frozen=True, kw_only=True):
    """A request with the knobs of a model of numbers."""

    model: Annotated[
        Literal["perceptron", "bumps", "network", "deep"],
        Meta(
            title="Model",
            extra_json_schema={
                "options": {
                    "perceptron": "Perceptron",
                    "bumps": "Perceptron on bumps",
                    "network": "Network, one hidden layer",
                    "deep": "Network, two hidden layers",
                }
            },
            description="A perceptron adds up its weighted inputs: x itself, or how near x is to each of several "
            "places (bumps). A network learns such inputs by itself.",
        ),
    ] = "bumps"
    activation: Activation = "linear"
    units: Units = 12
    prior_scale: PriorScale = 1.0
    noise: Annotated[
        float,
        Meta(
            ge=0.02,
            le=1.0,
            title="Noise",
            description="Standard deviation of the points around the true curve.",
            extra_json_schema={"scale": "log", "when": {"learn_noise": [False]}},
        ),
    ] = 0.15
    learn_noise: Annotated[
        bool, Meta(title="Learn the noise", description="Estimate from the errors how large the noise is.")
    ] = False

    def recipe(self, **others: Any) -> Recipe:
        """What the model is made from."""
        return Recipe(
            kind=self.model,
            activation="linear" if self.model == "bumps" else self.activation,
            units=self.units,
            noise="learn" if self.learn_noise else self.noise,
            prior_scale=self.prior_scale,
            **others,
        )
