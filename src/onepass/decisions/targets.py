"""Policies to be judged by a log: in whatever form they come, they give the probability of each arm in each row."""

from copy import deepcopy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import as_floats
from onepass.decisions.arms.table import Arms
from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.log import DecisionLog

__all__ = ["TargetPolicy", "learn_known", "target_policy"]

_SUM_ERROR = 1e-6  # of probabilities, which may come from float32


class TargetPolicy:
    """A policy that is to be judged.

    Attributes
    ----------
    names : tuple
        Of the arms that it can choose, ``(K,)``.
    columns : (n,) array
        Which of these each row of the log chose; -1 for none.
    """

    def __init__(self, names: tuple[Any, ...], columns: NDArray[np.int64]) -> None:
        self.names = names
        self.columns = columns

    def probabilities(self, rows: slice) -> FloatArray:
        """With which probability each arm would be chosen in these rows, ``(m, K)``."""
        raise NotImplementedError

    def learn(self, rows: slice) -> None:
        """Learn from rows; most policies stay as they are."""


class _Constant(TargetPolicy):
    """All arms with the same probability; of one arm: always this one."""

    def probabilities(self, rows: slice) -> FloatArray:
        return np.full((rows.stop - rows.start, len(self.names)), 1.0 / len(self.names))


class _Given(TargetPolicy):
    """Probabilities that are known beforehand."""

    def __init__(self, names: tuple[Any, ...], columns: NDArray[np.int64], values: FloatArray) -> None:
        super().__init__(names, columns)
        self._values = values

    def probabilities(self, rows: slice) -> FloatArray:
        return self._values[rows]


class _Bandit(TargetPolicy):
    """A bandit: as it is, or one that learns the log as it goes."""

    def __init__(self, bandit: ContextualBandit, log: DecisionLog, arms: Arms | None, *, learns: bool) -> None:
        names = bandit.arms if arms is None else tuple(arms)
        super().__init__(names, _places(log.arms, names))
        self._bandit, self._log, self._arms, self._learns = bandit, log, arms, learns

    def probabilities(self, rows: slice) -> FloatArray:
        return self._bandit.propensities(self._log.contexts[rows], self._arms)

    def learn(self, rows: slice) -> None:
        if self._learns:
            learn_known(self._bandit, self._log[rows])


def target_policy(policy: Any, log: DecisionLog, arms: Arms | None, *, learns: bool) -> TargetPolicy:
    """Take a policy in any form that `onepass.decisions.evaluate` allows; an array has the rows of this log."""
    if isinstance(policy, ContextualBandit):
        return _Bandit(deepcopy(policy) if learns else policy, log, arms, learns=learns)
    if learns:
        raise TypeError(f"learn=True needs a ContextualBandit as the policy, got {type(policy).__name__}")
    if isinstance(policy, (str, Integral)):
        return _by_name(policy, log, None if arms is None else tuple(arms))
    return _by_column(policy(log.contexts) if callable(policy) else policy, log, arms)


def _by_name(name: Any, log: DecisionLog, arms: tuple[Any, ...] | None) -> TargetPolicy:
    """Every arm as often, or always one."""
    known = tuple(dict.fromkeys(log.arms[np.argsort(log.actions, kind="stable")])) if arms is None else arms
    if name in known:
        if name == "uniform":
            raise ValueError(
                "'uniform' is both an arm of the log and the name of a policy: pass an array of probabilities instead"
            )
        return _Constant((name,), _places(log.arms, (name,)))
    if name == "uniform":
        return _Constant(known, _places(log.arms, known))
    shown = ", ".join(map(repr, known[:10]))
    raise ValueError(f"policy {name!r} is neither 'uniform' nor an arm of the log, which has {shown}")


def _by_column(probabilities: Any, log: DecisionLog, arms: Arms | None) -> TargetPolicy:
    """By the probabilities of each arm in each row."""
    values = as_floats(probabilities, "the policy's probabilities")
    if values.ndim != 2 or len(values) != len(log):
        raise ValueError(f"the policy's probabilities must have shape ({len(log)}, K), got shape {values.shape}")
    wrong = np.flatnonzero((values < 0.0).any(axis=1) | (np.abs(values.sum(axis=1) - 1.0) > _SUM_ERROR))
    if len(wrong):
        raise ValueError(
            f"the policy's probabilities must not be negative and sum to 1, got {values[wrong[0]]} in row {wrong[0]}"
        )
    return _Given(*_columns(values.shape[1], log, arms), values)


def _columns(n_arms: int, log: DecisionLog, arms: Arms | None) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """What columns of probabilities stand for: names, or numbers of arms."""
    if arms is not None:
        names = tuple(arms)
        if len(names) != n_arms:
            raise ValueError(f"arms must name each of the {n_arms} columns of probabilities, got {len(names)} names")
        return names, _places(log.arms, names)
    low, high = int(log.actions.min()), int(log.actions.max())
    if low < 0 or high >= n_arms:
        raise ValueError(
            f"the policy has probabilities for {n_arms} arms, but the arms in the log are numbered {low} to {high}; "
            "say with arms which arm each column stands for"
        )
    named = dict(zip(log.actions.tolist(), log.arms, strict=True))
    return tuple(named.get(k, k) for k in range(n_arms)), log.actions


def _places(chosen: NDArray[np.object_], names: tuple[Any, ...]) -> NDArray[np.int64]:
    """The place of each arm among the names; -1 for one that is not there."""
    place = {name: k for k, name in enumerate(names)}
    if len(place) < len(names):
        raise ValueError(f"arms must all be different, got {names}")
    return np.array([place.get(name, -1) for name in chosen], dtype=np.int64)


def learn_known(bandit: ContextualBandit, log: DecisionLog) -> None:
    """Let a bandit learn the rewards of the arms that it has."""
    known = _places(log.arms, bandit.arms) >= 0
    if known.any():
        bandit.learn(log.contexts[known], log.arms[known].tolist(), log.rewards[known])
