"""How much each member of a mixture counts: rules that turn log densities of rows into weights.

Each row's log density, taken before the member learned the row, measures how well the member predicted it. Plain
posterior weights add up all of them and soon select a single member. The other rules keep several: they use only recent
rows, take small steps, or allow that another member takes over. A weighting is immutable: learning replaces it, so a
mixture is restored by keeping the old one. (The compiled path for single rows is the exception: see `Switching`.)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from scipy.special import logsumexp, softmax

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.engine.one_row import RowMixture
from onepass.engine.switching import Switching
from onepass.engine.vector_matches import SCALE_CLIP
from onepass.files.state import Arrays, sized
from onepass.likelihoods.mixtures import sum_in_order
from onepass.models.prediction import RowScores

__all__ = [
    "HYPOTHESES",
    "WEIGHTINGS",
    "CommitteeWeights",
    "FadingWeights",
    "MixtureScores",
    "RowWeights",
    "SwitchingWeights",
    "Weighting",
    "mixed_scores",
    "restore_weighting",
]

WEIGHTINGS = ("stacked", "window", "evidence", "uniform")
"""The rules of committees."""
HYPOTHESES: dict[float | str, dict[str, float]] = {
    **{rate: {"drift": rate} for rate in (0.0, 1e-5, 1e-3, 1e-2, 1e-1)},
    "prior": {"forgetting": 0.8},
}
"""What competes under drift, by its name in `drift_`: rates, and a quick return to the prior, its mean too."""
# Probability that each takes over before a row; that everything changes at once is far rarer than that it moves.
_ENTRIES = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.01])
_ENTRIES *= 0.002 / _ENTRIES.sum()
_FAST = np.array([name in (0.01, 0.1, "prior") for name in HYPOTHESES])  # under which little of the past counts
_MEMORY = 200.0  # rows after which a log density counts 1/e
_GAIN, _LARGEST_STEP, _WINDOW = 10.0, 0.5, 50
_NOISE_START, _NOISE_FLOOR = 30.0, 0.05  # information that the start counts as, least share of the noise

Errors: TypeAlias = tuple[FloatArray, FloatArray]
"""Members' squared errors over their predicted variances, and shares of the noise in these, ``(k, n, K)`` each."""


class RowWeights(NamedTuple):
    """How the members of a mixture count in each of ``n`` rows."""

    before: FloatArray
    """Their weights before the row is learned, ``(k, n)``."""
    noise_scale: FloatArray | None = None
    """What their noise is multiplied by, ``(n, K)``; None where it stays."""
    after: FloatArray | None = None
    """Their weights given the row, ``(k, n)``; None where these follow from the densities."""
    gains: FloatArray | None = None
    """What each row adds to the log evidence of the mixture; None where that is its log density."""


class MixtureScores(NamedTuple):
    """What a mixture makes of the log densities of its parts, ``(...)`` each but for the weights, ``(k, ...)``."""

    log_densities: FloatArray
    outliers: FloatArray
    """Probability that the target can't be trusted."""
    after: FloatArray
    """Weights of the parts given the target."""


def mixed_scores(weights: FloatArray, log_densities: FloatArray, outliers: FloatArray) -> MixtureScores:
    """Score targets by a mixture, from how its parts score them, ``(k, ...)``, with weights ``(k,)`` or ``(k, n)``."""
    weights = weights.reshape(*weights.shape, *[1] * (log_densities.ndim - weights.ndim))
    with np.errstate(divide="ignore"):  # a part may have lost all weight
        joint = log_densities + np.log(weights)
    mixture = logsumexp(joint, axis=0)
    after = np.exp(joint - mixture)
    return MixtureScores(np.asarray(mixture), np.minimum(sum_in_order(after * outliers), 1.0), after)


