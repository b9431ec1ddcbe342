"""The contextual bandit: it chooses one of several arms in a context, and learns from the reward that comes later.

Three parts do the work: a model of the arms (`onepass.decisions.arms`) says what is known of each arm's score, a
policy (`onepass.decisions.policies`) chooses by these scores, and a history keeps every decision until it is rewarded.

Everything that changes a bandit is a `Change`: methods that begin with ``plan`` check a request and make changes of it,
which alter nothing; `apply` lets one happen. In between an event store can keep it. Applying the same changes gives the
same bandit, bit for bit.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import timedelta
from time import time as current_time
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import (
    as_count,
    as_flag,
    as_floats,
    as_outliers,
    as_positive,
    as_rows,
    as_seed,
    as_share,
    one_of,
)
from onepass.beliefs.choice import Covariance
from onepass.decisions.arms.base import OBSERVATIONS, Arm, ArmModel, ModelSettings
from onepass.decisions.arms.network import NetworkArms
from onepass.decisions.arms.separate import SeparateArms
from onepass.decisions.arms.shared import SharedArms
from onepass.decisions.arms.table import Arms, ArmTable, decode_arm, encode_arm, names_of
from onepass.decisions.changes import Change
from onepass.decisions.choice import Choice, LoggedDecision, Pending
from onepass.decisions.history import ClosedDecision, DecisionHistory, UnknownDecision
from onepass.decisions.planned import NOTHING_PLANNED, Planned
from onepass.decisions.policies import ArmScores, Policy, as_policy, decode_policy
from onepass.decisions.request import request_digest
from onepass.decisions.rewards import RewardScale
from onepass.decisions.scaling import RunningScaling
from onepass.files.state import Arrays, Parameters, as_tally, nested, under
from onepass.layers import LayerSize, as_image_shape, decode_layer, encode_layer, flat_size
from onepass.models.mixture import as_drift

if TYPE_CHECKING:  # it needs PyArrow, for which a single decision should not wait
    from onepass.decisions.log import DecisionLog, LogSource

__all__ = ["ContextualBandit", "Plan"]

T = TypeVar("T")
Plan = tuple[T, list[Change]]
"""The answer to a request, and the changes that make it true."""

_COUNTS = ("n_decisions", "n_rewards", "n_unknown")
_UNKNOWN = ("error", "count")  # what to do with rewards that no decision waits for
_WILD = 300.0  # size of a feature that is hardly of unit scale; rare categories that were standardised have less
_LARGEST = 1e150  # of a context's features: its square is finite


class ContextualBandit:
    """Choose one of several arms in a context, and learn from the reward.

    A context is a row of numbers known before the choice, such as features of the user, the time of day, or an
    embedding. They should have a scale of about 1 (see ``standardize``).

    Parameters
    ----------
    arms : sequence of names, or dict of features by name
        Names are strings or integers. Arms given by name are learned separately, or by a network with one output per
        arm. With features, ``{"a": [0.1, 2.0], ...}``, one model learns the reward from context and features, so arms
        that were never chosen can be judged too.
    n_features : int or tuple of int
        Length of a context; for a network also the shape of images.
    policy : {"thompson", "ucb", "greedy", "epsilon_greedy"} or Policy
        How arms are chosen; pass an object such as ``UCB(level=0.9)`` to set its parameters. The default is Thompson
        sampling with 0.5 of the standard deviations, or 0.3 of them with ``hidden``.
    observation : {"bernoulli", "gaussian", "poisson", "negative_binomial"}
        What rewards are: 0 or 1, numbers, or counts (the last two).
    hidden : int or tuple
        Number of units of each hidden layer of a network, as for `onepass.BayesianNetwork`; ``()`` for perceptrons.
    covariance, dtype :
        Those of a network, as for `onepass.BayesianNetwork`.
    prior_scale : float
        Standard deviation of a perceptron's weights before the first reward; for a network it multiplies them.
    noise : float or "learn"
        For rewards that are numbers: variance of a reward around its expected value; learned by default.
    reward_range : (low, high)
        For rewards that are numbers: their rough range, which sets their scale. Single rewards may lie outside.
    standardize : bool
        Scale every feature of contexts to mean 0 and standard deviation 1, using the contexts seen so far.
    population : bool
        For many arms without features: an arm without rewards starts from what the other arms have in common, instead
        of the prior. See `onepass.PerceptronFleet.population`.
    outliers : float
        Share of the rewards that can't be trusted, as for `onepass.BayesianPerceptron`.
    forgetting : float
        In (0, 1]. Below 1 older rewards count less: the weight of a reward is ``forgetting`` to the power of the number
        of later rewards, of the same arm if arms are learned separately.
    drift : float or "auto"
        How fast the expected rewards change with every reward, as for `onepass.BayesianPerceptron`; arms that are not
        chosen become less certain too. ``"auto"`` learns several rates side by side.
    unknown_rewards : {"error", "count"}
        What to do with a reward whose decision is unknown or expired: raise an `UnknownDecision`, or only count it in
        `n_unknown`.
    seed : int
        Seed of all random numbers: those of a network's prior, and those of every decision.

    Attributes
    ----------
    n_decisions, n_rewards, n_unknown : int
        Decisions made, rewards learned, and rewards that no decision waited for.
    log : DecisionLog or None
        Where rewarded decisions are recorded; none by default.

    Examples
    --------
    >>> from onepass.decisions import ContextualBandit
    >>> bandit = ContextualBandit(["red", "green", "blue"], n_features=2, seed=0)
    >>> choice = bandit.choose([0.5, -1.0])
    >>> choice.arm in ("red", "green", "blue"), choice.propensities.round(2)
    (True, array([0.33, 0.33, 0.33]))
    >>> bandit.reward(choice.id, 1.0)
    True
    >>> bandit.reward(choice.id, 1.0)  # twice counts once
    False
    """

    saved_as: ClassVar[str] = "ContextualBandit"
    _is_kept: ClassVar[bool] = False  # whether its changes are kept in a store

    def __init__(
        self,
        arms: Arms,
        n_features: int | tuple[int, ...],
        *,
        policy: str | Policy = "thompson",
        observation: str = "bernoulli",
        hidden: LayerSize | tuple[LayerSize, ...] = (),
        covariance: Covariance = "auto",
        prior_scale: float = 1.0,
        noise: float | Literal["learn"] = "learn",
        reward_range: tuple[float, float] = (0.0, 1.0),
        standardize: bool = False,
        population: bool = False,
        outliers: float = 0.0,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        unknown_rewards: str = "error",
        dtype: str = "float64",
        seed: int = 0,
    ) -> None:
        layers = tuple(hidden) if isinstance(hidden, (tuple, list)) else (hidden,)
        self._rewards = RewardScale.of(one_of(observation, OBSERVATIONS, "observation"), reward_range)
        self._settings = ModelSettings(
            n_features=as_image_shape(n_features) if np.iterable(n_features) else as_count(n_features, "n_features"),
            hidden=layers,
            observation=observation,
            covariance=covariance,
            prior_scale=as_positive(prior_scale, "prior_scale"),
            noise="learn" if noise == "learn" else as_positive(noise, "noise", "or 'learn'") / self._rewards.unit**2,
            population=as_flag(population, "population"),
            outliers=as_outliers(outliers),
            forgetting=as_share(forgetting, "forgetting"),
            drift=as_drift(drift),
            dtype=dtype,
            seed=as_seed(seed),
        )
        self._noise = noise
        self.policy: Policy = as_policy(policy, for_network=bool(layers))
        self.unknown_rewards: str = one_of(unknown_rewards, _UNKNOWN, "unknown_rewards")
        self._scaling = RunningScaling(self.n_features) if as_flag(standardize, "standardize") else None
        self._warns_of_scale = self._scaling is None
        self._table = arms if isinstance(arms, ArmTable) else ArmTable(arms)
        self._model = self._make_model()
        self._history = DecisionHistory()
        self.n_decisions: int = 0
        self.n_rewards: int = 0
        self.n_unknown: int = 0
        self.log: DecisionLog | None = None

    def _make_model(self) -> ArmModel:
        settings = self._settings
        if settings.population and (settings.hidden or self._table.n_features is not None):
            raise ValueError(
                "population=True needs arms that are learned separately; leave out hidden and the features of arms"
            )
        if self._table.n_features is None and settings.hidden:
            if not self._table.next_number:
                raise ValueError(
                    "a network has one output per arm and needs at least one arm; add_arm can add others later"
                )
            if settings.likelihood.is_count:
                raise ValueError(
                    f"observation={settings.observation!r} can't be learned by a network with one output per arm: "
                    "leave out hidden, or give the arms features"
                )
            return NetworkArms(settings, self._table.next_number)
        if not isinstance(settings.n_features, int):
            raise ValueError(
                f"n_features={settings.n_features} is the shape of images, which needs a network and arms without "
                "features: pass hidden, such as hidden=(Conv2D(16, 3),), and arms as a list of names"
            )
        if self._table.n_features is not None:
            return SharedArms(settings, self._table.n_features)
        return SeparateArms(settings)

    def __repr__(self) -> str:
        return (
            f"ContextualBandit({len(self._table)} arms, {self._settings.n_features}, policy={self.policy!r}, "
            f"observation={self._settings.observation!r}, hidden={self._settings.hidden}, "
            f"n_decisions={self.n_decisions}, n_rewards={self.n_rewards}, n_pending={self.n_pending})"
        )

    # What there is.

    @property
    def n_features(self) -> int:
        """Length of a context."""
        return flat_size(self._settings.n_features)

    @property
    def arms(self) -> tuple[Any, ...]:
        """Names of the arms, paused ones too."""
        return self._table.names

    @property
    def paused(self) -> tuple[Any, ...]:
        """Names of the arms that are not chosen at present."""
        return self._table.paused

    @property
    def n_pending(self) -> int:
        """Number of decisions that wait for a reward."""
        return len(self._history.pending)

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of the decisions that wait for a reward, the oldest first."""
        return tuple(self._history.pending)

    def pending_until(self, time: float) -> tuple[str, ...]:
        """Ids of the decisions made until a time, in seconds since 1970, that wait for a reward."""
        return tuple(decision.id for decision in self._history.made_until(time))

    @property
    def n_set_aside(self) -> int:
        """Rewards that were counted but not learned, since they were absurdly far from what was expected."""
        return self._model.n_set_aside

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift; a fixed rate has the probability 1."""
        return self._model.drift_

    def predict(self, contexts: ArrayLike, arms: Arms | None = None) -> ArmScores:
        """What the bandit expects of arms in one context ``(d,)`` or many ``(n, d)``; no decision is made.

        The fields of the result are ``(K,)`` or ``(n, K)``, in the order of ``arms``, by default all arms.
        """
        rows, single = self._rows(contexts)
        found = self._scores(rows, self._table.all if arms is None else self._table.asked(arms))
        return found.take(0) if single else found

    def propensities(self, contexts: ArrayLike, arms: Arms | None = None) -> FloatArray:
        """Probability that each arm would be chosen, ``(K,)`` or ``(n, K)``; 0 for paused ones."""
        rows, single = self._rows(contexts)
        asked = self._table.all if arms is None else self._table.asked(arms)
        candidates = self._table.available(asked)
        names = {arm.name for arm in candidates}
        found = np.zeros((len(rows), len(asked)))
        places = [place for place, arm in enumerate(asked) if arm.name in names]
        found[:, places] = [self.policy.propensities(scores) for scores in self._each(rows, candidates)]
        return found[0] if single else found

    # Deciding.

    def _carry_out(self, plan: Callable[[], Plan[T]]) -> T:
        """Plan changes and let them happen; a bandit in a store keeps them in between."""
        answer, changes = plan()
        for change in changes:
            self.apply(change)
        return answer

    def choose(
        self,
        context: ArrayLike,
        n: int = 1,
        *,
        arms: Arms | None = None,
        id: str | None = None,
        time: float | None = None,
    ) -> Choice:
        """Choose an arm, or the ``n`` best, the best first; give the reward later with `reward`.

        Parameters
        ----------
        context : (d,) array
        n : int
            How many arms to choose, all different.
        arms : names, or dict of features by name, optional
            The arms that can be chosen this time. Arms given with features may be new; they are known for this decision
            only.
        id : str, optional
            Id of the decision, which no other decision may have; by default its number.
        time : float, optional
            Time of the decision, in seconds since 1970; now by default.
        """
        rows, single = self._rows(context)
        if not single:
            raise ValueError(f"choose takes one context, got {len(rows)}; use choose_many")
        ids = None if id is None else [id]
        return self._carry_out(lambda: self._plan_choices(rows, n, arms, ids, _as_time(time)))[0]

    def plan_choice(
        self,
        context: ArrayLike,
        n: int = 1,
        *,
        arms: Arms | None = None,
        id: str | None = None,
        planned: Planned = NOTHING_PLANNED,
    ) -> Plan[Choice]:
        """What `choose` would do now: the choice, and the change to `apply`, which has all that a log needs."""
        rows, _ = self._rows(context)
        ids = None if id is None else [id]
        made, changes = self._plan_choices(rows, n, arms, ids, _as_time(None), is_kept=True, planned=planned)
        return made[0], changes

    def choose_many(
        self,
        contexts: ArrayLike,
        n: int = 1,
        *,
        arms: Arms | None = None,
        ids: Sequence[str] | None = None,
        time: float | None = None,
    ) -> list[Choice]:
        """Choose for each of several contexts ``(n, d)``, as `choose` would one after the other, but faster.

        With ``standardize`` all of them are scaled by the contexts seen before the first one.
        """
        rows, _ = self._rows(contexts)
        if ids is not None and len(ids) != len(rows):
            raise ValueError(f"ids must have one per context, {len(rows)}, got {len(ids)}")
        return self._carry_out(lambda: self._plan_choices(rows, n, arms, ids, _as_time(time)))

    def pull(self, arm_ids: Arms, context: Any) -> Any:
        """Choose one of these arms without waiting for a reward: the method of River's contextual policies.

        A context is a row of features, or a dict of them, which are sorted by name.
        """
        rows, _ = self._rows(_row_of(context))
        return self._carry_out(lambda: self._plan_choices(rows, 1, arm_ids, None, _as_time(None), waits=False))[0].arm

    def _plan_choices(
        self,
        rows: FloatArray,
        n: int,
        arms: Arms | None,
        ids: Sequence[str] | None,
        time: float,
        *,
        waits: bool = True,
        is_kept: bool = False,
        planned: Planned = NOTHING_PLANNED,
    ) -> Plan[list[Choice]]:
        """Choices and their changes; those that a store keeps say what was asked, and how probable the choice was."""
        as_count(n, "n")
        is_kept = is_kept or self._is_kept
        candidates = self._table.available(self._table.all if arms is None else self._table.asked(arms))
        if n > len(candidates):
            raise ValueError(
                f"n must be at most {len(candidates)}, the number of arms, got {n}: {names_of(candidates)}"
            )
        first = self.n_decisions + planned.n_decisions
        names = self._new_ids(ids, range(first, first + len(rows)), planned)
        found = tuple(arm.name for arm in candidates)
        made: list[Choice] = []
        changes: list[Change] = []
        for i, scores in enumerate(self._each(rows, candidates)):
            rng = np.random.default_rng([self._settings.seed, first + i])
            chosen = [candidates[place] for place in self.policy.rank(scores, rng, n)]
            made.append(Choice(names[i], tuple(arm.name for arm in chosen), found, scores, self.policy))
            data = {
                "number": first + i,
                "time": time,
                "arms": [encode_arm(arm) for arm in chosen],
                "propensity": made[-1].propensity if is_kept or self.log is not None else None,
                "waits": waits,
            }
            if is_kept:
                data["request"] = request_digest(rows[i], n, arms)
            changes.append(Change("decision", data, rows[i], names[i]))
        return made, changes

    def _new_ids(self, ids: Sequence[str] | None, numbers: Sequence[int], planned: Planned) -> list[str]:
        """The ids of new decisions: those given, or their numbers."""
        if ids is None:
            return [self._unused_id(number, planned) for number in numbers]
        names: dict[str, None] = {}
        for given in ids:
            if not isinstance(given, str) or not given:
                raise TypeError(f"an id must be a string that is not empty, got {given!r}")
            if self._decision(given, planned) is not None or given in names:
                raise ValueError(f"the id {given!r} was used by another decision; every decision needs its own id")
            names[given] = None
        return list(names)

    def _unused_id(self, number: int, planned: Planned) -> str:
        """The number of a decision, and more of it where somebody gave it to another."""
        name = str(number)
        while self._decision(name, planned) is not None:
            name += f"-{number}"
        return name

    def _decision(self, id: str, planned: Planned) -> Pending | ClosedDecision | None:
        """The decision of this id, if it is known."""
        return self._history.find(id) or planned.decisions.get(id)

    # Learning.

    def reward(self, id: str, reward: float, arm: Any = None, *, unknown: str | None = None) -> bool:
        """Learn the reward of a decision. Rewards may come at any later time and in any order; each counts once.

        Parameters
        ----------
        id : str
            Id of the decision.
        reward : float
        arm : optional
            If the decision chose several arms, the one that was rewarded; by default the first.
        unknown : {"error", "count"}, optional
            What to do if the decision is unknown or has expired; by default as ``unknown_rewards`` says.

        Returns
        -------
        bool
            Whether the reward was learned. False if the same reward came before or, with ``unknown_rewards="count"``,
            if the decision is unknown or has expired.
        """
        return self.reward_many([id], [reward], None if arm is None else [arm], unknown=unknown) == 1

    def reward_many(
        self, ids: Sequence[str], rewards: ArrayLike, arms: Sequence[Any] | None = None, *, unknown: str | None = None
    ) -> int:
        """Learn the rewards of several decisions: all or, after an error, none. Returns how many were learned."""
        return self._carry_out(lambda: self.plan_rewards(ids, rewards, arms, unknown=unknown))

    def plan_rewards(
        self,
        ids: Sequence[str],
        rewards: ArrayLike,
        arms: Sequence[Any] | None = None,
        *,
        unknown: str | None = None,
        planned: Planned = NOTHING_PLANNED,
    ) -> Plan[int]:
        """What `reward_many` would do now: how many would be learned, and the change to `apply`, if there is one."""
        unknown = self.unknown_rewards if unknown is None else one_of(unknown, _UNKNOWN, "unknown")
        values = self._rewards.check(rewards).tolist()
        if len(values) != len(ids) or (arms is not None and len(arms) != len(ids)):
            raise ValueError(
                f"ids, rewards and arms must have the same length, got {len(ids)} ids and {len(values)} rewards"
            )
        found: dict[tuple[str, Any], float] = {}
        n_unknown = 0
        for i, (key, value) in enumerate(zip(ids, values, strict=True)):
            name = None if arms is None else arms[i]
            decision = self._decision(key, planned)
            own = None if decision is None else decision.name_of(name)
            earlier = found.get((key, own), planned.rewards.get((key, own)))
            if earlier is None and decision is not None:
                earlier = decision.rewards.get(own)
            if earlier is None and not isinstance(decision, Pending):
                if unknown == "error":
                    state = "no decision has" if decision is None else "the decision has expired that has"
                    raise UnknownDecision(
                        f"{state} the id {key!r}; {self.n_pending} decisions wait for a reward. "
                        "unknown_rewards='count' counts such rewards in place of this error"
                    )
                n_unknown += 1
                continue
            if earlier is None:
                found[key, own] = value
            elif earlier != value:
                raise ValueError(
                    f"the decision {key!r} was rewarded with {earlier:g} before, got another reward, {value:g}"
                )
        learned = [[key, arm, value] for (key, arm), value in found.items()]
        data = {"rewards": learned, "n_unknown": n_unknown}
        return len(learned), [Change("reward", data)] if learned or n_unknown else []

    def learn(self, contexts: ArrayLike, arms: Any, rewards: ArrayLike) -> Self:
        """Learn from decisions that were made elsewhere, such as those of a log: all or, after an error, none.

        Parameters
        ----------
        contexts : (d,) or (n, d) array
        arms : (n,) names, or one
        rewards : (n,) numbers, or one
        """
        rows, single = self._rows(contexts)
        names = [arms] if single else list(arms)
        values = self._rewards.check(rewards)
        if not len(rows) == len(names) == len(values):
            raise ValueError(
                f"contexts, arms and rewards must have the same length, got {len(rows)}, {len(names)} and {len(values)}"
            )

        def plan() -> Plan[Self]:
            known = [self._table.find(name).name for name in names]
            return self, [Change("learn", {"arms": known, "rewards": values.tolist()}, rows)]

        return self._carry_out(plan)

    def learn_log(self, log: "LogSource") -> Self:
        """Learn all rewards of a log: a `DecisionLog`, a Parquet file or a table; all or, after an error, none.

        The log's arms must be arms of this bandit. See `DecisionLog.read` for logs with columns of other names.
        """
        from onepass.decisions.log import as_log

        decisions = as_log(log)
        known = set(self.arms)
        unknown = dict.fromkeys(name for name in decisions.arms if name not in known)
        if unknown:
            shown = ", ".join(map(repr, list(unknown)[:10])) + (", ..." if len(unknown) > 10 else "")
            raise ValueError(
                f"the log has {len(unknown)} arms that this bandit does not have: {shown}; add them with add_arm, or "
                f"leave out their rows. The bandit has {names_of(self._table.all)}"
            )
        return self.learn(decisions.contexts, decisions.arms.tolist(), decisions.rewards)

    def update(self, arm_id: Any, context: Any, reward: float) -> Self:
        """Learn one reward: the method of River's contextual policies. See `pull`."""
        return self.learn(_row_of(context), arm_id, reward)

    def expire(self, after: float | timedelta, default: float | None = None, *, now: float | None = None) -> int:
        """Stop waiting for the rewards of old decisions; return how many there were.

        Clicks that are learned as they come, while their absence is learned only at the age ``after``, make the arms
        that are chosen most at present look far better than they are. Where many decisions are made in that time, hold
        clicks back and reward them at that age too.

        Parameters
        ----------
        after : seconds, or timedelta
            Age from which on a decision has expired.
        default : float, optional
            The reward to learn for each of them, such as 0 where no click means none; by default nothing is learned.
        now : float, optional
            In seconds since 1970.
        """
        return self._carry_out(lambda: self.plan_expiry(after, default, now=now))

    def plan_expiry(
        self, after: float | timedelta, default: float | None = None, *, now: float | None = None
    ) -> Plan[int]:
        """What `expire` would do now: how many decisions, and the change to `apply`, if there is one."""
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if isinstance(seconds, str) or not seconds >= 0.0:
            raise ValueError(f"after must be seconds or a timedelta, and not negative, got {after!r}")
        reward = None if default is None else float(self._rewards.check(default)[0])
        expired = list(self.pending_until(_as_time(now) - seconds))
        return len(expired), [Change("expiry", {"ids": expired, "reward": reward})] if expired else []

    def withdraw(self, id: str) -> bool:
        """Stop waiting for the reward of one decision and delete its context; False if it was not waiting."""
        return self._carry_out(lambda: self.plan_withdrawal(id))

    def plan_withdrawal(self, id: str) -> Plan[bool]:
        """What `withdraw` would do now."""
        waits = id in self._history.pending
        return waits, [Change("expiry", {"ids": [id], "reward": None})] if waits else []

    # Arms that come and go.

    def add_arm(self, name: Any, features: ArrayLike | None = None) -> Self:
        """Add an arm, which can be chosen from now on."""
        return self._carry_out(lambda: (self, self.plan_arm("add", name, features)))

    def remove_arm(self, name: Any) -> Self:
        """Remove an arm: it is never chosen again, and rewards of earlier decisions for it are no longer learned."""
        return self._carry_out(lambda: (self, self.plan_arm("remove", name)))

    def pause(self, name: Any) -> Self:
        """Do not choose an arm until `resume`; rewards of earlier decisions for it are still learned."""
        return self._carry_out(lambda: (self, self.plan_arm("pause", name)))

    def resume(self, name: Any) -> Self:
        """Choose a paused arm again."""
        return self._carry_out(lambda: (self, self.plan_arm("resume", name)))

    def plan_arm(self, what: str, name: Any, features: ArrayLike | None = None) -> list[Change]:
        """The change to `apply` that adds, removes, pauses or resumes an arm."""
        arm = self._table.new(name, features) if what == "add" else self._table.find(name)
        return [Change("arm", {"what": what, "arm": encode_arm(arm)})]

    # Changes.

    def close_block(self) -> None:
        """Let rewards that were learned wait for no others, so that it does not matter where a snapshot is taken."""
        self._model.close_block()

    def apply(self, change: Change) -> None:
        """Apply a change."""
        {
            "decision": self._apply_decision,
            "reward": self._apply_rewards,
            "learn": self._apply_lessons,
            "expiry": self._apply_expiry,
            "arm": self._apply_arm,
        }[change.kind](change)

    def _apply_decision(self, change: Change) -> None:
        assert change.context is not None
        self.n_decisions += 1
        if self._scaling is not None:
            self._scaling.see(change.context)
        if change.data["waits"]:
            self._history.open(Pending.of(change))

    def _apply_rewards(self, change: Change) -> None:
        triples = [(self._history.pending[key], name, value) for key, name, value in change.data["rewards"]]
        self._learn_decided([(one, one.arm(name), value) for one, name, value in triples])
        for decision, name, value in triples:
            self._history.reward(decision, decision.arm(name), value)
        self.n_unknown += change.data["n_unknown"]

    def _learn_decided(self, triples: list[tuple[Pending, Arm, float]]) -> None:
        """Learn the rewards of decisions, but for arms that have been removed since."""
        there = [triple for triple in triples if self._table.holds(triple[1])]
        if there:
            contexts = np.array([decision.context for decision, _, _ in there])
            self._learn(contexts, [arm for _, arm, _ in there], np.array([value for _, _, value in there]))
        if self.log is not None:
            for decision, arm, value in triples:
                position = decision.arms.index(arm)
                propensity = decision.propensity if position == 0 else None
                own = (decision.id, decision.time, decision.context, arm.name, arm.number, position)
                self.log.append(LoggedDecision(*own, propensity, value))

    def _apply_lessons(self, change: Change) -> None:
        assert change.context is not None
        arms = [self._table.find(name) for name in change.data["arms"]]
        rows = np.atleast_2d(change.context)
        before = copy(self._scaling)
        if self._scaling is not None:
            for row in rows:
                self._scaling.see(row)
        try:
            self._learn(rows, arms, np.array(change.data["rewards"]))
        except BaseException:
            self._scaling = before
            raise

    def _apply_expiry(self, change: Change) -> None:
        expired, reward = [self._history.pending[key] for key in change.data["ids"]], change.data["reward"]
        if reward is not None:
            self._learn_decided([(one, arm, reward) for one in expired for arm in one.waiting])
        for decision in expired:
            self._history.close(decision)

    def _apply_arm(self, change: Change) -> None:
        arm = decode_arm(change.data["arm"])
        what = change.data["what"]
        if what == "add":
            self._model.add(arm)
            self._table.enter(arm)
        elif what == "pause":
            self._table.pause(arm.name)
        elif what == "resume":
            self._table.resume(arm.name)
        else:
            self._table.remove(arm.name)

    def _learn(self, contexts: FloatArray, arms: list[Arm], rewards: FloatArray) -> None:
        rows = contexts if self._scaling is None else self._scaling(contexts)
        self._model.learn(rows, arms, self._rewards.scaled(rewards))
        self.n_rewards += len(rewards)

    # What comes in.

    def _each(self, rows: FloatArray, candidates: list[Arm]) -> list[ArmScores]:
        """The scores of the candidates in every context."""
        found = self._scores(rows, candidates)
        return [found.take(i) for i in range(len(rows))]

    def _scores(self, rows: FloatArray, arms: list[Arm]) -> ArmScores:
        scaled = rows if self._scaling is None else self._scaling(rows)
        return self._rewards.unscaled(self._model.scores(scaled, arms))

    def _rows(self, contexts: ArrayLike) -> tuple[FloatArray, bool]:
        """Contexts ``(n, d)``, and whether it was one; images may come in their shape."""
        shape = self._settings.n_features
        if not isinstance(shape, int):
            given = np.asarray(contexts)
            if given.ndim >= len(shape) and given.shape[-len(shape) :] == shape:
                contexts = given.reshape(*given.shape[: -len(shape)], self.n_features)
        rows, single = as_rows(contexts, self.n_features, "a context")
        if not (np.abs(rows) <= _LARGEST).all():
            raise ValueError(f"contexts must be below {_LARGEST:g}, got {np.abs(rows).max():g}")
        if self._warns_of_scale and (np.abs(rows) > _WILD).any():
            self._warns_of_scale = False
            warnings.warn(
                f"a context has a feature of size {np.abs(rows).max():g}; features should have a scale of about 1: "
                "pass standardize=True, or scale them",
                stacklevel=4,
            )
        return rows, single

    # Files.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments that the bandit was made with, and its present arms."""
        settings = self._settings
        features = {arm.name: arm.features for arm in self._table.all}
        return {
            "arms": list(features) if self._table.n_features is None else features,
            "n_features": settings.n_features,
            "policy": self.policy,
            "observation": settings.observation,
            "hidden": settings.hidden,
            "covariance": settings.covariance,
            "prior_scale": settings.prior_scale,
            "noise": self._noise,
            "reward_range": self._rewards.limits,
            "standardize": self._scaling is not None,
            "population": settings.population,
            "outliers": settings.outliers,
            "forgetting": settings.forgetting,
            "drift": settings.drift,
            "unknown_rewards": self.unknown_rewards,
            "dtype": settings.dtype,
            "seed": settings.seed,
        }

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, pending decisions too, as JSON-compatible parameters and arrays."""
        parameters, arrays = self._model.export_state()
        given = self.get_params()
        covariance, shape = given["covariance"], given["n_features"]
        given |= {
            "policy": self.policy.export(),
            "hidden": [encode_layer(layer) for layer in given["hidden"]],
            "covariance": covariance if isinstance(covariance, str) else list(covariance),
            "n_features": shape if isinstance(shape, int) else list(shape),
            "arms": self._table.export(),
        }
        counts = {name: getattr(self, name) for name in _COUNTS}
        scaling = {} if self._scaling is None else self._scaling.export()
        return {"settings": given, "counts": counts, "model": parameters}, {
            **nested("model", arrays),
            **self._table.arrays(),
            **self._history.export(),
            **scaling,
        }

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the bandit that `export_state` described; it continues to decide and learn exactly as that one would."""
        given = dict(parameters["settings"])
        shape, covariance = given["n_features"], given["covariance"]
        given |= {
            "arms": ArmTable.restore(given["arms"], arrays),
            "policy": decode_policy(given["policy"]),
            "hidden": tuple(decode_layer(layer) for layer in given["hidden"]),
            "covariance": covariance if isinstance(covariance, str) else tuple(covariance),
            "n_features": shape if isinstance(shape, int) else tuple(shape),
            "reward_range": tuple(given["reward_range"]),
        }
        bandit = cls(**given)
        for name in _COUNTS:
            setattr(bandit, name, as_tally(parameters["counts"][name], name))
        bandit._model.restore(parameters["model"], under("model", arrays))
        bandit._history = DecisionHistory.restore(arrays, bandit.n_features)
        if bandit._scaling is not None:
            bandit._scaling.restore(arrays)
        return bandit

    def __reduce__(self) -> Any:
        return type(self).from_state, self.export_state()


def _as_time(time: float | None) -> float:
    """A moment in seconds since 1970; now by default."""
    return current_time() if time is None else float(as_floats(time, "time"))


def _row_of(context: Any) -> Any:
    """A row of features, from one or from a dict of them."""
    return [context[name] for name in sorted(context)] if isinstance(context, Mapping) else context
