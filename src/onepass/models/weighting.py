"""How much each member of an ensemble counts: rules that turn log densities of rows into weights.

Each row's log density, taken before the member learned the row, measures how well the member predicted it. Plain
posterior weights add up all of them and soon select a single member; the other rules use only recent rows or small
steps, which keeps several members and most of the gain of averaging. A weighting is immutable: learning replaces it, so
an ensemble is restored by keeping the old one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from scipy.special import logsumexp, softmax

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.engine.vector_matches import SCALE_CLIP
from onepass.files.state import Arrays, sized
from onepass.likelihoods.mixtures import likely_weights

__all__ = ["WEIGHTINGS", "FadingWeights", "RowWeights", "RuleWeights", "Weighting"]

WEIGHTINGS = ("stacked", "window", "evidence", "uniform")
_MEMORY = 200.0  # rows after which a log density counts 1/e
_GAIN, _LARGEST_STEP, _WINDOW = 10.0, 0.5, 50
_NOISE_START, _NOISE_FLOOR = 30.0, 0.05  # information that the start counts as, least share of the noise

Errors: TypeAlias = tuple[FloatArray, FloatArray]
"""Members' squared errors over their predicted variances, and shares of the noise in these, ``(k, n, K)`` each."""


class RowWeights(NamedTuple):
    """How the members of a committee count in each of ``n`` rows, before it is learned."""

    weights: FloatArray
    """``(k, n)``"""
    noise_scale: FloatArray
    """What their noise is multiplied by, ``(n, K)``."""


class Weighting(Protocol):
    """What an ensemble asks of its rule; ``k`` is the number of members."""

    @property
    def weights(self) -> FloatArray:
        """Weight of each member, ``(k,)``; they add up to 1."""

    @property
    def arrays(self) -> Arrays:
        """What the weights follow from, by the names that files have for it."""

    def likely_of(self, weights: FloatArray) -> FloatArray:
        """Weights ``(k, ...)`` as they are for variances."""

    def over_rows(
        self, log_densities: FloatArray, evidences: FloatArray, gains: FloatArray, counts: FloatArray
    ) -> tuple[RowWeights, Self]:
        """How members count in each of new rows before it is learned, and the weighting after the last.

        Parameters
        ----------
        log_densities : (k, n) array, of each row before it was learned
        evidences : (k,) array, the members' evidence before these rows
        gains : (k, n) array, what each row adds to it
        counts : (n,) array, as how many copies each row counts
        """

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

    def likely_of(self, weights: FloatArray) -> FloatArray:
        """Without members that are unlikely, as one of a far too wide prior soon is."""
        return likely_weights(weights)

    def over_rows(
        self, log_densities: FloatArray, evidences: FloatArray, gains: FloatArray, counts: FloatArray
    ) -> tuple[RowWeights, Self]:
        """Each row is weighed by those before it, so that it does not matter in which blocks rows come."""
        fading, evidence = np.exp(-counts / _MEMORY), self.evidence
        found = np.empty(gains.T.shape)
        for i, row in enumerate(gains.T):
            found[i] = evidence
            evidence = fading[i] * evidence + row
        before = RowWeights(np.asarray(softmax(found, axis=1).T), np.ones((len(found), 1)))
        return before, replace(self, evidence=evidence)

    def restarted(self) -> Self:
        """Weigh all members the same."""
        return self.start(len(self.evidence))

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """That of the uniform mixture: each row given all rows before it."""
        return mixture_evidence(evidences)


class _RowErrors:
    """Errors of the members in a row, ``(k, K)`` each, given a scale of their noise ``(K,)``."""

    def __init__(self, ratios: FloatArray, noise_shares: FloatArray, scale: FloatArray) -> None:
        self.ratios, self.noise_shares = ratios, noise_shares
        self.totals = 1.0 + (scale - 1.0) * noise_shares  # variances with the scale over those without

    @property
    def density_changes(self) -> FloatArray:
        """What the scale changes in the members' log densities, ``(k,)``."""
        return np.asarray(0.5 * (self.ratios - self.ratios / self.totals - np.log(self.totals)).sum(axis=1))


@dataclass
class _MixtureNoise:
    """By how much the noise of a mixture is less than that of its members.

    What a member takes for noise contains errors of its own, from the weights it started with. Those of several members
    differ, and their mixture has them as disagreement already.
    """

    scale: FloatArray  # (K,)
    weight: FloatArray  # (K,), information it rests on

    def learn(self, share: FloatArray, row: _RowErrors, count: float) -> None:
        """Move by so many copies of a row, in which the members have a share.

        As a network learns its noise: see `onepass.engine.vector_matches.GaussianOutputs`.
        """
        gain = self.scale * row.noise_shares / row.totals
        information = count * gain * gain
        self.weight += share @ information
        excess = np.minimum(row.ratios, SCALE_CLIP * row.totals) - row.totals
        change = share @ (information * excess / row.noise_shares)
        self.scale = np.maximum(self.scale + change / self.weight, _NOISE_FLOOR)


