"""What is predicted of one target, as River's distributions: of a number or a count, or of a label.

They have the numbers of a `onepass.Prediction`, which is their ``prediction``. River's own Gaussian has a mean and a
variance; what models predict has the tails of a noise that is not quite known, may be a mixture, and may be of counts.
"""

from functools import cached_property
from math import exp
from random import Random
from typing import Any, NoReturn

import numpy as np
from river.proba.base import ContinuousDistribution, DiscreteDistribution
from scipy.optimize import minimize_scalar

from onepass.models.distribution import Prediction

__all__ = ["PredictedLabel", "PredictedNumber"]

_LEVELS = np.linspace(0.001, 0.999, 201)


class _Predicted:
    """What both share: nothing is observed, so there is nothing to update."""

    prediction: Prediction
    n_samples = 1
    seed: int | None = None

    @cached_property
    def _random(self) -> Random:  # to seed one takes five times as long as to predict
        return Random(self.seed)

    def update(self, x: Any) -> NoReturn:
        """Raise a TypeError: the model learns, and not what it has predicted."""
        raise TypeError("a predicted distribution can't be updated: let the model learn, and predict again")

    revert = update

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self._random.getrandbits(64))


class PredictedNumber(_Predicted, ContinuousDistribution):
    """The predictive distribution of a number or a count.

    Parameters
    ----------
    prediction : Prediction
        That of one row.
    """

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction

    @property
    def mu(self) -> float:
        """Expected target."""
        return float(self.prediction.mean)

    @property
    def sigma(self) -> float:
        """Standard deviation."""
        return float(self.prediction.std)

    def __call__(self, x: float) -> float:
        """Density, or probability of a count: the one that the model scores, as long as it has learned nothing more."""
        return exp(self.log_pdf(x))

    def log_pdf(self, x: float) -> float:
        """Log of the density."""
        return float(self._log_pdf(x))

    def _log_pdf(self, x: Any) -> Any:
        try:
            return self.prediction.logpdf(x)
        except RuntimeError:  # as in delayed evaluation
            self.prediction = self.prediction.without_model()
            return self.prediction.logpdf(x)

    def cdf(self, x: float) -> float:
        """Probability that the target is at most ``x``."""
        return float(self.prediction.cdf(x))

    def ppf(self, q: float) -> float:
        """Quantile: the inverse of `cdf`."""
        return float(self.prediction.ppf(q))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Limits that contain the target with this probability; tracked ones with ``intervals="adaptive"``."""
        low, high = self.prediction.interval(level)
        return float(low), float(high)

    def sample(self) -> float:
        """Draw a target."""
        return float(self.prediction.sample(1, self._generator())[0])

    @property
    def mode(self) -> float:
        """The most probable target."""
        grid = np.unique(self.prediction.ppf(_LEVELS))
        logs = self._log_pdf(grid)
        best = int(np.argmax(logs))
        if self.prediction.is_count or len(grid) < 3:
            return float(grid[best])
        edges = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(lambda x: -self.log_pdf(x), bounds=edges, method="bounded")
        return float(found.x)

    def __repr__(self) -> str:
        return f"PredictedNumber(mu={self.mu:.3f}, sigma={self.sigma:.3f})"


class PredictedLabel(_Predicted, DiscreteDistribution):
    """The probabilities of labels, with what is not known of them.

    Parameters
    ----------
    probabilities : dict of labels
        As ``predict_proba_one`` gives them.
    prediction : Prediction
        That of one row; of classes, by their places.
    """

    def __init__(self, probabilities: dict[Any, float], prediction: Prediction) -> None:
        self.probabilities, self.prediction = probabilities, prediction

    def __call__(self, x: Any) -> float:
        """Probability of a label."""
        return self.probabilities.get(x, 0.0)

    @property
    def mode(self) -> Any:
        """The most probable label."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def sample(self) -> Any:
        """Draw a label."""
        return self._random.choices(list(self.probabilities), list(self.probabilities.values()))[0]

    def interval(self, level: float = 0.95) -> dict[Any, tuple[float, float]]:
        """Limits of the probability of each label, which come from not knowing the weights."""
        low, high = (np.ravel(side) for side in self.prediction.interval(level))
        if len(self.probabilities) == 2 and len(low) == 1:  # one output, the probability of the second
            low, high = np.array([1.0 - high[0], low[0]]), np.array([1.0 - low[0], high[0]])
        sides = zip(self.probabilities, low.tolist(), high.tolist(), strict=False)
        return {label: (below, above) for label, below, above in sides}

    def __repr__(self) -> str:
        return "\n".join(f"P({label}) = {p:.3f}" for label, p in self.probabilities.items())