class Weighting:
    """What a mixture asks of its rule; ``k`` is the number of members."""

    rule: str
    """Its name in files."""
    scores_alone: ClassVar[bool] = False
    """Whether members are scored, and predict, as they would alone."""
    only_one_pass: ClassVar[str] = ""
    """Why rows are learned in one pass only, where they are."""
    expects_unit_scale: ClassVar[bool] = False
    """Whether members' priors expect numeric targets of scale 1, which tells what none of them can be right about."""
    weights: FloatArray
    """Weight of each member, ``(k,)``; they add up to 1."""
    noise_scale: FloatArray | None
    """By how much the noise of all members is multiplied in the mixture, ``(K,)``; None where it stays."""

    @property
    def arrays(self) -> Arrays:
        """What the weights follow from, by the names that files have for it."""
        raise NotImplementedError

    @property
    def needs_evidence(self) -> bool:
        """Whether `over_rows` needs the members' evidence."""
        return False

    def over_rows(
        self, scores: Sequence[RowScores], counts: FloatArray | None, evidences: FloatArray | None
    ) -> tuple[RowWeights, Self]:
        """How members count in each of ``n`` new rows, and the weighting after the last.

        Parameters
        ----------
        scores : of each member, for the rows before they were learned
        counts : (n,) array, as how many copies each row counts; None for one each
        evidences : (k,) array, the members' evidence before these rows, where the rule needs it
        """
        raise NotImplementedError

    def mixed_changes(self, rows: RowWeights, scores: Sequence[RowScores], after: FloatArray) -> FloatArray:
        """Probability, given each row, of a change, from what members say of it and their weights after the row."""
        return np.asarray(sum_in_order(after * [own.changes for own in scores]))

    def label_noise(self, mean: FloatArray, var: FloatArray, noise_var: FloatArray) -> FloatArray:
        """Variance of labels that more data would not reduce, from the mixture's moments and its members' noise."""
        return noise_var

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """Log evidence of all rows, from that of the members: that of their uniform mixture."""
        return float(logsumexp(evidences) - np.log(len(evidences)))

    def drift(self, shares: Sequence[dict[float | str, float]]) -> dict[float | str, float]:
        """Probability of each rate of drift, from what the members say of it."""
        return {name: float(self.weights @ [own[name] for own in shares]) for name in shares[0]}

    def later(self, rows: int) -> Self:
        """The weighting so many rows after the next, if nothing is learned until then."""
        return self

    def restarted(self) -> Self:
        """Forget the weights, before a pass that predicts the same rows again."""
        return self

    def with_outputs(self, n_outputs: int) -> Self:
        """The weighting of members with more outputs."""
        return self

    def copy(self) -> Self:
        """Make an independent copy."""
        return self

    def row_learner(self, members: Sequence[Any]) -> RowMixture | None:
        """The compiled path for one row, if there is one: of members that predict as they would alone."""
        return None

    def check_members(self, members: Sequence[Any]) -> None:
        """Raise a ValueError for members, from a file, that the rule can't weigh."""


class _OnePassWeights(Weighting):
    """Rules that compare members by what each predicted alone, in one pass."""

    noise_scale = None
    scores_alone = True


