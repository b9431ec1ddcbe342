"""Two estimators compared over the first rows of a table: only the better one then continues.

A perceptron is fast and its weights can be read; a network also learns how features act together. Which of them suits a
table shows after some rows: both predict each row before they learn it, and the log density that each gave the target
is its score. Scores fade with the rows, since a network is slow to begin. The second of the two costs more and has to
be better by a margin. All depends on the rows and their order alone, not on how they were divided among calls.
"""

from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators import learner_of, start_learner
from onepass.estimators.rows import PredictedRows, Rows
from onepass.files.registry import exported, restored, savable, savable_names
from onepass.files.state import Arrays, Parameters, as_number, as_tally, nested, under
from onepass.models.tracking import TrackedPlaces

__all__ = ["COMPARED_ROWS", "BetterOfTwo", "estimator_class"]

COMPARED_ROWS = 2000
_MEMORY = 500.0  # rows after which a score counts 1/e
_MARGIN = 5.0  # nats: at first beyond chance, and in the long run 0.01 per row


class BetterOfTwo:
    """An estimator that is the better one of two; whatever is asked of it, that one answers.

    Parameters
    ----------
    candidates : two estimators, or the winner alone
        The first answers unless the second is better.

    Attributes
    ----------
    candidates : those that are still learning
    n_judged : int
        Rows that have been judged.
    lead : float
        By how many nats per row the second one predicts better, of late; negative where the first one does.
    """

    def __init__(self, candidates: list[Any]) -> None:
        self.candidates: list[Any] = list(candidates)
        self.n_judged: int = 0
        self._gain = 0.0  # sum of the second one's log densities minus the first one's, faded
        self._evidence = 0.0  # of all answers; after the comparison what to add to the winner's

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "candidates":  # while a copy is being made there is nobody to ask
            raise AttributeError(name)
        return getattr(self.leader, name)

    @property
    def leader(self) -> Any:
        """The one that answers now."""
        return self.candidates[-1] if self._gain > _MARGIN else self.candidates[0]

    @property
    def lead(self) -> float:
        """By how many nats per row the second one predicts better, of late."""
        weight = -np.expm1(-self.n_judged / _MEMORY) / -np.expm1(-1.0 / _MEMORY)
        return self._gain / weight if self.n_judged else 0.0

    @property
    def is_decided(self) -> bool:
        """Whether only the winner is left."""
        return len(self.candidates) == 1

    @property
    def log_evidence_(self) -> float:
        """Sum of the log densities of all rows, weighted, each by the one that answered before it was learned."""
        return self._evidence + (float(self.leader.log_evidence_) if self.is_decided else 0.0)

    def decide(self) -> None:
        """End the comparison: from here on the one that leads learns alone."""
        if not self.is_decided:
            self.candidates = [self.leader]
            self._evidence -= float(self.leader.log_evidence_) if self.n_judged else 0.0

    def replace_leader(self, estimator: Any) -> None:
        """Let another estimator, which has learned the same rows, answer in the leader's place."""
        if self.is_decided:
            self._evidence += float(self.leader.log_evidence_) - float(estimator.log_evidence_)
        self.candidates[self.candidates.index(self.leader)] = estimator

    # As the learner of an estimator: see `onepass.estimators.learner`.

    @property
    def _learner(self) -> Self:
        return self

    def start(self, n_features: int, classes: Any = None) -> None:
        """Have both be ready to predict by their priors alone."""
        for candidate in self.candidates:
            start_learner(candidate, n_features, classes, scaled_targets=True)

    def learn(self, rows: Rows) -> None:
        """Learn rows."""
        if self.is_decided:
            learner_of(self.leader).learn(rows)
        else:
            self.predict_then_learn(rows)

    def predict_then_learn(self, rows: Rows) -> PredictedRows:
        """Predict rows, each just before it is learned."""
        n = 0 if self.is_decided else min(COMPARED_ROWS - self.n_judged, len(rows))
        parts = []
        if n:
            judged = rows.at(slice(0, n))
            first, second = (learner_of(one).predict_then_learn(judged) for one in self.candidates)
            parts.append(self._judged(first, second, judged.full_weights))
            if self.n_judged == COMPARED_ROWS:
                self.decide()
        if n < len(rows):
            parts.append(learner_of(self.leader).predict_then_learn(rows.at(slice(n, None))))
        return PredictedRows.joined(parts)

    def score(self, rows: Rows) -> PredictedRows:
        """Predict and score rows without learning them."""
        found: PredictedRows = learner_of(self.leader).score(rows)
        return found

    def linear_belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of intercept and weights of the leader, which must be a perceptron."""
        found: tuple[FloatArray, FloatArray] = learner_of(self.leader).linear_belief()
        return found

    def close_block(self) -> None:
        """Let rows that were learned wait for no others: see `onepass.BayesianNetwork`."""
        for candidate in self.candidates:
            learner_of(candidate).close_block()

    def _judged(self, first: PredictedRows, second: PredictedRows, weights: FloatArray) -> PredictedRows:
        """What the leader of the moment predicted for each row; then the scores are up to date."""
        fading, ahead = float(np.exp(-1.0 / _MEMORY)), []
        for gain in (weights * (second.log_density - first.log_density)).tolist():
            ahead.append(self._gain > _MARGIN)
            self._gain = fading * self._gain + gain
        self.n_judged += len(ahead)
        chosen = [_chosen(ahead, b, a) for a, b in zip(first[:-1], second[:-1], strict=True)]
        answers = PredictedRows._make([*chosen, _chosen_places(ahead, second.places, first.places)])
        self._evidence += float((weights * answers.log_density).sum())
        return answers

    # Files: the model of a table keeps it.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Give all that it is, as parameters that JSON can hold and arrays."""
        parameters: Parameters = {
            "n_judged": self.n_judged,
            "gain": self._gain,
            "evidence": self._evidence,
            "candidates": [],
        }
        arrays: Arrays = {}
        for k, candidate in enumerate(self.candidates):
            state, own = exported(candidate)
            parameters["candidates"].append({"class": type(candidate).__name__, "state": state})
            arrays |= nested(f"candidate/{k}", own)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the comparison that `export_state` described; it goes on as that one would."""
        entries = parameters["candidates"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= 2:
            raise ValueError("a comparison has two candidates, or one that has won")
        comparison = cls(
            [
                restored(estimator_class(entry["class"]), entry["state"], under(f"candidate/{k}", arrays))
                for k, entry in enumerate(entries)
            ]
        )
        comparison.n_judged = as_tally(parameters["n_judged"], "n_judged")
        comparison._gain = as_number(parameters["gain"], "gain")
        comparison._evidence = as_number(parameters["evidence"], "evidence")
        if comparison.n_judged > COMPARED_ROWS or (comparison.n_judged == COMPARED_ROWS and not comparison.is_decided):
            raise ValueError(f"a comparison is over after {COMPARED_ROWS} rows, got {comparison.n_judged}")
        return comparison


def _chosen(ahead: list[bool], second: FloatArray, first: FloatArray) -> FloatArray:
    """For each row the numbers of the second, where that is ahead, or of the first."""
    return np.where(np.reshape(ahead, (-1, *[1] * (first.ndim - 1))), second, first)


def _chosen_places(
    ahead: list[bool], second: TrackedPlaces | None, first: TrackedPlaces | None
) -> TrackedPlaces | None:
    if first is None or second is None:
        return None
    rows = _chosen(ahead, second.tracked.quantiles, first.tracked.quantiles)
    return TrackedPlaces(_chosen(ahead, second.score, first.score), first.tracked._replace(quantiles=rows))


def estimator_class(name: Any) -> Any:
    """The class of an estimator with this name in files."""
    if name == BetterOfTwo.__name__:
        return BetterOfTwo
    if name not in savable_names("onepass.estimators"):
        raise ValueError(f"{name!r} is not an estimator")
    return savable(name)
