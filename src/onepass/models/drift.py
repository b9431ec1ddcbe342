"""The argument ``drift`` of a model: a fixed rate, or ``"auto"``, which makes an object of another class.

A model with a fixed rate of drift knows nothing of several rates. For ``"auto"``, `DriftChoice` makes a model of
`onepass.models.drifting` in its place; it also gives both the same interface.
"""

from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import as_fraction
from onepass.files.registry import savable

__all__ = ["AUTO", "DriftChoice", "as_drift", "check_nothing_fades"]

AUTO = "auto"
_SEVERAL_RATES = {"BayesianPerceptron": "DriftingPerceptron", "BayesianNetwork": "DriftingNetwork"}


def as_drift(drift: Any) -> float | str:
    """Check a rate of drift, in [0, 1], or ``"auto"``."""
    return AUTO if isinstance(drift, str) and drift == AUTO else as_fraction(drift, "drift", f"or {AUTO!r}")


def check_nothing_fades(forgetting: Any) -> None:
    """Raise a ValueError where the past is to fade at a given rate, and ``drift="auto"`` would find one out."""
    if forgetting != 1.0:
        raise ValueError(
            f"drift={AUTO!r} finds out by itself how fast old rows lose their weight and needs forgetting=1, got "
            f"forgetting={forgetting!r}; give one of the two"
        )


class DriftChoice:
    """A model whose argument ``drift`` is a rate, or ``"auto"``."""

    drift: Any

    def __new__(cls, *_: Any, drift: Any = 0.0, **__: Any) -> Self:
        """Make a model of several rates in place of one where the rate is ``"auto"``."""
        several = None
        if isinstance(drift, str) and drift == AUTO and cls.__name__ not in _SEVERAL_RATES.values():
            several = _SEVERAL_RATES.get(cls.__name__)
            if several is None:
                raise TypeError(
                    f"drift={AUTO!r} is available for {' and '.join(_SEVERAL_RATES)} only, not for {cls.__name__}; "
                    "pass drift as a number"
                )
        made: Self = object.__new__(cls if several is None else savable(several))
        return made

    @property
    def hypotheses(self) -> list[tuple[float, Any]]:
        """The models that predict as a mixture, each with its weight: this one alone."""
        return [(1.0, self)]

    def ahead(self, rows: int = 1) -> Self:
        """Return the model as it predicts so many rows ahead: itself, or a copy in which the weights have moved.

        Before each row weights drift and the past fades, so the next row is predicted one row ahead. It is meant for
        reading the belief behind a prediction; learn with the model itself.
        """
        raise NotImplementedError

    def switched(self, rows: int) -> Self:
        """Return the model with the weights of its `hypotheses` so many rows later: itself, as it has but one."""
        return self

    def _parts_then_learn(self, X: Any, y: Any, **options: Any) -> tuple[FloatArray, list[Any], Any]:
        """Predict every row just before learning it by each of the `hypotheses`, for a mixture of several models.

        Returned are their weights before each row, ``(h, n)``, what each predicts, and the scores of all together.
        """
        prediction, scores = self._predict_in_mixture(X, y, **options)
        return np.ones((1, len(scores.log_densities))), [prediction], scores

    def _predict_in_mixture(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """Predict every row just before learning it, with the scores by which a mixture of several models weighs it."""
        raise NotImplementedError

    def close_block(self) -> None:
        """Do nothing; only networks collect rows into blocks: see `BayesianNetwork.close_block`."""

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift; a fixed rate has the probability 1."""
        return {float(self.drift): 1.0}
