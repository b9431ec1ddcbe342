"""
A sensor with spikes and a level shift
======================================

Every reading is predicted before it is learned; the band is the 95 % interval. The plain model (above) believes all
readings alike. With ``outliers`` and ``drift="auto"`` (below) the model ignores single spikes, believes a jump after a
few readings, and follows slow changes.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from onepass import BayesianPerceptron, Mixture

rng = np.random.default_rng(1)
time = np.arange(400)
phase = 2.0 * np.pi * time / 60.0
y = np.sin(phase) + 5.0 * (time >= 220) + 0.25 * rng.normal(size=400)
y[[60, 110, 160]] += [8.0, -7.0, 10.0]
X = np.column_stack([np.sin(phase), np.cos(phase)])

figure, axes = plt.subplots(2, 1, figsize=(9.0, 4.6), sharex=True, sharey=True, layout="constrained")
options: dict[str, Any] = {"cov": [25.0, 4.0, 4.0], "noise": "learn"}
plain = BayesianPerceptron(2, "linear", **options)
robust = Mixture.over_drift(BayesianPerceptron, 2, "linear", outliers=0.05, **options)
for axis, model, title in ((axes[0], plain, "plain"), (axes[1], robust, "outliers=0.05, several rates of drift")):
    seen = model.predict_then_learn(X, y)
    half_width = 1.96 * seen.std
    axis.fill_between(time, seen.mean - half_width, seen.mean + half_width, color="C0", alpha=0.25, lw=0)
    axis.plot(time, seen.mean, color="C0", lw=1)
    axis.plot(time, y, ".", color="black", ms=3)
    axis.set(title=title, ylim=(-9, 12), ylabel="reading")
axes[1].set_xlabel("time")
plt.show()
