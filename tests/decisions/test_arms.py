"""Models of arms: each is what its parts, learned by hand, are."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from onepass import BayesianNetwork, BayesianPerceptron, Conv2D
from onepass._typing import FloatArray
from onepass.decisions import ContextualBandit
from onepass.engine.step import PerceptronProgress
from onepass.models.fleet import PerceptronFleet
from onepass.models.mixture import with_drift
from onepass.models.weighting import HYPOTHESES

ARMS = ("a", "b", "c")
WEIGHTS = np.array([[1.0, -1.0, 0.5], [-1.0, 0.5, 0.0], [0.3, 0.3, -1.0]])
ACTIVATIONS = {"bernoulli": "sigmoid", "gaussian": "linear", "poisson": "exp", "negative_binomial": "exp"}


def _rows(n: int = 60, observation: str = "bernoulli", seed: int = 0) -> tuple[FloatArray, list[str], FloatArray]:
    """Contexts, arms, and their rewards."""
    rng = np.random.default_rng(seed)
    contexts, places = rng.normal(size=(n, 3)), rng.integers(3, size=n)
    scores = (contexts * WEIGHTS[places]).sum(axis=1)
    rewards = {
        "bernoulli": (rng.random(n) < expit(scores)).astype(float),
        "gaussian": scores + 0.3 * rng.normal(size=n),
        "poisson": rng.poisson(np.exp(0.5 * scores)).astype(float),
        "negative_binomial": rng.poisson(np.exp(0.5 * scores)).astype(float),
    }
    return contexts, [ARMS[place] for place in places], rewards[observation]


def _perceptron(observation: str = "bernoulli", **options: Any) -> Any:
    noise: Any = {"noise": "learn"} if observation == "gaussian" else {}
    given = {"observation": observation, "cov": 4.0, **noise, **options}
    model = with_drift(BayesianPerceptron, 3, ACTIVATIONS[observation], **given)
    if observation != "gaussian":
        return model
    settings, arrays = model.export_state()
    state = PerceptronProgress.from_array(arrays["running"])
    state.noise, state.noise_weight = 1.0, 30.0  # that arms start with, and the rewards it counts as
    if state.reference:
        state.start_reweighing()
    return BayesianPerceptron.from_state(settings, {**arrays, "running": state.to_array()})


def _bandit(observation: str = "bernoulli", arms: Any = ARMS, **options: Any) -> ContextualBandit:
    options = {"reward_range": (-1.0, 1.0), **options}  # learned as they are
    return ContextualBandit(arms, 3, observation=observation, **options)


def _same_scores(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    """Compare scores ``(n, K)`` with a prediction, or with one of each arm."""
    expected = expected if isinstance(expected, list) else [expected]
    parts = [
        np.column_stack([getattr(one, name) for one in expected])
        for name in ("pre_mean", "pre_var", "mean", "epistemic")
    ]
    np.testing.assert_allclose(found.mean, parts[0], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(found.std**2, parts[1], rtol=rtol)
    np.testing.assert_allclose(found.reward_mean, parts[2], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(found.reward_std**2, parts[3], rtol=rtol)


# Perceptrons, one per arm.


@pytest.mark.parametrize("options", [{}, {"outliers": 0.05}, {"forgetting": 0.9}], ids=str)
@pytest.mark.parametrize("observation", ACTIVATIONS)
def test_separate_arms_are_that_many_perceptrons(observation: str, options: dict[str, Any]) -> None:
    contexts, arms, rewards = _rows(observation=observation)
    if options.get("outliers") and observation == "gaussian":
        rewards[::7] = 50.0
    bandit = _bandit(observation, prior_scale=2.0, **options)
    alone = {name: _perceptron(observation, **options) for name in ARMS}
    for context, arm, reward in zip(contexts, arms, rewards, strict=True):
        bandit.learn(context, arm, reward)
        alone[arm].learn(context, reward)
    _same_scores(bandit.predict(contexts), [alone[name].predict(contexts) for name in ARMS])
    at_once = _bandit(observation, prior_scale=2.0, **options).learn(contexts, arms, rewards)
    _same_scores(at_once.predict(contexts), [alone[name].predict(contexts) for name in ARMS])


def test_arms_drift_with_every_reward_whether_played_or_not() -> None:
    """Before every reward each covariance becomes (1 - d) C + d C_0, here step by step."""
    contexts, arms, rewards = _rows()
    rate, prior = 0.03, 4.0 * np.eye(4)
    bandit = _bandit(prior_scale=2.0, drift=rate)
    belief = {name: (np.zeros(4), prior) for name in ARMS}
    for i, (context, arm, reward) in enumerate(zip(contexts, arms, rewards, strict=True)):
        belief = {name: (mean, (1.0 - rate) * cov + rate * prior) for name, (mean, cov) in belief.items()}
        found = bandit.predict(context)
        expected = [BayesianPerceptron(3, mean=mean, cov=cov).predict(context) for mean, cov in belief.values()]
        np.testing.assert_allclose(found.mean, [one.pre_mean for one in expected], rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(found.std**2, [one.pre_var for one in expected], rtol=1e-7)
        np.testing.assert_allclose(found.reward_mean, [one.mean for one in expected], rtol=1e-7)
        learned = BayesianPerceptron(3, mean=belief[arm][0], cov=belief[arm][1]).learn(context, reward)
        belief[arm] = learned.mean, learned.cov
        bandit.learn(context, arm, reward)
        assert bandit.drift_ == {rate: 1.0}, i


def test_an_arm_that_is_always_played_is_a_perceptron_with_drift() -> None:
    contexts, _, rewards = _rows()
    alone = _perceptron(drift=0.05)
    bandit = _bandit(arms=["a", "b"], prior_scale=2.0, drift=0.05)
    for context, reward in zip(contexts, rewards, strict=True):
        bandit.learn(context, "a", reward)
        alone.learn(context, reward)
    _same_scores(bandit.predict(contexts, ["a"]), alone.predict(contexts), 1e-7)
    never = bandit.predict(contexts, ["b"])
    np.testing.assert_allclose(never.std[:, 0] ** 2, 4.0 * (1.0 + (contexts**2).sum(axis=1)))


def test_rewards_at_once_drift_as_one_after_the_other() -> None:
    contexts, arms, rewards = _rows()
    one_by_one, at_once = _bandit(drift=0.1), _bandit(drift=0.1).learn(contexts, arms, rewards)
    for context, arm, reward in zip(contexts, arms, rewards, strict=True):
        one_by_one.learn(context, arm, reward)
    np.testing.assert_array_equal(at_once.predict(contexts).std, one_by_one.predict(contexts).std)


def test_to_look_at_arms_changes_nothing() -> None:
    contexts, arms, rewards = _rows(10)
    looked, alone = (_bandit(drift=0.1).learn(contexts, arms, rewards) for _ in range(2))
    looked.predict(contexts)
    looked.add_arm("d").predict(contexts)
    alone.add_arm("d")
    for one, other in zip(looked.export_state()[1].values(), alone.export_state()[1].values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_several_rates_of_drift_with_one_arm_are_the_perceptron_that_has_them() -> None:
    contexts, _, rewards = _rows(80)
    bandit, alone = _bandit(arms=["a"], prior_scale=2.0, drift="auto"), _perceptron(drift="auto")
    for context, reward in zip(contexts, rewards, strict=True):
        bandit.learn(context, "a", reward)
        alone.learn(context, reward)
    assert list(bandit.drift_) == list(HYPOTHESES)
    np.testing.assert_allclose(list(bandit.drift_.values()), list(alone.drift_.values()), rtol=1e-6)
    _same_scores(bandit.predict(contexts), alone.predict(contexts), 1e-6)


def test_the_rate_of_drift_is_found_out() -> None:
    """Arms whose weights turn keep little of the past, others keep it."""
    rng = np.random.default_rng(0)
    fast: dict[bool, float] = {}
    for moves in (False, True):
        bandit, weights = _bandit("gaussian", drift="auto"), WEIGHTS.copy()
        for _ in range(250):
            context, place = rng.normal(size=3), int(rng.integers(3))
            bandit.learn(context, ARMS[place], context @ weights[place] + 0.1 * rng.normal())
            weights = weights + moves * 0.15 * rng.normal(size=weights.shape)
        fast[moves] = sum(weight for name, weight in bandit.drift_.items() if name in (0.01, 0.1, "prior"))
    assert fast[False] < 0.1
    assert fast[True] > 0.9


@pytest.mark.filterwarnings("ignore:a context has a feature")
def test_arms_too_extreme_for_a_population_are_learned_all_the_same() -> None:
    rng = np.random.default_rng(0)
    bandit = ContextualBandit(["a", "b"], 1, observation="gaussian", population=True)
    for _ in range(64):  # then they are compared
        bandit.reward(bandit.choose([1e3 * rng.normal()]).id, float(rng.choice([1e74, -1e74, 0.0, 1.0])))
    assert (bandit.n_rewards, bandit.pending) == (64, ())


def test_arms_without_rewards_start_as_one_of_the_population() -> None:
    """Compared after 64 rewards and then whenever these have doubled."""
    rng = np.random.default_rng(0)
    n_arms = 30
    weights = rng.normal([2.0, -1.0, 0.0], 0.2, size=(n_arms, 3))
    contexts, places = rng.normal(size=(600, 3)), rng.integers(n_arms - 1, size=600)
    rewards = (contexts * weights[places]).sum(axis=1) + 0.2 * rng.normal(size=600)
    bandit = _bandit("gaussian", arms=range(n_arms), prior_scale=2.0, population=True)
    fleet = PerceptronFleet(3, "linear", noise="learn", cov=4.0)
    fleet.prior = _perceptron("gaussian")
    learned = 0
    for due in (64, 128, 256, 512, 600):
        for i in range(learned, due):
            bandit.learn(contexts[i], int(places[i]), rewards[i])
            fleet.learn(contexts[i : i + 1], rewards[i : i + 1], keys=[places[i]])
        learned = due
        if due < 600:
            fleet.prior = fleet.population()
    prior = fleet.prior
    found = bandit.predict(contexts[:5])
    np.testing.assert_allclose(found.mean[:, -1], prior.predict(contexts[:5]).pre_mean, rtol=1e-9)
    np.testing.assert_allclose(found.std[:, -1] ** 2, prior.predict(contexts[:5]).pre_var, rtol=1e-9)
    assert abs(prior.mean[1:] - [2.0, -1.0, 0.0]).max() < 0.3
    plain = _bandit("gaussian", arms=range(n_arms)).learn(contexts, places, rewards)
    assert (plain.predict(contexts[:5]).mean[:, -1] == 0.0).all()
    np.testing.assert_array_equal(bandit.add_arm(99).predict(contexts[:5], [99]).mean, found.mean[:, -1:])


# Networks.


@pytest.mark.parametrize(
    "options",
    [{}, {"covariance": "kronecker"}, {"dtype": "float32", "covariance": "kronecker"}, {"outliers": 0.05}],
    ids=str,
)
@pytest.mark.parametrize("observation", ["bernoulli", "gaussian"])
def test_a_network_learns_the_output_of_the_arm_that_was_played(observation: str, options: dict[str, Any]) -> None:
    contexts, arms, rewards = _rows(observation=observation)
    targets = np.full((len(rewards), 3), np.nan)
    targets[np.arange(len(rewards)), [ARMS.index(arm) for arm in arms]] = rewards
    bandit = _bandit(observation, hidden=(5,), seed=3, **options)
    network = BayesianNetwork(3, (5,), 3, observation=observation, seed=3, **options)
    for context, arm, reward, target in zip(contexts, arms, rewards, targets, strict=True):
        bandit.learn(context, arm, reward)
        network.learn(context, target)
    _same_scores(bandit.predict(contexts), network.predict(contexts), 1e-6 if "dtype" in options else 1e-9)
    at_once = _bandit(observation, hidden=(5,), seed=3, **options).learn(contexts, arms, rewards)
    _same_scores(at_once.predict(contexts), network.predict(contexts), 1e-3 if "dtype" in options else 1e-6)
    some = bandit.predict(contexts, ["c", "a"])
    np.testing.assert_array_equal(some.mean, bandit.predict(contexts).mean[:, [2, 0]])


@pytest.mark.parametrize("options", [{"drift": 0.01}, {"drift": "auto"}, {"forgetting": 0.95}], ids=str)
def test_a_network_forgets_and_drifts_as_networks_do(options: dict[str, Any]) -> None:
    contexts, arms, rewards = _rows(40)
    bandit = _bandit(hidden=(4,), prior_scale=0.5, **options)
    network: Any = with_drift(BayesianNetwork, 3, (4,), 3, observation="bernoulli", prior_scale=0.5, **options)
    for context, arm, reward in zip(contexts, arms, rewards, strict=True):
        target = np.full(3, np.nan)
        target[ARMS.index(arm)] = reward
        bandit.learn(context, arm, reward)
        network.learn(context, target)
    _same_scores(bandit.predict(contexts), network.predict(contexts))
    assert bandit.drift_ == network.drift_


def test_a_network_of_one_arm() -> None:
    contexts, _, rewards = _rows(20)
    bandit = _bandit(arms=["only"], hidden=(4,)).learn(contexts, ["only"] * 20, rewards)
    network = BayesianNetwork(3, (4,), observation="bernoulli").learn(contexts, rewards)
    _same_scores(bandit.predict(contexts), network.predict(contexts))
    assert bandit.choose(contexts[0]).arm == "only"


def test_contexts_may_be_images() -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(20, 4, 4))
    layers = (Conv2D(2, 3), 4)
    bandit = ContextualBandit(ARMS, (4, 4), hidden=layers)
    network = BayesianNetwork((4, 4), layers, 3, observation="bernoulli")
    for i, image in enumerate(images):
        target = np.full(3, np.nan)
        target[i % 3] = i % 2
        bandit.learn(image, ARMS[i % 3], i % 2)
        network.learn(image, target)
    _same_scores(bandit.predict(images), network.predict(images))
    _same_scores(bandit.predict(images.reshape(20, 16)), network.predict(images))
    assert bandit.predict(images[0]).mean.shape == (3,)
    assert bandit.n_features == 16


# One model of all arms.


def _features() -> dict[str, list[float]]:
    return {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.5, -0.5]}


@pytest.mark.parametrize("hidden", [(), (5,)], ids=str)
@pytest.mark.parametrize("observation", ["bernoulli", "gaussian"])
def test_arms_with_features_share_a_model_of_context_arm_and_products(observation: str, hidden: Any) -> None:
    contexts, arms, rewards = _rows(observation=observation)

    def inputs(rows: FloatArray, features: FloatArray) -> FloatArray:
        products = [] if hidden else [np.outer(x, z).ravel() for x, z in zip(rows, features, strict=True)]
        return np.hstack([rows, features] if hidden else [rows, features, np.array(products)])

    bandit = _bandit(observation, arms=_features(), hidden=hidden)
    network = BayesianNetwork(5 if hidden else 11, hidden, observation=observation)
    seen = inputs(contexts, np.array([_features()[arm] for arm in arms]))
    for i in range(len(rewards)):
        bandit.learn(contexts[i], arms[i], rewards[i])
        network.learn(seen[i], rewards[i])
    for arm, features in {**_features(), "new": [2.0, 1.0]}.items():
        found = bandit.predict(contexts, {arm: features})
        _same_scores(found, network.predict(inputs(contexts, np.tile(features, (len(contexts), 1)))))
        if arm != "new":
            np.testing.assert_allclose(bandit.predict(contexts, [arm]).mean, found.mean, rtol=1e-12)


def test_an_arm_with_features_can_be_the_best_before_it_was_played() -> None:
    rng = np.random.default_rng(0)
    features = {f"arm {i}": rng.uniform(-1.0, 1.0, size=1) for i in range(6)}
    bandit = ContextualBandit(features, 1, observation="gaussian", policy="greedy", reward_range=(-1, 1))
    for _ in range(150):
        name, context = f"arm {rng.integers(6)}", rng.normal(size=1)
        bandit.learn(context, name, 2.0 * features[name][0] * context[0] + 0.1 * rng.normal())
    offered = {"far": [2.0], "opposite": [-2.0], "arm 0": features["arm 0"]}
    assert bandit.choose([1.0], arms=offered).arm == "far"
    choice = bandit.choose([-1.0], 2, arms=offered)
    assert choice.arm == "opposite"
    assert choice.candidates == tuple(offered)
    n = bandit.n_rewards
    assert bandit.reward(choice.id, 2.0)  # learned, though this arm was never added
    assert bandit.reward(choice.id, 1.0, choice.arms[1])
    assert bandit.n_rewards == n + 2
    np.testing.assert_allclose(bandit.propensities([1.0], offered), [1.0, 0.0, 0.0])
    bandit.add_arm("far", [2.0])
    assert bandit.choose([1.0]).arm == "far"


# What all have in common.


@pytest.mark.parametrize("options", [{}, {"hidden": (4,)}, {"arms": _features()}], ids=["fleet", "network", "shared"])
def test_the_unit_of_rewards_does_not_matter(options: dict[str, Any]) -> None:
    """Cents with a range in cents give the choices that euros do, and expectations in cents."""
    contexts = np.random.default_rng(1).normal(size=(40, 3))
    euros, cents = (_bandit("gaussian", reward_range=(0.0, unit * 4.0), **options) for unit in (1.0, 100.0))
    for context in contexts:
        one, other = euros.choose(context), cents.choose(context)
        assert one.arms == other.arms
        np.testing.assert_allclose(other.means, 100.0 * one.means, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.stds, 100.0 * one.stds, rtol=1e-6)
        np.testing.assert_allclose(other.propensities, one.propensities, atol=1e-6)
        reward = 2.0 + context @ WEIGHTS[ARMS.index(one.arm)]
        euros.reward(one.id, reward)
        cents.reward(other.id, 100.0 * reward)
    assert (euros.predict(contexts).reward_mean > 1.0).mean() > 0.5
    assert _bandit("gaussian", reward_range=(2.0, 4.0), **options).predict(contexts[0]).reward_mean[0] == (
        pytest.approx(3.0, abs=0.1)
    )


def test_outliers_are_not_trusted() -> None:
    contexts, arms, rewards = _rows(200, "gaussian")
    spiked = np.where(np.arange(200) % 20 == 19, 30.0, rewards)
    expected = contexts @ WEIGHTS.T
    errors = []
    for outliers in (0.0, 0.05):
        bandit = _bandit("gaussian", outliers=outliers).learn(contexts, arms, spiked)
        errors.append(np.sqrt(((bandit.predict(contexts).reward_mean - expected) ** 2).mean()))
    assert errors[1] < 0.2 < 0.5 < errors[0]


@pytest.mark.parametrize(
    ("observation", "options"),
    [(observation, {}) for observation in ACTIVATIONS]
    + [(observation, {"arms": _features()}) for observation in ACTIVATIONS]
    + [(observation, {"hidden": (6,)}) for observation in ("bernoulli", "gaussian")],
    ids=str,
)
def test_every_model_learns_which_arm_is_best(observation: str, options: dict[str, Any]) -> None:
    contexts, arms, rewards = _rows(600, observation)
    bandit = _bandit(observation, **options).learn(contexts, arms, rewards)
    new = np.random.default_rng(9).normal(size=(200, 3))
    best = (new @ WEIGHTS.T).argmax(axis=1)
    hits = float((bandit.predict(new).reward_mean.argmax(axis=1) == best).mean())
    assert hits > 0.75


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: _bandit(arms=_features(), population=True), "population=True needs arms that are learned separately"),
        (lambda: _bandit(hidden=3, population=True), "population=True needs arms that are learned separately"),
        (lambda: _bandit(drift="auto", forgetting=0.9), "needs forgetting=1"),
        (lambda: _bandit(hidden=3, drift="auto", forgetting=0.9), "needs forgetting=1"),
        (
            lambda: _bandit("poisson", hidden=3),
            "observation='poisson' can't be learned by a network with one output per",
        ),
        (lambda: _bandit(arms=[], hidden=3), "a network has one output per arm and needs at least one"),
        (lambda: ContextualBandit(ARMS, (4, 4)), "shape of images, which needs a network and arms without features"),
        (lambda: ContextualBandit(_features(), (4, 4), hidden=3), "shape of images, which needs a network"),
        (lambda: _bandit("binomial"), "observation must be one of"),
        (lambda: _bandit(drift=2.0), "drift"),
        (lambda: _bandit(prior_scale=0.0), "prior_scale must be a number above 0"),
        (lambda: ContextualBandit(ARMS, 0), "n_features must be a whole number of at least 1"),
    ],
)
def test_settings_that_no_model_has(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
