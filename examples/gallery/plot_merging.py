"""
Merging two models
==================

Each of two perceptrons learns its own half of the rows, from the same prior. Merged, they are the model that has seen
all rows. For a linear output with a known noise this is exact: the ellipses of the merged model and of the model of all
rows coincide. An ellipse contains 95 % of the belief about the two weights; the cross marks the true weights.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np

from onepass import BayesianPerceptron, merge

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 2)) @ [[1.0, 0.6], [0.0, 0.8]]
y = X @ [1.0, -0.5] + 0.8 * rng.normal(size=24)
prior = BayesianPerceptron(2, "linear", bias=False, noise=0.8**2)
parts = [copy.deepcopy(prior).learn(X[half::2], y[half::2]) for half in (0, 1)]
merged, whole = merge(prior, parts), copy.deepcopy(prior).learn(X, y)
print("largest difference of the means:", f"{np.abs(merged.mean - whole.mean).max():.0e}")

angle = np.linspace(0.0, 2.0 * np.pi, 200)
circle = np.sqrt(5.99) * np.array([np.cos(angle), np.sin(angle)])
figure, axis = plt.subplots(figsize=(5.0, 4.2), layout="constrained")
drawn = ((parts[0], "first half", "C1", "-"), (parts[1], "second half", "C2", "-"))
for model, label, colour, line in (*drawn, (merged, "merged", "C0", "-"), (whole, "all rows", "black", ":")):
    ellipse = model.mean[:, None] + np.linalg.cholesky(model.cov) @ circle
    axis.plot(*ellipse, color=colour, ls=line, lw=2.0, label=label)
axis.plot(1.0, -0.5, "x", color="black", ms=9)
axis.set(xlabel="first weight", ylabel="second weight")
axis.legend()
plt.show()
