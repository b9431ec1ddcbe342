"""How much each member of an ensemble counts: rules that turn log densities of rows into weights.

Each row's log density, taken before the member learned the row, measures how well the member predicted it. Plain
posterior weights add up all of them and soon select a single member; the other rules use only recent rows or small
steps, which keeps several members and most of the gain of averaging. A weighting is immutable: learning replaces it, so
an ensemble is restored by keeping the old one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.special import logsumexp, softmax

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.engine.vector_matches import SCALE_GAIN, SCALE_START_WEIGHT
from onepass.files.state import Arrays, sized

__all__ = ["WEIGHTINGS", "FadingWeights", "RuleWeights", "Weighting"]

WEIGHTINGS = ("stacked", "window", "evidence", "uniform")
_MEMORY = 200.0  # rows after which a log density counts 1/e
_GAIN, _LARGEST_STEP, _WINDOW = 10.0, 0.5, 50


class Weighting(Protocol):
    """What an ensemble asks of its rule; ``k`` is the number of members."""

    @property
    def weights(self) -> FloatArray:
        """Weight of each member, ``(k,)``; they add up to 1."""

    @property
    def arrays(self) -> Arrays:
        """What the weights follow from, by the names that files have for it."""

    def updated(self, log_densities: FloatArray, evidences: Sequence[float]) -> Self:
        """Weigh by the log densities ``(k, n)`` of new rows; ``evidences`` are the members' sums over all rows."""

    def restarted(self) -> Self:
        """Forget the weights, before a pass that predicts the same rows again."""

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """Log evidence of the ensemble, from that of its members."""


@dataclass(frozen=True)
class FadingWeights:
    """Posterior weights from evidence that fades with the rows: which prior suits the data best now."""

    evidence: FloatArray  # (k,), faded

    @classmethod
    def start(cls, n_members: int) -> Self:
        """Weigh all members the same."""
        return cls(np.zeros(n_members))

    @property
    def weights(self) -> FloatArray:
        """Weight of each member, ``(k,)``."""
        return np.asarray(softmax(self.evidence))

    @property
    def arrays(self) -> Arrays:
        """The faded evidence."""
        return {"evidence": self.evidence}

    def updated(self, log_densities: FloatArray, evidences: Sequence[float]) -> Self:
        """Fade what is known and add new rows, the last one in full."""
        n_rows = log_densities.shape[1]
        ages = np.arange(n_rows - 1, -1, -1)
        faded = self.evidence * np.exp(-n_rows / _MEMORY)
        return replace(self, evidence=faded + log_densities @ np.exp(-ages / _MEMORY))

    def restarted(self) -> Self:
        """Weigh all members the same."""
        return self.start(len(self.evidence))

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """The best member's: members differ in their prior alone, and the data choose it."""
        return max(float(evidence) for evidence in evidences)


@dataclass(frozen=True)
class RuleWeights:
    """Weights by one of the rules in `WEIGHTINGS`; see `onepass.BayesianCommittee` for what each does."""

    rule: str
    weights: FloatArray  # (k,)
    count: float  # rows that the weights rest on, the start counting as one per member
    recent: FloatArray  # (k, n), log densities of the last rows
    scale: FloatArray  # (K,), by which the variances of all members are multiplied in the mixture

    @classmethod
    def start(cls, n_members: int, rule: str, n_outputs: int) -> Self:
        """Weigh all members the same."""
        one_of(rule, WEIGHTINGS, "weighting")
        weights, recent = np.full(n_members, 1.0 / n_members), np.zeros((n_members, 0))
        return cls(rule, weights, float(n_members), recent, np.ones(n_outputs))

    @classmethod
    def from_arrays(cls, rule: str, n_members: int, n_outputs: int, arrays: Arrays) -> Self:
        """Check and take what `arrays` gave; earlier versions gave no scale."""
        one_of(rule, WEIGHTINGS, "weighting")
        weights = sized(arrays, "weights", (n_members,))
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError("the weights of a committee must be shares of 1")
        count = float(sized(arrays, "count", (1,))[0])
        recent = sized(arrays, "recent", (n_members, *arrays["recent"].shape[1:]))
        scale = sized(arrays, "scale", (n_outputs,)) if "scale" in arrays else np.ones(n_outputs)
        if (scale <= 0.0).any():
            raise ValueError("the scale of a committee must be above 0")
        return cls(rule, weights, count, recent, scale)

    @property
    def arrays(self) -> Arrays:
        """Weights, what they rest on, the log densities of the last rows, and the scale."""
        return {
            "weights": self.weights.copy(),
            "count": np.array([self.count]),
            "recent": self.recent.copy(),
            "scale": self.scale.copy(),
        }

    def updated(self, log_densities: FloatArray, evidences: Sequence[float], ratios: FloatArray | None = None) -> Self:
        """Weigh by the log densities of new rows, as the rule says.

        ``ratios`` are the members' squared errors over their predicted variances, ``(k, n, K)``, if the mixture has a
        scale to be learned.
        """
        now = replace(self, recent=np.hstack([self.recent, log_densities])[:, -_WINDOW:])
        now = now._row_by_row(log_densities, ratios)
        if self.rule in ("stacked", "uniform"):
            return now
        evidence = now.recent.sum(axis=1) if self.rule == "window" else np.array(evidences)
        return replace(now, weights=np.exp(evidence - logsumexp(evidence)))

    def _row_by_row(self, log_densities: FloatArray, ratios: FloatArray | None) -> Self:
        """Move weights and scale towards what each row says of them: online EM for a mixture.

        Each member has a share in the density that the mixture gave the row. Stacked weights move towards these shares;
        the scale, which all members have in common, towards the mean of their ratios under these shares. Members are
        each calibrated for their own errors, but those of a mixture are smaller.
        """
        weights, scale, count = self.weights.copy(), self.scale.copy(), self.count
        start = SCALE_START_WEIGHT - len(weights)
        stacked = self.rule == "stacked"
        for i, row in enumerate(log_densities.T):
            share = np.log(weights) + row
            if ratios is not None:
                share += 0.5 * (ratios[:, i] - ratios[:, i] / scale - np.log(scale)).sum(axis=1)
            share = np.exp(share - logsumexp(share))
            count += 1.0
            if ratios is not None:
                scale += min(SCALE_GAIN / (start + count), 1.0) * (share @ ratios[:, i] - scale)
            if stacked:
                weights += min(_GAIN / count, _LARGEST_STEP) * (share - weights)
        return replace(self, weights=weights, scale=scale, count=count)

    def restarted(self) -> Self:
        """Weigh all members the same: what was known before the pass is known better after it."""
        n_members = len(self.weights)
        weights, scale = np.full(n_members, 1.0 / n_members), np.ones_like(self.scale)
        return replace(self, weights=weights, count=float(n_members), scale=scale)

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """That of the uniform mixture: each row given all rows before it."""
        return float(logsumexp(evidences) - np.log(len(evidences)))
