"""
Regression: the band narrows with every point
=============================================

A linear perceptron learns a curve from 1, 4 and 40 points; its inputs are twelve bumps along the axis. The dark band is
where the curve may be, the light one where the next point may be (95 % each). The dark band shrinks with every point,
the light one only until the noise is left. The dashed line is the true curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass import BayesianPerceptron

rng = np.random.default_rng(3)
places = np.linspace(-3.0, 3.0, 12)


def bumps(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((x[:, None] - places) / (places[1] - places[0])) ** 2))


x = rng.uniform(-3.0, 3.0, 40)
y = np.sin(1.5 * x) + 0.15 * rng.normal(size=40)
grid = np.linspace(-3.0, 3.0, 200)

# %%
# ``learn`` takes one row or many; what has been learned before is kept. The belief of a linear perceptron with a known
# noise is the exact posterior.

model = BayesianPerceptron(12, "linear", noise=0.15**2)
figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.0), sharey=True, layout="constrained")
learned = 0
for axis, n in zip(axes, (1, 4, 40), strict=True):
    model.learn(bumps(x[learned:n]), y[learned:n])
    learned = n
    seen = model.predict(bumps(grid))
    for var, shade in ((seen.var, 0.2), (seen.epistemic, 0.35)):
        half_width = 1.96 * np.sqrt(var)
        axis.fill_between(grid, seen.mean - half_width, seen.mean + half_width, color="C0", alpha=shade, lw=0)
    axis.plot(grid, np.sin(1.5 * grid), color="0.4", lw=1, ls="--")
    axis.plot(grid, seen.mean, color="C0")
    axis.plot(x[:n], y[:n], "o", color="black", ms=3)
    axis.set(title=f"{n} point{'s' if n > 1 else ''}", ylim=(-3.5, 3.5), xlabel="x")
plt.show()
