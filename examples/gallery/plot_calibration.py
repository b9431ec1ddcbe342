"""
Calibration of probabilities and intervals
==========================================

Every row is predicted before it is learned, so each is a test row. Of the rows that got a probability of about 0.8,
some 80 % should be ones (left); about 90 % of the targets should lie inside their 90 % intervals (right). A calibrated
model lies on the grey diagonal.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass import BayesianPerceptronClassifier, BayesianPerceptronRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 8))
weights = rng.normal(size=8)
labels = (X @ weights + rng.logistic(size=len(X)) > 0).astype(int)
numbers = X @ weights + rng.normal(size=len(X))

# Labels: mean prediction against the share of ones, in ten bins.
probability = BayesianPerceptronClassifier(standardize=False).predict_then_learn(X, labels).mean[:, 1]
bins = np.clip((10 * probability).astype(int), 0, 9)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")
left.plot([0, 1], [0, 1], color="0.6", lw=1)
means, shares = zip(*((probability[bins == one].mean(), labels[bins == one].mean()) for one in range(10)), strict=True)
left.plot(means, shares, "o-")
left.set(title="labels", xlabel="predicted probability", ylabel="share of ones")

# Numbers: the level of an interval against the share of targets inside it.
scored = BayesianPerceptronRegressor().predict_then_learn(X, numbers)
z = np.abs(numbers - scored.mean) / scored.std
levels = np.linspace(0.05, 0.99, 20)
half_widths = np.quantile(np.abs(rng.normal(size=200_000)), levels)
right.plot([0, 1], [0, 1], color="0.6", lw=1)
right.plot(levels, [(z[1:] < width).mean() for width in half_widths], "o-")
right.set(title="numbers", xlabel="level of the interval", ylabel="share of targets inside")
plt.show()
