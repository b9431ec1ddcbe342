"""
Bandit: the regret of three policies
====================================

A bandit chooses among four offers for visitors with three features, 800 times. The regret is the average reward of the
best offer for each visitor minus that of the chosen one, added up; a curve that becomes flat has found the best offers.
Thompson sampling (``thompson``) stops trying offers that it knows to be worse; ``epsilon_greedy`` never does.
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
