"""When two requests for a decision are the same, so that an id that comes again is answered again or refused."""

import json
from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike

from onepass.decisions.arms.table import Arms

__all__ = ["request_digest"]


def request_digest(context: ArrayLike, n: int, arms: Arms | None) -> str:
    """What a decision keeps of its request: context, number of arms and the arms it could choose from.

    Numbers are compared as numbers, and names of arms as texts, because the command line has nothing else. The order of
    the arms does not count: each has the same chance to be chosen in any order.

    Examples
    --------
    >>> request_digest([1, -0.0], 1, [7, 8]) == request_digest([1.0, 0.0], 1, ["8", "7"])
    True
    >>> request_digest([1, 0], 1, [7, 8]) == request_digest([1, 0], 1, None)
    False
    """
    asked = [_numbers(context), int(n), None if arms is None else _compared(arms)]
    return blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=16).hexdigest()


def _compared(arms: Arms) -> list[str] | dict[str, list[float]]:
    if isinstance(arms, Mapping):
        return {str(name): _numbers(features) for name, features in arms.items()}
    return [arms] if isinstance(arms, str) else sorted(str(name) for name in arms)


def _numbers(values: ArrayLike) -> list[float]:
    found: list[float] = (np.ravel(np.asarray(values, dtype=float)) + 0.0).tolist()  # -0.0 is 0.0
    return found
