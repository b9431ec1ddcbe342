"""A bandit in a file: opened, asked for decisions and given rewards, so that every command may be repeated.

The file is an event store. Decisions and rewards are on the disk before they are printed, any number of commands may
run at once, and a caller that lost the answer asks again with the same id.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.console import counted

if TYPE_CHECKING:
    from onepass.decisions import ContextualBandit
    from onepass.events import EventStore

__all__ = ["BanditFile", "Request", "find_name", "open_file"]


@dataclass(frozen=True)
class Request:
    """What is asked of a bandit: a decision in a context."""

    context: tuple[float, ...]
    id: str | None = None
    n: int = 1
    arms: Sequence[Any] | Mapping[str, Sequence[float]] | None = None


@dataclass(frozen=True)
class BanditFile:
    """An open file and the bandit in it."""

    store: "EventStore"
    name: str
    bandit: "ContextualBandit"

    def decide(self, request: Request) -> dict[str, Any]:
        """Choose, or tell again what was chosen under the same id; the numbers of arms are by their names."""
        bandit = self.bandit
        if len(request.context) != bandit.n_features:
            raise ValueError(
                f"the context has {counted(len(request.context), 'number')}, and this bandit's contexts have "
                f"{bandit.n_features}"
            )
        if not all(map(isfinite, request.context)):
            raise ValueError(f"the context must have finite numbers, got {', '.join(map(str, request.context))}")
        with self.store.transaction():  # nobody else may decide under this id meanwhile
            if request.id is not None and (again := self._decided(request)) is not None:
                return again
            choice = bandit.choose(request.context, request.n, arms=self._candidates(request), id=request.id)
        numbers = {"propensities": choice.propensities, "means": choice.means, "stds": choice.stds}
        return {
            "id": choice.id,
            "arm": choice.arm,
            "arms": list(choice.arms),
            "propensity": choice.propensity,
            **{key: dict(zip(choice.candidates, found.tolist(), strict=True)) for key, found in numbers.items()},
            "again": False,
        }

    def _candidates(self, request: Request) -> Any:
        if request.arms is None or not isinstance(request.arms, Mapping):
            return request.arms and [find_name(arm, self.bandit.arms) for arm in request.arms]
        if not isinstance(self.bandit.get_params()["arms"], Mapping):
            raise ValueError("this bandit's arms have no features: arms must be a list of their names")
        return request.arms

    def _decided(self, request: Request) -> dict[str, Any] | None:
        from onepass.decisions.stored import repeated_decision, request_difference

        assert request.id is not None
        event = self.store.find(self.name, "decision", request.id)
        if event is None or event.forgotten:
            return None
        found = repeated_decision(event, request.context, request.n, request.arms)
        if found is None:
            other = request_difference(event, request.context, request.n)
            raise ValueError(
                f"the id {request.id!r} belongs to another decision, {other}; every decision needs an id of its own"
            )
        names = [arm.name for arm in found.arms]
        unknown = dict.fromkeys(("propensities", "means", "stds"))  # the belief at that time is not kept
        return {
            "id": found.id,
            "arm": names[0],
            "arms": names,
            "propensity": found.propensity,
            **unknown,
            "again": True,
        }

    def reward(self, decision_id: str, value: float, arm: Any = None) -> str:
        """Learn a reward: ``"learned"``, ``"known"`` if it came before, ``"unknown"`` if no decision waits for it."""
        from onepass.decisions import UnknownDecision
        from onepass.decisions.stored import find_decision

        if arm is not None:
            decision = find_decision(self.store, self.name, decision_id)
            arm = find_name(arm, self.bandit.arms if decision is None else [own.name for own in decision.arms])
        try:
            return "learned" if self.bandit.reward(decision_id, value, arm, unknown="error") else "known"
        except UnknownDecision:
            return "unknown"

    def count_unknown(self, decision_id: str, value: float) -> None:
        """Count a reward that no decision waits for."""
        self.bandit.reward(decision_id, value, unknown="count")


@contextmanager
def open_file(path: Path, name: str) -> Iterator[BanditFile]:
    """Open the bandit of this name in a file that is there."""
    if not path.exists():
        raise click.ClickException(
            f"{path} does not exist; 'onepass bandit create {path} --arms a,b --features 3' makes a bandit."
        )
    from onepass.decisions.stored import open_bandit
    from onepass.events import EventStore

    with EventStore(path) as store:
        there = store.streams()
        if name not in there:
            raise click.ClickException(
                f"{path} holds no bandit {name!r}; it holds {', '.join(map(repr, there)) or 'nothing'} (--name)."
            )
        yield BanditFile(store, name, open_bandit(store, name))


def find_name(given: Any, names: Iterable[Any]) -> Any:
    """The name of an arm as the bandit has it: texts on the command line may stand for whole numbers.

    Examples
    --------
    >>> find_name("7", [6, 7]), find_name("red", ["red"]), find_name("blue", ["red"])
    (7, 'red', 'blue')
    """
    there = list(names)
    if given in there:
        return given
    return next((name for name in there if str(name) == str(given)), given)
