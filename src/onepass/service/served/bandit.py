"""A contextual bandit behind the service: it decides, waits for rewards, and learns them."""

from collections.abc import Sequence
from typing import Any, Self

from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.stored import change_of
from onepass.events import Event
from onepass.likelihoods import named
from onepass.service.errors import ProblemError
from onepass.service.rewards import RewardScores
from onepass.service.served.base import Served
from onepass.tables.columns.wording import listed

__all__ = ["BanditModel"]

_NO_ARMS = "this bandit has no arms yet: add one, before which it can't decide"


class BanditModel(Served):
    """A bandit."""

    kind = "bandit"
    changes = frozenset({"decision", "reward", "learn", "expiry", "arm"})
    model: ContextualBandit

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is a bandit."""
        return isinstance(model, ContextualBandit)

    @property
    def n_seen(self) -> int:
        """Rewards learned."""
        return self.model.n_rewards

    @property
    def n_set_aside(self) -> int:
        """Rewards counted but not learned, since they were absurdly far off."""
        return self.model.n_set_aside

    @property
    def n_decisions(self) -> int:
        """Decisions made."""
        return self.model.n_decisions

    @property
    def n_pending(self) -> int:
        """Decisions that wait for a reward."""
        return self.model.n_pending

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of decisions that wait for a reward."""
        return self.model.pending

    def pending_until(self, time: float) -> tuple[str, ...]:
        """Those that have waited since this moment or longer."""
        return self.model.pending_until(time)

    @property
    def metrics_now(self) -> list[str]:
        """None: it is scored by its rewards."""
        return []

    def new_scores(self, metrics: Sequence[str]) -> RewardScores:
        """What it has chosen, and what came of it."""
        return RewardScores()

    def as_bandit(self, what: str) -> Self:
        """Return itself."""
        return self

    def schema(self) -> dict[str, Any]:
        """The length of a context, the arms, and what rewards are."""
        params = self.model.get_params()
        low, high = params["reward_range"]
        note = {} if self.model.arms else {"note": _NO_ARMS}
        return note | {
            "context": {"kind": "numbers", "length": self.model.n_features},
            "arms": list(self.model.arms),
            "paused": list(self.model.paused),
            "reward": {"kind": params["observation"], "from": low, "to": high},
            "policy": repr(self.model.policy),
        }

    def facts(self) -> dict[str, str]:
        """What the bandit is and has learned, in words."""
        model, schema = self.model, self.schema()
        arms, resting = (listed([str(name) for name in names], 8) for names in (model.arms, model.paused))
        paused = f", of which {resting} rest" if resting else ""
        return {
            "arms": f"{arms}{paused}" or "none yet",
            "context": f"{model.n_features} numbers",
            "rewards": named(schema["reward"]["kind"]).words,
            "policy": schema["policy"],
            "decisions": f"{model.n_decisions:,}",
            "rewards learned": f"{model.n_rewards:,}",
            "decisions without reward": f"{model.n_pending:,}",
        }

    def beliefs(self, context: list[float]) -> list[dict[str, Any]]:
        """What is expected of each arm in a context, how sure that is, and how probably it would be chosen."""
        if not self.model.arms:
            raise ProblemError(409, "no arms", _NO_ARMS)
        self.check_context(context)
        try:
            scores, chances = self.model.predict(context), self.model.propensities(context)
        except (ValueError, TypeError) as error:
            raise ProblemError(422, "bad value", str(error), field="context") from None
        numbers = zip(scores.reward_mean.tolist(), scores.reward_std.tolist(), chances.tolist(), strict=True)
        return [
            {"arm": name, "mean": mean, "std": std, "propensity": chance}
            for name, (mean, std, chance) in zip(self.model.arms, numbers, strict=True)
        ]

    def check_context(self, context: list[float]) -> None:
        """Refuse a context of another length than the bandit's."""
        n = self.model.n_features
        if len(context) != n:
            words = f"context must have {n} number{'' if n == 1 else 's'}, got {len(context)}"
            raise ProblemError(422, "bad value", words, field="context")

    def apply(self, event: Event) -> None:
        """Let a change happen; a ValueError says why it can't be learned."""
        try:
            self.model.apply(change_of(event))
        finally:
            self.model.close_block()
