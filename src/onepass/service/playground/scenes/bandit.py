"""A bandit that shows one of three offers to every visitor, sees only whether that one was taken, and explores."""

from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from onepass._typing import FloatArray
from onepass.decisions import UCB, ContextualBandit, EpsilonGreedy, Greedy, Policy, Thompson
from onepass.service.playground.knobs import Request
from onepass.service.playground.plane import GRID, X_RANGE, floats
from onepass.service.playground.scenes.base import Scene, View, plural

__all__ = ["MAX_STEPS", "OFFERS", "BanditRequest", "BanditScene", "true_rates"]

MAX_STEPS = 500
OFFERS = ("blue", "orange", "green")
_BIAS = np.array([-0.6, -0.6, 0.2])
_SLOPE = np.array([1.3, -1.3, 0.0])


class BanditRequest(Request, frozen=True, kw_only=True, tag="bandit"):
    """How offers are chosen, and how many visitors there were."""

    policy: Annotated[
        Literal["thompson", "ucb", "greedy", "epsilon_greedy"],
        Meta(
            title="Policy",
            description="How an offer is chosen. Thompson sampling: with the probability that it is the best. Upper "
            "confidence: by how good it may be. Greedy: by what looks best now, always or with some random choices.",
            extra_json_schema={
                "options": {
                    "thompson": "Thompson sampling",
                    "ucb": "Upper confidence",
                    "greedy": "Greedy: never explores",
                    "epsilon_greedy": "Greedy, at times at random",
                }
            },
        ),
    ] = "thompson"
    scale: Annotated[
        float,
        Meta(
            ge=0.0,
            le=2.0,
            title="Exploration",
            description="How much of the uncertainty counts: 0 never explores.",
            extra_json_schema={"when": {"policy": ["thompson"]}},
        ),
    ] = 0.5
    level: Annotated[
        float,
        Meta(
            ge=0.5,
            le=0.99,
            title="Optimism",
            description="An offer is judged by this quantile of what it may be worth.",
            extra_json_schema={"when": {"policy": ["ucb"]}},
        ),
    ] = 0.84
    epsilon: Annotated[
        float,
        Meta(
            ge=0.0,
            le=0.5,
            title="Random choices",
            description="The share of visitors who are shown a random offer.",
            extra_json_schema={"when": {"policy": ["epsilon_greedy"]}},
        ),
    ] = 0.1
    model: Annotated[
        Literal["perceptron", "network"],
        Meta(
            title="Model",
            description="A perceptron per offer, or one network with an output for each.",
            extra_json_schema={"options": {"perceptron": "A perceptron per offer", "network": "A network"}},
        ),
    ] = "perceptron"
    seed: Annotated[int, Meta(ge=0, le=99, title="Other visitors", description="Seed of the random visitors.")] = 0
    steps: Annotated[int, Meta(ge=0, le=MAX_STEPS)] = 0


class Offer(msgspec.Struct, frozen=True):
    """The belief about one offer, for all visitors on the grid."""

    name: str
    mean: bytes
    """Of the probability that it is taken."""
    std: bytes
    truth: bytes
    chosen: bytes
    """Probability that it would be shown now."""
    n_shown: int


class BanditView(View, frozen=True, kw_only=True):
    """The offers, the visitors so far, and what was lost by not knowing."""

    offers: list[Offer]
    visitors: bytes
    shown: list[int]
    taken: list[int]
    regret: bytes
    """Sum of what was lost so far, over the visitors, ``(steps,)``."""
    regret_at_random: bytes


class BanditScene(Scene):
    """A bandit, and the visitors it has had."""

    def __init__(self) -> None:
        self._made_from: Any = None
        self._bandit: Any = None
        self._shown: list[int] = []
        self._taken: list[int] = []

    def view(self, request: BanditRequest) -> BanditView:
        """Let the visitors that are new come, one by one."""
        made_from = msgspec.structs.replace(request, id=0, steps=0)
        if made_from != self._made_from or request.steps < len(self._shown):
            self._made_from, self._bandit = made_from, _make(request)
            self._shown, self._taken = [], []
        visitors, luck = _world(request.seed)
        for step in range(len(self._shown), request.steps):
            self._serve(visitors[step], luck[step])
        visitors = visitors[: request.steps]
        regret, at_random = _regrets(visitors, self._shown)
        return BanditView(
            says=self._says(regret, at_random),
            offers=self._offers(),
            visitors=floats(visitors),
            shown=self._shown,
            taken=self._taken,
            regret=floats(regret),
            regret_at_random=floats(at_random),
        )

    def _serve(self, visitor: float, luck: float) -> None:
        choice = self._bandit.choose([visitor], time=0.0)
        offer = OFFERS.index(choice.arm)
        taken = int(luck < true_rates(np.array([visitor]))[0, offer])
        self._bandit.reward(choice.id, float(taken))
        self._shown.append(offer)
        self._taken.append(taken)

    def _offers(self) -> list[Offer]:
        contexts = GRID[:, None]
        scores, chosen, truth = self._bandit.predict(contexts), self._bandit.propensities(contexts), true_rates(GRID)
        return [
            Offer(
                name,
                floats(scores.reward_mean[:, k]),
                floats(scores.reward_std[:, k]),
                floats(truth[:, k]),
                floats(chosen[:, k]),
                self._shown.count(k),
            )
            for k, name in enumerate(OFFERS)
        ]

    def _says(self, regret: FloatArray, at_random: FloatArray) -> str:
        if not self._shown:
            return "No visitor yet: all offers look the same."
        return (
            f"{plural(len(self._shown), 'visitor')}, {sum(self._taken)} of them took the offer. Compared with always "
            f"showing the best offer, {regret[-1]:.1f} takers were lost; random offers would have lost "
            f"{at_random[-1]:.1f}."
        )


def true_rates(visitors: FloatArray) -> FloatArray:
    """The probability that each visitor takes each offer, ``(n, 3)``."""
    return np.asarray(1.0 / (1.0 + np.exp(-(_BIAS + np.multiply.outer(visitors, _SLOPE)))))


def _world(seed: int) -> tuple[FloatArray, FloatArray]:
    """The visitors, and the luck by which each takes an offer; the same whatever is shown."""
    rng = np.random.default_rng(seed)
    return rng.uniform(*X_RANGE, size=MAX_STEPS), rng.random(MAX_STEPS)


def _make(request: BanditRequest) -> ContextualBandit:
    policies: dict[str, Policy] = {
        "thompson": Thompson(request.scale),
        "ucb": UCB(request.level),
        "greedy": Greedy(),
        "epsilon_greedy": EpsilonGreedy(request.epsilon),
    }
    hidden = (8,) if request.model == "network" else ()
    return ContextualBandit(OFFERS, 1, policy=policies[request.policy], hidden=hidden, seed=request.seed)


def _regrets(visitors: FloatArray, shown: list[int]) -> tuple[FloatArray, FloatArray]:
    rates = true_rates(visitors)
    best = rates.max(axis=1, initial=0.0)
    return np.cumsum(best - rates[np.arange(len(shown)), shown]), np.cumsum(best - rates.mean(axis=1))
