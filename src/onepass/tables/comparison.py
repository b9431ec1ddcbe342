"""What differs between two models: what was chosen and learned, and which weights have moved how far.

A weight's change is given in standard deviations of the older belief: one or two are what that belief expected,
and five say that the world, or the data, have changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from onepass.tables.model import TabularModel
from onepass.tables.weights import Weight, unit_of_weights

__all__ = ["Move", "changed_facts", "moves"]


@dataclass(frozen=True)
class Move:
    """A weight in two models; in one of them it may be missing."""

    of: str  # the target, or a class
    feature: str
    old: Weight | None
    new: Weight | None

    @property
    def deviations(self) -> float:
        """How far it has moved, in standard deviations of the older belief; as far as can be if one is missing."""
        if self.old is None or self.new is None:
            return float("inf")
        gap = self.new.mean - self.old.mean
        return 0.0 if gap == 0.0 else gap / self.old.std if self.old.std else float("inf")


def changed_facts(old: TabularModel, new: TabularModel) -> Iterator[tuple[str, str | None, str | None]]:
    """Facts and choices that differ: the name, and the words for both; None where a model has none."""
    before, after = ({**dict(model.facts()), **dict(model.choices())} for model in (old, new))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def moves(old: TabularModel, new: TabularModel) -> list[Move]:
    """Weights of both models, those first that have moved farthest; none if they are in different units."""
    if unit_of_weights(old) != unit_of_weights(new):
        return []
    before, after = (
        {(key, weight.feature): weight for key, weights in model.weights().items() for weight in weights}
        for model in (old, new)
    )
    found = [Move(*key, before.get(key), after.get(key)) for key in dict.fromkeys([*after, *before])]
    return sorted(found, key=lambda move: -abs(move.deviations))
