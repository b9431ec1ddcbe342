"""Decisions of bandits, their rewards, and arms that come and go."""

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from msgspec import to_builtins

from onepass.decisions.changes import Change as BanditChange
from onepass.decisions.choice import Pending
from onepass.decisions.history import UnknownDecision
from onepass.decisions.request import request_digest
from onepass.decisions.stored import change_of, data_of
from onepass.events import Event
from onepass.service.errors import ProblemError
from onepass.service.journal import own_key
from onepass.service.operations.base import Change, Operation, Plan, Planning, check_kept, digest
from onepass.service.served import BanditModel
from onepass.service.wire import ArmRequest, DecideRequest, Decision, ExpireRequest, Learned, RewardRequest

__all__ = ["ChangeArm", "Decide", "Expire", "Reward", "Withdraw", "as_plan", "bandit_of"]


class Decide(Operation):
    """Let a bandit choose."""

    kind = "decision"
    undone = "nothing was decided"
    asked: DecideRequest

    def key(self, planning: Planning) -> str | None:
        """The id that the client has given."""
        bandit_of(planning)
        return self.asked.id

    @property
    def request(self) -> str:
        """What was to be decided."""
        return request_digest(self.asked.context, self.asked.n, self.asked.arms)

    def answer_of(self, event: Event) -> Decision:
        """The decision that was made."""
        made = Pending.of(change_of(event))
        names = [arm.name for arm in made.arms]
        return Decision(made.id, names[0], names, made.propensity or 0.0, event.number)

    def plan(self, planning: Planning) -> Plan:
        """Choose."""
        bandit, asked = bandit_of(planning), self.asked
        bandit.check_context(asked.context)
        id = asked.id or self._free_id(planning, bandit)
        try:
            choice, changes = bandit.model.plan_choice(
                asked.context, asked.n, arms=asked.arms, id=id, planned=planning.planned
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ProblemError(422, "bad value", str(error), field=self._field(bandit)) from None
        answer = Decision(choice.id, choice.arm, list(choice.arms), choice.propensity, planning.next_number)
        return as_plan(planning, answer, changes)

    def _free_id(self, planning: Planning, bandit: BanditModel) -> str | None:
        """None: the bandit counts its decisions; or another id, where a rollback has undone one of that number."""
        number = bandit.model.n_decisions + planning.planned.n_decisions
        return None if planning.find("decision", str(number)) is None else uuid4().hex

    def _field(self, bandit: BanditModel) -> str:
        """What is to blame if the bandit can't choose in a context of the right length."""
        there = set(bandit.model.arms) - set(bandit.model.paused)
        asked = there if self.asked.arms is None else there & set(self.asked.arms)
        return "arms" if not asked or len(asked) >= self.asked.n else "n"


class Reward(Operation):
    """Tell a bandit what came of a decision."""

    kind = "reward"
    lag: float | None = None
    """Seconds from the decision to its reward, if the reward is a new one."""

    def __init__(self, request: RewardRequest) -> None:
        super().__init__(request)
        self._made: tuple[Event, Any]  # the decision, and the arm that is rewarded

    def key(self, planning: Planning) -> str:
        """The id of the decision, and the arm."""
        self._made = self._decision(planning)
        return self._key

    @property
    def request(self) -> str:
        """The reward."""
        return digest(self.asked.reward)

    def answer_of(self, event: Event) -> Learned:
        """What was answered."""
        return Learned(**event.payload["answer"])

    @property
    def _key(self) -> str:
        return f"{self.asked.id}\n{self._made[1]!r}"  # ids have no line breaks

    def _decision(self, planning: Planning) -> tuple[Event, Any]:
        """The decision that the reward is for, and the arm, by default the first that was chosen."""
        bandit_of(planning)
        decision = planning.find("decision", self.asked.id)
        if decision is None:
            words = f"there is no decision with the id {self.asked.id!r}"
            raise ProblemError(404, "unknown decision", words, field="id")
        check_kept(decision)
        chosen = [arm.name for arm in Pending.of(change_of(decision)).arms]
        arm = chosen[0] if self.asked.arm is None else self.asked.arm
        if arm not in chosen:
            names = ", ".join(map(repr, chosen))
            words = f"the decision {self.asked.id!r} chose {names}, not {arm!r}"
            raise ProblemError(422, "bad value", words, field="arm")
        return decision, arm

    def plan(self, planning: Planning) -> Plan:
        """Learn the reward."""
        (decision, arm), bandit, asked = self._made, bandit_of(planning), self.asked
        more = int(arm in bandit.model.arms)
        answer = Learned(asked.id, "learned", planning.next_number, planning.n_seen(more))
        try:
            _, changes = bandit.model.plan_rewards(
                [asked.id], [asked.reward], [arm], unknown="error", planned=planning.planned
            )
        except UnknownDecision:
            words = f"no reward is expected any more for the decision {asked.id!r}; it has waited too long"
            raise ProblemError(410, "decision expired", words, field="id") from None
        except ValueError as error:
            raise ProblemError(422, "bad value", str(error), field="reward") from None
        self.lag = max(time.time() - decision.time, 0.0)
        kept = {"request": self.request, "answer": to_builtins(answer)}
        return as_plan(planning, answer, changes, key=self._key, n_rows=more, kept=kept)


class _Rare(Operation):
    """What is planned with nothing else, so that nothing that is planned has to be thought of."""

    alone = True


class Withdraw(_Rare):
    """Have a bandit stop waiting for the reward of a decision, and delete its context."""

    undone = "nothing was deleted"

    def __init__(self, id: str) -> None:
        self.id = id

    def plan(self, planning: Planning) -> Plan:
        """Expect no reward."""
        return as_plan(planning, *bandit_of(planning).model.plan_withdrawal(self.id))


class Expire(_Rare):
    """Have a bandit stop waiting for the rewards of decisions that are older than so many seconds, now or at a time."""

    def __init__(self, request: ExpireRequest, now: float | None = None) -> None:
        super().__init__(request)
        self.now = now

    def plan(self, planning: Planning) -> Plan:
        """Find them, and learn a reward for them if there is one by default."""
        try:
            bandit, asked = bandit_of(planning).model, self.asked
            expired, changes = bandit.plan_expiry(asked.after, asked.default, now=self.now)
        except ValueError as error:
            raise ProblemError(422, "bad value", str(error), field="default") from None
        return as_plan(planning, {"expired": expired, "version": planning.next_number - 1 + len(changes)}, changes)


class ChangeArm(_Rare):
    """Add, remove, pause or resume an arm."""

    undone = "the arm was not changed"
    asked: ArmRequest

    def plan(self, planning: Planning) -> Plan:
        """Say which arms there are then."""
        model, asked = bandit_of(planning).model, self.asked
        changes: list[BanditChange] = []
        try:
            # The same arm again changes nothing.
            if asked.change != "add" or asked.features is not None or asked.arm not in model.arms:
                changes = model.plan_arm(asked.change, asked.arm, asked.features)
        except (ValueError, TypeError) as error:
            raise ProblemError(422, "bad value", str(error), field="arm") from None
        arms, paused = list(model.arms), set(model.paused)
        if changes and asked.change == "add":
            arms.append(asked.arm)
        elif asked.change == "remove":
            arms.remove(asked.arm)
        paused = paused | {asked.arm} if asked.change == "pause" else paused - {asked.arm}
        version = planning.next_number - 1 + len(changes)
        answer = {"arms": arms, "paused": [arm for arm in arms if arm in paused], "version": version}
        return as_plan(planning, answer, changes)


def as_plan(
    planning: Planning,
    answer: Any,
    changes: Iterable[BanditChange],
    *,
    key: str = "",
    n_rows: int = 0,
    kept: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """Changes of a bandit as those of the service; what is planned next knows of them."""
    found = []
    for number, change in enumerate(changes, planning.next_number):
        planning.planned.add(change)
        data, blob = data_of(change)
        own = key or change.key or own_key(change.kind, number)
        found.append(Change(change.kind, own, {**data, **kept}, blob, n_rows))
    return Plan(answer, tuple(found))


def bandit_of(planning: Planning) -> BanditModel:
    """The bandit that a request is for, or a problem if the model is none."""
    bandit: BanditModel = planning.state.champion.as_bandit("deciding")
    return bandit