@dataclass(frozen=True)
class RuleWeights:
    """Weights by one of the rules in `WEIGHTINGS`; see `onepass.BayesianCommittee` for what each does."""

    rule: str
    weights: FloatArray  # (k,)
    count: float  # rows, by their weights, that the weights rest on, the start counting as one per member
    recent: FloatArray  # (k, n), log densities of the last rows
    noise_scale: FloatArray  # (K,), by which the noise of all members is multiplied in the mixture
    noise_weight: FloatArray  # (K,), the information that it rests on

    @classmethod
    def start(cls, n_members: int, rule: str, n_outputs: int) -> Self:
        """Weigh all members the same."""
        one_of(rule, WEIGHTINGS, "weighting")
        weights, recent = np.full(n_members, 1.0 / n_members), np.zeros((n_members, 0))
        return cls(rule, weights, float(n_members), recent, np.ones(n_outputs), np.full(n_outputs, _NOISE_START))

    @classmethod
    def from_arrays(cls, rule: str, n_members: int, n_outputs: int, arrays: Arrays) -> Self:
        """Check and take what `arrays` gave."""
        one_of(rule, WEIGHTINGS, "weighting")
        weights = sized(arrays, "weights", (n_members,))
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError("the saved weights of a committee must not be negative and must sum to 1")
        count = float(sized(arrays, "count", (1,))[0])
        recent = sized(arrays, "recent", (n_members, *arrays["recent"].shape[1:]))
        noise = sized(arrays, "noise", (2, n_outputs))
        if (noise <= 0.0).any():
            raise ValueError("the saved noise of a committee must be above 0")
        return cls(rule, weights, count, recent, *noise)

    @property
    def arrays(self) -> Arrays:
        """Weights, what they rest on, the log densities of the last rows, and the mixture's noise."""
        return {
            "weights": self.weights.copy(),
            "count": np.array([self.count]),
            "recent": self.recent.copy(),
            "noise": np.stack([self.noise_scale, self.noise_weight]),
        }

    def likely_of(self, weights: FloatArray) -> FloatArray:
        """All members: of many each may have little weight."""
        return weights

    def over_rows(
        self,
        log_densities: FloatArray,
        evidences: FloatArray,
        gains: FloatArray,
        counts: FloatArray,
        errors: Errors | None = None,
    ) -> tuple[RowWeights, Self]:
        """Move weights and noise towards what each row says of them.

        Each member has a share in the density that the mixture gave the row. Stacked weights move towards these shares,
        and with ``errors`` the mixture's noise towards what these say of it: online EM for a mixture. Copies of a row
        move them as often.
        """
        weights, count = self.weights.copy(), self.count
        noise = _MixtureNoise(self.noise_scale.copy(), self.noise_weight.copy())
        n_rows, n_recent = log_densities.shape[1], self.recent.shape[1]
        before = RowWeights(np.empty((len(weights), n_rows)), np.empty((n_rows, len(noise.scale))))
        recent = np.hstack([self.recent, counts * log_densities])
        totals = evidences[:, None] + np.cumsum(gains, axis=1)
        with np.errstate(divide="ignore"):  # a member may have lost all weight
            for i, row in enumerate(log_densities.T):
                before.weights[:, i], before.noise_scale[i] = weights, noise.scale
                own = None if errors is None else _RowErrors(errors[0][:, i], errors[1][:, i], noise.scale)
                share = np.log(weights) + row + (0.0 if own is None else own.density_changes)
                share = np.exp(share - share.max())  # as softmax, at a tenth of its time
                share /= share.sum()
                if own is not None:
                    noise.learn(share, own, counts[i])
                if self.rule == "stacked":
                    count += counts[i]
                    weights += (1.0 - (1.0 - min(_GAIN / count, _LARGEST_STEP)) ** counts[i]) * (share - weights)
                elif self.rule == "window":
                    last = n_recent + i + 1
                    weights = softmax(recent[:, max(last - _WINDOW, 0) : last].sum(axis=1))
                elif self.rule == "evidence":
                    weights = softmax(totals[:, i])
        return before, type(self)(self.rule, weights, count, recent[:, -_WINDOW:], noise.scale, noise.weight)

    def restarted(self) -> Self:
        """Weigh all members the same: what was known before the pass is known better after it."""
        n_members = len(self.weights)
        return replace(self.start(n_members, self.rule, len(self.noise_scale)), recent=self.recent)

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """That of the uniform mixture: each row given all rows before it."""
        return mixture_evidence(evidences)


def mixture_evidence(evidences: Sequence[float]) -> float:
    """Log evidence of a mixture of all members, each as probable as the others before the first row."""
    return float(logsumexp(evidences) - np.log(len(evidences)))