class SwitchingWeights(_OnePassWeights):
    """Bayes' rule for hypotheses of drift, any of which may take over before each row: see `HYPOTHESES`.

    None ever loses all of its weight, so the mixture follows a stream that changes the pace of its changes. Its
    evidence is the product of its predictive densities.
    """

    rule = "switching"
    only_one_pass = "drift='auto' compares rates of drift by what one pass predicted"

    def __init__(self, switching: Switching) -> None:
        self.switching = switching

    @classmethod
    def start(cls) -> Self:
        """Weigh all hypotheses the same."""
        return cls(Switching(np.full(len(HYPOTHESES), 1.0 / len(HYPOTHESES)), _ENTRIES))

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_members: int = len(HYPOTHESES), n_outputs: int = 1) -> Self:
        """Check and take what `arrays` gave."""
        if n_members != len(HYPOTHESES):
            raise ValueError(f"there must be {len(HYPOTHESES)} hypotheses of drift, got {n_members}")
        weights, evidence = checked_weights(arrays, n_members), sized(arrays, "log_evidence", (1,))
        return cls(Switching(weights, _ENTRIES, float(evidence[0])))

    @property
    def weights(self) -> FloatArray:  # type: ignore[override]
        """Those with which the next row is predicted."""
        return self.switching.weights

    @property
    def arrays(self) -> Arrays:
        """Weights, and the evidence of the mixture."""
        return {"weights": self.weights, "log_evidence": np.array([self.switching.log_evidence])}

    def over_rows(
        self, scores: Sequence[RowScores], counts: FloatArray | None, evidences: FloatArray | None
    ) -> tuple[RowWeights, Self]:
        """Weigh by the density of each row before it was learned, as often as the row counts.

        The evidence is that of all copies of a row, but the hypotheses are compared by the first: fast rates follow it,
        and predict the others as if there were no noise.
        """
        densities = np.array([own.log_densities for own in scores])
        switching = self.switching.copy()
        before, gains = switching.learn(densities if counts is None else counts * densities)
        after = switching.posterior.T
        if counts is not None:
            copies = np.array([own.weighted_log_densities for own in scores])
            gains = mixed_scores(before.T, copies, np.zeros_like(copies)).log_densities
            switching = Switching(switching.weights, _ENTRIES, self.switching.log_evidence + float(gains.sum()))
        return RowWeights(before.T, after=after, gains=gains), type(self)(switching)

    def mixed_changes(self, rows: RowWeights, scores: Sequence[RowScores], after: FloatArray) -> FloatArray:
        """A change is a fast rate, or an alarm of any hypothesis: slow ones raise it without any weight left."""
        assert rows.after is not None
        alarms = np.max([own.changes for own in scores], axis=0)
        return np.asarray(np.maximum(alarms, rows.after[_FAST].sum(axis=0)))

    def log_evidence(self, evidences: Sequence[float]) -> float:
        """Sum of the log predictive densities of all rows, each before it was learned."""
        return float(self.switching.log_evidence)

    def drift(self, shares: Sequence[dict[float | str, float]]) -> dict[float | str, float]:
        """The weights of the hypotheses."""
        return dict(zip(HYPOTHESES, self.weights.tolist(), strict=True))

    def later(self, rows: int) -> Self:
        """Any hypothesis may have taken over until then."""
        stays = (1.0 - _ENTRIES.sum()) ** max(rows, 0)
        weights = stays * self.weights + (1.0 - stays) * _ENTRIES / _ENTRIES.sum()
        return self if rows <= 0 else type(self)(Switching(weights, _ENTRIES, self.switching.log_evidence))

    def copy(self) -> Self:
        """With weights of its own, which the compiled path for one row changes in place."""
        return type(self)(self.switching.copy())

    def row_learner(self, members: Sequence[Any]) -> RowMixture | None:
        """One call for all members and their weights, where each has a compiled path of its own."""
        learners = [member._one_row for member in members]
        return None if None in learners else RowMixture(learners, self.switching)

    def check_members(self, members: Sequence[Any]) -> None:
        """Each member must have the rate of its hypothesis."""
        pairs = zip(members, HYPOTHESES.values(), strict=True)
        if any(getattr(member, name, None) != value for member, own in pairs for name, value in own.items()):
            raise ValueError("each hypothesis must have its own rate of drift")


