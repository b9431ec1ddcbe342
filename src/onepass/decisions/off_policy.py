"""Off-policy evaluation: what a policy would have earned, from a log of the decisions of another.

Every logged decision counts with the weight ``w = target(arm) / propensity``: how much more probable the policy makes
the arm than the log did. With rewards ``r``, and a model's expected rewards ``q`` of all arms, the estimates are

    IPS    mean of w r
    SNIPS  sum of w r / sum of w
    DR     mean of sum_a target(a) q(a) + w (r - q(arm))

A row is predicted by a model that has learned only rows before it. So each term of the doubly robust estimate is right
on average given the past, whatever the model, and the standard error of the mean needs no correction for a model that
was fitted to the same log.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass._validation import as_flag, as_floats, as_positive, as_share
from onepass.decisions.arms.table import Arms
from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.log import DecisionLog, LogSource, as_log
from onepass.decisions.reward_model import RewardModel, growing_chunks, reward_model
from onepass.decisions.targets import TargetPolicy, target_policy

__all__ = ["Estimate", "Evaluation", "evaluate"]

_PAIRS = 2**18  # of rows and arms looked at at a time, which bounds the memory


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated, and the standard error of the estimate."""

    value: float
    standard_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval that contains the true value with probability ``level``; it holds for many decisions.

        Examples
        --------
        >>> from onepass.decisions import Estimate
        >>> low, high = Estimate(0.5, 0.1).interval()
        >>> round(low, 3), round(high, 3)
        (0.304, 0.696)
        """
        half_width = float(ndtri(0.5 + 0.5 * as_share(level, "level", open_above=True))) * self.standard_error
        return self.value - half_width, self.value + half_width

    def __str__(self) -> str:
        return f"{self.value:.4g} +- {self.standard_error:.2g}"

    @classmethod
    def of_mean(cls, terms: FloatArray) -> "Estimate":
        """The mean of independent terms, or of terms that are each right on average given those before."""
        return cls(float(terms.mean()), float(terms.std(ddof=1) / np.sqrt(len(terms))))


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have earned per decision, by several estimates.

    Look at `dr` first: it is unbiased if the propensities are right, and its error is the smaller the better the model
    of rewards. `ips` needs no model. `snips` does not change if a constant is added to all rewards, but has a bias,
    which vanishes with more decisions.
    """

    ips: Estimate
    """By inverse propensity scoring."""
    snips: Estimate
    """By inverse propensity scoring, self-normalised."""
    dr: Estimate
    """Doubly robust."""
    dm: float
    """By the model of rewards alone, for comparison; its error is not known."""
    mean_weight: Estimate
    """Mean of the weights. It should be 1, up to its standard error, unless propensities in the log are wrong, or the
    policy chooses arms that could not be chosen in the log."""
    largest_weight: float
    effective_size: float
    """How many decisions of the policy itself would give as much information: ``(sum of w)^2 / sum of w^2``."""
    n_decisions: int
    n_clipped: int
    """Number of weights that were reduced to ``clip``."""
    n_left_out: int
    """Number of rows at later positions of rankings, which are left out."""
    mean_reward: Estimate
    """What the policy that made the log has earned."""

    def __str__(self) -> str:
        gap = abs(self.mean_weight.value - 1.0)
        is_doubtful = gap > 4.0 * self.mean_weight.standard_error + 1e-6
        lines = [
            f"doubly robust       {self.dr}",
            f"inverse propensity  {self.ips}",
            f"self-normalised     {self.snips}",
            f"logged              {self.mean_reward}",
            f"{self.n_decisions} decisions count as {self.effective_size:.4g}; weights {self.mean_weight}, at most "
            f"{self.largest_weight:.3g}",
        ]
        doubt = "weights are not 1 on average: propensities are wrong, or the log could not choose some of the arms"
        return "\n".join([*lines, doubt] if is_doubtful else lines)


