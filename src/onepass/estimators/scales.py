"""Models that differ in their prior alone, weighted by how well each foretold the last rows.

The evidence that a model collects before each update ranks priors as a test set would. Plain posterior weights would
soon settle on one member for good; evidence that fades keeps the choice open and some of the gain of averaging.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import softmax

from onepass._typing import FloatArray
from onepass.mathematics.mixtures import mixture_moments

__all__ = ["MEMORY", "Committee", "Foretold", "class_densities", "gaussian_densities"]

Densities: TypeAlias = Callable[[Any, FloatArray], FloatArray]

MEMORY = 200.0  # rows after which evidence counts 1/e


class Foretold(NamedTuple):
    """What was predicted for rows just before each was learned."""

    mean: FloatArray
    """Expected targets, ``(n,)`` or ``(n, q)``; for classes their probabilities, ``(n, K)``."""
    var: FloatArray
    """The variance that comes from not knowing the weights."""
    noise_var: FloatArray
    """The variance that stays."""


class Committee:
    """Several models of one kind, taught the same rows.

    Parameters
    ----------
    members : models with ``learn``, ``predict`` and ``predict_then_learn``
    densities : function
        Log densities of targets from what ``predict_then_learn`` gave.
    """

    def __init__(self, members: Sequence[Any], densities: Densities, evidence: FloatArray | None = None) -> None:
        self.members = list(members)
        self.densities = densities
        self.evidence = np.zeros(len(self.members)) if evidence is None else evidence

    @property
    def weights(self) -> FloatArray:
        """The share of each member in predictions, ``(k,)``."""
        return np.asarray(softmax(self.evidence))

    @property
    def weighing(self) -> dict[str, FloatArray]:
        """What the weights follow from."""
        return {"evidence": self.evidence}

    @property
    def log_evidence(self) -> float:
        """The log evidence of the member with most of it."""
        return max(float(member.log_evidence) for member in self.members)

    def learn(self, X: Any, y: FloatArray, **passes: Any) -> None:
        """Teach all members the rows, or none of them if one can't learn them; a single one also in more passes."""
        if len(self.members) == 1:
            self.members[0].learn(X, y, **passes)
        else:
            self.predict_then_learn(X, y)

    def predict_then_learn(self, X: Any, y: FloatArray) -> Foretold:
        """Teach all members the rows, or none; what they together predicted for each just before it was learned."""
        if len(self.members) == 1:
            seen = self.members[0].predict_then_learn(X, y)
            return Foretold(seen.mean, seen.var, seen.noise_var)
        shares = self.weights
        members = copy.deepcopy(self.members)
        seen = [member.predict_then_learn(X, y) for member in members]
        logs = np.array([self.densities(one, y) for one in seen])
        ages = np.arange(len(y) - 1, -1, -1)
        self.evidence = self.evidence * np.exp(-len(y) / MEMORY) + logs @ np.exp(-ages / MEMORY)
        self.members = members
        means, variances, noises = (np.array([getattr(one, part) for one in seen]) for part in Foretold._fields)
        return Foretold(*mixture_moments(shares, means, variances), np.tensordot(shares, noises, 1))


def class_densities(seen: Any, y: FloatArray) -> FloatArray:
    """Log probability of each label or class by what was predicted just before it."""
    if seen.mean.ndim == 2:
        given = seen.mean[np.arange(len(y)), y.astype(int)]
    else:
        given = np.where(y > 0.5, seen.mean, 1.0 - seen.mean)
    return np.asarray(np.log(np.maximum(given, 1e-300)))


def gaussian_densities(seen: Any, y: FloatArray) -> FloatArray:
    """Log density of each target, taken for Gaussian, by what was predicted just before it."""
    total = np.maximum(seen.var + seen.noise_var, 1e-200)
    return np.asarray(-0.5 * (np.log(2.0 * np.pi * total) + (y - seen.mean) ** 2 / total))
