"""Policies: how the next arm is chosen, given what the bandit expects of all arms.

For each arm a policy sees mean and standard deviation of a score, which grows with the expected reward. For rewards 0
and 1 the score is the log odds, for counts the log rate. The policy ranks the arms, and says how probable each was to
come first: its propensity.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass._validation import as_fraction, as_nonnegative, as_share, one_of
from onepass.decisions.propensities import best_probabilities

__all__ = ["UCB", "ArmScores", "EpsilonGreedy", "Greedy", "Policy", "Thompson", "as_policy", "decode_policy"]

Ranking = NDArray[np.intp]

# Of Thompson sampling with networks, where contexts differ enough to find out by themselves what arms are worth. Chosen
# on thirteen tasks that are not among those reported (digits, elec, binned regression sets, random classes): all of
# them rejected 1, and from 0.1 to 0.5 they differed by little.
_NETWORK_SCALE = 0.3


class ArmScores(NamedTuple):
    """What the bandit expects of the arms in one context, ``(K,)`` each."""

    mean: FloatArray
    """Means of the scores."""
    std: FloatArray
    """Standard deviations of the scores."""
    reward_mean: FloatArray
    """Expected rewards."""
    reward_std: FloatArray
    """Standard deviations of the expected rewards, without the noise of single rewards."""

    def take(self, places: Any) -> "ArmScores":
        """The scores of some of the arms."""
        return ArmScores(*(part[places] for part in self))


class Policy:
    """How arms are ranked; a subclass gives `rank` and `propensities`, and is a dataclass of its parameters."""

    name: ClassVar[str]

    def rank(self, scores: ArmScores, rng: np.random.Generator, n: int) -> Ranking:
        """The places of the ``n`` arms to choose, the first one first."""
        raise NotImplementedError

    def propensities(self, scores: ArmScores) -> FloatArray:
        """Probability that each arm comes first, ``(K,)``."""
        raise NotImplementedError

    def export(self) -> dict[str, Any]:
        """The name and the parameters, for a file; a TypeError for a policy that no file could give back."""
        if _POLICIES.get(self.name) is not type(self):
            raise TypeError(f"a bandit can be saved only with one of the policies {', '.join(_POLICIES)}, got {self!r}")
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


@dataclass(frozen=True)
class Thompson(Policy):
    """Thompson sampling: draw a score for each arm from its distribution, and take the arm with the highest.

    With ``scale=1`` each arm is chosen with the probability that it is the best. Scores are drawn independently of each
    other, so propensities are exact.

    Parameters
    ----------
    scale : float
        Multiplies the standard deviations of the scores. 1 is what theory requires for the worst case; on the tasks on
        which the default was chosen, less exploration earned more.

    Examples
    --------
    >>> from onepass.decisions import ContextualBandit, Thompson
    >>> bandit = ContextualBandit(["red", "green"], n_features=1, policy=Thompson(scale=1.0), seed=0)
    >>> bandit.choose([0.5]).propensity  # nothing is known of either arm
    0.5
    """

    name: ClassVar[str] = "thompson"
    # Chosen on made-up tasks that are not among those reported: clicks on 3 to 10 arms, prices, rewards linear in the
    # context. 1 lost on all of them by exploring, 0.3 on some by giving up the best arm for good.
    scale: float = 0.5

    def __post_init__(self) -> None:
        as_nonnegative(self.scale, "scale")

    def rank(self, scores: ArmScores, rng: np.random.Generator, n: int) -> Ranking:
        """Rank by one draw of all scores."""
        drawn = scores.mean + self.scale * scores.std * rng.standard_normal(len(scores.mean))
        return _highest(drawn, rng, n)

    def propensities(self, scores: ArmScores) -> FloatArray:
        """By quadrature."""
        return best_probabilities(scores.mean, self.scale * scores.std)


class _ByIndex(Policy):
    """Policies that give each arm a fixed index and take the highest; of equal ones each is as probable."""

    def index(self, scores: ArmScores) -> FloatArray:
        """What arms are ranked by, ``(K,)``."""
        raise NotImplementedError

    def rank(self, scores: ArmScores, rng: np.random.Generator, n: int) -> Ranking:
        """Rank by the index."""
        return _highest(self.index(scores), rng, n)

    def propensities(self, scores: ArmScores) -> FloatArray:
        """All to the highest, or shared by those that are equal."""
        index = self.index(scores)
        first = index == index.max()
        return np.asarray(first / first.sum())


@dataclass(frozen=True)
class UCB(_ByIndex):
    """Upper confidence bound: take the arm whose score has the highest quantile.

    Parameters
    ----------
    level : float
        Which quantile, in (0, 1); 0.84 is one standard deviation above the mean.

    Examples
    --------
    >>> from onepass.decisions import UCB, ContextualBandit
    >>> bandit = ContextualBandit(["red", "green"], n_features=1, policy=UCB(level=0.9), seed=0)
    >>> first = bandit.choose([0.5])
    >>> _ = bandit.reward(first.id, 0.0)
    >>> bandit.choose([0.5]).arm != first.arm  # the other one may be better
    True
    """

    name: ClassVar[str] = "ucb"
    level: float = 0.84

    def __post_init__(self) -> None:
        as_share(self.level, "level", open_above=True)

    def index(self, scores: ArmScores) -> FloatArray:
        """The quantile of the scores."""
        return np.asarray(scores.mean + ndtri(self.level) * scores.std)


@dataclass(frozen=True)
class Greedy(_ByIndex):
    """Take the arm with the highest expected reward; arms that are equal are chosen at random."""

    name: ClassVar[str] = "greedy"

    def index(self, scores: ArmScores) -> FloatArray:
        """The expected rewards."""
        return scores.reward_mean


@dataclass(frozen=True)
class EpsilonGreedy(Greedy):
    """Take the arm with the highest expected reward, but with probability ``epsilon`` a random arm.

    Parameters
    ----------
    epsilon : float
        Probability of a random choice, in [0, 1].

    Examples
    --------
    >>> from onepass.decisions import ContextualBandit, EpsilonGreedy
    >>> bandit = ContextualBandit(["red", "green"], n_features=1, policy=EpsilonGreedy(epsilon=0.1), seed=0)
    >>> bandit.reward(bandit.choose([0.5]).id, 1.0)
    True
    >>> round(bandit.choose([0.5]).propensity, 2)  # of the arm that was rewarded: 0.9, and half of 0.1
    0.95
    """

    name: ClassVar[str] = "epsilon_greedy"
    epsilon: float = 0.05

    def __post_init__(self) -> None:
        as_fraction(self.epsilon, "epsilon")

    def rank(self, scores: ArmScores, rng: np.random.Generator, n: int) -> Ranking:
        """At random, or by the expected rewards."""
        explores = rng.random() < self.epsilon
        return _highest(np.zeros(len(scores.mean)) if explores else self.index(scores), rng, n)

    def propensities(self, scores: ArmScores) -> FloatArray:
        """Those of the greedy choice, and an equal share of ``epsilon`` for each."""
        greedy = super().propensities(scores)
        return (1.0 - self.epsilon) * greedy + self.epsilon / len(greedy)


_POLICIES: dict[str, type[Policy]] = {kind.name: kind for kind in (Thompson, UCB, Greedy, EpsilonGreedy)}


def as_policy(value: Any, *, for_network: bool = False) -> Policy:
    """Take a policy, or the name of one with its default parameters, which for Thompson sampling the model decides."""
    if isinstance(value, Policy):
        return value
    if value == Thompson.name and for_network:
        return Thompson(_NETWORK_SCALE)
    return _POLICIES[one_of(value, tuple(_POLICIES), "policy")]()


def decode_policy(data: Any) -> Policy:
    """Make the policy that `Policy.export` described."""
    parameters = dict(data)
    return _POLICIES[one_of(parameters.pop("name"), tuple(_POLICIES), "policy")](**parameters)


def _highest(index: FloatArray, rng: np.random.Generator, n: int) -> Ranking:
    """The places of the ``n`` highest, of equal ones in random order."""
    if n == 1:
        best = np.flatnonzero(index == index.max())
        return best if len(best) == 1 else best[rng.integers(len(best), size=1)]
    return np.lexsort((rng.random(len(index)), -index))[:n]