def evaluate(
    log: LogSource,
    policy: Any,
    *,
    arms: Arms | None = None,
    model: ContextualBandit | None = None,
    clip: float | None = None,
    learn: bool = False,
) -> Evaluation:
    """Estimate what a policy would have earned per decision, from a log of other decisions.

    If decisions chose several arms, only the first counts. If all times are known, rows are taken in the order of their
    decisions.

    A log has information only about arms that had a fair chance to be chosen. The log of a bandit that has become sure
    of its arms says next to nothing about policies that disagree with it: `Evaluation.effective_size` is then small,
    and `Evaluation.mean_weight` may be well below 1 although the propensities are right. Some random choices, as
    `EpsilonGreedy` makes them, keep the weights bounded.

    Parameters
    ----------
    log : DecisionLog, path or table
        With propensities; see `DecisionLog.read`.
    policy : ContextualBandit, callable, array, "uniform" or name
        The policy to judge. A bandit chooses as it would now. A function takes contexts ``(n, d)`` and returns the
        probability of each arm ``(n, K)``; an array ``(n, K)`` has these for the rows of the log. ``"uniform"`` chooses
        every arm with the same probability; the name of an arm stands for always choosing it. A bandit that has learned
        this same log looks better than it is: keep part of the log, ``log[5000:]``, for the evaluation, or see
        ``learn``.
    arms : names, optional
        What the columns of probabilities stand for; by default column ``k`` is the arm whose number (``action``) is
        ``k``. For a bandit: the arms that can be chosen, by default all of its own. For ``"uniform"``: by default all
        arms in the log.
    model : ContextualBandit, optional
        Predicts rewards for the doubly robust estimate. A copy of it learns the rows of the log, which it must not have
        seen before. By default one perceptron per arm: logistic for rewards 0 and 1, else linear.
    clip : float, optional
        The largest weight; larger ones are reduced to it, which adds bias and reduces variance. None by default.
    learn : bool
        Let a copy of the bandit learn the log row by row; each row is judged by what was learned from the rows before.
        The estimate is then the mean over policies that have learned more and more of the log, and is free of
        overfitting. It is not what the bandit would have earned by itself, because it learns from the log's choices.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.decisions import ContextualBandit, DecisionLog, evaluate
    >>> rng = np.random.default_rng(0)
    >>> bandit = ContextualBandit(["red", "green"], n_features=1, policy="thompson", seed=0)
    >>> bandit.log = DecisionLog()
    >>> for _ in range(500):
    ...     choice = bandit.choose([rng.normal()])
    ...     _ = bandit.reward(choice.id, float(rng.random() < (0.6 if choice.arm == "red" else 0.4)))
    >>> result = evaluate(bandit.log, "green")
    >>> low, high = result.dr.interval()
    >>> low < 0.4 < high
    True
    """
    everything = as_log(log)
    places = _decisions(everything)
    decided = everything[places]
    target = target_policy(_aligned(policy, everything, places), decided, arms, learns=as_flag(learn, "learn"))
    terms = _Terms.gather(decided, target, reward_model(model, decided, target))
    limit = np.inf if clip is None else as_positive(clip, "clip")
    return terms.evaluation(decided.rewards, limit, len(everything) - len(decided))


def _decisions(log: DecisionLog) -> NDArray[np.intp]:
    """The places of the rows that count, in the order of their decisions."""
    places = np.flatnonzero(log.positions == 0)
    if len(places) < 3:
        state = "; positions start with 0, and position=None ignores them" if len(log) > 2 else ""
        raise ValueError(f"an evaluation needs at least three decisions, got {len(places)} with position 0{state}")
    if not np.isnan(log.times).any():  # a reward that comes early must not decide by what model its row is predicted
        places = places[np.argsort(log.times[places], kind="stable")]
    unknown = ~(log.propensities[places] > 0.0)
    if unknown.any():
        raise ValueError(
            f"{unknown.sum()} of {len(places)} decisions have no propensity above 0, the first in row "
            f"{places[unknown].min()}; a bandit records them once a log is attached. Leave out such rows, with "
            "log[log.propensities > 0], if that they lack it has nothing to do with their rewards"
        )
    return places


def _aligned(policy: Any, log: DecisionLog, places: NDArray[np.intp]) -> Any:
    """A policy; of an array with the probabilities of all rows those that count."""
    if not isinstance(policy, (np.ndarray, list, tuple)):
        return policy
    if len(policy) != len(log):
        raise ValueError(f"the policy's probabilities must have the log's {len(log)} rows, got {len(policy)}")
    return as_floats(policy, "the policy's probabilities")[places]


