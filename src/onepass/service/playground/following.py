"""The models of the playground, and how one follows the points on the page by the shortest way.

A point that is added is one rank-one step of the model there is. A point that was moved or removed, or another setting,
changes the past, and a belief can't unlearn: then all rows are learned again from the prior, in their order.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from onepass import BayesianNetwork, BayesianPerceptron
from onepass._typing import FloatArray
from onepass.likelihoods import named
from onepass.models.mixture import with_drift
from onepass.service.playground.plane import X_RANGE

__all__ = ["Effect", "Follower", "Learned", "Recipe", "Row"]

Row: TypeAlias = tuple[float, ...]
"""One observation: the inputs, and last the target."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is made from; equal recipes make equal models."""

    kind: Literal["perceptron", "bumps", "network", "deep"]
    n_inputs: int = 1
    activation: str
    units: int = 12
    observation: Literal["gaussian", "bernoulli"] = "gaussian"
    noise: float | Literal["learn"] = "learn"
    """Standard deviation of numbers around the truth."""
    prior_scale: float = 1.0
    outliers: float = 0.0
    forgetting: float = 1.0
    drift: float | Literal["auto"] = 0.0

    def make(self) -> Any:
        """A model that has learned nothing."""
        common: dict[str, Any] = {
            "observation": self.observation,
            "outliers": self.outliers,
            "forgetting": self.forgetting,
            "drift": self.drift,
        }
        if named(self.observation).takes_noise:
            common["noise"] = "learn" if self.noise == "learn" else self.noise**2
        if self.kind in ("perceptron", "bumps"):
            n_features = self.units if self.kind == "bumps" else self.n_inputs
            return with_drift(BayesianPerceptron, n_features, self.activation, cov=self.prior_scale**2, **common)
        hidden = (self.units,) if self.kind == "network" else (self.units, self.units)
        common["prior_scale"] = self.prior_scale
        return with_drift(BayesianNetwork, self.n_inputs, hidden, activation=self.activation, **common)

    def features(self, X: FloatArray) -> FloatArray:
        """What the model sees of inputs ``(n, d)``: themselves, or how near each is to every bump."""
        if self.kind != "bumps":
            return X
        centres, distance = np.linspace(*X_RANGE, self.units, retstep=True)
        return np.asarray(np.exp(-0.5 * ((X - centres) / distance) ** 2))


class Effect(NamedTuple):
    """What learning one row did to the prediction at its own input."""

    mean_before: float
    std_before: float
    mean_after: float
    std_after: float


class Learned(NamedTuple):
    """How a model came to know the rows asked for."""

    n_new: int
    """Rows that were learned just now."""
    anew: bool
    """Whether it gave up what it had learned, and started again from the prior."""
    effect: Effect | None
    """Of the last row, if it was learned just now."""


class Follower:
    """A model, and the rows it has learned."""

    def __init__(self) -> None:
        self.recipe: Recipe | None = None
        self.model: Any = None
        self._rows: list[Row] = []
        self.predicted: list[tuple[float, float]] = []
        """Mean and standard deviation of each target, noise included, before it was learned."""

    def follow(self, recipe: Recipe, rows: Sequence[Row]) -> Learned:
        """Come to have learned exactly these rows, in this order."""
        known = len(self._rows)
        fits = recipe == self.recipe and list(rows[:known]) == self._rows
        anew = not fits and known > 0
        if not fits:
            self.recipe, self.model, known = recipe, recipe.make(), 0
            self._rows, self.predicted = [], []
        new = rows[known:]
        if not new:
            return Learned(0, anew, None)
        self._learn(new[:-1])
        return Learned(len(new), anew, self._effect(new[-1]))

    def _learn(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        inputs, targets = self._split(rows)
        before = self.model.predict_then_learn(inputs, targets)
        self._rows += rows
        self.predicted += zip(before.mean.tolist(), before.std.tolist(), strict=True)

    def _effect(self, row: Row) -> Effect:
        """Learn one row, and see what that does at its input."""
        inputs, _ = self._split([row])
        before = self.model.predict(inputs)
        self._learn([row])
        after = self.model.predict(inputs)
        return Effect(
            before.mean.item(), before.epistemic.item() ** 0.5, after.mean.item(), after.epistemic.item() ** 0.5
        )

    def _split(self, rows: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
        assert self.recipe is not None
        array = np.array(rows, dtype=np.float64)
        return self.recipe.features(array[:, :-1]), array[:, -1]

    def predict(self, X: FloatArray) -> Any:
        """The model's prediction for inputs ``(n, d)``."""
        assert self.recipe is not None
        return self.model.predict(self.recipe.features(X))

    def draw(self, X: FloatArray, n: int) -> FloatArray:
        """Some functions drawn from the belief, ``(n, rows)``; always by the same random numbers.

        So they bend as the belief changes, and don't jump.
        """
        assert self.recipe is not None
        return np.asarray(self.model.sample_output(self.recipe.features(X), n, 0))
