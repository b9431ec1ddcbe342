"""Decisions of bandits, their rewards, and arms that come and go."""

import time
from typing import Any
from uuid import uuid4

from onepass.decisions.choice import Pending
from onepass.decisions.journal import change_of, repeated_decision
from onepass.decisions.ledger import UnknownDecision
from onepass.service.errors import ProblemError
from onepass.service.operations.base import Desk, Operation, check_kept, used_before
from onepass.service.served import BanditModel
from onepass.service.served.base import not_for
from onepass.service.wire import ArmRequest, DecideRequest, Decision, Learned, RewardRequest

__all__ = ["ChangeArm", "Decide", "Expire", "Reward", "Withdraw"]


class Decide(Operation):
    """Let a bandit choose."""

    undone = "nothing was decided"

    def __init__(self, request: DecideRequest) -> None:
        self.request = request

    def write(self, desk: Desk) -> Decision:
        """Choose, and write the decision; the same request again gets the same decision."""
        bandit, asked = _bandit_of(desk), self.request
        event = None if asked.id is None else desk.find("decision", asked.id)
        if event is not None:
            check_kept(event)
            made = repeated_decision(event, asked.context, asked.n, asked.arms)
            if made is None:
                raise used_before(event)
            names = [arm.name for arm in made.arms]
            return Decision(made.id, names[0], names, made.propensity or 0.0, event.number)
        bandit.check_context(asked.context)
        try:
            number = desk.next_number()
            choice = bandit.model.choose(asked.context, asked.n, arms=asked.arms, id=asked.id or _free_id(desk, bandit))
        except (ValueError, KeyError, TypeError) as error:
            raise ProblemError(422, "bad value", str(error), field=self._field(bandit)) from None
        return Decision(choice.id, choice.arm, list(choice.arms), choice.propensity, number)

    def _field(self, bandit: BanditModel) -> str:
        """What is to blame if the bandit can't choose in a context of the right length."""
        there = set(bandit.model.arms) - set(bandit.model.paused)
        asked = there if self.request.arms is None else there & set(self.request.arms)
        return "arms" if not asked or len(asked) >= self.request.n else "n"


class Reward(Operation):
    """Tell a bandit what came of a decision."""

    lag: float | None = None
    """Seconds from the decision to its reward, if the reward is a new one."""

    def __init__(self, request: RewardRequest) -> None:
        self.request = request

    def write(self, desk: Desk) -> Learned:
        """Learn the reward; the same again gets the same answer."""
        bandit, asked = _bandit_of(desk), self.request
        decision = desk.find("decision", asked.id)
        if decision is None:
            raise ProblemError(404, "unknown decision", f"there is no decision with the id {asked.id!r}", field="id")
        check_kept(decision)
        made = Pending.of(change_of(decision))
        arm = made.arms[0].name if asked.arm is None else asked.arm
        self.event_key = f"{asked.id}\n{arm!r}"  # ids have no line breaks
        event = desk.find("reward", self.event_key)
        if event is not None:
            if event.payload["rewards"][0][2] != asked.reward:
                raise used_before(event)
            return Learned(asked.id, "learned", event.number, event.payload["n_seen"])
        if arm not in [one.name for one in made.arms]:
            chosen = ", ".join(repr(one.name) for one in made.arms)
            raise ProblemError(422, "bad value", f"the decision {asked.id!r} chose {chosen}, not {arm!r}", field="arm")
        answer = Learned(asked.id, "learned", desk.next_number(), bandit.n_seen + (arm in bandit.model.arms))
        self.note = {"n_seen": answer.n_seen}
        try:
            bandit.model.reward(asked.id, asked.reward, arm, unknown="error")
        except UnknownDecision:
            words = f"no reward is expected any more for the decision {asked.id!r}; it has waited too long"
            raise ProblemError(410, "decision expired", words, field="id") from None
        except ValueError as error:
            raise ProblemError(422, "bad value", str(error), field="reward") from None
        self.lag = max(time.time() - decision.time, 0.0)
        return answer


class Withdraw(Operation):
    """Have a bandit stop waiting for the reward of a decision, and delete its context."""

    undone = "nothing was deleted"

    def __init__(self, id: str) -> None:
        self.id = id

    def write(self, desk: Desk) -> bool:
        """Write that no reward is expected."""
        return _bandit_of(desk).model.withdraw(self.id)


class Expire(Operation):
    """Have a bandit stop waiting for the rewards of decisions that are older than so many seconds, now or at a time."""

    def __init__(self, after: float, default: float | None = None, now: float | None = None) -> None:
        self.after, self.default, self.now = after, default, now

    def write(self, desk: Desk) -> dict[str, Any]:
        """Write which they are, and learn a reward for them if there is one by default."""
        bandit = _bandit_of(desk)
        try:
            expired = bandit.model.expire(self.after, self.default, now=self.now)
        except ValueError as error:
            raise ProblemError(422, "bad value", str(error), field="default") from None
        return {"expired": expired, "version": desk.next_number() - 1}


class ChangeArm(Operation):
    """Add, remove, pause or resume an arm."""

    undone = "the arm was not changed"

    def __init__(self, request: ArmRequest) -> None:
        self.request = request

    def write(self, desk: Desk) -> dict[str, Any]:
        """Write what becomes of the arm."""
        model, asked = _bandit_of(desk).model, self.request
        try:
            if asked.change == "add":
                if asked.features is not None or asked.arm not in model.arms:  # the same again changes nothing
                    model.add_arm(asked.arm, asked.features)
            else:
                {"remove": model.remove_arm, "pause": model.pause, "resume": model.resume}[asked.change](asked.arm)
        except (ValueError, TypeError) as error:
            raise ProblemError(422, "bad value", str(error), field="arm") from None
        return {"arms": list(model.arms), "paused": list(model.paused), "version": desk.next_number() - 1}


def _free_id(desk: Desk, bandit: BanditModel) -> str | None:
    """None: the bandit counts its decisions; or another id, where a rollback has undone a decision of that number."""
    return None if desk.find("decision", str(bandit.model.n_decisions)) is None else uuid4().hex


def _bandit_of(desk: Desk) -> BanditModel:
    if not isinstance(desk.learner.champion, BanditModel):
        raise not_for(desk.learner.champion.kind, "deciding")
    return desk.learner.champion