@dataclass(frozen=True)
class _Terms:
    """What all estimates are made of, per row: its weight, and what the model expects of its arm and of the policy."""

    weights: FloatArray
    expected: FloatArray
    direct: FloatArray

    @classmethod
    def gather(cls, log: DecisionLog, target: TargetPolicy, model: RewardModel) -> "_Terms":
        """Go through the log once; policy and model learn a chunk of rows after it was looked at."""
        n, rewards, propensities = len(log), log.rewards, log.propensities
        terms = cls(np.empty(n), np.empty(n), np.empty(n))
        raw = np.zeros(n)  # the model's own prediction for the logged arm, before it is drawn to the mean
        centres = np.zeros(n)
        for chunk in growing_chunks(n):
            past = slice(0, chunk.start)
            centre = float(rewards[past].mean()) if chunk.start else 0.0
            trust = _trust(terms.weights[past], (rewards - centres)[past], (raw - centres)[past])
            centres[chunk] = centre
            for piece in _pieces(chunk, len(target.names)):
                probabilities, predicted = target.probabilities(piece), model.predict(piece)
                columns = target.columns[piece]
                rows, is_known = np.arange(len(columns)), columns >= 0
                terms.weights[piece] = np.where(is_known, probabilities[rows, columns], 0.0) / propensities[piece]
                raw[piece] = np.where(is_known, predicted[rows, columns], centre)
                terms.expected[piece] = centre + trust * (raw[piece] - centre)
                terms.direct[piece] = centre + trust * ((probabilities * predicted).sum(axis=1) - centre)
            if chunk.stop < n:
                model.learn(chunk)
                target.learn(chunk)
        return terms

    def evaluation(self, rewards: FloatArray, clip: float, n_left_out: int) -> Evaluation:
        """All estimates."""
        if not self.weights.any():
            raise ValueError(
                "the policy never chooses an arm that was chosen in the log, so the log tells nothing about it; are "
                "the arms named as in the log?"
            )
        used = np.minimum(self.weights, clip)
        mean = float(used @ rewards / used.sum())
        return Evaluation(
            ips=Estimate.of_mean(used * rewards),
            snips=Estimate(mean, _ratio_error(used, rewards - mean)),
            dr=Estimate.of_mean((self.direct + used * (rewards - self.expected))[1:]),  # nothing predicts the first
            dm=float(self.direct[1:].mean()),
            mean_weight=Estimate.of_mean(self.weights),
            largest_weight=float(self.weights.max()),
            effective_size=float(self.weights.sum() ** 2 / (self.weights @ self.weights)),
            n_decisions=len(rewards),
            n_clipped=int((self.weights > clip).sum()),
            n_left_out=n_left_out,
            mean_reward=Estimate.of_mean(rewards),
        )


def _ratio_error(weights: FloatArray, gaps: FloatArray) -> float:
    """The standard error of a weighted mean, by how leaving out each row changes it (the jackknife).

    The delta method has the sum of all weights below the line. A row with a large weight has drawn the mean to itself,
    so it would be too small for few rows, and 0 for a single one.
    """
    others = weights.sum() - weights
    if (others <= 0.0).any():
        return float(np.inf)
    return float(np.linalg.norm(weights * gaps / others))


def _trust(weights: FloatArray, rewards: ArrayLike, predicted: ArrayLike) -> float:
    """How far to follow the model away from the mean reward: as far as would have been best in the past, 0 to 1.

    Where rewards are rare or rows few a model may predict worse than the mean reward does, and its noise is multiplied
    by the weights.
    """
    squares = float(weights @ np.square(predicted))
    product = float(weights @ np.multiply(rewards, predicted))
    return min(max(product / squares, 0.0), 1.0) if squares > 0.0 else 0.0


def _pieces(chunk: slice, n_arms: int) -> list[slice]:
    """A chunk of rows in pieces that fit into memory."""
    size = max(_PAIRS // n_arms, 1)
    return [slice(start, min(start + size, chunk.stop)) for start in range(chunk.start, chunk.stop, size)]
