"""
What not knowing costs
======================

Four offers, visitors with three features, 800 decisions. The regret is what the best offer for each visitor would
have earned on average, less what the chosen one does. Thompson sampling stops paying for what it knows to be worse.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass.decisions import ContextualBandit

rng = np.random.default_rng(0)
tastes = rng.normal(size=(4, 3))


def play(policy: str, seed: int) -> np.ndarray:
    visitors = np.random.default_rng(seed)
    bandit = ContextualBandit([0, 1, 2, 3], n_features=3, policy=policy, seed=seed)
    regret = np.empty(800)
    for step in range(len(regret)):
        visitor = visitors.normal(size=3)
        clicks = 1.0 / (1.0 + np.exp(-tastes @ visitor))
        choice = bandit.choose(visitor)
        bandit.reward(choice.id, float(visitors.random() < clicks[choice.arm]))
        regret[step] = clicks.max() - clicks[choice.arm]
    return np.cumsum(regret)


figure, axis = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
for policy in ("thompson", "ucb", "epsilon_greedy"):
    axis.plot(np.mean([play(policy, seed) for seed in range(2)], axis=0), label=policy)
axis.set(xlabel="decisions", ylabel="regret, in clicks")
axis.legend()
plt.show()
