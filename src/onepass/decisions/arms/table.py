"""The arms that there are: their names, numbers and features, and which of them are paused."""

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_floats
from onepass.decisions.arms.base import Arm
from onepass.files.state import Arrays, as_tally, sized

__all__ = ["ArmTable", "Arms", "decode_arm", "encode_arm", "names_of"]

Arms: TypeAlias = Iterable[Any] | Mapping[Any, ArrayLike]
"""Names of arms, or their features by name."""
_SHOWN = 10  # names in a message


class ArmTable:
    """Arms by name, in the order in which they came.

    Attributes
    ----------
    n_features : int or None
        Number of features of every arm; None if arms have none.
    next_number : int
        Of the arm that comes next; numbers are not used again.
    """

    def __init__(self, arms: Arms) -> None:
        self._arms: dict[Any, Arm] = {}
        self._paused: set[Any] = set()
        self.n_features: int | None = None
        self.next_number: int = 0
        if isinstance(arms, (str, bytes)) or not isinstance(arms, Iterable):
            raise TypeError(f"arms must be a list of names, or a dict of features by name, got {arms!r}")
        features_of = dict(arms) if isinstance(arms, Mapping) else None
        for name in arms if features_of is None else features_of:
            features = None if features_of is None else features_of[name]
            if features is not None and not self._arms:
                self.n_features = int(np.size(as_floats(features, f"features of the arm {name!r}")))
            self.enter(self.new(name, features))

    def __len__(self) -> int:
        return len(self._arms)

    @property
    def names(self) -> tuple[Any, ...]:
        """Of all arms."""
        return tuple(self._arms)

    @property
    def all(self) -> list[Arm]:
        """All arms, paused ones too."""
        return list(self._arms.values())

    @property
    def paused(self) -> tuple[Any, ...]:
        """Names of the arms that are paused."""
        return tuple(name for name in self._arms if name in self._paused)

    def find(self, name: Any) -> Arm:
        """The arm of this name; a ValueError if there is none."""
        try:
            return self._arms[name]
        except (KeyError, TypeError):
            raise ValueError(f"there is no arm {name!r}; the arms are {names_of(self.all)}") from None

    def holds(self, arm: Arm) -> bool:
        """Whether an arm has not been removed since; one that was known for one decision only always counts."""
        own = self._arms.get(arm.name)
        return arm.number < 0 or (own is not None and own.number == arm.number)

    def asked(self, arms: Arms) -> list[Arm]:
        """The arms of these names; with features also new ones."""
        if isinstance(arms, Mapping):
            if self.n_features is None:
                raise TypeError("this bandit's arms have no features: pass a list of their names")
            return [Arm(_as_name(name), -1, self._as_features(name, own)) for name, own in arms.items()]
        found = [self.find(name) for name in ([arms] if isinstance(arms, str) else arms)]
        if len({arm.name for arm in found}) < len(found):
            raise ValueError(f"arms must all be different, got {names_of(found)}")
        return found

    def available(self, asked: list[Arm]) -> list[Arm]:
        """The arms of those asked for that can be chosen, as they are not paused."""
        found = [arm for arm in asked if arm.name not in self._paused]
        if not found:
            state = f"{names_of(asked)} are paused" if asked else "there is none"
            raise ValueError(f"no arm can be chosen: {state}; add or resume one")
        return found

    def new(self, name: Any, features: ArrayLike | None) -> Arm:
        """Make an arm that is not in the table yet; `enter` it then."""
        name = _as_name(name)
        if name in self._arms:
            raise ValueError(f"there is an arm {name!r} already")
        if features is None and self.n_features is not None:
            raise ValueError(f"the arm {name!r} needs {self.n_features} features, as the other arms have")
        return Arm(name, self.next_number, None if features is None else self._as_features(name, features))

    def enter(self, arm: Arm) -> None:
        """Add a new arm."""
        self._arms[arm.name] = arm
        self.next_number = arm.number + 1

    def remove(self, name: Any) -> None:
        """Remove an arm."""
        self._paused.discard(name)
        del self._arms[name]

    def pause(self, name: Any) -> None:
        """Leave an arm out of what is available."""
        self._paused.add(name)

    def resume(self, name: Any) -> None:
        """Make an arm available again."""
        self._paused.discard(name)

    def arrays(self) -> Arrays:
        """The features of all arms, ``(K, p)``, if they have some."""
        if self.n_features is None:
            return {}
        return {"arm_features": np.array([arm.features for arm in self.all]).reshape(len(self), self.n_features)}

    def export(self) -> dict[str, Any]:
        """All else of the arms, for JSON."""
        return {
            "arms": [[arm.name, arm.number] for arm in self.all],
            "paused": list(self.paused),
            "n_features": self.n_features,
            "next_number": self.next_number,
        }

    @classmethod
    def restore(cls, data: dict[str, Any], arrays: Arrays) -> "ArmTable":
        """Make the table that `export` and `arrays` described."""
        table, named = cls(()), data["arms"]
        features: Iterable[FloatArray | None] = [None] * len(named)
        if data["n_features"] is not None:
            table.n_features = as_tally(data["n_features"], "n_features")
            features = sized(arrays, "arm_features", (len(named), table.n_features))
        for (name, number), own in zip(named, features, strict=True):
            if number < table.next_number:
                raise ValueError(f"the arm {name!r} does not fit the others")
            table.enter(Arm(_as_name(name), as_tally(number, "number"), own))
        for name in data["paused"]:
            table.pause(table.find(name).name)
        table.next_number = max(table.next_number, as_tally(data["next_number"], "next_number"))
        return table

    def _as_features(self, name: Any, features: ArrayLike) -> FloatArray:
        values = as_floats(features, f"features of the arm {name!r}")
        if self.n_features is None:
            raise ValueError(f"the arm {name!r} must have no features, as the other arms have none")
        if values.shape != (self.n_features,):
            raise ValueError(
                f"the arm {name!r} must have {self.n_features} features, as the others, got shape {values.shape}"
            )
        return values


def names_of(arms: Iterable[Arm]) -> str:
    """The names of arms, for a message."""
    names = [repr(arm.name) for arm in arms]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) + more) or "none"


def encode_arm(arm: Arm) -> list[Any]:
    """An arm as what JSON can hold."""
    return [arm.name, arm.number, None if arm.features is None else arm.features.tolist()]


def decode_arm(data: Any) -> Arm:
    """The arm that `encode_arm` gave."""
    name, number, features = data
    return Arm(_as_name(name), int(number), None if features is None else as_floats(features, "features"))


def _as_name(name: Any) -> Any:
    if isinstance(name, str) or (isinstance(name, Integral) and not isinstance(name, bool)):
        return str.__str__(name) if isinstance(name, str) else int(name)  # not NumPy's
    raise TypeError(f"the name of an arm must be a string or an integer, got {name!r} ({type(name).__name__})")
