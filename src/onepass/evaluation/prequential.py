"""A model, and whoever it is compared with, tested on every row before learning it."""

from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.evaluation.baselines import Contender, contenders
from onepass.evaluation.metrics import ClassScores, NumberScores, scores_for
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.rows import Rows
from onepass.tables.targets import NumberTarget

__all__ = ["NAMES", "OURS", "Trial", "shown"]

OURS = "onepass"
NAMES = {
    "accuracy": "accuracy",
    "log_loss": "log-loss",
    "brier": "Brier",
    "roc_auc": "ROC AUC",
    "rmse": "RMSE",
    "mae": "MAE",
    "log_likelihood": "log-likelihood",
    "coverage_50": "in 50 %",
    "coverage_80": "in 80 %",
    "coverage_95": "in 95 %",
    "calibration_error": "calib. error",
}


class Trial:
    """Test-then-train over a stream of rows.

    Parameters
    ----------
    model : TabularModel
        Learns every row.
    compare : bool
        Let the models of others learn the same rows.
    """

    def __init__(self, model: TabularModel, *, compare: bool = False) -> None:
        self.model = model
        self.rows = 0
        self.ours = scores_for(model.labels)
        self.others: list[tuple[Contender, NumberScores | ClassScores]] = []
        if compare:
            found = contenders(len(model.labels))
            self.others = [(contender, scores_for(model.labels, with_std=False)) for contender in found]
        self.failed: dict[str, str] = {}
        """Why models of others gave up, by name."""

    def add(self, rows: Rows) -> None:
        """Predict the rows, score the predictions, learn the rows."""
        foretold = self.model.predict_then_learn(rows)
        if foretold is None:
            return
        self.rows += len(rows.y)
        if isinstance(self.ours, ClassScores):
            best = foretold.mean.argmax(axis=1)
            std = np.sqrt(foretold.var[np.arange(len(best)), best])
            self.ours.add(rows.y, foretold.mean, std)
        else:
            std = np.sqrt(foretold.var + foretold.noise_var)
            self.ours.add(self._own(rows.y), self._own(foretold.mean), std * self._scale)
        for contender, scores in self.others:
            try:
                guess = contender.predict_then_learn(rows.X, rows.y)
            except (ValueError, ArithmeticError) as error:  # e.g. weights that have grown out of all bounds
                self.failed[contender.name] = str(error).split("\n")[0].rstrip(".")
                continue
            if isinstance(scores, ClassScores):
                scores.add(rows.y, guess)
            else:
                scores.add(self._own(rows.y), self._own(guess))
        self.others = [(one, scores) for one, scores in self.others if one.name not in self.failed]

    def check(self) -> None:
        """Refuse to speak of nothing."""
        if not self.rows:
            raise StreamError("no row could be scored: there is none, or all were rejected")

    def scores(self) -> dict[str, dict[str, float]]:
        """Scores of every model, by name."""
        return {OURS: self.ours.summary(), **{one.name: scores.summary() for one, scores in self.others}}

    def over_time(self) -> dict[str, list[float]]:
        """Our scores over segments of the stream."""
        curves = {name: values.tolist() for name, values in self.ours.over_time().items()}
        return {"rows": self.ours.curve.rows.tolist(), **curves}

    def table(self) -> list[tuple[str, ...]]:
        """Scores of every model as text, a row each."""
        scores = self.scores()
        names = list(scores[OURS])
        head = ("", *(NAMES[name] for name in names))
        return [head, *((model, *(shown(one, found) for one in names)) for model, found in scores.items())]

    def _own(self, values: FloatArray) -> FloatArray:
        """Numbers in the target's own units."""
        assert isinstance(self.model.target, NumberTarget)
        return values * self.model.target.scale + self.model.target.centre

    @property
    def _scale(self) -> float:
        assert isinstance(self.model.target, NumberTarget)
        return self.model.target.scale


def shown(name: str, scores: dict[str, Any]) -> str:
    """A score as text."""
    if name not in scores:
        return "-"
    value = scores[name]
    if name.startswith("coverage"):
        return f"{100.0 * value:.1f} %"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"
