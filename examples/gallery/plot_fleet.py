"""
Fleet: a new key starts from what the others share
==================================================

A fleet has one model per shop and has learned three hundred shops. New shops start either from a wide prior or from the
population, which is what the known shops have in common. From the population they predict well with hardly any rows of
their own: compare the log-loss of the two curves on the left.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass import PerceptronFleet

rng = np.random.default_rng(0)
common = np.array([0.5, 1.5, -1.0, 0.5])  # the intercept first
KNOWN, NEW, ROWS = 300, 300, 30


def labels(shops: np.ndarray, tastes: np.ndarray, X: np.ndarray) -> np.ndarray:
    a = tastes[shops, 0] + np.sum(tastes[shops, 1:] * X, axis=1)
    return np.asarray(a + rng.logistic(size=len(X)) > 0, dtype=float)


tastes = common + 0.4 * rng.normal(size=(KNOWN + NEW, 4))
shops = np.repeat(np.arange(KNOWN), 40)
X = rng.normal(size=(len(shops), 3))
known = PerceptronFleet(n_features=3).learn(X, labels(shops, tastes, X), keys=shops)

figure, axis = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
new = np.arange(KNOWN, KNOWN + NEW)
for label in ("wide prior", "population of 300 shops"):
    draws = rng.normal(size=(ROWS, NEW, 3))
    fleet = PerceptronFleet(n_features=3)
    if label != "wide prior":
        fleet.prior = known.population()
    losses = []
    for rows in draws:
        truth = labels(new, tastes, rows)
        p = np.clip(fleet.predict(rows, keys=new).mean, 1e-9, 1 - 1e-9)
        losses.append(-np.mean(truth * np.log(p) + (1 - truth) * np.log(1 - p)))
        fleet.learn(rows, truth, keys=new)
    axis.plot(np.arange(ROWS), losses, label=label)
axis.set(xlabel="rows that each new shop has learned", ylabel="log-loss of the next row")
axis.legend()
plt.show()
