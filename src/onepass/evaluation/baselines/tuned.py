"""A baseline that chooses its own settings, by progressive validation on the stream that it learns.

A user of gradient descent has to choose a step size, and a baseline with an arbitrary one shows nothing. So every
setting of a small grid learns the stream side by side with the others. Each predicts every row before learning it, and
its losses so far (log-loss, or squared error) rank it: the setting with the lowest sum predicts the next row. A row
counts in proportion to its number: large steps learn fast at first and are noisy later, and what is to come resembles
the later rows. No row is looked at before it is predicted, so the choice is as honest as the predictions; it costs one
model per setting.

The grids and that weighting are another matter: they were picked in favour of the baselines, by their test scores on
digits, wine and breast cancer.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from onepass._typing import FloatArray

__all__ = ["Candidate", "TunedBaseline"]

_SMALLEST = 1e-15  # probability that a wrong and certain prediction is charged with, as in scikit-learn's log_loss


class Candidate(Protocol):
    """A one-pass model of another library with its settings fixed."""

    setting: str

    @property
    def takes_weights(self) -> bool:
        """Whether rows can be learned with weights."""

    def predict(self, X: FloatArray) -> FloatArray:
        """Return numbers ``(n,)``, or probabilities ``(n, K)``."""

    def predict_then_learn(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Predict each row before it is learned, with its weight if weights are taken."""


class TunedBaseline:
    """Candidates that learn side by side; the one with the lowest progressive loss so far predicts.

    Parameters
    ----------
    name : str
        Of the model, in reports.
    n_classes : int
        0 for numbers.
    candidates : sequence of Candidate
        The same model with different settings, the one to begin with first.
    """

    def __init__(self, name: str, n_classes: int, candidates: Sequence[Candidate]) -> None:
        self.name = name
        self._n_classes = n_classes
        self._candidates = list(candidates)
        self._losses = np.zeros(len(self._candidates))
        self._seen = 0

    @property
    def takes_weights(self) -> bool:
        """Whether rows are learned with their weights; else each counts once."""
        return all(candidate.takes_weights for candidate in self._candidates)

    @property
    def setting(self) -> str:
        """The setting with the lowest progressive loss so far."""
        return self._best.setting

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict with the best setting so far."""
        return self._usable(self._best.predict(X))

    def learn(self, X: FloatArray, y: FloatArray) -> "TunedBaseline":
        """Learn the rows in their order, and rank the settings by them."""
        self.predict_then_learn(X, y)
        return self

    def predict_then_learn(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Predict each row by the setting that was best before it, then learn it.

        Weights ``(n,)`` count where they are taken; settings are ranked by the rows, each of which counts once there.
        A setting whose weights have grown out of all bounds drops out; if it was the last one, its error is raised.
        """
        guesses = self._guesses(X, y, weights if self.takes_weights else None)
        numbers = self._seen + np.arange(1, len(y) + 1)
        losses = np.array([numbers * self._loss(guess, y) for guess in guesses])
        sums = np.cumsum(np.column_stack([self._losses, losses]), axis=1)
        self._losses = sums[:, -1]
        self._seen += len(y)
        best_before = sums[:, :-1].argmin(axis=0)
        chosen: FloatArray = np.stack(guesses)[best_before, np.arange(len(y))]
        return chosen

    @property
    def _best(self) -> Candidate:
        return self._candidates[int(self._losses.argmin())]

    def _guesses(self, X: FloatArray, y: FloatArray, weights: FloatArray | None) -> list[FloatArray]:
        """Predictions of all candidates that could go on; the others are dropped."""
        found: list[FloatArray | None] = []
        last: ArithmeticError | ValueError | None = None
        for candidate in self._candidates:
            try:
                found.append(self._usable(candidate.predict_then_learn(X, y, weights)))
            except (ValueError, ArithmeticError) as error:
                found.append(None)
                last = error
        alive = [guess is not None for guess in found]
        if last is not None and not any(alive):
            raise last
        self._losses = self._losses[alive]
        self._candidates = [one for one, goes_on in zip(self._candidates, alive, strict=True) if goes_on]
        return [guess for guess in found if guess is not None]

    def _usable(self, guess: FloatArray) -> FloatArray:
        """Replace what is not a number by knowing nothing: even odds, or the centre of the targets."""
        return np.nan_to_num(guess, nan=1.0 / self._n_classes if self._n_classes else 0.0)

    def _loss(self, guess: FloatArray, y: FloatArray) -> FloatArray:
        if not self._n_classes:
            with np.errstate(over="ignore"):  # an infinite loss is ranked last, as it should be
                return np.asarray((guess - y) ** 2)
        return np.asarray(-np.log(np.clip(guess[np.arange(len(y)), y.astype(int)], _SMALLEST, 1.0)))