class FadingWeights(_OnePassWeights):
    """Posterior weights from evidence ``(k,)`` that fades with the rows: which prior suits the data best now."""

    rule = "fading"
    only_one_pass = "prior_scale='auto' compares priors by what one pass predicted"

    def __init__(self, evidence: FloatArray) -> None:
        self.evidence = evidence

    @classmethod
    def start(cls, n_members: int) -> Self:
        """Weigh all members the same."""
        return cls(np.zeros(n_members))

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_members: int, n_outputs: int) -> Self:
        """Check and take what `arrays` gave."""
        return cls(sized(arrays, "evidence", (n_members,)))

    @property
    def weights(self) -> FloatArray:  # type: ignore[override]
        """Weight of each member, ``(k,)``."""
        shares = np.exp(self.evidence - self.evidence.max())
        return np.asarray(shares / shares.sum())

    @property
    def arrays(self) -> Arrays:
        """The faded evidence."""
        return {"evidence": self.evidence.copy()}

    def over_rows(
        self, scores: Sequence[RowScores], counts: FloatArray | None, evidences: FloatArray | None
    ) -> tuple[RowWeights, Self]:
        """Each row is weighed by those before it, so that it does not matter in which blocks rows come."""
        gains, evidence = np.array([own.row_gains for own in scores]), self.evidence
        fading = np.exp(-_as_counts(counts, gains.shape[1]) / _MEMORY)
        found = np.empty(gains.T.shape)
        for i, row in enumerate(gains.T):
            found[i] = evidence
            evidence = fading[i] * evidence + row
        return RowWeights(np.asarray(softmax(found, axis=1).T)), type(self)(evidence)


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
class CommitteeWeights(Weighting):
    """Weights by one of the rules in `WEIGHTINGS`; see `onepass.BayesianCommittee` for what each does."""

    expects_unit_scale: ClassVar[bool] = True
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
    def from_arrays(cls, rule: str, arrays: Arrays, n_members: int, n_outputs: int) -> Self:
        """Check and take what `arrays` gave."""
        weights, count = checked_weights(arrays, n_members), float(sized(arrays, "count", (1,))[0])
        recent = sized(arrays, "recent", (n_members, min(arrays["recent"].shape[-1], _WINDOW)))
        noise = sized(arrays, "noise", (2, n_outputs))
        if (noise <= 0.0).any() or count <= 0.0:
            raise ValueError("the saved noise of a mixture, and the rows behind its weights, must be above 0")
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

    @property
    def needs_evidence(self) -> bool:
        """Whether the rule is Bayes' for all rows."""
        return self.rule == "evidence"

    def over_rows(
        self, scores: Sequence[RowScores], counts: FloatArray | None, evidences: FloatArray | None
    ) -> tuple[RowWeights, Self]:
        """Move weights and noise towards what each row says of them.

        Each member has a share in the density that the mixture gave the row. Stacked weights move towards these shares,
        and the mixture's noise towards what the members' errors say of it, where they learn their noise: online EM for
        a mixture. Copies of a row move them as often.
        """
        log_densities, errors = np.array([own.log_densities for own in scores]), _errors(scores)
        weights, count = self.weights.copy(), self.count
        noise = _MixtureNoise(self.noise_scale.copy(), self.noise_weight.copy())
        n_rows, n_recent = log_densities.shape[1], self.recent.shape[1]
        counts = _as_counts(counts, n_rows)
        before, noise_scale = np.empty((len(weights), n_rows)), np.empty((n_rows, len(noise.scale)))
        recent = np.hstack([self.recent, counts * log_densities])
        if evidences is not None:
            totals = evidences[:, None] + np.cumsum([own.row_gains for own in scores], axis=1)
        with np.errstate(divide="ignore"):  # a member may have lost all weight
            for i, row in enumerate(log_densities.T):
                before[:, i], noise_scale[i] = weights, noise.scale
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
        after = type(self)(self.rule, weights, count, recent[:, -_WINDOW:], noise.scale, noise.weight)
        return RowWeights(before, noise_scale), after

    def label_noise(self, mean: FloatArray, var: FloatArray, noise_var: FloatArray) -> FloatArray:
        """What the variance of the mixture's probability leaves."""
        return np.maximum(mean * (1.0 - mean) - var, 0.0)

    def restarted(self) -> Self:
        """Weigh all members the same: what was known before the pass is known better after it."""
        n_members = len(self.weights)
        return replace(self.start(n_members, self.rule, len(self.noise_scale)), recent=self.recent)

    def with_outputs(self, n_outputs: int) -> Self:
        """The noise of new outputs starts as that of their members."""
        start, known = self.start(len(self.weights), self.rule, n_outputs), len(self.noise_scale)
        start.noise_scale[:known], start.noise_weight[:known] = self.noise_scale, self.noise_weight
        return replace(self, noise_scale=start.noise_scale, noise_weight=start.noise_weight)


def restore_weighting(rule: str, arrays: Arrays, n_members: int, n_outputs: int) -> Weighting:
    """Make the weighting whose ``arrays`` a file has."""
    kinds: dict[str, Any] = {kind.rule: kind.from_arrays for kind in (SwitchingWeights, FadingWeights)}
    one_of(rule, (*kinds, *WEIGHTINGS), "weighting")
    if rule in kinds:
        found: Weighting = kinds[rule](arrays, n_members, n_outputs)
        return found
    return CommitteeWeights.from_arrays(rule, arrays, n_members, n_outputs)


def checked_weights(arrays: Arrays, n_members: int) -> FloatArray:
    """The weights of members from a file, ``(k,)``."""
    weights = sized(arrays, "weights", (n_members,))
    if (weights < 0.0).any() or abs(weights.sum() - 1.0) > 1e-6:
        raise ValueError("the saved weights of a mixture must not be negative and must sum to 1")
    return weights


def _as_counts(counts: FloatArray | None, n_rows: int) -> FloatArray:
    return np.broadcast_to(1.0 if counts is None else np.asarray(counts, np.float64), n_rows)


def _errors(scores: Sequence[RowScores]) -> Errors | None:
    """The errors by which a mixture learns its noise, where the members learn theirs."""
    if any(own.ratios is None for own in scores):
        return None
    return np.array([own.ratios for own in scores]), np.array([own.noise_shares for own in scores])
