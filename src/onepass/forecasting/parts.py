"""The state of a fleet divided among parts by the keys of series, and put together again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass._validation import as_count
from onepass.engine.lag_sums import AT_LENGTH, AT_PHASE
from onepass.files.state import Arrays, Parameters
from onepass.models.fleet.keys import as_keys, parts_of

__all__ = ["join_states", "split_state"]

_OF_PARTS = ("keys", "steps", "n_seen", "clock", "library")
"""Parameters in which parts of a fleet may differ."""


def split_state(parameters: Parameters, arrays: Arrays, n_parts: int) -> list[tuple[Parameters, Arrays]]:
    """The states of so many parts."""
    as_count(n_parts, "n_parts")
    if parameters["revisions"]:
        raise ValueError(
            "a fleet that accepts revisions can't be split: its parts would not know the newest step of all"
        )
    keys, steps = parameters["keys"], parameters["steps"]
    part_of = parts_of(as_keys(keys, len(keys)), n_parts)
    states = []
    for part in range(n_parts):
        own = np.flatnonzero(part_of == part).tolist()
        records = arrays["records"][own]
        changed = {
            "keys": [keys[i] for i in own],
            "steps": [steps[i] for i in own],
            "n_seen": int(records[:, [AT_LENGTH, AT_PHASE]].sum()),
        }
        states.append((parameters | changed, arrays | {"records": records, "shared_sizing": arrays["sizing"]}))
    return states


def join_states(states: Sequence[tuple[Parameters, Arrays]]) -> tuple[Parameters, Arrays]:
    """The state of a fleet with the series of all parts."""
    parameters, arrays = states[0]
    clocks = _known(states, "clock")
    if any(_settings(other) != _settings(parameters) for other, _ in states) or any(
        clock[:4] != clocks[0][:4] for clock in clocks
    ):
        raise ValueError("fleets can be joined only if they are parts of one fleet: make them with split")
    if any(not np.array_equal(other[name], arrays[name]) for name in ("priors", "sizing") for _, other in states):
        raise ValueError("parts can be joined only after they have shared what they learned: use share first")
    joined = {
        "keys": [key for one, _ in states for key in one["keys"]],
        "steps": [step for one, _ in states for step in one["steps"]],
        "n_seen": sum(one["n_seen"] for one, _ in states),
        "clock": next(iter(clocks), None),
        "library": next(iter(_known(states, "library")), None),
    }
    records = np.concatenate([own["records"] for _, own in states])
    return parameters | joined, {"records": records, "priors": arrays["priors"], "sizing": arrays["sizing"]}


def _settings(parameters: Parameters) -> Parameters:
    return {name: value for name, value in parameters.items() if name not in _OF_PARTS}


def _known(states: Sequence[tuple[Parameters, Arrays]], name: str) -> list[Any]:
    """What the states that know a parameter say."""
    return [one[name] for one, _ in states if one[name] is not None]
